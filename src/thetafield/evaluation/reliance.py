"""Which descriptors a model leans on: how much more it errs on unseen domains when it is told those of another."""

from collections.abc import Callable

import torch
from torch import Tensor

from thetafield.data.domains import DomainBatch, DomainSet
from thetafield.data.thinning import thinned
from thetafield.evaluation.scores import batches, domain_errors
from thetafield.fields.model import FieldModel, Model
from thetafield.streams import numpy_stream, torch_stream

ROUNDS = 8  # other domains whose descriptor is told
ROWS = 100  # samples of a domain that are enough


@torch.no_grad()
def reliance(model: Model, kept: DomainSet, held: DomainSet, seed: int = 0) -> dict[str, list[float]]:
    """Return factor → by how much the error of each held-out domain grows without it.

    A factor is unknown where its value is that of a kept domain drawn at random: coordinates that describe one factor
    are told together, the others stay as they are. Kept domains and not held-out ones, which may all be alike.

    Args:
        model: Any model.
        kept: The domains it was trained on.
        held: Domains it has not seen.
        seed: Root seed of the draws.

    Returns:
        By factor, one number for each held-out domain, in the unit of its error. Draws without a finite answer do not
        count, and a domain that has no other keeps its error.
    """
    few = thinned(held, len(held.x), ROWS, torch_stream(seed, "reliance", "rows"))
    stream = numpy_stream(seed, "reliance", "domains")
    drawn = torch.from_numpy(stream.integers(len(kept), size=(ROUNDS, len(few))))
    factors = {name: [place for place, each in enumerate(held.factors) if each == name] for name in held.factors}
    grown = {name: list[Tensor]() for name in factors}
    for batch in batches(model, few):
        index, answer = batch.index.cpu(), _answering(model, batch.x)
        z = few.z[index].cpu()
        own = _errors(answer(z), batch, few)
        for name, places in factors.items():
            told = kept.z.cpu()[drawn[:, index]][:, :, places]
            others = [z.index_copy(1, torch.tensor(places), each) for each in told]
            errors = torch.stack([_errors(answer(other), batch, few) for other in others])
            grown[name].append((errors.nanmean(0) - own).nan_to_num())
    return {name: torch.cat(parts).tolist() for name, parts in grown.items()}


def _answering(model: Model, x: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what a model answers for inputs under any descriptors; what does not depend on these is done once."""
    if isinstance(model, FieldModel):
        features = model.domain_features(x)
        return lambda z: model.head_outputs(features, z)
    return lambda z: model.domain_outputs(x, z)


def _errors(outputs: Tensor, batch: DomainBatch, domains: DomainSet) -> Tensor:
    """Return the error of each domain, NaN without a finite answer."""
    finite = torch.isfinite(outputs).flatten(1).all(1)
    return domain_errors(outputs, batch, domains).where(finite, torch.nan).double().cpu()
