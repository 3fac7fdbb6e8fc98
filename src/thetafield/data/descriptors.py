"""Descriptors before a method sees them: scaling by training domains alone, and the paper's three imperfections."""

from dataclasses import dataclass

import torch
from torch import Tensor

from thetafield.data.domains import DomainSet
from thetafield.errors import DataError
from thetafield.streams import numpy_stream


@dataclass(frozen=True)
class DescriptorScaler:
    """Min-max scaling z ↦ (z − low) / (high − low), fitted on training descriptors only.

    Unseen descriptors may fall outside [0, 1]: that is how the field knows that it extrapolates. A coordinate that does
    not vary in training, as a rare mark may not in a part of the domains, tells nothing and is 0 everywhere.

    Example:
        >>> scaler = DescriptorScaler.fit(torch.tensor([[0.0], [50.0]]))
        >>> scaler(torch.tensor([[25.0], [60.0]])).tolist()
        [[0.5], [1.2000000476837158]]
    """

    low: Tensor
    high: Tensor

    @classmethod
    def fit(cls, z: Tensor) -> "DescriptorScaler":
        """Read the range of each coordinate off training descriptors of shape (N, d)."""
        return cls(z.amin(0), z.amax(0))

    def __call__(self, z: Tensor) -> Tensor:
        """Return scaled descriptors of shape (..., d)."""
        if z.shape[-1] != len(self.low):
            raise DataError(f"z has width {z.shape[-1]}, but the field was fitted with {len(self.low)} descriptors.")
        low, high = self.low.to(z), self.high.to(z)
        varies = high > low
        # Where nothing has a range, as with a single training domain, that is the origin and one unit is one unit.
        kept = varies | ~varies.any()
        return (z - low) * kept / torch.where(varies, high - low, torch.ones_like(low))


def check_descriptors(domains: DomainSet) -> None:
    """Raise where a descriptor has one value in all domains that somebody gave; parts of them may well have one."""
    still = (domains.z == domains.z[:1]).all(0).tolist()
    varying = {factor for factor, rests in zip(domains.factors, still, strict=True) if not rests}
    for name, factor, value in zip(domains.descriptors, domains.factors, domains.z[:1].flatten().tolist(), strict=True):
        if len(domains) > 1 and factor not in varying:
            raise DataError(
                f"Descriptor {name!r} has the same value ({value:g}) in all {len(domains)} domains, so it cannot "
                "describe a shift: leave it out."
            )


def add_noise(domains: DomainSet, count: int, seed: int) -> DomainSet:
    """Append `count` uniform coordinates that say nothing about the domain (the paper's noisy descriptors).

    They span the range of the first coordinate, so that only their content tells them from a true one.
    """
    noise = numpy_stream(seed, "imperfection", "noise").uniform(size=(len(domains), count))
    low, high = domains.z[:, 0].min(), domains.z[:, 0].max()
    extra = low + (high - low) * torch.from_numpy(noise).to(domains.z)
    names = tuple(f"noise{i}" for i in range(count))
    return domains.with_descriptors(
        torch.cat([domains.z, extra], 1), domains.descriptors + names, domains.factors + ("noise",) * count
    )


def add_projections(domains: DomainSet, count: int, seed: int) -> DomainSet:
    """Append `count` random linear projections of the true coordinates (the paper's redundant descriptors)."""
    width = domains.z.shape[1]
    matrix = numpy_stream(seed, "imperfection", "redundant").normal(size=(width, count)) / width**0.5
    extra = domains.z @ torch.from_numpy(matrix).to(domains.z)
    names = tuple(f"projection{i}" for i in range(count))
    return domains.with_descriptors(
        torch.cat([domains.z, extra], 1), domains.descriptors + names, domains.factors + ("mixed",) * count
    )


def drop_coordinates(domains: DomainSet, count: int, seed: int, width: int = 8) -> DomainSet:
    """Embed the descriptors in `width` random projections and drop `count` of them (the incomplete descriptors).

    The embedding and the order of dropping depend on the seed alone: a larger `count` drops a superset.
    """
    if not 0 <= count < width:
        raise DataError(f"Of {width} coordinates 0 to {width - 1} can be dropped, but {count} were asked for.")
    stream = numpy_stream(seed, "imperfection", "incomplete")
    matrix = stream.normal(size=(domains.z.shape[1], width)) / domains.z.shape[1] ** 0.5
    kept = sorted(stream.permutation(width)[count:].tolist())
    z = domains.z @ torch.from_numpy(matrix[:, kept]).to(domains.z)
    return domains.with_descriptors(z, tuple(f"projection{i}" for i in kept), ("mixed",) * len(kept))
