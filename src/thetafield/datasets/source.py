"""Where the files of a real dataset come from, and whether they are here."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from thetafield.datasets.root import AbsentError, data_root
from thetafield.errors import DataError

Build = TypeVar("Build", bound=Callable)
CHUNK = 2**20


@dataclass(frozen=True)
class DataFile:
    """One published file, or a folder of them.

    Args:
        path: Where it lies under the data root.
        size: Its size in bytes; 0 where it is not known or where it is a folder.
        md5: Its checksum, where one is published.
        urls: Public addresses, tried in turn; none where a person must get it (a licence to accept, a form).
    """

    path: str
    size: int = 0
    md5: str | None = None
    urls: tuple[str, ...] = ()

    @property
    def place(self) -> Path:
        """Where it is looked for."""
        return data_root() / self.path


@dataclass(frozen=True)
class EitherFile(DataFile):
    """A file that is published in two forms.

    Args:
        other: Where the other form lies under the data root; it is taken where it is there and the first is not.
    """

    other: str = ""

    @property
    def place(self) -> Path:
        """Where it is looked for."""
        first, other = data_root() / self.path, data_root() / self.other
        return other if other.exists() and not first.exists() else first


@dataclass(frozen=True)
class State:
    """Whether a dataset's files are here.

    Args:
        word: "present", "absent" or "damaged"; "made" where nothing has to be read.
        detail: What is missing or wrong, in a sentence; empty where all is well.
    """

    word: Literal["present", "absent", "damaged", "made"]
    detail: str = ""


@dataclass(frozen=True)
class Source:
    """The files of one dataset.

    Args:
        dataset: Registry name of the dataset.
        origin: Where they are published, in words.
        licence: The licence stated there.
        files: The files.
        note: What else a person has to know to get them.
    """

    dataset: str
    origin: str
    licence: str
    files: tuple[DataFile, ...]
    note: str = ""

    @property
    def size(self) -> int:
        """Bytes of all files whose size is known."""
        return sum(file.size for file in self.files)

    def paths(self) -> list[Path]:
        """Return the paths of all files.

        Raises:
            AbsentError: One is not there; the sentence says what to put where, or how to fetch it.
            DataError: One has the wrong size: it is truncated or another file.
        """
        for file in self.files:
            self._check(file)
        return [file.place for file in self.files]

    def state(self) -> State:
        """Look whether all files are there, with their published sizes and checksums."""
        try:
            for path, file in zip(self.paths(), self.files, strict=True):
                if file.md5 is not None and file_md5(path) != file.md5:
                    return State("damaged", f"{path} does not have the published checksum: delete it and get it again.")
        except AbsentError as error:
            return State("absent", str(error))
        except DataError as error:
            return State("damaged", str(error))
        return State("present")

    def _check(self, file: DataFile) -> None:
        path = file.place
        if not path.exists():
            get = f"run `thetafield data fetch {self.dataset}`" if file.urls else f"get it from {self.origin}"
            raise AbsentError(
                f"{self.dataset} needs {path}, which does not exist: {get}, or set THETAFIELD_DATA or --data-dir to "
                f"the folder that holds {file.path}."
            )
        size = path.stat().st_size
        if file.size and path.is_file() and size != file.size:
            raise DataError(f"{path} has {size:,} bytes, but {file.size:,} were published: delete it and get it again.")


def from_files(source: Source) -> Callable[[Build], Build]:
    """Return a decorator that tells the registry where a dataset's files come from."""

    def attach(build: Build) -> Build:
        build.source = source  # type: ignore[attr-defined]
        return build

    return attach


def source_of(build: Callable) -> Source | None:
    """Return where a dataset's files come from; None where it is made from its seed."""
    return getattr(build, "source", None)


def state_of(build: Callable) -> State:
    """Return whether a dataset can be loaded."""
    source = source_of(build)
    return State("made") if source is None else source.state()


def file_md5(path: Path) -> str:
    """Return the MD5 checksum of a file, read in pieces."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as handle:
        while piece := handle.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()
