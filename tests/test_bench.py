"""A bench in this process: what runs, what is recorded, and what a store survives."""

import functools
import io
import json
import os
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from benched import SUITE, Here, bench, results, written
from thetafield.bench.attempt import Outcome, Task, attempt
from thetafield.bench.engine import Conditions, Event
from thetafield.bench.plan import Plan, once
from thetafield.bench.records import StoreError
from thetafield.bench.spec import TrialSpec
from thetafield.bench.store import Store
from thetafield.datasets.base import DATASETS
from thetafield.datasets.root import AbsentError
from thetafield.evaluation.looks import Look, look_at
from thetafield.fields.storage import load_model
from thetafield.files import write_json
from thetafield.report.suite_progress import Standing, standing_table, suite_display


def test_only_what_is_missing_runs(tmp_path):
    suite = written(tmp_path)
    # The same trials once more, and one more of them with its field kept.
    twice = replace(suite, trials=(*suite.trials, *(replace(s, group="again", keep=s.seed == 0) for s in suite.trials)))
    trials = once(twice.trials)
    assert len(trials) == 6
    plan, workers = bench(twice, tmp_path / "s", trials=trials, limit=2)
    assert plan.counts() == {"trials": 6, "done": 2, "missing": 4, "failed": 0, "needs": 0, "data": 0}
    before = results(tmp_path / "s")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "s/results").iterdir()}
    plan, more = bench(twice, tmp_path / "s", trials=trials)
    assert plan.counts()["done"] == 6 and len(more.ran) == 4 and not set(more.ran) & set(workers.ran)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert before.items() <= results(tmp_path / "s").items()
    assert not bench(twice, tmp_path / "s", trials=trials)[1].ran
    spec = next(spec for spec in trials if spec.method == "erm" and spec.seed == 0)
    stored = json.loads((tmp_path / f"s/results/{spec.key}.json").read_text())
    assert stored["spec"] == spec.record and stored["labels"]["dataset_label"] == "moons"
    assert stored["command"] == spec.command and stored["suite"] == "tiny" and stored["finished"].endswith("+00:00")
    assert stored["options"]["steps"] == 40 and stored["versions"]
    listed = json.loads((tmp_path / "s/suites/tiny.json").read_text())["trials"]
    assert len(listed) == 12 and {entry["key"] for entry in listed} == {s.key for s in trials}
    kept = {s.key for s in trials if s.keep}
    assert {path.name for path in (tmp_path / "s/fields").iterdir()} == kept
    assert not list((tmp_path / "s/work").iterdir())


def test_a_failing_trial_is_recorded_and_stops_no_other(tmp_path):
    suite = written(tmp_path, SUITE.replace("steps = 40", "lr = 1e200, steps = 40", 1))
    plan, _ = bench(suite, tmp_path / "s")
    assert plan.counts()["failed"] == 2 and plan.counts()["done"] == 4
    failed = [spec for spec in plan.trials if plan.state(spec) == "failed"]
    assert {spec.method for spec in failed} == {"erm"}
    record = json.loads((tmp_path / f"s/failures/{failed[0].key}.json").read_text())
    assert "diverged" in record["sentence"] and "Traceback" in record["traceback"] and record["attempts"] == 1
    assert record["kind"] == "error" and record["spec"] == failed[0].record
    assert not bench(suite, tmp_path / "s")[1].ran
    plan, workers = bench(suite, tmp_path / "s", retry=True)
    assert sorted(workers.ran) == sorted(spec.key for spec in failed)
    assert json.loads((tmp_path / f"s/failures/{failed[0].key}.json").read_text())["attempts"] == 2


def test_needs_are_recorded_once(tmp_path):
    text = SUITE.replace("two-moons-time", "two-moons").replace("erm-d", "tknets").replace("seeds = 2", "seeds = 1")
    suite = written(tmp_path, text)
    plan, _ = bench(suite, tmp_path / "s")
    assert plan.counts() | {"trials": 0} == {"trials": 0, "done": 2, "missing": 0, "failed": 0, "needs": 1, "data": 0}
    (path,) = (tmp_path / "s/absent").iterdir()
    record = json.loads(path.read_text())
    assert record["kind"] == "needs" and "TKNets needs one ordered descriptor" in record["reason"]
    assert not bench(suite, tmp_path / "s")[1].ran


def test_absent_data_are_looked_for_again(tmp_path, monkeypatch):
    build = DATASETS["two-moons-time"]

    def gone(seed, **options):
        raise AbsentError("two-moons-time needs moons.csv: fetch it.")

    suite = written(tmp_path, SUITE.replace("seeds = 2", "seeds = 1"))
    monkeypatch.setitem(DATASETS._entries, "two-moons-time", functools.wraps(build)(gone))
    plan, workers = bench(suite, tmp_path / "s")
    assert plan.counts()["data"] == 3 and len(workers.ran) == 3
    assert "needs moons.csv" in Store(tmp_path / "s").reason(plan.trials[0].key)
    monkeypatch.undo()
    plan, workers = bench(suite, tmp_path / "s")
    assert plan.counts()["done"] == 3 and len(workers.ran) == 3 and not list((tmp_path / "s/absent").iterdir())


def test_data_that_disappear_midway_are_recorded_and_the_others_go_on(tmp_path, monkeypatch):
    root, hidden = tmp_path / "data", tmp_path / "hidden"
    (root / "cida_toy").mkdir(parents=True)
    arrays = {"data": np.random.default_rng(0).normal(size=(300, 2)), "label": np.tile([0, 1], 150)}
    np.savez(root / "cida_toy/half-circle.npz", **arrays, domain=np.repeat(np.arange(30), 10))
    monkeypatch.setenv("THETAFIELD_DATA", str(root))
    monkeypatch.setenv("THETAFIELD_CACHE", str(tmp_path / "cache"))
    text = (
        SUITE.replace("seeds = 2", "seeds = 1")
        + """
[[grid]]
datasets = ["circle"]
methods = [{ name = "erm", options = { steps = 20, samples = 4 } }]
seeds = 2
"""
    )
    suite = written(tmp_path, text)

    class Vanishing(Here):
        def attempt(self, task):
            outcome = attempt(task)
            if task.spec.dataset == "circle" and (root / "cida_toy").exists():
                (root / "cida_toy").rename(hidden)
            return outcome

    plan, _ = bench(suite, tmp_path / "s", Vanishing())
    assert plan.counts()["done"] == 4 and plan.counts()["data"] == 1
    (path,) = (tmp_path / "s/absent").iterdir()
    assert "circle needs" in json.loads(path.read_text())["reason"]
    hidden.rename(root / "cida_toy")
    plan, workers = bench(suite, tmp_path / "s")
    assert plan.counts()["done"] == 5 and len(workers.ran) == 1 and not list((tmp_path / "s/absent").iterdir())


def test_a_worker_that_dies_costs_an_attempt(tmp_path):
    suite = written(tmp_path)
    unlucky = suite.trials[1]

    class Dying(Here):
        def attempt(self, task):
            lost = task.spec.key == unlucky.key and self.ran.count(unlucky.key) <= self.deaths
            return Outcome.failed("died", "Gone.") if lost else attempt(task)

    once_only = Dying()
    once_only.deaths = 1
    plan, _ = bench(suite, tmp_path / "a", once_only)
    assert plan.counts()["done"] == 6 and len(once_only.ran) == 7
    always = Dying()
    always.deaths = 99
    plan, _ = bench(suite, tmp_path / "b", always)
    assert plan.state(unlucky) == "failed" and plan.counts()["done"] == 5
    assert Store(tmp_path / "b").failure(unlucky.key)["attempts"] == Here.attempts


# The alarm may strike between the opening of a file and its holding.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_time_limit(tmp_path):
    suite = written(tmp_path, SUITE.replace("steps = 40", "steps = 20000", 1).replace("seeds = 2", "seeds = 1"))
    plan, _ = bench(suite, tmp_path / "s", conditions=Conditions(timeout=6.0, checkpoint_every=0.5))
    assert plan.counts()["failed"] == 1 and plan.counts()["done"] == 2
    (path,) = (tmp_path / "s/failures").iterdir()
    assert "took longer than 6 s" in json.loads(path.read_text())["sentence"]
    # What it came to is kept, and the next attempt goes on from there.
    assert list((tmp_path / "s/work" / path.stem).rglob("checkpoint.safetensors"))


def test_work_that_does_not_fit_is_thrown_away(tmp_path):
    spec = written(tmp_path).trials[0]
    Store(tmp_path / "s")
    work = tmp_path / "s/work" / spec.key
    write_json(tmp_path / "s/store.json", {"format": 1})
    for number, name in enumerate(("old", "older")):
        (work / name).mkdir(parents=True)
        (work / name / "checkpoint.safetensors").write_bytes(b"torn")
        (work / name / ".checkpoint.safetensors.partial").write_bytes(b"torn")
        os.utime(work / name, (1000 - number, 1000 - number))
    outcome = attempt(Task(spec, work, device="cpu"))
    assert outcome.kind == "result", outcome.content
    (own,) = work.iterdir()
    assert own.name not in ("old", "older") and (own / "result.json").exists()
    # A finished trial that nobody stored is not trained again.
    again = attempt(Task(spec, work, device="cpu"))
    assert again.content == outcome.content and again.history == outcome.history


def test_a_machine_without_the_store_sends_everything_back(tmp_path):
    spec = replace(written(tmp_path).trials[0], keep=True)
    outcome = attempt(Task(spec, tmp_path / "elsewhere/work" / spec.key, device="cpu"))
    assert outcome.kind == "result" and not (tmp_path / "elsewhere").exists()
    assert isinstance(outcome.saved, dict) and "field.json" in " ".join(outcome.saved)
    store = Store(tmp_path / "s")
    with store.locked():
        assert store.add(spec, "tiny", outcome, 1)
        assert not store.add(spec, "tiny", outcome, 1), "a stored result is left"
    assert sorted(path.name for path in (tmp_path / "s/fields" / spec.key).iterdir()) == sorted(outcome.saved)


def test_what_figures_show_of_a_kept_field_is_stored_with_its_result(tmp_path):
    """Of 2-Moons, for which there are such figures; moons in time are one of many data that have none."""
    moons = TrialSpec.of("two-moons", "erm-d", seed=3, options={"steps": 5}, dataset_options={"num_train": 5})
    in_time = written(tmp_path).trials[0]
    trials = (replace(moons, keep=True), moons, replace(in_time, keep=True))
    for at, spec in enumerate(trials):
        store = Store(tmp_path / f"s{at}")
        with store.locked():
            store.add(spec, "tiny", attempt(Task(spec, tmp_path / f"s{at}/work/{spec.key}", device="cpu")), 1)
    found = [[path.name for path in tmp_path.glob(f"s{at}/looks/*")] for at in range(3)]
    assert found == [[f"{moons.key}.json"], [], []]
    look = Look.of(json.loads((tmp_path / f"s0/looks/{moons.key}.json").read_text()))
    model = load_model(tmp_path / f"s0/fields/{moons.key}")
    data = DATASETS["two-moons"](3, num_train=5)
    np.testing.assert_array_equal(look.unseen.errors, look_at(model, data, 3).unseen.errors.round(4))


def test_a_damaged_result_is_said_and_not_taken_for_done(tmp_path):
    suite = written(tmp_path)
    bench(suite, tmp_path / "s")
    file = next((tmp_path / "s/results").iterdir())
    for content in ("", file.read_text()[:50], "{}", "[]", '{"score": NaN}', '{"score": "low"}'):
        file.write_text(content)
        with pytest.raises(StoreError, match="is damaged: delete it to run its trial again"):
            bench(suite, tmp_path / "s")
    file.unlink()
    assert bench(suite, tmp_path / "s")[1].ran == [file.stem]


def test_a_suite_does_not_take_the_place_of_another_one(tmp_path):
    """Two files of one name; one that has changed is still the same suite."""
    store, suite = Store(tmp_path / "s"), written(tmp_path)
    store.refuse_namesake(suite)
    bench(suite, tmp_path / "s", limit=1)
    store.refuse_namesake(written(tmp_path, SUITE.replace("seeds = 2", "seeds = 5")))
    other = written(tmp_path, SUITE.replace("num_train = 6", "num_train = 7"))
    with pytest.raises(StoreError, match="has another suite called 'tiny', which shares no trial with this one"):
        store.refuse_namesake(other)
    file = tmp_path / "s/suites/tiny.json"
    content = json.loads(file.read_text())
    for entry in content["trials"]:  # as they were before the dataset got an option
        del entry["spec"]["dataset_options"]["num_test"]
    write_json(file, content)
    store.refuse_namesake(suite)
    file.write_text("torn")
    with pytest.raises(
        StoreError, match=r"tiny\.json is damaged: delete it, and the next bench of the suite writes it"
    ):
        store.refuse_namesake(suite)


def test_what_a_kill_left_of_a_folder_is_put_right(tmp_path):
    """A kill while a kept field was replaced by another leaves the old one, in its place or beside the new one."""
    store = Store(tmp_path / "s")
    with store.locked():
        pass
    for name in (".alone.old", ".twice.old", "twice"):
        (tmp_path / "s/fields" / name).mkdir(parents=True)
    with store.locked():
        assert sorted(path.name for path in (tmp_path / "s/fields").iterdir()) == ["alone", "twice"]


def test_the_last_trial_takes_its_time(tmp_path, monkeypatch):
    """Two at a time, and one is left that has just begun: nobody helps it."""
    clock = [0.0]
    monkeypatch.setattr("thetafield.report.suite_progress.time.monotonic", lambda: clock[0])
    suite = written(tmp_path, SUITE.replace("seeds = 2", "seeds = 1"))
    plan = Plan(once(suite.trials), {})
    standing = Standing(plan, list(plan.trials))
    first, second, last = plan.trials
    standing.hear(Event("started", first))
    standing.hear(Event("started", second))
    clock[0] = 100.0
    for spec in (first, second):
        standing.hear(Event("done", spec, Outcome("result", {})))
    assert standing.seconds_left() == 100.0
    standing.hear(Event("started", last))
    clock[0] = 130.0
    assert standing.seconds_left() == 70.0


def test_progress_is_a_table_for_a_person_and_lines_for_a_file(tmp_path):
    suite = written(tmp_path)
    plan = Plan(once(suite.trials), {})
    result = Outcome("result", {"metric": "error", "score": 12.345, "train_seconds": 1.0})
    events = [
        Event("started", plan.trials[0]),
        Event("done", plan.trials[0], result),
        Event("started", plan.trials[1]),
        Event("again", plan.trials[1], Outcome.failed("died", "It was killed.")),
        Event("started", plan.trials[1]),
        Event("failed", plan.trials[1], Outcome.failed("error", "It diverged.")),
        Event("started", plan.trials[2]),
    ]
    said = {}
    for terminal in (False, True):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=100, height=20)
        with suite_display(plan, list(plan.trials), console) as watch:
            for event in events:
                watch(event)
        said[terminal] = console.file.getvalue()
    assert said[False].splitlines() == [
        "6 trials to run.",
        "1/6 (about 0:00:00 left) moons, erm steps=40 samples=4, seed 0: error 12.35 % in 1.0 s",
        "1/6 (about 0:00:00 left) moons, erm-d steps=40 samples=4, seed 0: will run again: It was killed.",
        "2/6 (about 0:00:00 left) moons, erm-d steps=40 samples=4, seed 0: failed: It diverged.",
    ]
    assert "1/2" in said[True] and "0/2 ✗1" in re.sub(r"\x1b\[[0-9;]*m", "", said[True])
    assert "2 of 6, 1 running, 1 failed, about 0:00:" in said[True]
    narrow = Console(file=io.StringIO(), width=30)
    narrow.print(standing_table({spec.key: "missing" for spec in plan.trials}, plan.trials, 30, rows=2))
    assert narrow.file.getvalue().count("0/2") == 2
