"""The figures of a comparison: errors over descriptors and over trust, and what a field gains far from training."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from thetafield.report.style import ERROR, FAINT, INK, MUTED, PAPER, UNSEEN, styled

# As wide as half of a page, where two stand side by side: on a phone they shrink by a quarter only, and stay legible.
SIZE = (4.6, 3.5)
PARTS = 8
NARROWEST = 0.1  # range of trust that an axis shows at least
LABEL, TICK = 10, 9.5  # points
LONGEST = 26  # signs of a descriptor's name beside its bar
BARS = 20


@styled
def error_over_descriptors(z: np.ndarray, names: list[str], errors: np.ndarray, measure: str) -> Figure:
    """Draw the error of every unseen domain: on a map of two descriptors, or along one.

    Args:
        z: The one or two descriptors of each domain, shape (n, 1 or 2).
        names: Their names.
        errors: Error of each domain.
        measure: What the errors are.
    """
    figure = Figure(figsize=SIZE)
    ax = figure.subplots()
    if z.shape[1] == 1:
        figure.subplots_adjust(left=0.15, right=0.97, top=0.97, bottom=0.14)
        _dots(ax, z[:, 0], errors)
        ax.set(xlabel=names[0], ylabel=measure)
        ax.set_ylim(0, max(1e-9, 1.08 * float(errors.max())))
    else:
        figure.subplots_adjust(left=0.16, right=0.8, top=0.97, bottom=0.14)
        # The scale ends at the worst domain but a few, so that one freak does not wash out the rest.
        scale = ScalarMappable(Normalize(0, float(np.percentile(errors, 97)) or 1.0), ERROR)
        order = np.argsort(errors, kind="stable")  # the worst on top
        ax.scatter(*z[order].T, c=scale.to_rgba(errors[order]), s=_dot_size(len(z)), edgecolors=MUTED, linewidths=0.5)
        ax.set(xlabel=names[0], ylabel=names[1])
        bar = figure.colorbar(scale, cax=ax.inset_axes((1.05, 0, 0.045, 1)), label=measure)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize=TICK)
        bar.ax.yaxis.label.set_size(LABEL)
    _plain(ax)
    return figure


@styled
def gain_by_distance(distance: np.ndarray, gain: np.ndarray, field: str, pooled: str, measure: str) -> Figure:
    """Draw how much less a field errs than one model for all, over the distance to the nearest training domain.

    Args:
        distance: Of each domain, in scaled descriptors.
        gain: Error of the pooled model minus that of the field.
        field: Name of the field's method.
        pooled: Name of the pooled one.
        measure: What the errors are.
    """
    figure = Figure(figsize=SIZE)
    ax = figure.subplots()
    figure.subplots_adjust(left=0.16, right=0.97, top=0.97, bottom=0.14)
    ax.axhline(0, color=MUTED, linewidth=1)
    _dots(ax, distance, gain)
    top = 1.1 * float(np.percentile(np.abs(gain), 99)) or 1.0
    ax.set(xlabel="distance to the nearest training domain", ylim=(-top, top))
    ax.set_ylabel(f"{pooled} minus {field}: {measure}")
    for y, words, place in ((0.965, f"{field} errs less", "top"), (0.035, f"{pooled} errs less", "bottom")):
        ax.text(0.985, y, words, transform=ax.transAxes, ha="right", va=place, color=MUTED, fontsize=TICK)
    _plain(ax)
    return figure


@styled
def error_over_trust(trust: np.ndarray, errors: np.ndarray, correlation: float | None, measure: str) -> Figure:
    """Draw the error of every unseen domain over the trust there, on an axis as long as the trust that there is.

    Args:
        trust: Trust of each domain, in [0, 1].
        errors: Its error.
        correlation: Rank correlation of the two, below 0 where errors grow as trust falls; None where one is constant.
        measure: What the errors are.
    """
    figure = Figure(figsize=SIZE)
    ax = figure.subplots()
    figure.subplots_adjust(left=0.15, right=0.97, top=0.91, bottom=0.14)
    _dots(ax, trust, errors)
    low, high = float(trust.min()), float(trust.max())
    margin = max(0.06 * (high - low), (NARROWEST - (high - low)) / 2)
    # Trust ends at 0 and 1; a dot that sits there is still drawn whole.
    ax.set(xlabel="trust", ylabel=measure, xlim=(max(0.0, low - margin), min(1.0, high + margin)))
    ax.set_ylim(0, max(1e-9, 1.08 * float(errors.max())))
    for mark in (*ax.collections, *ax.lines):
        mark.set_clip_on(False)
    if correlation is not None:
        words = f"rank correlation of trust and error {correlation:+.2f}".replace("-", "−")
        ax.set_title(words, loc="right", fontsize=TICK, fontweight="normal", color=MUTED)
    _plain(ax)
    return figure


@styled
def reliance_bars(reliance: Mapping[str, tuple[float, float, float]], measure: str) -> Figure:
    """Draw by how much more a method errs without each descriptor, the one that matters most first.

    Args:
        reliance: By the descriptor's name: the mean over unseen domains, with the ends of its interval.
        measure: What the errors are.
    """
    ordered = sorted(reliance.items(), key=lambda pair: -pair[1][0])[:BARS]
    names = [_shortened(name) for name, _ in ordered]
    height = 0.65 + 0.36 * len(ordered)
    figure = Figure(figsize=(SIZE[0], height))
    ax = figure.subplots()
    left = (0.15 + 0.073 * max(map(len, names))) / SIZE[0]
    figure.subplots_adjust(left=left, right=0.96, top=1 - 0.06 / height, bottom=0.5 / height)
    ax.axvline(0, color=MUTED, linewidth=1)
    for row, (_, (mean, low, high)) in enumerate(ordered):
        ax.barh(row, mean, height=0.62, color=UNSEEN, alpha=0.85)
        ax.plot([low, high], [row, row], color=INK, linewidth=1.6, solid_capstyle="butt")
        for end in (low, high):
            ax.plot([end, end], [row - 0.16, row + 0.16], color=INK, linewidth=1.6)
    ax.set(ylim=(len(ordered) - 0.5, -0.5), xlabel=f"more without it: {measure}")
    ax.set_yticks(range(len(ordered)), names)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.tick_params(length=0)
    ax.grid(axis="x", color=FAINT, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines["left"].set_visible(False)
    _legible(ax)
    return figure


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _legible(ax: Axes) -> None:
    ax.tick_params(length=0, labelsize=TICK)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_size(LABEL)


def _dots(ax: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Draw domains as dots, and means of equal parts of them as a line."""
    ax.scatter(x, y, s=_dot_size(len(x)) / 2, color=UNSEEN, alpha=0.45, linewidths=0)
    parts = [
        part for part in np.array_split(np.argsort(x, kind="stable"), min(PARTS, max(1, len(x) // 4))) if len(part)
    ]
    means = np.array([(x[part].mean(), y[part].mean()) for part in parts])
    ax.plot(*means.T, color=INK, marker="o", markersize=5, markeredgecolor=PAPER, linewidth=1.6)


def _dot_size(count: int) -> float:
    return float(np.clip(4000 / max(1, count), 18, 90))


def _plain(ax: Axes) -> None:
    _legible(ax)
    ax.grid(color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(ScalarFormatter(useOffset=False))
