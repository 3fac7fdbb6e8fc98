"""ReLU of 2 × 2 maxima as one Triton kernel, and its gradient as another.

Pictures with the channels of a pixel side by side are read once and written once. torch's kernels look for the maximum
again on the way back, for every pixel of a window, and take most of a small convolutional network's step.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK = 1024  # numbers of one program
NOWHERE = tl.constexpr(4)  # where the maximum lies that ReLU has cut off


# Triton reads the source of these functions: `no_type_check` keeps the type checks of the tests from wrapping them.
@triton.jit
@no_type_check
def _forward(images, result, places, count, height, width, C: tl.constexpr, BLOCK: tl.constexpr):
    """Write the maxima and where in its window each lies: 0, 1 above, 2, 3 below."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    channel, pixel = at % C, at // C
    across, down = width // 2, height // 2
    column, row, image = pixel % across, pixel // across % down, pixel // across // down
    corner = images + ((image * height + 2 * row) * width + 2 * column) * C + channel
    value = tl.load(corner, mask=inside)
    place = tl.zeros((BLOCK,), tl.int32)
    for number in tl.static_range(1, 4):
        other = tl.load(corner + (number // 2 * width + number % 2) * C, mask=inside)
        larger = other > value
        value = tl.where(larger, other, value)
        place = tl.where(larger, number, place)
    cut = value <= 0  # not of a number that is none, which must be seen
    tl.store(result + at, tl.where(cut, 0.0, value), mask=inside)
    tl.store(places + at, tl.where(cut, NOWHERE, place).to(tl.uint8), mask=inside)


@triton.jit
@no_type_check
def _backward(gradient, places, to_images, count, height, width, C: tl.constexpr, BLOCK: tl.constexpr):
    """Give every pixel its window's gradient if it was the maximum, and nothing otherwise."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    channel, pixel = at % C, at // C
    across, down = width // 2, height // 2
    column, row, image = pixel % width, pixel // width % height, pixel // width // height
    # A last odd row or column belongs to no window.
    windowed = inside & (column // 2 < across) & (row // 2 < down)
    window = ((image * down + row // 2) * across + column // 2) * C + channel
    place = tl.load(places + window, mask=windowed, other=NOWHERE).to(tl.int32)
    value = tl.load(gradient + window, mask=windowed, other=0.0)
    tl.store(to_images + at, tl.where(place == row % 2 * 2 + column % 2, value, 0.0), mask=inside)


class _Pooled(torch.autograd.Function):
    @staticmethod
    def forward(images: Tensor) -> tuple[Tensor, Tensor]:
        images = images.contiguous(memory_format=torch.channels_last)
        number, channels, height, width = images.shape
        result = torch.empty(
            (number, channels, height // 2, width // 2),
            dtype=images.dtype,
            device=images.device,
            memory_format=torch.channels_last,
        )
        places = torch.empty_like(result, dtype=torch.uint8)
        grid = (triton.cdiv(result.numel(), BLOCK),)
        _forward[grid](images, result, places, result.numel(), height, width, C=channels, BLOCK=BLOCK)
        return result, places

    @staticmethod
    def setup_context(ctx, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        _, places = output
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        ctx.shape = inputs[0].shape

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor, _: Tensor) -> Tensor:
        (places,) = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        _, channels, height, width = ctx.shape
        to_images = torch.empty(
            ctx.shape, dtype=gradient.dtype, device=gradient.device, memory_format=torch.channels_last
        )
        grid = (triton.cdiv(to_images.numel(), BLOCK),)
        _backward[grid](gradient, places, to_images, to_images.numel(), height, width, C=channels, BLOCK=BLOCK)
        return to_images

    @staticmethod
    def vmap(info, in_dims: tuple[int], images: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """Pool stacks of images, as under stacked parameters, as more images."""
        stacked = images.movedim(in_dims[0], 0)
        result, places = _Pooled.apply(stacked.flatten(0, 1))
        sizes = stacked.shape[:2]
        return (result.unflatten(0, sizes), places.unflatten(0, sizes)), (0, 0)


def pooled(images: Tensor) -> Tensor:
    """Return ReLU of the maxima of 2 × 2 windows, shape (n, channels, height // 2, width // 2)."""
    return _Pooled.apply(images)[0]
