"""Reading published pickles without running them: arrays, numbers, text and plain containers, nothing else."""

import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.errors import DataError

PLAIN = "biufcSU"  # kinds of arrays that hold numbers or text
CONTAINERS = (list, dict, set, frozenset, tuple, bytearray, complex)
DAMAGES = (pickle.UnpicklingError, EOFError, AttributeError, LookupError, TypeError, ValueError, MemoryError)


def read_plain_pickle(path: Path, stand_ins: Mapping[str, Callable] | None = None) -> Any:
    """Read a pickle of numpy arrays and numbers, text, lists, tuples, sets and dictionaries.

    No name in the file is looked up outside a fixed list, so nothing that it asks for is imported or run.

    Args:
        path: The file.
        stand_ins: What to call instead of a class that the file names ("package.module.Name"), where it holds one
            that is as good as plain, such as an enumeration of integers.

    Raises:
        DataError: The file is cut short or no pickle, or it names a class or function that is not on the list.
    """
    with path.open("rb") as handle:
        try:
            return _PlainUnpickler(handle, path, stand_ins or {}).load()
        except DataError:
            raise
        except DAMAGES as error:
            finding = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise DataError(f"{path} is damaged or no pickle ({finding}): get the published file again.") from None


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, handle: Any, path: Path, stand_ins: Mapping[str, Callable]) -> None:
        super().__init__(handle, encoding="latin1")  # as numpy's arrays of Python 2 need it
        self.path, self.stand_ins = path, stand_ins

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name in the file, or refuse it."""
        named = f"{module}.{name}"
        if named in self.stand_ins:
            return self.stand_ins[named]
        # Some modules of numpy 1 have other names in numpy 2: files of either are read.
        admitted = _admitted().get(named.replace("numpy._core.", "numpy.core."))
        if admitted is None:
            raise DataError(
                f"{self.path} is refused, since it asks for {named}, while plain data need arrays and containers only: "
                "a pickle can run any program, so use the published file."
            )
        return admitted


def _admitted() -> dict[str, Any]:
    """Return what a name in the file stands for; numpy's by their names in numpy 1."""
    multiarray, numeric = import_module("numpy._core.multiarray"), import_module("numpy._core.numeric")
    return {
        "numpy.core.multiarray._reconstruct": multiarray._reconstruct,
        "numpy.core.multiarray.scalar": multiarray.scalar,
        "numpy.core.numeric._frombuffer": numeric._frombuffer,
        "numpy.ndarray": np.ndarray,
        "numpy.dtype": _plain_dtype,
        "_codecs.encode": _latin1,
        "collections.OrderedDict": OrderedDict,
        **{f"{module}.{kind.__name__}": kind for module in ("builtins", "__builtin__") for kind in CONTAINERS},
    }


def _plain_dtype(*words: Any) -> np.dtype:
    """Return a type of numbers or text; those that hold Python objects or fields could be crafted to do harm."""
    kind = np.dtype(*words)
    if kind.kind not in PLAIN:
        raise TypeError(f"arrays of {kind} are not plain")
    return kind


def _latin1(text: str, encoding: str) -> bytes:
    """Return the bytes that old protocols of pickle write as text."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"bytes written as {encoding} are not plain")
    return text.encode("latin1")
