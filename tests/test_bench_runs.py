"""A bench as a person runs it: killed, interrupted, out of room, or asked for something that cannot be."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from benched import SUITE, bench, results, written
from thetafield.bench.engine import Conditions
from thetafield.bench.local import LocalWorkers, default_jobs
from thetafield.bench.records import StoreError
from thetafield.bench.store import Store
from thetafield.errors import OptionError, ThetafieldError
from thetafield.files import write_json

LONG = SUITE.replace("steps = 40", "steps = 1000", 1)  # two trials of a few seconds


def command(folder, *words):
    store = ("--store", "s") if "--store" not in words else ()
    return [sys.executable, "-m", "thetafield", "bench", "tiny.toml", *store, "--device", "cpu", *map(str, words)]


def thetafield(folder, *words):
    return subprocess.run(command(folder, *words), capture_output=True, text=True, cwd=folder)


def workers_of(folder):
    """Processes that work in a folder, other than this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if (entry / "cwd").resolve() == folder.resolve():
                    found.append(int(entry.name))
            except OSError:
                pass  # it has ended
    return found


def gone(folder):
    """Wait until nobody works in a folder."""
    until = time.monotonic() + 20
    while workers_of(folder) and time.monotonic() < until:
        time.sleep(0.05)
    return not workers_of(folder)


def whole(folder):
    """Return whether every file of a store that has its name can be read."""
    for path in folder.rglob("*.json"):
        if not path.name.startswith("."):
            json.loads(path.read_text())
    return True


def test_a_bench_killed_at_random_moments_ends_as_one_that_was_not(tmp_path):
    suite = written(tmp_path, LONG)
    bench(suite, tmp_path / "serial")
    moments = random.Random(0)
    for _ in range(3):
        process = subprocess.Popen(
            command(tmp_path, "--jobs", 2, "--checkpoint-every", 0),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moments.uniform(2.5, 6.5))
        process.kill()
        process.wait()
        assert gone(tmp_path), "workers outlive their bench"
        assert whole(tmp_path / "s")
    done = thetafield(tmp_path, "--jobs", 2, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["done"] == content["trials"] == 6 and content["missing"] == 0
    assert results(tmp_path / "s") == results(tmp_path / "serial")
    assert not list((tmp_path / "s/work").iterdir()) and not (tmp_path / "s/failures").exists()
    assert not list((tmp_path / "s").rglob("*.partial"))


# A person, a batch system, and one that tells every process of its job, where workers hear it first.
@pytest.mark.parametrize(
    ("number", "all_hear"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)]
)
def test_an_interrupt_keeps_what_was_done(tmp_path, number, all_hear):
    written(tmp_path, SUITE.replace("steps = 40", "steps = 100000", 1))
    process = subprocess.Popen(
        command(tmp_path, "--jobs", 1, "--only", "erm", "--checkpoint-every", 0.5),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob("s/work/*/*/checkpoint.safetensors")) and process.poll() is None:
        time.sleep(0.05)
    other = thetafield(tmp_path, "--only", "trees", "--json")
    assert other.returncode == 2 and f"in use by another bench (process {process.pid} on" in other.stderr
    assert len(other.stderr.strip().splitlines()) == 1 and not other.stdout
    for worker in workers_of(tmp_path) if all_hear else ():
        os.kill(worker, number)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and not stdout
    told = ["2 trials to run.", "thetafield: stopped; s keeps what was done, and the same command goes on."]
    assert stderr.splitlines() == told
    assert list(tmp_path.glob("s/work/*/*/checkpoint.safetensors")) and gone(tmp_path)


@contextmanager
def struck(workers, spec, number):
    """Send a signal to whatever process is at a trial, over and over."""
    over = threading.Event()

    def strike():
        while not over.wait(0.05):
            for worker in list(workers.workers):
                if worker.up and worker.key == spec.key:
                    os.kill(worker.process.pid, number)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_worker_that_is_killed_is_replaced(tmp_path):
    """A trial whose process is killed every time counts as failed in the end, and all others are done."""
    suite = written(tmp_path, SUITE.replace("steps = 40", "steps = 1000000", 1).replace("seeds = 2", "seeds = 1"))
    unlucky, workers = suite.trials[0], LocalWorkers(1, "cpu")
    workers.attempts = 2
    with struck(workers, unlucky, signal.SIGKILL):
        plan, _ = bench(suite, tmp_path / "s", workers)
    assert plan.counts()["done"] == 2 and plan.state(unlucky) == "failed"
    failure = Store(tmp_path / "s").failure(unlucky.key)
    assert "was killed (signal 9)" in failure["sentence"] and failure["attempts"] == 2


def test_a_trial_that_hears_no_alarm_is_ended_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("thetafield.bench.local.GRACE", 1.0)
    suite = written(tmp_path, SUITE.replace("steps = 40", "steps = 20000", 1).replace("seeds = 2", "seeds = 1"))
    stuck, workers = suite.trials[0], LocalWorkers(1, "cpu")
    with struck(workers, stuck, signal.SIGSTOP):
        plan, _ = bench(suite, tmp_path / "s", workers, conditions=Conditions(timeout=12.0))
    assert plan.counts()["done"] == 2 and plan.state(stuck) == "failed"
    sentence = Store(tmp_path / "s").failure(stuck.key)["sentence"]
    assert sentence == "The trial took longer than 12 s and did not stop: its process was ended."


def test_a_full_disk_stops_the_suite_and_loses_nothing(tmp_path, small_disk):
    suite = written(tmp_path)
    with pytest.raises(StoreError, match="is full, or a limit on the size of files is reached") as caught:
        bench(suite, small_disk / "s")
    before = results(small_disk / "s")
    safe = "1 finished trial is safe." if len(before) == 1 else f"{len(before)} finished trials are safe."
    assert str(caught.value).endswith(f"make room and give the same command again; {safe}")
    assert 0 < len(before) < 6 and whole(small_disk / "s")
    subprocess.run(["mount", "-o", "remount,size=50m", small_disk], check=True)
    plan, _ = bench(suite, small_disk / "s")
    assert plan.counts()["done"] == 6 and before.items() <= results(small_disk / "s").items()


def test_a_disk_that_is_full_for_a_worker_stops_the_suite_too(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("thetafield.bench.spec.run_trial", full)
    with pytest.raises(StoreError, match="; 0 finished trials are safe"):
        bench(written(tmp_path), tmp_path / "s")
    assert not (tmp_path / "s/failures").exists()


def test_a_lock_ends_with_its_holder(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from thetafield.bench.store import Store\n"
        "with Store(Path(sys.argv[1])).locked(): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, tmp_path / "s"], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"process {holder.pid} on"), Store(tmp_path / "s").locked():
            pass
        holder.kill()
        holder.wait()
    with Store(tmp_path / "s").locked():
        pass


def test_a_dry_run_leaves_nothing_and_says_what_is_missing(tmp_path):
    written(tmp_path)
    done = thetafield(tmp_path, "--dry-run", "--json", "--only", "seed=0", "--limit", 2)
    content = json.loads(done.stdout)
    assert content["trials"] == content["missing"] == 3 and content["todo"] == 2 and len(content["plan"]) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path):
    (tmp_path / "tiny.toml").write_text("title = 1")
    done = thetafield(tmp_path)
    assert done.returncode == 2 and "'title' expects text, but got 1" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and not done.stdout


def test_a_store_that_is_none_is_refused(tmp_path):
    suite = written(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").touch()
    write_json(tmp_path / "newer/store.json", {"format": 2, "thetafield": "9.0"})
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn/store.json").write_text("{")
    sentences = {
        "file": "is a file: name a folder",
        "other": "holds something else than a store",
        "newer": "was written by thetafield 9.0 as a store of format 2, but this version reads format 1",
        "torn": "is damaged",
    }
    for name, sentence in sentences.items():
        with pytest.raises(StoreError, match=sentence):
            bench(suite, tmp_path / name)
    with pytest.raises(OptionError, match="cannot be written to"):
        bench(suite, Path("/proc/nowhere"))


def test_processes_that_cannot_begin_are_said_to(tmp_path, monkeypatch):
    """Where every process dies at its start, the trials are not to blame."""
    resource_tracker.ensure_running()  # which is a process too, and must be able to begin
    monkeypatch.setenv("PYTHONHOME", "/nowhere")  # read by the processes that are started, not by this one
    with pytest.raises(ThetafieldError, match="end before they begin: the last one ended with exit code"):
        bench(written(tmp_path), tmp_path / "s", LocalWorkers(1, "cpu"))
    assert not (tmp_path / "s/failures").exists()
    assert default_jobs("cpu") >= 1


def test_a_limit_to_the_size_of_files_is_a_full_disk(tmp_path):
    written(tmp_path)
    words = " ".join(map(str, command(tmp_path, "--jobs", 1)))
    done = subprocess.run(["bash", "-c", f"ulimit -f 8; {words}"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "or a limit on the size of files is reached (ulimit -f): make room" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "s/failures").exists()
    assert thetafield(tmp_path, "--json").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "tpu"], "device is one of auto, cpu or cuda, but got 'tpu'"),
        (["--data-dir", "tiny.toml"], "tiny.toml is a file: name the folder in which datasets lie"),
        (["--ray", ""], "--ray expects local, auto or HOST:PORT, but got nothing"),
        (["--store", "tiny.toml/below", "--dry-run"], "tiny.toml is a file: name a folder for the store"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(tmp_path, words, said):
    written(tmp_path)
    done = thetafield(tmp_path, *words)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]
