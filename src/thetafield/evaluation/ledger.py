"""A list of trainings on the disk that a stopped search goes on from."""

import json
from pathlib import Path
from typing import Any

from thetafield.errors import FormatError
from thetafield.files import write_json


class Ledger:
    """Entries of a search, each written as soon as it is known; those of an earlier run are found again.

    Args:
        path: The file; None keeps entries in memory alone.
        identity: All that determines the entries: those of another search are refused.
    """

    def __init__(self, path: Path | None, identity: dict[str, Any]) -> None:
        self.path, self.identity = path, json.loads(json.dumps(identity))
        self.entries: list[dict[str, Any]] = []
        if path is None or not path.exists():
            return
        try:
            content = json.loads(path.read_text())
            stored, self.entries = content["identity"], list(content["entries"])
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
            raise FormatError(f"{path} is damaged: delete it to search again.") from None
        if stored != self.identity:
            raise FormatError(f"{path} belongs to another run: use the same settings, or choose another folder.")

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry and write all of them."""
        self.entries.append(json.loads(json.dumps(entry)))
        if self.path is not None:
            write_json(self.path, {"identity": self.identity, "entries": self.entries})
