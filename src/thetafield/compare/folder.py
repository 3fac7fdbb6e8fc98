"""The folder of a comparison: what it belongs to, and the files that come of it."""

import csv
import io
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.data.arrays import shown
from thetafield.data.domains import DomainSet
from thetafield.errors import FormatError
from thetafield.files import plain, read_json, write_folder, write_json, write_whole

ABOUT, PLAN, RESULT, TABLE, PAGE = "compare.json", "plan.json", "result.json", "domains.csv", "index.html"
FIELD, TRIALS, DATA = "field", "trials", "data"
ROLES = ("table", "target", "domain", "descriptors", "features", "places", "classification")  # they make the domains


def claim(folder: Path, about: Mapping[str, Any]) -> None:
    """Make a folder that of a comparison, or see that it already is.

    Raises:
        FormatError: It belongs to another comparison, or holds something else.
    """
    if folder.exists() and not folder.is_dir():
        raise FormatError(f"{folder} is a file: name a folder for the comparison.")
    path, wanted = folder / ABOUT, plain(about)
    if not path.exists():
        if folder.exists() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
            raise FormatError(f"{folder} holds something else than a comparison: name another folder, or an empty one.")
        write_json(path, wanted)
        return
    stored = read(path)
    if not (folder / PLAN).exists() and stored | {"budget": wanted["budget"]} == wanted:
        write_json(path, wanted)  # no time has been shared out yet
        return
    words = _differences(stored, wanted)
    if words:
        raise FormatError(
            f"{folder} holds a comparison of {'; '.join(words)}: name another folder, or give the same table and "
            "arguments."
        )


def _differences(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return what differs between two comparisons, in the words of the options."""
    old, new = _given({key: stored.get(key) for key in wanted}), _given(wanted)
    keys = [key for key in new | old if old.get(key) != new.get(key)]
    told = {"digest"} if {*keys} & {*ROLES} else set()  # other roles make other domains of the same table
    told |= {"data"} if "table" in keys else set()  # the name of its file
    return [
        "other data" if key == "digest" else f"{key} {_told(old.get(key))}, not {_told(new.get(key))}"
        for key in keys
        if key not in told
    ]


def _given(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that a person has given, by the name of its option."""
    rest = {key: value for key, value in about.items() if key not in ("roles", "options")}
    roles = {"table" if key == "path" else key: value for key, value in (about["roles"] or {}).items()}
    options = {f"options of {method}": own for method, own in (about["options"] or {}).items() if own}
    return rest | roles | options


def _told(value: Any) -> str:
    if value is None or value == [] or value == {}:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, list) else repr(value)


def read(path: Path) -> dict[str, Any]:
    """Read a JSON object of the folder."""
    try:
        content = read_json(path)
    except ValueError:
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
    z, sizes = domains.z.cpu().numpy(), domains.sizes.tolist()
    for place, name in enumerate(domains.ids):
        values = [column[place] for column in columns.values()]
        # The shortest text that gives back the number in its own precision.
        described = [str(value).removesuffix(".0") for value in z[place]]
        told = name if isinstance(name, str) else shown(name)
        writer.writerow([told, *described, sizes[place], *(_cell(value) for value in values)])
    write_whole(folder / TABLE, text.getvalue().encode())


def _cell(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    return value
