"""From whatever a person holds (lists, numpy, torch, data frames) to checked numpy arrays grouped by domain."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from thetafield.errors import DataError


def as_numbers(values: Any, name: str, names: Sequence[str] | None = None, width: int | None = None) -> np.ndarray:  # noqa: ANN401
    """Return a finite float array of at least two dimensions, or say which column is at fault.

    Args:
        values: The numbers.
        name: How the argument is called in messages.
        names: Names of its columns, where it has some.
        width: Number of columns it must have, where that is known.
    """
    array = _to_numpy(values, name)
    if array.ndim == 1:
        array = array[:, None]
    if width is not None and array.shape[1] != width:
        raise DataError(f"{name} has {array.shape[1]} columns, but {width} were expected.")
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(float)
        except (TypeError, ValueError):
            raise DataError(f"{name} must hold numbers, but has type {array.dtype}: encode text columns first.") from None
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = np.argwhere(bad.reshape(len(array), -1))[0]
        label = f"column {names[column]!r}" if names is not None and column < len(names) else f"column {column}"
        kind = "NaN" if np.isnan(array.reshape(len(array), -1)[row, column]) else "an infinite value (infinity)"
        raise DataError(
            f"{name} has {kind} in row {row}, {label} ({int(bad.sum())} such entries): drop or impute them first."
        )
    return array


def as_vector(values: Any, name: str) -> np.ndarray:  # noqa: ANN401
    """Return a one-dimensional array of labels without missing entries."""
    array = np.atleast_1d(_to_numpy(values, name))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name} must be one value per row, but has shape {array.shape}.")
    missing = np.array([value is None or value != value for value in array]) if array.dtype.kind in "fO" else None
    if missing is not None and missing.any():
        raise DataError(f"{name} is missing in row {int(np.argmax(missing))} ({int(missing.sum())} rows): fill it in.")
    return array


def encode_target(y: Any, classification: bool | None) -> tuple[np.ndarray, np.ndarray | None]:  # noqa: ANN401
    """Return (class indices, labels) for a classification target, or (numbers of shape (M, t), None) for regression.

    Where it is not said, text, Booleans and whole numbers with at most 20 distinct values are labels.
    """
    array = _to_numpy(y, "y")
    if classification is None:
        whole = array.dtype.kind in "iu" and array.ndim == 1 and len(np.unique(array)) <= 20
        classification = array.dtype.kind in "bOUSTV" or whole
    if not classification:
        return as_numbers(array, "y"), None
    labels = as_vector(array, "y")
    try:
        classes, index = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataError("y mixes types that cannot be ordered (such as text and numbers): use one type.") from None
    if len(classes) < 2:
        raise DataError(f"y holds one class only ({classes[0]!r}): a classifier needs at least two classes.")
    return index.astype(np.int64), classes


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
    z: np.ndarray, given: bool, ids: np.ndarray, codes: np.ndarray, num_rows: int, names: Sequence[str]
) -> np.ndarray:
    """Return one descriptor per domain from descriptors per row or per domain.

    Raises:
        DataError: A domain has two descriptors, a domain has no sample, or the length fits neither rows nor domains.
    """
    if not given:
        return np.zeros((len(ids), 0))
    if len(names) != z.shape[1]:
        raise DataError(f"{len(names)} descriptor names were given, but z has {z.shape[1]} columns.")
    if len(z) == num_rows:
        first = np.zeros(len(ids), dtype=int)
        first[codes[::-1]] = np.arange(num_rows)[::-1]
        per_domain = z[first]
        differs = z != per_domain[codes]
        if differs.any():
            row, column = np.argwhere(differs)[0]
            domain = codes[row]
            raise DataError(
                f"Domain {ids[domain]!r} has two values of descriptor {names[column]!r} "
                f"({per_domain[domain, column]:g} and {z[row, column]:g}): a descriptor is constant within a domain."
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


def _to_numpy(values: Any, name: str) -> np.ndarray:  # noqa: ANN401
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"{name} is ragged: all its rows need the same length.") from None
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {name} holds complex numbers.")
    if array.ndim == 0:
        raise DataError(f"{name} must hold one row per sample, but got a single value.")
    return array
