"""The page of a comparison: one HTML file that asks for nothing else, the verdict at its top."""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from scipy.stats import spearmanr

from thetafield.report.compare.figures import error_over_descriptors, gain_by_distance
from thetafield.report.compare.reading import POOLED, Comparison
from thetafield.report.embed import Embedded, embed
from thetafield.report.figures.relevance import relevance_bars
from thetafield.report.figures.trust import Trusted, trust_and_error
from thetafield.report.page import IN_WORDS
from thetafield.report.store.picture import drawable
from thetafield.report.store.table import unit

SHOWN = 5  # domains at either end of the table
MOST_DESCRIPTORS = 3  # of a domain in it
MANY = 1500  # domains from which a figure is kept as pixels
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


def render_page(comparison: Comparison) -> str:
    """Return the whole page as HTML."""
    package = files("thetafield.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(package.joinpath("compare", "page.html.jinja").read_text(encoding="utf-8"))
    styles = [package.joinpath("page.css"), package.joinpath("compare", "page.css")]
    worst = np.argsort(-comparison.errors(comparison.method), kind="stable")
    count = min(SHOWN, len(worst) // 2)
    return template.render(
        css="\n".join(style.read_text(encoding="utf-8") for style in styles),
        result=comparison.result,
        lines=leaderboard(comparison),
        figures=figures(comparison),
        named=comparison.descriptors[:MOST_DESCRIPTORS],
        parts={"Largest errors": worst[:count].tolist(), "Smallest errors": worst[::-1][:count].tolist()},
        comparison=comparison,
        rival=comparison.result["verdict"]["rival"],
        digits=1 if comparison.metric == "error" else 3,
        unit=unit(comparison.metric),
        correlation=_correlation(comparison),
        field_method=comparison.field_method,
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
        z = np.column_stack([columns[name] for name in axes])
        found["map"] = embed(error_over_descriptors(z, [drawable(name) for name in axes], errors, measure), vector)
    field = comparison.field_method
    if field is not None and comparison.has_pooled:
        gain = comparison.errors(POOLED) - comparison.errors(field)
        found["gain"] = embed(gain_by_distance(columns["distance"], gain, field, POOLED, measure), vector)
    relevance = {drawable(n): (v["mean"], v["low"], v["high"]) for n, v in comparison.result["relevance"].items()}
    if relevance:
        found["relevance"] = embed(relevance_bars(relevance), True)
    trust = Trusted(comparison.method, columns["trust"], errors, _correlation(comparison), measure)
    found["trust"] = embed(trust_and_error([trust]), vector)
    return found


def _correlation(comparison: Comparison) -> float | None:
    """Return the rank correlation of distrust with the error, where both vary."""
    trust, errors = comparison.columns["trust"], comparison.errors(comparison.method)
    if np.ptp(trust) == 0 or np.ptp(errors) == 0:
        return None
    return float(spearmanr(-trust, errors).statistic)
