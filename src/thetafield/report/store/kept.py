"""Figures that were drawn before: the dearest are not drawn again while everything that they show is the same."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import thetafield
from thetafield.files import write_json
from thetafield.report.embed import Embedded
from thetafield.report.store.picture import Picture

NAME = ".drawn.json"


@dataclass(frozen=True)
class Kept:
    """The figures of an earlier report.

    Args:
        folder: Where they lie; None looks nowhere.
    """

    folder: Path | None

    def find(self, picture: Picture) -> Embedded | None:
        """Return an earlier drawing of the same content, made by the same code."""
        if self.folder is None or not picture.content_digest:
            return None
        entry, file = self._entries().get(picture.file), self.folder / picture.file
        if entry is None or not file.is_file() or entry.get("digest") != _with_code(picture):
            return None
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != entry.get("file"):
            return None
        kind = "svg+xml" if picture.vector else "png"
        uri = f"data:image/{kind};base64,{b64encode(content).decode()}"
        return Embedded(uri, entry["width"], entry["height"])

    def note(self, pictures: Sequence[Picture]) -> None:
        """Write down what the figures in the folder show."""
        if self.folder is None:
            return
        entries = {
            one.file: {
                "digest": _with_code(one),
                "file": hashlib.sha256(one.content).hexdigest(),
                "width": one.embedded.width,
                "height": one.embedded.height,
            }
            for one in pictures
            if one.embedded is not None and one.content_digest
        }
        write_json(self.folder / NAME, entries)

    def _entries(self) -> dict[str, Any]:
        try:
            entries = json.loads((self.folder / NAME).read_text()) if self.folder is not None else {}
        except (OSError, json.JSONDecodeError, UnicodeDecodeError):
            return {}  # nothing is lost but time
        return entries if isinstance(entries, dict) else {}


def digest(*parts: object) -> str:
    """Return a digest of plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _with_code(picture: Picture) -> str:
    return digest(picture.content_digest, _code())


@cache
def _code() -> str:
    """Return a digest of the package: other code may draw, or answer, otherwise."""
    root = Path(thetafield.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()
