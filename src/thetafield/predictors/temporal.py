"""A causal convolutional network over time as backbone, and a perceptron on its last state as head."""

from torch import Tensor, nn
from torch.nn import functional

from thetafield.errors import OptionError
from thetafield.options import Count
from thetafield.predictors.base import PREDICTORS, Predictor
from thetafield.predictors.perceptron import perceptron

KERNEL = 3


class LastState(nn.Module):
    """The last state of a causal convolutional network whose dilation doubles from layer to layer.

    h⁰_t = Σ_j W⁰_j x_{t − j} and hˡ_t = hˡ⁻¹_t + Σ_j Wˡ_j ReLU(hˡ⁻¹_{t − j 2ˡ}), j = 0, 1, 2, with zeros before the
    first step. The last state asks for every 2ˡ-th step of layer l only, counted from the end: each layer runs with
    stride two on what the one below has left, and half of the work falls away from layer to layer. There are no
    recurrent cells, whose second derivatives cuDNN lacks, and no statistics of batches.

    Args:
        num_inputs: Channels of a step; steps without an axis of channels have one.
        channels: Channels of a state.
        layers: Number of layers; the last state sees 2^(layers + 1) − 1 steps.

    Reference:
        Bai, Kolter and Koltun, *An empirical evaluation of generic convolutional and recurrent networks for sequence
        modeling*, 2018.

    Example:
        >>> import torch
        >>> LastState(3, channels=8, layers=4)(torch.zeros(10, 24, 3)).shape
        torch.Size([10, 8])
    """

    steady = True

    def __init__(self, num_inputs: int, channels: int, layers: int) -> None:
        super().__init__()
        self.first = nn.Linear(KERNEL * num_inputs, channels)
        self.layers = nn.ModuleList(nn.Linear(KERNEL * channels, channels) for _ in range(layers - 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the last states, shape (n, channels), of series of shape (n, steps, inputs) or (n, steps)."""
        state = self.first(_pieces(x if x.ndim == 3 else x[..., None]))
        for layer in self.layers:
            kept = state[:, (state.shape[1] - 1) % 2 :: 2]
            state = kept + layer(_pieces(functional.relu(state)))
        return state[:, -1]


def _pieces(series: Tensor) -> Tensor:
    """Return every second step, counted from the end, with the two before it: (n, ⌈steps / 2⌉, 3 · channels)."""
    steps = series.shape[1]
    padded = functional.pad(series, (0, 0, KERNEL - 1 - (steps - 1) % 2, 0))
    return padded.unfold(1, KERNEL, 2).flatten(2)


@PREDICTORS.register("temporal")
def temporal(
    input_shape: tuple[int, ...],
    num_outputs: int,
    *,
    channels: Count = 32,
    layers: Count | None = None,
    hidden: tuple[Count, ...] = (32,),
) -> Predictor:
    """Causal convolutions over time, shared by all domains; fully connected layers with ReLU on the last state are θ.

    Args:
        input_shape: Shape of one sample: (steps, inputs), or (steps,) for one input.
        num_outputs: Number of classes or targets.
        channels: Channels of a state.
        layers: Number of convolutions; None takes as many as see every step, 6 for 120 steps.
        hidden: Widths of the head's hidden layers.
    """
    if len(input_shape) not in (1, 2):
        raise OptionError(
            f"temporal reads series of shape (steps, inputs) or (steps,), but a sample has shape {input_shape}: choose "
            "another predictor."
        )
    steps, num_inputs = (*input_shape, 1)[:2]
    # The smallest number whose field of view, 2^(layers + 1) − 1, is at least the number of steps.
    layers = layers or max(1, steps.bit_length() - 1)
    return Predictor(perceptron([channels, *hidden, num_outputs]), LastState(num_inputs, channels, layers))
