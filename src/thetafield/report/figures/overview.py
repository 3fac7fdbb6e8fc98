"""A table at a glance: a dot for every method on every dataset, the paper's value as a hollow diamond."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from thetafield.report.figures.curves import balanced
from thetafield.report.style import FAINT, INK, MUTED, PAPER, UNSEEN, styled

PER_ROW, LINE, HEAD, LEGEND = 4, 0.205, 0.9, 0.24
# Times the middle one: values beyond, where they are few, are told at the edge and do not press the others together.
FAR, FEW = 3.0, 0.125
PRINTED = {"color": MUTED, "marker": "D", "markerfacecolor": PAPER}


@dataclass(frozen=True)
class Mark:
    """One method on one dataset.

    Args:
        method: Its name.
        mean: Its mean; None where there is none.
        spread: Its standard deviation.
        paper: What the paper prints; None where it prints nothing.
        word: What stands in the table where there is no mean.
        main: Whether it is ours.
    """

    method: str
    mean: float | None
    spread: float
    paper: float | None
    word: str
    main: bool


@styled
def overview(columns: Sequence[tuple[str, str, Sequence[Mark]]], others: str = "other methods") -> Figure:
    """Draw a panel for each dataset, with the methods from top to bottom.

    Args:
        columns: Head of each panel, what is measured, and its marks.
        others: What those are that are not ours.
    """
    count = balanced(len(columns), PER_ROW)
    rows = -(-len(columns) // count)
    each = HEAD + LINE * len(columns[0][2])
    entries = _entries([mark for _, _, marks in columns for mark in marks], others)
    legend = LEGEND if len(entries) > 1 else 0.0  # one alone tells nothing from anything
    figure = Figure(figsize=(10.4, 0.11 + legend + each * rows))
    axes = figure.subplots(rows, count, squeeze=False, sharey=True)
    height = figure.get_figheight()
    longest = max(len(mark.method) for _, _, marks in columns for mark in marks)
    figure.subplots_adjust(
        left=(0.3 + 0.064 * longest) / 10.4, right=0.99, top=1 - (0.42 + legend) / height, bottom=0.45 / height
    )
    figure.subplots_adjust(wspace=0.1)
    figure.subplots_adjust(hspace=HEAD / (each - HEAD))
    for ax, (title, measure, marks) in zip(axes.flat, columns, strict=False):
        _panel(ax, title, marks)
        ax.set_xlabel(measure, size=8, color=MUTED, labelpad=2)
    for ax in axes.flat[len(columns) :]:
        ax.set_axis_off()
    if legend:  # from the left, where narrow screens begin to show a figure
        left_end = (0.2 / 10.4, 1 + 0.05 / height)
        figure.legend(handles=entries, loc="upper left", ncols=3, handletextpad=0.2, bbox_to_anchor=left_end)
    return figure


def _entries(marks: Sequence[Mark], others: str) -> list[Line2D]:
    """Return what the legend says: of what occurs only."""
    dot = {"marker": "o", "linestyle": ""}
    entries = {
        "ours": (any(mark.main and mark.mean is not None for mark in marks), dot | {"color": UNSEEN}),
        others: (any(not mark.main and mark.mean is not None for mark in marks), dot | {"color": INK}),
        "as printed in the paper": (any(mark.paper is not None for mark in marks), PRINTED | {"linestyle": ""}),
    }
    return [Line2D([], [], label=label, **style) for label, (occurs, style) in entries.items() if occurs]


def _bound(values: Sequence[float]) -> float:
    """Return what is shown at most.

    >>> _bound([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 16.0]), _bound([1.0, 2.0, 16.0])
    (6.0, inf)
    """
    bound = FAR * median(values) if values else math.inf
    return bound if sum(value > bound for value in values) <= FEW * len(values) else math.inf


def _panel(ax: Axes, title: str, marks: Sequence[Mark]) -> None:
    bound = _bound([value for mark in marks for value in (mark.mean, mark.paper) if value is not None])
    for row, mark in enumerate(marks):
        colour = UNSEEN if mark.main else INK
        beyond = [f"{mark.mean:.3g} ▸"] if mark.mean is not None and mark.mean > bound else []
        if mark.paper is not None and mark.paper > bound:
            beyond.append(f"◇ {mark.paper:.3g} ▸")
        elif mark.paper is not None:
            ax.plot(mark.paper, row, linestyle="", markersize=4.5, zorder=2, **PRINTED)
        if beyond:
            beside = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center", "size": 7.5}
            ax.text(0.985, row, "  ".join(beyond), color=UNSEEN if mark.main else MUTED, **beside)
        if mark.mean is not None and mark.mean <= bound:
            ax.errorbar(
                mark.mean,
                row,
                xerr=[[mark.spread], [min(mark.spread, bound - mark.mean)]],
                fmt="o",
                color=colour,
                markersize=5,
                elinewidth=1.4,
                zorder=3,
                clip_on=False,
            )
    ax.set_yticks(range(len(marks)), [mark.method for mark in marks])
    ax.set_ylim(len(marks) - 0.4, -0.6)
    ax.set_xlim(0, 1.03 * ax.get_xlim()[1])  # a dot at the end is whole, however close all of them lie
    for row, mark in enumerate(marks):
        if mark.mean is None and mark.word != "–":
            ax.text(
                0.985,
                row,
                mark.word,
                transform=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                color=MUTED,
                size=7.5,
            )
    ax.set_title(title)
    ax.xaxis.set_major_locator(MaxNLocator(4, prune="upper"))
    ax.grid(axis="both", color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.spines["left"].set_visible(False)
