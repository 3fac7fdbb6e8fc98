"""The folder of a comparison: what it belongs to, and the files that come of it."""

import csv
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.errors import FormatError
from thetafield.files import write_folder, write_json, write_whole

ABOUT, PLAN, RESULT, TABLE, PAGE = "compare.json", "plan.json", "result.json", "domains.csv", "index.html"
FIELD, TRIALS, DATA = "field", "trials", "data"


def claim(folder: Path, about: Mapping[str, Any]) -> None:
    """Make a folder that of a comparison, or see that it already is.

    Raises:
        FormatError: It belongs to another comparison, or holds something else.
    """
    if folder.exists() and not folder.is_dir():
        raise FormatError(f"{folder} is a file: name a folder for the comparison.")
    path, wanted = folder / ABOUT, json.loads(json.dumps(about))
    if not path.exists():
        if folder.exists() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
            raise FormatError(f"{folder} holds something else than a comparison: name another folder, or an empty one.")
        write_json(path, wanted)
        return
    stored = read(path)
    if not (folder / PLAN).exists() and stored | {"budget": wanted["budget"]} == wanted:
        write_json(path, wanted)  # no time has been shared out yet
        return
    for key, value in wanted.items():
        if stored.get(key) != value:
            words = "other data" if key == "digest" else f"{key} {stored.get(key)!r}, not {value!r}"
            raise FormatError(
                f"{folder} holds a comparison of {words}: name another folder, or give the same table and arguments."
            )


def read(path: Path) -> dict[str, Any]:
    """Read a JSON object of the folder."""
    try:
        content = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError):
        content = None
    if not isinstance(content, dict):
        raise FormatError(f"{path} is damaged: delete it to make it again.")
    return content


def finished(folder: Path) -> dict[str, Any] | None:
    """Return the result of a comparison that has ended."""
    whole = (folder / RESULT).is_file() and (folder / FIELD).is_dir() and (folder / TABLE).is_file()
    return read(folder / RESULT) if whole else None


def keep_field(source: Path, folder: Path) -> None:
    """Copy the saved field of the recommended method into the folder."""
    write_folder(folder / FIELD, lambda place: _copy(source, place))


def _copy(source: Path, place: Path) -> None:
    for file in source.iterdir():
        shutil.copyfile(file, place / file.name)


def write_domains(folder: Path, domains: DomainSet, columns: Mapping[str, np.ndarray]) -> None:
    """Write a line for every domain: its id, descriptors, rows, and the given columns; NaN is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["domain", *domains.descriptors, "rows", *columns])
    z, sizes = domains.z.double().tolist(), domains.sizes.tolist()
    for place, name in enumerate(domains.ids.tolist()):
        values = [column[place] for column in columns.values()]
        described = [f"{value:.9g}" for value in z[place]]
        writer.writerow([name, *described, sizes[place], *(_cell(value) for value in values)])
    write_whole(folder / TABLE, text.getvalue().encode())


def _cell(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.9g}"
    return value
