"""A backbone that does not change is passed once: the same results, and far fewer passes."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from thetafield.methods import base
from thetafield.methods.base import Problem
from thetafield.predictors.base import PREDICTORS, Predictor
from thetafield.predictors.perceptron import perceptron
from thetafield.predictors.temporal import LastState
from thetafield.streams import seeded
from thetafield.testing import check_predictor
from thetafield.testing.toys import make_method, toy_problem
from thetafield.training.fit import fit

BRIEF = {"base_steps": 20, "tune_steps": 30, "epochs": 3, "neighbours": 2}


def series(steps: int = 9) -> Problem:
    """The toy problem with series of `steps` steps for inputs."""
    toy = toy_problem(sizes=(20,))
    x = torch.randn(len(toy.domains.x), steps, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with seeded(0, "start"):
        predictor = PREDICTORS["temporal"]((steps, 2), 2, channels=4, hidden=(5,)).double()
    return replace(toy, domains=replace(toy.domains, x=x), predictor=predictor)


@pytest.mark.parametrize(
    "options", [{}, {"freeze": True}, {"epochs": 0}, {"metric": False, "freeze": True, "samples": 0}], ids=str
)
def test_the_same_field_with_fewer_passes(options, monkeypatch):
    passed = []
    monkeypatch.setattr(
        LastState, "forward", lambda self, x, old=LastState.forward: (passed.append(len(x)), old(self, x))[1]
    )
    found = []
    for steady in (True, False):
        monkeypatch.setattr(LastState, "steady", steady)
        passed.clear()
        method = make_method("neurallio", series(), **{**BRIEF, **options})
        fit(method)
        found.append((method.field().eval(), sum(passed)))
    z = torch.rand(7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(found[0][0](z), found[1][0](z), rtol=1e-6, atol=1e-9)
    assert found[0][1] < found[1][1]


def test_a_second_training_sees_the_backbone_as_it_is_then():
    method = make_method("neurallio", series(), **BRIEF)
    risks, found = method.probes.risks, []

    def watched():
        found.append((method.probes.seen.domains.x, method.predictor.features(method.problem.domains.x[None])[0]))
        return risks()

    method.probes.risks = watched
    for _ in range(2):
        fit(method)
        method.probes.known = method.problem  # whatever is left from before
    for known, now in found:
        torch.testing.assert_close(known, now)
    assert not torch.equal(found[0][0], found[1][0])


def test_what_saves_nothing_or_is_not_always_the_same_stays_as_it_is(monkeypatch):
    problem = series()
    rows = len(problem.domains.x)
    assert problem.beyond(rows - 1) is problem
    known = problem.beyond(rows)
    assert known.domains.x.shape == (rows, 4) and known.predictor.dim == problem.predictor.dim
    monkeypatch.setattr(base, "MOST_FEATURES", 4 * rows - 1)
    assert problem.beyond(rows) is problem
    monkeypatch.undo()
    plain = toy_problem()
    assert plain.beyond(10**6) is plain
    dropped = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
    random = replace(plain, predictor=Predictor(perceptron([4, 5, 2]), dropped).double())
    assert random.beyond(10**6) is random


def test_a_backbone_that_is_not_as_steady_as_it_says_is_found_out(monkeypatch):
    monkeypatch.setattr(
        LastState,
        "forward",
        lambda self, x, old=LastState.forward: nn.functional.dropout(old(self, x), 0.5, self.training),
    )
    with pytest.raises(AssertionError, match="says that it is steady"):
        check_predictor("temporal", (24, 3))
