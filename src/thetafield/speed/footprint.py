"""Peak memory of a GPU."""

import gc

import torch


class Footprint:
    """What is taken on a GPU from here on, beyond what is taken already; on a CPU nobody counts.

    Args:
        device: The device.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.before = device, 0
        if device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
            self.before = torch.cuda.memory_allocated(device)

    def restart(self) -> None:
        """Forget the peak so far, such as that of making the data."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    @property
    def peak(self) -> int | None:
        """Bytes at the peak, or None on a CPU."""
        if self.device.type != "cuda":
            return None
        return torch.cuda.max_memory_allocated(self.device) - self.before
