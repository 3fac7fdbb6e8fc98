"""A learned field with all it needs to answer for raw inputs and raw descriptors."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor, nn

from thetafield.data.descriptors import DescriptorScaler
from thetafield.data.encoder import TableEncoder
from thetafield.errors import DataError, NeedError
from thetafield.fields.base import ParameterField
from thetafield.fields.conformal import Conformal
from thetafield.fields.recipe import Affine, Recipe
from thetafield.geometry.neighbours import Distinct
from thetafield.geometry.trust import Trust
from thetafield.predictors.base import Predictor

CELLS = 2**22  # numbers of the inputs answered at once
THETAS = 2**25  # parameters of their heads held at once


@dataclass(eq=False, kw_only=True)
class Model(ABC):
    """(x, z) ↦ answer, for raw inputs and raw descriptors: all that scoring, tables and pages ask of a method.

    Args:
        recipe: How it was made.
        scaler: Raw to scaled descriptors.
        trust: Trust at scaled descriptors.
        classes: Labels, or None for regression.
        inputs: Standardisation of inputs, if any.
        outputs: Standardisation of regression targets, if any.
        encoder: How a table's raw columns become inputs and descriptors, where it was fitted on one.
        conformal: How strange the truth may look on unseen domains, where held-out ones have told.
    """

    recipe: Recipe
    scaler: DescriptorScaler
    trust: Trust
    classes: np.ndarray | None = None
    inputs: Affine | None = None
    outputs: Affine | None = None
    encoder: TableEncoder | None = None
    conformal: Conformal | None = None

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where the model lives."""

    @abstractmethod
    def to(self, device: torch.device | str) -> "Model":
        """Move every part to a device."""

    @abstractmethod
    def domain_outputs(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (b, n, o) for n samples of each of b domains: logits, or targets on their raw scale."""

    @abstractmethod
    def row_outputs(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (M, o) for M rows with a raw descriptor each."""

    @abstractmethod
    def relevance(self) -> dict[str, float]:
        """Return descriptor name → how much it drives the shift, relative to the strongest, in [0, 1]."""

    def theta(self, z: Tensor) -> Tensor:
        """Return θ(z), or say that there is none."""
        raise NeedError(f"{self.recipe.method} has no parameters θ(z): it answers for (x, z) as such; use predict.")

    def model_at(self, z: Tensor) -> nn.Module:
        """Return an ordinary module for one raw descriptor, or say that there is none."""
        raise NeedError(f"{self.recipe.method} has no model of its own at each z, since it has no θ(z): use predict.")

    @property
    def squeezed(self) -> bool:
        """Whether answers drop their last axis: regression of a one-dimensional target."""
        return self.classes is None and self.recipe.single_target


@dataclass(eq=False, kw_only=True)
class FieldModel(Model):
    """(x, z) ↦ g(x; θ(z)): predictor, field, and the scalings fitted on the training domains.

    Args:
        predictor: The template with its trained backbone.
        field: θ(z) on scaled descriptors.
    """

    predictor: Predictor
    field: ParameterField

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.field.parameters()).device

    def to(self, device: torch.device | str) -> "FieldModel":
        """Move every part to a device."""
        for part in (self.predictor, self.field, self.inputs, self.outputs):
            if part is not None:
                part.to(device)
        return self

    @torch.no_grad()
    def theta(self, z: Tensor) -> Tensor:
        """Return θ(z) of shape (..., D) at raw descriptors of shape (..., d)."""
        return self.field(self.scaler(z.to(self.device, torch.float32))).detach()

    @torch.no_grad()
    def domain_outputs(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (b, n, o) for n samples of each of b domains: logits, or targets on their raw scale."""
        return self.head_outputs(self.domain_features(x), z)

    @torch.no_grad()
    def domain_features(self, x: Tensor) -> Tensor:
        """Return what the heads read of n samples of each of b domains, which does not depend on z."""
        x = x.to(self.device)
        return self.predictor.features(x if self.inputs is None else self.inputs(x))

    @torch.no_grad()
    def head_outputs(self, features: Tensor, z: Tensor) -> Tensor:
        """Return outputs (b, n, o) from the features of n samples of each of b domains."""
        answer = self.predictor.head(self.theta(z), features)
        return answer if self.outputs is None else self.outputs.inverse(answer)

    @torch.no_grad()
    def row_outputs(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (M, o) for M rows with a raw descriptor each; rows with equal z share one θ.

        Heads run in double precision, so that an answer does not depend on which rows were asked together.
        """
        if len(x) != len(z):
            raise DataError(f"There are {len(x)} rows of inputs but {len(z)} descriptors: give one z per row.")
        distinct = Distinct.of(z.cpu())
        answers = x.new_empty(len(x), self.recipe.num_outputs, dtype=torch.float64, device=self.device)
        cells = max(1, CELLS // prod(x.shape[1:]))
        for groups, rows in _rectangles(distinct, THETAS // self.field.theta_dim, cells):
            theta = self.theta(distinct.points[groups]).double()
            part = x[rows].to(self.device)
            part = part.double() if self.inputs is None else self.inputs(part.double())
            features = self.predictor.features(part.to(theta.dtype if self._plain else torch.float32)).double()
            answers[rows.to(self.device)] = self.predictor.head(theta, features)
        finite = torch.isfinite(answers).all(1).cpu()
        if not finite.all():
            row = int((~finite).int().argmax())
            raise DataError(
                f"There is no finite answer for row {row}: its descriptor {z[row].tolist()} lies too far outside the "
                "training domains, or its inputs are too large: check the units."
            )
        return answers if self.outputs is None else self.outputs.inverse(answers)

    @property
    def _plain(self) -> bool:
        return isinstance(self.predictor.backbone, nn.Identity)

    def model_at(self, z: Tensor) -> nn.Module:
        """Return an ordinary module for one raw descriptor of shape (d,): raw inputs in, logits or raw targets out.

        It can be compiled (`torch.compile`) and written to a file for other programs (`thetafield.fields.export`).
        """
        if z.shape != (len(self.recipe.descriptors),):
            raise DataError(
                f"model_at takes one descriptor with {len(self.recipe.descriptors)} numbers "
                f"({', '.join(self.recipe.descriptors)}), but got shape {tuple(z.shape)}."
            )
        return ModelAt(self.predictor.module(self.theta(z)), self.inputs, self.outputs, self.squeezed).eval()

    def relevance(self) -> dict[str, float]:
        """Return descriptor name → how much it drives the shift, relative to the strongest, in [0, 1].

        Where a transfer metric was learned these are its weights; otherwise the mean of ‖∂θ/∂z_k‖ at the training
        domains, gates included, with every descriptor scaled to its training range.
        """
        return {name: value for name, (value, _, _) in self.relevance_ranges().items()}

    def relevance_ranges(self) -> dict[str, tuple[float, float, float]]:
        """Return descriptor name → relevance, with the lower and upper end of its bootstrap over domains, if any."""
        if not self.recipe.descriptors:
            return {}
        columns = self.field.relevance(self.trust.anchors.to(self.device)).T.tolist()
        return {name: tuple(column) for name, column in zip(self.recipe.descriptors, columns, strict=True)}


class ModelAt(nn.Module):
    """The model of one descriptor: standardise, backbone, head, and back to the raw scale."""

    def __init__(self, network: nn.Module, inputs: Affine | None, outputs: Affine | None, squeeze: bool) -> None:
        super().__init__()
        self.network = network
        self.inputs = None if inputs is None else Affine(inputs.shift.clone(), inputs.scale.clone())
        self.outputs = None if outputs is None else Affine(outputs.shift.clone(), outputs.scale.clone())
        self.squeeze = squeeze

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (n, classes), or targets (n,) or (n, t) on their raw scale."""
        x = x.to(next(self.network.parameters()).dtype)
        answer = self.network(x if self.inputs is None else self.inputs(x))
        if self.outputs is not None:
            answer = self.outputs.inverse(answer)
        return answer[:, 0] if self.squeeze else answer


def _rectangles(distinct: Distinct, most_groups: int, cells: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (groups (b,), rows (b, n)) that cover all rows, groups of like size together; padding repeats a row."""
    sizes = distinct.sizes
    by_size = torch.argsort(sizes, stable=True)
    position = 0
    while position < len(sizes):
        # Groups come in rising size: grow the rectangle while it holds less than half padding and fits the budget.
        smallest = int(sizes[by_size[position]])
        limit = torch.searchsorted(sizes[by_size], 2 * smallest, right=True)
        count = min(int(limit) - position, max(1, min(cells // (2 * smallest), most_groups)))
        groups = by_size[position : position + count]
        longest = sizes[groups].max()
        within = torch.minimum(torch.arange(int(longest))[None], sizes[groups][:, None] - 1)
        rows = distinct.members[distinct.starts[groups][:, None] + within]
        for part in rows.split(max(1, cells // count), dim=1):  # one group alone may be longer than the budget
            yield groups, part
        position += count
