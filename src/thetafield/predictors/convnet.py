"""A small convolutional network: a shared backbone for images, and a perceptron on its features as the head."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from thetafield.errors import OptionError
from thetafield.kernels import kernel
from thetafield.options import Count, Positive, Share
from thetafield.predictors.base import PREDICTORS, Predictor
from thetafield.predictors.perceptron import perceptron

CHANNELS = (32, 32, 64)


class Brightness(nn.Module):
    """Pixels as shares of white: bytes are stored, and become numbers in [0, 1] here.

    Args:
        white: Value of a white pixel.
    """

    def __init__(self, white: float) -> None:
        super().__init__()
        self.white = white

    def forward(self, images: Tensor) -> Tensor:
        """Return images / white, with the channels of a pixel side by side, as convolutions on a GPU like them."""
        # Moved and moved back: to ask for the format by name fails where parameters are stacked (vmap).
        return (images.movedim(-3, -1).contiguous() / self.white).movedim(-1, -3)


class PooledReLU(nn.Module):
    """ReLU and maxima of 2 × 2 windows: maxima first, which commute with ReLU and leave it a quarter of the work."""

    def forward(self, images: Tensor) -> Tensor:
        """Return images of half the size."""
        fused = kernel("thetafield.predictors.pool_kernel") if images.is_cuda else None
        if fused is not None:
            return fused.pooled(images)
        return functional.relu(functional.max_pool2d(images, 2))


class ConvBackbone(nn.Sequential):
    """Layers that train in half precision on a GPU, where they mostly move pictures about, and answer in single."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the features of a batch of images."""
        half = self.training and input.is_cuda
        with torch.autocast(input.device.type, torch.bfloat16, enabled=half):
            features = super().forward(input)
        return features.to(input.dtype) if half else features


@PREDICTORS.register("convnet")
def convnet(
    input_shape: tuple[int, ...],
    num_outputs: int,
    *,
    hidden: tuple[Count, ...] = (128,),
    dropout: Share = 0.5,
    white: Positive = 255.0,
) -> Predictor:
    """Three convolutions (3 × 3; 32, 32 and 64 channels), each with ReLU and max-pooling; fully connected layers as θ.

    The backbone of the paper's MNIST and Yearbook experiments: 576-128-10 is the head on MNIST, 1024-128-32-2 that on
    Yearbook.

    Args:
        input_shape: Shape of one image: channels, height, width.
        num_outputs: Number of classes or targets.
        hidden: Widths of the head's hidden layers; 128 for MNIST, 128,32 for Yearbook.
        dropout: Share of the backbone's features that are dropped in training.
        white: Value of a white pixel, by which images are divided; 255 for images in bytes.
    """
    shrink = 2 ** len(CHANNELS)
    if len(input_shape) != 3 or min(input_shape[1:]) < shrink:
        raise OptionError(
            f"convnet needs images of shape (channels, height, width) with at least {shrink} × {shrink} pixels, but "
            f"inputs have shape {tuple(input_shape)}: use predictor 'mlp', or give X as images."
        )
    layers: list[nn.Module] = [Brightness(white)]
    for before, after in pairwise((input_shape[0], *CHANNELS)):
        layers += [nn.Conv2d(before, after, 3, padding=1), PooledReLU()]
    backbone = ConvBackbone(*layers, nn.Flatten(), nn.Dropout(dropout))
    width = CHANNELS[-1] * (input_shape[1] // shrink) * (input_shape[2] // shrink)
    return Predictor(perceptron([width, *hidden, num_outputs]), backbone)
