"""The page of a comparison: one HTML file that asks for nothing else, the verdict at its top."""

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape
from scipy.stats import spearmanr

from thetafield.report.compare.figures import (
    BARS,
    error_over_descriptors,
    error_over_trust,
    gain_by_distance,
    reliance_bars,
)
from thetafield.report.compare.reading import POOLED, Comparison
from thetafield.report.embed import Embedded, embed
from thetafield.report.page import IN_WORDS
from thetafield.report.store.picture import drawable
from thetafield.report.store.table import unit

SHOWN = 5  # domains at either end of the table
MOST_DESCRIPTORS = 3  # of a domain in it
MANY = 1500  # domains from which a figure is kept as pixels
FEWEST = 8  # domains from which a rank correlation can be told from chance
# Options and names of methods such as --budget and erm-d, which browsers would tear apart at their hyphens.
HYPHENED = re.compile(r"(?<![\w/.-])(?=[\w-]*[^\W\d_])(?=[\w-]{2,24}(?![\w/-]))[\w-]*-[\w-]*\w")
WORDS = IN_WORDS | {
    "interpolate": "a mean of the models of the nearest training domains",
    "hypernet": "a network that writes the model's parameters from the descriptor",
    "trees": "boosted trees that also read the descriptor",
    "trees-x": "boosted trees on the inputs alone",
}


@dataclass(frozen=True)
class Line:
    """A line of the leaderboard.

    Args:
        method: Registry name.
        words: What it is.
        values: Its record in `result.json`.
        left: Where its interval begins on the track, in %.
        width: How wide the interval is.
        dot: Where the mean lies.
        mark: "best" for the recommended one, "tie" for those within noise of it, else nothing.
    """

    method: str
    words: str
    values: dict[str, Any]
    left: float
    width: float
    dot: float
    mark: str


@dataclass(frozen=True)
class Rank:
    """Whether trust goes with the error, over the domains that were held out.

    Args:
        correlation: Rank correlation of trust with the error: below 0 where errors grow as trust falls.
        p: How likely one as strong is by chance; 1 where domains are too few to tell.
    """

    correlation: float
    p: float

    @property
    def told(self) -> str:
        """What to make of it: "good", "wrong" (errors grow with trust), or "nothing"."""
        if self.p >= 0.05:
            return "nothing"
        return "good" if self.correlation < 0 else "wrong"


def render_page(comparison: Comparison) -> str:
    """Return the whole page as HTML."""
    package = files("thetafield.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"whole": whole_words, "written": written}
    template = environment.from_string(package.joinpath("compare", "page.html.jinja").read_text(encoding="utf-8"))
    styles = [package.joinpath("page.css"), package.joinpath("compare", "page.css")]
    worst = np.argsort(-comparison.errors(comparison.method), kind="stable")
    count = min(SHOWN, len(worst) // 2)
    named = comparison.descriptors[:MOST_DESCRIPTORS]
    shown = np.concatenate([worst[:count], worst[::-1][:count]])
    return template.render(
        css="\n".join(style.read_text(encoding="utf-8") for style in styles),
        result=comparison.result,
        lines=leaderboard(comparison),
        figures=figures(comparison),
        named={name: number_format(comparison.z[name][shown]) for name in named},
        parts={"Largest errors": worst[:count].tolist(), "Smallest errors": worst[::-1][:count].tolist()},
        comparison=comparison,
        rival=comparison.result["verdict"]["rival"],
        digits=1 if comparison.metric == "error" else 3,
        unit=unit(comparison.metric),
        rank=rank_of_trust(comparison),
        tuned=comparison.all_tuned,
        field_method=comparison.field_method,
        bars=BARS,
    )


def leaderboard(comparison: Comparison) -> list[Line]:
    """Return the methods with their intervals on one scale, which begins at zero."""
    result = comparison.result
    end = 1.04 * max(line["high"] for line in result["leaderboard"]) or 1.0  # nobody may err at all
    ties = result["verdict"]["ties"]
    return [
        Line(
            line["method"],
            WORDS.get(line["method"], line["title"]),
            line,
            left=100 * line["low"] / end,
            width=100 * (line["high"] - line["low"]) / end,
            dot=100 * line["error"] / end,
            mark="best" if line["method"] == comparison.method else "tie" if line["method"] in ties else "",
        )
        for line in result["leaderboard"]
    ]


def figures(comparison: Comparison) -> dict[str, Embedded]:
    """Draw what the folder has numbers for."""
    measure, found = unit(comparison.metric), {}
    vector = len(comparison.ids) < MANY
    errors, columns = comparison.errors(comparison.method), comparison.columns
    axes = comparison.descriptors[:2]
    if axes:
        z = np.column_stack([comparison.z[name] for name in axes])
        found["map"] = embed(error_over_descriptors(z, [drawable(name) for name in axes], errors, measure), vector)
    field = comparison.field_method
    if field is not None and comparison.has_pooled:
        gain = comparison.errors(POOLED) - comparison.errors(field)
        found["gain"] = embed(gain_by_distance(columns["distance"], gain, field, POOLED, measure), vector)
    leans = {drawable(n): (v["mean"], v["low"], v["high"]) for n, v in comparison.result["reliance"].items()}
    if leans:
        found["reliance"] = embed(reliance_bars(leans, measure), True)
    rank = rank_of_trust(comparison)
    correlation = None if rank is None else rank.correlation
    found["trust"] = embed(error_over_trust(columns["trust"], errors, correlation, measure), vector)
    return found


def rank_of_trust(comparison: Comparison) -> Rank | None:
    """Return how trust and error rank the domains, where both vary."""
    trust, errors = comparison.columns["trust"], comparison.errors(comparison.method)
    if np.ptp(trust) == 0 or np.ptp(errors) == 0:
        return None
    found = spearmanr(trust, errors)
    return Rank(float(found.statistic), float(found.pvalue) if len(trust) >= FEWEST else 1.0)


def number_format(values: np.ndarray) -> str:
    """Return one format for all numbers of a column: four digits of the largest, and no decimal that none needs.

    >>> number_format(np.array([323.5, 324.0])), number_format(np.array([12.0, 3.0]))
    ('%.1f', '%.0f')
    """
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return "%.0f"
    largest, least = float(sizes.max()), float(sizes.min())
    if largest >= 1e7 or largest < 1e-3 or largest > 1e5 * least:
        return "%.2e"
    most = max(0, 3 - int(np.floor(np.log10(largest))))
    needed = next((d for d in range(most) if np.allclose(values, np.round(values, d), rtol=1e-6, atol=0)), most)
    return f"%.{needed}f"


def written(value: float, form: str) -> str:
    """Return a number in a format, with a true minus."""
    return (form % value).replace("-", "−")


def whole_words(text: str) -> Markup:
    """Return text as HTML in which no option and no hyphened name is torn at the end of a line.

    >>> whole_words("a larger --budget")
    Markup('a larger <span class="whole">--budget</span>')
    """
    parts, at = [], 0
    for found in HYPHENED.finditer(text):
        parts += [escape(text[at : found.start()]), Markup('<span class="whole">{}</span>').format(found[0])]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])
