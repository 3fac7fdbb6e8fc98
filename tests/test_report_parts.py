"""What each part of a method brings, read off the choices that were stored with its results."""

import pytest

from reported import Builder
from thetafield.report.store.parts import part_table


def tried(score, **options):
    return {"options": options, "per_domain": [score - 1, score + 1], "score": score, "folds": 2}


@pytest.fixture
def results(tmp_path):
    builder = Builder(tmp_path)
    for seed, charts in ((0, 16.0), (1, 12.0)):
        candidates = [
            tried(charts, epochs=200),
            tried(20.0, epochs=0, metric=False),
            tried(10.0, epochs=0, metric=False, base="hypernet"),
            # Given up after its first fold, where the default one came to 4: no best, whatever its mean.
            {**tried(5.0, epochs=0, metric=False, base="knots"), "folds": 1},
            tried(9.0, epochs=200, base="hypernet"),
            tried(18.0, epochs=200, base="none"),
            tried(9.0, epochs=200, base="hypernet", metric=False),
            tried(9.9, epochs=200, base="hypernet", neighbours=10),
            # Given up after its first domain, where the one that it was tried on came to 8.
            {**tried(12.0, epochs=200, base="hypernet", latent_dim=16), "per_domain": [12.0]},
            tried(7.2, epochs=600, base="hypernet"),
        ]
        builder.trial("real", "eurosat", "neurallio", seed, [1.0, 2.0], extra={"choice": {"candidates": candidates}})
        builder.trial("real", "eurosat", "erm", seed, [1.0, 2.0])
        builder.trial("real", "camels", "neurallio", seed, [1.0, 2.0], extra={"choice": None})
    return builder.read().of("real")


def test_changes_are_those_of_the_held_out_errors(results):
    table = part_table(results)
    assert [row.title for row in table.rows] == ["EuroSAT"]
    words = {
        (column.title, column.unit.removeprefix("on the ")): cell.text
        for column, cell in zip(table.columns, table.rows[0].cells, strict=True)
    }
    assert words["Best base", "instead of the pooled one, both alone"] == "−50.0 ± 0.0"
    assert words["Charts", "pooled base"] == "−30.0 ± 14.1"  # −20 and −40
    assert words["Charts", "best base"] == "−10.0 ± 0.0"
    assert words["No base", "instead of the best one"] == "+100.0 ± 0.0"
    assert words["No metric", ""] == "+0.0 ± 0.0"
    assert words["10 neighbours", "instead of 5 or fewer"] == "+10.0 ± 0.0"
    assert words["Latent of 16", "instead of 32"] == "+50.0 ± 0.0"
    assert words["All epochs", "instead of a third"] == "−20.0 ± 0.0"
    assert words["Frozen backbone", ""] == "–"
    assert table.notes == ("Not tried there: it was not up for choice, or there is nothing to compare it with.",)


def test_a_training_that_failed_has_no_say(tmp_path):
    builder = Builder(tmp_path)
    failed = {"options": {"epochs": 200, "metric": False}, "per_domain": [], "score": None, "folds": 0}
    alone = {"options": {"epochs": 0, "metric": False}, "per_domain": [], "score": None, "folds": 0}
    choice = {"candidates": [tried(8.0, epochs=200), alone, failed]}
    builder.trial("real", "eurosat", "neurallio", 0, [1.0, 2.0], extra={"choice": choice})
    assert part_table(builder.read().of("real")).empty
