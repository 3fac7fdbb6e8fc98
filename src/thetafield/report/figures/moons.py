"""The panel that most figures share: the moons of one domain, over what a model believes there."""

import numpy as np
import torch
from matplotlib.axes import Axes

from thetafield.data.domains import DomainSet
from thetafield.fields.model import FieldModel
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


def reach(domains: DomainSet) -> np.ndarray:
    """Return half the side of a square around the origin that holds each domain's points with some air, shape (N,)."""
    points = domains.padded(torch.arange(len(domains), device=domains.offsets.device)).x
    return 1.08 * points.abs().amax((1, 2)).double().cpu().numpy()


@torch.no_grad()
def class_probabilities(model: FieldModel, z: np.ndarray, half_side: np.ndarray, pixels: int) -> np.ndarray:
    """Return p(class 1 | x, z) on a square grid around the origin, for all descriptors in one batched call.

    Args:
        model: Any field model of the moons.
        z: Raw descriptors, shape (b, 2).
        half_side: Half the side of each square, shape (b,).
        pixels: Grid points per side.

    Returns:
        Probabilities of shape (b, pixels, pixels), rows from bottom to top.
    """
    axis = torch.linspace(-1, 1, pixels)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1).reshape(-1, 2)
    x = torch.as_tensor(half_side, dtype=torch.float32)[:, None, None] * grid
    outputs = model.domain_outputs(x, torch.as_tensor(z, dtype=torch.float32))
    return outputs.softmax(-1)[..., 1].reshape(len(z), pixels, pixels).cpu().numpy()


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
