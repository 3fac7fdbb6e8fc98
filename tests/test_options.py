"""Signatures as schemas: reading, checking and parsing options."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
import torch

from thetafield.errors import OptionError
from thetafield.methods import METHODS
from thetafield.options import Count, Natural, NonNegative, Positive, Share, checked, parse_assignments, schema
from thetafield.predictors import PREDICTORS


def train(
    data: str,
    *,
    epochs: int = 200,
    lr: float = 1e-3,
    gate: bool = True,
    widths: tuple[int, ...] = (50, 50),
    rates: tuple[float, ...] = (),
    rank: int | None = None,
    schedule: Literal["constant", "cosine"] = "cosine",
    name: str = "plain",
) -> None: ...


DEFAULTS = {
    "epochs": 200,
    "lr": 1e-3,
    "gate": True,
    "widths": (50, 50),
    "rates": (),
    "rank": None,
    "schedule": "cosine",
    "name": "plain",
}


class Learner:
    def __init__(self, data: str, *, epochs: int = 3) -> None: ...


class Child(Learner):
    """Has the options of its parent."""


def test_schema_reads_keyword_only_parameters():
    assert {name: default for name, (_, default) in schema(train).items()} == DEFAULTS
    assert schema(train)["widths"] == (tuple[int, ...], (50, 50))
    assert schema(Learner) == schema(Child) == {"epochs": (int, 3)}


def test_checked_completes_with_defaults():
    assert checked(train, {}, "train") == DEFAULTS
    assert checked(train, {"epochs": 5}, "train") == DEFAULTS | {"epochs": 5}


@pytest.mark.parametrize(
    ("option", "given", "expected"),
    [
        ("epochs", "20", 20),
        ("epochs", "1e3", 1000),
        ("epochs", 20.0, 20),
        ("epochs", -1, -1),
        ("epochs", np.int64(7), 7),
        ("epochs", torch.tensor(7), 7),
        ("epochs", 2**60 + 1, 2**60 + 1),
        ("lr", "1e-4", 1e-4),
        ("lr", 1, 1.0),
        ("lr", np.float32(0.5), 0.5),
        ("gate", "false", False),
        ("gate", "No", False),
        ("gate", "OFF", False),
        ("gate", "true", True),
        ("gate", "Yes", True),
        ("gate", "on", True),
        ("gate", np.False_, False),
        ("widths", "50,50", (50, 50)),
        ("widths", "50x20x3", (50, 20, 3)),
        ("widths", "(16, 8)", (16, 8)),
        ("widths", "[16,]", (16,)),
        ("widths", "16", (16,)),
        ("widths", "", ()),
        ("widths", [16, 8], (16, 8)),
        ("widths", [], ()),
        ("widths", ["16", np.int32(8)], (16, 8)),
        ("rates", "0.5,1e-2", (0.5, 0.01)),
        ("rank", None, None),
        ("rank", "none", None),
        ("rank", "None", None),
        ("rank", "4", 4),
        ("schedule", "constant", "constant"),
        ("name", "none", "none"),
    ],
)
def test_values_are_parsed_as_annotated(option, given, expected):
    value = checked(train, {option: given}, "train")[option]
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("option", "given", "message"),
    [
        ("epochs", "many", "train: option 'epochs' expects a whole number, but got 'many'."),
        ("epochs", 1.5, "expects a whole number, but got 1.5."),
        ("epochs", True, "expects a whole number, but got True."),
        ("epochs", np.True_, "expects a whole number, but got True."),
        ("epochs", None, "expects a whole number, but got None."),
        ("epochs", "inf", "expects a whole number, but got 'inf'."),
        ("epochs", [3], "expects a whole number, but got [3]."),
        ("lr", "fast", "option 'lr' expects a number, but got 'fast'."),
        ("lr", float("nan"), "expects a number, but got nan."),
        ("lr", 10**400, "expects a number, but got 1000"),
        ("gate", "maybe", "option 'gate' expects true or false, but got 'maybe'."),
        ("gate", 1, "expects true or false, but got 1."),
        ("widths", 50, "option 'widths' expects several values such as 50,50, but got 50."),
        ("widths", None, "expects several values such as 50,50, but got None."),
        ("widths", "50,a", "option 'widths' expects a whole number, but got 'a'."),
        ("widths", [1.5], "option 'widths' expects a whole number, but got 1.5."),
        ("rank", "low", "option 'rank' expects a whole number, but got 'low'."),
        ("schedule", "cosin", "option 'schedule' is one of 'constant', 'cosine', but got 'cosin'."),
        ("schedule", None, "option 'schedule' is one of 'constant', 'cosine', but got None."),
        ("name", 3, "option 'name' expects a word, but got 3."),
    ],
)
def test_ill_typed_values_are_refused_with_the_option_and_the_value(option, given, message):
    with pytest.raises(OptionError) as caught:
        checked(train, {option: given}, "train")
    assert message in str(caught.value)


def bounded(
    *, epochs: Count = 1, samples: Natural = 0, lr: Positive = 1.0, decay: NonNegative = 0.0, drop: Share = 0.0
) -> None: ...


def sized(*, hidden: tuple[Count, ...] = (50,), rank: Natural | None = None) -> None: ...


def test_values_at_their_bounds_are_taken():
    assert checked(bounded, {"epochs": 1, "samples": 0, "lr": 1e-9, "decay": 0}, "bounded")["lr"] == 1e-9
    assert checked(sized, {"hidden": "1,2", "rank": "0"}, "sized") == {"hidden": (1, 2), "rank": 0}
    assert checked(sized, {"rank": None}, "sized")["rank"] is None


@pytest.mark.parametrize(
    ("owner", "option", "given", "message"),
    [
        (bounded, "epochs", 0, "option 'epochs' expects at least 1, but got 0."),
        (bounded, "samples", "-1", "option 'samples' expects at least 0, but got -1."),
        (bounded, "lr", 0.0, "option 'lr' expects more than 0, but got 0.0."),
        (bounded, "decay", -1e-9, "option 'decay' expects at least 0, but got -1e-09."),
        (bounded, "drop", 1, "option 'drop' expects a share below 1, but got 1.0."),
        (bounded, "drop", -0.1, "option 'drop' expects at least 0, but got -0.1."),
        (bounded, "epochs", "many", "option 'epochs' expects a whole number, but got 'many'."),
        (sized, "hidden", "50,0", "option 'hidden' expects at least 1, but got 0."),
        (sized, "rank", -1, "option 'rank' expects at least 0, but got -1."),
    ],
)
def test_values_out_of_bounds_are_refused(owner, option, given, message):
    with pytest.raises(OptionError) as caught:
        checked(owner, {option: given}, "owner")
    assert message in str(caught.value)


def test_unknown_options_name_the_closest():
    with pytest.raises(OptionError, match=r"train has no option 'epoch'; did you mean 'epochs'\?"):
        checked(train, {"epoch": 3}, "train")
    with pytest.raises(OptionError, match=r"train has no option 'zzz'; valid names: epochs, gate, "):
        checked(train, {"zzz": 3}, "train")
    with pytest.raises(OptionError, match="train has no option 'data'"):
        checked(train, {"data": 3}, "train")


def test_assignments_of_a_command_line():
    words = ["epochs=20", " gate = false ", "widths=50,50", "name=a=b", "rank="]
    pairs = {"epochs": "20", "gate": "false", "widths": "50,50", "name": "a=b", "rank": ""}
    assert parse_assignments(words) == pairs
    assert parse_assignments([]) == {}


@pytest.mark.parametrize("word", ["epochs", "=3", " =3", ""])
def test_what_is_no_assignment(word):
    with pytest.raises(OptionError, match=f"Expected name=value, but got '{word}'; write for example epochs=100"):
        parse_assignments([word])


@pytest.mark.parametrize(("name", "owner"), [*METHODS, *PREDICTORS])
def test_defaults_of_every_registered_owner_meet_its_own_schema(name: str, owner: Callable):
    defaults = checked(owner, {}, name)
    assert checked(owner, defaults, name) == defaults
    # What a saved field gives back: the same values after a trip through text.
    text = {key: ",".join(map(str, v)) if isinstance(v, tuple) else str(v) for key, v in defaults.items()}
    assert checked(owner, text, name) == defaults
