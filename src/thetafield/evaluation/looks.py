"""What a field of 2-Moons looks like: all that figures show of it, small enough to be stored with a result."""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import Dataset
from thetafield.datasets.two_moons import RANGE, moon_domains
from thetafield.errors import DivergenceError
from thetafield.evaluation.scores import evaluate
from thetafield.fields.model import FieldModel
from thetafield.streams import numpy_stream

STEPS = 7  # domains on a path
PIXELS, MESH = 90, 60  # of what is stored


@dataclass(frozen=True)
class Direction:
    """A straight path through Z.

    Args:
        title: What changes along it.
        start: Its first descriptor.
        end: Its last one.
    """

    title: str
    start: tuple[float, float]
    end: tuple[float, float]

    @property
    def descriptors(self) -> np.ndarray:
        """The descriptors at equal steps, shape (STEPS, 2)."""
        return np.linspace(self.start, self.end, STEPS)

    def domains(self, seed: int) -> DomainSet:
        """Return the domains on the path, with fresh data."""
        return moon_domains(self.descriptors, numpy_stream(seed, "two-moons", "directions", self.title))


# A unit of rotation is 18°: 2.5 units a step turn the moons by 45°, so a path shows three quarters of a turn.
DIRECTIONS = (
    Direction("Scale only", (4.0, 25.0), (46.0, 25.0)),
    Direction("Rotation only", (25.0, 17.5), (25.0, 32.5)),
    Direction("Both", (4.0, 17.5), (46.0, 32.5)),
)


@dataclass(frozen=True)
class Belief:
    """What a model believes at a few domains, on squares around the origin.

    Args:
        probability: p(class 1 | x, z), shape (b, pixels, pixels), rows from bottom to top.
        half_side: Half the side of each square, shape (b,).
        errors: Error in % at each domain, shape (b,).
    """

    probability: np.ndarray
    half_side: np.ndarray
    errors: np.ndarray

    def record(self) -> dict[str, Any]:
        """Return plain JSON values; a probability is kept to a part in 255, which no eye tells apart."""
        shades = np.rint(255 * self.probability).astype(np.uint8)
        return {
            "probability": _packed(shades),
            "half_side": self.half_side.tolist(),
            "errors": self.errors.round(4).tolist(),
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Belief":
        """Return what was recorded."""
        shades = _unpacked(record["probability"], np.uint8)
        half_side, errors = np.array(record["half_side"], float), np.array(record["errors"], float)
        if not (shades.ndim == 3 and len(shades) == len(half_side) == len(errors)):
            raise ValueError(f"{len(errors)} domains with pictures of shape {shades.shape}")
        return cls(shades / np.float32(255), half_side, errors)


@dataclass(frozen=True)
class Surface:
    """θ over a mesh of Z, projected on its three main directions.

    Args:
        points: Shape (mesh, mesh, 3), first axis scale, second rotation; the coordinate furthest out is 1 or −1.
        shares: How much of the variance each direction has, in %, shape (3,).
    """

    points: np.ndarray
    shares: np.ndarray

    def record(self) -> dict[str, Any]:
        """Return plain JSON values, in half precision."""
        return {"points": _packed(self.points.astype("<f2")), "shares": self.shares.round(2).tolist()}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Surface":
        """Return what was recorded."""
        return cls(_unpacked(record["points"], "<f2").astype(np.float32), np.array(record["shares"]))


@dataclass(frozen=True)
class Look:
    """A field as figures show it.

    Args:
        unseen: What it believes at four unseen domains, those of :func:`quarter_domains`.
        directions: The same along each of DIRECTIONS, by title.
        surface: θ(z) over Z; None where it is the same everywhere.
    """

    unseen: Belief
    directions: Mapping[str, Belief]
    surface: Surface | None

    def record(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "unseen": self.unseen.record(),
            "directions": {title: belief.record() for title, belief in self.directions.items()},
            "surface": None if self.surface is None else self.surface.record(),
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Look":
        """Return what was recorded."""
        look = cls(
            Belief.of(record["unseen"]),
            {title: Belief.of(belief) for title, belief in record["directions"].items()},
            None if record["surface"] is None else Surface.of(record["surface"]),
        )
        titles = [direction.title for direction in DIRECTIONS]
        if sorted(look.directions) != sorted(titles) or {len(b.errors) for b in look.directions.values()} != {STEPS}:
            raise ValueError(f"directions are {', '.join(titles)} in {STEPS} steps")
        return look


def look_at(model: FieldModel, data: Dataset, seed: int) -> Look | None:
    """Return what a field of 2-Moons looks like.

    None where its descriptors are others than scale and rotation, or where it has no finite answer at some place that
    figures show: scores, which know unseen domains alone, may be finite nevertheless.
    """
    if data.name != "two-moons" or data.train.descriptors != ("scale", "rotation"):
        return None
    random = data.test["random"]
    try:
        look = Look(
            believed(model, random.select(list(quarter_domains(random.z.numpy()))), PIXELS),
            {each.title: believed(model, each.domains(seed), PIXELS, one_zoom=True) for each in DIRECTIONS},
            manifold(model, MESH),
        )
    except DivergenceError:
        return None
    return look if all(np.isfinite(b.probability).all() for b in (look.unseen, *look.directions.values())) else None


def quarter_domains(z: np.ndarray) -> tuple[int, ...]:
    """Return the position of the descriptor nearest the centre of each quarter of Z, in rising scale.

    They are spread over Z and chosen without a look at any error.

    >>> quarter_domains(np.array([[12.0, 12.0], [38.0, 13.0], [13.0, 37.0], [37.0, 37.0], [0.0, 0.0]]))
    (0, 2, 1, 3)
    """
    low, high = RANGE / 4, 3 * RANGE / 4
    centres = np.array([[low, low], [low, high], [high, low], [high, high]])
    return tuple(np.linalg.norm(z[None] - centres[:, None], axis=-1).argmin(1).tolist())


def believed(model: FieldModel, domains: DomainSet, pixels: int, *, one_zoom: bool = False) -> Belief:
    """Return what a model believes around the points of a few domains, and its errors there.

    Args:
        model: A field model of the moons.
        domains: The domains.
        pixels: Grid points per side of a square.
        one_zoom: Whether all squares are of the size of the largest, so that scale shows.
    """
    half = reach(domains)
    half = np.full(len(half), half.max()) if one_zoom else half
    probability = class_probabilities(model, domains.z.cpu().numpy(), half, pixels)
    return Belief(probability, half, evaluate(model, domains).per_domain)


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


def manifold(model: FieldModel, mesh: int) -> Surface | None:
    """Return the surface z ↦ PCA(θ(z)) over all of Z; None where θ is the same everywhere.

    Args:
        model: A field model of the moons.
        mesh: Descriptors per side of the mesh.

    Raises:
        DivergenceError: θ is not finite everywhere.
    """
    from sklearn.decomposition import PCA  # takes a second to import

    axis = torch.linspace(0, RANGE, mesh)
    scale, rotation = torch.meshgrid(axis, axis, indexing="ij")
    theta = model.theta(torch.stack([scale, rotation], -1)).reshape(mesh * mesh, -1).cpu().numpy()
    if not np.isfinite(theta).all():
        raise DivergenceError("θ is not finite everywhere in Z.")
    if not np.ptp(theta, axis=0).any():
        return None
    pca = PCA(n_components=3, svd_solver="arpack", random_state=0)
    points = pca.fit_transform(theta).reshape(mesh, mesh, 3)
    return Surface(points / np.abs(points).max(), 100 * pca.explained_variance_ratio_)


def _packed(array: np.ndarray) -> dict[str, Any]:
    return {"shape": list(array.shape), "deflated": base64.b64encode(zlib.compress(array.tobytes(), 9)).decode()}


def _unpacked(record: Mapping[str, Any], kind: Any) -> np.ndarray:
    content = zlib.decompress(base64.b64decode(record["deflated"]))
    return np.frombuffer(content, kind).reshape(record["shape"])
