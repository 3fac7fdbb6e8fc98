"""A table as LaTeX, for the package booktabs: the best value bold, the second underlined, the paper's beside it."""

import re

from thetafield.report.store.table import Cell, Table, letter, part_of

LINE = 80  # characters that a line of text holds
SIGNS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "−": r"$-$",
    "–": "--",
    "…": r"\dots{}",
    "→": r"$\to$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "θ": r"$\theta$",
    "α": r"$\alpha$",
    "𝒯": r"$\mathcal{T}$",
    "“": "``",
    "”": "''",
    "’": "'",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{NO-BREAK SPACE}": "~",
}


def latex_table(table: Table) -> str:
    """Return a floating table with caption, label and notes."""
    spec, heads = "l", [escaped(table.head)]
    for column in table.columns:
        spec += "rr" if column.paper else "r"
        title = escaped(column.title) + (f" ({escaped(column.unit)})" if column.unit else "")
        heads += [title, r"\itshape paper"] if column.paper else [title]
    marked = any(cell.mark for row in table.rows for cell in row.cells)
    about = table.about + (" Bold is best, underlined second." if marked else "")
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escaped(table.title)}. {escaped(about)}}}",
        rf"\label{{tab:{re.sub('[^A-Za-z0-9-]', '-', table.name)}}}",
        # Wide tables are shrunk to the width of the text, which needs the package graphicx.
        *[r"\resizebox{\textwidth}{!}{%"] * (wide := _width(table) > LINE),
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        _line(heads),
        r"\midrule",
    ]
    parts = part_of(table.rows)
    for position, (group, rows) in enumerate(parts.items()):
        if group and len(parts) > 1:
            lines += [r"\midrule"] * (position > 0)
            lines.append(rf"\multicolumn{{{len(spec)}}}{{l}}{{\itshape {escaped(group)}}} \\")
        for row in rows:
            cells = [escaped(row.title)]
            for column, cell in zip(table.columns, row.cells, strict=True):
                cells.append(_cell(cell))
                if column.paper:
                    cells.append("" if cell.printed is None else escaped(cell.printed.text))
            lines.append(_line(cells))
    lines += [r"\bottomrule", r"\end{tabular}", *["}"] * wide]
    if table.notes:
        lines += ["", r"\smallskip", r"\begin{minipage}{\linewidth}", r"\footnotesize"]
        lines += [rf"\textsuperscript{{{letter(i)}}} {escaped(note)}\par" for i, note in enumerate(table.notes)]
        lines.append(r"\end{minipage}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _width(table: Table) -> int:
    """Return how many characters the widest line of a table has, with two between columns."""
    width = max(map(len, (table.head, *(row.title for row in table.rows))))
    for i, column in enumerate(table.columns):
        cells = [row.cells[i] for row in table.rows]
        head = len(column.title) + (len(column.unit) + 3 if column.unit else 0)
        width += 2 + max(head, *(len(cell.text) for cell in cells))
        if column.paper:
            width += 2 + max(5, *(len(cell.printed.text) if cell.printed else 0 for cell in cells))
    return width


def escaped(text: str) -> str:
    r"""Return text as LaTeX prints it, words in backticks in typewriter.

    >>> escaped("50 % of x_1 ± `a_b`")
    '50 \\% of x\\_1 $\\pm$ \\texttt{a\\_b}'
    """
    parts = ["".join(SIGNS.get(sign, sign) for sign in part) for part in text.split("`")]
    if len(parts) % 2 == 0:  # a lone backtick opens nothing
        return "`".join(parts)
    return "".join(rf"\texttt{{{part}}}" if i % 2 else part for i, part in enumerate(parts))


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    text = {"best": rf"\textbf{{{text}}}", "second": rf"\underline{{{text}}}"}.get(cell.mark, text)
    marks = ",".join(letter(note) for note in cell.notes)
    return rf"{text}\textsuperscript{{{marks}}}" if marks else text


def _line(cells: list[str]) -> str:
    # Behind the end of a line a bracket or a star would be taken for an option of that end.
    return rf"{'{}' * cells[0].startswith(('[', '*'))}{' & '.join(cells)} \\"
