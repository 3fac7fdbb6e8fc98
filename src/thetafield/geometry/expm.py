"""exp(tA)·v by action: a Taylor polynomial on scaled steps, never the matrix exponential itself."""

import math
from dataclasses import dataclass
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor

from thetafield.errors import DivergenceError
from thetafield.kernels import kernel

LARGEST_STEP = 4.0  # beyond this norm a step's terms cancel and cost digits
FEWEST_TERMS = 11  # below this degree the bound on the norm says too little
LARGEST_NORM = 2048.0  # beyond this exp overflows unless A is close to a rotation, and only costs time


@dataclass(frozen=True)
class TaylorPlan:
    """How many steps, and how many Taylor terms a step, carry exp(tA)·v to the accuracy of a floating-point type.

    Args:
        num_steps: exp(tA) = exp(tA / s)^s with s steps.
        num_terms: Degree of the polynomial in each step.

    Example:
        >>> TaylorPlan.for_norm(3.0, torch.float32)
        TaylorPlan(num_steps=1, num_terms=19)
    """

    num_steps: int
    num_terms: int

    @classmethod
    def for_norm(cls, bound: float, dtype: torch.dtype) -> "TaylorPlan":
        """Return the cheapest plan whose remainder is below half a unit in the last place for ‖tA‖ ≤ `bound`."""
        if not math.isfinite(bound):
            raise DivergenceError(f"The generators' norm is {bound}: the exponential does not exist in floating point.")
        bound = min(bound, LARGEST_NORM)
        least = max(1, math.ceil(bound / LARGEST_STEP))
        plans = [cls(steps, _terms(bound / steps, torch.finfo(dtype).eps)) for steps in (least, least + 1)]
        return min(plans, key=lambda plan: plan.num_steps * plan.num_terms)


def _terms(norm: float, eps: float) -> int:
    """Return the least degree whose remainder, even after a step that shrinks by exp(−norm), is below eps / 2."""
    terms, remainder = FEWEST_TERMS, norm ** (FEWEST_TERMS + 1) / math.factorial(FEWEST_TERMS + 1)
    while remainder * math.exp(norm) > eps / 2:
        terms += 1
        remainder *= norm / (terms + 1)
    return terms


def norm_bound(
    generators: Float[Tensor, "*batch m m"], scale: Float[Tensor, "*batch c"] | None = None
) -> Float[Tensor, ""]:
    """Return the largest α(A)·max|t| of a batch, where ‖Aⁿ‖ ≤ αⁿ for every n ≥ 12 (Al-Mohy and Higham, 2011).

    α = max(‖A⁴‖^¼, ‖A⁵‖^⅕) is far below ‖A‖ for the dense random matrices that networks emit, and it bounds the
    remainder of a Taylor polynomial of degree 11 or more just as well. The result stays on the device.
    """
    square = generators @ generators
    fourth = square @ square
    fifth = fourth @ generators
    # The Frobenius norm bounds the 2-norm and needs no decomposition.
    alpha = torch.maximum(_frobenius(fourth) ** (1 / 4), _frobenius(fifth) ** (1 / 5))
    alpha = torch.minimum(alpha, _frobenius(generators))
    if scale is not None:
        alpha = alpha * scale.abs().amax(-1)
    return alpha.amax()


def _frobenius(matrix: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(matrix, "fro")


def fused(generators: Tensor) -> ModuleType | None:
    """Return the fused kernels where they serve these generators: on a GPU, in single precision."""
    kernels = kernel("thetafield.geometry.expm_kernel") if generators.is_cuda else None
    return kernels if kernels is not None and kernels.serves(generators) else None


def expm_action(
    generators: Float[Tensor, "*batch m m"],
    vectors: Float[Tensor, "*batch m c"],
    scale: Float[Tensor, "*batch c"],
    plan: TaylorPlan | None = None,
) -> Float[Tensor, "*batch m c"]:
    """Return exp(t_j A) v_j for every column v_j with its own scalar t_j.

    All columns share the matrix, so one product per term serves every neighbour of an anchor. With a plan, nothing is
    read back from the device and the shapes of the work are fixed; without one, the norm is measured first.

    Args:
        generators: A, one matrix per batch entry.
        vectors: The columns v_j.
        scale: The scalars t_j.
        plan: Steps and terms; from :meth:`TaylorPlan.for_norm` with a bound on ‖tA‖. Kernels on a GPU find their own.

    Example:
        >>> turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
        >>> quarter = expm_action(turn, torch.tensor([[1.0], [0.0]]), torch.tensor([torch.pi / 2]))
        >>> torch.allclose(quarter, torch.tensor([[0.0], [1.0]]), atol=1e-6)
        True
    """
    matrix = generators.reshape(-1, *generators.shape[-2:])
    value = vectors.reshape(-1, *vectors.shape[-2:])
    kernels = fused(matrix)
    if kernels is not None:
        return kernels.cascade(matrix[:, None], value, scale.reshape(len(value), -1, 1)).reshape(vectors.shape)
    if plan is None:
        bound = float(norm_bound(generators.detach(), scale.detach()))
        if LARGEST_NORM < bound < math.inf:  # said aloud, instead of a series that was cut off
            return torch.full_like(vectors, math.nan)
        plan = TaylorPlan.for_norm(bound, vectors.dtype)
    return _taylor(matrix, value, scale.reshape(-1, 1, scale.shape[-1]), plan).reshape(vectors.shape)


def _taylor(matrix: Tensor, value: Tensor, scale: Tensor, plan: TaylorPlan) -> Tensor:
    """Return exp(tA)·v; the polynomial by powers of A⁴ (Paterson and Stockmeyer), in a quarter of Horner's products.

    Args:
        matrix: A, shape (b, m, m).
        value: v, shape (b, m, c).
        scale: t, shape (b, 1, c).
        plan: Steps and terms.
    """
    # A takes the size of t, which leaves no power of either too large or too small for its type.
    size = scale.detach().abs().amax(-1, keepdim=True).clamp_min(torch.finfo(scale.dtype).tiny)
    matrix, scale = matrix * (size / plan.num_steps), scale / size
    square = matrix @ matrix
    powers, fourth = torch.cat([matrix, square, square @ matrix], 1), square @ square
    # Coefficients tʲ / j!, shape (blocks, b, 4, 1, c). Made on the device: a recorded step takes nothing from the host.
    orders = torch.arange(4 * (plan.num_terms // 4 + 1), device=scale.device)
    factorials = orders.clamp_min(1).to(torch.float64).cumprod(0).to(scale.dtype)
    coefficients = scale[:, None] ** orders.view(-1, 1, 4, 1, 1) / factorials.view(-1, 1, 4, 1, 1)
    for _ in range(plan.num_steps):
        multiples = torch.cat([value, powers @ value], 1).unflatten(1, (4, -1))
        blocks = (coefficients * multiples).sum(2).unbind()
        value = blocks[-1]
        for block in blocks[-2::-1]:
            value = torch.baddbmm(block, fourth, value)
    return value
