"""`thetafield speed`: what it writes holds together, and what it compares is the same work. No time is asserted."""

import json
import subprocess
import sys
from itertools import islice
from types import SimpleNamespace

import matplotlib as mpl
import pytest
import torch
from matplotlib.figure import Figure as Drawing

from thetafield import cli
from thetafield.data.domains import DomainBatch
from thetafield.report.figures.speed import save_speed, speed_figure
from thetafield.speed import paper, scaling
from thetafield.speed.findings import Curve, Figure, PowerLaw
from thetafield.speed.loops import LOOPS, as_list
from thetafield.speed.problems import images, learner, moons, two_moons
from thetafield.speed.sections import SECTIONS
from thetafield.speed.stepping import Stepping
from thetafield.speed.table import speed_table
from thetafield.speed.timing import Bench, Work
from thetafield.streams import seeded

CPU = torch.device("cpu")
ONCE = Bench(CPU, quick=True, turns=1, span=0.0)
PNG = b"\x89PNG\r\n\x1a\n"


# The command as it is, with one turn of everything and ten of the fifty domains.
SCRIPT = """
from thetafield import cli
from thetafield.speed import paper, problems, run
run.QUICK = {"turns": 1, "span": 0.0}
paper.two_moons = lambda: problems.two_moons().select(range(10))
cli.main()
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The record that the command printed, and its folder."""
    out = tmp_path_factory.mktemp("speed") / "out"
    sections = "exponential,epoch,capture"
    words = ["speed", "--quick", "--only", sections, "--device", "cpu", "--json", "--out", str(out)]
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), out


def test_record_has_its_fields(measured):
    record, out = measured
    assert record == json.loads((out / "speed.json").read_text())
    assert set(record) >= {"figures", "scaling", "machine", "versions", "command", "seconds"}
    assert record["sections"] == ["epoch", "exponential", "capture"] and record["scaling"] == {}
    assert record["machine"]["device"] and {"thetafield", "torch", "python"} <= set(record["versions"])
    assert "--quick" in record["command"] and "--only exponential,epoch,capture" in record["command"]
    assert [entry["section"] for entry in record["figures"]] == ["epoch", "epoch", "exponential"]
    assert [(entry["section"], entry["why"]) for entry in record["skipped"]] == [("capture", "there is no GPU")]


def test_a_ratio_is_reference_over_value(measured):
    for entry in measured[0]["figures"]:
        assert set(entry) >= {"name", "value", "unit", "reference", "ratio", "against", "reference_measured"}
        assert entry["value"] > 0 and entry["reference"] > 0 and entry["reference_measured"]
        assert entry["ratio"] == pytest.approx(entry["reference"] / entry["value"])
    coders = measured[0]["figures"][:2]
    assert coders[0]["reference"] == coders[1]["reference"]  # both against the loop with the paper's coder
    alone = Figure("charts", 2.0, "s").record()
    assert alone["reference"] is alone["ratio"] is alone["reference_measured"] is None


def test_files_are_the_record_and_a_picture(measured):
    out = measured[1]
    assert sorted(path.name for path in out.iterdir()) == ["speed.json", "speed.png"]
    assert (out / "speed.png").read_bytes().startswith(PNG)


def test_exponent_of_made_up_data():
    sizes = [10, 100, 1000, 10_000]
    law = PowerLaw.fit(sizes, [5.0, *(3e-4 * size**1.25 for size in sizes[1:])], start=100)
    assert law.exponent == pytest.approx(1.25) and law.factor == pytest.approx(3e-4) and law.start == 100
    assert PowerLaw.fit(sizes, [7.0] * 4).exponent == pytest.approx(0.0, abs=1e-12)


def test_everything_has_its_turn():
    calls = []
    works = {
        "slow": Work(lambda: calls.append("slow"), warm=lambda: calls.append("set up")),
        "fast": Work(lambda: calls.append("fast"), units=10),
    }
    seconds = Bench(CPU, turns=2, span=0.0).time(works)
    assert calls == ["set up", "fast", *["slow", "fast"] * 2]
    assert set(seconds) == {"slow", "fast"} and all(value >= 0 for value in seconds.values())


@pytest.mark.parametrize("name", LOOPS)
def test_loops_take_the_librarys_steps(name):
    """Loss and gradient of the first two batches agree in double precision, so that only the loop is compared."""
    method = learner(name, two_moons(), CPU, {"samples": 8}).double()
    phase, loop = method.phases()[-1], LOOPS[name](method)
    for number, batch in enumerate(islice(phase.batches(0), 2)):
        batch = DomainBatch(batch.x.double(), batch.y, torch.full_like(batch.weight, 1 / 8).double(), batch.index)
        with seeded(number, "noise"):
            loss = sum(phase.players[0].loss(batch).values())
        (gradient,) = torch.autograd.grad(loss, method.learned.theta)
        with seeded(number, "noise"):
            expected = loop.backward(as_list(batch))
        slopes = {key: parameter.grad for key, parameter in loop.network.named_parameters()}
        torch.testing.assert_close(loss.item(), expected, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(gradient, method.predictor.spec.flatten(slopes), rtol=1e-9, atol=1e-12)


def test_loops_train_the_network():
    method = learner("erm", two_moons(), CPU, {"samples": 8})
    loop = LOOPS["erm"](method)
    before = [parameter.clone() for parameter in loop.network.parameters()]
    loop.run()
    assert not any(torch.equal(a, b) for a, b in zip(before, loop.network.parameters(), strict=True))


def test_moons_are_many_domains_of_half_floats():
    domains = moons(30, CPU, samples=50)
    assert len(domains) == 30 and domains.x.shape == (1500, 2) and domains.x.dtype == torch.float16
    assert domains.sizes.tolist() == [50] * 30 and set(domains.y.tolist()) == {0, 1}
    # Turned back and scaled back, a sample lies on one of the two half circles.
    scale, turn = (1 + domains.z[:, 0]).repeat_interleave(50), (2 * torch.pi * domains.z[:, 1]).repeat_interleave(50)
    across = (turn.cos() * domains.x[:, 0] + turn.sin() * domains.x[:, 1]) / scale
    up = (turn.cos() * domains.x[:, 1] - turn.sin() * domains.x[:, 0]) / scale
    radius = (across - domains.y).square() + (up - 0.5 * domains.y).square()
    torch.testing.assert_close(radius, torch.ones(1500), atol=1e-2, rtol=0)
    pictures = images(2, CPU)
    assert pictures.x.shape == (2000, 3, 28, 28) and pictures.x.dtype == torch.uint8 and pictures.num_outputs == 10


def test_steps_go_on_after_the_last_epoch():
    method = learner("neurallio", moons(10, CPU, samples=8), CPU, {"epochs": 1, "block": 5, "samples": 4})
    before = method.learned.theta.detach().clone()
    stepping = Stepping(method)
    for _ in range(3):
        stepping.run()
    assert stepping.steps.units == 2 and stepping.epochs.units == 1 and stepping.optimiser_bytes > 0
    assert not torch.equal(before, method.learned.theta)
    assert Stepping(method, steps=50).steps.units == 2  # no more than an epoch has


@pytest.mark.parametrize("name", ["domains", "parameters"])
def test_growth_is_measured_and_drawn(name, monkeypatch, measured, tmp_path):
    monkeypatch.setattr(scaling, "MOST_DOMAINS", {"quick": 10**3})
    monkeypatch.setattr(scaling, "WIDTHS", (4, 8, 16))
    monkeypatch.setattr(scaling, "SAMPLES", 8)
    monkeypatch.setattr(scaling, "BLOCK", 8)
    curve, *figures = SECTIONS[name](ONCE)
    assert isinstance(curve, Curve) and curve.name == name and figures
    content = curve.record()
    sizes = {"domains": [10, 100, 1000], "parameters": [42, 114, 354]}[name]
    assert [point[name] for point in content["points"]] == sizes
    assert all(point["step_seconds"] > 0 and point["optimiser_bytes"] > 0 for point in content["points"])
    assert all(point["peak_bytes"] is None for point in content["points"])  # nobody counts on a CPU
    assert content["fitted_from"] == {"domains": 100, "parameters": 42}[name]
    record = measured[0] | {"scaling": {name: content}}
    record["figures"] = [entry.record() | {"section": name} for entry in figures]
    record["figures"][0] |= {"reference": 450.0, "ratio": 0.5, "against": "a constant", "reference_measured": False}
    save_speed(record, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(PNG)
    table = speed_table(record)
    assert table.row_count == len(figures) + 1 + len(record["skipped"]) and "* stated" in table.caption


def test_figure_leaves_the_settings_alone(measured):
    before = dict(mpl.rcParams)
    assert isinstance(speed_figure(measured[0]), Drawing)
    assert isinstance(speed_figure(measured[0] | {"figures": []}), Drawing)
    assert dict(mpl.rcParams) == before


def test_help_names_every_section():
    assert f"Sections: {', '.join(SECTIONS)}." in cli.tools.speed.__doc__


def test_weights_of_the_coders_are_counted_anywhere():
    weights, skipped = SECTIONS["memory"](ONCE)
    assert weights.unit == "weights" and weights.value < weights.reference and "no GPU" in skipped.why


def test_the_shortest_good_training_is_a_figure_with_a_stated_reference(monkeypatch):
    """Lengths are tried in rising order up to the first whose error is small enough; the record says that."""
    errors = {50: 4.0, 100: 0.9}
    monkeypatch.setattr(
        paper, "_train", lambda bench, method, options: SimpleNamespace(seconds=float(options["epochs"]))
    )
    monkeypatch.setattr(paper, "_error", lambda trained: errors.get(int(trained.seconds), 5.0))
    figure = paper._shortest(ONCE, 450.0)
    assert (figure.value, figure.ratio, figure.reference_measured) == (100.0, 4.5, False)
    assert [tried["epochs"] for tried in figure.record()["trainings"]] == [50, 100]
    errors.clear()
    assert "not reached" in paper._shortest(ONCE, 450.0).why
