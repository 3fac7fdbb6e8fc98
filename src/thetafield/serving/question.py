"""A request for answers, read from JSON: rows, descriptors, and which outputs are wanted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import torch
from torch import Tensor

from thetafield.data.arrays import shown
from thetafield.errors import DataError, NeedError, OptionError, closest
from thetafield.fields.model import Model
from thetafield.serving.refusal import Refusal
from thetafield.serving.tensors import SentTensor

COVERAGE = 0.9  # of sets and intervals, where a request does not say


@dataclass(frozen=True, eq=False)
class Question:
    """What one request asks.

    Args:
        x: Inputs, shape (n, *x), in double precision.
        z: A raw descriptor for each, shape (n, d).
        outputs: Names of the outputs wanted.
        coverage: Share of sets or intervals that hold the truth.
        id: What the client calls its request, if anything.
    """

    x: Tensor
    z: Tensor
    outputs: tuple[str, ...]
    coverage: float
    id: str | None


class Reader:
    """Reads the requests that a model can answer.

    Args:
        model: The model.
        max_rows: Most rows of one request.
    """

    def __init__(self, model: Model, max_rows: int) -> None:
        self.model, self.max_rows = model, max_rows
        self.input_shape, self.descriptors = list(model.recipe.input_shape), model.recipe.descriptors
        self.features = model.recipe.features
        answers = ("prediction",) if model.classes is None else ("prediction", "probability")
        covering = () if model.conformal is None else ("interval",) if model.classes is None else ("set",)
        self.outputs = (*answers, *covering, "trust")
        encoder = model.encoder
        self.columns = () if encoder is None else tuple(c.name for c in (*encoder.features, *encoder.descriptors))

    def read(self, body: bytes) -> Question:
        """Return the question that a request's body asks, or say what is wrong with it."""
        request = _parse(body)
        sent = request.get("inputs")
        if not isinstance(sent, list) or not sent:
            raise DataError("A request needs inputs: a list with one object for each tensor.")
        names = [entry.get("name") if isinstance(entry, dict) else None for entry in sent]
        # Raw columns of a table come one by one, and may lack values where the training table did.
        named = all(name in self.columns for name in names)
        as_table = bool(self.columns) and (named or not all(name in ("x", "z") for name in names))
        tensors = [SentTensor.read(entry, gaps=as_table) for entry in sent]
        by_name = {tensor.name: tensor for tensor in tensors}
        if len(by_name) < len(tensors):
            raise DataError(f"Input {shown(_repeated(names)[:50])} is given twice: give it once.")
        x, z = self._from_columns(by_name) if as_table else self._from_arrays(by_name)
        return Question(
            torch.from_numpy(np.ascontiguousarray(x, dtype=np.float64)),
            torch.from_numpy(np.ascontiguousarray(z, dtype=np.float32)).expand(len(x), -1),
            self._outputs(request.get("outputs")),
            _coverage(request.get("parameters")),
            _id(request.get("id")),
        )

    def _from_arrays(self, tensors: dict[str, SentTensor]) -> tuple[np.ndarray, np.ndarray]:
        self._check_names(tensors, ("x", "z") if self.descriptors else ("x",))
        x = tensors["x"]
        if list(x.shape[1:]) != self.input_shape:
            raise DataError(f"x has shape {list(x.shape)}, but {_free(self.input_shape)} was expected.")
        num_rows = self._check_rows(x.shape[0])
        rows = x.numbers(self.features)
        if not self.descriptors:
            return rows, np.zeros((1, 0))
        sent, width = tensors["z"], len(self.descriptors)
        if len(sent.shape) != 2 or sent.shape[1] != width or sent.shape[0] not in (1, num_rows):
            raise DataError(
                f"z has shape {list(sent.shape)}, but [{num_rows}, {width}] or [1, {width}] was expected: "
                f"{', '.join(self.descriptors)} for each row, or once for all."
            )
        z = sent.numbers(self.descriptors)
        return rows, z if self.model.encoder is None else self.model.encoder.raw_descriptors(z)

    def _from_columns(self, tensors: dict[str, SentTensor]) -> tuple[np.ndarray, np.ndarray]:
        self._check_names(tensors, tuple(dict.fromkeys(self.columns)))
        encoder = self.model.encoder
        assert encoder is not None
        num_rows = self._check_rows(max(tensor.shape[0] for tensor in tensors.values()))
        table = pa.table({name: tensor.column(num_rows) for name, tensor in tensors.items()})
        try:
            x = encoder.inputs(table)
            z = encoder.descriptor_rows(table) if encoder.descriptors else np.zeros((1, 0))
        except pa.ArrowException as error:
            raise DataError(f"The columns cannot be read ({str(error)[:100]}): check their datatypes.") from None
        return x, z

    def _check_names(self, tensors: dict[str, SentTensor], wanted: tuple[str, ...]) -> None:
        for name in tensors:
            if name not in wanted:
                raise DataError(f"There is no input {shown(name[:50])}; {closest(name[:50], wanted)}")
        missing = [name for name in wanted if name not in tensors]
        if missing:
            others = f", or columns of the table ({', '.join(self.columns)})" if self.columns and "x" in wanted else ""
            told = f"Input {missing[0]!r} is" if len(missing) == 1 else f"Inputs {', '.join(map(repr, missing))} are"
            raise DataError(f"{told} missing: give {'it' if len(missing) == 1 else 'them'}{others}.")

    def _check_rows(self, count: int) -> int:
        if not count:
            raise DataError("There are no rows: give one at least.")
        if count > self.max_rows:
            raise Refusal(413, f"There are {count} rows, but {self.max_rows} are allowed: split the request.")
        return count

    def _outputs(self, sent: Any) -> tuple[str, ...]:
        if sent is None or sent == []:
            return self.outputs
        if not isinstance(sent, list) or not all(isinstance(e, dict) and isinstance(e.get("name"), str) for e in sent):
            raise DataError('outputs is a list of objects with a name, such as [{"name": "prediction"}].')
        names = [entry["name"] for entry in sent]
        for name in names:
            if name in ("set", "interval") and self.model.conformal is None:
                raise NeedError(
                    f"This field has no {name!r}: it needs a fit of 'neurallio' with its choice, or a comparison."
                )
            if name not in self.outputs:
                raise OptionError(f"There is no output {shown(name[:50])}; {closest(name[:50], self.outputs)}")
        return tuple(dict.fromkeys([*names, "trust"]))  # no answer goes without


def _parse(body: bytes) -> dict[str, Any]:
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if not body.strip():
            raise DataError("The body is empty, but JSON with inputs was expected.") from None
        if any(word in body for word in (b"NaN", b"Infinity")):
            raise DataError("JSON has no NaN and no Infinity: drop such rows or fill them in.") from None
        raise DataError(f"The body is not JSON ({str(error)[:100]}).") from None
    if not isinstance(request, dict):
        raise DataError('The body is JSON, but not an object: {"inputs": [...]} was expected.')
    return request


def _coverage(parameters: Any) -> float:
    if parameters is None:
        return COVERAGE
    if not isinstance(parameters, dict):
        raise DataError("parameters is an object of names and values.")
    coverage = parameters.get("coverage", COVERAGE)
    if type(coverage) not in (int, float) or not 0 < coverage < 1:
        raise OptionError(f"coverage is a share between 0 and 1, but got {str(coverage)[:50]!r}: 0.9 is usual.")
    return coverage


def _id(sent: Any) -> str | None:
    if sent is not None and not isinstance(sent, str):
        raise DataError("The id of a request is text: put it between quotation marks.")
    return sent


def _repeated(names: list[Any]) -> str:
    return next(name for i, name in enumerate(names) if name in names[:i])


def _free(shape: list[int]) -> str:
    return f"[n, {', '.join(map(str, shape))}]"
