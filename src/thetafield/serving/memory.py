"""θ(z) and trust, kept for descriptors that were asked for lately: most are asked about few domains, over and over."""

from collections import OrderedDict
from dataclasses import dataclass, fields
from threading import Lock

import torch
from torch import Tensor

from thetafield.fields.direct import DirectModel
from thetafield.fields.doubt import expected_error, trust_at
from thetafield.fields.model import FieldModel, Model

MOST_POINTS = 2**14
MOST_NUMBERS = 2**25  # parameters kept: 128 MB


@dataclass(frozen=True, eq=False)
class Known:
    """What a model says at b descriptors.

    Args:
        theta: θ(z), shape (b, D), where the model lives; of a model without θ, D is 0.
        trust: Trust, shape (b,), on the CPU.
        expected: Expected error, shape (b,), on the CPU; zeros where the trust is not calibrated.
    """

    theta: Tensor
    trust: Tensor
    expected: Tensor


class FieldMemory:
    """The descriptors that were asked for last, with what the field says there; safe to share between threads.

    Values lie in one table with a row for each descriptor, so that many are read at once. The row of the descriptor
    that was not asked for longest is given to a new one.

    Args:
        model: The model that is asked.
        capacity: Most descriptors that are kept; as many as 128 MB hold by default, and nothing where it is 0.
    """

    def __init__(self, model: Model, capacity: int | None = None) -> None:
        width = _width(model)
        most = max(1, min(MOST_POINTS, MOST_NUMBERS // max(1, width)))
        self.capacity = most if capacity is None else capacity
        self.model = model
        self.hits = self.misses = 0
        self._rows: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()
        size = self.capacity
        # Pages of a table that nobody has written yet take no memory.
        self._table = Known(
            torch.empty(size, width, device=model.device), torch.empty(size), torch.empty(size).double()
        )

    def __len__(self) -> int:
        return len(self._rows)

    def recall(self, points: Tensor) -> Known:
        """Return what the field says at different raw descriptors, shape (b, d); unknown ones are asked in one call."""
        keys = [row.tobytes() for row in (points + 0.0).numpy()]  # so that −0 and 0 are one
        with self._lock:
            found = self._look_up(keys)
            if found is not None:
                self.hits += len(keys)
                return found
            unknown = [i for i, key in enumerate(keys) if key not in self._rows]
            self.hits += len(keys) - len(unknown)
            self.misses += len(unknown)
        # The field is asked outside the lock: others need not wait for it, and at worst it is asked twice.
        fresh = ask(self.model, points[unknown])
        if len(keys) > self.capacity:
            return fresh if len(unknown) == len(keys) else ask(self.model, points)
        with self._lock:
            for place, i in enumerate(unknown):
                self._store(keys[i], fresh, place)
            found = self._look_up(keys)
        # Others may have pushed out a descriptor in between, where many are asked for at once.
        return ask(self.model, points) if found is None else found

    def _look_up(self, keys: list[bytes]) -> Known | None:
        """Return what is known at all of some descriptors, or None; the lock is held."""
        rows = []
        for key in keys:
            row = self._rows.get(key)
            if row is None:
                return None
            rows.append(row)
        for key in keys:
            self._rows.move_to_end(key)
        index = torch.tensor(rows)
        return Known(
            self._table.theta[index.to(self.model.device)], self._table.trust[index], self._table.expected[index]
        )

    def _store(self, key: bytes, fresh: Known, place: int) -> None:
        row = self._rows.pop(key, None)
        if row is None:
            row = len(self._rows) if len(self._rows) < self.capacity else self._rows.popitem(last=False)[1]
        self._table.theta[row] = fresh.theta[place]
        self._table.trust[row] = fresh.trust[place]
        self._table.expected[row] = fresh.expected[place]
        self._rows[key] = row


def _width(model: Model) -> int:
    return model.field.theta_dim if isinstance(model, FieldModel) else 0


def ask(model: Model, points: Tensor) -> Known:
    """Ask the model itself."""
    calibrated = model.trust.blind is not None
    expected = expected_error(model, points) if calibrated else torch.zeros(len(points), dtype=torch.float64)
    # Not model.theta, which would remember.
    theta = FieldModel.theta(model, points) if isinstance(model, FieldModel) else torch.empty(len(points), 0)
    return Known(theta, trust_at(model, points), expected)


@dataclass(eq=False, kw_only=True)
class RememberingTrees(DirectModel):
    """A model without θ that asks for its trust once for each descriptor.

    Args:
        capacity: As for :class:`FieldMemory`.
    """

    capacity: int | None = None

    def __post_init__(self) -> None:
        self.memory = FieldMemory(self, self.capacity)


@dataclass(eq=False, kw_only=True)
class RememberingModel(FieldModel):
    """A model that asks its field once for each descriptor, and else is the same.

    Args:
        capacity: As for :class:`FieldMemory`.
    """

    capacity: int | None = None

    def __post_init__(self) -> None:
        self.memory = FieldMemory(self, self.capacity)

    def theta(self, z: Tensor) -> Tensor:
        """Return θ(z) of shape (..., D) at raw descriptors of shape (..., d)."""
        points = z.detach().to("cpu", torch.float32)
        if points.ndim == 1:
            return self.memory.recall(points[None]).theta[0]
        return self.memory.recall(points.flatten(0, -2)).theta.unflatten(0, points.shape[:-1])


Remembering = RememberingModel | RememberingTrees


def remembering(model: Model, capacity: int | None = None) -> Remembering:
    """Return a model with a memory; the parts are shared, not copied."""
    kind = RememberingModel if isinstance(model, FieldModel) else RememberingTrees
    return kind(**{part.name: getattr(model, part.name) for part in fields(model)}, capacity=capacity)
