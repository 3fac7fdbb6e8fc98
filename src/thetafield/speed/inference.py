"""Answers of a trained field: θ of many descriptors, and predictions for the rows of many domains, in one call."""

from collections.abc import Iterator

import torch

from thetafield.datasets import DATASETS
from thetafield.datasets.two_moons import RANGE
from thetafield.fields.model import FieldModel
from thetafield.speed.findings import Figure, Finding
from thetafield.speed.timing import Bench, Work
from thetafield.streams import torch_stream
from thetafield.training.train import train_field

NUM_DOMAINS, ROWS = 1000, 100  # whose rows are predicted, and how many each has
ONE_BY_ONE = 100  # descriptors or domains that a loop visits to be timed


def inference(bench: Bench) -> Iterator[Finding]:
    """Time a descriptor of many at once against one at a time, and a domain likewise."""
    data = DATASETS["two-moons"](0)
    # One epoch: time depends on shapes, not on what was learned.
    model = train_field(
        data.train,
        "neurallio",
        seed=0,
        options={"epochs": 1},
        predictor=data.predictor,
        predictor_options=data.predictor_options,
        device=str(bench.device),
    ).model
    assert isinstance(model, FieldModel)
    stream = torch_stream(0, "speed", "inference")
    count = 10**4 if bench.quick else 10**5
    z = RANGE * torch.rand(count, 2, generator=stream)
    x = torch.randn(NUM_DOMAINS, ROWS, 2, generator=stream)
    few, some = z[:ONE_BY_ONE], z[:NUM_DOMAINS]
    inputs, descriptors = x.flatten(0, 1), some.repeat_interleave(ROWS, 0)

    def thetas() -> None:
        for place in few:
            model.theta(place)

    @torch.no_grad()
    def models() -> None:
        for place, rows in zip(few, x.to(bench.device), strict=False):
            model.model_at(place)(rows)

    seconds = bench.time(
        {"θ(z) at once": Work(lambda: model.theta(z), count), "one z at a time": Work(thetas, len(few))}
    )
    yield Figure(
        f"θ(z) of a descriptor, {count:,} at once",
        seconds["θ(z) at once"],
        "s",
        seconds["one z at a time"],
        "one descriptor at a time",
    )
    seconds = bench.time(
        {
            "rows at once": Work(lambda: model.row_outputs(inputs, descriptors), NUM_DOMAINS),
            "one domain at a time": Work(models, len(few)),
        }
    )
    yield Figure(
        f"answers for {ROWS} rows of a domain, {NUM_DOMAINS:,} domains at once",
        seconds["rows at once"],
        "s",
        seconds["one domain at a time"],
        "model_at(z), one domain at a time",
    )
