"""Attempts at a trial: what memory, kills and failures cost, and fields that are made later."""

import errno
import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from benched import SUITE, Here, bench, results, written
from thetafield.bench.attempt import Outcome, Task, attempt
from thetafield.bench.local import LocalWorkers
from thetafield.bench.records import StoreError
from thetafield.bench.spec import TrialSpec
from thetafield.bench.store import Store
from thetafield.training import train


def test_memory_that_others_took_costs_no_attempt(tmp_path):
    """A trial for which there is room only alone is tried again with fewer beside it, until it is."""
    suite = written(tmp_path)
    greedy = suite.trials[1].key

    class Crowded(Here):
        limit = 4

        def attempt(self, task):
            self.beside = len(self.tasks)
            short = task.spec.key == greedy and (self.beside or self.never)
            return Outcome.failed("memory", "MemoryError") if short else attempt(task)

        def thin(self, key):
            self.limit = max(1, self.limit // 2)
            return self.beside > 0

    alone = Crowded()
    alone.never = False
    plan, _ = bench(suite, tmp_path / "a", alone)
    assert plan.counts()["done"] == 6 and alone.ran.count(greedy) == 2 and alone.limit == 2
    never = Crowded()
    never.never = True
    plan, _ = bench(suite, tmp_path / "b", never)
    assert plan.counts()["done"] == 5 and Store(tmp_path / "b").failure(greedy)["kind"] == "memory"
    assert Store(tmp_path / "b").failure(greedy)["attempts"] == Here.attempts


def test_half_as_many_run_where_memory_did_not_last():
    """Of those that end together only the first one counts, and one that was alone has nobody to blame."""
    workers = LocalWorkers(8, "cpu")
    running = [SimpleNamespace(key=str(number)) for number in range(8)]
    workers.workers = running
    jobs = []
    while running:
        ended = running.pop()
        jobs.append((workers.thin(ended.key), workers.jobs))
    assert jobs == [(True, 4)] * 3 + [(True, 4), (True, 2), (True, 2), (True, 1), (False, 1)]


def test_a_setting_without_memory_is_lost_only_where_nobody_else_took_it(tmp_path, monkeypatch):
    """Beside others an attempt of the trial has failed; on the last attempt the setting asks for too much."""
    spec = TrialSpec.of("two-moons-time", "erm", seed=0, options={"steps": 4}, dataset_options={"num_train": 6}, tune=1)
    fit, given = train.fit, []

    def greedy(learner, *rest, **more):
        given.append(learner.lr)
        if learner.lr != 1e-3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return fit(learner, *rest, **more)

    monkeypatch.setattr(train, "fit", greedy)

    class Crowd(Here):
        attempts, crowded = 3, True

    suite = replace(written(tmp_path), trials=(spec,))
    plan, workers = bench(suite, tmp_path / "s", Crowd())
    assert plan.counts()["done"] == 1 and len(workers.ran) == 3
    draws = Store(tmp_path / "s").result(spec.key)["tuning"]["draws"]
    assert [draw["failure"] for draw in draws] == [None, "OutOfMemoryError: CUDA out of memory."]
    assert given.count(1e-3) == 2, "the first draw, which had been recorded, and the trial itself"


def test_only_the_first_attempt_of_a_retry_begins_anew(tmp_path):
    suite = written(tmp_path)
    spec = suite.trials[0]
    store = Store(tmp_path / "s")
    with store.locked():
        store.add(spec, "tiny", Outcome.failed("error", "It broke."), 1)

    class Dying(Here):
        attempts, afresh = 3, ()

        def attempt(self, task):
            self.afresh = (*self.afresh, task.afresh)
            return Outcome.failed("died", "Killed.") if len(self.afresh) < 3 else attempt(task)

    _, workers = bench(suite, tmp_path / "s", Dying(), trials=[spec], retry=True)
    assert workers.afresh == (True, False, False) and store.result(spec.key)


def test_a_field_that_is_wanted_later_is_made_for_the_result_that_is_there(tmp_path):
    suite = written(tmp_path)
    bench(suite, tmp_path / "s")
    before = results(tmp_path / "s")
    keeping = written(tmp_path, SUITE + "keep = true")
    folder = tmp_path / "s"
    assert Store(folder).plan(keeping.trials).counts()["missing"] == 6
    plan, workers = bench(keeping, folder)
    assert plan.counts()["done"] == 6 == len(workers.ran) == len(list((folder / "fields").iterdir()))
    assert results(folder) == before and not list((folder / "work").iterdir())
    assert not bench(keeping, folder)[1].ran


def test_a_field_that_could_not_be_made_is_a_failure_and_costs_no_result(tmp_path):
    suite, folder = written(tmp_path), tmp_path / "s"
    bench(suite, folder)
    keeping = written(tmp_path, SUITE + "keep = true")
    lost = keeping.trials[0]

    class Failing(Here):
        def attempt(self, task):
            return Outcome.failed("error", "No.") if task.spec.key == lost.key else attempt(task)

    plan, _ = bench(keeping, folder, Failing())
    assert plan.state(lost) == "failed" and plan.counts()["done"] == 5
    assert Store(folder).plan(suite.trials).counts()["done"] == 6 and Store(folder).result(lost.key)
    assert not bench(keeping, folder)[1].ran  # unless it is asked for
    plan, workers = bench(keeping, folder, retry=True)
    assert workers.ran == [lost.key] and plan.counts()["done"] == 6 and not Store(folder).failure(lost.key)


def test_work_at_a_field_outlives_its_bench(tmp_path):
    """A result that is there does not make it waste, as long as the field is not."""
    suite, folder = written(tmp_path), tmp_path / "s"
    bench(suite, folder)
    keeping = written(tmp_path, SUITE + "keep = true")
    store = Store(folder)
    with store.locked():
        store.add_suite(keeping)
    for spec in keeping.trials[:2]:
        store.work(spec.key).mkdir(parents=True)
    with store.locked():
        assert all(store.work(spec.key).exists() for spec in keeping.trials[:2])
    bench(keeping, folder)
    assert not any(store.work(spec.key).exists() for spec in keeping.trials)


def test_a_kill_between_a_field_and_what_figures_show_of_it_costs_neither(tmp_path, monkeypatch):
    spec = replace(
        TrialSpec.of("two-moons", "erm-d", seed=3, options={"steps": 5}, dataset_options={"num_train": 5}), keep=True
    )
    suite = replace(written(tmp_path), trials=(spec,))
    store, folder = Store(tmp_path / "s"), tmp_path / "s"
    bench(suite, folder)
    look, field = store.path("looks", spec.key), folder / "fields" / spec.key
    for lost in (look, field):
        kept = json.loads(look.read_text())
        (shutil.rmtree if lost.is_dir() else type(lost).unlink)(lost)
        # What the kill left: a trial that is finished.
        outcome = attempt(Task(spec, store.work(spec.key), device="cpu"))
        assert outcome.kind == "result" and store.plan(suite.trials).counts()["missing"] == 1
        assert bench(suite, folder)[0].counts()["done"] == 1 and not store.work(spec.key).exists()
        assert field.is_dir() and json.loads(look.read_text()) == kept


def test_what_ended_beside_a_full_disk_is_stored_first(tmp_path):
    suite = written(tmp_path)

    class AtOnce(Here):
        def wait(self, seconds):
            tasks, self.tasks = self.tasks, []
            full = (tasks[0].spec.key, Outcome.failed("full", "No space left on device"))
            return [full, *((task.spec.key, attempt(task)) for task in tasks[1:])]

    with pytest.raises(StoreError, match="; 2 finished trials are safe"):
        bench(suite, tmp_path / "s", AtOnce())
    assert len(results(tmp_path / "s")) == 2


def test_a_disk_that_is_not_the_stores_costs_its_trial_and_not_the_suite(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("thetafield.bench.spec.run_trial", full)
    spec = written(tmp_path).trials[0]
    apart = attempt(Task(spec, tmp_path / "nowhere/work" / spec.key, device="cpu"))
    assert apart.kind == "error" and apart.content["sentence"].endswith("is full: make room there, then --retry.")
    Store(tmp_path / "s").folder.mkdir()
    with Store(tmp_path / "s").locked():
        assert attempt(Task(spec, Store(tmp_path / "s").work(spec.key), device="cpu")).kind == "full"
