"""The descriptor space Z: where the training domains are, where the test domains are, and what their data look like."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import Dataset
from thetafield.datasets.two_moons import RANGE
from thetafield.evaluation.looks import reach
from thetafield.report.figures.moons import caption, draw_moons
from thetafield.report.style import FAINT, INK, PAPER, UNSEEN, styled

NUM_EXAMPLES = 6


@styled
def descriptor_space(dataset: Dataset, unseen: Sequence[int]) -> Figure:
    """Draw training and test domains in Z, with the data of a few training domains in a strip below.

    Args:
        dataset: 2-Moons, with the test groups "random" and "mesh".
        unseen: Positions in "random" of the domains that other figures look at, named A, B, …
    """
    figure = Figure(figsize=(10.4, 6.9))
    top, strip = figure.subfigures(2, 1, height_ratios=(4.75, 2.15))
    left, right = top.subplots(1, 2, gridspec_kw={"left": 0.055, "right": 0.99, "top": 0.93, "bottom": 0.12})
    examples = spread(dataset.train.z.numpy(), NUM_EXAMPLES)
    _training(left, dataset.train, examples)
    _test(right, dataset.test["random"], dataset.test["mesh"], unseen)
    _examples(list(strip.subplots(1, NUM_EXAMPLES).flat), dataset.train, examples)
    strip.subplots_adjust(left=0.02, right=0.98, top=0.77, bottom=0.03, wspace=0.08)
    strip.suptitle("The data of six training domains, all at the same zoom", y=0.99, fontsize=10.5, weight="bold")
    return figure


def spread(z: np.ndarray, count: int) -> list[int]:
    """Return positions of `count` descriptors far apart from each other, in rising scale.

    Starts at the first and always takes the one farthest from all taken so far.

    >>> spread(np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0], [4.0, 0.0]]), 3)
    [0, 3, 2]
    """
    taken = [0]
    while len(taken) < min(count, len(z)):
        gap = np.linalg.norm(z[:, None] - z[taken], axis=-1).min(1)
        taken.append(int(gap.argmax()))
    return sorted(taken, key=lambda position: z[position, 0])


def _frame(ax: Axes, title: str) -> None:
    margin = 0.03 * RANGE
    ax.set(xlim=(-margin, RANGE + margin), ylim=(-margin, RANGE + margin), title=title)
    ax.set(xlabel="scale (1× to 6× size)", ylabel="rotation (18° per unit, 2½ turns)")


def _training(ax: Axes, train: DomainSet, examples: list[int]) -> None:
    z = train.z.numpy()
    _frame(ax, f"{len(z)} training domains")
    ax.scatter(z[:, 0], z[:, 1], s=22, color=INK, linewidths=0, zorder=2)
    for number, position in enumerate(examples, start=1):
        ax.scatter(*z[position], s=170, color=INK, edgecolors=PAPER, linewidths=1, zorder=3)
        ax.annotate(
            str(number), z[position], ha="center", va="center_baseline", color=PAPER, size=9, weight="bold", zorder=4
        )


def _test(ax: Axes, random: DomainSet, mesh: DomainSet, unseen: Sequence[int]) -> None:
    z, grid = random.z.numpy(), mesh.z.numpy()
    _frame(ax, f"{len(z)} random (×) and {len(grid)} mesh (·) test domains")
    ax.scatter(grid[:, 0], grid[:, 1], s=9, color=FAINT, linewidths=0, zorder=1)
    ax.scatter(z[:, 0], z[:, 1], s=20, color=UNSEEN, marker="x", linewidths=1.1, zorder=2)
    for letter, position in zip("ABCDEFGH", unseen, strict=False):
        ax.scatter(*z[position], s=170, color=UNSEEN, edgecolors=PAPER, linewidths=1, zorder=3)
        ax.annotate(
            letter, z[position], ha="center", va="center_baseline", color=PAPER, size=9, weight="bold", zorder=4
        )


def _examples(axes: list[Axes], train: DomainSet, examples: list[int]) -> None:
    z = train.z.numpy()
    half = float(reach(train.select(examples)).max())
    for number, (ax, position) in enumerate(zip(axes, examples, strict=False), start=1):
        draw_moons(ax, train, position, half)
        ax.set_title(f"{number}:  {caption(z[position])}", size=9, weight="normal", pad=5)
    for ax in axes[len(examples) :]:
        ax.set_axis_off()
