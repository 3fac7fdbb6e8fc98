"""The store: a folder with one file per trial, to which finished trials are added and from which none is taken.

- store.json: format of the store.
- results/KEY.json: what a finished trial came to; histories/KEY.json: its losses; fields/KEY/: its field, if kept, and
  looks/KEY.json: what figures show of that, if there are such figures.
- absent/KEY.json: why there is no result: a need of the method that the data do not meet, or files that are absent.
- failures/KEY.json: how a trial failed.
- suites/NAME.json: which trials make up a suite that was run here, with their labels.
- work/KEY/: what a running trial leaves on its way.
"""

import fcntl
import os
import shutil
import socket
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from thetafield import __version__
from thetafield.bench.attempt import Outcome, is_full
from thetafield.bench.job import Job
from thetafield.bench.plan import Plan
from thetafield.bench.records import StoreError, alike, listed, read_record, read_result, told
from thetafield.bench.suite import Suite
from thetafield.files import writable_folder, write_folder, write_json

FORMAT = 1


class Store:
    """A folder of finished trials. Looking at it needs no lock and creates nothing; writing happens inside `locked`.

    Args:
        folder: The folder; it need not exist.

    Raises:
        StoreError: It is a file, holds something else, or was written in another format.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        for place in (self.folder, *self.folder.parents):
            if place.exists() and not place.is_dir():
                raise StoreError(f"{place} is a file: name a folder for the store.")
        about = self.folder / "store.json"
        if not about.exists():
            if self.folder.exists() and any(not entry.name.startswith(".") for entry in self.folder.iterdir()):
                raise StoreError(f"{folder} holds something else than a store: name another folder, or an empty one.")
            return
        try:
            content = read_record(about)
        except StoreError:
            raise StoreError(
                f"{about} is damaged, but says no more than the format: if this version of thetafield made the store, "
                f'write {{"format": {FORMAT}}} into it.'
            ) from None
        if content.get("format") != FORMAT:
            raise StoreError(
                f"{folder} was written by thetafield {content.get('thetafield')} as a store of format "
                f"{content.get('format')}, but this version reads format {FORMAT}: name another folder."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store alone, making it if it is new; what finished trials left of their work is swept away.

        Raises:
            StoreError: Somebody else holds it.
            OptionError: It cannot be written to.
        """
        writable_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("a+") as handle:
            self._lock(handle)
            if not (self.folder / "store.json").exists():
                write_json(self.folder / "store.json", {"format": FORMAT, "thetafield": __version__})
            for torn in self.folder.glob("*/.*.partial"):  # of a write that was killed
                torn.unlink() if torn.is_file() else shutil.rmtree(torn)
            for old in self.folder.glob("*/.*.old"):  # of a folder that was being replaced
                place = old.with_name(old.name[1:].removesuffix(".old"))
                shutil.rmtree(old) if place.exists() else old.replace(place)
            self._sweep()
            yield

    def _sweep(self) -> None:
        """Take away what finished trials left of their work; what failed, or lacks its field, goes on from there."""
        records = [entry for path in self._files("suites") for entry in listed(path)]
        kept = {entry.get("key") for entry in records if (entry.get("labels") or {}).get("keep")}
        for key, state in self.states().items():
            if state != "failed" and not (state == "done" and key in kept):
                shutil.rmtree(self.work(key), ignore_errors=True)

    def _lock(self, handle: IO[str]) -> None:
        # A lock of the kernel and not a file that says "taken": it ends with its holder, however that one ends, and
        # there is no clock to disagree about. NFS carries it between machines; a file system that has no locks says
        # so. Processes that the holder starts do not inherit it.
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "another process"
            raise StoreError(
                f"{self.folder} is in use by another bench ({holder}): wait for it to end, or name another store."
            ) from None
        except OSError as error:
            raise StoreError(
                f"The file system of {self.folder} does not lock files ({error.strerror}), so two benches could meet "
                "there: put the store on another one."
            ) from None
        handle.truncate(0)
        handle.write(f"process {os.getpid()} on {socket.gethostname()}")
        handle.flush()

    def work(self, key: str) -> Path:
        """Return where a trial works."""
        return self.folder / "work" / key

    def path(self, kind: str, key: str) -> Path:
        """Return the file of a trial: of its "results", "histories", "looks", "absent" or "failures"."""
        return self.folder / kind / f"{key}.json"

    def states(self) -> dict[str, str]:
        """Return by key: "done", "needs", "data" or "failed"."""
        found = {path.stem: str(read_record(path).get("kind")) for path in self._files("absent")}
        # A result outweighs a failure, and both outweigh absence.
        found |= {path.stem: "failed" for path in self._files("failures")}
        for path in self._files("results"):
            read_result(path)  # a torn one is no result
            found[path.stem] = "done"
        return found

    def plan(self, trials: Sequence[Job]) -> Plan:
        """Return how trials stand here; one whose field is to be kept is done once that, or what figures show, is here.

        Another suite, which keeps nothing, may have run it first, and a packed store leaves fields behind.
        """
        states = self.states()
        for spec in trials:
            if spec.keep and states.get(spec.key) == "done" and not self._has_field(spec.key):
                if self.path("failures", spec.key).exists():  # of the run that was to make the field
                    states[spec.key] = "failed"
                else:
                    del states[spec.key]
        return Plan(tuple(trials), states)

    def _has_field(self, key: str) -> bool:
        """Return whether a field was added, all of it: the work of the trial goes last."""
        there = self.path("looks", key).exists() or (self.folder / "fields" / key).exists()
        return there and not self.work(key).exists()

    def failure(self, key: str) -> dict[str, Any] | None:
        """Return how a trial failed, if it did."""
        path = self.path("failures", key)
        return read_record(path) if path.exists() else None

    def result(self, key: str) -> dict[str, Any] | None:
        """Return what a finished trial came to, if it is finished."""
        path = self.path("results", key)
        return read_result(path) if path.exists() else None

    def reason(self, key: str) -> str:
        """Return in a sentence why there is no result of a trial."""
        for kind, word in (("failures", "sentence"), ("absent", "reason")):
            if self.path(kind, key).exists():
                return str(read_record(self.path(kind, key)).get(word))
        return ""

    def refuse_namesake(self, suite: Suite) -> None:
        """See that a suite of this name which was run here is the same one, if changed: its record will be replaced.

        Raises:
            StoreError: It shares no trial with this one.
        """
        path = self.folder / "suites" / f"{suite.name}.json"
        known: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for entry in listed(path):
            known[told(entry["spec"])].append(entry["spec"])
        if known and not any(alike(spec.record, old) for spec in suite.trials for old in known[told(spec.record)]):
            raise StoreError(
                f"{self.folder} has another suite called {suite.name!r}, which shares no trial with this one and would "
                f"be lost from reports: rename this one's file, name another store, or delete {path}."
            )

    def add_suite(self, suite: Suite) -> None:
        """Record which trials a suite is made of, each with its labels; a later run of it replaces the record."""
        trials = [{"key": spec.key, "spec": spec.record, "labels": spec.labels} for spec in suite.trials]
        content = {"suite": suite.name, "title": suite.title, "about": suite.about, "trials": trials, "made": _now()}
        write_json(self.folder / "suites" / f"{suite.name}.json", content)

    def add(self, spec: Job, suite: str, outcome: Outcome, attempts: int) -> bool:
        """Write what came of a trial; a result that is there already is left, and False is returned.

        A field that such a result lacks is added to it.
        The result is written after all that belongs to it and before its work is removed: whoever is killed between
        two of these steps finds the result in the trial's work, and adds it again.
        """
        key = spec.key
        about = {"key": key, "spec": spec.record, "labels": spec.labels, "suite": suite}
        if self.path("results", key).exists() and outcome.kind == "result":
            if not self._has_field(key):
                self._add_field(key, outcome)
                self.path("failures", key).unlink(missing_ok=True)
                shutil.rmtree(self.work(key), ignore_errors=True)
            return False
        when = {"finished": _now()}
        if outcome.kind == "result":
            write_json(self.path("histories", key), outcome.history)
            self._add_field(key, outcome)
            write_json(self.path("results", key), outcome.content | about | {"command": spec.command} | when)
            stale = ("absent", "failures")
        elif outcome.kind in ("needs", "data"):
            write_json(self.path("absent", key), about | {"kind": outcome.kind} | outcome.content | when)
            stale = ("failures",)
        else:
            earlier = (self.failure(key) or {}).get("attempts", 0)
            content = {"kind": outcome.kind} | outcome.content | {"attempts": earlier + attempts}
            write_json(self.path("failures", key), about | content | when)
            stale = ("absent",)
        for kind in stale:
            self.path(kind, key).unlink(missing_ok=True)
        work = self.work(key)
        if outcome.kind in ("result", "needs", "data") or not any(path.is_file() for path in work.rglob("*")):
            shutil.rmtree(work, ignore_errors=True)
        return True

    def _add_field(self, key: str, outcome: Outcome) -> None:
        if outcome.saved is not None:
            write_folder(self.folder / "fields" / key, outcome.write_field)
        if outcome.look is not None:
            write_json(self.path("looks", key), outcome.look)

    def _files(self, kind: str) -> list[Path]:
        return [path for path in (self.folder / kind).glob("*.json") if not path.name.startswith(".")]

    @contextmanager
    def room(self) -> Iterator[None]:
        """Say in a sentence that the disk is full, where it turns out to be."""
        try:
            yield
        except OSError as error:
            if not is_full(error):
                raise
            raise self.full() from None

    def full(self) -> StoreError:
        """Return the error of a full disk, to be raised."""
        count = len(self._files("results"))
        safe = f"{count} finished trial{' is' if count == 1 else 's are'} safe"
        return StoreError(
            f"The disk of {self.folder} is full, or a limit on the size of files is reached (ulimit -f): make room and "
            f"give the same command again; {safe}."
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
