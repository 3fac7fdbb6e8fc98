"""Errors where the domains are: over one coordinate as curves, over two as maps, for data of any kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from thetafield.report.figures.curves import LINE_COLOURS
from thetafield.report.style import ERROR, FAINT, MUTED, PAPER, styled

WIDTH, ROW, PER_ROW = 10.4, 2.55, 2
LONG = 6  # signs of a tick's label from which three of them touch those of the next map


@dataclass(frozen=True)
class Located:
    """Unseen domains of one dataset, where they are and how methods err there.

    Args:
        title: The dataset.
        axes: Names of the coordinates shown, one or two.
        train: Where the training domains are, shape (N, one or two).
        unseen: Where the unseen ones are.
        errors: Error of each of them by method.
        ours: The method that is ours, if any.
        measure: What the errors are.
    """

    title: str
    axes: tuple[str, ...]
    train: np.ndarray
    unseen: np.ndarray
    errors: Mapping[str, np.ndarray]
    ours: str | None
    measure: str


@styled
def located_errors(sets: Sequence[Located]) -> Figure:
    """Draw two datasets in a row: curves where domains lie on a line, else a map for each method.

    Args:
        sets: The datasets; all methods of one share a colour scale.
    """
    columns = min(PER_ROW, len(sets))
    rows = -(-len(sets) // columns)
    figure = Figure(figsize=(WIDTH if columns > 1 else 6.4, ROW * rows))
    parts = np.atleast_2d(figure.subfigures(rows, columns, squeeze=False))
    for part, located in zip(parts.flat, sets, strict=False):
        if len(located.axes) == 1:
            _line(part.subplots(), located)
            part.subplots_adjust(left=0.13, right=0.97, top=0.86, bottom=0.2)
        else:
            _maps(part, located)
    return figure


def _line(ax: Axes, located: Located) -> None:
    order = np.argsort(located.unseen[:, 0])
    for i, (name, errors) in enumerate(located.errors.items()):
        main = name == located.ours
        ax.plot(
            located.unseen[order, 0],
            errors[order],
            color=LINE_COLOURS[0] if main else LINE_COLOURS[1 + i],
            linewidth=2 if main else 1.3,
            marker="o" if len(order) < 40 else None,
            markersize=3.5,
            label=f"{name}: {errors.mean():.3g}",
            zorder=3 if main else 2,
        )
    ax.plot(located.train[:, 0], np.zeros(len(located.train)), "|", color=MUTED, markersize=7, label="training domains")
    ax.set(title=located.title, xlabel=located.axes[0], ylabel=located.measure)
    # Of a long past, the last part: what matters is what comes after it.
    low, high = float(located.unseen.min()), float(located.unseen.max())
    past = bool((located.train < low).all())
    start = min(low, max(float(located.train.min()), low - 0.6 * (high - low)) if past else float(located.train.min()))
    margin = 0.02 * (high - start) or 1.0
    ax.set_xlim(start - margin, max(high, float(located.train.max())) + margin)
    ax.set_ylim(0, 1.3 * max(float(errors.max()) for errors in located.errors.values()) or 1.0)
    ax.grid(axis="y", color=FAINT, linewidth=0.7)
    ax.tick_params(length=0)
    ax.legend(loc="upper left", facecolor=PAPER, framealpha=0.85, frameon=True, edgecolor="none", fontsize=8)


def _maps(part: SubFigure, located: Located) -> None:
    axes = part.subplots(1, len(located.errors), sharey=True, squeeze=False)[0]
    part.subplots_adjust(left=0.13, right=0.85, top=0.77, bottom=0.2, wspace=0.08)
    part.suptitle(located.title, x=0.49, y=0.985, fontsize=10.5, weight="bold")
    # The scale ends at the worst domain but a few, so that one freak does not wash out the rest.
    top = float(np.percentile(np.concatenate(list(located.errors.values())), 97)) or 1.0
    scale = ScalarMappable(Normalize(0, top), ERROR)
    for ax, (name, errors) in zip(axes, located.errors.items(), strict=True):
        ax.scatter(*located.train.T, s=8, color=FAINT, linewidths=0)
        ax.scatter(*located.unseen.T, c=scale.to_rgba(errors), s=20, edgecolors=MUTED, linewidths=0.4)
        ax.set_title(f"{name}: {errors.mean():.3g}", size=9, weight="normal", pad=4)
        ax.set_xlabel(located.axes[0])
        ax.tick_params(length=0)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(3))
            axis.set_major_formatter(ScalarFormatter(useOffset=False))
        if max(map(len, ax.xaxis.get_major_formatter().format_ticks(ax.get_xticks()))) > LONG:
            ax.xaxis.set_major_locator(MaxNLocator(2, prune="both"))
    axes[0].set_ylabel(located.axes[1])
    bar = part.colorbar(scale, cax=axes[-1].inset_axes((1.06, 0, 0.06, 1)), label=located.measure)
    bar.outline.set_visible(False)
