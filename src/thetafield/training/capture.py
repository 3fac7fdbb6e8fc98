"""One training step as a CUDA graph: recorded once, then replayed without Python."""

from collections.abc import Callable, Hashable

import torch

WARM_UP = 1  # steps that run as they are before one is recorded: optimisers and libraries set themselves up in them


class StepRunner:
    """Runs steps: recorded and replayed on a GPU, as they are elsewhere, with the same results.

    A recorded step holds no Python: what changes from step to step must lie in tensors that stay in place. Steps that
    differ in kind (another player's turn, another number of Taylor terms) are recorded apart.

    Args:
        device: Where steps run.
        captured: Whether they may be recorded.
    """

    def __init__(self, device: torch.device, captured: bool) -> None:
        self.captured = captured and device.type == "cuda"
        self.graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self.seen: dict[Hashable, int] = {}
        if self.captured:
            self.stream = torch.cuda.Stream(device)

    def run(self, kind: Hashable, step: Callable[[], None]) -> None:
        """Run one step of a kind."""
        if not self.captured:
            step()
            return
        graph = self.graphs.get(kind)
        if graph is None and self.seen.get(kind, 0) >= WARM_UP:
            graph = self.graphs[kind] = self._recorded(step)
        if graph is not None:
            graph.replay()
            return
        self.seen[kind] = self.seen.get(kind, 0) + 1
        # Beside the default stream, as the recording will be, so that buffers are made for that one.
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            step()
        torch.cuda.current_stream().wait_stream(self.stream)

    def _recorded(self, step: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Return a step as a graph; recording runs nothing."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            step()
        return graph
