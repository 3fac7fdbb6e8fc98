"""Curves with their spread over seeds: the panel that sweeps, growth and distance share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from thetafield.report.style import FAINT, INK, MUTED, PAPER, styled

# Okabe and Ito's colours, which colour-blind readers can tell apart; marks and dashes help where ink is black.
LINE_COLOURS = (MAIN := "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", INK)
MARKS: tuple[str, ...] = ("o", "s", "D", "^", "v", "P", "X", "d")
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
WIDTHS, HEIGHT, TOP, BOTTOM = (5.6, 8.0, 10.4, 10.4), 2.75, 0.42, 0.62  # inches; one to four panels beside each other
WIDTH, LEFT, RIGHT = 10.4, 0.065, 0.99  # in inches, and of them
LEADER = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.8, "linestyle": ":", "shrinkA": 0, "shrinkB": 8}
SPAN = 20
CROWD = 4  # lines in a panel from which bands only muddy each other, except that of the main one


class Look(NamedTuple):
    """How a line is told from all others of its legend."""

    colour: str
    mark: str
    dash: Any

    @property
    def style(self) -> dict[str, Any]:
        """What matplotlib calls it."""
        # Marks of the others are larger, so that they show around those of the main line where both lie on each other.
        edge = {"markeredgecolor": PAPER, "markeredgewidth": 0.6, "markersize": 5 if self.colour == MAIN else 6.5}
        return {"color": self.colour, "marker": self.mark, "linestyle": self.dash} | edge


Looks = dict[str, Look]


@dataclass(frozen=True)
class Curve:
    """A line.

    Args:
        label: What the legend calls it.
        x: Rising values.
        mean: The mean at each of them.
        spread: The standard deviation there; zero where there is one repetition.
        main: Whether it is the one that the eye should find first.
        remark: What is said of it under the head of its panel.
    """

    label: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    main: bool = False
    remark: str = ""


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
        measure: What is on its vertical axis, where panels measure different things.
        log_errors: Whether the vertical axis is logarithmic.
    """

    title: str
    label: str
    curves: tuple[Curve, ...]
    log: bool = False
    chosen: bool = True
    bounds: tuple[tuple[float, float], ...] = ()
    note: str = ""
    measure: str = ""
    log_errors: bool = False


@styled
def curve_panels(panels: Sequence[CurvePanel], measure: str = "", shared: bool = False) -> Figure:
    """Draw panels beside each other, with one legend for all of them.

    Args:
        panels: The panels, from left to right.
        measure: What is on the vertical axes; empty where panels say it themselves.
        shared: Whether all panels have one vertical scale.
    """
    figure = Figure(figsize=(_width(panels), panels_height(panels)))
    draw_panels(figure, panels, measure, shared, gap=0.09 if shared else 0.26 if measure else 0.36)
    return figure


def panels_height(panels: Sequence[CurvePanel]) -> float:
    """Return how many inches panels and their legend take."""
    return _legend(line_looks(_all(panels)), _width(panels)) + -(-len(panels) // _across(panels)) * HEIGHT


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
    looks, height, width = line_looks(_all(panels)), panels_height(panels), _width(panels)
    columns = _across(panels)
    axes = figure.subplots(-(-len(panels) // columns), columns, squeeze=False, sharey=shared)
    left = LEFT * WIDTH / width
    figure.subplots_adjust(left=left, right=RIGHT, wspace=gap, hspace=(TOP + BOTTOM) / (HEIGHT - TOP - BOTTOM))
    figure.subplots_adjust(top=1 - (_legend(looks, width) + TOP) / height, bottom=BOTTOM / height)
    for ax, panel in zip(axes.flat, panels, strict=False):
        draw_curves(ax, panel, looks)
        ax.set_ylabel("" if measure else panel.measure)
    if shared:  # each panel has set the scale for itself, and the last one would hold for all
        top = max((ax.dataLim.y1 for ax in axes.flat if ax.lines), default=1.0)
        least = min((mean for curve in _all(panels) for mean in curve.mean if mean > 0), default=0.1 * top)
        axes[0, 0].set_ylim(*(0.6 * least, 1.3 * top) if panels[0].log_errors else (0, 1.05 * top))
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    if measure:
        for row in axes:
            row[0].set_ylabel(measure)
    if len(looks) > 1:
        draw_legend(figure, looks, (width, height))


def spans_much(panels: Sequence[CurvePanel]) -> bool:
    """Return whether errors lie so far apart that the small ones are told from each other by a logarithm alone."""
    means = [mean for curve in _all(panels) for mean in curve.mean]
    return bool(means) and 0 < SPAN * min(means) < max(means)


def _all(panels: Sequence[CurvePanel]) -> list[Curve]:
    return [curve for panel in panels for curve in panel.curves]


def _across(panels: Sequence[CurvePanel]) -> int:
    """Return how many panels stand beside each other, so that rows are about equally long."""
    return balanced(len(panels), len(WIDTHS))


def balanced(count: int, most: int) -> int:
    """Return how many of some panels stand in a row, at most so many, without a last row that is all but empty.

    >>> [balanced(count, most=4) for count in (1, 4, 5, 10)]
    [1, 4, 3, 4]
    """
    rows = -(-count // most)
    return -(-count // max(1, rows))


def _width(panels: Sequence[CurvePanel]) -> float:
    return WIDTHS[_across(panels) - 1]


def _legend(looks: Looks, width: float) -> float:
    """Return the inches that the legend takes."""
    return 0.08 + 0.22 * legend_shape(list(looks), width)[1] if len(looks) > 1 else 0.05


def line_looks(curves: Sequence[Curve]) -> Looks:
    """Return the look of each line by its label: blue and whole is the main one alone, and no two are the same."""
    ours = next((curve.label for curve in curves if curve.main), None)
    others = dict.fromkeys(curve.label for curve in curves if curve.label != ours)
    looks = {} if ours is None else {ours: Look(MAIN, MARKS[0], DASHES[0])}
    for i, name in enumerate(others):
        turn, colour = divmod(i, len(LINE_COLOURS) - 1)
        mark = MARKS[1 + (colour + turn) % (len(MARKS) - 1)]
        looks[name] = Look(LINE_COLOURS[1 + colour], mark, DASHES[turn % len(DASHES)])
    return looks


def draw_curves(ax: Axes, panel: CurvePanel, looks: Looks) -> None:
    """Draw one panel, each line in its look."""
    if panel.log_errors:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
    for curve, aside in zip(panel.curves, _asides(panel), strict=True):
        look = looks[curve.label]
        x, mean, spread = (np.asarray(values, float) for values in (curve.x, curve.mean, curve.spread))
        x = x + aside
        # A logarithm has no room for a band that goes down to nothing.
        low = np.maximum(mean / 10 if panel.log_errors else 0, mean - spread)
        faint = len(panel.curves) >= CROWD and not curve.main
        ax.fill_between(x, low, mean + spread, color=look.colour, alpha=0.06 if faint else 0.16, linewidth=0)
        ax.plot(x, mean, linewidth=2.4 if curve.main else 1.4, zorder=3 if curve.main else 2, **look.style)
        if curve.remark:
            beside = {"ha": "center", "size": 8.5, "color": look.colour, "transform": ax.transAxes}
            ax.text(0.5, 1.035, curve.remark, **beside)
    if panel.log:
        ax.set_xscale("log")
    frame(ax, panel, sorted({x for curve in panel.curves for x in curve.x}))
    for x, height in panel.bounds:
        _bound(ax, x, height)


def _asides(panel: CurvePanel) -> list[float]:
    """Return how far each of many lines steps aside from chosen values, so that marks of equal means all show."""
    count, xs = len(panel.curves), [x for curve in panel.curves for x in curve.x]
    apart = count >= CROWD and panel.chosen and not panel.log
    step = 0.015 * (max(xs) - min(xs)) if apart else 0.0
    return [step * (i - (count - 1) / 2) for i in range(count)]


def _bound(ax: Axes, x: float, height: float) -> None:
    """Draw a mark at a stated bound, and its words at the right end, where curves that fall are out of the way."""
    end = ax.get_yaxis_transform()
    ax.plot([x], [height], marker="_", markersize=16, color=INK, zorder=4)
    ax.annotate("", (x, height), (1, height), xycoords="data", textcoords=end, arrowprops=LEADER)
    ground = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none"}
    words = f"paper: below {height:g}"
    beside = {"textcoords": "offset points", "size": 7.5, "ha": "right", "va": "bottom", "zorder": 4}
    ax.annotate(words, (1, height), (0, 2.5), xycoords=end, bbox=ground, **beside)


def frame(ax: Axes, panel: CurvePanel, xs: list[float]) -> None:
    """Put head, labels, ticks and a grid on a panel; one without lines says why."""
    ax.set_title(panel.title, pad=18 if any(curve.remark for curve in panel.curves) else None)
    ax.set_xlabel("" if panel.label.lower() == panel.title.lower() else panel.label)
    ax.grid(axis="y", color=FAINT, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.tick_params(axis="x", pad=5.5)  # clear of the lowest label of the other axis
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
    if not panel.log_errors:
        ax.set_ylim(0, 1.06 * ax.dataLim.y1 or None)
    ax.margins(x=0.05)
    if not panel.chosen:
        ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
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


def legend_shape(names: Sequence[str], width: float = WIDTH) -> tuple[int, int]:
    """Return how many names stand beside each other, and in how many lines.

    >>> legend_shape(["ours", "theirs"]), legend_shape(["a rather long name of a method"] * 8)
    ((2, 1), (4, 2))
    """
    longest = 0.55 + 0.066 * max(map(len, names), default=1)  # inches
    across = max(1, min(len(names), int(width / longest)))
    deep = -(-len(names) // across)
    return -(-len(names) // deep), deep


def draw_legend(figure: Figure | SubFigure, looks: Looks, size: tuple[float, float]) -> None:
    """Write the names of all lines above the panels, from the left, where narrow screens begin to show a figure."""
    from matplotlib.lines import Line2D

    width, height = size
    figure.legend(
        handles=[Line2D([], [], label=name, **look.style) for name, look in looks.items()],
        loc="upper left",
        bbox_to_anchor=(0.2 / width, 1 + 0.02 / height),
        ncols=legend_shape(list(looks), width)[0],
        columnspacing=1.6,
        handlelength=2.2,
    )
