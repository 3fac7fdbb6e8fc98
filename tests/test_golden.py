"""Twenty steps of every method, pinned: a change of these numbers is a change of the method."""

import json
from pathlib import Path

import pytest
import torch

from thetafield.methods import METHODS
from thetafield.methods.base import DirectMethod
from thetafield.options import schema
from thetafield.testing.toys import make_learner, make_method, toy_problem
from thetafield.training import fit

GOLDEN = Path(__file__).parent / "golden.json"
ADVICE = (
    "if that is meant, raise its `revision`, so that stored trials of before do not count, and run python "
    "tests/test_golden.py"
)


def run(name):
    """Train for about twenty steps in double precision; return the last loss, θ at one descriptor and the revision."""
    return {"revision": METHODS[name].revision, "search": search(name), **numbers(name)}


def search(name):
    """Return what tuning draws from and fit chooses among: other ones give other results under the same options."""
    entry = METHODS[name]
    spaces = [{option: str(each) for option, each in entry.space.items()}, entry.choices, entry.foundations]
    return json.loads(json.dumps([*spaces, entry.choices_of_few]))


def numbers(name):
    small = {"steps": 20, "tune_steps": 20, "epochs": 10, "block": 3, "min_samples": 2}
    problem = toy_problem(ordered=METHODS[name].needs.ordered)
    options = {key: value for key, value in small.items() if key in schema(METHODS[name])}
    z = torch.tensor([[0.3, 0.6]], dtype=torch.float64)[:, : problem.domains.z.shape[1]]
    if issubclass(METHODS[name], DirectMethod):
        answers = make_learner(name, problem, **options).learn(lambda done, total: None)
        return {"answer": answers(problem.domains.x[:1], z)[0].tolist()}
    method = make_method(name, problem, **options)
    history = fit(method).history
    theta = method.field()(z)[0].detach()
    return {"loss": history[-1]["loss"], "theta_norm": float(theta.norm()), "theta": theta[:3].tolist()}


@pytest.mark.parametrize("name", METHODS.names())
def test_golden_run(name):
    expected = json.loads(GOLDEN.read_text())
    assert name in expected, f"no golden run of {name}: python tests/test_golden.py writes it"
    assert is_same(run(name), expected[name]), f"{name} gives other results: {ADVICE}"


def is_same(got, expected):
    numbers = {key: value for key, value in expected.items() if key != "search"}
    same = all(got[key] == pytest.approx(value, rel=1e-6) for key, value in numbers.items())
    return same and got["search"] == expected["search"]


def write():
    """Write the golden runs anew; a method that gives other results has to say so by its revision."""
    known = json.loads(GOLDEN.read_text())
    found = {name: run(name) for name in METHODS.names()}
    for name, got in found.items():
        before = known.get(name, got)
        if not is_same(got, before) and got["revision"] <= before["revision"]:
            raise SystemExit(f"{name} gives other results: {ADVICE}")
    # Only what has changed is written: other machines have other last digits.
    found = {
        name: known[name] | {"search": got["search"]} if name in known and is_same(got, known[name]) else got
        for name, got in found.items()
    }
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    write()
