"""What an earlier report wrote into a folder and this one does not: old numbers beside new ones mislead."""

import json
from collections.abc import Iterable
from pathlib import Path

from thetafield.files import write_json

NAME = ".written.json"


def sweep(folder: Path, written: Iterable[Path]) -> None:
    """Remove what the last report left in a folder and this one does not have, and note what this one has.

    Files of other origin stay.
    """
    now = {path.name for path in written if path.parent == folder}
    for name in _noted(folder) - now:
        (folder / name).unlink(missing_ok=True)
    if now or folder.exists():
        write_json(folder / NAME, sorted(now))


def _noted(folder: Path) -> set[str]:
    try:
        names = json.loads((folder / NAME).read_text())
    except (OSError, json.JSONDecodeError, UnicodeDecodeError):
        return set()  # nothing is known of what lies there
    known = names if isinstance(names, list) else []
    return {name for name in known if isinstance(name, str) and name and Path(name).name == name}
