"""Methods without θ: the same predict, the same scores, and a clear word where θ is asked for."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from thetafield import DomainSet, FieldClassifier, FieldRegressor, load_field
from thetafield.bench import run_trial
from thetafield.datasets import DATASETS
from thetafield.errors import NeedError
from thetafield.fields.storage import load_model
from thetafield.methods.trees import planted
from thetafield.testing.toys import make_learner, toy_problem

SMALL = {"rounds": 20, "min_samples": 5}
ROLES = {"target": "y", "descriptors": ["u", "v"]}


def table(seed=0):
    stream = np.random.default_rng(seed)
    z = np.repeat(stream.uniform(size=(10, 2)), 40, axis=0)
    X = stream.normal(size=(400, 3))
    return X, X[:, 0] * np.cos(3 * z[:, 0]) + X[:, 1] * np.sin(3 * z[:, 0]), z


def test_a_classifier_of_trees_equals_scikit_learn_in_one_piece():
    """Growing in pieces, for the sake of progress, changes nothing."""
    X, signal, z = table()
    est = FieldClassifier("trees", options=SMALL, random_state=0).fit(X, signal > 0, z=z)
    assert set(est.classes_) == {False, True}
    np.testing.assert_allclose(est.predict_proba(X, z=z).sum(1), 1)
    assert est.score(X, signal > 0, z=z) > 0.9
    problem = toy_problem()
    domains = problem.domains
    answers = make_learner("trees", problem, rounds=25, min_samples=2).learn(lambda done, total: None)
    z = domains.z.repeat_interleave(domains.sizes, dim=0)
    columns = torch.cat([domains.x, z], 1).numpy()
    reference = HistGradientBoostingClassifier(max_iter=25, min_samples_leaf=2, early_stopping=False)
    reference.fit(columns, domains.y.numpy())
    np.testing.assert_allclose(answers(domains.x, z).exp().numpy(), reference.predict_proba(columns), rtol=1e-12)


def test_one_booster_for_each_target():
    problem = toy_problem(regression=True)
    domains = problem.domains
    answers = make_learner("trees-x", problem, rounds=15, min_samples=2).learn(lambda done, total: None)
    got = answers(domains.x, torch.zeros(len(domains.x), 2))
    for column in (0, 1):
        reference = HistGradientBoostingRegressor(max_iter=15, min_samples_leaf=2, early_stopping=False)
        reference.fit(domains.x.numpy(), domains.y[:, column].numpy())
        np.testing.assert_allclose(got[:, column].numpy(), reference.predict(domains.x.numpy()), rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_a_regressor_of_trees(loss):
    X, signal, z = table()
    est = FieldRegressor("trees", options=SMALL, loss=loss, random_state=0).fit(X, 1000 + 50 * signal, z=z)
    assert est.score(X, 1000 + 50 * signal, z=z) > 0.8
    assert est.predict(X, z=z).shape == (400,)
    assert est.relevance_ == {} and est.trust(z).shape == (400,)


def test_trees_have_no_theta_and_say_so(tmp_path):
    X, signal, z = table()
    est = FieldClassifier("trees", options=SMALL).fit(X, signal > 0, z=z)
    est.save(tmp_path / "field")
    for ask in (lambda: est.model_at(z[0]), lambda: est.field_(z), lambda: load_model(tmp_path / "field")):
        with pytest.raises(NeedError, match=r"trees has no .*θ"):
            ask()


@pytest.mark.parametrize("method", ["trees", "trees-x"])
def test_trees_are_saved_as_plain_arrays_and_answer_the_same(method, tmp_path):
    X, signal, z = table()
    X[::7, 1] = np.nan
    kinds = (FieldClassifier, np.digitize(signal, [-0.5, 0.5])), (FieldRegressor, signal), (FieldClassifier, signal > 0)
    for number, (kind, y) in enumerate(kinds):
        domains = DomainSet.from_frame({"a": X[:, 0], "b": X[:, 1], "y": y, "u": z[:, 0], "v": z[:, 1]}, **ROLES)
        est = kind(method, options=SMALL, random_state=0).fit(domains)
        est.save(tmp_path / str(number))
        loaded = load_field(tmp_path / str(number))
        rows = {"a": X[:, 0], "b": X[:, 1], "u": z[:, 0], "v": z[:, 1]}
        np.testing.assert_array_equal(loaded.predict(rows), est.predict(rows))
        np.testing.assert_array_equal(loaded.trust(z), est.trust(z))
        content = (tmp_path / str(number) / "field.json").read_text()
        assert "forest" in content and "sklearn" not in content


def test_missing_values_and_leaves_at_the_root_go_where_scikit_learn_sends_them():
    stream = np.random.default_rng(0)
    X = stream.normal(size=(500, 4)).astype(np.float32)
    X[stream.uniform(size=X.shape) < 0.2] = np.nan
    for y in (stream.integers(0, 3, 500), np.zeros(500, int), X[:, 0] > 0):
        booster = HistGradientBoostingClassifier(max_iter=12).fit(X, y)
        got = planted([booster], 3, False)(torch.from_numpy(X), torch.zeros(500, 0)).exp()[
            :, booster.classes_.astype(int)
        ]
        expected = booster.predict_proba(X) if len(booster.classes_) > 1 else np.ones((500, 1))
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)


def test_trees_on_x_ignore_the_descriptor():
    X, signal, z = table()
    est = FieldClassifier("trees-x", options=SMALL, random_state=0).fit(X, signal > 0, z=z)
    np.testing.assert_array_equal(est.predict_proba(X, z=z), est.predict_proba(X, z=1 - z))


def test_a_class_that_no_training_sample_has_is_never_answered():
    problem = toy_problem()
    domains = problem.domains
    domains = type(domains)(**{**vars(domains), "classes": np.array(["a", "b", "c"])})
    problem = type(problem)(domains, problem.predictor, problem.loss, problem.seed)
    answers = make_learner("trees", problem, min_samples=2).learn(lambda done, total: None)
    got = answers(domains.x, torch.zeros(len(domains.x), 2))
    assert got.shape[1] == 3 and (got.argmax(1) < 2).all() and torch.isfinite(got).all()


def test_a_single_class_in_training_is_always_answered():
    problem = toy_problem()
    domains = problem.domains
    domains = type(domains)(**{**vars(domains), "y": torch.ones_like(domains.y)})
    problem = type(problem)(domains, problem.predictor, problem.loss, problem.seed)
    got = make_learner("trees", problem).learn(lambda done, total: None)(domains.x, torch.zeros(len(domains.x), 2))
    assert got.shape[1] == 2 and (got.argmax(1) == 1).all()


def test_a_trial_of_trees(tmp_path):
    options = {"num_train": 6, "num_test": 3}
    result = run_trial(
        "two-moons", "trees", seed=0, out=tmp_path, options={"rounds": 10}, dataset_options=options, device="cpu"
    )
    assert result["laws"] is None and result["relevance"] == {} and 0 < result["score"] < 60
    assert len(result["per_domain"]) == 3 + 441
    assert sorted(path.name for path in tmp_path.iterdir()) == ["field", "history.json", "result.json"]
    data = DATASETS["two-moons"](0, **options)
    assert result["groups"]["random"]["domains"] == len(data.test["random"])
