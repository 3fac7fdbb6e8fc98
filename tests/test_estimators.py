"""The scikit-learn face."""

import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from thetafield import DomainSet, FieldClassifier, FieldRegressor
from thetafield.errors import DataError, OptionError
from thetafield.fields import model as field_model

QUICK = {
    "erm": {"steps": 20},
    "erm-d": {"steps": 20},
    "nda": {"steps": 20, "tune_steps": 20},
    "neurallio": {"epochs": 2, "base_steps": 20, "tune_steps": 5, "latent_dim": 4, "neighbours": 2, "samples": 8},
}


@pytest.mark.parametrize("name", ["FieldClassifier", "FieldRegressor"])
def test_scikit_learns_own_checks_pass_in_full(name):
    """In a process of its own, as a user runs the library: without the shape checks, which slow a step fivefold."""
    script = (
        "import sys; from sklearn.utils.estimator_checks import check_estimator\n"
        f"from thetafield import {name} as Estimator\n"
        "results = check_estimator(Estimator(), on_skip=None, on_fail=None)\n"
        "failed = [(r['check_name'], r['exception']) for r in results if r['status'] == 'failed']\n"
        "passed = [r for r in results if r['status'] == 'passed']\n"
        "sys.exit(str(failed) if failed or len(passed) < 50 else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def rows(num_domains=6, num_rows=120, seed=0):
    """Rows of domains of uneven size whose boundary turns with z: X (M, 3), a number, a label, z (M, 2), domain."""
    rng = np.random.default_rng(seed)
    domain = np.sort(rng.integers(num_domains, size=num_rows))
    domain[:num_domains] = np.arange(num_domains)
    rng.shuffle(domain)
    z = rng.uniform(size=(num_domains, 2))[domain]
    X = rng.normal(loc=5, scale=3, size=(num_rows, 3))
    number = (X[:, 0] - 5) * np.cos(3 * z[:, 0]) + (X[:, 1] - 5) * np.sin(3 * z[:, 0]) + 100
    return X, number, np.where(number > 100, "warm", "cold"), z, domain


X, NUMBER, LABEL, Z, DOMAIN = rows()


def classifier(method="erm-d", **parameters):
    return FieldClassifier(method, options=QUICK[method], random_state=0, **parameters)


def regressor(method="erm-d", **parameters):
    return FieldRegressor(method, options=QUICK[method], random_state=0, **parameters)


@pytest.fixture(scope="module", params=sorted(QUICK))
def fitted(request):
    """A classifier and a regressor of each kind of field."""
    return (
        classifier(request.param).fit(X, LABEL, z=Z, domain=DOMAIN),
        regressor(request.param).fit(X, NUMBER, z=Z, domain=DOMAIN),
    )


def test_routes_descriptors_through_pipelines_and_searches():
    with config_context(enable_metadata_routing=True):
        model = (
            classifier()
            .set_fit_request(z=True, domain=True)
            .set_predict_request(z=True)
            .set_predict_proba_request(z=True)
            .set_score_request(z=True)
        )
        pipeline = make_pipeline(StandardScaler(), model).fit(X, LABEL, z=Z, domain=DOMAIN)
        alone = clone(model).fit(StandardScaler().fit_transform(X), LABEL, z=Z, domain=DOMAIN)
        assert_array_equal(pipeline.predict(X, z=Z), alone.predict(StandardScaler().fit_transform(X), z=Z))
        assert 0 <= pipeline.score(X, LABEL, z=Z) <= 1

        grid = {"fieldclassifier__options": [{"steps": 5}, {"steps": 10}]}
        search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=GroupKFold(2), error_score="raise")
        search.fit(X, LABEL, z=Z, domain=DOMAIN, groups=DOMAIN)
        assert search.best_params_["fieldclassifier__options"] in grid["fieldclassifier__options"]
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert set(search.best_estimator_.predict(X, z=Z)) <= {"cold", "warm"}
        assert search.best_estimator_[-1].model_.recipe.descriptors == ("z0", "z1")


def test_numpy_pandas_polars_and_torch_agree():
    plain = classifier().fit(X, LABEL, z=Z, domain=DOMAIN)
    expected = plain.predict_proba(X, z=Z)
    features, descriptors = ["a", "b", "c"], ["lat", "lon"]
    frames = pd.DataFrame(X, columns=features), pd.Series(LABEL), pd.DataFrame(Z, columns=descriptors)
    of_pandas = classifier().fit(*frames, pd.Series(DOMAIN))
    assert_array_equal(of_pandas.predict_proba(frames[0], z=frames[2]), expected)
    polar = pl.DataFrame(X, schema=features), pl.Series(LABEL), pl.DataFrame(Z, schema=descriptors)
    of_polars = classifier().fit(*polar, domain=pl.Series(DOMAIN))
    assert_array_equal(of_polars.predict_proba(polar[0], z=polar[2]), expected)
    tensors = torch.from_numpy(X), torch.from_numpy((LABEL == "warm").astype(int)), torch.from_numpy(Z)
    of_torch = classifier().fit(*tensors, torch.from_numpy(DOMAIN))
    assert_array_equal(of_torch.predict_proba(tensors[0], z=tensors[2]), expected)
    of_lists = classifier().fit(X.tolist(), LABEL.tolist(), z=Z.tolist(), domain=DOMAIN.tolist())
    assert_array_equal(of_lists.predict_proba(X.tolist(), z=Z.tolist()), expected)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "string", "category"])
def test_labels_of_pandas_types(dtype):
    labels = pd.Series(LABEL == "warm").astype({"Int64": int, "Float64": float}.get(dtype, bool)).astype(dtype)
    answers = classifier().fit(X, labels, z=Z).predict(X, z=Z)
    assert set(answers.tolist()) <= set(labels.tolist())


def test_model_at_answers_as_predict_does(fitted):
    classes, numbers = fitted
    z = Z[7]
    inputs = torch.from_numpy(X).float()
    with torch.no_grad():
        logits, values = classes.model_at(z)(inputs), numbers.model_at(z)(inputs)
    assert_array_equal(classes.classes_[logits.argmax(1)], classes.predict(X, z=z))
    assert_allclose(logits[:, 1] - logits[:, 0], classes.decision_function(X, z=z), atol=1e-4)
    assert_allclose(logits.softmax(1), classes.predict_proba(X, z=z), atol=1e-5)
    assert values.shape == (len(X),)
    assert_allclose(values, numbers.predict(X, z=z), rtol=1e-5, atol=1e-4)


def test_model_at_is_an_ordinary_module(fitted):
    for estimator in fitted:
        model = estimator.model_at(Z[0])
        assert isinstance(model, nn.Module)
        assert not model.training
        state = model.state_dict()
        assert state
        assert all(type(value) in (torch.Tensor, nn.Parameter) for value in state.values())
        assert all(value.device.type == "cpu" for value in state.values())
        other = estimator.model_at(Z[1])
        other.load_state_dict(state)
        inputs = torch.from_numpy(X).float()
        assert torch.equal(model(inputs), other(inputs))
        # It is a copy: training it does not touch the field.
        before = estimator.predict(X, z=Z[0])
        for parameter in model.parameters():
            parameter.data.zero_()
        assert_array_equal(estimator.predict(X, z=Z[0]), before)


def test_field_is_one_batched_call(fitted, monkeypatch):
    estimator = fitted[0]
    field, calls = estimator.model_.field, []
    thetas = field.thetas
    monkeypatch.setattr(field, "thetas", lambda z: calls.append(len(z)) or thetas(z))
    many = np.random.default_rng(0).uniform(-0.2, 1.2, size=(10_000, 2))
    answer = estimator.field_(many)
    assert calls == [10_000]
    assert answer.shape == (10_000, field.theta_dim)
    for i in (0, 17, 9_999):
        assert_allclose(answer[i], estimator.field_(many[i]), atol=1e-5)
        assert_allclose(answer[i], estimator.field_(many[i : i + 1])[0], atol=1e-5)
    grid = estimator.field_(many[:20].reshape(5, 4, 2))
    assert grid.shape == (5, 4, field.theta_dim)
    assert_allclose(grid.reshape(20, -1), answer[:20], atol=1e-5)
    assert estimator.field_(torch.from_numpy(many[:3])).shape == (3, field.theta_dim)


def test_rows_are_answered_with_their_own_descriptor(fitted):
    for estimator in fitted:
        together = estimator.predict(X, z=Z)
        for i in (0, 1, 50):
            one = estimator.predict(X[i : i + 1], z=Z[i])
            assert one[0] == together[i] if estimator is fitted[0] else one[0] == pytest.approx(together[i], rel=1e-5)
        order = np.random.default_rng(0).permutation(len(X))
        shuffled = estimator.predict(X[order], z=Z[order])
        if estimator is fitted[0]:
            assert_array_equal(shuffled, together[order])
        else:
            assert_allclose(shuffled, together[order], rtol=1e-6)


def test_answers_do_not_depend_on_how_many_heads_fit_in_memory(fitted, monkeypatch):
    estimator = fitted[1]
    own = np.random.default_rng(0).uniform(size=(len(X), 2))
    whole = estimator.predict(X, z=own), estimator.predict(X, z=Z)
    monkeypatch.setattr(field_model, "THETAS", 3 * estimator.model_.field.theta_dim)
    assert_allclose(estimator.predict(X, z=own), whole[0], rtol=1e-6)
    monkeypatch.setattr(field_model, "THETAS", 1)
    monkeypatch.setattr(field_model, "CELLS", 8)
    assert_allclose(estimator.predict(X, z=Z), whole[1], rtol=1e-6)


def test_one_descriptor_serves_all_rows(fitted):
    estimator = fitted[1]
    expected = estimator.predict(X, z=np.tile(Z[3], (len(X), 1)))
    for one in (Z[3], Z[3:4], Z[3].tolist(), torch.from_numpy(Z[3]), pd.Series(Z[3])):
        assert_allclose(estimator.predict(X, z=one), expected, rtol=1e-6)


def test_one_coordinate_may_come_as_a_vector():
    time = Z[:, 0]
    vector = regressor().fit(X, NUMBER, z=time)
    column = regressor().fit(X, NUMBER, z=time[:, None])
    assert_array_equal(vector.predict(X, z=time), column.predict(X, z=time[:, None]))
    assert_array_equal(vector.predict(X, z=0.5), column.predict(X, z=[[0.5]]))
    assert_array_equal(vector.predict(X, z=[0.5]), column.predict(X, z=[[0.5]]))
    assert vector.trust(time).shape == (len(X),)
    assert vector.field_(time[:, None]).shape[0] == len(X)
    assert isinstance(vector.model_at(0.5), nn.Module)


def test_trust_is_one_at_home_and_falls_with_distance(fitted):
    estimator = fitted[0]
    assert_array_equal(estimator.trust(Z), 1)
    away = estimator.trust([Z[0] + step for step in (0, 0.1, 1, 10, 1000)])
    assert ((away >= 0) & (away <= 1)).all()
    assert away[0] == 1
    assert (np.diff(away) <= 0).all()
    assert away[-1] < 1e-6
    assert_allclose(estimator.trust(Z[0]), [1])


def test_relevance_has_the_descriptors_names(fitted):
    assert set(fitted[0].relevance_) == {"z0", "z1"}
    assert all(0 <= value <= 1 for value in fitted[0].relevance_.values())
    named = classifier().fit(X, LABEL, z=pd.DataFrame(Z, columns=["lat", "lon"]), domain=DOMAIN)
    assert list(named.relevance_) == ["lat", "lon"]
    assert max(named.relevance_.values()) == 1


def test_descriptors_with_names_are_asked_for_by_name():
    table = pd.DataFrame(Z, columns=["lat", "lon"])
    named = classifier().fit(X, LABEL, z=table)
    assert named.model_.recipe.descriptors == ("lat", "lon")
    assert_array_equal(named.predict(X, z=Z), named.predict(X, z=table))
    for answer in (named.predict, named.predict_proba):
        with pytest.raises(DataError, match="z has columns lon, lat, but lat, lon were expected"):
            answer(X, z=table[["lon", "lat"]])
    with pytest.raises(DataError, match="z has columns lon, lat, but lat, lon were expected"):
        named.field_(table[["lon", "lat"]])
    numbered = classifier().fit(X, LABEL, z=pd.DataFrame(Z))
    assert numbered.model_.recipe.descriptors == ("0", "1")
    assert_array_equal(numbered.predict(X, z=pd.DataFrame(Z)), named.predict(X, z=Z))
    tricky = classifier().fit(X, LABEL, z=table.set_axis(["z0 lat", "z0 lon"], axis=1))
    with pytest.raises(DataError, match="z has columns lat, lon, but z0 lat, z0 lon were expected"):
        tricky.predict(X, z=table)


def test_descriptors_per_domain():
    ids, codes = np.unique(DOMAIN, return_inverse=True)
    per_domain = Z[[np.flatnonzero(codes == i)[0] for i in range(len(ids))]]
    by_domain = classifier().fit(X, LABEL, z=per_domain, domain=DOMAIN)
    by_row = classifier().fit(X, LABEL, z=Z, domain=DOMAIN)
    assert_array_equal(by_domain.predict_proba(X, z=Z), by_row.predict_proba(X, z=Z))


@pytest.mark.parametrize("method", sorted(QUICK))
def test_multi_output_regression(method):
    both = np.column_stack([NUMBER, -10 * NUMBER])
    estimator = regressor(method).fit(X, both, z=Z, domain=DOMAIN)
    answer = estimator.predict(X, z=Z)
    assert answer.shape == (len(X), 2)
    assert_allclose(answer.mean(0), both.mean(0), rtol=0.2)
    assert estimator.model_at(Z[0])(torch.from_numpy(X).float()).shape == (len(X), 2)
    assert np.isfinite(estimator.score(X, both, z=Z))
    column = regressor(method).fit(X, NUMBER[:, None], z=Z, domain=DOMAIN)
    assert column.predict(X, z=Z).shape == (len(X), 1)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_parameters_clone_and_set(make):
    estimator = make(predictor_options={"hidden": (8,)}, device="cpu")
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert copy.options is not estimator.options
    assert ("loss" in estimator.get_params()) == isinstance(estimator, FieldRegressor)
    copy.set_params(method="erm", options={"steps": 5})
    assert (copy.method, copy.options) == ("erm", {"steps": 5})
    y = LABEL if isinstance(copy, FieldClassifier) else NUMBER
    before = copy.get_params()
    assert copy.fit(X, y, z=Z) is copy
    assert copy.get_params() == before
    assert copy.model_.predictor.dim == 3 * 8 + 8 + 8 * copy.model_.recipe.num_outputs + copy.model_.recipe.num_outputs


@pytest.mark.parametrize("method", sorted(QUICK))
def test_same_seed_same_bits(method):
    torch.manual_seed(1)
    one = regressor(method).fit(X, NUMBER, z=Z, domain=DOMAIN)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    two = regressor(method).fit(X, NUMBER, z=Z, domain=DOMAIN)
    assert torch.equal(torch.get_rng_state(), state)
    assert_array_equal(one.predict(X, z=Z), two.predict(X, z=Z))
    assert torch.equal(one.field_(Z), two.field_(Z))
    other = regressor(method).set_params(random_state=1).fit(X, NUMBER, z=Z, domain=DOMAIN)
    assert not np.array_equal(one.predict(X, z=Z), other.predict(X, z=Z))
    shared = np.random.RandomState(0)
    first = regressor(method).set_params(random_state=shared).fit(X, NUMBER, z=Z, domain=DOMAIN)
    assert_array_equal(first.predict(X, z=Z), one.predict(X, z=Z))


def test_without_z_and_domain_it_is_an_ordinary_estimator():
    estimator = FieldClassifier("erm", options={"steps": 7}, random_state=0).fit(X, LABEL)
    assert estimator.model_.recipe.options["steps"] == 7
    assert estimator.relevance_ == {}
    assert estimator.predict(X).shape == LABEL.shape
    assert_allclose(estimator.predict_proba(X).sum(1), 1)
    assert estimator.model_at()(torch.from_numpy(X).float()).shape == (len(X), 2)
    assert_array_equal(estimator.trust(None), [1])
    with pytest.raises(DataError, match="fitted without descriptors"):
        estimator.predict(X, z=Z)


def test_a_method_that_needs_no_descriptors_takes_domains_alone():
    estimator = classifier("erm").fit(X, LABEL, domain=DOMAIN)
    assert estimator.model_.recipe.method == "erm"
    assert set(estimator.predict(X)) <= {"cold", "warm"}


def test_inputs_of_several_axes():
    images = np.random.default_rng(0).normal(size=(len(X), 3, 2))
    estimator = classifier().fit(images, LABEL, z=Z)
    assert estimator.predict(images, z=Z).shape == LABEL.shape
    assert estimator.model_at(Z[0])(torch.from_numpy(images).float()).shape == (len(X), 2)


@pytest.mark.parametrize(("values", "kind"), [((0, 1, 2), "i"), ((False, True), "b"), ((0.5, 1.5), "f")])
def test_labels_come_back_as_they_were_given(values, kind):
    y = np.array(values)[np.arange(len(X)) % len(values)]
    if kind == "f":  # scikit-learn takes fractions for numbers, and so do we
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            classifier().fit(X, y, z=Z)
        return
    estimator = classifier().fit(X, y, z=Z)
    assert estimator.predict(X, z=Z).dtype.kind == kind
    assert_array_equal(estimator.classes_, values)
    shape = (len(X),) if len(values) == 2 else (len(X), len(values))
    assert estimator.decision_function(X, z=Z).shape == shape


def test_whole_floats_are_classes_for_a_classifier_and_numbers_for_a_regressor():
    y = (LABEL == "warm").astype(float)
    assert set(classifier().fit(X, y, z=Z).predict(X, z=Z)) <= {0.0, 1.0}
    assert len(set(regressor().fit(X, y, z=Z).predict(X, z=Z))) > 2


def test_losses():
    heavy = np.where(np.arange(len(X)) % 4 == 0, 1000.0, 0.0)
    constant = np.zeros((len(X), 1))

    def centre(loss):
        estimator = FieldRegressor("erm", options={"steps": 100, "lr": 0.03}, loss=loss, random_state=0)
        return estimator.fit(constant, heavy).predict(constant[:1])[0]

    assert centre("squared_error") == pytest.approx(250, abs=30)
    assert centre("absolute_error") == pytest.approx(0, abs=30)
    with pytest.raises(OptionError, match="loss is 'squared_error' or 'absolute_error', but got 'huber'"):
        FieldRegressor(loss="huber").fit(X, NUMBER)


def test_scores_weigh_samples(fitted):
    classes, numbers = fitted
    right = classes.predict(X, z=Z) == LABEL
    assert classes.score(X, LABEL, z=Z) == pytest.approx(right.mean())
    weight = np.where(right, 1.0, 0.0) + 1e-12
    assert classes.score(X, LABEL, sample_weight=weight, z=Z) == pytest.approx(1)
    assert numbers.score(X, NUMBER, z=Z) <= 1


def test_fit_takes_a_domain_set():
    domains = DomainSet.from_arrays(X, LABEL, domain=DOMAIN, z=Z, descriptors=("lat", "lon"))
    est = classifier().fit(domains)
    assert_array_equal(est.predict(X, z=Z), classifier().fit(X, LABEL, z=Z, domain=DOMAIN).predict(X, z=Z))
    with pytest.raises(DataError, match="use FieldClassifier"):
        FieldRegressor("erm-d", options=QUICK["erm-d"]).fit(domains)


def test_descriptors_of_domains_are_read_by_their_index():
    ids = np.array(["oslo", "lima", "bern", "rome", "kiev", "cairo"])
    per_domain = pd.DataFrame([Z[e == DOMAIN][0] for e in range(6)], columns=["lat", "lon"], index=ids)
    expected = classifier().fit(X, LABEL, z=Z, domain=ids[DOMAIN]).predict(X, z=Z)
    for frame in (per_domain, per_domain.sort_index(), per_domain.iloc[::-1]):
        est = classifier().fit(X, LABEL, z=frame, domain=ids[DOMAIN])
        assert_array_equal(est.predict(X, z=Z), expected)
    with pytest.raises(DataError, match="index z by the domains"):
        classifier().fit(X, LABEL, z=per_domain.rename({"oslo": "paris"}), domain=ids[DOMAIN])
    row = pd.Series({"lon": 0.7, "lat": 0.2})
    assert_array_equal(est.predict_proba(X, z=row), est.predict_proba(X, z=[0.2, 0.7]))


def test_a_descriptor_beyond_all_bounds_is_refused():
    est = classifier("neurallio").fit(X, LABEL, z=Z, domain=DOMAIN)
    with pytest.raises(DataError, match="no finite answer for row 0"):
        est.predict(X[:3], z=[1e30, 1e30])


@pytest.mark.parametrize(("make", "target"), [(classifier, LABEL), (regressor, NUMBER)])
def test_progress_is_shown_on_standard_error_where_it_is_asked_for(make, target, capsys):
    quiet = make().fit(X, target, z=Z, domain=DOMAIN)
    assert capsys.readouterr() == ("", "")
    told = make(verbose=1).fit(X, target, z=Z, domain=DOMAIN)
    shown = capsys.readouterr()
    assert shown.out == "" and "erm-d" in shown.err and "loss" in shown.err and "100%" in shown.err
    assert_array_equal(told.predict(X, z=Z), quiet.predict(X, z=Z))


def test_progress_tells_of_the_choice_and_of_the_training_after_it(monkeypatch):
    heads, phases = [], []

    @contextmanager
    def display(title):
        heads.append(title)
        yield lambda progress: phases.append(progress.phase)

    monkeypatch.setattr("thetafield.estimators.base.training_display", display)
    monkeypatch.setattr("thetafield.evaluation.choosing.JUDGED_OF_FEW", 2)
    options = QUICK["neurallio"] | {"metric": False, "blend": 1, "shrink": 1.0, "reach": None}
    X, _, label, z, domain = rows(num_domains=12)
    est = FieldClassifier(options=options, random_state=0, verbose=1).fit(X, label, z=z, domain=domain)
    assert est.choice_ is not None and heads == ["neurallio"]
    chosen = [phase.startswith("choosing") for phase in phases]
    assert chosen[0] and not chosen[-1] and chosen == sorted(chosen, reverse=True)
