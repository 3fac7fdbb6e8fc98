"""The paper's values: transcribed without a slip, and beside ours where they are of the same thing."""

import re
from pathlib import Path

import pytest

from reported import cell, table_one
from thetafield.report.store.comparison import MICRO, comparison
from thetafield.report.store.paper import paper

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
