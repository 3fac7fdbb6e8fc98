"""Stores that are old, odd or broken: a report all the same, or one sentence; and the program's own manners."""

import json
import shutil
import subprocess
import sys

import pytest

from reported import Builder
from thetafield.bench.records import StoreError
from thetafield.errors import FormatError
from thetafield.report.store.write import Asked, write_report


def test_trials_without_extras_are_accepted(builder):
    """Older results have neither trust nor relevance nor a device."""
    spec = builder.trial("real", "elec2", "erm", 0, [1.0, 2.0])
    path = builder.path / "results" / f"{spec.key}.json"
    content = json.loads(path.read_text())
    for name in ("relevance", "laws", "device", "versions", "finished", "command"):
        content.pop(name, None)
    path.write_text(json.dumps(content))
    shutil.rmtree(builder.path / "suites")
    out = builder.path.parent / "out"
    written = write_report(builder.path, Asked(out=out))
    assert (out / "index.html").is_file() and written.trials == 1


def test_errors_of_other_domains_are_not_mapped(builder):
    """Where a dataset has other domains now, its figures say so and the report goes on."""
    for method in ("erm", "neurallio"):
        builder.trial("real", "two-moons", method, 0, [1.0, 2.0, 3.0])
    written = write_report(builder.path, Asked(out=builder.path.parent / "out"))
    assert "591 test domains here, but 3" in written.undrawn["real-distance"]
    assert "591 test domains here, but 3" in written.undrawn["error-maps"]


def test_a_store_of_gaps_alone_has_a_report(builder):
    builder.absent("real", "fmow", "erm", 0, "data", "fmow needs files.")
    out = builder.path.parent / "out"
    assert write_report(builder.path, Asked(out=out)).gaps == {"data": 1}
    assert "fmow needs files." in (out / "index.html").read_text()


WRONG = {
    "a score that is text": {"score": "low"},
    "a score that is none": {"score": None},
    "a score that is no number": {"score": float("nan")},
    "errors that are text": {"per_domain": ["1", "2"]},
    "a dataset that is a number": {"spec": {"dataset": 3, "method": "erm", "seed": 0}},
}


def broken_store(tmp_path, kind):
    builder = Builder(tmp_path / "store")
    if kind == "nothing there":
        return tmp_path / "elsewhere"
    if kind == "another format":
        builder.put("store.json", {"format": 99})
    if kind == "damaged marker":
        (builder.path / "store.json").write_text("{")
    if kind == "damaged result":
        spec = builder.trial("real", "elec2", "erm", 0, [1.0])
        (builder.path / "results" / f"{spec.key}.json").write_text('{"metric": "err')
    if kind == "half a result":
        spec = builder.trial("real", "elec2", "erm", 0, [1.0])
        builder.put(f"results/{spec.key}.json", {"spec": spec.record, "metric": "error"})
    if kind == "damaged suite":
        builder.trial("real", "elec2", "erm", 0, [1.0])
        builder.put("suites/real.json", {"trials": [{"no": "key"}]})
    elif kind in ("a number for a trial", "a word for a trial"):
        builder.trial("real", "elec2", "erm", 0, [1.0])
        builder.put("suites/real.json", {"trials": [3 if "number" in kind else "key"]})
    elif kind == "a suite that leads elsewhere":
        spec = builder.trial("real", "elec2", "erm", 0, [1.0])
        (builder.path / "suites/real.json").unlink()
        file = builder.path / f"results/{spec.key}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"suite": "../../escaped"}))
    elif kind in WRONG:
        spec = builder.trial("real", "elec2", "erm", 0, [1.0, 2.0])
        file = builder.path / f"results/{spec.key}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | WRONG[kind]))
    elif kind == "a folder for a result":
        spec = builder.trial("real", "elec2", "erm", 0, [1.0])
        (builder.path / f"results/{spec.key}.json").unlink()
        (builder.path / f"results/{spec.key}.json").mkdir()
    elif kind == "names that are too few":
        builder.trial("real", "elec2", "erm", 0, [1.0, 2.0], extra={"domains": ["alone"]})
    return builder.path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nothing there", "is not a store"),
        ("another format", "format 99"),
        ("damaged marker", "damaged"),
        ("empty", "empty store"),
        ("damaged result", "damaged"),
        ("half a result", "damaged"),
        ("damaged suite", "damaged"),
        ("a number for a trial", "damaged"),
        ("a word for a trial", "damaged"),
        ("a suite that leads elsewhere", "damaged"),
        ("names that are too few", "damaged"),
        ("a folder for a result", "damaged"),
        *((kind, "damaged") for kind in WRONG),
    ],
)
def test_bad_stores_are_told_in_one_sentence(tmp_path, kind, words):
    with pytest.raises((FormatError, StoreError), match=words) as caught:
        write_report(broken_store(tmp_path, kind), Asked(markdown=tmp_path / "results.md"))
    assert "\n" not in str(caught.value) and not (tmp_path / "results.md").exists()


def program(*words):
    command = [sys.executable, "-m", "thetafield", "report", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_program_leaves_with_two(tmp_path):
    done = program(tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


def test_places_that_are_none_are_said_in_a_sentence(builder):
    builder.trial("real", "elec2", "erm", 0, [1.0, 2.0])
    folder = builder.path.parent / "folder"
    folder.mkdir()
    for words in (["--markdown", folder], ["--markdown", folder / ("long" * 100)]):
        done = program(builder.path, *words)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "Name another place" in done.stderr


def test_the_program_prints_one_object(builder):
    builder.trial("real", "elec2", "erm", 0, [1.0, 2.0])
    done = program(builder.path, "--markdown", builder.path.parent / "results.md", "--json")
    assert done.returncode == 0 and done.stderr == ""
    assert json.loads(done.stdout)["trials"] == 1 and (builder.path.parent / "results.md").is_file()


def test_help_is_light():
    script = "import sys; sys.argv = ['thetafield', 'report', '--help']\nfrom thetafield.cli import app\n"
    script += "try: app()\nexcept SystemExit: pass\nsys.exit(bool({'torch', 'numpy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
