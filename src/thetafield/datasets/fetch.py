"""Fetching the files of a dataset: mirrors in turn, resumed where a download stopped, checked, never half-written."""

import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from thetafield.datasets.root import AbsentError
from thetafield.datasets.source import CHUNK, DataFile, Source, file_md5
from thetafield.errors import DataError
from thetafield.files import writable_folder

TIMEOUT = 30  # seconds without a byte
Tell = Callable[[str, int, int], None]


def fetch(source: Source, tell: Tell = lambda path, done, total: None) -> list[Path]:
    """Fetch what is missing or damaged of a dataset, and return the files that were fetched.

    Args:
        source: The dataset's files.
        tell: Called with (path, bytes done, bytes in all) as a file comes in.

    Raises:
        AbsentError: No mirror answered, or a person must get the file; the sentence says what to put where.
        DataError: What a mirror sent is not the published file.
    """
    fetched = []
    for file in source.files:
        if file.place.exists() and (file.md5 is None or file_md5(file.place) == file.md5):
            continue
        if not file.urls:
            raise AbsentError(
                f"{file.path} of {source.dataset} cannot be fetched: get it from {source.origin} and put it at "
                f"{file.place}."
            )
        writable_folder(file.place.parent)
        _from_mirrors(source, file, tell)
        fetched.append(file.place)
    return fetched


def _from_mirrors(source: Source, file: DataFile, tell: Tell) -> None:
    failures = []
    for url in file.urls:
        try:
            _download(url, file, tell)
            return
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            failures.append(f"{url} ({getattr(error, 'reason', error)})")
    raise AbsentError(
        f"{file.path} of {source.dataset} could not be fetched from {'; '.join(failures)}: put the file at "
        f"{file.place} by hand."
    )


def _download(url: str, file: DataFile, tell: Tell) -> None:
    """Append to what an earlier try left beside the file, check the whole, and put it in place in one move."""
    partial = file.place.with_name(f".{file.place.name}.partial")
    file.place.parent.mkdir(parents=True, exist_ok=True)
    done = partial.stat().st_size if partial.exists() else 0
    if file.size and done >= file.size:  # whole, or too long to be a part of it
        partial.unlink()
        done = 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        resumed = done > 0 and answer.status == 206
        done = done if resumed else 0
        total = file.size or done + int(answer.headers.get("Content-Length") or 0)
        with partial.open("ab" if resumed else "wb") as handle:
            while piece := answer.read(CHUNK):
                handle.write(piece)
                done += len(piece)
                tell(file.path, done, total)
    if file.size and done < file.size:
        raise ConnectionError(f"the connection ended after {done:,} of {file.size:,} bytes")
    if file.md5 is not None and file_md5(partial) != file.md5:
        partial.unlink()
        raise DataError(
            f"{url} sent a file that does not have the published checksum {file.md5}: try again later, or put the "
            f"published file at {file.place}."
        )
    partial.replace(file.place)
