"""The command line as a person meets it."""

import json
import signal
import subprocess
import sys
import time

import pytest

from thetafield import load_field

SMALL = ["--set", "steps=100", "--set", "samples=8", "--data-set", "num_train=5", "--data-set", "num_test=4"]


def thetafield(*words, cwd):
    command = [sys.executable, "-m", "thetafield", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_train_writes_a_result_and_a_field(tmp_path):
    done = thetafield("train", "two-moons", "erm", "--seed", 3, "--out", "t", "--json", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result == json.loads((tmp_path / "t/result.json").read_text())
    keys = "dataset method seed metric score macro worst_decile per_domain train_seconds eval_seconds options"
    assert set(result) >= {*keys.split(), "dataset_options", "device", "versions"}
    assert result["metric"] == "error" and len(result["per_domain"]) == 4 + 441
    assert result["options"]["steps"] == 100 and result["dataset_options"]["num_train"] == 5
    assert sorted(p.name for p in (tmp_path / "t").iterdir()) == ["field", "history.json", "result.json"]
    estimator = load_field(tmp_path / "t/field")
    assert estimator.predict([[0.0, 0.0]], z=[10.0, 20.0]).shape == (1,)


def test_a_finished_trial_is_not_overwritten(tmp_path):
    words = ("train", "two-moons", "erm", "--out", "t", *SMALL)
    assert thetafield(*words, cwd=tmp_path).returncode == 0
    before = (tmp_path / "t/result.json").read_bytes()
    again = thetafield(*words, cwd=tmp_path)
    assert again.returncode == 2 and "already holds a finished trial" in again.stderr
    shown = thetafield(*words, "--resume", "--json", cwd=tmp_path)
    assert shown.returncode == 0 and json.loads(shown.stdout)["method"] == "erm"
    other = thetafield(*words, "--resume", "--seed", 1, cwd=tmp_path)
    assert other.returncode == 2 and "holds another trial (seed 0, not 1)" in other.stderr
    assert (tmp_path / "t/result.json").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "two-moons", "neuralio"], "did you mean 'neurallio'?"),
        (["train", "two-moon", "erm"], "did you mean 'two-moons'?"),
        (["train", "two-moons", "erm", "--set", "step=5"], "did you mean 'steps'?"),
        (["train", "two-moons", "erm", "--set", "steps=many"], "expects a whole number, but got 'many'"),
        (["train", "two-moons", "erm", "--set", "steps=0"], "expects at least 1, but got 0"),
        (["train", "two-moons", "erm", "--set", "lr=nan"], "expects a number, but got 'nan'"),
        (["train", "two-moons", "erm", "--set", "steps"], "Expected name=value, but got 'steps'"),
        (["train", "two-moons", "erm", "--data-set", "dropped_coordinates=8"], "0 to 7 can be dropped, but 8"),
        (["train", "two-moons", "neurallio", "--set", "neighbours=50"], "at least 51 training domains"),
        (["train", "two-moons", "erm", "--device", "tpu"], "device is one of auto, cpu or cuda"),
        (["list", "method"], "did you mean 'methods'?"),
        (["speed", "--quick", "--only", "exponential,epochs"], "did you mean 'epoch'?"),
        (["speed", "--quick", "--only", ","], "--only needs at least one section: epoch, "),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, sentence, tmp_path):
    done = thetafield(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and not done.stdout
    assert not list(tmp_path.iterdir()), "something was left behind"


def test_list_names_everything(tmp_path):
    done = thetafield("list", "--json", cwd=tmp_path)
    content = json.loads(done.stdout)
    names = {entry["name"] for entry in content["methods"]}
    assert names >= {"erm", "erm-d", "nda", "neurallio", "neurallio-paper", "neurallio-plain", "neurallio-nolie"}
    assert {entry["name"] for entry in content["datasets"]} >= {"two-moons"}
    plain = thetafield("list", cwd=tmp_path)
    assert plain.returncode == 0 and "neurallio-nolie" in plain.stdout


def test_an_unwritable_folder_is_said_before_training(tmp_path):
    done = thetafield("train", "two-moons", "erm", "--out", "/proc/nowhere", cwd=tmp_path)
    assert done.returncode == 2 and "cannot be written to" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])  # a person, a batch system
def test_an_interrupt_keeps_the_work_and_resume_goes_on(tmp_path, number):
    words = ["train", "two-moons", "erm", "--set", "steps=20000", "--set", "samples=4", "--out", "t", "--resume"]
    command = [sys.executable, "-m", "thetafield", *words, "--data-set", "num_train=5", "--checkpoint-every", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    while not (tmp_path / "t/checkpoint.safetensors").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume goes on" in said
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    before = (tmp_path / "t/checkpoint.safetensors").stat().st_mtime_ns
    while (tmp_path / "t/checkpoint.safetensors").stat().st_mtime_ns == before and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None, process.stderr.read()
    process.kill()
    process.communicate()
