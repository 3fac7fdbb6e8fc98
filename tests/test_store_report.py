"""Reports of a store: numbers against oracles by hand, reasons for what is missing, and a page that stands alone."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from thetafield.bench.spec import TrialSpec
from thetafield.datasets.base import DATASETS
from thetafield.errors import FormatError
from thetafield.fields.storage import save_model
from thetafield.report.demo import QUICK_OPTIONS
from thetafield.report.store import kept as kept_module
from thetafield.report.store.comma import csv_table
from thetafield.report.store.comparison import MACRO, MICRO, WORST, comparison
from thetafield.report.store.drawing import drawn, shares
from thetafield.report.store.grid import grid
from thetafield.report.store.kept import Kept
from thetafield.report.store.latex import latex_table
from thetafield.report.store.markdown import markdown_table
from thetafield.report.store.pairing import duels, paired
from thetafield.report.store.paper import paper
from thetafield.report.store.picture import Picture
from thetafield.report.store.properties import law_table, time_table, trust_table
from thetafield.report.store.reading import read_store
from thetafield.report.store.sections import Section, Wanted, sections
from thetafield.report.store.shortfalls import missing, ordered
from thetafield.report.store.sweeps import (
    convergence_panels,
    imperfection_panels,
    scaling_panels,
    sensitivity_panels,
    sweep_table,
)
from thetafield.report.store.table import Cell, Column, Row, marked
from thetafield.report.store.write import Asked, write_report
from thetafield.training.train import train_field

TEX = Path(__file__).resolve().parents[2] / "shared" / "paper" / "continuous-domain-generalization.tex"
TITLES = {
    "ERM": "erm",
    "IRM": "irm",
    "V-REx": "vrex",
    "GroupDRO": "groupdro",
    "Mixup": "mixup",
    "DANN": "dann",
    "MLDG": "mldg",
    "CDANN": "cdann",
    "URM": "urm",
    "ERM-D": "erm-d",
    "NDA": "nda",
    "CIDA": "cida",
    "TKNets": "tknets",
    "DRAIN": "drain",
    "Koodos": "koodos",
    "NeuralLio (Ours)": "neurallio",
    "Ours": "neurallio",
}
LAWS = {"identity": 99.96, "associativity": 98.0, "invertibility": 99.0}


class Builder:
    """Writes a store as the bench does, from made-up results."""

    def __init__(self, path):
        self.path, self.suites = path, {}
        self.put("store.json", {"format": 1, "thetafield": "0.1.0"})

    def put(self, name, content):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))

    def listed(self, suite, dataset, method, seed, group="", **given):
        spec = TrialSpec.of(dataset, method, seed=seed, group=group or suite, **given)
        entry = {"key": spec.key, "spec": spec.record, "labels": spec.labels}
        self.suites.setdefault(suite, []).append(entry)
        self.put(
            f"suites/{suite}.json",
            {"suite": suite, "title": suite.title(), "about": f"About {suite}.", "trials": self.suites[suite]},
        )
        return spec, entry | {"suite": suite}

    def trial(self, suite, dataset, method, seed, errors, metric="error", history=None, extra=None, **given):
        spec, about = self.listed(suite, dataset, method, seed, **given)
        errors = np.asarray(errors, float)
        content = {
            "metric": metric,
            "score": float(errors.mean()),
            "macro": float(errors.mean()) + 1,
            "worst_decile": float(errors.max()),
            "per_domain": errors.tolist(),
            "laws": None,
            "relevance": {},
            "train_seconds": 10.0 + seed,
            "eval_seconds": 0.5,
            "options": dict(spec.options),
            "device": "a machine",
            "versions": {"torch": "2"},
        }
        content |= extra or {}
        self.put(f"results/{spec.key}.json", content | about | {"command": spec.command, "finished": "2025-11-15T20"})
        if history is not None:
            self.put(f"histories/{spec.key}.json", {"key": spec.key, "history": history})
        return spec

    def absent(self, suite, dataset, method, seed, kind, reason, **given):
        spec, about = self.listed(suite, dataset, method, seed, **given)
        self.put(f"absent/{spec.key}.json", about | {"kind": kind, "reason": reason})

    def failure(self, suite, dataset, method, seed, sentence, **given):
        spec, about = self.listed(suite, dataset, method, seed, **given)
        self.put(f"failures/{spec.key}.json", about | {"kind": "error", "sentence": sentence, "attempts": 2})

    def read(self):
        return read_store(self.path)


@pytest.fixture
def builder(tmp_path):
    return Builder(tmp_path / "store")


def table_one(builder):
    """Three methods on 2-Moons with means by hand, and a gap of every kind."""
    for seed, (erm, nda, ours) in enumerate([(30, 20, 4), (32, 24, 5), (34, 28, 6)]):
        for method, level in (("erm", erm), ("nda", nda), ("neurallio", ours)):
            builder.trial("paper-table1", "two-moons", method, seed, level + np.linspace(-1, 1, 20))
    return with_gaps(builder)


def with_gaps(builder):
    """Gaps of every kind beside what is there already."""
    for seed in range(3):
        for dataset, lack in (("two-moons", "has 2: scale, rotation"), ("mnist", "has 3: rotation, colour, occlusion")):
            reason = f"TKNets needs one ordered descriptor coordinate, but {dataset} {lack}."
            builder.absent("paper-table1", dataset, "tknets", seed, "needs", reason)
        builder.absent("paper-table1", "traffic", "erm", seed, "data", "traffic needs /data/flow.npy: get it.")
    builder.trial("paper-table1", "mnist", "erm", 0, [17.0, 19.0])
    builder.failure("paper-table1", "mnist", "erm", 1, "The loss is not finite: lower lr.")
    builder.listed("paper-table1", "mnist", "erm", 2)
    builder.listed("paper-table1", "mnist", "nda", 0)
    return builder.read().of("paper-table1")


def cell(table, row, column):
    """The cell of a row and a column by their titles."""
    position = [one.title for one in table.columns].index(column)
    return next(one for one in table.rows if one.title == row).cells[position]


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


def test_papers_values_stand_beside_ours(builder):
    builder.trial("paper-table1", "two-moons", "neurallio", 0, [1.0], dataset_options={"num_train": 80})
    table = comparison(table_one(builder), MICRO, "Table")
    assert cell(table, "NeuralLio", "2-Moons").printed.text == "3.2 ± 1.2"
    assert cell(table, "NDA", "MNIST").printed.text == "26.3 ± 0.7"  # where ours is missing too
    assert cell(table, "TKNets", "MNIST").printed.mean is None
    # The paper has no value for other numbers of training domains.
    assert cell(table, "NeuralLio", "2-Moons, num_train=80").printed is None


def test_ablations_stand_beside_their_lines(builder):
    for method, options in (
        ("neurallio-plain", {}),
        ("neurallio-paper", {"gate": False}),
        ("neurallio-paper", {"gate": True}),
        ("neurallio-paper", {"gate": True, "charts": False}),
        ("neurallio", {"metric": False}),
    ):
        builder.trial("ablation", "traffic", method, 0, [16.0, 17.0], metric="mae", options=options)
    table = comparison(builder.read().of("ablation"), MICRO, "")
    printed = {row.title: row.cells[0].printed and row.cells[0].printed.mean for row in table.rows}
    assert list(printed.values()) == [16.5, 16.3, 15.1, 16.1, None]
    assert [row.ours for row in table.rows] == [False, False, True, False, False]


@pytest.mark.skipif(not TEX.is_file(), reason="the paper's LaTeX does not lie beside the repository")
def test_transcription_is_what_the_paper_prints():
    text = TEX.read_text(encoding="utf-8")

    def rows(label):
        block = text[: text.index(rf"\label{{{label}}}")].rpartition(r"\begin{tabular}")[2]
        block = re.sub(r"\\(?:textbf|underline|cite)\{([^{}]*)\}", r"\1", re.sub(r"~?\\cite\{[^}]*\}", "", block))
        lines = [line.split(r"\\")[0].replace(r"$\pm$", "±") for line in block.splitlines() if "&" in line]
        return [[re.sub(r"\s+", " ", part).strip() for part in line.split("&")] for line in lines]

    stored = paper()
    datasets = list(stored["main"])
    found = {name: {} for name in datasets}
    for title, *values in rows("tab:continuous_exp"):
        if title in TITLES:
            for name, value in zip(datasets, values, strict=True):
                found[name][TITLES[title]] = value
    assert found == stored["main"] and all(len(column) == 16 for column in found.values())
    ablation = [values for _, *values in rows("tab:ablation")[1:]]
    for position, name in enumerate(("two-moons", "traffic")):
        assert [values[position] for values in ablation] == list(stored["ablation"][name].values())
    assert {name.lower(): value for name, value in rows("tab:algebraic_validation")[1:]} == stored["laws"]
    times = {TITLES[title]: {"train_seconds": t, "eval_seconds": e} for title, t, e in rows("tab:run_time")[1:]}
    assert times == stored["runtime"]
    assert "20 training domains, the model already achieves a test error below 10" in text
    assert "beyond 50 domains, the error consistently falls below 5" in text


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


def test_pairing_asks_for_the_same_seed_and_enough_domains(builder):
    few, equal = trials(builder, "erm", [[1, 2, 3]]), trials(builder, "nda", [[1, 2, 3]])
    assert paired(few, equal).p is None
    builder.trial("real", "elec2", "film", 7, [1, 2, 3])
    alone = [trial for trial in builder.read().trials if trial.method == "film"]
    assert paired(alone, few) is None


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


def test_the_rival_is_the_best_of_the_others(builder):
    results = table_one(builder)
    [duel] = [duel for duel in duels(results) if duel.column == "2-Moons"]
    assert duel.rival == "NDA" and duel.paired.difference == pytest.approx(-19.0) and duel.paired.p < 0.001


def test_shortfalls_are_found(builder):
    table_one(builder)
    for seed, level in enumerate((20.0, 21.0, 90.0)):
        builder.trial("real", "elec2", "erm", seed, level / 2 + np.arange(12.0))
        builder.trial("real", "elec2", "neurallio", seed, level + np.arange(12.0))
    results = builder.read()
    parts = sections(results, Wanted(figures=False))
    short = ordered([*(one for part in parts for one in part.shortfalls), *missing(results)])
    assert [one.what for one in short["paper"]] == ["NeuralLio, 2-Moons"]
    assert "5.00 ± 1.00 here, 3.2 ± 1.2 in the paper." in short["paper"][0].text
    assert [one.what for one in short["rival"]] == ["Elec2"] and "ERM errs less" in short["rival"][0].text
    assert [one.what for one in short["unsteady"]] == ["NeuralLio on Elec2"]
    assert any("sensitivity" in one.text and "bench SUITE --store" in one.text for one in short["missing"])
    assert any("NeuralLio clearly errs less" in line and "NDA" in line for part in parts for line in part.stands)


def test_a_store_of_ones_own_suite_misses_no_other(builder):
    builder.trial("own", "two-moons", "erm", 0, [1.0])
    assert not list(missing(builder.read()))


def test_a_baseline_that_is_strong_when_tuned_is_not_called_weak(builder):
    for seed in range(2):
        builder.trial("paper-table1", "two-moons", "dann", seed, [50.0, 50.2])
        builder.trial("paper-table1", "two-moons", "cdann", seed, [50.0, 50.2])
        builder.trial("paper-table1", "two-moons", "dann", seed, [33.0, 34.0], tune=8, group="tuned")
    [part] = sections(builder.read(), Wanted(figures=False))
    assert [one.what for one in part.shortfalls if one.kind == "baseline"] == ["CDANN, 2-Moons"]


def test_laws_and_times_and_trust(builder):
    for seed in range(2):
        told = {"laws": LAWS | {f"{law}_defect": 20.0 for law in LAWS}}
        told["trust"] = {"trust": [0.9, 0.5, 0.1], "correlation": 0.4 + 0.2 * seed, "coverage": 0.91, "size": 1.5}
        builder.trial("laws", "two-moons", "neurallio", seed, [1, 2, 3], extra=told)
        builder.trial("laws", "two-moons", "neurallio-plain", seed, [1, 2, 3])
        builder.trial("runtime", "yearbook", "koodos", seed, [1, 2, 3])
    laws = law_table(builder.read().of("laws"), "Laws")
    found = cell(laws, "NeuralLio", "Associativity")
    assert (found.value, found.printed.mean, found.mark) == (98.0, 99.1, "")
    plain = next(row for row in laws.rows if row.title.endswith("T-Plain"))
    assert plain.cells[0].text == "–" and plain.cells[0].printed is None and laws.notes
    times = time_table(builder.read().of("runtime"), "Times")
    assert [(one.value, one.printed.mean) for one in times.rows[0].cells] == [(10.5, 540.0), (0.5, 0.1)]
    trust = trust_table(builder.read().of("laws"))
    assert [one.value for one in trust.rows[0].cells] == pytest.approx([0.5, 91.0, 1.5])
    assert trust_table(builder.read().of("runtime")).empty


def test_imperfections_are_told_apart(builder):
    for level in range(3):
        builder.trial(
            "imperfection", "two-moons", "neurallio", 0, [level], dataset_options={"noise_coordinates": level}
        )
        builder.trial(
            "imperfection", "two-moons", "neurallio", 0, [10 + level], dataset_options={"dropped_coordinates": level}
        )
    results = builder.read().of("imperfection")
    noise, redundancy, dropped = imperfection_panels(results)
    [line] = noise.lines.values()
    assert [(point.x, point.cell(noise.read).value) for point in line] == [(0, 0), (1, 1), (2, 2)]
    # Dropping none of eight projections is not the same as true coordinates.
    assert [point.cell(dropped.read).value for point in next(iter(dropped.lines.values()))] == [10, 11, 12]
    assert [point.x for point in next(iter(redundancy.lines.values()))] == [0]
    table = sweep_table(noise, results, "Noise")
    assert [column.title for column in table.columns] == ["0", "1", "2"] and table.name == "imperfection-noise"


def test_sensitivity_varies_one_option_at_a_time(builder):
    for value in (8, 32, 64):
        builder.trial("sensitivity", "two-moons", "neurallio-paper", 0, [value], options={"latent_dim": value})
    for value in (3, 5, 7):
        builder.trial("sensitivity", "two-moons", "neurallio-paper", 0, [100 + value], options={"neighbours": value})
    panels = {panel.name: panel for panel in sensitivity_panels(builder.read().of("sensitivity"))}
    [latent], [charts] = panels["latent-dim"].lines.items(), panels["neighbours"].lines.items()
    assert latent[0] == charts[0] == "NeuralLio (paper)"
    assert [point.x for point in latent[1]] == [8, 32, 64] and [point.x for point in charts[1]] == [3, 5, 7]
    # k = 5 and a latent of 32 are the defaults: asked for twice, one seed counts once.
    assert all(len(point.place.trials) == 1 for points in (latent[1], charts[1]) for point in points)


def test_convergence_has_two_sweeps(builder):
    for count in (10, 20, 50):
        builder.trial("convergence", "two-moons", "neurallio", 0, [count], dataset_options={"num_train": count})
    for epochs in (100, 600):
        builder.trial("convergence", "two-moons", "neurallio", 0, [1000 + epochs], options={"epochs": epochs})
    domains, epochs = convergence_panels(builder.read().of("convergence"))
    assert [point.x for point in domains.lines["NeuralLio"]] == [10, 20, 50]
    assert [point.x for point in epochs.lines["NeuralLio"]] == [100, 600]


def names_of_all_kinds(builder):
    label = r"a_b & 50 % {x} #1 ~ ^ \cmd $y$ <θ> 𝒯 | *star*"
    builder.trial("own", "two-moons", "erm", 0, [1.0], method_label=label, dataset_label="α_β & co")
    builder.failure("own", "two-moons", "nda", 0, "It fell with `code_x` & 100 %.", dataset_label="α_β & co")
    return comparison(builder.read().of("own"), MICRO, "A_title & more").settled()


def test_latex_is_balanced_and_escaped(builder):
    odd = names_of_all_kinds(builder)
    for table in (odd, comparison(table_one(builder), MICRO, "Table").settled()):
        text = latex_table(table)
        bare = re.sub(r"\\[\\{}&%$#_]", "", text)
        assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0 and "#" not in bare
        assert "%" not in bare.replace("{!}{%", "")
        begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end"))
        assert sorted(begun) == sorted(ended) and begun[0] == ended[-1] == "table"
        columns = len(re.search(r"begin{tabular}{(\w+)}", text)[1])
        inside = text.partition(r"\midrule")[2].partition(r"\bottomrule")[0].splitlines()
        rows = [line.replace(r"\&", "") for line in inside if line.endswith(r"\\") and "multicolumn" not in line]
        assert len(rows) == len(table.rows) and all(row.count("&") == columns - 1 for row in rows)
        assert text.isascii() or not re.search(r"[θ𝒯±−]", text)
    assert r"\texttt{code\_x}" in latex_table(odd)


def test_markdown_has_whole_rows(builder):
    for table in (names_of_all_kinds(builder), comparison(table_one(builder), MICRO, "Table").settled()):
        lines = [line for line in markdown_table(table).splitlines() if line.startswith("|")]
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(widths) == 1 and r"\*star\*" not in lines[0]


def test_csv_has_every_number_in_full(builder):
    table = comparison(table_one(builder), MICRO, "Table").settled()
    rows = list(csv.DictReader(io.StringIO(csv_table(table))))
    assert len(rows) == len(table.rows) * len(table.columns)
    nda = next(row for row in rows if (row["row"], row["column"]) == ("NDA", "2-Moons"))
    assert (float(nda["mean"]), float(nda["std"]), nda["repetitions"]) == (24.0, 4.0, "3")
    assert (nda["paper_mean"], nda["paper_std"], nda["mark"]) == ("25.4", "0.3", "second")
    lost = next(row for row in rows if (row["row"], row["column"]) == ("ERM", "Traffic"))
    assert lost["mean"] == "" and "flow.npy" in lost["notes"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A store with something of every suite, its report, and what the command printed."""
    folder = tmp_path_factory.mktemp("report")
    builder = Builder(folder / "store")
    rng = np.random.default_rng(0)
    data = DATASETS["two-moons"](0)
    for method, level in (("erm", 34), ("erm-d", 13), ("neurallio", 3)):
        for seed in range(2):
            errors = np.clip(rng.normal(level, level / 5, 591), 0, 100)
            extra = {"relevance": {"scale": 0.1 + seed / 10, "rotation": 1.0}}
            extra["trust"] = {"trust": np.clip(1 - errors / 60, 0, 1).tolist(), "correlation": 0.7}
            spec = builder.trial("paper-table1", "two-moons", method, seed, errors, extra=extra)
            if seed == 0:
                model = train_field(data.train, method, seed=0, options=QUICK_OPTIONS[method], device="cpu").model
                save_model(model, builder.path / "fields" / spec.key)
    with_gaps(builder)
    for suite, name, levels in (
        ("imperfection", "noise_coordinates", (1, 2, 5)),
        ("imperfection", "redundant_coordinates", (1, 2)),
        ("imperfection", "dropped_coordinates", (0, 4)),
        ("convergence", "num_train", (10, 20)),
        ("scaling", "num_train", (20, 100)),
    ):
        for level in levels:
            losses = [{"phase": "joint", "epoch": i + 1, "loss": 1 / (i + 1)} for i in range(5)]
            extra = {"train_seconds": 1.0 + level}
            builder.trial(
                suite,
                "two-moons",
                "neurallio",
                0,
                [5 + level],
                dataset_options={name: level},
                history=losses,
                extra=extra,
            )
    for epochs in (10, 20):
        losses = [{"phase": "joint", "epoch": i + 1, "loss": 2 / (i + 1)} for i in range(epochs)]
        builder.trial("convergence", "two-moons", "neurallio", 0, [9.0], options={"epochs": epochs}, history=losses)
    for value in (8, 16):
        builder.trial("sensitivity", "two-moons", "neurallio", 0, [4.0], options={"latent_dim": value})
    for method in ("erm", "neurallio"):
        errors = [10.0, 12.0, 9.0, 14.0, 11.0, 8.0, 13.0, 10.0, 9.5, 7.0, 12.5, 10.5, 8.5]
        builder.trial("real", "two-moons-time", method, 0, errors, dataset_options={"num_test": 13})
        builder.trial("runtime", "two-moons-time", method, 0, errors)
    builder.trial("laws", "two-moons", "neurallio", 0, [3.0], extra={"laws": LAWS}, options={"gate": True})
    builder.put("speed.json", {"scaling": {"parameters": {"points": [
        {"parameters": 1000, "step_seconds": 0.01}, {"parameters": 10000, "step_seconds": 0.1}]}}})  # fmt: skip
    # A folder name that has to be quoted in a command.
    out = folder / "the page"
    asked = Asked(out, folder / "docs" / "results.md", folder / "docs" / "images", worst=True)
    return folder, json.loads(json.dumps(write_report(builder.path, asked).record()))


@pytest.fixture(scope="module")
def page(report):
    return Path(report[1]["page"]).read_text(encoding="utf-8")


class Resources(HTMLParser):
    """Collects tags, what they load, names, and pictures."""

    def __init__(self):
        super().__init__()
        self.loads, self.tags, self.ids, self.pictures, self.links = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.loads += [attributes[key] for key in ("src", "srcset", "data", "poster", "action") if key in attributes]
        self.links += [attributes["href"]] if "href" in attributes else []
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.pictures += [attributes] if tag == "img" else []


@pytest.fixture(scope="module")
def parsed(page):
    parser = Resources()
    parser.feed(page)
    return parser


FIGURES = [
    *("paper-table1-overview", "paper-table1-distance", "paper-table1-relevance", "paper-table1-trust"),
    *("real-overview", "real-distance", "real-places", "imperfection", "convergence", "sensitivity", "scaling"),
    *("descriptor-space", "error-maps", "boundaries", "manifold", "directions"),
]


def test_page_stands_alone(page, parsed):
    assert parsed.loads and all(load.startswith("data:") for load in parsed.loads)
    # Links go to places on the page; the icon is empty.
    assert all(link.startswith("#") or link == "data:," for link in parsed.links)
    assert all(link[1:] in parsed.ids for link in parsed.links if link.startswith("#"))
    assert "@import" not in page and "url(" not in page.partition("</style>")[0]
    assert len(parsed.ids) == len(set(parsed.ids)) and len(page) < 6_000_000


def test_page_says_what_falls_short_first(page):
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert heads[0] == "What falls short" and heads[-1].startswith("How this page")
    assert "2-Moons" in page.partition("What falls short</h2>")[2].partition("</section>")[0]


def test_page_has_all_tables_and_figures(page, parsed, report):
    figures = [name.removeprefix("figure-") for name in parsed.ids if name.startswith("figure-")]
    assert [name for name in FIGURES if name not in figures] == []
    assert all(len(one["alt"]) > 30 for one in parsed.pictures)
    tables = {Path(path).stem for path in report[1]["tables"]}
    assert {name.removeprefix("table-") for name in parsed.ids if name.startswith("table-")} == tables
    assert {"paper-table1", "paper-table1-worst", "paper-table1-paired", "imperfection-noise", "laws"} <= tables
    assert "paper 3.2 ± 1.2" in page and "bench paper-table1 --store" in page


def test_what_is_not_drawn_is_said(page, report):
    """MNIST is not here, or has other domains than the made-up result; 2-Moons has a map of its own."""
    undrawn = report[1]["not_drawn"]
    assert "mnist" in undrawn["paper-table1-places"] and 'id="absent-paper-table1-places"' in page
    assert "trust" in undrawn["real-trust"]


def test_files_are_there_and_counted(report):
    written = report[1]
    assert all(Path(path).is_file() for path in (*written["tables"], *written["figures"], written["document"]))
    assert {Path(path).suffix for path in written["tables"]} == {".md", ".tex", ".csv"}
    assert written["trials"] == len(list((report[0] / "store" / "results").iterdir()))
    assert written["gaps"] == {"data": 3, "failed": 1, "missing": 2, "needs": 6}


def test_document_has_tables_commands_and_figures(report):
    text = Path(report[1]["document"]).read_text(encoding="utf-8")
    assert text.index("## What falls short") < text.index("## Paper-Table1")
    assert "thetafield bench paper-table1 --store" in text and "| Method |" in text
    links = re.findall(r'<img src="([^"]+)"', text)
    assert len(links) >= 10 and all((report[0] / "docs" / link).is_file() for link in links)


def test_report_is_a_pure_function_of_the_store(report, tmp_path):
    folder = report[0]
    again = write_report(folder / "store", Asked(markdown=tmp_path / "results.md"))
    write_report(folder / "store", Asked(markdown=tmp_path / "again.md"))
    text = (tmp_path / "results.md").read_text()
    assert text.replace("results.md", "") == (tmp_path / "again.md").read_text().replace("again.md", "")
    assert "figures" not in again.files and "<img" not in text


def test_dear_figures_are_kept_while_nothing_changes(report, monkeypatch):
    folder, store = report[0] / "the page" / "figures", read_store(report[0] / "store")
    pictures = {one.name: one for part in sections(store, Wanted()) for one in part.pictures}
    kept = Kept(folder)
    assert kept.find(pictures["manifold"]).uri == Picture.drawn(pictures["manifold"]).embedded.uri
    assert kept.find(pictures["imperfection"]) is None  # cheap ones are drawn every time
    assert kept.find(replace(pictures["manifold"], content_digest="another field")) is None
    monkeypatch.setattr(kept_module, "_code", lambda: "other code")
    assert kept.find(pictures["manifold"]) is None
    monkeypatch.undo()
    file = folder / pictures["manifold"].file
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    assert kept.find(pictures["manifold"]) is None
    file.write_bytes(content)


def test_trials_without_extras_are_accepted(builder):
    """Older results have neither trust nor relevance nor a device."""
    spec = builder.trial("real", "elec2", "erm", 0, [1.0, 2.0])
    path = builder.path / "results" / f"{spec.key}.json"
    content = json.loads(path.read_text())
    for name in ("relevance", "laws", "device", "versions", "finished", "command"):
        content.pop(name, None)
    path.write_text(json.dumps(content))
    shutil.rmtree(builder.path / "suites")
    out = builder.path.parent / "out"
    written = write_report(builder.path, Asked(out=out))
    assert (out / "index.html").is_file() and written.trials == 1


def test_errors_of_other_domains_are_not_mapped(builder):
    """Where a dataset has other domains now, its figures say so and the report goes on."""
    for method in ("erm", "neurallio"):
        builder.trial("real", "two-moons", method, 0, [1.0, 2.0, 3.0])
    written = write_report(builder.path, Asked(out=builder.path.parent / "out"))
    assert "591 test domains here, but 3" in written.undrawn["real-distance"]
    assert "591 test domains here, but 3" in written.undrawn["error-maps"]


def test_a_store_of_gaps_alone_has_a_report(builder):
    builder.absent("real", "fmow", "erm", 0, "data", "fmow needs files.")
    out = builder.path.parent / "out"
    assert write_report(builder.path, Asked(out=out)).gaps == {"data": 1}
    assert "fmow needs files." in (out / "index.html").read_text()


def test_scaling_without_sizes_says_where_they_are_measured(builder):
    builder.trial("scaling", "two-moons", "neurallio", 0, [1.0], dataset_options={"num_train": 10})
    [part] = sections(builder.read(), Wanted(figures=True))[:1]
    assert part.pictures[0].draw is None and "size" in part.pictures[0].reason
    assert len(scaling_panels(builder.read().of("scaling"))) == 2


def test_a_share_that_fails_elsewhere_fails_here():
    def broken():
        raise RuntimeError("a figure that cannot be drawn")

    good = Section("a", "A", "", pictures=(Picture("a", "A", "", "", reason="nothing to draw"),))
    bad = Section("b", "B", "", pictures=(Picture("b", "B", "", "", draw=broken),))
    assert drawn([good])[0].pictures[0].embedded is None
    with pytest.raises(RuntimeError, match="cannot be drawn"):
        drawn([good, bad, bad])
    assert shares([1, 1, 1, 1]) == ([0, 2], [1, 3])


def broken_store(tmp_path, kind):
    builder = Builder(tmp_path / "store")
    if kind == "nothing there":
        return tmp_path / "elsewhere"
    if kind == "another format":
        builder.put("store.json", {"format": 99})
    if kind == "damaged marker":
        (builder.path / "store.json").write_text("{")
    if kind == "damaged result":
        spec = builder.trial("real", "elec2", "erm", 0, [1.0])
        (builder.path / "results" / f"{spec.key}.json").write_text('{"metric": "err')
    if kind == "half a result":
        spec = builder.trial("real", "elec2", "erm", 0, [1.0])
        builder.put(f"results/{spec.key}.json", {"spec": spec.record, "metric": "error"})
    if kind == "damaged suite":
        builder.trial("real", "elec2", "erm", 0, [1.0])
        builder.put("suites/real.json", {"trials": [{"no": "key"}]})
    return builder.path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nothing there", "is not a store"),
        ("another format", "format 99"),
        ("damaged marker", "damaged"),
        ("empty", "empty store"),
        ("damaged result", "damaged"),
        ("half a result", "damaged"),
        ("damaged suite", "damaged"),
    ],
)
def test_bad_stores_are_told_in_one_sentence(tmp_path, kind, words):
    with pytest.raises(FormatError, match=words) as caught:
        write_report(broken_store(tmp_path, kind), Asked(markdown=tmp_path / "results.md"))
    assert "\n" not in str(caught.value) and not (tmp_path / "results.md").exists()


def program(*words):
    command = [sys.executable, "-m", "thetafield", "report", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_program_leaves_with_two(tmp_path):
    done = program(tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


def test_the_program_prints_one_object(builder):
    builder.trial("real", "elec2", "erm", 0, [1.0, 2.0])
    done = program(builder.path, "--markdown", builder.path.parent / "results.md", "--json")
    assert done.returncode == 0 and done.stderr == ""
    assert json.loads(done.stdout)["trials"] == 1 and (builder.path.parent / "results.md").is_file()


def test_help_is_light():
    script = "import sys; sys.argv = ['thetafield', 'report', '--help']\nfrom thetafield.cli import app\n"
    script += "try: app()\nexcept SystemExit: pass\nsys.exit(bool({'torch', 'numpy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium to open the page")
def test_browser_shows_everything_sorts_and_logs_nothing(page, parsed, tmp_path):
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update"
    flags += " --disable-sync --no-first-run --enable-logging=stderr --v=0 --dump-dom"
    probe = tmp_path / "index.html"
    # The probe clicks a head of the main table twice and writes down what came of everything.
    script = """<script>addEventListener("load", () => {
      const drawn = [...document.images].filter(i => i.complete && i.naturalWidth > 0).length;
      const table = document.getElementById("table-paper-table1");
      const names = () => [...table.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].textContent.trim());
      const shown = [...document.querySelectorAll("table")].filter(t => t.offsetHeight > 20).length;
      const button = table.tHead.rows[0].cells[1].querySelector("button"), states = [names()];
      for (let i = 0; i < 3; i++) { button.click(); states.push(names()); }
      const wide = document.documentElement.scrollWidth - innerWidth;
      document.body.dataset.found = JSON.stringify({drawn, shown, wide, states,
        copies: [...document.querySelectorAll("button.copy")].filter(b => !b.hidden).length});
    })</script></body>"""
    probe.write_text(page.replace("</body>", script), encoding="utf-8")
    command = ["chromium", *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", "--window-size=500,900"]
    done = subprocess.run([*command, probe.as_uri()], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "CONSOLE" not in done.stderr
    found = json.loads(re.search(r'data-found="([^"]*)"', done.stdout)[1].replace("&quot;", '"'))
    assert found["drawn"] == len(parsed.pictures) and found["shown"] == parsed.tags.count("table")
    assert found["wide"] <= 0 and found["copies"] > 5
    first, rising, falling, last = found["states"]
    assert first == last and len(first) > len(rising)  # the parts' heads hide while rows are sorted
    assert rising.index("NeuralLio") < rising.index("ERM") and falling.index("NeuralLio") > falling.index("ERM")
