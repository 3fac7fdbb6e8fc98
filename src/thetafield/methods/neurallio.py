"""NeuralLio as we train it: charts that the data chose, a start at a base, and an atlas instead of one chart."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from thetafield.errors import OptionError
from thetafield.fields.base import ParameterField
from thetafield.fields.shrunk import ShrunkField
from thetafield.geometry.atlas import knn_charts
from thetafield.geometry.metric import FEWEST, learn_metric
from thetafield.geometry.neighbours import Distinct
from thetafield.methods.base import METHODS, Problem
from thetafield.methods.chart_batch import ChartBatch
from thetafield.methods.erm import ERM
from thetafield.methods.erm_d import ERMD
from thetafield.methods.hypernet import Hypernet
from thetafield.methods.neurallio_paper import NeuralLioPaper
from thetafield.methods.phase import Phase
from thetafield.methods.probes import Probes
from thetafield.options import Count, Natural, NonNegative, Positive, Share

NEIGHBOURS, NEIGHBOURHOODS = 5, 6
KNOTS, DROPOUT, DECAY = 16, 0.2, 1e-3  # of a base that reads z interval by interval
SMALLEST, LARGEST, STEPS = 10, 256, 5  # anchors of a block, and blocks of an epoch
SAMPLES, FEWEST_SAMPLES, ENOUGH = 250, 64, 2**15  # of a domain in a step, at most and at least, and of all together


def base_of(
    problem: Problem, kind: str, steps: int, samples: int, dropout: float, decay: float
) -> ERM | ERMD | Hypernet:
    """Return how a base of a kind is trained."""
    if kind == "reading":
        return ERMD(problem, steps=steps, samples=samples, dropout=dropout, weight_decay=decay)
    if kind == "knots":
        # So many intervals tell single domains apart, and would be learned by heart.
        dropout, decay = max(DROPOUT, dropout), max(DECAY, decay)
        return ERMD(
            problem,
            steps=steps,
            samples=samples,
            hidden=(),
            knots=KNOTS,
            lr=3e-3,
            dropout=dropout,
            weight_decay=decay,
        )
    if kind == "hypernet":
        # The method of that name has the paper's wide decoder, which costs ten times as much and is no better here.
        return Hypernet(
            problem, steps=steps, samples=samples, widths=(128,), lr=3e-3, dropout=dropout, weight_decay=decay
        )
    return ERM(problem, steps=steps, samples=samples, dropout=dropout, weight_decay=decay)


@METHODS.register("neurallio")
class NeuralLio(NeuralLioPaper):
    """The paper's model on better ground.

    Charts go by a transfer metric: models tuned on single domains are tried on the others, and coordinates of z that do
    not tell how well they do there lose their weight. Training starts at a base that all domains share, and what is
    carried over the charts is the difference to it. Several charts answer together. Blocks are large and drawn anew
    every epoch, and the step size falls to zero.

    Args:
        problem: The training side.
        epochs: Passes over all anchors; 0 trains the base alone, and nothing is carried; a metric then tells which
            descriptors matter, and no more.
        block: Anchors per step; None takes ten, or a fifth of the domains up to 256, so that the number of steps does
            not grow with the domains before that.
        samples: Samples drawn from each domain per step; 0 takes all; None takes 250, or fewer down to 64 where a step
            sees so many domains that all of them together would be more than 32,768. The base draws 64 at most.
        neighbours: k, beside the anchor itself; None takes five, or a sixth of the domains where that is less, since
            five of few domains reach far across Z.
        base: "pooled" starts at one model of all domains, "reading" at one that reads z as a further input, "knots" at
            one that reads it interval by interval, "hypernet" at one whose parameters a small network emits from z,
            "none" at the predictor's own start, as the paper does.
        base_steps: Batches of the base's training.
        base_dropout: Share of what enters each linear layer of the head but the first that is dropped in it.
        base_decay: L2 coefficient of it.
        freeze: Whether the backbone stays as the base has learned it, so that α = 0 gives back the base there too.
        metric: Whether charts and transport go by a transfer metric; with fewer than five domains there is none.
        tune_steps: Batches of the tuning of single domains' models, from which the metric is learned.
        chart_weights: Weight of each descriptor coordinate in the distance that charts go by, instead of a metric.
        blend: Number of charts that answer together.
        bandwidth: How fast their shares fall off with distance; None lets the radius of the charts alone decide.
        shrink: α: how much of what the charts carry is added to the base. Without a base it stays at one.
        reach: Distance from the training domains over which α fades, in spacings of theirs; None keeps it everywhere.
        gate: Whether the descriptor gate is used.
        latent_dim: m.
        num_generators: r; None takes one per descriptor coordinate.
        generators: "field" as in the paper; "constant", or "commuting": laws that hold by construction if gate is off.
        hidden: Width of the field network.
        coder: "perceptron" as in the paper, or "lean", a linear basis with small perceptrons.
        widths: Hidden widths of the perceptron coder.
        rank: Number of directions of the lean coder.
        lr: Largest step size of Adam.
        weight_decay: L2 coefficient.
        select: Whether what is not given is first chosen on held-out training domains, where there are 12 of them or
            more: all that begins with "base", freeze, metric, neighbours, latent_dim, epochs (all or a third), and
            blend, bandwidth, shrink and reach; below 24 domains, base and the last four.

    Reference:
        Cai et al., *Continuous Domain Generalization*, NeurIPS 2025.
    """

    name = "neurallio"
    title = "NeuralLio"
    projected = True
    origin: Tensor
    foundations = {
        "base_dropout": (0.2,),
        "base_decay": (5e-3, 2e-2),
        "base": ("reading", "knots", "hypernet"),
        "base_steps": (300, 3000),  # last: what reads z learns by heart sooner than what does not
    }
    alone = {"epochs": 0, "metric": False}
    choices = {
        "base": ("none",),
        "freeze": (True,),
        "metric": (False,),
        "neighbours": (10,),
        "latent_dim": (16,),
    }

    choices_of_few = ("base",)

    def __init__(
        self,
        problem: Problem,
        *,
        epochs: Natural = 600,
        block: Count | None = None,
        samples: Natural | None = None,
        neighbours: Count | None = None,
        base: Literal["pooled", "reading", "knots", "hypernet", "none"] = "pooled",
        base_steps: Count = 1000,
        base_dropout: Share = 0.0,
        base_decay: NonNegative = 0.0,
        freeze: bool = False,
        metric: bool = True,
        tune_steps: Count = 300,
        chart_weights: tuple[NonNegative, ...] | None = None,
        blend: Count = 1,
        bandwidth: Positive | None = None,
        shrink: NonNegative = 1.0,
        reach: Positive | None = None,
        gate: bool = True,
        latent_dim: Count = 32,
        num_generators: Count | None = None,
        generators: Literal["field", "constant", "commuting"] = "field",
        hidden: Count = 128,
        coder: Literal["perceptron", "lean"] = "lean",
        widths: tuple[Count, ...] = (1024, 512, 128),
        rank: Count = 64,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 1e-4,
        select: bool = True,
    ) -> None:
        if not epochs and base == "none":
            raise OptionError("epochs=0 trains the base alone, but base is none: give epochs, or a base.")
        count = len(problem.domains)
        block = block or min(LARGEST, max(SMALLEST, count // STEPS))
        neighbours = neighbours or min(NEIGHBOURS, count - 1, max(2, count // NEIGHBOURHOODS))
        if samples is None:
            samples = min(SAMPLES, max(FEWEST_SAMPLES, ENOUGH // min(count, block * (neighbours + 1))))
        super().__init__(
            problem,
            epochs=epochs,
            block=block,
            shuffle=True,
            samples=samples,
            neighbours=neighbours,
            chart_weights=chart_weights,
            gate=gate,
            latent_dim=latent_dim,
            num_generators=num_generators,
            generators=generators,
            hidden=hidden,
            coder=coder,
            widths=widths,
            rank=rank,
            lr=lr,
            schedule="cosine",
            weight_decay=weight_decay,
            keep="last",
        )
        self.base, self.freeze, self.reach = base, freeze, reach
        self.known: Problem | None = None
        self.shrink = shrink if epochs else 0.0  # where nothing was learned to be carried
        self.learned.blend, self.learned.bandwidth = blend, bandwidth
        self.tune_steps = tune_steps
        self.register_buffer("origin", self.predictor.start.clone())  # θ₀, where every domain starts
        learned = metric and chart_weights is None and len(problem.domains) >= FEWEST
        if learned and problem.ranks.several:
            raise OptionError("A transfer metric is learned on one rank: give chart_weights, or set metric=false.")
        self.probes = Probes(problem) if learned else None
        backbone = not isinstance(self.predictor.backbone, nn.Identity)
        if freeze and (base == "none" or not backbone):
            raise OptionError("freeze keeps the backbone of the base, but there is none: leave it out.")
        # Probes need a backbone that knows the data, even where nothing else starts at it.
        kind = "pooled" if base == "none" and learned and backbone else base
        self.firmness = (base_dropout, base_decay)
        drawn = min(samples, FEWEST_SAMPLES) if samples else FEWEST_SAMPLES
        self.pooled = None if kind == "none" else base_of(problem, kind, base_steps, drawn, *self.firmness)
        self.untouched = {name: tensor.clone() for name, tensor in self.predictor.backbone.state_dict().items()}

    @classmethod
    def has_start(cls, options: Mapping[str, Any]) -> bool:
        """Return whether there is a base."""
        return options.get("base") != "none"

    def phases(self) -> list[Phase]:
        """Return the phase of the base, that of the probes which the metric is learned from, and the joint one."""
        phases = [] if self.pooled is None else self.pooled.phases()
        if self.probes is not None:
            probes, field = self.probes, self.learned
            assert field.learned_relevance is not None
            tuned = replace(
                probes.phase(self, self.tune_steps),
                begin=lambda: probes.start_at(self._start()),
                finish=self.learn_metric,
                leaves=(*field.transport.buffers(), field.chart_weights, field.learned_relevance),
            )
            phases.append(tuned)
        begun = [replace(phase, recurs=self.firmness) for phase in phases]
        if not self.epochs:
            return begun
        return [*begun, *(replace(phase, begin=self.lay_charts) for phase in super().phases())]

    def trained(self) -> list[nn.Parameter]:
        """Return what the joint phase moves."""
        backbone = () if self.freeze else self.predictor.parameters()
        return [*backbone, *self.learned.parameters()]

    @property
    def seen(self) -> Problem:
        """The problem as the joint phase sees it, beyond a frozen backbone where that can be."""
        if not self.freeze:
            return self.problem
        if self.known is None:
            steps, count = self.epochs * len(self.order), len(self.problem.domains)
            support = count if self.shared else min(count, self.block * (self.neighbours + 1))
            self.known = self.problem.beyond(steps * support * (self.samples or self.problem.domains.longest))
        return self.known

    def _start(self) -> Tensor:
        """Return where the heads of all domains start, were they to start now."""
        return self.predictor.start if self.pooled is None else self.pooled.learned.theta.detach()

    @torch.no_grad()
    def learn_metric(self) -> None:
        """Let charts and transport go by a metric that the probes tell, where they tell one."""
        assert self.probes is not None
        z = self.problem.domains.z[self.probes.index]
        metric = learn_metric(z, self.probes.risks(), self.problem.seed)
        self.probes.known = None  # the backbone moves on
        if metric.kind != "even":
            self.learned.adopt(metric)

    @torch.no_grad()
    def lay_charts(self) -> None:
        """Lay the charts under the metric, and put every domain at the start."""
        z, field = self.problem.domains.z, self.learned
        if self.probes is not None:
            # Too few places may differ under it, where most coordinates are left out.
            if len(Distinct.of(field.charted(z)).points) <= self.neighbours:
                field.forget_metric()
            self.chart_index.copy_(knn_charts(field.charted(z), self.neighbours).neighbours)
        if self.base == "none":
            self.predictor.backbone.load_state_dict(self.untouched)
        self.predictor.requires_grad_(not self.freeze)
        self.known = None
        self.origin.copy_(self.predictor.start if self.base == "none" else self._start())
        field.theta.copy_(self.origin.expand_as(field.theta))
        field.coder.start_at(self.origin)

    def placed(self, theta: Tensor, batch: ChartBatch, z: Tensor) -> Tensor:
        """Return the heads of anchors and edges: a base that reads z adds what it says there."""
        if self.base not in ("reading", "knots", "hypernet"):
            return theta
        assert self.pooled is not None
        with torch.no_grad():
            read = self.pooled.learned(z) - self.pooled.learned.theta
        return theta + torch.cat([batch.at_anchors(read), batch.at_targets(read)])

    def field(self) -> ParameterField:
        """Return the transported field, on its base if there is one."""
        if self.base == "none":
            return self.learned
        assert self.pooled is not None
        base = self.pooled.learned
        with torch.device("meta"):  # the parts are there already
            field = ShrunkField(
                base.descriptor_dim,
                base.theta_dim,
                {"kind": base.kind, "config": base.config},
                self.learned.config,
                self.shrink,
                None if self.reach is None else self.reach * self.learned.spacing,
            )
        field.base, field.moved, field.centre = base, self.learned, self.origin
        return field
