"""Many domains as one flat array with offsets: ragged, selectable, and drawn from without a loop over domains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thetafield.data.arrays import (
    as_numbers,
    as_vector,
    check_resolution,
    column_names,
    descriptor_table,
    domain_descriptors,
    encode_target,
    group_rows,
    in_domain_order,
    to_numpy,
)
from thetafield.data.batch import DomainBatch
from thetafield.data.encoder import TableEncoder, complete_column, read_frame
from thetafield.errors import DataError


@dataclass(frozen=True, eq=False)
class DomainSet:
    """N domains with their samples in one flat tensor and their descriptors in another.

    Build one with :meth:`from_arrays` or :meth:`from_frame`.

    Args:
        x: Inputs of all domains one after another, shape (M, ...).
        y: Class indices (M,) for classification, or targets (M, t) for regression.
        z: Descriptors, shape (N, d).
        offsets: Domain i holds rows offsets[i] to offsets[i + 1], shape (N + 1,).
        ids: What each domain is called, shape (N,).
        descriptors: Name of each descriptor coordinate.
        factors: The cause behind each coordinate: several coordinates may describe one factor (a season's sine and
            cosine, redundant projections of one quantity).
        classes: The label behind each class index, or None for regression.
        features: Names of the input columns where inputs are a table.
        encoder: How a table's columns became inputs and descriptors, where the domains come from one.
        on_disk: Whether x and y are memory maps (:func:`thetafield.data.stored.open_domains`): they stay where they are
            when the set moves to a device, and batches are carried over.

    Example:
        >>> import numpy as np
        >>> x, y = np.arange(12.0).reshape(6, 2), np.array(["a", "b"] * 3)
        >>> domains = DomainSet.from_arrays(x, y, domain=[7, 7, 7, 9, 9, 9], z=[[0.0], [1.0]])
        >>> domains
        DomainSet(2 domains, 6 samples, x (2,), 2 classes, z: z0)
        >>> domains.select([1]).ids.tolist()
        [9]
    """

    x: Tensor
    y: Tensor
    z: Tensor
    offsets: Tensor
    ids: np.ndarray
    descriptors: tuple[str, ...]
    factors: tuple[str, ...]
    classes: np.ndarray | None
    features: tuple[str, ...] | None = None
    encoder: TableEncoder | None = None
    on_disk: bool = False

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        domain: Any = None,
        z: Any = None,
        descriptors: Sequence[str] | None = None,
        factors: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        classification: bool | None = None,
        classes: np.ndarray | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> "DomainSet":
        """Group rows into domains.

        Args:
            X: Inputs, one row per sample (numpy, torch or a data frame).
            y: Targets: labels of any type, or numbers for regression.
            domain: Domain of each row; without it, rows with equal z are one domain, and without z all rows are one.
            z: Descriptors per row, or per domain: sorted by domain id, or a data frame with the ids as its index.
            descriptors: Names of the descriptor coordinates; taken from a data frame where z is one.
            factors: The factor behind each coordinate; each coordinate is its own factor by default.
            features: Names of the input columns; taken from a data frame where X is one.
            classification: Whether y holds labels; inferred from y where it is not said.
            classes: The labels of other domains that these are to be used with; those found in y by default.
            dtype: Floating-point type of inputs, targets and descriptors.
        """
        largest = torch.finfo(dtype).max
        features = column_names(X) if features is None else tuple(map(str, features))
        inputs = as_numbers(X, "X", names=features, largest=largest)
        rows = len(inputs)
        if not inputs.size:
            raise DataError(f"X has no {'columns' if rows else 'rows'}: give at least one sample with one feature.")
        target = to_numpy(y, "y")
        if len(target) != rows:
            raise DataError(f"X has {rows} rows but y has {len(target)}: every sample needs one target.")
        labels, classes = encode_target(target, classification, largest, classes)
        keys = None if domain is None else as_vector(domain, "domain")
        if keys is not None:
            z = in_domain_order(z, keys, rows)
        table, names = descriptor_table(z, descriptors, rows, largest)
        if keys is not None and len(keys) != rows:
            raise DataError(f"domain has {len(keys)} entries but X has {rows} rows: name one per row.")
        if keys is None and len(table) != rows:
            raise DataError(f"z has {len(table)} rows but X has {rows}: give one z per row, or say each row's domain.")
        for given, what, width in ((features, "features", inputs.shape[1]), (factors, "factors", len(names))):
            if given is not None and len(given) != width:
                raise DataError(f"{what} has {len(given)} names, but there are {width} columns: name each of them.")
        ids, order, counts, codes = group_rows(keys, table)
        per_domain = domain_descriptors(table, ids, codes, rows, names)
        check_resolution(per_domain, names, torch.finfo(dtype).eps)
        answers = torch.from_numpy(labels[order])
        return cls(
            x=torch.from_numpy(inputs[order]).to(dtype),
            y=answers if classes is not None else answers.to(dtype),
            z=torch.tensor(per_domain, dtype=dtype),
            offsets=torch.from_numpy(np.concatenate([[0], np.cumsum(counts)])),
            ids=ids,
            descriptors=names,
            factors=names if factors is None else tuple(factors),
            classes=classes,
            features=features,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        target: str | None = None,
        domain: str | None = None,
        descriptors: Sequence[str] = (),
        features: Sequence[str] | None = None,
        places: Any = None,
        classification: bool | None = None,
        classes: np.ndarray | None = None,
        like: "DomainSet | None" = None,
    ) -> "DomainSet":
        """Read a table of any make (pandas, polars, Arrow, DuckDB, a dict of columns).

        Numbers are taken as they are, missing ones as the median with an indicator beside them; text becomes a column
        of zeros and ones for each category; dates become season (a cyclic pair) and trend. What that takes is learned
        from these rows and kept in `encoder`, so that a field takes the same raw columns at prediction.

        Args:
            frame: The table, one row per sample.
            target: Column to predict.
            domain: Column that says which domain a row belongs to; without it rows with equal descriptors are one.
            descriptors: Columns that describe the domain, numbers or dates; each must be constant within a domain.
            features: Input columns; all remaining ones by default.
            places: A second table with one row per domain that holds the descriptors, beside the domain's column.
            classification: Whether the target holds labels; inferred where it is not said.
            classes: All labels that may occur, where these rows do not hold all of them.
            like: Domains whose encoding and labels are taken over, instead of the roles of columns: nothing is learned
                from these rows.
        """
        if like is not None and like.encoder is None:
            raise DataError("like must be domains that were read from a table, but these have no encoder.")
        known = None if like is None else like.encoder
        encoder, table = read_frame(frame, target, domain, descriptors, features, places, known)
        parts = cls.from_arrays(
            encoder.inputs(table),
            complete_column(table, encoder.target),
            domain=None if encoder.domain is None else complete_column(table, encoder.domain),
            z=encoder.descriptor_rows(table) if encoder.descriptors else None,
            descriptors=encoder.descriptor_names or None,
            factors=encoder.factors or None,
            features=encoder.feature_names,
            classification=classification if like is None else like.classification,
            classes=classes if like is None else like.classes,
        )
        return replace(parts, encoder=encoder)

    @classmethod
    def concatenate(cls, parts: Sequence["DomainSet"]) -> "DomainSet":
        """Return the domains of all `parts` one after another; the parts share names, classes and shapes."""
        for part in parts[1:]:
            labels = [None if p.classes is None else p.classes.tolist() for p in (part, parts[0])]
            if part.descriptors != parts[0].descriptors or labels[0] != labels[1]:
                raise DataError(f"{part!r} and {parts[0]!r} differ in descriptors or classes: give them the same.")
        starts = np.cumsum([0, *(len(part.x) for part in parts)]).tolist()
        return replace(
            parts[0],
            x=torch.cat([part.x for part in parts]),
            y=torch.cat([part.y for part in parts]),
            z=torch.cat([part.z for part in parts]),
            offsets=torch.cat(
                [parts[0].offsets[:1], *(part.offsets[1:] + s for part, s in zip(parts, starts, strict=False))]
            ),
            ids=np.concatenate([part.ids for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kind = f"{self.num_outputs} {'classes' if self.classes is not None else 'targets'}"
        names = ", ".join(self.descriptors) or "none"
        return f"DomainSet({len(self)} domains, {len(self.x)} samples, x {tuple(self.x.shape[1:])}, {kind}, z: {names})"

    @property
    def sizes(self) -> Tensor:
        """Number of samples of each domain, shape (N,)."""
        return self.offsets.diff()

    @property
    def num_outputs(self) -> int:
        """Number of classes, or of target columns."""
        return self.y.shape[1] if self.classes is None else len(self.classes)

    @property
    def classification(self) -> bool:
        """Whether the target is a class."""
        return self.classes is not None

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "DomainSet":
        """Return the same domains on another device or in another floating-point type."""
        if self.on_disk:
            return replace(self, z=self.z.to(device, dtype), offsets=self.offsets.to(device))
        y = self.y.to(device) if self.classification else self.y.to(device, dtype)
        return replace(
            self, x=self.x.to(device, dtype), y=y, z=self.z.to(device, dtype), offsets=self.offsets.to(device)
        )

    def select(self, index: Any) -> "DomainSet":
        """Return the domains at `index` (positions or a Boolean mask), in that order."""
        index = np.asarray(index)
        picked = np.arange(len(self))[index if index.size else []]
        if picked.ndim != 1 or not len(picked):
            raise DataError(f"select needs at least one domain, but got an index of shape {picked.shape}.")
        positions = torch.from_numpy(picked).to(self.offsets.device)
        sizes = self.sizes[positions]
        ends = sizes.cumsum(0)
        total = int(ends[-1])
        # Row r of the result lies at r minus the start of its domain in the result, plus its start in the source.
        shift = self.offsets[positions] - (ends - sizes)
        rows = torch.arange(total, device=sizes.device) + shift.repeat_interleave(sizes, output_size=total)
        return replace(
            self,
            x=self.x[rows],
            y=self.y[rows],
            z=self.z[positions],
            offsets=torch.cat([ends.new_zeros(1), ends]),
            ids=self.ids[picked],
            on_disk=False,  # the picked samples are in memory now
        )

    def with_descriptors(
        self, z: Tensor, descriptors: Sequence[str], factors: Sequence[str] | None = None
    ) -> "DomainSet":
        """Return the same samples under other descriptors, shape (N, d)."""
        if z.shape != (len(self), len(descriptors)):
            raise DataError(f"Expected descriptors of shape {(len(self), len(descriptors))}, but got {tuple(z.shape)}.")
        names = tuple(descriptors)
        return replace(self, z=z.to(self.z), descriptors=names, factors=tuple(factors) if factors else names)

    def draw(self, index: Tensor, num_samples: int, generator: torch.Generator | None = None) -> DomainBatch:
        """Draw `num_samples` samples with replacement from each domain of `index`, without a loop over domains.

        Nothing is read from the device. Without a generator the draw is the device's own, as training seeds it.
        """
        return self.take(*self.drawn_rows(index, num_samples, generator), index)

    def drawn_rows(
        self, index: Tensor, num_samples: int, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return which rows :meth:`draw` draws, shape (b, n), and their weights."""
        start, end = self.offsets[index][:, None], self.offsets[index + 1][:, None]
        uniform = torch.rand((len(index), num_samples), generator=generator, device=self.offsets.device)
        # The product can round up to the size itself, hence the minimum.
        rows = torch.minimum(start + (uniform * (end - start)).long(), end - 1)
        return rows, torch.full_like(uniform, 1 / num_samples, dtype=self.z.dtype)

    def padded(self, index: Tensor) -> DomainBatch:
        """Return all samples of each domain of `index`, padded to the longest of all domains.

        Padding repeats a domain's last sample with weight zero, so that shapes depend on the set and not on the batch.
        """
        return self.take(*self.padded_rows(index), index)

    def padded_rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return which rows :meth:`padded` takes, shape (b, n), and their weights."""
        start, end = self.offsets[index][:, None], self.offsets[index + 1][:, None]
        rows = start + torch.arange(self.longest, device=self.offsets.device)
        return torch.minimum(rows, end - 1), (rows < end).to(self.z.dtype) / (end - start)

    def take(self, rows: Tensor, weight: Tensor, index: Tensor) -> DomainBatch:
        """Return the samples at `rows`, shape (b, n), carried to where the descriptors are."""
        if not self.on_disk:
            return DomainBatch(self.x[rows], self.y[rows], weight, index)
        rows, device = rows.cpu(), self.z.device
        x, y = self.x[rows].to(device, non_blocking=True), self.y[rows].to(device, non_blocking=True)
        return DomainBatch(x, y, weight, index)

    @property
    def longest(self) -> int:
        """Number of samples of the largest domain."""
        if "_longest" not in self.__dict__:  # read from the device once, then kept: padded() is called every step
            object.__setattr__(self, "_longest", int(self.sizes.max()))
        return self.__dict__["_longest"]
