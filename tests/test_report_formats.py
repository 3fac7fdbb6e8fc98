"""Tables as LaTeX, Markdown and CSV: whole, escaped, and with every number."""

import csv
import io
import re

import pytest

from reported import table_one
from thetafield.bench.packing import pack
from thetafield.bench.records import StoreError
from thetafield.report.store.comma import csv_table
from thetafield.report.store.comparison import MICRO, comparison
from thetafield.report.store.latex import latex_table
from thetafield.report.store.markdown import markdown_table
from thetafield.report.store.write import Asked, write_report


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


def test_labels_do_not_break_tables(builder):
    """What would be an option of the end of a line before it, and lines of a label."""
    for method, label in (("erm", "[a]"), ("nda", "*b*"), ("film", "two\nlines")):
        builder.trial("own", "two-moons", method, 0, [1.0], method_label=label, dataset_label="also\ntwo")
    table = comparison(builder.read().of("own"), MICRO, "Own").settled()
    rows = latex_table(table).partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    assert [row.partition(" &")[0] for row in rows] == ["{}[a]", "{}*b*", "two lines"]
    assert len(markdown_table(table).splitlines()) == 5 and "also two" in markdown_table(table)


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


def test_signs_read_alike_wherever_markdown_is_read(builder):
    """GitHub knows a backslash before a smaller-than sign, other readers print it."""
    label = {"method_label": "p < 0.001", "dataset_label": "moons"}
    builder.trial("own", "two-moons", "erm", 0, [1.0], **label)
    text = markdown_table(comparison(builder.read().of("own"), MICRO, "Own").settled())
    assert "| p &lt; 0.001 |" in text and "\\<" not in text


def test_wide_tables_are_shrunk_to_the_page_and_marks_are_explained(builder):
    for title in ("Short", "A name of a method that is so long that it takes a line of text all by itself, and more"):
        builder.trial("own", "two-moons", "erm", 0, [1.0], method_label=title, dataset_label="moons")
        builder.trial("own", "two-moons", "nda", 0, [2.0], dataset_label="moons")
        table = comparison(builder.read().of("own"), MICRO, "Own").settled()
        text = latex_table(table)
        assert ("resizebox" in text) == (title != "Short")
        assert "Bold is best, underlined second." in text


def test_a_packed_store_is_reported_as_its_folder_is(builder, tmp_path):
    table_one(builder)
    pack([builder.path], tmp_path / "own.jsonl.xz")
    texts = []
    for store in (builder.path, tmp_path / "own.jsonl.xz"):
        write_report(store, Asked(markdown=tmp_path / "results.md"))
        texts.append((tmp_path / "results.md").read_text())
    folder, packed = texts
    assert "bench paper-table1 --store own\n" in packed and f"thetafield report {tmp_path}/own.jsonl.xz" in packed
    as_folder = packed.replace(f"{tmp_path}/own.jsonl.xz", str(builder.path))
    assert as_folder.replace("--store own", f"--store {builder.path}") == folder
    (tmp_path / "torn.jsonl.xz").write_bytes(b"no such thing")
    with pytest.raises(StoreError, match="damaged or no packed store"):
        write_report(tmp_path / "torn.jsonl.xz", Asked(markdown=tmp_path / "results.md"))
