"""The risks of many small perceptrons as one Triton kernel, which leaves their gradients behind as well.

A step's heads are some forty small kernels one after the other: products, biases, activations, losses, and the same
again backwards. Here a program keeps the weights of one head and their gradient on the chip, and goes through its share
of the head's samples once. A risk is one number, so its gradient with respect to θ is a vector that the forward pass
can write down, and the backward pass multiplies it by what comes in. The eager code stays the oracle, and serves every
head, type and width that this kernel does not.
"""

from itertools import pairwise
from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from thetafield.predictors.base import Predictor

TILE = 16  # samples at a time; with 32, the widest heads spill
WARPS = {"tf32": 4, "tf32x3": 8}  # products in three parts need the registers of more of them
PROCESSORS = 132  # of an H100; a constant, so that sums are formed in the same order on every GPU
FEWEST = 64  # samples that are worth a program
PROLOGUE = 2  # tiles in whose time a program reads θ and writes its gradient
NARROWEST, WIDEST = 16, 64  # the least that a product takes, and the most that stays on the chip
LAYERS = 3


# Triton reads the source of these functions: `no_type_check` keeps the type checks of the tests from wrapping them.
@triton.jit
@no_type_check
def _load(theta, one, IN: tl.constexpr, OUT: tl.constexpr, WIDE: tl.constexpr, HIGH: tl.constexpr):
    """Return a layer's weight (HIGH, WIDE), its transpose and its bias (HIGH,), with zeros around them."""
    rows, cols = tl.arange(0, HIGH), tl.arange(0, WIDE)
    inside = (rows < OUT)[:, None] & (cols < IN)[None, :]
    weight = tl.load(theta + rows[:, None] * IN + cols[None, :], mask=inside, other=0.0)
    # Read again instead of transposed: threads of a product that read along the rows of shared memory do not wait for
    # each other. `one` is not known to the compiler, which would otherwise lay the tile down as it lies in θ.
    inside = (cols < IN)[:, None] & (rows < OUT)[None, :]
    turned = tl.load(theta + cols[:, None] * one + rows[None, :] * IN, mask=inside, other=0.0)
    return weight, turned, tl.load(theta + OUT * IN + rows, mask=rows < OUT, other=0.0)


@triton.jit
@no_type_check
def _store(theta, weight, bias, IN: tl.constexpr, OUT: tl.constexpr, WIDE: tl.constexpr, HIGH: tl.constexpr):
    """Write what `_load` reads."""
    rows, cols = tl.arange(0, HIGH), tl.arange(0, WIDE)
    inside = (rows < OUT)[:, None] & (cols < IN)[None, :]
    tl.store(theta + rows[:, None] * IN + cols[None, :], weight, mask=inside)
    tl.store(theta + OUT * IN + rows, bias, mask=rows < OUT)


@triton.jit
@no_type_check
def _linear(inputs, turned, bias, PRECISION: tl.constexpr):
    return tl.dot(inputs, turned, input_precision=PRECISION) + bias[None, :]


@triton.jit
@no_type_check
def _losses(outputs, y, inside, T: tl.constexpr, HIGH: tl.constexpr, LOSS: tl.constexpr):
    """Return the loss of each sample, shape (S,), and its gradient with respect to the outputs, shape (S, HIGH)."""
    samples, cols = tl.arange(0, outputs.shape[0]), tl.arange(0, HIGH)
    real = (cols < T)[None, :]
    if LOSS == "cross_entropy":
        label = tl.load(y + samples, mask=inside, other=0)
        here = cols[None, :] == label[:, None]
        outputs = tl.where(real, outputs, float("-inf"))
        top = tl.max(outputs, 1)
        share = tl.exp(outputs - top[:, None])
        total = tl.sum(share, 1)
        each = tl.log(total) + (top - tl.sum(tl.where(here, outputs, 0.0), 1))
        gradient = share / total[:, None] - here.to(tl.float32)
    else:
        place = samples[:, None] * T + cols[None, :]
        target = tl.load(y + place, mask=inside[:, None] & real, other=0.0).to(tl.float32)
        difference = tl.where(real, outputs - target, 0.0)
        if LOSS == "absolute_error":
            each = tl.sum(tl.abs(difference), 1) / T
            gradient = tl.where(difference > 0, 1.0 / T, tl.where(difference < 0, -1.0 / T, 0.0))
        else:
            each = tl.sum(difference * difference, 1) / T
            gradient = difference * (2.0 / T)
    return each, gradient


@triton.jit(do_not_specialize=["one"])
@no_type_check
def _risks(
    theta, x, y, weight, where, partial, samples, share, one,
    F: tl.constexpr, A: tl.constexpr, B: tl.constexpr, T: tl.constexpr,
    WIDE_F: tl.constexpr, WIDE_A: tl.constexpr, WIDE_B: tl.constexpr, WIDE_T: tl.constexpr,
    HIDDEN: tl.constexpr, S: tl.constexpr, LOSS: tl.constexpr, GRADIENT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Run one head over its `share` of a domain's samples; F features, hidden widths A and B, T outputs."""
    # The last layer sees E: the features, or what the last hidden layer makes of them.
    E: tl.constexpr = F if HIDDEN == 0 else (A if HIDDEN == 1 else B)
    WIDE_E: tl.constexpr = WIDE_F if HIDDEN == 0 else (WIDE_A if HIDDEN == 1 else WIDE_B)
    SECOND: tl.constexpr = 0 if HIDDEN == 0 else (F + 1) * A
    LAST: tl.constexpr = SECOND if HIDDEN < 2 else SECOND + (A + 1) * B
    D: tl.constexpr = LAST + (E + 1) * T
    LENGTH: tl.constexpr = D + 1 if GRADIENT else 1
    ANSWERS: tl.constexpr = 1 if LOSS == "cross_entropy" else T
    head, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    theta += head * D
    # The samples are read where they lie, and their places are told in 64 bits: there may be very many.
    start = part * share
    row = tl.load(where + head) * samples + start
    x += row * F
    y += row * ANSWERS
    weight += row

    if HIDDEN > 0:
        _, t_a, b_a = _load(theta, one, F, A, WIDE_F, WIDE_A)
        g_w_a, g_b_a = tl.zeros((WIDE_A, WIDE_F), tl.float32), tl.zeros((WIDE_A,), tl.float32)
    if HIDDEN > 1:
        w_b, t_b, b_b = _load(theta + SECOND, one, A, B, WIDE_A, WIDE_B)
        g_w_b, g_b_b = tl.zeros((WIDE_B, WIDE_A), tl.float32), tl.zeros((WIDE_B,), tl.float32)
    w_o, t_o, b_o = _load(theta + LAST, one, E, T, WIDE_E, WIDE_T)
    g_w_o, g_b_o = tl.zeros((WIDE_T, WIDE_E), tl.float32), tl.zeros((WIDE_T,), tl.float32)
    risk = tl.zeros((S,), tl.float32)

    near, cols = tl.arange(0, S), tl.arange(0, WIDE_F)
    place = near[:, None] * F + cols[None, :]
    for begin in range(start, tl.minimum(start + share, samples), S):
        inside = near < samples - begin
        features = tl.load(x + place, mask=inside[:, None] & (cols < F)[None, :], other=0.0)
        # x <= 0 instead of a maximum: what is not a number stays so, and the risk tells.
        seen = features
        if HIDDEN > 0:
            a = _linear(features, t_a, b_a, PRECISION)
            a = tl.where(a <= 0.0, 0.0, a)
            seen = a
        if HIDDEN > 1:
            b = _linear(a, t_b, b_b, PRECISION)
            b = tl.where(b <= 0.0, 0.0, b)
            seen = b
        outputs = _linear(seen, t_o, b_o, PRECISION)
        each, g = _losses(outputs, y, inside, T, WIDE_T, LOSS)
        own = tl.load(weight + near, mask=inside, other=0.0)
        risk += each * own
        if GRADIENT:
            g = g * own[:, None]
            g_w_o += tl.dot(tl.trans(g), seen, input_precision=PRECISION)
            g_b_o += tl.sum(g, 0)
            if HIDDEN > 1:
                g = tl.where(b <= 0.0, 0.0, tl.dot(g, w_o, input_precision=PRECISION))
                g_w_b += tl.dot(tl.trans(g), a, input_precision=PRECISION)
                g_b_b += tl.sum(g, 0)
                g = tl.where(a <= 0.0, 0.0, tl.dot(g, w_b, input_precision=PRECISION))
            elif HIDDEN == 1:
                g = tl.where(a <= 0.0, 0.0, tl.dot(g, w_o, input_precision=PRECISION))
            if HIDDEN > 0:
                g_w_a += tl.dot(tl.trans(g), features, input_precision=PRECISION)
                g_b_a += tl.sum(g, 0)
        x += S * F
        y += S * ANSWERS
        weight += S

    partial += (head * tl.num_programs(1) + part) * LENGTH
    tl.store(partial, tl.sum(risk, 0))
    if GRADIENT:
        partial += 1
        if HIDDEN > 0:
            _store(partial, g_w_a, g_b_a, F, A, WIDE_F, WIDE_A)
        if HIDDEN > 1:
            _store(partial + SECOND, g_w_b, g_b_b, A, B, WIDE_A, WIDE_B)
        _store(partial + LAST, g_w_o, g_b_o, E, T, WIDE_E, WIDE_T)


def _share(heads: int, samples: int) -> int:
    """Return how many samples of its head a program takes, so that the busiest multiprocessor is done soonest."""
    tiles = triton.cdiv(samples, TILE)

    def busiest(parts: int) -> int:
        return triton.cdiv(heads * parts, PROCESSORS) * (triton.cdiv(tiles, parts) + PROLOGUE)

    most = max(1, min(samples // FEWEST, 4 * PROCESSORS // heads))
    return triton.cdiv(tiles, min(range(1, most + 1), key=busiest)) * TILE


class _Risks(torch.autograd.Function):
    """Σ_j w_j l(g(x_j; θ_h), y_j) for every head h, over the samples of its domain where_h."""

    @staticmethod
    def forward(
        ctx, theta: Tensor, x: Tensor, y: Tensor, weight: Tensor, where: Tensor,
        widths: tuple[int, ...], loss: str, gradient: bool,
    ) -> Tensor:  # fmt: skip
        heads, samples = len(theta), x.shape[1]
        hidden = len(widths) - 2
        # Widths of absent layers are one: nothing is made of them.
        all_widths = (*widths[:-1], *[1] * (LAYERS - 1 - hidden), widths[-1])
        share = _share(heads, samples)
        parts = triton.cdiv(samples, share)
        # The risk and the gradient side by side: one sum adds up both, always in the same order.
        partial = theta.new_empty(heads, parts, 1 + theta.shape[1] * gradient)
        precision = _precision()
        _risks[(heads, parts)](
            theta.contiguous(), x.contiguous(), y.contiguous(), weight.contiguous(), where.contiguous(), partial,
            samples, share, 1, *all_widths, *_padded(all_widths), HIDDEN=hidden, S=TILE, LOSS=loss, GRADIENT=gradient,
            PRECISION=precision, num_warps=WARPS[precision],
        )  # fmt: skip
        total = partial.sum(1)
        ctx.save_for_backward(total[:, 1:])
        return total[:, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (per_risk,) = ctx.saved_tensors
        return gradient[:, None] * per_risk, None, None, None, None, None, None, None


def risks(
    theta: Tensor, x: Tensor, y: Tensor, weight: Tensor, where: Tensor, widths: tuple[int, ...], loss: str
) -> Tensor:
    """Return R_h = Σ_j w_j l(g(x_j; θ_h), y_j) of every head over the samples of its domain, in one launch.

    Args:
        theta: Parameters of the heads, shape (H, D): weight and bias of each layer in order.
        x: Features of s domains, shape (s, n, F).
        y: Class indices (s, n), or targets (s, n, t).
        weight: Weight of each sample in its domain's risk, shape (s, n).
        where: Which of the s domains each head is measured on, shape (H,).
        widths: Features, hidden widths and outputs of the heads.
        loss: "cross_entropy", "absolute_error" or "squared_error".

    Returns:
        The risks, shape (H,), which can be differentiated once and with respect to theta alone.
    """
    gradient = torch.is_grad_enabled() and theta.requires_grad
    return _Risks.apply(theta, x, y, weight, where, widths, loss, gradient)


def serves(predictor: Predictor, theta: Tensor, x: Tensor) -> bool:
    """Return whether the kernel takes these heads: several small perceptrons in single precision on a GPU."""
    if not (theta.is_cuda and theta.dtype == x.dtype == torch.float32 and len(theta) > 1 and not x.requires_grad):
        return False
    widths = predictor.widths
    if widths is None or len(widths) - 1 > LAYERS or max(widths) > WIDEST or x.shape[2:] != widths[:1]:
        return False
    device = triton.runtime.driver.active.utils.get_device_properties(theta.device.index)
    return _shared_bytes(widths) <= device["max_shared_mem"]


def _shared_bytes(widths: tuple[int, ...]) -> int:
    """Return a bound on the shared memory of a program: weights twice, in two parts each, and tiles of samples."""
    entries = sum(a * b for a, b in pairwise(_padded(widths)))
    return 16 * entries + 1280 * TILE


def _precision() -> str:
    """Return how products are formed: in three digits where torch's own are, in single precision otherwise."""
    return "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "tf32x3"


def _padded(widths: tuple[int, ...]) -> list[int]:
    return [max(NARROWEST, triton.next_power_of_2(width)) for width in widths]
