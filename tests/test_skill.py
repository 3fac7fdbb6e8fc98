"""Efficiencies of Nash-Sutcliffe and Kling-Gupta against the textbook, domain by domain."""

from dataclasses import replace

import numpy as np
import pytest

from thetafield import DomainSet, FieldRegressor
from thetafield.bench import run_trial
from thetafield.datasets import DATASETS, Dataset
from thetafield.errors import DataError
from thetafield.evaluation.skill import Skill, skill


@pytest.fixture(scope="module")
def domains():
    stream = np.random.default_rng(0)
    codes = np.repeat(np.arange(6), [9, 12, 7, 30, 8, 11])
    x = stream.normal(size=(len(codes), 3))
    y = 5 + x[:, 0] * (1 + codes) + 0.3 * stream.normal(size=len(codes))
    y[codes == 4] = 2.0
    return DomainSet.from_arrays(x, y, domain=codes, z=np.arange(6.0)[:, None], classification=False)


def test_efficiencies_by_hand(domains):
    est = FieldRegressor("erm-d", options={"steps": 100}, random_state=0).fit(domains)
    measured = skill(est.model_, domains)
    for i in range(6):
        one = domains.select([i])
        y, guess = one.y[:, 0].double().numpy(), est.predict(one.x.numpy(), z=one.z[0].numpy())
        if i == 4:
            assert np.isnan(measured.nse[i]) and np.isnan(measured.kge[i])
            continue
        nse = 1 - ((guess - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
        r = np.corrcoef(y, guess)[0, 1]
        kge = 1 - np.sqrt((r - 1) ** 2 + (guess.std() / y.std() - 1) ** 2 + (guess.mean() / y.mean() - 1) ** 2)
        assert measured.nse[i] == pytest.approx(nse, abs=1e-4)
        assert measured.kge[i] == pytest.approx(kge, abs=1e-4)
    assert measured.record()["nse"] == pytest.approx(np.nanmedian(measured.nse))


def test_a_target_that_never_changes_has_no_skill_whatever_its_value():
    """The mean of single-precision numbers is off by a rounding, which must not pass for a spread."""
    stream = np.random.default_rng(0)
    x, codes = stream.normal(size=(21, 2)), np.repeat(np.arange(3), 7)
    y = np.where(codes == 0, 0.1, np.where(codes == 1, x[:, 0], 1.3))
    domains = DomainSet.from_arrays(x, y, domain=codes, z=np.arange(3.0)[:, None], classification=False)
    measured = skill(FieldRegressor("erm", options={"steps": 5}, random_state=0).fit(domains).model_, domains)
    assert np.isnan(measured.nse).tolist() == np.isnan(measured.kge).tolist() == [True, False, True]


def test_domains_without_skill_have_none():
    none = np.full(3, np.nan)
    assert Skill(none, np.array([0.5, np.nan, 0.7])).record() == {"nse": None, "kge": pytest.approx(0.6)}


def test_a_trial_reports_skill_where_the_dataset_asks(domains, monkeypatch, tmp_path):
    def basins(seed: int) -> Dataset:
        return Dataset("basins", domains.select([0, 1, 2]), {"unseen": domains.select([3, 5])}, skill=True)

    monkeypatch.setitem(DATASETS._entries, "basins", basins)
    result = run_trial("basins", "erm", seed=0, out=tmp_path / "a", options={"steps": 20}, device="cpu")
    assert set(result["skill"]) == {"nse", "kge"}
    monkeypatch.setitem(DATASETS._entries, "basins", lambda seed: replace(basins(seed), skill=False))
    plain = run_trial("basins", "erm", seed=0, out=tmp_path / "b", options={"steps": 20}, device="cpu")
    assert plain["skill"] is None


def test_classes_have_no_skill(domains):
    moons = DATASETS["two-moons"](0, num_train=3, num_test=1).train
    model = FieldRegressor("erm", options={"steps": 2}, random_state=0).fit(domains).model_
    with pytest.raises(DataError, match="Skill is defined for numbers"):
        skill(model, moons)
