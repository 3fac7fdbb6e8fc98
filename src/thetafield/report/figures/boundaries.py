"""Decision boundaries: of every method at unseen domains, and of one method along straight paths through Z."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thetafield.data.domains import DomainSet
from thetafield.datasets.two_moons import RANGE, moon_domains
from thetafield.evaluation import evaluate
from thetafield.fields.model import FieldModel
from thetafield.report.figures.moons import caption, class_probabilities, draw_belief, draw_moons, draw_note, reach
from thetafield.report.style import FAINT, MUTED, UNSEEN, bare, styled
from thetafield.streams import numpy_stream

STEPS = 7


@dataclass(frozen=True)
class Direction:
    """A straight path through Z."""

    title: str
    start: tuple[float, float]
    end: tuple[float, float]

    @property
    def descriptors(self) -> np.ndarray:
        """The descriptors at equal steps, shape (STEPS, 2)."""
        return np.linspace(self.start, self.end, STEPS)


# A unit of rotation is 18°: 2.5 units a step turn the moons by 45°, so a row shows three quarters of a turn.
DIRECTIONS = (
    Direction("Scale only", (4.0, 25.0), (46.0, 25.0)),
    Direction("Rotation only", (25.0, 17.5), (25.0, 32.5)),
    Direction("Both", (4.0, 17.5), (46.0, 32.5)),
)


@styled
def unseen_boundaries(models: Mapping[str, FieldModel], domains: DomainSet, pixels: int = 160) -> Figure:
    """Draw what each method (row) believes at each domain (column), with the domain's data and the error.

    Args:
        models: Models by the method's title.
        domains: The few unseen domains to look at, named A, B, … from left to right.
        pixels: Grid points per side of a panel.
    """
    z = domains.z.cpu().numpy()
    half = reach(domains)
    figure = Figure(figsize=(8.6, 0.62 + 2.02 * len(models)))
    axes = figure.subplots(len(models), len(z), squeeze=False)
    figure.subplots_adjust(left=0.06, right=0.995, top=1 - 0.55 / figure.get_figheight(), bottom=0.008)
    figure.subplots_adjust(wspace=0.05, hspace=0.05)
    for row, (title, model) in zip(axes, models.items(), strict=True):
        beliefs = class_probabilities(model, z, half, pixels)
        errors = evaluate(model, domains).per_domain
        row[0].set_ylabel(title, size=11, weight="bold", labelpad=8)
        for i, ax in enumerate(row):
            draw_belief(ax, beliefs[i], half[i])
            draw_moons(ax, domains, i, half[i])
            draw_note(ax, f"{errors[i]:.1f} %")
    for i, ax in enumerate(axes[0]):
        ax.set_title("ABCDEFGH"[i], pad=20)
        ax.text(0.5, 1.04, caption(z[i]), transform=ax.transAxes, ha="center", color=MUTED, size=8.5)
    return figure


@styled
def direction_boundaries(
    model: FieldModel, train: DomainSet, seed: int, directions: Sequence[Direction] = DIRECTIONS, pixels: int = 120
) -> Figure:
    """Draw how one model's boundary moves along straight paths through Z, with fresh data of every domain passed.

    Args:
        model: A field model of the moons.
        train: Training domains, shown on the small maps of the paths.
        seed: Root seed of the fresh data.
        directions: The paths, one per row.
        pixels: Grid points per side of a panel.
    """
    figure = Figure(figsize=(10.4, 0.3 + 1.52 * len(directions)))
    axes = figure.subplots(len(directions), STEPS + 1, squeeze=False)
    figure.subplots_adjust(left=0.022, right=0.998, top=0.95, bottom=0.045, wspace=0.06, hspace=0.2)
    for row, direction in zip(axes, directions, strict=True):
        z = direction.descriptors
        domains = moon_domains(z, numpy_stream(seed, "two-moons", "directions", direction.title))
        half = np.full(len(z), reach(domains).max())  # one zoom along a row, so that scale shows
        beliefs = class_probabilities(model, z, half, pixels)
        errors = evaluate(model, domains).per_domain
        _path(row[0], direction, train.z.cpu().numpy())
        for i, ax in enumerate(row[1:]):
            draw_belief(ax, beliefs[i], half[i])
            draw_moons(ax, domains, i, half[i], num_points=160)
            draw_note(ax, f"{errors[i]:.1f} %")
            ax.set_title(caption(z[i]), size=7.8, weight="normal", color=MUTED, pad=3)
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
