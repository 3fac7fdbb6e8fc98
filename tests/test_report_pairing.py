"""The paired test over domains, and against whom it is made."""

import numpy as np
import pytest

from reported import table_one
from thetafield.evaluation.pairs import Paired
from thetafield.report.store.pairing import duels, paired


def trials(builder, method, errors, **given):
    """Trials of one method, given errors by seed."""
    for seed, values in enumerate(errors):
        builder.trial("real", "elec2", method, seed, values, **given)
    return [trial for trial in builder.read().trials if trial.method == method]


def test_pairs_are_domains_averaged_over_seeds(builder):
    other = trials(builder, "erm", [[10, 20, 30, 40, 50, 60], [12, 22, 32, 42, 52, 62]])
    ours = trials(builder, "nda", [[9, 17, 29, 37, 49, 57], [9, 21, 29, 41, 49, 61]])
    outcome = paired(ours, other)
    # By hand: −1, −3, −1, −3, … and −3, −1, −3, −1, …, so −2 at every domain.
    assert (outcome.difference, outcome.low, outcome.high) == (-2.0, -2.0, -2.0)
    assert (outcome.better, outcome.domains, outcome.repetitions) == (1.0, 6, 2)
    assert outcome.p < 0.05
    turned = paired(other, ours)
    assert turned.difference == 2.0 and turned.better == 0.0 and turned.p == pytest.approx(outcome.p)


def test_how_often_one_errs_less_is_counted_and_not_averaged(builder):
    """Domains drawn anew with the seed only share a name: the sign of their mean says nothing of either."""
    other = trials(builder, "erm", [[10] * 6, [10] * 6])
    ours = trials(builder, "nda", [[9] * 6, [30] * 6])  # better on all domains of one seed, worse on those of the other
    outcome = paired(ours, other)
    assert (outcome.better, outcome.looks, outcome.domains) == (0.5, 12, 6) and outcome.difference == 9.5


def test_pairing_asks_for_the_same_seed_and_enough_domains(builder):
    few, equal = trials(builder, "erm", [[1, 2, 3]]), trials(builder, "nda", [[1, 2, 3]])
    assert paired(few, equal).p is None
    builder.trial("real", "elec2", "film", 7, [1, 2, 3])
    alone = [trial for trial in builder.read().trials if trial.method == "film"]
    assert paired(alone, few) is None


@pytest.mark.parametrize("unit", [1.0, 1e-10])
def test_the_unit_decides_nothing(builder, unit):
    errors = np.array([6.0, 8.0, 5.0, 7.0, 9.0, 6.5]) * unit
    other = trials(builder, "erm", [errors])
    outcome = paired(trials(builder, "nda", [errors - np.array([1, 2, 1, 3, 2, 4]) * unit]), other)
    assert outcome.p == pytest.approx(0.03125) and outcome.high < 0
    assert outcome.difference == pytest.approx(-13 / 6 * unit)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_intervals_of_few_domains_hold_what_they_say(count):
    """Of two equal methods not much more than one in twenty may come out as different."""
    stream = np.random.default_rng(0)
    wrong = [not Paired.of([stream.normal(size=count)]).within_noise for _ in range(2000)]
    assert 0.03 < np.mean(wrong) < 0.07


def test_pairs_go_by_name_and_not_by_place(builder):
    names, errors = [f"d{i}" for i in range(8)], np.arange(8.0) * 10
    builder.trial("real", "elec2", "erm", 0, errors, extra={"domains": names})
    builder.trial("real", "elec2", "nda", 0, (errors - 1)[::-1], extra={"domains": names[::-1]})
    builder.trial("real", "elec2", "film", 0, errors, extra={"domains": [f"e{i}" for i in range(8)]})
    builder.trial("real", "elec2", "cida", 0, errors[:7] - 1, extra={"domains": names[:7]})
    erm, nda, film, cida = ([t for t in builder.read().trials if t.method == m] for m in ("erm", "nda", "film", "cida"))
    outcome = paired(nda, erm)
    assert (outcome.low, outcome.high, outcome.better, outcome.domains) == (-1, -1, 1.0, 8)
    assert paired(film, erm) is None, "no domain in common"
    assert paired(cida, erm).domains == 7


def test_equal_methods_do_not_differ(builder):
    same = trials(builder, "erm", [np.arange(30)])
    assert (paired(same, same).p, paired(same, same).difference) == (1.0, 0.0)
    rng = np.random.default_rng(0)
    base = rng.uniform(20, 30, 200)
    near = trials(builder, "nda", [base]), trials(builder, "film", [base + rng.normal(0, 1, 200)])
    outcome = paired(*near)
    assert outcome.low < 0 < outcome.high and outcome.p > 0.05


def test_splits_add_pairs_of_their_own(builder):
    for split, shift in ((0, -1.0), (1, -3.0)):
        for seed in range(2):
            for method, move in (("erm", 0.0), ("neurallio", shift)):
                values = np.arange(10.0, 20.0) + move
                builder.trial("real", "eurosat", method, seed, values, dataset_options={"split": split})
    [duel] = duels(builder.read().of("real"))
    assert (duel.paired.domains, duel.paired.repetitions, duel.paired.difference) == (20, 2, -2.0)
    assert (duel.ours, duel.rival, duel.column) == ("NeuralLio", "ERM", "EuroSAT")


def test_a_domain_that_is_unseen_twice_counts_once(builder):
    for split, names in ((0, "abcdef"), (1, "defghi")):
        for method, move in (("erm", 0.0), ("neurallio", -1.0 - 2 * split)):
            given = {"dataset_options": {"split": split}, "extra": {"domains": [*names]}}
            builder.trial("real", "eurosat", method, 0, np.arange(6.0) + move, **given)
    [duel] = duels(builder.read().of("real"))
    # By hand: −1 at a to c, −2 at d to f, −3 at g to i.
    assert (duel.paired.domains, duel.paired.repetitions, duel.paired.difference) == (9, 1, -2.0)


def test_the_rival_is_the_best_of_the_others(builder):
    results = table_one(builder)
    [duel] = [duel for duel in duels(results) if duel.column == "2-Moons"]
    assert duel.rival == "NDA" and duel.paired.difference == pytest.approx(-19.0) and duel.paired.p < 0.001


@pytest.mark.parametrize(("error", "rival"), [(19.0, "ERM"), (15.0, "NDA")])
def test_methods_that_lack_repetitions_are_compared_where_both_are(builder, error, rival):
    """The first seed is an easy one: who has it alone is judged by it alone, and not by the mean of three."""
    for seed in range(3):
        for method, mean in (("erm", 30.0), ("neurallio", 20.0)):
            builder.trial("real", "elec2", method, seed, np.full(8, mean - 12.0 * (seed == 0)))
    builder.trial("real", "elec2", "nda", 0, np.full(8, error))
    [duel] = duels(builder.read().of("real"))
    assert duel.rival == rival and duel.paired.repetitions == (3 if rival == "ERM" else 1)
    assert duel.ours_error == pytest.approx(16.0 if rival == "ERM" else 8.0)
    assert duel.rival_error == pytest.approx(26.0 if rival == "ERM" else 15.0)
