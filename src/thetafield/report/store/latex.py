"""A table as LaTeX, for the package booktabs: the best value bold, the second underlined, the paper's beside it."""

import re

from thetafield.report.store.table import Cell, Table, letter, part_of

MOST_COLUMNS = 7
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
    wide = len(spec) > MOST_COLUMNS
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escaped(table.title)}. {escaped(table.about)}}}",
        rf"\label{{tab:{re.sub('[^A-Za-z0-9-]', '-', table.name)}}}",
        # Wide tables are shrunk to the width of the text, which needs the package graphicx.
        *[r"\resizebox{\textwidth}{!}{%"] * wide,
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
