"""A list of trainings on the disk that a stopped search goes on from."""

from pathlib import Path
from typing import Any

from thetafield.errors import FormatError
from thetafield.files import plain, read_json, write_json


class Ledger:
    """Entries of a search, each written as soon as it is known; those of an earlier run are found again.

    Args:
        path: The file; None keeps entries in memory alone.
        identity: All that determines the entries: those of another search are refused.
    """

    def __init__(self, path: Path | None, identity: dict[str, Any]) -> None:
        self.path, self.identity = path, plain(identity)
        self.entries: list[dict[str, Any]] = []
        if path is None or not path.exists():
            return
        try:
            content = read_json(path)
            stored, self.entries = content["identity"], list(content["entries"])
        except (ValueError, KeyError, TypeError):
            raise FormatError(f"{path} is damaged: delete it to search again.") from None
        if stored != self.identity:
            raise FormatError(f"{path} belongs to another run: use the same settings, or choose another folder.")

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry and write all of them."""
        self.entries.append(plain(entry))
        if self.path is not None:
            write_json(self.path, {"identity": self.identity, "entries": self.entries})
