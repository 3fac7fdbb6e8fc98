"""A store as one file: nothing is lost on the way there and back."""

import json
import lzma
import subprocess
import sys
from random import Random

import pytest

from thetafield.bench.packing import POINTS, pack, unpack
from thetafield.bench.records import StoreError


def a_store(folder, **files):
    """Write a store of files such as results={"a": {...}}."""
    folder.mkdir()
    (folder / "store.json").write_text(json.dumps({"format": 1, "thetafield": "0.1.0"}))
    for kind, contents in files.items():
        (folder / kind).mkdir()
        for name, content in contents.items():
            (folder / kind / f"{name}.json").write_text(json.dumps(content))
    return folder


def contents(folder):
    return {
        str(path.relative_to(folder)): json.loads(path.read_text())
        for path in folder.rglob("*.json")
        if path.name != "store.json"
    }


def test_a_store_comes_back_whole(tmp_path):
    suites = {"moons": {"trials": [{"key": "a"}, {"key": "b"}]}}
    whole = a_store(tmp_path / "one", suites=suites, results={"a": {"score": 1.5}}, failures={"b": {"kind": "error"}})
    assert pack([whole], tmp_path / "runs.jsonl.xz") == 1
    assert unpack(tmp_path / "runs.jsonl.xz", tmp_path / "two") == 1
    assert contents(tmp_path / "two") == contents(whole)
    assert unpack(tmp_path / "runs.jsonl.xz", tmp_path / "two") == 0  # a second time adds nothing


def test_stores_are_put_together(tmp_path):
    short, long = ({"s": {"trials": [{}] * n, "made": f"2026-0{n}"}} for n in (1, 3))
    one = a_store(tmp_path / "one", suites=short, results={"a": {"score": 1}}, absent={"b": {"kind": "data"}})
    two = a_store(tmp_path / "two", suites=long, results={"a": {"score": 2}, "b": {"score": 3}}, failures={"c": {}})
    assert pack([one, two], tmp_path / "both.jsonl.xz") == 2
    unpack(tmp_path / "both.jsonl.xz", tmp_path / "both")
    found = contents(tmp_path / "both")
    assert found["results/a.json"] == {"score": 1} and len(found["suites/s.json"]["trials"]) == 3
    assert "absent/b.json" not in found and "failures/c.json" in found


def test_what_belongs_to_a_result_comes_from_its_store(tmp_path):
    """Two machines ran one trial: no figure of the one stands beside the error of the other."""
    one = a_store(tmp_path / "one", results={"a": {"score": 1}}, histories={"a": [{"loss": 1}]})
    two = a_store(tmp_path / "two", results={"a": {"score": 2}}, histories={"a": [{"loss": 2}]}, looks={"a": {"of": 2}})
    for stores, score in (([one, two], 1), ([two, one], 2)):
        file, folder = tmp_path / f"{score}.jsonl.xz", tmp_path / f"unpacked-{score}"
        pack(stores, file)
        unpack(file, folder)
        found = contents(folder)
        assert (found["results/a.json"]["score"], found["histories/a.json"][0]["loss"]) == (score, score)
        assert ("looks/a.json" in found) is (score == 2)
        unpack(tmp_path / "1.jsonl.xz", folder)  # nothing of the first result is added beside the second
        assert contents(folder) == found


def test_what_has_lost_its_result_belongs_to_no_other(tmp_path):
    """A store whose bench was killed between a look and its result, and another one that has the result alone."""
    one = a_store(tmp_path / "one", looks={"a": {"of": 1}}, histories={"a": [{"loss": 1}]})
    two = a_store(tmp_path / "two", results={"a": {"score": 2}})
    pack([one, two], tmp_path / "both.jsonl.xz")
    unpack(tmp_path / "both.jsonl.xz", tmp_path / "both")
    assert contents(tmp_path / "both") == {"results/a.json": {"score": 2}}


def test_what_is_in_a_store_stays(tmp_path):
    pack([a_store(tmp_path / "one", results={"a": {"score": 1}}, failures={"b": {}})], tmp_path / "x.jsonl.xz")
    there = a_store(tmp_path / "there", results={"a": {"score": 7}, "b": {"score": 8}})
    assert unpack(tmp_path / "x.jsonl.xz", there) == 0
    assert contents(there) == {"results/a.json": {"score": 7}, "results/b.json": {"score": 8}}


def test_losses_are_thinned_out(tmp_path):
    history = [{"phase": "joint", "epoch": i, "loss": 1 / (i + 3)} for i in range(1000)]
    history = [{"phase": "base", "epoch": 0, "loss": 0.5}, *history]
    one = a_store(tmp_path / "one", results={"a": {"score": 1}}, histories={"a": history})
    pack([one], tmp_path / "x.jsonl.xz")
    unpack(tmp_path / "x.jsonl.xz", tmp_path / "two")
    kept = contents(tmp_path / "two")["histories/a.json"]
    assert len(kept) == POINTS + 1 and [kept[0]["epoch"], kept[1]["epoch"], kept[-1]["epoch"]] == [0, 0, 999]
    assert kept[2]["loss"] == pytest.approx(1 / (kept[2]["epoch"] + 3), rel=1e-5)


def test_bad_files_are_said_in_a_sentence(tmp_path):
    with pytest.raises(StoreError, match="is not a store"):
        pack([tmp_path], tmp_path / "x.jsonl.xz")
    with pytest.raises(StoreError, match=r"should be called something\.jsonl\.xz"):
        pack([a_store(tmp_path / "one")], tmp_path / "x.zip")
    with pytest.raises(StoreError, match="does not exist"):
        unpack(tmp_path / "none.jsonl.xz", tmp_path / "two")
    (tmp_path / "bad.jsonl.xz").write_bytes(b"no such thing")
    with pytest.raises(StoreError, match="damaged or no packed store"):
        unpack(tmp_path / "bad.jsonl.xz", tmp_path / "two")
    # A name that leads out of the store is none of its own.
    lines = '["store","store",{"format":1}]\n["results","../../evil",{}]\n'
    (tmp_path / "evil.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    with pytest.raises(StoreError, match="none of a store's"):
        unpack(tmp_path / "evil.jsonl.xz", tmp_path / "two")
    for line in ("7", '"abc"', '["results","",{}]', '["suites","s",{}]', '["results","a",[]]'):
        (tmp_path / "odd.jsonl.xz").write_bytes(lzma.compress(f'["store","store",{{"format":1}}]\n{line}\n'.encode()))
        with pytest.raises(StoreError, match="none of a store's"):
            unpack(tmp_path / "odd.jsonl.xz", tmp_path / "two")
    assert not (tmp_path / "two").exists()


def test_a_damaged_file_of_a_store_is_said_in_a_sentence(tmp_path):
    for kind in ("results", "histories", "suites"):
        store = a_store(tmp_path / kind, results={"a": {"score": 1}}, histories={"a": []}, suites={"s": {"trials": []}})
        next((store / kind).glob("*.json")).write_text('{"torn')
        with pytest.raises(StoreError, match="is damaged: delete it"):
            pack([store], tmp_path / "x.jsonl.xz")
    assert not (tmp_path / "x.jsonl.xz").exists()


@pytest.mark.parametrize(
    "line",
    [
        '["results","a",{}]',
        '["results","..",{"score":1}]',
        '["results",".hidden",{"score":1}]',
        '["results","a\\u0000b",{"score":1}]',
        f'["results","{"a" * 300}",{{"score":1}}]',
        '["histories","a",[1,2]]',
    ],
)
def test_lines_that_are_none_of_a_store_are_refused_before_anything_is_written(tmp_path, line):
    (tmp_path / "x.jsonl.xz").write_bytes(lzma.compress(f'["store","store",{{"format":1}}]\n{line}\n'.encode()))
    with pytest.raises(StoreError, match="holds a line that is none of a store's"):
        unpack(tmp_path / "x.jsonl.xz", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("line", ['["results","a",{"score":NaN}]', "[" * 100_000])
def test_what_is_no_json_is_refused(tmp_path, line):
    (tmp_path / "x.jsonl.xz").write_bytes(lzma.compress(f'["store","store",{{"format":1}}]\n{line}\n'.encode()))
    with pytest.raises(StoreError, match="is damaged or no packed store"):
        unpack(tmp_path / "x.jsonl.xz", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_disk_that_is_full_is_said_in_a_sentence(tmp_path, small_disk):
    """As every command says it that writes."""
    noise = Random(0).randbytes(100_000).hex()
    store, file = a_store(tmp_path / "s", results={"a": {"score": 1, "noise": noise}}), small_disk / "x.jsonl.xz"
    command = [sys.executable, "-m", "thetafield", "pack", store, "--out", file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and not done.stdout and not list(small_disk.iterdir())
    assert done.stderr == f"thetafield: {file}: No space left on device. Make room there, or name another place.\n"


def test_a_file_of_another_format_is_refused(tmp_path):
    (tmp_path / "x.jsonl.xz").write_bytes(lzma.compress(b'["store","store",{"format":99}]\n["results","a",{}]\n'))
    there = a_store(tmp_path / "there")
    with pytest.raises(StoreError, match="from a store of format 99, but this version reads format 1"):
        unpack(tmp_path / "x.jsonl.xz", there)
    assert not contents(there)


def test_unpacking_goes_by_the_rule_of_packing(tmp_path):
    # A suite may well have lost trials since.
    short, long = ({"s": {"trials": [{}] * n, "made": f"2026-0{made}"}} for n, made in ((3, 1), (1, 2)))
    for first, second in ((short, long), (long, short)):
        place = tmp_path / str(len(first["s"]["trials"]))
        place.mkdir()
        there = a_store(
            place / "there",
            suites=first,
            failures={"a": {}, "b": {"old": 1}},
            absent={"c": {}, "d": {}},
            results={"e": {"score": 1}},
        )
        other = a_store(
            place / "other",
            suites=second,
            results={"a": {"score": 3}, "c": {"score": 4}, "e": {"score": 2}},
            failures={"d": {}},
            absent={"b": {}},
            histories={"a": [], "e": []},
        )
        pack([there, other], place / "both.jsonl.xz")
        pack([other], place / "other.jsonl.xz")
        assert unpack(place / "other.jsonl.xz", there) == 2
        found = contents(there)
        assert len(found["suites/s.json"]["trials"]) == 1 and found["results/e.json"] == {"score": 1}
        assert {*found} == {
            "suites/s.json",
            "results/a.json",
            "histories/a.json",
            "failures/b.json",
            "results/c.json",
            "failures/d.json",
            "results/e.json",
        }
        unpack(place / "both.jsonl.xz", place / "both")
        assert {*contents(place / "both")} - {"histories/e.json"} == {*found}
