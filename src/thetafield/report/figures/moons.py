"""The panel that most figures share: the moons of one domain, over what a model believes there."""

import numpy as np
from matplotlib.axes import Axes

from thetafield.data.domains import DomainSet
from thetafield.report.style import CLASS_COLOURS, INK, PAPER, PROBABILITY, bare


def size(z: np.ndarray) -> np.ndarray:
    """Return how many times larger than at z = 0 the moons are, at descriptors of shape (b, 2)."""
    return 1 + 0.1 * z[:, 0]


def turn(z: np.ndarray) -> np.ndarray:
    """Return by how many degrees the moons are turned, in [0, 360), at descriptors of shape (b, 2)."""
    return (18 * z[:, 1]) % 360


def caption(z: np.ndarray) -> str:
    """Say in words where one descriptor of shape (2,) is.

    >>> caption(np.array([10.0, 25.0]))
    '2.0× size, 90°'
    """
    return f"{size(z[None])[0]:.1f}× size, {turn(z[None])[0]:.0f}°"


def draw_moons(ax: Axes, domains: DomainSet, position: int, half: float, num_points: int = 240) -> None:
    """Scatter some points of one domain in their class colours on [−half, half]²."""
    rows = slice(int(domains.offsets[position]), int(domains.offsets[position + 1]))
    x, y = domains.x[rows].cpu().numpy(), domains.y[rows].cpu().numpy()
    step = max(1, len(x) // num_points)
    for label, colour in enumerate(CLASS_COLOURS):
        points = x[y == label][::step]
        ax.scatter(points[:, 0], points[:, 1], s=3.2, color=colour, linewidths=0, zorder=3)
    ax.set(xlim=(-half, half), ylim=(-half, half))
    bare(ax)


def draw_belief(ax: Axes, probability: np.ndarray, half: float) -> None:
    """Fill [−half, half]² with p(class 1) and draw the decision boundary."""
    extent = (-half, half, -half, half)
    ax.imshow(probability, extent=extent, origin="lower", cmap=PROBABILITY, vmin=0, vmax=1, interpolation="bilinear")
    # A model that never changes its mind has no boundary, and contour would warn about it.
    if probability.min() < 0.5 < probability.max():
        ax.contour(probability, levels=[0.5], extent=extent, colors=[INK], linewidths=0.9)


def draw_note(ax: Axes, text: str) -> None:
    """Write a few characters into the corner of `ax` that hides the fewest of the points drawn so far."""
    points = np.concatenate(
        [np.asarray(marks.get_offsets()) for marks in ax.collections if len(marks.get_offsets()) > 1]
    )
    low, high = ax.get_xlim()
    share = (points - low) / (high - low)
    corners = ((1, 0), (1, 1), (0, 0), (0, 1))
    hidden = [int(((abs(share[:, 0] - x) < 0.42) & (abs(share[:, 1] - y) < 0.2)).sum()) for x, y in corners]
    x, y = corners[int(np.argmin(hidden))]
    ax.text(
        0.96 if x else 0.04,
        0.955 if y else 0.045,
        text,
        transform=ax.transAxes,
        ha="right" if x else "left",
        va="top" if y else "bottom",
        size=8.2,
        zorder=4,
        bbox={"boxstyle": "round,pad=0.25", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.85},
    )
