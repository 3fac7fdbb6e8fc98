"""Fused kernels for GPUs, each beside the eager code that it stands in for."""

from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def kernel(module: str) -> ModuleType | None:
    """Return a module of fused kernels, or None without Triton, which comes with torch for GPUs."""
    try:
        return import_module(module)
    except ImportError:
        return None
