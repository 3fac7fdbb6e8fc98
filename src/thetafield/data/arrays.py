"""From whatever a person holds (lists, numpy, torch, data frames) to checked numpy arrays grouped by domain."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from thetafield.errors import DataError

FLOAT32_MAX = float(np.finfo(np.float32).max)


def to_numpy(values: Any, name: str) -> np.ndarray:
    """Return an array with one row per sample; `name` is how the argument is called in messages."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"{name} is ragged: all its rows need the same length.") from None
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {name} holds complex numbers.")
    if array.ndim == 0:
        raise DataError(f"{name} must be an array or a table with one row per sample, but got {_kind(values)}.")
    return array


def column_names(values: Any) -> tuple[str, ...] | None:
    """Return the names of a table's columns, or None where `values` is no table."""
    names = values.column_names if isinstance(values, pa.Table) else getattr(values, "columns", None)
    return None if names is None else tuple(map(str, names))


def as_numbers(
    values: Any,
    name: str,
    names: Sequence[str] | None = None,
    axes: int | None = None,
    largest: float = FLOAT32_MAX,
) -> np.ndarray:
    """Return a finite float array of at least two dimensions, or say which column is at fault.

    Args:
        values: The numbers.
        name: How the argument is called in messages.
        names: Names of its columns, where it has some.
        axes: Number of axes it must have, where that is fixed.
        largest: Largest number that the type of training can hold.
    """
    array = to_numpy(values, name)
    if array.ndim == 1:
        array = array[:, None]
    if axes is not None and array.ndim != axes:
        raise DataError(f"{name} must be a table of rows and columns, but has shape {array.shape}: flatten it first.")
    array = _as_floats(array, name, names)
    # Both comparisons are false where there is a NaN, so one look at the range finds all that cannot be trained on.
    if array.size and not (float(array.min()) >= -largest and float(array.max()) <= largest):
        flat = array.reshape(len(array), -1).astype(np.float64)
        bad = ~(np.abs(flat) <= largest)
        row, column = np.argwhere(bad)[0].tolist()
        value = flat[row, column]
        kind = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:g}, which is too large,"
        where = _place(row, column, flat.shape[1], names)
        raise DataError(f"{name} has {kind} in {where} ({bad.sum()} such entries): drop or impute them first.")
    return array


def as_vector(values: Any, name: str) -> np.ndarray:
    """Return a one-dimensional array of labels without missing entries."""
    array = to_numpy(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name} must be one value per row, but has shape {array.shape}: name one column.")
    missing = _missing(array)
    if missing.any():
        raise DataError(
            f"{name} is missing in row {int(np.argmax(missing))} ({int(missing.sum())} such rows): fill it in or drop "
            "those rows."
        )
    return array


def encode_target(
    y: np.ndarray, classification: bool | None, largest: float = FLOAT32_MAX, known: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (class indices, labels) for a classification target, or (numbers of shape (M, t), None) for regression.

    Where it is not said, text, Booleans and whole numbers with at most 20 distinct values are labels; whole numbers
    kept as floats are numbers.
    """
    if classification is None:
        if y.dtype.kind == "O" and all(isinstance(value, Real) for value in y.flat):
            y = np.array(y.tolist())  # numbers in an array of objects are numbers
        whole = y.dtype.kind in "iu" and y.size == len(y) and len(np.unique(y)) <= 20
        classification = y.dtype.kind in "bOUSTV" or whole
    if not classification:
        return as_numbers(y, "y", axes=2, largest=largest), None
    labels = as_vector(y, "y")
    if known is not None:
        return _known_labels(labels, known), known
    try:
        classes, index = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataError("y mixes types that cannot be ordered (such as text and numbers): use one type.") from None
    if len(classes) < 2:
        raise DataError(f"y holds one class only ({shown(classes[0])}): a classifier needs at least two classes.")
    return index.astype(np.int64), classes


def _known_labels(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the position of each label among labels that are known already."""
    places = {label: place for place, label in enumerate(known.tolist())}
    index = np.array([places.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    if (index < 0).any():
        value = labels[int((index < 0).argmax())]
        raise DataError(f"y holds the label {shown(value)}, which the training rows do not have: drop such rows.")
    return index


def descriptor_table(
    z: Any, names: Sequence[str] | None, num_rows: int, largest: float = FLOAT32_MAX
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return descriptors as a table of finite numbers, without columns where z is None, and the name of each column."""
    names = column_names(z) if names is None else tuple(map(str, names))
    table = np.zeros((num_rows, 0)) if z is None else as_numbers(z, "z", names=names, axes=2, largest=largest)
    width = table.shape[1]
    names = tuple(f"z{i}" for i in range(width)) if names is None else names
    if len(names) != width:
        raise DataError(f"{len(names)} descriptor names were given, but z has {width} columns: name each column once.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"Descriptor {twice[0]!r} is named twice: give every column of z its own name.")
    return table, names


def in_domain_order(z: Any, keys: np.ndarray, num_rows: int) -> Any:
    """Return a data frame with one row per domain in the sorted order of the domains that its index names."""
    if not hasattr(z, "loc") or not hasattr(z, "index") or len(z) == num_rows:
        return z
    labels, ids = list(z.index), np.unique(keys).tolist()
    if len(labels) == len(ids) and set(labels) == set(ids):
        return z.loc[ids]
    if labels == list(range(len(z))):  # plain numbering says nothing about domains
        return z
    raise DataError(
        f"z is indexed by {labels[0]!r} and others, but the domains are {ids[0]!r} and others: index z by the domains, "
        "or drop its index with reset_index."
    )


def group_rows(keys: np.ndarray | None, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (domain ids, row order that puts domains together, domain sizes, domain of each row).

    Without keys, rows with equal descriptors are one domain.
    """
    if keys is None:
        distinct, codes = np.unique(z, axis=0, return_inverse=True)
        ids = np.arange(len(distinct))
    else:
        try:
            ids, codes = np.unique(keys, return_inverse=True)
        except TypeError:
            raise DataError("domain mixes types that cannot be ordered (such as text and numbers): use one.") from None
    codes = codes.ravel()
    return ids, np.argsort(codes, kind="stable"), np.bincount(codes, minlength=len(ids)), codes


def domain_descriptors(
    z: np.ndarray, ids: np.ndarray, codes: np.ndarray, num_rows: int, names: Sequence[str]
) -> np.ndarray:
    """Return one descriptor per domain from descriptors per row or per domain.

    Raises:
        DataError: A domain has two descriptors, a domain has no sample, or the length fits neither rows nor domains.
    """
    if len(z) == num_rows:
        first = np.zeros(len(ids), dtype=int)
        first[codes[::-1]] = np.arange(num_rows)[::-1]
        per_domain = z[first]
        differs = z != per_domain[codes]
        if differs.any():
            row, column = np.argwhere(differs)[0]
            domain = codes[row]
            raise DataError(
                f"Domain {shown(ids[domain])} has two values of descriptor {names[column]!r} "
                f"({per_domain[domain, column]:g} and {z[row, column]:g}): a descriptor is constant within a domain, "
                "so split the domain, or use the column as a feature if it is known before the target."
            )
        return per_domain
    if len(z) == len(ids):
        return z
    if len(z) > len(ids) and ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() < len(z):
        empty = np.setdiff1d(np.arange(len(z)), ids)[0]
        raise DataError(f"Domain {empty} has a descriptor but no sample: give it rows in X or leave it out of z.")
    raise DataError(
        f"z has {len(z)} rows, but there are {num_rows} samples in {len(ids)} domains: give one row per sample or "
        "one per domain."
    )


def check_resolution(z: np.ndarray, names: Sequence[str], eps: float) -> None:
    """Raise where rounding to a relative precision of `eps` would blur the differences between domains."""
    spread, size = np.ptp(z, axis=0), np.abs(z).max(axis=0)
    blurred = (spread > 0) & (size * eps > 1e-3 * spread)
    if blurred.any():
        column = int(np.argmax(blurred))
        raise DataError(
            f"Descriptor {names[column]!r} varies by {spread[column]:g} only around {z[0, column]:g}, which rounding "
            "would blur: subtract its smallest value first."
        )


def shown(value: Any) -> str:
    """Return a label or a domain's id as a message shows it: text in quotes, numbers and dates plain."""
    return repr(str(value)) if isinstance(value, str) else str(value)


def _as_floats(array: np.ndarray, name: str, names: Sequence[str] | None) -> np.ndarray:
    """Return numbers as floats; None and pandas' NA become NaN."""
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind in "mM":
        raise DataError(f"{name} must hold numbers, but holds times ({array.dtype}): count days or seconds instead.")
    if array.dtype.kind == "O":
        array = array.copy()
        array[_missing(array)] = np.nan
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        for (row, column), value in np.ndenumerate(array.reshape(len(array), -1)):
            try:
                float(value)
            except (TypeError, ValueError):
                where = _place(row, column, array[0].size, names)
                raise DataError(
                    f"{name} must hold numbers, but has {shown(value)} in {where}: encode text as numbers first."
                ) from None
        raise


def _missing(array: np.ndarray) -> np.ndarray:
    """Return where an array holds nothing that can be a label: None, NaN, NaT, pandas' NA, an infinite number."""
    if array.dtype.kind == "f":
        return ~np.isfinite(array)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    if array.dtype.kind == "O":
        return np.array([_is_missing(value) for value in array.flat], dtype=bool).reshape(array.shape)
    return np.zeros(array.shape, dtype=bool)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA refuses to be true or false
        return True
    except ValueError:  # an array is no single value, but it is not missing
        return False


def _place(row: int, column: int, width: int, names: Sequence[str] | None) -> str:
    if names is not None and column < len(names):
        return f"row {row}, column {names[column]!r}"
    return f"row {row}" if width == 1 else f"row {row}, column {column}"


def _kind(values: Any) -> str:
    return "a single value" if np.isscalar(values) or getattr(values, "ndim", None) == 0 else type(values).__name__
