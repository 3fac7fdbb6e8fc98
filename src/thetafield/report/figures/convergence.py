"""Convergence: error over training domains, losses over epochs, and both over long training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thetafield.report.figures.curves import Curve, CurvePanel, Looks, draw_curves, frame, line_looks
from thetafield.report.style import MUTED, SCALE, styled

LOSS = "#b3bac5"
Losses = Sequence[tuple[float, float]]  # epoch and loss of each record; long trainings keep some epochs only


@dataclass(frozen=True)
class LongRun:
    """One long training, and errors after trainings of several lengths.

    Args:
        losses: Its losses.
        errors: Error over the number of epochs, by method.
    """

    losses: Losses
    errors: tuple[Curve, ...]


@styled
def convergence(
    domains: CurvePanel, losses: Mapping[int, Losses], long: LongRun | None, measure: str, name: str
) -> Figure:
    """Draw the three panels of the paper's figure.

    Args:
        domains: Error over the number of training domains.
        losses: Losses by the number of training domains.
        long: A long training; None where none was stored.
        measure: What the errors are.
        name: Whose losses these are.
    """
    figure = Figure(figsize=(10.4, 3.25))
    left, middle, right = figure.subplots(1, 3)
    figure.subplots_adjust(left=0.055, right=0.945, top=0.88, bottom=0.175, wspace=0.3)
    looks = line_looks([*domains.curves, *(long.errors if long else ())])
    draw_curves(left, domains, looks)
    left.set_ylabel(measure)
    if len(looks) > 1:
        handles = [left.plot([], [], label=name, **look.style)[0] for name, look in looks.items()]
        left.legend(handles=handles, loc="upper right")
    _losses(middle, losses, name)
    _long(right, long, measure, looks)
    return figure


def _losses(ax: Axes, losses: Mapping[int, Losses], name: str) -> None:
    panel = CurvePanel(f"Training loss, {name}", "epoch", (), note="no stored losses")
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


def _long(ax: Axes, long: LongRun | None, measure: str, looks: Looks) -> None:
    panel = CurvePanel("Long training", "epochs", long.errors if long else (), log_errors=True)
    if long is None:
        frame(ax, replace(panel, note="no training of several lengths\nis stored"), [])
        return
    if long.losses:
        other = ax.twinx()
        other.plot(*zip(*long.losses, strict=True), color=LOSS, linewidth=1.2)
        other.set_yscale("log")
        other.set_ylabel("training loss", color=MUTED)
        other.tick_params(length=0, which="both", labelcolor=MUTED)
        other.spines[["left", "top"]].set_visible(False)
        ax.set_zorder(other.get_zorder() + 1)  # errors over losses
        ax.patch.set_visible(False)
    draw_curves(ax, panel, looks)
    ax.set_ylabel(measure)
