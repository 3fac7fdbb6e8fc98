"""One training domain, or domains smaller than a batch: one sentence, or an answer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from thetafield import DomainSet, FieldClassifier
from thetafield.errors import NeedError
from thetafield.methods import METHODS
from thetafield.options import schema
from thetafield.testing.toys import make_learner, make_method, toy_problem
from thetafield.training import fit


@pytest.mark.parametrize("name", [name for name, entry in METHODS if entry.needs.min_domains > 1])
def test_a_single_training_domain_is_refused(name):
    entry = METHODS[name]
    x, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    domains = DomainSet.from_arrays(x, y, z=np.ones((4, 1)))
    with pytest.raises(NeedError, match=f"needs at least {entry.needs.min_domains} training domains, but hall has 1"):
        entry.check_needs(domains, ordered=True, where="hall")


@pytest.mark.parametrize("name", [name for name, entry in METHODS if entry.needs.min_domains == 1])
def test_a_single_training_domain_is_enough_where_nothing_else_is_said(name):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    small = {"drain": {"epochs": 1}, "trees": {"rounds": 5}, "trees-x": {"rounds": 5}}
    few = {"steps": 10, "tune_steps": 5} if name in ("nda", "interpolate") else {"steps": 10}
    est = FieldClassifier(name, options=small.get(name, few), random_state=0).fit(X, y, z=np.ones((60, 1)))
    assert est.predict(X, z=1.0).shape == (60,)


@pytest.mark.parametrize("name", METHODS.names())
def test_domains_smaller_than_a_batch(name):
    """Draws are with replacement, and a mini-batch holds no more than there is."""
    problem = toy_problem(ordered=METHODS[name].needs.ordered, sizes=(2, 3))
    if name in ("trees", "trees-x"):
        answers = make_learner(name, problem, min_samples=20).learn(lambda done, total: None)
        assert torch.isfinite(answers(problem.domains.x, torch.zeros(15, 2))).all()
        return
    if name == "tknets":
        problem = replace(problem, domains=replace(problem.domains, y=torch.tensor([0, 1, 0, 1, 1] * 3)))
    given = {key: 64 for key in ("samples", "batch") if key in schema(METHODS[name])}
    method = make_method(name, problem, **given)
    history = fit(method).history
    assert all(np.isfinite(record["loss"]) for record in history)
