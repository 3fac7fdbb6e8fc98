"""Curves with their spread over seeds: the panel that sweeps, growth and distance share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from thetafield.report.style import FAINT, INK, MUTED, PAPER, styled

# Okabe and Ito's colours, which colour-blind readers can tell apart; marks and dashes help where ink is black.
LINE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", INK)
MARKS: tuple[str, ...] = ("o", "s", "D", "^", "v", "P", "X", "d")
WIDTH, HEIGHT, TOP, BOTTOM, PER_ROW = 10.4, 2.75, 0.42, 0.62, 4  # inches; panels
LEFT, RIGHT = 0.065, 0.99  # of the width


@dataclass(frozen=True)
class Curve:
    """A line.

    Args:
        label: What the legend calls it.
        x: Rising values.
        mean: The mean at each of them.
        spread: The standard deviation there; zero where there is one repetition.
        main: Whether it is the one that the eye should find first.
    """

    label: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    main: bool = False


@dataclass(frozen=True)
class CurvePanel:
    """Some lines over one thing.

    Args:
        title: Head of the panel.
        label: What is on the horizontal axis.
        curves: The lines.
        log: Whether the horizontal axis is logarithmic.
        chosen: Whether the values on it were chosen, so that each may get a tick; otherwise they came as they came.
        bounds: Positions and heights that somebody else has stated for the mean to stay below.
        note: What is said where there is no line.
    """

    title: str
    label: str
    curves: tuple[Curve, ...]
    log: bool = False
    chosen: bool = True
    bounds: tuple[tuple[float, float], ...] = ()
    note: str = ""


@styled
def curve_panels(panels: Sequence[CurvePanel], measure: str, shared: bool = False) -> Figure:
    """Draw panels beside each other, with one legend for all of them.

    Args:
        panels: The panels, from left to right.
        measure: What is on the vertical axes.
        shared: Whether all panels have one vertical scale.
    """
    height = panels_height(panels)
    figure = Figure(figsize=(WIDTH, height))
    draw_panels(figure, panels, measure, shared, gap=0.09 if shared else 0.26)
    return figure


def panels_height(panels: Sequence[CurvePanel]) -> float:
    """Return how many inches panels and their legend take."""
    return _legend(line_looks(_all(panels))) + -(-len(panels) // _across(panels)) * HEIGHT


def draw_panels(
    figure: Figure | SubFigure, panels: Sequence[CurvePanel], measure: str, shared: bool, gap: float
) -> None:
    """Draw panels and their legend on a figure, or on a part of one, that is as high as they ask for.

    Args:
        figure: Where they go.
        panels: The panels, from left to right.
        measure: What is on the vertical axes.
        shared: Whether all panels have one vertical scale.
        gap: Between columns, as a part of their width.
    """
    looks, height = line_looks(_all(panels)), panels_height(panels)
    columns = _across(panels)
    axes = figure.subplots(-(-len(panels) // columns), columns, squeeze=False, sharey=shared)
    figure.subplots_adjust(left=LEFT, right=RIGHT, wspace=gap, hspace=(TOP + BOTTOM) / (HEIGHT - TOP - BOTTOM))
    figure.subplots_adjust(top=1 - (_legend(looks) + TOP) / height, bottom=BOTTOM / height)
    for ax, panel in zip(axes.flat, panels, strict=False):
        draw_curves(ax, panel, looks)
    if shared:  # each panel has set the scale for itself, and the last one would hold for all
        axes[0, 0].set_ylim(0, 1.05 * max((ax.dataLim.y1 for ax in axes.flat if ax.lines), default=1.0))
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for row in axes:
        row[0].set_ylabel(measure)
    if len(looks) > 1:
        draw_legend(figure, looks, height, legend_shape(list(looks))[0])


def _all(panels: Sequence[CurvePanel]) -> list[Curve]:
    return [curve for panel in panels for curve in panel.curves]


def _across(panels: Sequence[CurvePanel]) -> int:
    return min(PER_ROW, max(len(panels), 2))


def _legend(looks: dict[str, tuple[str, str]]) -> float:
    """Return the inches that the legend takes."""
    return 0.08 + 0.22 * legend_shape(list(looks))[1] if len(looks) > 1 else 0.05


def line_looks(curves: Sequence[Curve]) -> dict[str, tuple[str, str]]:
    """Return colour and mark of each line by its label; the main one is always blue."""
    names = dict.fromkeys(curve.label for curve in sorted(curves, key=lambda curve: not curve.main))
    return {name: (LINE_COLOURS[i % 8], MARKS[i % 8]) for i, name in enumerate(names)}


def draw_curves(ax: Axes, panel: CurvePanel, looks: dict[str, tuple[str, str]]) -> None:
    """Draw one panel, each line in its colour and with its mark."""
    for curve in panel.curves:
        colour, mark = looks[curve.label]
        x, mean, spread = (np.asarray(values, float) for values in (curve.x, curve.mean, curve.spread))
        over = 3 if curve.main else 2
        ax.fill_between(x, np.maximum(0, mean - spread), mean + spread, color=colour, alpha=0.16, linewidth=0)
        width = 2.2 if curve.main else 1.5
        ax.plot(x, mean, color=colour, linewidth=width, marker=mark, markersize=5, markeredgecolor=PAPER, zorder=over)
    if panel.log:
        ax.set_xscale("log")
    frame(ax, panel, sorted({x for curve in panel.curves for x in curve.x}))
    for x, height in panel.bounds:
        ax.plot([x], [height], marker="_", markersize=16, color=INK, zorder=4)
        beside = {"textcoords": "offset points", "size": 7.5, "va": "center", "zorder": 4}
        ground = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none"}
        ax.annotate(f"paper: below {height:g}", (x, height), (11, 0), bbox=ground, **beside)


def frame(ax: Axes, panel: CurvePanel, xs: list[float]) -> None:
    """Put head, labels, ticks and a grid on a panel; one without lines says why."""
    ax.set_title(panel.title)
    ax.set_xlabel("" if panel.label.lower() == panel.title.lower() else panel.label)
    ax.grid(axis="y", color=FAINT, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    if not panel.curves:
        ax.set(xticks=[], yticks=[])
        ax.text(
            0.5,
            0.5,
            panel.note or "no result",
            transform=ax.transAxes,
            ha="center",
            va="center",
            color=MUTED,
            wrap=True,
        )
        return
    ax.set_ylim(0, None)
    ax.margins(x=0.05)
    if not panel.chosen:
        return
    # Ticks where something was measured, as long as they do not run into each other.
    shown = thinned(xs, panel.log)
    ax.xaxis.set_major_locator(FixedLocator(shown))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())


def thinned(xs: list[float], log: bool, most: int = 8) -> list[float]:
    """Return the values that get a tick: those that keep a distance from the last one that has one.

    >>> thinned([1.0, 2.0, 3.0, 100.0], log=False)
    [1.0, 100.0]
    """
    if len(xs) < 2:
        return xs
    places = np.log(xs) if log else np.asarray(xs)
    gap = (places[-1] - places[0]) / most
    shown = [0]
    for i in range(1, len(xs)):
        if places[i] - places[shown[-1]] >= gap and places[-1] - places[i] >= gap * (i < len(xs) - 1):
            shown.append(i)
    return [xs[i] for i in shown]


def legend_shape(names: Sequence[str]) -> tuple[int, int]:
    """Return how many names stand beside each other, and in how many lines.

    >>> legend_shape(["ours", "theirs"]), legend_shape(["a rather long name of a method"] * 8)
    ((2, 1), (4, 2))
    """
    longest = 0.55 + 0.066 * max(map(len, names), default=1)  # inches
    across = max(1, min(len(names), int(WIDTH / longest)))
    deep = -(-len(names) // across)
    return -(-len(names) // deep), deep


def draw_legend(figure: Figure | SubFigure, looks: dict[str, tuple[str, str]], height: float, across: int) -> None:
    """Write the names of all lines above the panels."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=mark, markersize=5, markeredgecolor=PAPER, label=name)
        for name, (colour, mark) in looks.items()
    ]
    figure.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 1 + 0.02 / height),
        ncols=across,
        columnspacing=1.6,
        handlelength=1.6,
    )
