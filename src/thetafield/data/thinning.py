"""Fewer samples of each domain, for work that is to be quick."""

from dataclasses import replace

import torch

from thetafield.data.domains import DomainSet


def thinned(domains: DomainSet, every: int, fewest: int, generator: torch.Generator) -> DomainSet:
    """Return one in `every` samples of each domain, or `fewest` if it has them, drawn at random and in their order."""
    sizes, starts = domains.sizes.cpu(), domains.offsets[:-1].cpu()
    owner = torch.arange(len(domains)).repeat_interleave(sizes)
    # Samples in a random order within their domain: periodic ones, such as hours, are not taken at one phase.
    order = torch.argsort(owner + torch.rand(len(owner), generator=generator, dtype=torch.float64))
    kept = torch.maximum(-(-sizes // every), sizes.clamp(max=fewest))
    place = torch.arange(len(owner)) - starts[owner]
    rows = order[place < kept[owner]].sort().values.to(domains.offsets.device)
    offsets = torch.cat([kept.new_zeros(1), kept.cumsum(0)]).to(domains.offsets.device)
    return replace(domains, x=domains.x[rows], y=domains.y[rows], offsets=offsets, on_disk=False)
