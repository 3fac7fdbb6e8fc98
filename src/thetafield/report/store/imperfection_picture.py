"""The figure of imperfect descriptors: how each is made, made again by the dataset's own code, and what it costs."""

from collections.abc import Sequence

import numpy as np

from thetafield.data.descriptors import add_noise, add_projections, drop_coordinates
from thetafield.data.domains import DomainSet
from thetafield.datasets.two_moons import MESH, RANGE
from thetafield.report.figures.imperfection import Construction, Coordinate, imperfection
from thetafield.report.store.picture import Picture
from thetafield.report.store.reading import Results
from thetafield.report.store.sweep_pictures import curves_of, words_of
from thetafield.report.store.sweeps import Panel
from thetafield.report.store.table import unit

PROJECTIONS = 8
CAPTION = (
    "Above: every coordinate of the descriptor over the true one, scale to the right and rotation upwards, for seed "
    "{seed}. Coordinates of pure noise are added to z (left), or redundant projections of z (middle), or z is replaced "
    "by eight projections of which more and more are dropped (right). Below: the error on unseen domains, on a "
    "logarithmic scale; lines step aside a little, so that none hides another. Bands are the standard deviation over "
    "seeds."
)


def imperfection_picture(results: Results, panels: Sequence[Panel], title: str) -> Picture:
    """Return the constructions of imperfect descriptors above the curves of their errors."""
    seed = min((item.spec["seed"] for item in results.items), default=0)
    shown = [curves_of(panel) for panel in panels]
    measure = unit(panels[0].metric).replace(", %", " (%)")
    levels = [max((int(point.x) for points in panel.lines.values() for point in points), default=0) for panel in panels]
    return Picture(
        name="imperfection",
        title=title,
        caption=CAPTION.format(seed=seed),
        alt=f"Tiles of the coordinates of noisy, redundant and incomplete descriptors above curves. {words_of(panels)}",
        command=results.command(results.suite),
        draw=(lambda: imperfection(constructions(levels, seed), shown, measure))
        if any(panel.varies for panel in panels)
        else None,
        reason="No panel has results at two values yet.",
        narrow=900,
    )


def constructions(levels: Sequence[int], seed: int) -> list[Construction]:
    """Return the noisy, redundant and incomplete descriptors of 2-Moons, the first two at their highest level.

    Projections are those of the trials with this seed; noise is drawn in the same way, for the mesh alone.
    """
    true, (noise, redundant, dropped) = _mesh(), levels
    embedded = drop_coordinates(true, 0, seed, PROJECTIONS)
    left = [set(drop_coordinates(true, count, seed, PROJECTIONS).descriptors) for count in range(dropped + 1)]
    gone = {name: sum(name in names for names in left) for name in embedded.descriptors}
    order = sorted(gone, key=lambda name: gone[name])
    labels = {name: "stays" if gone[name] > dropped else f"goes at {gone[name]}" for name in order}
    return [
        _construction(f"{_some(noise, 'coordinate')} of noise added", add_noise(true, noise, seed)),
        _construction(f"{_some(redundant, 'projection')} added", add_projections(true, redundant, seed)),
        _construction(f"{dropped or 'None'} of {PROJECTIONS} projections dropped", embedded, labels),
    ]


def _mesh() -> DomainSet:
    """Return the mesh of 2-Moons without its points, of which nothing here depends."""
    axis = np.linspace(0, RANGE, MESH)
    z = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    empty = np.zeros((len(z), 1))
    return DomainSet.from_arrays(
        empty, empty[:, 0], domain=np.arange(len(z)), z=z, descriptors=["scale", "rotation"], classification=False
    )


def _construction(title: str, made: DomainSet, labels: dict[str, str] | None = None) -> Construction:
    values = dict(zip(made.descriptors, made.z.numpy().T, strict=True))
    named = labels or {name: name.rstrip("0123456789") for name in made.descriptors}
    coordinates = (Coordinate(label, values[name].reshape(MESH, MESH)) for name, label in named.items())
    return Construction(title, tuple(coordinates))


def _some(count: int, what: str) -> str:
    """Return a number of things in words.

    >>> _some(0, "projection"), _some(1, "projection"), _some(5, "projection")
    ('No projection', '1 projection', '5 projections')
    """
    return f"{count or 'No'} {what}{'s' * (count > 1)}"
