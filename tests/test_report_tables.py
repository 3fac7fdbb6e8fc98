"""Tables of a report: numbers against oracles by hand, and the reason for every gap."""

import json
from dataclasses import replace

import pytest

from reported import LAWS, cell, table_one
from thetafield.bench.suite import suite_names
from thetafield.report.store.comparison import MACRO, MICRO, WORST, comparison
from thetafield.report.store.grid import grid
from thetafield.report.store.latex import latex_table
from thetafield.report.store.markdown import markdown_table
from thetafield.report.store.properties import law_table, time_table, trust_table
from thetafield.report.store.ranking import standings
from thetafield.report.store.reading import SUITES
from thetafield.report.store.table import Cell, Column, Row, marked


def test_means_and_deviations_are_right(builder):
    table = comparison(table_one(builder), MICRO, "Table")
    found = cell(table, "NDA", "2-Moons")
    assert (found.value, found.spread, found.count, found.text) == (24.0, 4.0, 3, "24.00 ± 4.00")
    alone = cell(table, "ERM", "MNIST")
    assert (alone.value, alone.spread, alone.text) == (18.0, None, "18.00")
    assert table.columns[0].unit == "error, %"


def test_macro_and_worst_are_read_off_the_results(builder):
    results = table_one(builder)
    assert cell(comparison(results, MACRO, ""), "NeuralLio", "2-Moons").value == pytest.approx(6.0)
    assert cell(comparison(results, WORST, ""), "NeuralLio", "2-Moons").value == pytest.approx(6.0)
    assert comparison(results, WORST, "").name == "paper-table1-worst"


def test_best_is_bold_and_second_is_underlined(builder):
    table = comparison(table_one(builder), MICRO, "Table")
    assert [cell(table, row, "2-Moons").mark for row in ("ERM", "NDA", "NeuralLio")] == ["", "second", "best"]
    assert cell(table, "ERM", "MNIST").mark == ""  # alone in its column
    assert "**5.00 ± 1.00**" in markdown_table(table) and "*24.00 ± 4.00*" in markdown_table(table)
    assert r"\textbf{5.00 $\pm$ 1.00}" in latex_table(table) and r"\underline{24.00 $\pm$ 4.00}" in latex_table(table)


def test_equal_means_share_a_mark_and_high_may_be_better():
    rows = [
        Row(name, (Cell.of([low]), Cell.of([high])))
        for name, low, high in (("a", 1.0, 7.0), ("b", 1.0, 8.0), ("c", 2.0, 9.0))
    ]
    found = marked(rows, [Column("low"), Column("high", better="high")])
    assert [[one.mark for one in row.cells] for row in found] == [["best", ""], ["best", "second"], ["second", "best"]]


def test_a_mean_over_fewer_repetitions_has_no_mark():
    part = replace(Cell.of([1.0]), whole=False)
    rows = [Row("a", (Cell.of([3.0, 5.0]),)), Row("b", (part,)), Row("c", (Cell.of([6.0, 8.0]),))]
    assert [row.cells[0].mark for row in marked(rows, [Column("low")])] == ["best", "", "second"]


def test_means_over_different_seeds_are_not_compared(builder):
    """Two methods that err alike on the seed they share: neither is better, whatever their other seeds say."""
    for method, errors in (("erm", {0: 10.0, 1: 30.0}), ("neurallio", {1: 30.0, 2: 50.0})):
        for seed, error in errors.items():
            for split in range(4):
                data = {"split": split}
                builder.trial("real", "eurosat", method, seed, [error] * 3, dataset_options=data)
    table = comparison(builder.read().of("real"), MICRO, "Table")
    assert [cell.mark for row in table.rows for cell in row.cells] == ["", ""]
    assert not standings(table).columns


def test_gaps_are_shown_with_their_reasons(builder):
    table = comparison(table_one(builder), MICRO, "Table").settled()

    def notes(row, column):
        return " ".join(table.notes[note] for note in cell(table, row, column).notes)

    assert cell(table, "TKNets", "2-Moons").text == "N/A"
    # One note tells the need of a method for all datasets that lack it.
    assert notes("TKNets", "2-Moons") == notes("TKNets", "MNIST")
    assert "two-moons has 2" in notes("TKNets", "MNIST") and "mnist has 3" in notes("TKNets", "MNIST")
    assert cell(table, "ERM", "Traffic").text == "no data" and "flow.npy" in notes("ERM", "Traffic")
    assert "not been run" in notes("NDA", "MNIST") and "no such trial" in notes("NDA", "Traffic")
    # Notes are met in order, each is told once, and none is left over.
    met = [note for row in table.rows for one in row.cells for note in one.notes]
    assert list(dict.fromkeys(met)) == list(range(len(table.notes))) and len(set(table.notes)) == len(table.notes)


def test_a_cell_with_fewer_repetitions_says_so(builder):
    for seed in range(3):
        builder.trial("real", "elec2", "erm", seed, [10.0, 20.0])
    builder.trial("real", "elec2", "erm-d", 0, [10.0, 20.0])
    builder.failure("real", "elec2", "erm-d", 1, "The loss is not finite.")
    table = comparison(builder.read().of("real"), MICRO, "")
    assert table.notes == ("1 of 3 repetitions; seed 1 failed: The loss is not finite.",)


def test_repetitions_without_data_say_so(builder):
    for seed in range(2):
        builder.trial("real", "circle", "erm", seed, [10.0, 20.0])
    builder.absent("real", "circle", "erm", 2, "data", "circle needs a file.")
    builder.trial("real", "circle", "erm-d", 0, [10.0, 20.0])
    builder.absent("real", "circle", "erm-d", 1, "data", "circle needs a file.")
    builder.failure("real", "circle", "nda", 0, "The loss is not finite.")
    builder.absent("real", "circle", "nda", 1, "data", "circle needs a file.")
    table = comparison(builder.read().of("real"), MICRO, "").settled()
    said = ("2 of 3 repetitions; circle needs a file.", "1 of 2 repetitions; circle needs a file.")
    assert table.notes[:2] == said and {*table.notes[2:]} == {"circle needs a file.", "The loss is not finite."}


def test_things_that_differ_are_told_apart(builder):
    for steps in (10, 20):
        for seed in range(2):
            builder.trial("own", "two-moons", "erm", seed, [steps, steps], options={"steps": steps}, method_label="ERM")
    layout = grid(builder.read().of("own"))
    assert [line.title for line in layout.lines] == ["ERM (steps = 10)", "ERM (steps = 20)"]
    assert all(len(place.trials) == 2 for place in layout.places.values())


def test_splits_are_repetitions(builder):
    for split in range(2):
        for seed in range(2):
            builder.trial("real", "eurosat", "erm", seed, [10.0 * split + seed] * 4, dataset_options={"split": split})
    table = comparison(builder.read().of("real"), MICRO, "")
    assert [column.title for column in table.columns] == ["EuroSAT"]
    assert (table.rows[0].cells[0].count, table.rows[0].cells[0].value) == (4, 5.5)


def test_a_trial_that_two_grids_ask_for_counts_once(builder):
    for seed in (0, 1, 0):
        builder.trial("real", "elec2", "erm", seed, [10.0 + seed])
    found = cell(comparison(builder.read().of("real"), MICRO, ""), "ERM", "Elec2")
    assert (found.count, found.value) == (2, 10.5)


def test_what_a_suite_no_longer_lists_is_left_out(builder):
    for seed in range(4):
        builder.trial("real", "elec2", "erm", seed, [10.0 + seed])
    entry = json.loads((builder.path / "suites/real.json").read_text())
    builder.put("suites/real.json", entry | {"trials": entry["trials"][:2]})
    found = cell(comparison(builder.read().of("real"), MICRO, ""), "ERM", "Elec2")
    assert (found.count, found.value) == (2, 10.5)
    (builder.path / "suites/real.json").unlink()
    found = cell(comparison(builder.read().of("real"), MICRO, ""), "ERM", "Elec2")
    assert found.count == 4  # results of a suite that lists nothing go by it


def test_laws_and_times_and_trust(builder):
    for seed in range(2):
        told = {"laws": LAWS | {f"{law}_defect": 20.0 for law in LAWS}}
        told["trust"] = {"trust": [0.9, 0.5, 0.1], "correlation": 0.4 + 0.2 * seed, "coverage": 0.91, "size": 1.5}
        told["trust"]["sighted_correlation"] = 0.7
        builder.trial("laws", "two-moons", "neurallio", seed, [1, 2, 3], extra=told)
        builder.trial("laws", "two-moons", "neurallio-plain", seed, [1, 2, 3])
        builder.trial("runtime", "yearbook", "koodos", seed, [1, 2, 3])
        chosen = {"choice": {"candidates": [{"seconds": 20.0 + seed}, {"seconds": None}]}}
        builder.trial("runtime", "yearbook", "neurallio", seed, [1, 2, 3], extra=chosen)
    laws = law_table(builder.read().of("laws"), "Laws")
    found = cell(laws, "NeuralLio", "Associativity")
    assert (found.value, found.printed.mean, found.mark) == (98.0, 99.1, "")
    plain = next(row for row in laws.rows if row.title.endswith("T-Plain"))
    assert plain.cells[0].text == "–" and plain.cells[0].printed is None and laws.notes
    times = time_table(builder.read().of("runtime"), "Times")
    assert [one.value for one in times.rows[0].cells] == [0.0, 10.0, 0.5]
    assert [one.printed.mean for one in times.rows[0].cells[1:]] == [540.0, 0.1]
    assert cell(times, "NeuralLio", "choosing, s").value == 20.0  # a choice inside fit is told, not hidden
    trust = trust_table(builder.read().of("laws"))
    assert [one.value for one in trust.rows[0].cells] == pytest.approx([0.5, 0.7, 91.0, 1.5])
    assert trust_table(builder.read().of("runtime")).empty


def test_every_suite_of_the_package_has_its_place_and_its_command(builder):
    assert sorted(SUITES) == suite_names()
    results = table_one(builder)
    assert "bench robust --store" in results.command("robust") and "bench mine.toml" in results.command("mine")
