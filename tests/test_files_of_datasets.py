"""Files of datasets: their state, fetching from mirrors, and a cache that heals itself."""

import hashlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from thetafield.datasets import DATASETS
from thetafield.datasets.cache import cached
from thetafield.datasets.fetch import fetch
from thetafield.datasets.root import AbsentError
from thetafield.datasets.source import DataFile, Source, State, source_of, state_of
from thetafield.errors import DataError

CONTENT = bytes(range(256)) * 40
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("THETAFIELD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("THETAFIELD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture
def server():
    """A mirror on this machine: /good serves ranges, /short cuts the connection, /bad sends other bytes."""
    asked = []

    class Mirror(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Range")))
            body = CONTENT if self.path != "/bad" else CONTENT[::-1]
            start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
            if self.path == "/none":
                self.send_error(404)
                return
            ranged = start and self.path != "/whole"
            body = body[start:] if ranged else body
            self.send_response(206 if ranged else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: 3000 if self.path == "/short" else None])

        def log_message(self, *arguments):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}", asked
    http.shutdown()
    http.server_close()


def source(*urls):
    return Source("some", "a shelf", "none stated", (DataFile("some/file.bin", len(CONTENT), MD5, urls),))


def test_mirrors_are_tried_in_turn_and_the_file_is_checked(root, server):
    address, asked = server
    told = []
    given = source(f"{address}/none", f"{address}/good")
    assert given.state().word == "absent"
    (path,) = fetch(given, lambda *words: told.append(words))
    assert path.read_bytes() == CONTENT and given.state() == State("present")
    assert [url for url, _ in asked] == ["/none", "/good"]
    assert told[-1] == ("some/file.bin", len(CONTENT), len(CONTENT))
    assert fetch(given) == [] and len(asked) == 2
    assert sorted(p.name for p in path.parent.iterdir()) == ["file.bin"]


def test_a_download_that_stopped_is_resumed(root, server):
    address, asked = server
    with pytest.raises(AbsentError, match="could not be fetched"):
        fetch(source(f"{address}/short"))
    partial = root / "some/.file.bin.partial"
    assert partial.stat().st_size == 3000 and not (root / "some/file.bin").exists()
    (path,) = fetch(source(f"{address}/good"))
    assert asked[-1] == ("/good", "bytes=3000-") and path.read_bytes() == CONTENT and not partial.exists()


def test_a_mirror_without_ranges_sends_all_again(root, server):
    address, asked = server
    (root / "some").mkdir(parents=True)
    (root / "some/.file.bin.partial").write_bytes(CONTENT[:100])
    (path,) = fetch(source(f"{address}/whole"))
    assert asked == [("/whole", "bytes=100-")] and path.read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_leaves_nothing(root, server):
    address, _ = server
    with pytest.raises(DataError, match="does not have the published checksum"):
        fetch(source(f"{address}/bad"))
    assert list((root / "some").iterdir()) == []


def test_without_a_network_the_sentence_says_what_to_put_where(root):
    with pytest.raises(AbsentError) as caught:
        fetch(source("http://127.0.0.1:9/file"))
    assert str(root / "some/file.bin") in str(caught.value) and "by hand" in str(caught.value)
    with pytest.raises(AbsentError, match="cannot be fetched: get it from a shelf and put it at"):
        fetch(source())


def test_states(root):
    given = source("http://127.0.0.1:9/file")
    assert "thetafield data fetch some" in given.state().detail
    assert "get it from a shelf" in source().state().detail
    (root / "some").mkdir(parents=True)
    (root / "some/file.bin").write_bytes(CONTENT[:-1])
    state = given.state()
    assert state.word == "damaged" and "10,239 bytes, but 10,240 were published" in state.detail
    with pytest.raises(DataError, match="delete it and get it again"):
        given.paths()
    (root / "some/file.bin").write_bytes(CONTENT[::-1])
    assert given.state().word == "damaged" and "checksum" in given.state().detail
    assert given.paths() == [root / "some/file.bin"]  # a checksum of gigabytes is not asked for at every load
    assert state_of(DATASETS["two-moons"]) == State("made")
    assert source_of(DATASETS["elec2"]).dataset == "elec2"


def test_the_command_line_lists_and_fetches(root, tmp_path):
    def thetafield(*words):
        command = [sys.executable, "-m", "thetafield", "data", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    listed = thetafield("list", "--json", "--data-dir", str(tmp_path / "other"))
    assert listed.returncode == 0, listed.stderr
    entries = {entry["name"]: entry for entry in json.loads(listed.stdout)}
    assert set(entries) == set(DATASETS.names())
    assert entries["two-moons"]["state"] == "made" and entries["elec2"]["state"] == "absent"
    assert str(tmp_path / "other/elec2/elec2_clean.csv") in entries["elec2"]["detail"]
    shown = thetafield("list")
    assert shown.returncode == 0 and "licence: none stated" in shown.stdout and "Data root" in shown.stdout
    refused = thetafield("fetch", "elec2")
    assert refused.returncode == 2 and "put it at" in refused.stderr
    assert thetafield("fetch", "two-moons").returncode == 2


def test_a_cache_is_read_again_and_made_anew_where_damaged(root, tmp_path):
    calls, file = [], tmp_path / "source"
    file.write_bytes(b"one")

    def make():
        calls.append(1)
        return {"x": torch.arange(6, dtype=torch.uint8).reshape(2, 3), "y": torch.tensor([1, 2])}

    first = cached("toy", {"a": 1}, [file], make)
    again = cached("toy", {"a": 1}, [file], make)
    assert len(calls) == 1 and all(torch.equal(first[part], again[part]) for part in first)
    cached("toy", {"a": 2}, [file], make)
    file.write_bytes(b"three")
    cached("toy", {"a": 1}, [file], make)
    assert len(calls) == 3
    for path in (tmp_path / "cache").iterdir():
        path.unlink()
    cached("toy", {"a": 1}, [file], make)
    (path,) = (tmp_path / "cache").iterdir()
    content = path.read_bytes()
    for damaged in (content[:-3], b"", content[:-1] + bytes([content[-1] ^ 1])):
        path.write_bytes(damaged)
        before = len(calls)
        for expected in (1, 1):  # made anew once, then read again
            healed = cached("toy", {"a": 1}, [file], make)
            assert torch.equal(healed["x"], first["x"]) and len(calls) == before + expected
        assert path.read_bytes() == content
    assert not [p for p in (tmp_path / "cache").iterdir() if p.name.startswith(".")]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("THETAFIELD_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="could not be written"):
        made = cached("toy", {}, [], lambda: {"x": torch.ones(2)})
    assert torch.equal(made["x"], torch.ones(2))
