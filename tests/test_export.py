"""The model of one descriptor, compiled and as a file for other programs: the same answers."""

import re
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from torch import nn

from thetafield import DomainSet, FieldClassifier, FieldRegressor
from thetafield.errors import DataError, ExportError, NeedError, OptionError
from thetafield.fields import export
from thetafield.fields.export import export_model, made_up_samples, parse_descriptor, save_onnx, save_program

RNG = np.random.default_rng(0)
DOMAIN = np.repeat(np.arange(6), 10)
Z = RNG.uniform(size=(6, 2))[DOMAIN]
SAVERS = {"pt2": save_program, "onnx": save_onnx}
QUICK = {"options": {"steps": 5, "hidden": (8,)}, "random_state": 0}


@cache
def fit(case):
    """Return a fitted estimator and seven inputs as a person has them."""
    if case == "classes":
        x = 5 + 3 * RNG.normal(size=(60, 4))
        return FieldClassifier("erm-d", **QUICK).fit(x, DOMAIN % 3, z=Z), torch.tensor(x[:7], dtype=torch.float32)
    if case in ("numbers", "two targets", "doubles"):
        x = 1000 + 50 * RNG.normal(size=(60, 4))
        y = x @ RNG.normal(size=(4, 2))
        estimator = FieldRegressor("erm-d", **QUICK).fit(x, y if case == "two targets" else y[:, 0], z=Z)
        return estimator, torch.tensor(x[:7], dtype=torch.float64 if case == "doubles" else torch.float32)
    if case == "bytes":
        predictor, x = "convnet", RNG.integers(256, size=(60, 1, 16, 16)).astype(np.uint8)
    else:
        predictor, x = "temporal", RNG.normal(size=(60, 24, 3)).astype(np.float16)
    domains = DomainSet.from_arrays(x, np.arange(60) % 2, domain=DOMAIN, z=Z, classification=True)
    return FieldClassifier("erm-d", predictor=predictor, **QUICK).fit(domains), torch.from_numpy(x[:7])


def module_of(case):
    estimator, x = fit(case)
    return estimator.model_at([0.3, 0.6]), x


def run(path, x):
    """Return the answers of a written file, read as one would without thetafield."""
    if path.suffix == ".pt2":
        return torch.export.load(path).module()(x).detach()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(["answer"], {"x": x.numpy()})[0])


CASES = ["classes", "numbers", "doubles", "two targets", "bytes", "half floats"]


@pytest.mark.parametrize("suffix", SAVERS)
@pytest.mark.parametrize("case", CASES)
def test_a_written_file_answers_as_the_module_does(case, suffix, tmp_path):
    module, x = module_of(case)
    SAVERS[suffix](module, x[:3], tmp_path / f"model.{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"model.{suffix}"]
    for batch in (x[:1], x):
        expected = module(batch).detach()
        answer = run(tmp_path / f"model.{suffix}", batch)
        assert answer.dtype == expected.dtype
        torch.testing.assert_close(answer, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("suffix", SAVERS)
def test_one_sample_and_a_module_in_training_are_enough(suffix, tmp_path):
    module, x = module_of("bytes")
    module.train()  # dropout would not be the same twice
    SAVERS[suffix](module, x[:1], tmp_path / f"a/b/model.{suffix}")
    assert module.training
    module.eval()
    torch.testing.assert_close(run(tmp_path / f"a/b/model.{suffix}", x), module(x).detach(), rtol=1e-5, atol=1e-5)
    with pytest.raises(DataError, match="at least one sample"):
        SAVERS[suffix](module, x[:0], tmp_path / f"model.{suffix}")


@pytest.mark.parametrize("suffix", SAVERS)
def test_what_answers_differently_is_not_put_in_place(suffix, tmp_path, monkeypatch):
    module, x = module_of("classes")
    program = export._program

    monkeypatch.setattr(export, "_program", lambda module, sample: program(nn.Sequential(module, Shift()), sample))
    (tmp_path / f"model.{suffix}").write_text("what was there before")
    with pytest.raises(ExportError, match=r"differ from the model's by 1\.0e-03, .* was not written"):
        SAVERS[suffix](module, x, tmp_path / f"model.{suffix}")
    assert (tmp_path / f"model.{suffix}").read_text() == "what was there before"
    assert len(list(tmp_path.iterdir())) == 1


class Shift(nn.Module):
    """An error of a thousandth."""

    def forward(self, x):
        return x + 1e-3


class Unexportable(nn.Module):
    """Its work depends on its numbers, which an export cannot follow."""

    def forward(self, x):
        return x * 2 if float(x.sum()) > 0 else x


class Fixed(nn.Module):
    """Its answers for one sample have another shape."""

    def forward(self, x):
        return x[:, 0] if len(x) == 1 else x


@pytest.mark.parametrize("module", [Unexportable(), Fixed()], ids=["values", "sizes"])
@pytest.mark.parametrize("suffix", SAVERS)
def test_what_cannot_be_exported_is_said_in_one_sentence(module, suffix, tmp_path):
    with pytest.raises(ExportError) as caught:
        SAVERS[suffix](module, torch.randn(3, 2), tmp_path / f"model.{suffix}")
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
    assert not list(tmp_path.iterdir())


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "find_spec", lambda name: None if name != "onnx" else find_spec(name))
    module, x = module_of("classes")
    with pytest.raises(NeedError, match=r"ONNX needs onnxscript and onnxruntime: pip install 'thetafield\[onnx\]'"):
        save_onnx(module, x, tmp_path / "model.onnx")
    save_program(module, x, tmp_path / "model.pt2")


@pytest.mark.parametrize("case", CASES)
def test_a_compiled_model_answers_as_it_does(case):
    """The graph is what every backend gets; code is made from it where a compiler is found, in the next test."""
    module, x = module_of(case)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="aot_eager")
    for batch in (x, x[:1]):
        torch.testing.assert_close(compiled(batch), module(batch), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile makes C++ on the CPU: there is no compiler")
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_a_model_compiled_to_machine_code_answers_as_it_does():
    module, x = module_of("numbers")
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(module)(x), module(x), rtol=1e-5, atol=1e-5)


def test_a_descriptor_is_read_from_text():
    model = fit("classes")[0].model_
    assert torch.equal(parse_descriptor(model, " -12.5, 3e1"), torch.tensor([-12.5, 30.0]))
    assert parse_descriptor(model, None).shape == (0,)
    for text, message in {"1,a": "but got 'a'", "1,,2": "but got ''", "1,nan": "finite numbers, but got 'nan'"}.items():
        with pytest.raises(OptionError, match=re.escape(message)):
            parse_descriptor(model, text)


def test_dates_are_read_as_the_table_had_them():
    days = pd.date_range("2020-01-01", periods=6, freq="40D")[DOMAIN]
    table = pd.DataFrame({"x": RNG.normal(size=60), "y": DOMAIN % 2, "day": days, "height": Z[:, 0]})
    domains = DomainSet.from_frame(table, target="y", descriptors=["day", "height"], classification=True)
    estimator = FieldClassifier("erm-d", **QUICK).fit(domains)
    x = torch.randn(5, 1)
    module = estimator.model_.model_at(parse_descriptor(estimator.model_, "2020-03-01, 0.25"))
    torch.testing.assert_close(module(x), estimator.model_at({"day": "2020-03-01", "height": 0.25})(x))
    with pytest.raises(DataError, match="which is no date"):
        parse_descriptor(estimator.model_, "soon,0.25")


@pytest.mark.parametrize("case", ["numbers", "bytes"])
def test_made_up_samples_are_of_the_right_kind(case):
    estimator, x = fit(case)
    samples = made_up_samples(estimator.model_, x.dtype)
    assert samples.dtype == x.dtype and samples.shape[1:] == x.shape[1:]
    low, high = samples.double().aminmax()
    assert (low < x.double().max()) and (high > x.double().min()), "far from the training inputs"


def test_the_kind_of_file_is_its_suffix(tmp_path):
    model = fit("classes")[0].model_
    with pytest.raises(OptionError, match=r"ends in \.pt2 .* or \.onnx, but got 'model\.pth'"):
        export_model(model, "0.5,0.5", tmp_path / "model.pth")
    with pytest.raises(OptionError, match="did you mean 'float32'"):
        export_model(model, "0.5,0.5", tmp_path / "model.pt2", "float23")


def thetafield(*words, cwd):
    command = [sys.executable, "-W", "error", "-m", "thetafield", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_export_on_the_command_line(tmp_path):
    estimator, x = fit("numbers")
    estimator.save(tmp_path / "field")
    for name in ("model.onnx", "model.pt2"):
        done = thetafield("export", "field", "--z", "0.3,0.6", "--out", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"The model at z = (0.3,0.6) is in {name}.\n" and not done.stderr
        torch.testing.assert_close(run(tmp_path / name, x), module_of("numbers")[0](x).detach(), rtol=1e-5, atol=1e-5)
    for words, sentence in {
        ("field", "--z", "0.3"): "model_at takes one descriptor with 2 numbers (z0, z1), but got shape (1,).",
        ("nowhere", "--z", "0.3,0.6"): "There is no folder nowhere",
    }.items():
        done = thetafield("export", *words, "--out", "other.pt2", cwd=tmp_path)
        assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr
        assert not (tmp_path / "other.pt2").exists()
