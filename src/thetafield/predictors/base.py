"""Any module as a template whose parameters are one flat vector θ, run for many θ at once."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from thetafield.errors import OptionError
from thetafield.predictors.perceptron import perceptrons
from thetafield.registry import Registry
from thetafield.typing import Embedded, Features, Inputs, Outputs, SampleOutputs, Samples, Shifts, Theta, Thetas


class ParameterSpec:
    """The bijection between a module's named parameters and one flat vector θ of length D.

    Args:
        module: The template.

    Example:
        >>> spec = ParameterSpec(nn.Linear(2, 3))
        >>> spec.dim, spec.shapes
        (9, {'weight': (3, 2), 'bias': (3,)})
        >>> spec.views(torch.zeros(5, 9))["weight"].shape
        torch.Size([5, 3, 2])
    """

    def __init__(self, module: nn.Module) -> None:
        self.shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
        ends = torch.tensor([prod(shape) for shape in self.shapes.values()]).cumsum(0).tolist()
        self.slices = {name: slice(a, b) for name, a, b in zip(self.shapes, [0, *ends], ends, strict=False)}
        self.sizes = [part.stop - part.start for part in self.slices.values()]
        self.dim = ends[-1] if ends else 0

    def flatten(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return θ of shape (..., D) from tensors of shape (..., *shape) by name."""
        parts = [
            parameters[name].reshape(*parameters[name].shape[: parameters[name].ndim - len(shape)], -1)
            for name, shape in self.shapes.items()
        ]
        return torch.cat(parts, dim=-1)

    def views(self, theta: Tensor) -> dict[str, Tensor]:
        """Return views of θ of shape (..., D) as tensors of shape (..., *shape) by name."""
        # One split: its backward pass is one concatenation, that of slices a sum of padded copies of θ.
        parts = theta.split(self.sizes, dim=-1)
        lead = theta.shape[:-1]
        return {
            name: part.reshape(lead + shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }


class Predictor(nn.Module):
    """g(x; θ) = head_θ(backbone(x)): a shared backbone and a head whose parameters come from outside.

    The head is kept as an empty template: only its values at construction survive, as the start of θ.

    Args:
        head: Any module without buffers; its parameters become θ.
        backbone: Shared feature extractor, trained like any module; None feeds inputs straight to the head.
        lift: Name of the lift in the head, if it has one, so that a saved model can be rebuilt.

    `widths` are features, hidden widths and outputs where the head is a perceptron with ReLU, None otherwise.

    Example:
        >>> predictor = Predictor(nn.Linear(2, 3))
        >>> predictor(torch.zeros(4, predictor.dim), torch.ones(4, 10, 2)).shape
        torch.Size([4, 10, 3])
    """

    start: Tensor

    def __init__(self, head: nn.Module, backbone: nn.Module | None = None, lift: str | None = None) -> None:
        super().__init__()
        self.lift = lift
        if next(head.buffers(), None) is not None:
            raise OptionError(
                "A head must not have buffers (batch-norm statistics, for example), since it runs for many θ at once: "
                "put such layers in the backbone, or use layer norm."
            )
        self.spec = ParameterSpec(head)
        self.backbone = nn.Identity() if backbone is None else backbone
        parameters = {name: p.detach() for name, p in head.named_parameters()}
        self.register_buffer("start", self.spec.flatten(parameters).clone(), persistent=False)
        # The template lives outside the module tree and holds no memory: θ is the only source of its values.
        self._template = [copy.deepcopy(head).to("meta")]
        self.widths = _widths(self.template, self.dim)

    @property
    def template(self) -> nn.Module:
        """The head without values, for `functional_call` with views of θ."""
        return self._template[0]

    @property
    def dim(self) -> int:
        """D, the number of head parameters."""
        return self.spec.dim

    def train(self, mode: bool = True) -> "Predictor":
        """Set training mode of the backbone and of the template (dropout)."""
        self.template.train(mode)
        return super().train(mode)

    def features(self, x: Inputs) -> Features:
        """Run the backbone over b × n samples at once; bytes and half floats are stored, and widened here."""
        if not x.is_floating_point() or x.element_size() < self.start.element_size():
            x = x.to(self.start.dtype)
        if isinstance(self.backbone, nn.Identity):
            return x
        return self.backbone(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    def head(self, theta: Thetas, features: Features, dropout: float = 0.0) -> Outputs:
        """Run one head per domain: the only place where heads are vectorised over θ.

        Args:
            theta: Parameters of b heads.
            features: What the backbone made of their samples.
            dropout: Share of what enters each linear layer but the first that is dropped.
        """
        if len(theta) == 1:  # one head for everything: no vectorising, and half the time of a small step
            return _run(self.template, self.spec.views(theta[0]), features[0], dropout)[None]
        if self.widths is not None and features.ndim == 3 and not dropout:
            return perceptrons(theta, features, self.widths)
        run = partial(_run, self.template, dropout=dropout)
        return vmap(run, randomness="different")(self.spec.views(theta), features)

    def single(self, theta: Theta, x: Samples, dropout: float = 0.0) -> SampleOutputs:
        """Return g(x; θ) of one θ for n samples."""
        return _run(self.template, self.spec.views(theta), self.features(x[None])[0], dropout)

    def shifted(self, theta: Theta, shift: Shifts, x: Inputs, dropout: float = 0.0) -> Outputs:
        """Return g(x; θ) of one θ whose first bias is shifted, for b shifts and b × n samples.

        The head has to be a perceptron: its weights are the same for all, so that all samples pass through together.
        """
        return _run(self.template, self.spec.views(theta), self.features(x), dropout, shift[:, None])

    def embed(self, theta: Thetas, features: Features) -> Embedded:
        """Run each head up to its last layer and the lift before it: the features that discriminators look at."""
        body, views = self._split[0], self.spec.views(theta)
        if len(theta) == 1:
            return _run(body, {name: view[0] for name, view in views.items()}, features[0])[None]
        return vmap(partial(_run, body), randomness="different")(views, features)

    def last(self, theta: Thetas, embedded: Embedded) -> Outputs:
        """Run each head's last layer, after its lift if it has one, on its embedded features."""
        views, last = self.spec.views(theta), self._split[2]
        if self.lift is not None:
            embedded = list(self.template.children())[-2](embedded)
        return torch.baddbmm(views[f"{last}.bias"][:, None], embedded, views[f"{last}.weight"].mT)

    @property
    def embed_dim(self) -> int:
        """Width of the features before the last layer."""
        return self._split[1].in_features

    @property
    def _split(self) -> tuple[nn.Sequential, nn.Linear, str]:
        """The head before its last layer, that layer, and its name; a head must end in a linear layer with a bias."""
        template = self.template
        if isinstance(template, nn.Sequential) and len(template) > 1:
            layer = template[-1]
            if isinstance(layer, nn.Linear) and layer.bias is not None:
                end = -1 if self.lift is None else -2
                return nn.Sequential(*list(template)[:end]), layer, str(len(template) - 1)
        raise OptionError("This method needs a head that is a sequence of layers with a linear one at the end.")

    def forward(self, theta: Thetas, x: Inputs, dropout: float = 0.0) -> Outputs:
        """Return g(x; θ) for b parameter vectors and b × n samples."""
        return self.head(theta, self.features(x), dropout)

    @property
    def steady(self) -> bool:
        """Whether a backbone says that it always makes the same of the same input, in training too."""
        return bool(getattr(self.backbone, "steady", False))

    def beyond(self) -> "Predictor":
        """Return the head alone, which takes features for inputs."""
        return Predictor(self.head_module(self.start), lift=self.lift)

    def head_module(self, theta: Tensor) -> nn.Module:
        """Return the head alone as an ordinary module with the parameters of one θ of shape (D,)."""
        head = copy.deepcopy(self.template).to(theta.dtype).to_empty(device=theta.device)
        head.load_state_dict({name: view.clone() for name, view in self.spec.views(theta.detach()).items()})
        return head

    def module(self, theta: Tensor) -> nn.Module:
        """Return an ordinary module with the parameters of one θ of shape (D,)."""
        model = nn.Sequential(copy.deepcopy(self.backbone), self.head_module(theta))
        return model.to(theta.dtype).eval()

    def fresh_starts(self, count: int) -> Tensor:
        """Draw `count` independent starts of θ from torch's generator, each as its layers initialise themselves."""
        head = self.head_module(self.start)
        starts = []
        for _ in range(count):
            for layer in head.modules():
                reset = getattr(layer, "reset_parameters", None)
                if callable(reset):
                    reset()
            starts.append(self.spec.flatten({name: p.detach() for name, p in head.named_parameters()}))
        return torch.stack(starts)

    @property
    def hidden_layers(self) -> list[tuple[slice, slice]]:
        """Where (weight, bias) of every linear layer but the last lie in θ."""
        names = [name for name, m in self.template.named_modules() if isinstance(m, nn.Linear) and m.bias is not None]
        slices = self.spec.slices
        return [(slices[f"{name}.weight"], slices[f"{name}.bias"]) for name in names[:-1]]

    @property
    def first_bias(self) -> slice:
        """Where the bias of the head's first linear layer lies in θ: adding to it equals widening the head's input."""
        layers = [(name, m) for name, m in self.template.named_modules() if isinstance(m, nn.Linear)]
        if not layers or layers[0][1].bias is None:
            raise OptionError("A modulated field needs a head that begins with a linear layer with a bias.")
        name = layers[0][0]
        return self.spec.slices[f"{name}.bias" if name else "bias"]


def _widths(head: nn.Module, dim: int) -> tuple[int, ...] | None:
    """Return features, hidden widths and outputs of a head of linear layers with ReLU between them, None of others."""
    layers = list(head) if isinstance(head, nn.Sequential) else [head]
    linear = [layer for layer in layers[::2] if type(layer) is nn.Linear and layer.bias is not None]
    if len(layers) != 2 * len(linear) - 1 or any(type(layer) is not nn.ReLU for layer in layers[1::2]):
        return None
    widths = (linear[0].in_features, *(layer.out_features for layer in linear))
    # A layer that occurs twice has its parameters in θ once.
    return widths if sum((a + 1) * b for a, b in pairwise(widths)) == dim else None


def _run(
    module: nn.Module,
    parameters: Mapping[str, Tensor],
    inputs: Tensor,
    dropout: float = 0.0,
    shift: Tensor | None = None,
) -> Tensor:
    """Run a head, or the beginning of one, with given parameters, and a shift of what its first layer returns.

    A stack of layers is walked by hand, since `functional_call` costs as much as a small layer.
    """
    if not isinstance(module, nn.Sequential):
        if dropout and not isinstance(module, nn.Linear):
            raise OptionError("Dropout needs a head whose layers stand one after the other: set dropout to 0.")
        outputs = functional_call(module, dict(parameters), (inputs,))
        return outputs if shift is None else outputs + shift
    fresh = False  # whether `inputs` is the output of a linear layer, which may be written over
    first = True
    for name, layer in module.named_children():
        if dropout and not isinstance(layer, nn.Linear) and next(layer.parameters(), None) is not None:
            raise OptionError("Dropout needs a head whose layers stand one after the other: set dropout to 0.")
        if isinstance(layer, nn.Linear):
            if dropout and not first:
                inputs = nn.functional.dropout(inputs, dropout)
            first = False
        if type(layer) is nn.ReLU and fresh:
            inputs = inputs.relu_()
            continue
        fresh = type(layer) is nn.Linear
        if fresh:
            inputs = nn.functional.linear(inputs, parameters[f"{name}.weight"], parameters.get(f"{name}.bias"))
            if shift is not None:
                inputs, shift = inputs + shift, None
        else:
            own = {key.removeprefix(f"{name}."): p for key, p in parameters.items() if key.startswith(f"{name}.")}
            inputs = functional_call(layer, own, (inputs,)) if own else layer(inputs)
    return inputs


PREDICTORS: Registry[Callable[..., Predictor]] = Registry("predictor", "thetafield.predictors")
