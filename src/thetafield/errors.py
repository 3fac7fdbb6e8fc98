"""What can go wrong for a user, each with a sentence that says what came, what was expected and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class ThetafieldError(ValueError):
    """Any error whose message is meant for the user; the command line prints it alone and exits with 2."""


class DataError(ThetafieldError):
    """The data, the descriptors or the domains are not what the library can work with."""


class OptionError(ThetafieldError):
    """An unknown name or an ill-typed value was asked for."""


class NeedError(ThetafieldError):
    """A method's declared need (descriptors, classes, an order) is not met by the data."""


class FormatError(ThetafieldError):
    """A saved field or a checkpoint is damaged, altered, or of a format this version does not read."""


class ExportError(ThetafieldError):
    """A model cannot be written for other programs, or what was written answers differently."""


class DivergenceError(ThetafieldError):
    """A loss stopped being finite during training."""


def closest(name: str, valid: Iterable[str]) -> str:
    """Return `valid` as a sentence that puts the nearest match to `name` first."""
    by_key = {str(entry).lower(): str(entry) for entry in sorted(valid)}
    listed = ", ".join(by_key.values()) if by_key else "none"
    match = get_close_matches(str(name).lower(), by_key, n=1, cutoff=0.6)
    return f"did you mean {by_key[match[0]]!r}? Valid names: {listed}." if match else f"valid names: {listed}."
