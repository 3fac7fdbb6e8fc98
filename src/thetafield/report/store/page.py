"""The page of a store: one HTML file that asks for nothing else."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from thetafield.report.store.reading import Results
from thetafield.report.store.sections import Section
from thetafield.report.store.shortfalls import KINDS, Shortfall
from thetafield.report.store.table import Table, letter, part_of
from thetafield.report.store.wording import headline, lede

MOST = 8  # shortfalls of a kind that are told before the others are folded away


@dataclass(frozen=True)
class Made:
    """How a report came about.

    Args:
        command: The command that makes it again.
        facts: What else is known, by name.
    """

    command: str
    facts: Mapping[str, str]


def render_store_page(
    results: Results, parts: Sequence[Section], short: Mapping[str, Sequence[Shortfall]], made: Made
) -> str:
    """Return the whole page as HTML.

    Args:
        results: What the store holds.
        parts: The sections, with their figures drawn.
        short: What falls short, by kind.
        made: How the report came about.
    """
    package = files("thetafield.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"words": words, "anchor": anchor}
    template = environment.from_string(package.joinpath("store", "page.html.jinja").read_text(encoding="utf-8"))
    styles = [package.joinpath("page.css"), package.joinpath("store", "page.css")]
    return template.render(
        css="\n".join(style.read_text(encoding="utf-8") for style in styles),
        script=package.joinpath("store", "page.js").read_text(encoding="utf-8"),
        headline=headline(results),
        lede=lede(results),
        sections=parts,
        short=short,
        stands=[line for part in parts for line in part.stands],
        kinds=KINDS,
        most=MOST,
        made=made,
        letter=letter,
        part_of=part_of,
        plain={table.name for part in parts for table in part.tables if not _has_marks(table)},
    )


def anchor(name: str) -> str:
    """Return a name as a part of the page can be linked by.

    >>> anchor("my suite, worst")
    'my-suite-worst'
    """
    return re.sub("[^A-Za-z0-9_-]+", "-", name)


def words(text: str) -> Markup:
    """Return text as HTML, words in backticks as code.

    >>> words("run `a < b`")
    Markup('run <code>a &lt; b</code>')
    """
    parts = str(text).split("`")
    if len(parts) % 2 == 0:  # a lone backtick opens nothing
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))


def _has_marks(table: Table) -> bool:
    return any(cell.mark for row in table.rows for cell in row.cells)
