"""TKNets: class prototypes that a Koopman operator carries from one domain to the next."""

from math import prod

import torch
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.errors import NeedError
from thetafield.fields.sequence import SequenceField
from thetafield.methods.base import METHODS, Method, Needs, Problem
from thetafield.methods.phase import Phase, Player
from thetafield.methods.space import LR, Choice, Range
from thetafield.options import Count, NonNegative, Positive
from thetafield.predictors.lift import Measurement, lifted

CELLS = 2**22  # numbers of the inputs held at once


@METHODS.register("tknets")
class TKNets(Method):
    """−log softmax_k(−‖G(φ(x)) − p_k‖²) on each domain, with p_k the mean of G(Kφ(x)) over class k one domain earlier.

    φ is the head up to its last layer, G the fixed measurement, K a linear map with bias; the order G∘K is that of the
    authors' code. Losses are summed over consecutive pairs; a pair whose earlier batch lacks a class is left out.
    Prototypes are a linear last layer, since −‖q − p‖² and 2 p·q − ‖p‖² have the same softmax: the result is a
    sequence of heads, each with the prototypes of all samples of the domain before; the last serves all the future. A
    class that a domain lacks keeps its latest prototype. Domains at equal times keep their order.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.

    Reference:
        Zeng et al., *Generalizing across Temporal Domains with Koopman Operators*, AAAI 2024 (arXiv 2402.07834).
    """

    name = "tknets"
    title = "TKNets"
    reference = "Zeng et al., 2024"
    needs = Needs(descriptor=True, ordered=True, classification=True, min_domains=2)
    renumberable = False  # true in fact, but a domain must hold every class, and then its draws go by its number
    space = {"lr": LR, "steps": Choice((1000, 2000, 5000)), "weight_decay": Range(1e-6, 1e-3)}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 32,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem)
        self.steps, self.samples, self.lr, self.weight_decay = steps, samples, lr, weight_decay
        domains = problem.domains
        self.order = torch.argsort(domains.z[:, 0], stable=True)
        self.check_classes()
        self.predictor = lifted(problem.predictor, "measurement")
        width = self.predictor.embed_dim
        self.measure, self.koopman = Measurement(), nn.Linear(width, width)
        self.head = nn.Parameter(self.predictor.start.clone())
        self.learned = SequenceField(domains.z.shape[1], self.predictor.dim, len(domains))
        self.learned.anchors.copy_(domains.z[self.order])

    def check_classes(self) -> None:
        """Refuse data in which no prototype, or no pair, could ever be made."""
        domains = self.problem.domains
        classes = domains.num_outputs
        owner = torch.arange(len(domains), device=domains.y.device).repeat_interleave(
            domains.sizes.to(domains.y.device)
        )
        counts = torch.bincount(owner * classes + domains.y, minlength=len(domains) * classes).view(-1, classes)
        present = counts[self.order.to(counts.device)] > 0
        absent = (~present.any(0)).nonzero().flatten().tolist()
        if absent and domains.classes is not None:
            names = ", ".join(str(domains.classes[k]) for k in absent)
            raise NeedError(f"TKNets needs samples of every class, but the training domains hold none of: {names}.")
        if not bool(present[:-1].all(1).any()):
            raise NeedError(
                "TKNets needs a training domain, other than the last, with samples of every class, but there is none."
            )

    def features(self, x: Tensor) -> Tensor:
        """Return φ(x) for inputs (b, n, ...), before the measurement."""
        flat = self.predictor.features(x.flatten(0, 1)[None])
        return self.predictor.embed(self.head[None], flat)[0].unflatten(0, x.shape[:2])

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the prototype loss summed over consecutive pairs; the batch holds every domain."""
        features, y = self.features(batch.x)[self.order], batch.y[self.order]
        member = _members(batch, self.problem.domains.num_outputs)[self.order]
        prototypes, count = self.carried(features[:-1], member[:-1])
        query = self.measure(features[1:])
        logits = 2 * query @ prototypes.mT - prototypes.square().sum(-1)[:, None]
        each = nn.functional.cross_entropy(logits.flatten(0, 1), y[1:].flatten(), reduction="none")
        whole = (count > 0).all(1)
        return {"risk": (each.view(len(whole), -1).mean(1) * whole).sum()}

    def carried(self, features: Tensor, member: Tensor) -> tuple[Tensor, Tensor]:
        """Return the prototypes (b, K, m) that K carries onwards, zero for absent classes, and the counts (b, K)."""
        count = member.sum(1)
        onwards = self.measure(self.koopman(features))
        return member.mT @ onwards / count.clamp(min=1)[..., None], count

    def phases(self) -> list[Phase]:
        """Return the one phase."""
        learned = [self.head, *self.koopman.parameters(), *self.predictor.parameters()]
        player = Player(self.loss, learned, self.lr, self.weight_decay)
        return [self.sampled_phase("prototypes", self.steps, self.samples, (player,))]

    @torch.no_grad()
    def prototypes(self) -> Tensor:
        """Return the prototypes of every domain in order of time, from all its samples, shape (N, K, m)."""
        domains, parts = self.problem.domains, []
        for some in self.order.split(max(1, CELLS // (domains.longest * prod(domains.x.shape[1:])))):
            batch = domains.padded(some)
            parts.append(self.carried(self.features(batch.x), _members(batch, domains.num_outputs)))
        means, count = (torch.cat(part) for part in zip(*parts, strict=True))
        present = count > 0
        # The latest domain that has the class; where none has yet, the first that will.
        place = torch.arange(len(present), device=present.device)[:, None].expand_as(present)
        latest = torch.where(present, place, -1).cummax(0).values
        latest = torch.where(latest < 0, present.int().argmax(0), latest)
        return means.gather(0, latest[..., None].expand_as(means))

    @torch.no_grad()
    def field(self) -> SequenceField:
        """Return the heads: φ's layers, and as last layer the prototypes of the domain before."""
        prototypes = self.prototypes()
        rows = torch.cat([prototypes[:1], prototypes])
        views = self.predictor.spec.views(self.head.detach().expand(len(rows), -1))
        *_, weight, bias = views
        last = {weight: 2 * rows, bias: -rows.square().sum(-1)}
        self.learned.theta.copy_(self.predictor.spec.flatten(views | last))
        return self.learned


def _members(batch: DomainBatch, classes: int) -> Tensor:
    """Return one where a sample is of a class and no padding, shape (b, n, K)."""
    return nn.functional.one_hot(batch.y, classes) * (batch.weight > 0)[..., None].to(batch.weight)
