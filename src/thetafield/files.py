"""Whole or not at all: files and folders that a reader never sees half-written."""

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from thetafield.errors import OptionError


def writable_folder(path: Path) -> None:
    """Try to write where a folder is or will be, so that hours of work do not end before a closed door.

    Nothing is left behind, and nobody is disturbed who does the same at the same time.
    """
    try:
        there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise OptionError(f"{path} cannot be written to ({error.strerror}): name another folder.") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` whole."""
    write_file(path, lambda place: place.write_bytes(content))


def write_file(path: Path, fill: Callable[[Path], object]) -> None:
    """Let `fill` write a file beside `path`, flush it to the disk, then put it in place in one move."""
    _make_folder(path.parent)
    # A name of its own: several processes may write the same file at once.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        fill(temporary)
        with temporary.open("rb+") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):  # where nothing can be written, nothing can be removed either
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise
    _sync(path.parent)


def plain(content: Any) -> Any:
    """Return what is read back of a content that is written as JSON.

    >>> plain({"widths": (64, 64)})
    {'widths': [64, 64]}
    """
    return json.loads(json.dumps(content))


def read_json(path: Path) -> Any:
    """Return what a file of JSON holds.

    Raises:
        ValueError: It holds something else.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (IsADirectoryError, RecursionError) as error:
        raise ValueError(f"{path} holds no JSON ({error}).") from None


def write_json(path: Path, content: Any) -> None:
    """Write JSON whole, without NaN."""
    write_whole(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write into a fresh folder beside `path`, then put it in place, replacing an older one."""
    _make_folder(path.parent)
    temporary, old = path.with_name(f".{path.name}.partial"), path.with_name(f".{path.name}.old")
    if old.exists() and not path.exists():  # a kill between the two moves below: the old folder is the good one
        old.replace(path)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        fill(temporary)
        for file in temporary.rglob("*"):
            _sync(file)
        _sync(temporary)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    if path.exists():
        shutil.rmtree(old, ignore_errors=True)
        path.replace(old)
        temporary.replace(path)
        shutil.rmtree(old)
    else:
        temporary.replace(path)
    _sync(path.parent)


def _make_folder(path: Path) -> None:
    """Make a folder with its parents, and flush their names too."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in new:
        _sync(folder.parent)


def _sync(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
