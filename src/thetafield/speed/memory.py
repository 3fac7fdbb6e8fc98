"""What a training step on images needs: memory of a GPU, and weights of the coder."""

from collections.abc import Iterator

import torch

from thetafield.geometry.coder import WIDTHS, make_coder
from thetafield.predictors import PREDICTORS
from thetafield.speed.findings import Figure, Finding, Skipped
from thetafield.speed.footprint import Footprint
from thetafield.speed.paper import CODERS, NO_GPU
from thetafield.speed.problems import images, learner
from thetafield.speed.stepping import Stepping
from thetafield.speed.timing import Bench

NUM_DOMAINS, LATENT, RANK = 50, 32, 64
OPTIONS = {"neighbours": 10, "samples": 256, "latent_dim": LATENT, "rank": RANK}


def memory(bench: Bench) -> Iterator[Finding]:
    """Count the weights of both coders, and the peak of a GPU's memory in training with each."""
    dim = PREDICTORS["convnet"]((3, 28, 28), 10).dim
    with torch.device("meta"):  # counted, not held
        coders = {kind: make_coder(kind, dim, LATENT, WIDTHS, RANK) for kind in CODERS}
    paper, lean = (sum(p.numel() for p in coder.parameters()) for coder in coders.values())
    yield Figure(f"weights of the lean coder, MNIST's heads, D = {dim:,}", lean, "weights", paper, "the paper's coder")
    if not bench.on_gpu:
        yield Skipped("peak memory of training on images like MNIST's", NO_GPU)
        return
    peaks = {kind: _peak(bench, kind) for kind in CODERS}
    name = "peak memory of neurallio-paper on images like MNIST's"
    yield Figure(f"{name}, the paper's coder", peaks["perceptron"], "B")
    yield Figure(f"{name}, the lean coder", peaks["lean"], "B", peaks["perceptron"], "the paper's coder")


def _peak(bench: Bench, coder: str) -> int:
    bench.tell(f"images, {CODERS[coder]}")
    footprint = Footprint(bench.device)
    data = images(NUM_DOMAINS, bench.device)
    method = learner("neurallio-paper", data, bench.device, OPTIONS | {"coder": coder}, "convnet", (128,))
    stepping = Stepping(method)
    footprint.restart()
    stepping.run()
    assert footprint.peak is not None
    return footprint.peak
