"""A store as one small file, to keep, to send, or to put together with others: JSON lines, compressed.

A line is one file of the store: its kind (store, suites, results, absent, failures, histories or looks), its name and
its content. Losses are thinned out, since a curve has no more points than a figure shows; fields stay behind.
"""

import json
import lzma
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from thetafield.bench.records import StoreError, is_result
from thetafield.bench.store import FORMAT, Store
from thetafield.files import write_json, write_whole

ENDING = ".jsonl.xz"
BESIDE = ("histories", "looks")  # of a result, and read after it: whoever finishes a trial writes them before it
KINDS = ("suites", "absent", "failures", "results", *BESIDE)
# What outweighs a file of each kind: a result counts for more than a failure, and both for more than absence.
STRONGER = {"results": (), "failures": ("results",), "absent": ("results", "failures")}
NAME = re.compile(r"[^/\\\x00.][^/\\\x00]{0,199}")  # of a file that is not hidden, without its ending
POINTS = 100  # of a curve of losses, for each phase
Line = tuple[str, str, Any]


def pack(folders: Sequence[Path], file: Path) -> int:
    """Write all that several stores hold into one file, and return the number of results.

    Of a trial that several stores hold, the first result counts; a result outweighs a failure, and both outweigh
    absence. Of a suite that several have run, the latest record counts.

    Raises:
        StoreError: One is no store, or the file has another ending.
    """
    if not file.name.endswith(ENDING):
        raise StoreError(f"{file} should be called something{ENDING}: it is JSON lines, compressed.")
    found: dict[tuple[str, str], Any] = {}
    for folder in folders:
        if not (folder / "store.json").is_file():
            raise StoreError(f"{folder} is not a store: `thetafield bench SUITE --store {folder}` makes one.")
        Store(folder)  # refuses other formats
        here = set()  # the results of this store that count
        for kind, name, content in _files(folder):
            if kind in BESIDE:  # they go with the result that counts
                counts = name in here
            elif kind == "suites":
                counts = (kind, name) not in found or _later(content, found[kind, name])
            else:
                counts = (kind, name) not in found
            if counts:
                found[kind, name] = content
            if counts and kind == "results":
                here.add(name)
    for weaker, name in list(found):
        if any((stronger, name) in found for stronger in STRONGER.get(weaker, ())):
            del found[weaker, name]
    header = _content(folders[0] / "store.json")
    lines = [("store", "store", header), *((*key, found[key]) for key in sorted(found))]
    text = "".join(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in lines)
    write_whole(file, lzma.compress(text.encode()))
    return sum(kind == "results" for kind, _ in found)


def unpack(file: Path, folder: Path) -> int:
    """Add what a packed file holds to a store, which may be new, and return the number of results that it lacked.

    What outweighs what is as in :func:`pack`, with the store as the first.

    Raises:
        StoreError: The file is damaged, or the store is in use or of another format.
    """
    lines = _lines(file)
    header = lines[0] if lines and _is_line(lines[0]) else ("", "", {})
    if header[0] != "store":
        raise StoreError(f"{file} is not a packed store: `thetafield pack STORE --out FILE{ENDING}` makes one.")
    about = header[2]
    if about.get("format") != FORMAT:
        raise StoreError(
            f"{file} was packed by thetafield {about.get('thetafield')} from a store of format {about.get('format')}, "
            f"but this version reads format {FORMAT}: unpack it with that version."
        )
    if not all(map(_is_line, lines)):
        raise StoreError(f"{file} holds a line that is none of a store's: it was not written by `thetafield pack`.")
    store, added = Store(folder), 0
    with store.room(), store.locked():
        for kind, name, content in sorted(lines[1:], key=lambda line: line[0] == "results"):  # behind what is beside
            if not _lacking(store, kind, name, content):
                continue
            write_json(store.path(kind, name), content)
            for weaker in [weaker for weaker, stronger in STRONGER.items() if kind in stronger]:
                store.path(weaker, name).unlink(missing_ok=True)
            added += kind == "results"
    return added


@contextmanager
def opened(store: Path) -> Iterator[Path]:
    """Yield the folder of a store; of a packed one, a folder that lasts as long as the block.

    Raises:
        StoreError: A packed file is damaged, or of another format.
    """
    if not store.name.endswith(ENDING):
        yield store
        return
    with TemporaryDirectory() as place:
        folder = Path(place) / called(store)
        unpack(store, folder)
        yield folder


def called(store: Path) -> str:
    """Return what commands call a store: its folder, or the one that a packed file would be unpacked to."""
    return store.name.removesuffix(ENDING) if store.name.endswith(ENDING) else str(store)


def _lacking(store: Store, kind: str, name: str, content: Any) -> bool:
    """Return whether a store has nothing that counts for as much as a packed file."""
    path = store.path(kind, name)
    if kind == "suites":
        return not path.exists() or _later(content, _content(path))
    if kind in BESIDE:  # they belong to their result, which is added after them
        return not store.path("results", name).exists()
    return not any(store.path(each, name).exists() for each in (kind, *STRONGER[kind]))


def _later(suite: dict[str, Any], other: dict[str, Any]) -> bool:
    return str(suite.get("made", "")) > str(other.get("made", ""))


def _files(folder: Path) -> Iterator[Line]:
    for kind in KINDS:
        for path in sorted((folder / kind).glob("*.json")):
            if path.name.startswith("."):
                continue
            content = _content(path)
            if not _fits(kind, content):
                raise _damaged(path)
            yield kind, path.stem, _thinned(content) if kind == "histories" else content


def _content(path: Path) -> Any:
    try:
        return _parsed(path.read_text())
    except (ValueError, IsADirectoryError, RecursionError):
        raise _damaged(path) from None


def _damaged(path: Path) -> StoreError:
    if path.parent.name in BESIDE:
        return StoreError(f"{path} is damaged: delete it, which costs a figure, but no result.")
    if path.parent.name == "suites":
        return StoreError(f"{path} is damaged: delete it, and the next bench of the suite writes it again.")
    return StoreError(f"{path} is damaged: delete it, and `thetafield bench` makes it again.")


def _parsed(text: str) -> Any:
    """Return what JSON says; NaN and infinity are none."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def _lines(file: Path) -> list[Any]:
    try:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            return [_parsed(line) for line in lines]
    except FileNotFoundError:
        raise StoreError(f"{file} does not exist.") from None
    except (lzma.LZMAError, EOFError, ValueError, OSError, RecursionError) as error:
        raise StoreError(f"{file} is damaged or no packed store ({error}).") from None


def _is_line(line: Any) -> bool:
    """Return whether a line is a kind, a name that leads nowhere else, and a content as that kind has it."""
    if not isinstance(line, list) or len(line) != 3:
        return False
    kind, name, content = line
    if kind not in ("store", *KINDS) or not isinstance(name, str) or not NAME.fullmatch(name):
        return False
    return _fits(kind, content)


def _fits(kind: str, content: Any) -> bool:
    """Return whether a content is one of its kind."""
    if kind == "histories":
        return isinstance(content, list) and all(isinstance(epoch, dict) for epoch in content)
    if kind == "suites":
        return isinstance(content, dict) and isinstance(content.get("trials"), list)
    return is_result(content) if kind == "results" else isinstance(content, dict)


def _thinned(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return some epochs of each phase, the first and the last among them, with six digits."""
    phases: dict[Any, list[dict[str, Any]]] = {}
    for epoch in history:
        phases.setdefault(epoch.get("phase"), []).append(epoch)
    kept = []
    for epochs in phases.values():
        step = (len(epochs) - 1) / (min(POINTS, len(epochs)) - 1) if len(epochs) > 1 else 1
        kept += [epochs[round(i * step)] for i in range(min(POINTS, len(epochs)))]
    return [{name: _short(value) for name, value in epoch.items()} for epoch in kept]


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value
