"""Files that are whole or not there, folders that can be written to, and what a report leaves behind."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from thetafield.errors import OptionError
from thetafield.files import writable_folder, write_folder, write_json
from thetafield.report.store.leftovers import NAME, sweep


def test_a_folder_is_tried_without_a_trace(tmp_path):
    writable_folder(tmp_path / "a/b/c")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file/below", Path("/proc/nowhere")):
        with pytest.raises(OptionError, match="cannot be written to"):
            writable_folder(place)


def test_many_may_try_a_folder_and_make_it_at_once(tmp_path):
    """As benches do that are started side by side with stores under one new parent."""

    def begin(number):
        folder = tmp_path / f"round-{number // 8}/new"
        for _ in range(20):
            writable_folder(folder / str(number))
        write_json(folder / str(number) / "store.json", {})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, range(64)))
    assert len(list(tmp_path.glob("round-*/new/*/store.json"))) == 64


def test_all_that_is_written_is_flushed_to_the_disk(tmp_path, monkeypatch):
    """The file or the files, the folder around them, and the name of every folder that was made on the way."""
    flushed = []
    true = os.fsync

    def note(handle):
        flushed.append(Path(f"/proc/self/fd/{handle}").readlink())
        true(handle)

    monkeypatch.setattr(os, "fsync", note)
    write_json(tmp_path / "results/new/key.json", {})
    assert {tmp_path, tmp_path / "results", tmp_path / "results/new"} <= set(flushed)
    assert any(path.name.startswith(".key.json") for path in flushed)
    flushed.clear()
    write_folder(tmp_path / "fields/key", lambda folder: (folder / "field.json").write_text("{}"))
    assert {path.name for path in flushed} >= {"field.json", ".key.partial", "fields", tmp_path.name}


def test_a_report_takes_away_what_the_last_one_wrote_and_nothing_else(tmp_path):
    def written(*names, store="runs"):
        for name in names:
            (tmp_path / name).write_text(name)
        sweep(tmp_path, [tmp_path / name for name in names], tmp_path / store)
        return sorted(path.name for path in tmp_path.iterdir() if path.name != NAME)

    (tmp_path / "mine.csv").write_text("a person's own")
    assert written("real.md", "real-worst.md") == ["mine.csv", "real-worst.md", "real.md"]
    assert written("real.md") == ["mine.csv", "real.md"]
    assert written("other.md", store="more") == ["mine.csv", "other.md", "real.md"]
    assert written("time.md", store="more") == ["mine.csv", "real.md", "time.md"]
    assert written("real.md", store="more") == ["mine.csv", "real.md"]
    assert written(store="more") == ["mine.csv"]  # it was written over the other's, and was its own
    (tmp_path / NAME).write_text(json.dumps({str(tmp_path / "runs"): ["../../elsewhere", 3, "mine.csv", ""], "b": 3}))
    assert written("real.md") == ["real.md"]  # what the note names is the report's
    for content in ("torn", '["real.md"]'):  # of what nobody can read nothing is taken away
        (tmp_path / NAME).write_text(content)
        assert written("time.md") == ["real.md", "time.md"]
