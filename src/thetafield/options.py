"""The signature of a constructor is the schema of its options: reading, checking and parsing against it."""

import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from thetafield.errors import OptionError, closest


@dataclass(frozen=True)
class AtLeast:
    """The least value that an option may take; `above` excludes the bound itself, and so does `below` the upper one."""

    bound: int
    above: bool = False
    below: int | None = None


Count = Annotated[int, AtLeast(1)]
Natural = Annotated[int, AtLeast(0)]
Positive = Annotated[float, AtLeast(0, above=True)]
NonNegative = Annotated[float, AtLeast(0)]
Share = Annotated[float, AtLeast(0, below=1)]


def schema(owner: Callable) -> dict[str, tuple[Any, Any]]:
    """Return name → (type, default) of the keyword-only parameters of `owner`.

    >>> def train(*, epochs: int = 200, schedule: Literal["constant", "cosine"] = "cosine"): ...
    >>> schema(train)["epochs"]
    (<class 'int'>, 200)
    """
    function = owner.__init__ if inspect.isclass(owner) else owner
    hints = get_type_hints(function, include_extras=True)
    keywords = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return {p.name: (hints[p.name], p.default) for p in keywords}


def checked(owner: Callable, options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return `options` completed with the defaults of `owner`, each value checked against its annotation.

    Strings are parsed, so that values typed on a command line and values given in Python meet the same rules.

    Args:
        owner: The class or function whose keyword-only parameters are the schema.
        options: The values asked for.
        name: How the owner is called in messages.

    Raises:
        OptionError: An option does not exist or its value is ill-typed; the sentence names the closest valid one.
    """
    if not isinstance(options, Mapping):
        raise OptionError(f"{name}: options are a dictionary of names and values, but got {options!r}.")
    valid = schema(owner)
    for key in options:
        if key not in valid:
            raise OptionError(f"{name} has no option {key!r}; {closest(key, valid)}")
    full = {key: default for key, (_, default) in valid.items()}
    return full | {key: _convert(value, valid[key][0], f"{name}: option {key!r}") for key, value in options.items()}


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """Split `name=value` words of a command line.

    >>> parse_assignments(["epochs=20", "gate=false"])
    {'epochs': '20', 'gate': 'false'}
    """
    pairs = {}
    for word in assignments:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"Expected name=value, but got {word!r}; write for example epochs=100.")
        if name.strip() in pairs:
            raise OptionError(f"{name.strip()!r} is set twice: keep one of them.")
        pairs[name.strip()] = value.strip()
    return pairs


def _convert(value: Any, kind: Any, where: str) -> Any:
    """Return `value` as the annotated `kind`, or say what was expected."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()  # a number of numpy or torch
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _bounded(_convert(value, inner[0], where), inner[1], where)
    if origin in (Union, types.UnionType):
        if types.NoneType in inner and (value is None or str(value).lower() == "none"):
            return None
        return _convert(value, next(k for k in inner if k is not types.NoneType), where)
    if origin is Literal:
        if value not in inner:
            raise OptionError(f"{where} is one of {', '.join(map(repr, inner))}, but got {value!r}.")
        return value
    if origin is tuple:
        parts = _split(value) if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise OptionError(f"{where} expects several values such as 50,50, but got {value!r}.")
        return tuple(_convert(part, inner[0], where) for part in parts)
    return _scalar(value, kind, where)


def _split(text: str) -> list[str]:
    """Split 50,50 or 50x50, with or without brackets; a comma may follow the last value."""
    text = text.strip("()[] ").removesuffix(",")
    return re.split("[,x]", text) if text else []


def _bounded(value: Any, least: AtLeast, where: str) -> Any:
    if value < least.bound or (least.above and value == least.bound):
        words = "more than" if least.above else "at least"
        raise OptionError(f"{where} expects {words} {least.bound:g}, but got {value!r}.")
    if least.below is not None and value >= least.below:
        raise OptionError(f"{where} expects a share below {least.below:g}, but got {value!r}.")
    return value


def _scalar(value: Any, kind: Any, where: str) -> Any:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if kind is bool:
        if isinstance(value, str):
            value = words.get(value.lower(), value)
        if isinstance(value, bool):
            return value
    elif kind is int:
        number = value if isinstance(value, int) and not isinstance(value, bool) else _number(value)
        if number is not None and number == int(number):
            return int(number)
    elif kind is float:
        number = _number(value)
        if number is not None:
            return float(number)
    elif isinstance(value, kind):
        return value
    raise OptionError(f"{where} expects {_WORDS.get(kind, kind)}, but got {value!r}.")


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number - number == 0 else None  # neither infinite nor NaN


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
