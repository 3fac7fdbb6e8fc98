"""Decision boundaries: of every method at unseen domains, and of one method along straight paths through Z."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thetafield.data.domains import DomainSet
from thetafield.datasets.two_moons import RANGE
from thetafield.evaluation.looks import DIRECTIONS, STEPS, Belief, Direction
from thetafield.report.figures.moons import caption, draw_belief, draw_moons, draw_note
from thetafield.report.style import FAINT, MUTED, UNSEEN, bare, styled


@styled
def unseen_boundaries(beliefs: Mapping[str, Belief], domains: DomainSet) -> Figure:
    """Draw what each method (row) believes at each domain (column), with the domain's data and the error.

    Args:
        beliefs: What is believed at these domains, by the method's title.
        domains: The few unseen domains to look at, named A, B, … from left to right.
    """
    z = domains.z.cpu().numpy()
    figure = Figure(figsize=(8.6, 0.62 + 2.02 * len(beliefs)))
    axes = figure.subplots(len(beliefs), len(z), squeeze=False)
    figure.subplots_adjust(left=0.06, right=0.995, top=1 - 0.55 / figure.get_figheight(), bottom=0.008)
    figure.subplots_adjust(wspace=0.05, hspace=0.05)
    for row, (title, belief) in zip(axes, beliefs.items(), strict=True):
        row[0].set_ylabel(title, size=11, weight="bold", labelpad=8)
        for i, ax in enumerate(row):
            draw_belief(ax, belief.probability[i], belief.half_side[i])
            draw_moons(ax, domains, i, belief.half_side[i])
            draw_note(ax, f"{belief.errors[i]:.1f} %")
    for i, ax in enumerate(axes[0]):
        ax.set_title("ABCDEFGH"[i], pad=20)
        ax.text(0.5, 1.04, caption(z[i]), transform=ax.transAxes, ha="center", color=MUTED, size=8.5)
    return figure


@styled
def direction_boundaries(beliefs: Mapping[str, Belief], train: DomainSet, seed: int) -> Figure:
    """Draw how one model's boundary moves along straight paths through Z, with fresh data of every domain passed.

    Args:
        beliefs: What it believes along each of DIRECTIONS, by title.
        train: Training domains, shown on the small maps of the paths.
        seed: Root seed of the fresh data.
    """
    figure = Figure(figsize=(10.4, 0.3 + 1.52 * len(DIRECTIONS)))
    axes = figure.subplots(len(DIRECTIONS), STEPS + 1, squeeze=False)
    figure.subplots_adjust(left=0.022, right=0.998, top=0.95, bottom=0.045, wspace=0.06, hspace=0.2)
    for row, direction in zip(axes, DIRECTIONS, strict=True):
        belief, domains = beliefs[direction.title], direction.domains(seed)
        _path(row[0], direction, train.z.cpu().numpy())
        for i, ax in enumerate(row[1:]):
            draw_belief(ax, belief.probability[i], belief.half_side[i])
            draw_moons(ax, domains, i, belief.half_side[i], num_points=160)
            draw_note(ax, f"{belief.errors[i]:.1f} %")
            ax.set_title(caption(direction.descriptors[i]), size=7.8, weight="normal", color=MUTED, pad=3)
    return figure


def _path(ax: Axes, direction: Direction, train: np.ndarray) -> None:
    """Draw a small map of Z with the path that a row follows."""
    z = direction.descriptors
    ax.scatter(train[:, 0], train[:, 1], s=3, color=FAINT, linewidths=0)
    arrow = {"arrowstyle": "-|>", "color": UNSEEN, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=direction.end, xytext=direction.start, arrowprops=arrow)
    ax.scatter(z[:, 0], z[:, 1], s=7, color=UNSEEN, linewidths=0, zorder=3)
    ax.set(xlim=(-2, RANGE + 2), ylim=(-2, RANGE + 2))
    ax.set_xlabel("scale", size=7.8, color=MUTED, labelpad=2)
    ax.set_ylabel("rotation", size=7.8, color=MUTED, labelpad=2)
    ax.set_title(direction.title, size=9.5, pad=3)
    bare(ax)
