"""What MNIST's domains look like: one digit of each of some training and test domains, with its descriptor."""

import numpy as np
from matplotlib.figure import Figure

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import Dataset
from thetafield.report.style import MUTED, bare, styled

PER_GROUP, PER_ROW = 18, 9


@styled
def digit_domains(dataset: Dataset) -> Figure:
    """Draw the first digit of 18 training domains above, and of 18 test domains below.

    Args:
        dataset: MNIST, with the test group "random".
    """
    figure = Figure(figsize=(10.4, 6.4))
    groups = {"training domains": dataset.train, "test domains": dataset.test["random"]}
    for part, (title, domains) in zip(figure.subfigures(2, 1), groups.items(), strict=True):
        axes = part.subplots(PER_GROUP // PER_ROW, PER_ROW)
        part.subplots_adjust(left=0.01, right=0.99, top=0.83, bottom=0.09, wspace=0.08, hspace=0.5)
        part.suptitle(
            f"{min(PER_GROUP, len(domains))} of {len(domains)} {title}", x=0.012, ha="left", size=10.5, weight="bold"
        )
        for position, ax in enumerate(axes.flat):
            if position < len(domains):
                ax.imshow(first_image(domains, position))
                label = int(domains.y[int(domains.offsets[position])])
                ax.set_title(f"domain {position + 1}, a {label}", size=7.8, weight="normal", pad=3)
                ax.set_xlabel(place(domains.z[position].tolist()), size=7.3, color=MUTED, labelpad=2)
                bare(ax)
            else:
                ax.set_axis_off()
    return figure


def first_image(domains: DomainSet, position: int) -> np.ndarray:
    """Return the first image of a domain, shape (height, width, 3)."""
    return domains.x[int(domains.offsets[position])].permute(1, 2, 0).cpu().numpy()


def place(z: list[float]) -> str:
    """Say in words where a descriptor is.

    >>> place([25.0, 25.0, 9.3])
    '90°, 50 % blue, 8 px'
    """
    rotation, colour, occlusion = z
    return f"{18 * rotation % 360:.0f}°, {100 * colour / 50:.0f} % blue, {2 * int(occlusion // 2)} px"
