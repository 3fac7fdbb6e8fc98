"""A table as CSV, one line for each cell: numbers in full, for other programs."""

import csv
import io

from thetafield.report.store.table import Table

FIELDS = (
    *("group", "row", "column", "unit", "mean", "std", "repetitions", "text", "mark"),
    *("paper", "paper_mean", "paper_std", "notes"),
)


def csv_table(table: Table) -> str:
    """Return the table with a head line."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(FIELDS)
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            paper = cell.printed
            beside = ("", None, None) if paper is None else (paper.text, paper.mean, paper.std)
            notes = " ".join(table.notes[note] for note in cell.notes)
            about = (row.group, row.title, column.title, column.unit)
            # Missing numbers are empty fields, as spreadsheets and data frames expect them.
            writer.writerow((*about, cell.value, cell.spread, cell.count or None, cell.text, cell.mark, *beside, notes))
    return buffer.getvalue()
