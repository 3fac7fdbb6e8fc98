"""A table as Markdown: the best value bold, the second in italics, the paper's in a column of its own."""

from collections.abc import Iterable

from thetafield.report.store.table import Cell, Table, letter, part_of


def markdown_table(table: Table) -> str:
    """Return the table with its notes, ready to stand in a document."""
    heads, ends = [escaped(table.head)], [":--"]
    for column in table.columns:
        heads.append(escaped(column.title) + (f" ({escaped(column.unit)})" if column.unit else ""))
        ends.append("--:")
        if column.paper:
            heads.append("paper")
            ends.append("--:")
    lines = [_line(heads), _line(ends)]
    parts = part_of(table.rows)
    for group, rows in parts.items():
        if group and len(parts) > 1:
            lines.append(_line([f"*{escaped(group)}*", *[""] * (len(heads) - 1)]))
        for row in rows:
            cells = [escaped(row.title)]
            for column, cell in zip(table.columns, row.cells, strict=True):
                cells.append(_cell(cell))
                if column.paper:
                    cells.append("" if cell.printed is None else escaped(cell.printed.text))
            lines.append(_line(cells))
    notes = [f"<sup>{letter(i)}</sup> {escaped(note)}" for i, note in enumerate(table.notes)]
    return "\n".join([*lines, *([""] if notes else []), "  \n".join(notes)]).rstrip() + "\n"


def escaped(text: str) -> str:
    r"""Return text in which nothing is taken for Markdown; words in backticks stay code.

    >>> print(escaped("a|b *c* `x*y`"))
    a\|b \*c\* `x*y`
    """
    parts = text.split("`")
    plain = [_plain(part) if i % 2 == 0 or i == len(parts) - 1 else part for i, part in enumerate(parts)]
    return "`".join(plain)


def _plain(text: str) -> str:
    for sign in ("\\", "|", "*", "_"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;")  # which all readers of Markdown know, as they do not know a backslash before it


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    text = {"best": f"**{text}**", "second": f"*{text}*"}.get(cell.mark, text)
    marks = ",".join(letter(note) for note in cell.notes)
    return f"{text}<sup>{marks}</sup>" if marks else text


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
