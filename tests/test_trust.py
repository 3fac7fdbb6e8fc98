"""Trust calibrated on held-out training domains, and sets and intervals that cover on unseen ones."""

import json

import numpy as np
import pytest
import torch

from thetafield import FieldClassifier, FieldRegressor, load_field
from thetafield.data.domains import DomainSet
from thetafield.errors import NeedError, OptionError
from thetafield.evaluation.calibrating import QUANTILES, Observed, calibrate, naive_error, naive_unseen, observe
from thetafield.evaluation.scores import evaluate
from thetafield.evaluation.warranty import warranty
from thetafield.fields.conformal import Conformal
from thetafield.fields.doubt import blind_signs, sighted_signs, trust_at
from thetafield.geometry.terrain import Terrain
from thetafield.geometry.trust import Calibration, Trust
from thetafield.training.train import train_field

TINY = {"epochs": 12, "samples": 20, "base_steps": 60, "tune_steps": 20, "latent_dim": 4, "neighbours": 3}
GIVEN = TINY | {"base": "pooled", "metric": False}


def turning(num_domains=14, seed=0, regression=False):
    rng = np.random.default_rng(seed)
    z = rng.uniform(size=(num_domains, 2))
    code = np.repeat(np.arange(num_domains), 40)
    X = rng.normal(size=(len(code), 2))
    signal = X[:, 0] * np.cos(3 * z[code, 0]) + X[:, 1] * np.sin(3 * z[code, 0])
    y = signal + 0.1 * rng.normal(size=len(code)) if regression else (signal > 0).astype(int)
    return X, y, z[code], code


def as_domains(X, y, z, code, regression=False):
    return DomainSet.from_arrays(X, y, domain=code, z=z, classification=not regression)


@pytest.fixture(scope="module")
def fitted():
    X, y, z, code = turning()
    return FieldClassifier(options=GIVEN, predictor_options={"hidden": (8,)}, random_state=0, device="cpu").fit(
        X, y, z=z, domain=code
    )


@pytest.fixture(scope="module")
def fitted_numbers():
    X, y, z, code = turning(regression=True)
    return FieldRegressor(options=GIVEN, predictor_options={"hidden": (8,)}, random_state=0, device="cpu").fit(
        X, y, z=z, domain=code
    )


def test_expected_errors_grow_with_every_sign():
    rng = np.random.default_rng(0)
    signs = rng.exponential(size=(60, 3))
    errors = np.exp(0.5 * np.log1p(signs[:, 0]) - np.log1p(signs[:, 1])) + 0.1 * rng.uniform(size=60)
    nowhere = np.zeros((60, 0))
    found = Calibration.fit(signs, errors, nowhere)
    assert found.weights[0] > 0.2 and found.weights[1] == 0  # a sign that speaks for a domain is not believed
    assert float(found(torch.from_numpy(signs), torch.from_numpy(nowhere)).mean()) == pytest.approx(errors.mean())
    more = found(torch.from_numpy(signs + np.array([1.0, 0, 0])), torch.from_numpy(nowhere))
    assert (more > found(torch.from_numpy(signs), torch.from_numpy(nowhere))).all()


def test_domains_without_errors_and_signs_that_do_not_vary_are_no_trouble():
    found = Calibration.fit(np.zeros((12, 2)), np.zeros(12), np.zeros((12, 2)))
    assert torch.isfinite(found(torch.zeros(3, 2), torch.zeros(3, 2))).all()


def test_a_field_that_shows_no_doubts_is_calibrated_by_place_alone():
    z = np.random.default_rng(0).uniform(size=(40, 2))
    found = Calibration.fit(np.empty((40, 0)), np.exp(2 * z[:, 0]), z)
    assert found.weights == () and found.terrain is not None
    low, high = found(torch.empty(2, 0), torch.tensor([[0.1, 0.5], [0.9, 0.5]])).tolist()
    assert high > 2 * low


def test_a_hard_region_is_found_in_the_middle_of_easy_ones():
    rng = np.random.default_rng(1)
    z, far = rng.uniform(size=(100, 2)), torch.from_numpy(rng.uniform(size=(300, 2)))

    def logs(z):
        return 2 * np.exp(-((z[:, 0] - 0.3) ** 2 + (z[:, 1] - 0.6) ** 2) / 0.05)

    found = Terrain.fit(z, logs(z) + 0.1 * rng.normal(size=100))
    assert found.width is not None and np.corrcoef(found(far), logs(far.numpy()))[0, 1] > 0.9
    many = rng.uniform(size=(3000, 2))
    assert len(Terrain.fit(many, logs(many)).points) <= 400


def test_a_place_that_was_looked_at_twice_does_not_tell_its_own_error():
    rng = np.random.default_rng(0)
    believed = 0
    for _ in range(20):
        z, logs = rng.uniform(size=(30, 2)), rng.normal(size=30)
        believed += Terrain.fit(np.repeat(z, 2, 0), np.repeat(logs, 2) + 0.01 * rng.normal(size=60)) is not None
    assert believed < 8  # of noise


def test_signs_that_are_no_numbers_are_beyond_all_doubt_in_a_calibration_too():
    signs = np.abs(np.random.default_rng(0).normal(size=(20, 2)))
    signs[3, 0], signs[5, 1] = np.inf, np.nan
    found = Calibration.fit(signs, np.linspace(1, 2, 20), np.zeros((20, 0)))
    assert torch.isfinite(found(torch.ones(2, 2), torch.zeros(2, 0))).all()


def test_quantiles_of_very_many_domains():
    assert Conformal.fit(torch.rand(170_000, 101)).threshold(0.9) == pytest.approx(0.9, abs=0.01)


def test_places_that_are_hard_for_every_model_are_known():
    """Errors that a coordinate brings, which has nothing to do with the charts."""
    rng = np.random.default_rng(0)
    z, signs = rng.uniform(size=(48, 3)), rng.exponential(size=(48, 2))
    errors = np.exp(1 + 2 * z[:, 2] + 0.1 * rng.normal(size=48))
    found = Calibration.fit(signs, errors, z)
    assert found.terrain is not None
    far = torch.from_numpy(rng.uniform(size=(200, 3)))
    expected = found(torch.ones(200, 2), far).numpy()
    assert np.corrcoef(np.log(expected), far[:, 2])[0, 1] > 0.95
    assert float(found(torch.from_numpy(signs), torch.from_numpy(z)).mean()) == pytest.approx(errors.mean())
    # Beyond what was seen nothing is made up.
    beyond = found(torch.ones(2, 2), torch.tensor([[0.5, 0.5, 50.0], [0.5, 0.5, 1.0]]))
    assert float(beyond[0] / beyond[1]) == pytest.approx(1.0, rel=0.05)
    chance = Calibration.fit(signs, np.exp(rng.normal(size=48)), z)
    assert chance.terrain is None


def test_trust_is_one_where_nothing_is_lost_and_nothing_where_a_guess_does_as_well():
    anchors = torch.rand(20, 2, generator=torch.Generator().manual_seed(0))
    line = Calibration((1.0,), (1.0,), 0.0)  # expected error = 1 + sign
    trust = Trust.fit(anchors).calibrated(line, line, attained=1.0, naive=5.0)
    signs = torch.tensor([[0.0], [2.0], [4.0], [100.0]])
    values = trust(anchors[:4], blind=signs)
    torch.testing.assert_close(values, torch.tensor([1.0, 0.5, 0.0, 0.0]))
    torch.testing.assert_close(trust(anchors[:4], sighted=signs), values)
    far = trust(anchors[:1] + 30 * trust.reach, blind=signs[:1])
    assert far < 1e-6  # no held-out domain has told anything there
    assert trust(anchors[:1] + 1e3)[0] == 0  # and without signs it goes by distance


def test_signs_are_those_of_a_loop(fitted):
    model = fitted.model_
    moved, z = model.field.moved, torch.rand(5, 2)
    scaled = model.scaler(z)
    signs = blind_signs(model, z)
    with torch.no_grad():
        for i in range(5):
            distances = (moved.charted(scaled[i : i + 1]) - moved.charted(moved.anchors)).norm(dim=1)
            near = torch.argsort(distances)[:8]
            latents = torch.stack([moved.carried(scaled[i : i + 1], near[j : j + 1])[0] for j in range(8)])
            spread = (latents - latents.mean(0)).norm(dim=1).mean()
            theta = moved.theta[near[0]]
            lost = (moved.coder.decode(moved.coder.encode(theta[None])) - theta).norm()
            alpha = float(model.field.alpha(scaled[i : i + 1]))
            expected = torch.tensor([distances.min() / moved.spacing, alpha * spread, alpha * lost])
            torch.testing.assert_close(signs[i].float(), expected, rtol=1e-3, atol=1e-5)


@torch.no_grad()
def test_signs_of_inputs_are_those_of_a_loop(fitted):
    model, x, z = fitted.model_, torch.randn(3, 11, 2), torch.rand(3, 2)
    weight = torch.full((3, 11), 1 / 11)
    signs = sighted_signs(model, x, weight, z, model.domain_outputs(x, z))
    for i in range(3):
        thetas = model.field.opinions(model.scaler(z[i : i + 1]))[0]
        seen = model.inputs(x[i])
        together = model.predictor(model.theta(z[i])[None], seen[None])[0]
        alone = [model.predictor(theta[None], seen[None])[0].argmax(-1) for theta in thetas]
        differ = np.mean([(labels != together.argmax(-1)).float().mean() for labels in alone])
        unsure = (1 - torch.softmax(together, -1).amax(-1)).mean()
        np.testing.assert_allclose(signs[i], [differ, unsure], atol=1e-5)


def test_a_naive_guess_knows_the_commonest_label_or_the_median():
    X, y, z, code = turning(6)
    labels = np.where(np.arange(len(y)) % 4 == 0, 1, 0)
    assert naive_error(as_domains(X, labels, z, code)) == pytest.approx(25.0)
    numbers = as_domains(X, labels.astype(float), z, code, regression=True)
    assert naive_error(numbers) == pytest.approx(0.25)


def test_a_naive_guess_about_unseen_domains_comes_from_the_others():
    z = np.arange(4.0)[:, None]
    code = np.repeat(np.arange(4), 2)
    numbers = as_domains(np.zeros((8, 1)), np.array([0.0, 0, 1, 1, 2, 2, 9, 9]), z, code, regression=True)
    # The median of 0, 0, 1, 1 is 0 or 1, of which torch takes the lower; 2 and 9 are asked for.
    assert naive_unseen(numbers, [(np.array([0, 1]), np.array([2, 3]))]) == pytest.approx(5.5)
    assert naive_unseen(numbers, [(np.array([1, 2, 3]), np.array([0])), (np.array([0, 1, 2]), np.array([3]))]) == 5.0


def test_sets_over_domains_cover_as_often_as_they_say():
    """Domains differ, so that samples of one domain say little of the next: what counts is the number of domains."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(60):
        scale = rng.lognormal(size=80)
        strange = np.abs(rng.normal(size=(80, 400))) * scale[:, None]
        levels = np.quantile(strange[:40], np.linspace(0, 1, QUANTILES), axis=1).T
        threshold = Conformal.fit(torch.from_numpy(levels)).threshold(0.9)
        covered.append(np.mean(strange[40:] <= threshold))
    assert np.mean(covered) == pytest.approx(0.9, abs=0.02)
    with pytest.raises(OptionError, match="coverage is a share between 0 and 1, but got 90"):
        Conformal(torch.zeros(1001)).threshold(90.0)


def test_a_choice_calibrates_trust_and_sets(fitted, tmp_path):
    X, y, z, _ = turning(seed=3)
    assert fitted.model_.trust.blind is not None and fitted.choice_ is not None
    trust = fitted.trust(z[::40])
    assert trust.shape == (14,) and ((trust >= 0) & (trust <= 1)).all()
    assert fitted.trust([[40.0, 40.0]])[0] == 0
    sharper = fitted.trust(z, X)
    assert sharper.shape == (len(X),) and len(np.unique(sharper)) <= 14
    sets = fitted.predict_set(X, z=z, coverage=0.9)
    assert sets.shape == (len(X), 2) and sets.dtype == bool
    assert sets[np.arange(len(X)), y].mean() > 0.75
    assert (fitted.predict_set(X, z=z, coverage=0.99) >= sets).all()
    fitted.save(tmp_path / "field")
    loaded = load_field(tmp_path / "field", device="cpu")
    np.testing.assert_array_equal(loaded.trust(z[::40]), trust)
    np.testing.assert_array_equal(loaded.trust(z, X), sharper)
    np.testing.assert_array_equal(loaded.predict_set(X, z=z), sets)


def test_intervals_cover_and_are_wide_where_errors_are_expected(fitted_numbers, tmp_path):
    X, y, z, _ = turning(seed=3, regression=True)
    ends = fitted_numbers.predict_interval(X, z=z)
    assert ends.shape == (len(X), 2) and (ends[:, 0] <= ends[:, 1]).all()
    assert ((ends[:, 0] <= y) & (y <= ends[:, 1])).mean() > 0.75
    np.testing.assert_allclose(ends.mean(1), fitted_numbers.predict(X, z=z), rtol=1e-4, atol=1e-5)
    far = np.diff(fitted_numbers.predict_interval(X[:1], z=[5.0, 5.0]))[0, 0]
    assert far >= np.diff(ends[:1])[0, 0]
    fitted_numbers.save(tmp_path / "field")
    np.testing.assert_array_equal(load_field(tmp_path / "field", device="cpu").predict_interval(X, z=z), ends)


def test_without_held_out_domains_there_are_no_sets():
    X, y, z, code = turning(5)
    est = FieldClassifier("erm", options={"steps": 5}, random_state=0, device="cpu").fit(X, y, z=z, domain=code)
    with pytest.raises(NeedError, match="Sets and intervals need held-out training domains"):
        est.predict_set(X, z=z)
    np.testing.assert_array_equal(est.trust(z, X), est.trust(z))  # by distance: inputs say nothing


def test_what_was_promised_is_compared_with_what_came(fitted):
    domains = as_domains(*turning(seed=5))
    model = fitted.model_
    found = warranty(model, domains, evaluate(model, domains))
    assert json.loads(json.dumps(found.record())) == found.record()
    np.testing.assert_allclose(found.trust, trust_at(model, domains.z), atol=1e-5)
    sets = fitted.predict_set(domains.x.numpy(), z=domains.z.repeat_interleave(40, 0).numpy())
    inside = sets[np.arange(len(sets)), domains.y.numpy()]
    assert found.coverage == pytest.approx(inside.mean(), abs=1e-3)
    assert found.size == pytest.approx(sets.sum(1).mean(), abs=1e-3)
    assert -1 <= found.sighted_correlation <= 1


def test_too_few_held_out_domains_calibrate_nothing():
    domains = as_domains(*turning(6))
    options = {"epochs": 2, "base_steps": 5, "metric": False, "neighbours": 2}
    model = train_field(domains, "neurallio", seed=0, options=options, device="cpu").model
    seen = observe(model, domains, domains.select([0, 1]))
    assert len(seen.strangeness[0]) == QUANTILES and len(seen.joined(seen).errors) == 4
    calibrate(model, seen, domains)
    assert model.trust.blind is None and model.conformal is None
    assert isinstance(seen, Observed)
