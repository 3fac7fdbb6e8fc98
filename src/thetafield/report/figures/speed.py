"""How fast everything is: growth with domains and parameters, and how many times less than each reference."""

import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from thetafield.files import write_whole
from thetafield.report.style import CLASS_COLOURS, FAINT, MUTED, PAPER, PIXELS_PER_INCH, SETTINGS, styled

EPOCH, STEP = CLASS_COLOURS
LETTERS = {"domains": "N", "parameters": "D"}
LABELS = {"domains": "training domains N", "parameters": "parameters D of a head"}
WIDTH, TITLE, PANEL, GAP, BAR, BREAK, FOOT = 10.4, 0.75, 2.6, 0.95, 0.42, 0.16, 0.55  # inches
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
CURVES = ("domains", "parameters")  # sections whose figures the curves show better than bars


def save_speed(record: Mapping[str, Any], path: Path) -> None:
    """Draw the record of a run and write it as a PNG."""
    buffer = io.BytesIO()
    with mpl.rc_context(SETTINGS):  # fonts are looked up when a figure is drawn
        speed_figure(record).savefig(buffer, format="png", dpi=2 * PIXELS_PER_INCH)
    write_whole(path, buffer.getvalue())


@styled
def speed_figure(record: Mapping[str, Any]) -> Figure:
    """Draw the curves of growth with their exponents beside each other, and the ratios as bars below.

    Args:
        record: What `thetafield speed` writes to speed.json.
    """
    curves = record["scaling"]
    bars = [entry for entry in record["figures"] if entry["ratio"] is not None and entry["section"] not in CURVES]
    breaks = len({bar["section"] for bar in bars}) - 1
    # Heights in inches, so that bars and words keep their size however many there are.
    rows = BAR * len(bars) + BREAK * breaks
    height = TITLE + (PANEL + GAP if curves else 0) + (rows + FOOT if bars else 0)
    figure = Figure(figsize=(WIDTH, height))
    title = f"Speed on {record['machine']['device']}"
    figure.text(0.025, 1 - 0.26 / height, title, weight="bold", size=13, va="center")
    for position, (name, curve) in enumerate(curves.items()):
        left = 0.075 + 0.5 * position
        _growth(figure.add_axes((left, 1 - (TITLE + PANEL) / height, 0.39, PANEL / height)), name, curve)
    if bars:
        _ratios(figure.add_axes((0.47, FOOT / height, 0.505, rows / height)), bars)
    return figure


def _growth(ax: Axes, name: str, curve: Mapping[str, Any]) -> None:
    """Draw a cost over size on logarithmic axes, with the fitted power law behind the points it was fitted to."""
    points = curve["points"]
    size = np.array([point[name] for point in points], dtype=float)
    law = curve["factor"] * size ** curve["exponent"]
    fitted = size >= curve["fitted_from"]
    grows = rf"$\propto$ {LETTERS[name]}$^{{\mathregular{{{curve['exponent']:.2f}}}}}$"
    costs = {"epoch_seconds": ("an epoch", "o", EPOCH), "step_seconds": ("a step", "s", STEP)}
    ax.plot(size[fitted], law[fitted], color=costs[curve["cost"]][2], linewidth=6, alpha=0.22, solid_capstyle="round")
    for cost, (words, mark, colour) in costs.items():
        if cost in points[0]:
            label = f"{words} {grows}" if cost == curve["cost"] else words
            values = [point[cost] for point in points]
            ax.plot(size, values, mark, color=colour, markeredgecolor=PAPER, markersize=7.5, label=label)
    ax.set(xscale="log", yscale="log", xlabel=LABELS[name])
    ax.set_title(f"neurallio over {LETTERS[name]} {name}", loc="left")
    ax.margins(0.07, 0.15)
    ax.legend(loc="upper left", handletextpad=0.1, borderaxespad=0.1)
    ax.grid(True, which="major", color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    for axis, words in ((ax.xaxis, _count), (ax.yaxis, _seconds)):
        _ticks(axis, words)


def _ticks(axis: Axis, words: Callable[[float], str]) -> None:
    """Put ticks at the powers of ten, and between them too where there are hardly any."""
    low, high = axis.get_view_interval()
    between = (1.0,) if high / low > 50 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(10, subs=between, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))
    axis.set_minor_formatter(NullFormatter())


def _seconds(value: float) -> str:
    """Return a time as a tick names it.

    >>> _seconds(0.02), _seconds(1e-3), _seconds(100.0)
    ('20 ms', '1 ms', '100 s')
    """
    factor, unit = next((pair for pair in UNITS if value >= 0.999 * pair[0]), UNITS[-1])
    return f"{value / factor:,.3g} {unit}" if value / factor < 1000 else f"{value / factor:,.0f} {unit}"


def _count(value: float) -> str:
    """Return a count as a tick names it.

    >>> _count(100.0), _count(10_000.0), _count(2e6)
    ('100', '10,000', '2 million')
    """
    return f"{value / 1e6:g} million" if value >= 999_999 else f"{value:,.0f}"


def _ratios(ax: Axes, bars: list[Mapping[str, Any]]) -> None:
    """Draw each ratio as a bar from one, to the right where ours is less than the reference."""
    place, places = 0.0, []
    for number, bar in enumerate(bars):
        if number:
            place -= BAR + (BREAK if bar["section"] != bars[number - 1]["section"] else 0)
        places.append(place)
    ratios = [bar["ratio"] for bar in bars]
    beside = partial(ax.annotate, textcoords="offset points", va="center", annotation_clip=False)
    low, high = min(1.0, *ratios), max(10.0, *ratios)
    for at, bar, ratio in zip(places, bars, ratios, strict=True):
        measured, colour = bar["reference_measured"], EPOCH if ratio >= 1 else STEP
        face = {"color": colour} if measured else {"facecolor": PAPER, "edgecolor": colour, "hatch": "////"}
        ax.barh(at, ratio - 1, left=1, height=0.6 * BAR, **face)
        digits = f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:.3g}"
        beside(f"{digits} ×{'' if measured else ' *'}", (max(ratio, 1.0), at), (5, 0), weight="bold")
        edge = (low / 1.08, at)
        beside(bar["name"], edge, (-8, 5.5), ha="right", size=8.5)
        beside(f"against {bar['against']}", edge, (-8, -6), ha="right", size=7.5, color=MUTED)
    ax.set(xscale="log", xlim=(low / 1.08, high * (high / low) ** 0.16), yticks=[])
    ax.set_ylim(places[-1] - BAR / 2, BAR / 2)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g} ×"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.axvline(1, color=MUTED, linewidth=0.8)
    ax.spines["left"].set_visible(False)
    ax.grid(True, axis="x", which="major", color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    stated = any(not bar["reference_measured"] for bar in bars)
    ax.set_xlabel("how many times less than the reference" + ("  (* stated, not measured in this run)" * stated))
