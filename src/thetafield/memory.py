"""Memory that is used up, and memory that was freed, the way with which decides a third of a step's time on a CPU."""

import ctypes
import platform

import torch

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def is_used_up(error: BaseException) -> bool:
    """Return whether an error says that memory did not last: of Python, of a GPU, or of torch on a CPU.

    >>> is_used_up(MemoryError()), is_used_up(RuntimeError("shapes do not match"))
    (True, False)
    """
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed blocks instead of handing them back to the kernel; returns whether it obeyed.

    Every step of training frees and takes the same large blocks. By default each goes back to the kernel and comes
    again as fresh pages, which costs more than the arithmetic on it. It is a setting of the whole process, so
    programs make it (the command line, benchmarks) and the library does not.
    """
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    kept = libc.mallopt(M_MMAP_MAX, 0) and libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    return bool(kept)
