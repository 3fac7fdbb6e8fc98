"""The loop: history, schedules, phases, divergence, and exact resume."""

import errno
import math
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors import SafetensorError

from thetafield.errors import DivergenceError, FormatError
from thetafield.methods.phase import Schedule
from thetafield.testing.toys import make_method, toy_problem
from thetafield.training import fit
from thetafield.training.checkpoint import NAME, Checkpoint, State


class Killed(Exception):
    pass


def kill_after(epochs):
    """Return a report that stops the run as a kill would: after an epoch, before its checkpoint."""
    seen = []

    def report(progress):
        seen.append(progress)
        if len(seen) > epochs:
            raise Killed

    return report


@pytest.mark.parametrize(
    ("name", "stop", "options"),
    [
        ("erm", 1, {"steps": 300}),
        ("nda", 1, {"steps": 300, "tune_steps": 200}),
        ("nda", 4, {"steps": 300, "tune_steps": 200}),
        ("neurallio-paper", 0, {"block": 2}),
        ("neurallio-paper", 3, {"block": 2}),
        ("neurallio", 3, {"block": 2}),
    ],
)
def test_a_stopped_run_resumes_to_the_same_bits(name, stop, options, tmp_path):
    whole = make_method(name, toy_problem(), **options)
    history = fit(whole).history
    stopped = make_method(name, toy_problem(), **options)
    with pytest.raises(Killed):
        fit(stopped, Checkpoint(tmp_path, {}, every=0.0), kill_after(stop))
    resumed = make_method(name, toy_problem(), **options)
    state = fit(resumed, Checkpoint(tmp_path, {}, every=0.0))
    expected = whole.state_dict()
    assert all(torch.equal(value, expected[key]) for key, value in resumed.state_dict().items())
    assert state.history == history


def test_resume_after_sigkill_is_bit_identical(tmp_path):
    """The real thing: processes killed at arbitrary moments, started again with --resume."""

    def command(out):
        words = "train two-moons neurallio --data-set num_train=12 --data-set num_test=5 --checkpoint-every 0 --resume"
        small = ["select=false", "epochs=150", "block=4", "samples=16", "widths=32,16", "latent_dim=8", "neighbours=3"]
        settings = [word for value in small for word in ("--set", value)]
        return [sys.executable, "-m", "thetafield", *words.split(), *settings, "--device", "cpu", "--out", str(out)]

    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    broken = tmp_path / "broken"
    checkpoint, kills = broken / "checkpoint.safetensors", 0
    for delay in (0.0, 0.13, 0.31):
        process = subprocess.Popen(command(broken), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        while process.poll() is None and (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before):
            time.sleep(0.005)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills >= 2, "the runs ended before they could be killed"
    assert not (broken / "result.json").exists()
    subprocess.run(command(broken), check=True, capture_output=True)
    first, second = (tmp_path / run / "field" / "field.safetensors" for run in ("whole", "broken"))
    assert first.read_bytes() == second.read_bytes()
    assert not checkpoint.exists()


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    with pytest.raises(Killed):
        fit(make_method("neurallio", toy_problem()), Checkpoint(tmp_path, {"seed": 0}, every=0.0), kill_after(2))
    with pytest.raises(FormatError, match="its seed is 0, this run's is 1"):
        fit(make_method("neurallio", toy_problem()), Checkpoint(tmp_path, {"seed": 1}, every=0.0))


def test_a_checkpoint_is_written_without_a_copy_in_memory(tmp_path):
    """A copy of all that training holds would be what a machine has no room for."""
    script = (
        "import resource, torch; from pathlib import Path\n"
        "from thetafield.training.checkpoint import Checkpoint, State\n"
        "held = {str(n): torch.ones(2**24) for n in range(4)}\n"  # 256 MB
        "state = State(method=held)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"Checkpoint(Path({str(tmp_path)!r}), {{}}).write(state)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64 * 1024 and (tmp_path / NAME).stat().st_size > 2**28


def test_a_full_disk_is_an_error_of_the_disk(tmp_path, monkeypatch):
    def full(*given):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("thetafield.training.checkpoint.save_file", full)
    with pytest.raises(OSError) as raised:
        Checkpoint(tmp_path, {}).write(State())
    assert raised.value.errno == errno.ENOSPC and not list(tmp_path.iterdir())


def test_a_truncated_checkpoint_is_refused(tmp_path):
    with pytest.raises(Killed):
        fit(make_method("erm", toy_problem(), steps=300), Checkpoint(tmp_path, {}, every=0.0), kill_after(2))
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match="cannot be read"):
        fit(make_method("erm", toy_problem(), steps=300), Checkpoint(tmp_path, {}, every=0.0))


def test_divergence_names_step_and_term_and_keeps_the_last_good_checkpoint(tmp_path, monkeypatch):
    method = make_method("neurallio-paper", toy_problem(), epochs=8, block=2)
    calls = 0
    loss = method.loss

    def breaking(batch):
        nonlocal calls
        calls += 1
        terms = loss(batch)
        return terms if calls != 11 else terms | {"embedding": terms["embedding"] * math.nan}

    monkeypatch.setattr(method, "loss", breaking)
    checkpoint = Checkpoint(tmp_path, {}, every=0.0)
    with pytest.raises(DivergenceError, match=r"phase 'joint', step 11: the loss term 'embedding' is nan.*kept in"):
        fit(method, checkpoint)
    state = checkpoint.read(torch.device("cpu"))
    assert state is not None and state.epoch == 3
    assert all(torch.isfinite(value).all() for value in state.method.values())


def test_an_exploding_step_size_ends_with_a_sentence():
    method = make_method("erm", toy_problem(regression=True), lr=1e200, steps=200)
    with pytest.raises(DivergenceError, match="diverged in phase 'pooled'"):
        fit(method)


def test_schedule():
    cosine = Schedule("cosine", warmup=0.1)
    assert cosine(0.05) == pytest.approx(0.5 * 0.5 * (1 + math.cos(0.05 * math.pi)))
    assert cosine(1.0) == pytest.approx(0)
    assert Schedule()(0.3) == 1


def test_best_keeps_the_epoch_with_the_lowest_loss():
    kept = {}
    method = make_method("neurallio-paper", toy_problem(), epochs=5, lr=0.05)
    snapshots = []
    state = fit(method, report=lambda p: snapshots.append((p.loss, method.learned.theta.detach().clone())))
    kept = min(snapshots, key=lambda s: s[0])[1]
    assert torch.equal(method.learned.theta, kept)
    assert len(state.history) == 5 and set(state.history[0]) > {"phase", "epoch", "loss", "own risk"}


def test_phases_run_in_order_and_tuning_starts_at_the_pooled_solution():
    method = make_method("nda", toy_problem(), steps=200, tune_steps=100)
    history = fit(method).history
    assert [record["phase"] for record in history] == ["pooled", "pooled", "tuning"]
    assert not torch.equal(method.learned.theta[0], method.learned.theta[1])


def test_fit_leaves_the_callers_random_state_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(make_method("erm", toy_problem()))
    assert torch.equal(torch.rand(3), expected)
