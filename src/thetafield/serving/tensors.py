"""Tensors as the Open Inference Protocol writes them in JSON, checked one by one.

Reference:
    KServe, *Open Inference Protocol*, HTTP/REST: github.com/kserve/open-inference-protocol.
"""

import math
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from thetafield.data.arrays import as_numbers, shown
from thetafield.errors import DataError, closest

FLOATS = {"FP16": np.dtype("float16"), "FP32": np.dtype("float32"), "FP64": np.dtype("float64")}
WHOLE = {f"{sign}INT{bits}": np.dtype(f"{sign.lower()}int{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)}
# What an entry may be in JSON: a whole number may stand for a float, but text and truth values never for a number.
ENTRIES = {
    **{datatype: {int, float} for datatype in FLOATS},
    **{datatype: {int} for datatype in WHOLE},
    "BOOL": {bool},
    "BYTES": {str},
}
KINDS = {int: "whole numbers", float: "numbers", bool: "truth values", str: "text", list: "lists", dict: "objects"}


@dataclass(frozen=True, eq=False)
class SentTensor:
    """One input of a request: its entries in row-major order, as many as the shape says, each of the datatype.

    Args:
        name: Its name.
        datatype: Of the protocol, such as FP32.
        shape: Its shape.
        entries: Plain values; None where one is missing, in columns of a table only.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    entries: list[Any]

    @classmethod
    def read(cls, sent: Any, gaps: bool) -> "SentTensor":
        """Check what JSON held; `gaps` says whether entries may be missing (null)."""
        if not isinstance(sent, dict):
            raise DataError(f"An input is an object with name, shape, datatype and data, but got {_kind(sent)}.")
        name = sent.get("name")
        if not isinstance(name, str):
            raise DataError(f"The name of an input is text, but got {_kind(name)}.")
        said = f"Input {shown(name[:50])}"
        for key in ("shape", "datatype", "data"):
            if key not in sent:
                raise DataError(f"{said} has no {key}: give name, shape, datatype and data.")
        datatype, shape, data = sent["datatype"], sent["shape"], sent["data"]
        if not isinstance(datatype, str) or datatype not in ENTRIES:
            given = shown(datatype) if isinstance(datatype, str) else _kind(datatype)
            raise DataError(f"{said} has datatype {given}; {closest(str(datatype)[:20], ENTRIES)}")
        if not isinstance(shape, list) or not shape or not all(type(n) is int and n >= 0 for n in shape):
            raise DataError(f"{said} needs a shape of whole numbers, one for each axis, such as [32, 2].")
        if not isinstance(data, list):
            raise DataError(f"{said} needs data as a list, flat or nested as its shape, but got {_kind(data)}.")
        entries = _flat(data, shape, said)
        if len(entries) != math.prod(shape):
            raise DataError(f"{said} has {len(entries)} entries, but its shape {shape} needs {math.prod(shape)}.")
        strange = set(map(type, entries)) - ENTRIES[datatype] - ({type(None)} if gaps else set())
        if strange:
            row, entry = next((i, e) for i, e in enumerate(entries) if type(e) in strange)
            raise DataError(f"{said} of datatype {datatype} has {_kind(entry)} at entry {row}: {_advice(entry)}")
        return cls(name, datatype, tuple(shape), entries)

    def numbers(self, names: tuple[str, ...] | None = None) -> np.ndarray:
        """Return finite numbers in the tensor's shape; `names` are those of its columns in messages."""
        if self.datatype in WHOLE:
            self._check_range(WHOLE[self.datatype])
        elif self.datatype not in FLOATS:
            raise DataError(f"Input {self.name!r} has datatype {self.datatype}, but numbers were expected: send FP64.")
        return as_numbers(self._held(self.entries).reshape(self.shape), self.name, names)

    def _held(self, entries: list[Any]) -> np.ndarray:
        """Return numbers as a client of the datatype holds them: 0.1 as FP32 is the float32 next to it."""
        try:
            wide = np.array(entries, dtype=np.float64)
        except OverflowError:
            raise DataError(f"Input {self.name!r} has whole numbers beyond what FP64 can hold.") from None
        with np.errstate(over="ignore"):  # who asked finds the infinity, and says where it is
            return wide.astype(FLOATS.get(self.datatype, np.float64))

    def column(self, num_rows: int) -> pa.Array:
        """Return a column of a table, one entry per row, or one entry for all of them."""
        entries = self.entries
        if len(self.shape) > 2 or (len(self.shape) == 2 and self.shape[1] != 1) or len(entries) not in (1, num_rows):
            raise DataError(
                f"Column {self.name!r} has shape {list(self.shape)}, but one entry per row was expected: "
                f"[{num_rows}] or [{num_rows}, 1]."
            )
        if len(entries) == 1:
            entries = entries * num_rows
        if self.datatype in WHOLE:
            self._check_range(WHOLE[self.datatype])
        if self.datatype in ("BYTES", "BOOL"):
            return pa.array(entries, pa.string() if self.datatype == "BYTES" else pa.bool_())
        held = self._held([np.nan if entry is None else entry for entry in entries]).astype(np.float64)
        return pa.array(held, pa.float64(), from_pandas=True)  # NaN is a gap

    def _check_range(self, kind: np.dtype) -> None:
        known = [entry for entry in self.entries if entry is not None]
        ends = np.iinfo(kind)
        if known and not ends.min <= min(known) <= max(known) <= ends.max:
            raise DataError(f"Input {self.name!r} has numbers beyond the range of its datatype {self.datatype}.")


def _flat(data: list[Any], shape: list[int], said: str) -> list[Any]:
    """Return the entries of a list that is flat or nested as its shape."""
    for length in shape[1:]:
        if not data or not isinstance(data[0], list):
            break
        if any(not isinstance(part, list) or len(part) != length for part in data):
            raise DataError(f"{said} is nested unlike its shape {shape}: give data flat, or with lists of that length.")
        data = list(chain.from_iterable(data))
    return data


def _kind(value: Any) -> str:
    return "nothing (null)" if value is None else KINDS.get(type(value), "something else")


def _advice(entry: Any) -> str:
    if entry is None:
        return "JSON has no NaN, and null is no number; drop such rows or fill them in."
    if isinstance(entry, list):
        return "nest data as the shape says, or give it flat."
    return "send entries of the datatype."
