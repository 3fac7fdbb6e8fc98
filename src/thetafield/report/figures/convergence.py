"""Convergence: error over training domains, losses over epochs, and both over long training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thetafield.report.figures.curves import Curve, CurvePanel, draw_curves, frame, line_looks
from thetafield.report.style import MUTED, PAPER, SCALE, UNSEEN, styled

LOSS, ERROR = "#667085", UNSEEN
Losses = Sequence[tuple[float, float]]  # epoch and loss of each record; long trainings keep some epochs only


@dataclass(frozen=True)
class LongRun:
    """One long training, and the error after trainings of several lengths.

    Args:
        losses: Its losses.
        error: Error over the number of epochs.
    """

    losses: Losses
    error: Curve | None


@styled
def convergence(domains: CurvePanel, losses: Mapping[int, Losses], long: LongRun | None, measure: str) -> Figure:
    """Draw the three panels of the paper's figure.

    Args:
        domains: Error over the number of training domains.
        losses: Losses by the number of training domains.
        long: A long training; None where none was stored.
        measure: What the errors are.
    """
    figure = Figure(figsize=(10.4, 3.25))
    left, middle, right = figure.subplots(1, 3)
    figure.subplots_adjust(left=0.055, right=0.945, top=0.88, bottom=0.175, wspace=0.3)
    looks = line_looks(domains.curves)
    draw_curves(left, domains, looks)
    left.set_ylabel(measure)
    if len(looks) > 1:
        handles = [left.plot([], [], label=name, **look.style)[0] for name, look in looks.items()]
        left.legend(handles=handles, loc="upper right")
    _losses(middle, losses)
    _long(right, long, measure)
    return figure


def _losses(ax: Axes, losses: Mapping[int, Losses]) -> None:
    panel = CurvePanel("Training loss", "epoch", (), note="no stored losses")
    if not losses:
        frame(ax, panel, [])
        return
    for i, (count, values) in enumerate(sorted(losses.items())):
        colour = SCALE(0.25 + 0.75 * i / max(1, len(losses) - 1))
        ax.plot(*zip(*values, strict=True), color=colour, linewidth=1.5, label=f"{count} domains")
    ax.set(yscale="log", title=panel.title, xlabel=panel.label)
    ax.grid(axis="y", color="#d5d9e0", linewidth=0.7)
    ax.tick_params(length=0, which="both")
    ax.legend(loc="upper right")


def _long(ax: Axes, long: LongRun | None, measure: str) -> None:
    panel = CurvePanel("Long training", "epoch", (), note="no training of several lengths\nis stored")
    if long is None or long.error is None:
        frame(ax, panel, [])
        return
    if long.losses:
        ax.plot(*zip(*long.losses, strict=True), color=LOSS, linewidth=1.5)
        ax.set_yscale("log")
    ax.set_ylabel("training loss", color=MUTED, labelpad=1)
    ax.set(title=panel.title, xlabel=panel.label)
    ax.tick_params(length=0, which="both")
    other = ax.twinx()
    x, mean, spread = (np.asarray(values) for values in (long.error.x, long.error.mean, long.error.spread))
    other.fill_between(x, np.maximum(0, mean - spread), mean + spread, color=ERROR, alpha=0.16, linewidth=0)
    other.plot(x, mean, color=ERROR, marker="o", markersize=5, markeredgecolor=PAPER, linewidth=2)
    other.set_ylim(0, None)
    other.set_ylabel(measure, color=ERROR)
    other.tick_params(length=0, labelcolor=ERROR)
    other.spines[["left", "top"]].set_visible(False)
