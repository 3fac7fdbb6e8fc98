"""Trials on a Ray cluster: a machine that dies loses nothing, and one that is not there is said to be."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import thetafield.bench.cluster as clusters
from benched import SUITE, bench, results, written
from thetafield.bench.attempt import Task
from thetafield.bench.cluster import RayWorkers
from thetafield.errors import NeedError, OptionError

SCRIPT = Path(__file__).with_name("clustered.py")
with_ray = pytest.mark.skipif(clusters.find_spec("ray") is None, reason="Ray is not installed")


@with_ray
def test_a_machine_that_dies_loses_nothing(tmp_path):
    """Two machines, one of which is killed in the middle of a trial: the store ends complete, as a serial one does."""
    suite = written(tmp_path, SUITE.replace("steps = 40", "steps = 2000"))
    done = subprocess.run([sys.executable, SCRIPT, tmp_path, "one"], capture_output=True, text=True)
    said = (tmp_path / "stderr").read_text()
    assert done.returncode == 0, done.stderr + said
    content = json.loads((tmp_path / "stdout").read_text())
    assert content["done"] == content["trials"] == content["ran"] == 6
    assert said.count("will run again") == 1, said
    bench(suite, tmp_path / "serial")
    assert results(tmp_path / "s") == results(tmp_path / "serial")
    [(key, one)] = results(tmp_path / "found").items()  # by a bench that looked for the cluster itself
    assert one == results(tmp_path / "serial")[key]
    assert not list((tmp_path / "s/work").iterdir())


@with_ray
def test_a_cluster_that_has_lost_its_head_is_said_in_a_sentence(tmp_path):
    """And what was done is there: here, where nothing was, for those that go on without the cluster."""
    suite = written(tmp_path, SUITE.replace("steps = 40", "steps = 2000"))
    done = subprocess.run([sys.executable, SCRIPT, tmp_path, "all"], capture_output=True, text=True)
    said = (tmp_path / "stderr").read_text()
    assert done.returncode == 2 and "does not answer any more" in said.splitlines()[-1], done.stderr + said
    plan, workers = bench(suite, tmp_path / "s")
    assert plan.counts()["done"] == 6 and workers.ran


@with_ray
def test_ray_starts_on_this_machine(tmp_path):
    suite = written(tmp_path, SUITE)
    words = ["bench", tmp_path / "tiny.toml", "--store", tmp_path / "s", "--ray", "local", "--json"]
    done = subprocess.run([sys.executable, "-m", "thetafield", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ran"] == 6  # and nothing of Ray's own beside it
    bench(suite, tmp_path / "serial")
    assert results(tmp_path / "s") == results(tmp_path / "serial")


def test_jobs_are_not_for_a_cluster(tmp_path):
    command = [sys.executable, "-m", "thetafield", "bench", "smoke", "--store", tmp_path / "s", "--ray", "local"]
    done = subprocess.run([*command, "--jobs", "2"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("thetafield: --jobs is for this machine: a cluster runs")


@with_ray
def test_an_address_where_nobody_answers_is_refused_soon(monkeypatch):
    monkeypatch.setattr(clusters, "ANSWER", 4.0)
    with pytest.raises(OptionError, match=r"No Ray cluster answers at 127\.0\.0\.1:9 within 4 s: "):
        RayWorkers("127.0.0.1:9", "cpu")
    with pytest.raises(OptionError, match=r"Ray at nonsense refuses: .*Invalid address format: nonsense\.$"):
        RayWorkers("nonsense", "cpu")


def test_ray_that_is_not_installed_is_asked_for(monkeypatch):
    monkeypatch.setattr(clusters, "find_spec", lambda name: None)
    with pytest.raises(NeedError, match=r"pip install 'thetafield\[ray\]'"):
        RayWorkers("local", "cpu")


def test_a_machine_with_another_version_is_refused(tmp_path):
    spec = written(tmp_path).trials[0]
    outcome = clusters._attempt(Task(spec, tmp_path / "work" / spec.key, device="cpu"), "0.0.7")
    assert outcome.kind == "error" and "but the bench 0.0.7: install the same version" in outcome.content["sentence"]


def unstarted(gpus, most=None):
    """Workers of a cluster with 16 cores and a GPU that nobody started; they note what trials ask for."""
    workers = object.__new__(RayWorkers)
    workers.ray = SimpleNamespace(cluster_resources=lambda: {"CPU": 16.0, "GPU": 1.0})
    workers.cpus, workers.gpus, workers.most, workers.under_way, workers.shares = 1.0, gpus, most, {}, {}
    workers.slots, workers.counted, workers.asked = workers._slots(), clusters.time.monotonic(), []

    def options(**asked):
        workers.asked.append(asked)
        return SimpleNamespace(remote=lambda *given: object())

    workers.attempt = SimpleNamespace(options=options)
    return workers


def tasks(tmp_path):
    return [Task(spec, tmp_path / spec.key, device="cpu") for spec in written(tmp_path).trials[:3]]


def test_trials_without_memory_on_a_shared_gpu_get_a_larger_share(tmp_path):
    """Until one has a GPU for itself: then it asks for too much, which costs it its attempts."""
    workers, found = unstarted(gpus=1 / 14), []
    for _ in range(5):
        for task in tasks(tmp_path):
            workers.start(task)
        shared = [workers.thin(task.spec.key) for task in tasks(tmp_path)]  # all three end together
        found.append((*shared, workers.gpus, workers.slots))
    assert found == [
        *[(True, True, True, share, slots) for share, slots in ((2 / 14, 7), (4 / 14, 3), (8 / 14, 1), (1.0, 1))],
        (False, False, False, 1.0, 1),
    ]
    asked = [share for share in (1 / 14, 2 / 14, 4 / 14, 8 / 14, 1.0) for _ in range(3)]
    assert workers.asked == [{"num_gpus": share} for share in asked]
    alone = unstarted(gpus=0.0)
    alone.start(tasks(tmp_path)[0])
    assert not alone.thin(tasks(tmp_path)[0].spec.key)


def test_a_suite_of_times_runs_one_trial_at_a_time_on_a_cluster_too(tmp_path, monkeypatch):
    monkeypatch.setattr(RayWorkers, "_listen", lambda self: None)
    workers = unstarted(gpus=0.0, most=1)
    assert workers.room() == 1
    workers.start(tasks(tmp_path)[0])
    assert workers.room() == 0 and unstarted(gpus=0.0).room() == 32
