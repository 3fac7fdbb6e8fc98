"""What an earlier report of a store left in a folder and this one does not: old numbers beside new ones mislead."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from thetafield.files import write_json

NAME = ".written.json"


def sweep(folder: Path, written: Iterable[Path], store: Path) -> None:
    """Remove what the last report of a store left in a folder and this one does not have, and note what this one has.

    Files of other origin stay, such as those of a report of another store.
    """
    now = {path.name for path in written if path.parent == folder}
    noted, source = _noted(folder), str(store.absolute())
    others = {source: names - now for source, names in noted.items()}
    for name in others.pop(source, set()).difference(*others.values()):
        (folder / name).unlink(missing_ok=True)
    if now or folder.exists():
        write_json(folder / NAME, {name: sorted(names) for name, names in (others | {source: now}).items() if names})


def _noted(folder: Path) -> dict[str, set[str]]:
    """Return what is noted of a folder: names of files, by the store that they are of."""
    try:
        noted = json.loads((folder / NAME).read_text())
    except (OSError, json.JSONDecodeError, UnicodeDecodeError):
        return {}  # nothing is known of what lies there
    return {store: _names(names) for store, names in noted.items()} if isinstance(noted, dict) else {}


def _names(names: Any) -> set[str]:
    known = names if isinstance(names, list) else []
    return {name for name in known if isinstance(name, str) and name and Path(name).name == name}
