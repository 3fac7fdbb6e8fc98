"""The same report as one Markdown document, for people who read it where the code is."""

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from thetafield.report.store.markdown import escaped, markdown_table
from thetafield.report.store.picture import Picture
from thetafield.report.store.sections import Section
from thetafield.report.store.shortfalls import KINDS, Shortfall

WIDTH = 760  # pixels of a figure


def markdown_document(
    parts: Sequence[Section],
    short: Mapping[str, Sequence[Shortfall]],
    command: str,
    lede: str,
    place: Path,
    figures: Path | None,
) -> str:
    """Return the whole document.

    Args:
        parts: The sections.
        short: What falls short, by kind.
        command: What writes it again.
        lede: What is in the store.
        place: The file it is meant for, from which links go out.
        figures: Folder with the figures; None leaves them out.
    """
    lines = ["# Results", "", f"{escaped(lede[0].upper() + lede[1:])} This file is made from stored results:"]
    lines += ["", *code(command), "", "## What falls short", ""]
    if not short:
        lines += ["Nothing of what this report looks for.", ""]
    for kind, found in short.items():
        lines += [f"**{KINDS[kind]}**", ""]
        lines += [f"- {escaped(one.what)}: {escaped(one.text)}" for one in found]
        lines.append("")
    stands = [line for part in parts for line in part.stands]
    if stands:
        lines += ["## What stands", "", *(f"- {escaped(line)}" for line in stands), ""]
    for part in parts:
        lines += [*_section(part, place, figures)]
    return "\n".join(lines).rstrip() + "\n"


def code(command: str) -> list[str]:
    """Return a command as a block of code."""
    return ["```sh", command, "```"]


def _section(part: Section, place: Path, figures: Path | None) -> list[str]:
    pictures = [one for one in part.pictures if figures is not None or (one.embedded is None and one.draw is None)]
    if not part.tables and not pictures:
        return []
    lines = [f"## {escaped(part.title)}", ""]
    lines += [escaped(part.about), ""] if part.about else []
    lines += [*code(part.command), ""] if part.command else []
    for position, table in enumerate(part.tables):
        if position or table.title != part.title:
            lines += [f"### {escaped(table.title)}", ""]
        marked = any(cell.mark for row in table.rows for cell in row.cells)
        lines += [escaped(table.about) + (" **Bold** is best, *italic* second." if marked else ""), ""]
        lines += [markdown_table(table), ""]
    for one in pictures:
        lines += [*_picture(one, place, figures), ""]
    return lines


def _picture(one: Picture, place: Path, figures: Path | None) -> list[str]:
    if one.embedded is None or figures is None:
        return [f"*{escaped(one.title)}* is not drawn. {escaped(one.reason)}"]
    link = quote(Path(os.path.relpath(figures / one.file, place.parent)).as_posix())
    alt = escape(one.title)
    return [
        f"### {escaped(one.title)}",
        "",
        f'<img src="{link}" width="{min(WIDTH, one.embedded.width)}" alt="{alt}">',
        "",
        f"*{escaped(one.caption)}*",
    ]
