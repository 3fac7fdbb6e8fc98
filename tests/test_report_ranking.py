"""Whom to pick before the data are known: methods over many datasets."""

import numpy as np
import pytest

from reported import Builder
from thetafield.report.store.comparison import MICRO, comparison
from thetafield.report.store.ranking import ranking, standings
from thetafield.report.store.standing import near

DATASETS = ("two-moons", "mnist", "eurosat", "camels")
MEANS = {"erm": (10, 20, 30, 40), "nda": (20, 20, 20, 41), "neurallio": (10.1, 10, 20.2, 41)}


def table(builder, leave_out=()):
    """Errors by hand, two seeds each, but for the places that are left out."""
    for method, means in MEANS.items():
        for dataset, mean in zip(DATASETS, means, strict=True):
            for seed in (0, 1):
                if (method, dataset, seed) not in leave_out:
                    builder.trial("many", dataset, method, seed, mean + np.array([-1.0, 1.0]))
    return comparison(builder.read().of("many"), MICRO, "Many")


def cells(made):
    return {row.title: [cell.text for cell in row.cells] for row in made.rows}


def test_methods_are_ranked_by_how_far_they_stay_behind_the_best(tmp_path):
    errors = table(Builder(tmp_path))
    made = ranking(errors, standings(errors))
    assert [row.title for row in made.rows] == ["NeuralLio", "ERM", "NDA"]
    by_hand = {"NeuralLio": (1.01, 1, 1.01, 1.025), "ERM": (1, 2, 1.5, 1), "NDA": (2, 2, 1, 1.025)}
    for name, ratios in by_hand.items():
        behind = 100 * (np.prod(ratios) ** 0.25 - 1)
        assert float(cells(made)[name][0]) == pytest.approx(behind, abs=0.051)
    assert cells(made)["NeuralLio"][1:] == ["2, CAMELS", "1.9", "3"]  # second, first, second, and level with NDA
    assert cells(made)["ERM"][1:] == ["100, MNIST", "1.9", "2"]
    assert cells(made)["NDA"][1:] == ["100, 2-Moons", "2.2", "1"]  # third, level with ERM, first, level with ours
    assert made.rows[0].ours and made.rows[0].cells[0].mark == "best"


def test_a_method_that_lacks_a_seed_is_ranked_on_the_other_datasets_alone(tmp_path):
    errors = table(Builder(tmp_path), leave_out={("nda", "mnist", 1), ("nda", "camels", 0)})
    made = ranking(errors, standings(errors))
    assert [row.title for row in made.rows] == ["NeuralLio", "ERM"]
    assert "Not on all datasets" not in made.about  # two datasets say nothing
    errors = table(Builder(tmp_path / "more"), leave_out={("nda", "mnist", 1)})
    assert "NDA" not in cells(ranking(errors, standings(errors)))


def test_a_dataset_on_which_somebody_makes_no_error_has_no_ratios(tmp_path):
    builder = Builder(tmp_path)
    builder.trial("many", "circle", "erm", 0, [0.0, 0.0])
    builder.trial("many", "circle", "neurallio", 0, [1.0, 2.0])
    found = standings(table(builder))
    assert [column.title for column in found.columns] == ["2-Moons", "MNIST", "EuroSAT", "CAMELS"]
    assert np.nanmin(found.ratios) == 1 and np.isfinite(found.ratios).all()


def test_ranks_are_told_where_there_are_several_datasets_and_others(tmp_path):
    errors = table(Builder(tmp_path))
    found = standings(errors)
    assert found.say and not standings(errors.__class__(**vars(errors) | {"rows": errors.rows[:2]})).say
    assert list(near(found, "Many")) == [
        "Many: NeuralLio errs at most 2 % more than the best method on 3 of 4 datasets, any other method on 2 at most."
    ]


def test_methods_of_several_parts_go_by_their_parts_too(tmp_path):
    builder = Builder(tmp_path)
    for group, level in (("small", 0.0), ("large", 1.0)):
        for dataset, mean in zip(DATASETS, (10, 20, 30, 40), strict=True):
            for method, off in (("erm", 2.0), ("neurallio", 1.0)):
                builder.trial("own", dataset, method, int(level), [mean + off + level], group=group)
    errors = comparison(builder.read().of("own"), MICRO, "Own")
    assert not standings(errors).columns  # each part has a seed of its own: no mean beside another
    for group, level in (("small", 0.0), ("large", 1.0)):
        for dataset, mean in zip(DATASETS, (10, 20, 30, 40), strict=True):
            for method, off in (("erm", 2.0), ("neurallio", 1.0)):
                options = {"lr": 1e-3 if group == "small" else 2e-3}
                builder.trial(
                    "both", dataset, method, 0, [mean + off + level], group=group, options=options, method_label=method
                )
    errors = comparison(builder.read().of("both"), MICRO, "Both")
    names = [row.title for row in ranking(errors, standings(errors)).rows]
    assert len(set(names)) == 4 and all(name.endswith((", small", ", large")) for name in names)
