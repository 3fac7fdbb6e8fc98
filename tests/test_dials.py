"""What of a field is set after training."""

import math

import numpy as np
import pytest

from chosen import TINY, informed_domains, quick_train
from thetafield.evaluation import choosing, scores
from thetafield.evaluation.choosing import choose
from thetafield.evaluation.dials import dialled_errors, least, turn
from thetafield.evaluation.scores import evaluate
from thetafield.fields.transported import TransportedField


def test_errors_under_every_dial_are_those_of_one_at_a_time(monkeypatch):
    monkeypatch.setattr(scores, "CELLS", 5 * 40 * 2)  # five domains of forty samples at a time
    domains = informed_domains(24)
    model = quick_train()(domains, options=TINY).model
    found = dialled_errors(model, domains, {})
    assert len(found) == 61
    for dials, errors in list(found.items())[::7]:
        turn(model.field, dict(dials))
        assert np.array_equal(evaluate(model, domains).per_domain, errors)
    assert len({errors.tobytes() for errors in found.values()}) > 3


def test_a_dial_without_finite_answers_is_not_turned_to(monkeypatch):
    """Far away what charts carry may have no bounds: a share of nothing still answers."""
    domains = informed_domains(24)
    model = quick_train()(domains, options=TINY).model
    carried = TransportedField.thetas
    monkeypatch.setattr(TransportedField, "thetas", lambda self, z: carried(self, z) / (z.amax(1, keepdim=True) < 0.99))
    found = dialled_errors(model, domains, {})
    finite = [np.isfinite(errors).all() for errors in found.values()]
    assert any(finite) and not all(finite)
    assert math.isfinite(least(found))


@pytest.mark.parametrize("given", [{"bandwidth": 0.3}, {"blend": 2}, {"blend": 2, "bandwidth": 0.3}, {"shrink": 0.5}])
def test_what_is_given_is_not_turned(given):
    domains = informed_domains(24)
    model = quick_train()(domains, options=TINY).model
    found = [dict(dials) for dials in dialled_errors(model, domains, given)]
    assert all(dials | given == dials for dials in found)
    assert len(found) == len({tuple(dials.items()) for dials in found}) > 1


def test_what_is_given_stays_where_it_makes_no_difference(monkeypatch):
    monkeypatch.setattr(choosing, "JUDGED", 6)  # one fold
    fixed = TINY | {"epochs": 0, "metric": False, "shrink": 0.5, "bandwidth": 0.3}
    choice = choose(informed_domains(24), "neurallio", quick_train(), seed=0, fixed=fixed)
    assert choice.options | {"shrink": 0.5, "bandwidth": 0.3} == choice.options
