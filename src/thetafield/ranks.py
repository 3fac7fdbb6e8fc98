"""Several processes that train one field together, as torchrun starts them: who they are and how they talk.

A process alone is the common case: it talks to nobody and never loads `torch.distributed`.
"""

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import prod
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from thetafield.errors import OptionError

if TYPE_CHECKING:
    from torch.distributed import Store

PATIENCE = timedelta(hours=2)  # how long one rank waits for another that still builds its dataset or writes a file
PIECE = 2**26  # bytes sent at once where rows are collected

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """One of `count` processes that take the same steps, each on its part of the domains.

    All of them draw the same numbers, since draws are a function of seed and step, so that they agree on every index
    without a word. What they do exchange goes through :meth:`fetched` (samples and rows of θ), :meth:`gathered`
    (gradients of rows) and :meth:`sum_` (gradients of shared parameters, losses). Every method that talks must be
    called by all ranks.

    Args:
        count: Number of processes, on all hosts together.
        rank: Which of them this is; the first one, 0, writes and prints.
        local: Which of its host's processes this is.

    Example:
        >>> Ranks(count=3, rank=1).part(7)
        slice(2, 4, None)
    """

    count: int = 1
    rank: int = 0
    local: int = 0

    @classmethod
    def started(cls) -> "Ranks":
        """Return who this process is among those that torchrun started, or one that is alone."""
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return ALONE
        rank = int(os.environ["RANK"])
        return cls(int(os.environ["WORLD_SIZE"]), rank, int(os.environ.get("LOCAL_RANK", rank)))

    @property
    def several(self) -> bool:
        """Whether there is anybody to talk to."""
        return self.count > 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def part(self, total: int, rank: int | None = None) -> slice:
        """Return which of `total` things in a row a rank holds, this one by default."""
        rank = self.rank if rank is None else rank
        return slice(total * rank // self.count, total * (rank + 1) // self.count)

    def device(self, device: torch.device) -> torch.device:
        """Return the device of this rank where all were told the same: a GPU each."""
        if not self.several or device.type != "cuda":
            return device
        if device.index is not None:
            raise OptionError(f"device is '{device}', but {self.count} ranks need a GPU each: use 'cuda' or 'auto'.")
        if self.local >= torch.cuda.device_count():
            raise OptionError(
                f"There are {torch.cuda.device_count()} GPUs on this host for more ranks than that: lower "
                "--nproc-per-node, or use --device cpu."
            )
        return torch.device("cuda", self.local)

    def join(self, device: torch.device) -> None:
        """Meet the others, over NCCL between GPUs and over Gloo between CPUs."""
        if self.several:
            from torch import distributed

            on_gpu = device.type == "cuda"
            if on_gpu:
                torch.cuda.set_device(device)
            distributed.init_process_group(
                "nccl" if on_gpu else "gloo",
                store=self._store(),
                rank=self.rank,
                world_size=self.count,
                timeout=PATIENCE,
                device_id=device if on_gpu else None,
            )

    def _store(self) -> "Store":
        """Return a store where ranks find each other, new with every start.

        The one that torchrun offers outlives its ranks: those that it starts again would look for the dead there. It
        only says where the new one is, and whoever finds an old answer asks again.
        """
        from torch.distributed import TCPStore

        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            return TCPStore(host, port, self.count, is_master=self.first, timeout=PATIENCE)
        offered = TCPStore(host, port, is_master=False, timeout=PATIENCE)
        if self.first:
            store = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=PATIENCE)
            offered.set("thetafield", str(store.port))
            return store
        while True:
            port = int(offered.get("thetafield"))
            try:
                socket.create_connection((host, port), timeout=10).close()
                store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=30))
            except (OSError, RuntimeError):
                time.sleep(0.1)
            else:
                store.set_timeout(PATIENCE)
                return store

    def leave(self) -> None:
        """Part from the others. A process that fails just ends: torchrun sees it and ends the others."""
        if self.several:
            from torch import distributed

            distributed.barrier()
            distributed.destroy_process_group()
            # Gloo's threads need the interpreter to let go of the last tensors, and abort where it has ended meanwhile.
            time.sleep(0.2)

    def in_turn(self, work: Callable[[], T]) -> T:
        """Return what `work` makes, the first rank of each host before the others, who then find its files."""
        if not self.several:
            return work()
        from torch import distributed

        if self.local:
            distributed.barrier()
            return work()
        made = work()
        distributed.barrier()
        return made

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over all ranks, the same bits everywhere, and return it."""
        if self.several:
            from torch import distributed

            distributed.all_reduce(tensor)
        return tensor

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradients of shared parameters by their sums, in one exchange."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        if self.several and gradients:
            flat = self.sum_(torch.cat([gradient.flatten() for gradient in gradients]))
            for gradient, total in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
                gradient.copy_(total.view_as(gradient))

    def agreed(self, flags: Sequence[bool], device: torch.device) -> list[bool]:
        """Return for each flag whether any rank has raised it, so that all decide alike."""
        if not self.several:
            return list(flags)
        return (self.sum_(torch.tensor(flags, dtype=torch.int32, device=device)) > 0).tolist()

    def gathered(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all ranks, of one shape, one after another along the first axis."""
        if not self.several:
            return tensor
        from torch import distributed

        everyone = tensor.new_empty((self.count, *tensor.shape))
        distributed.all_gather(list(everyone.unbind(0)), tensor.contiguous())
        return everyone.flatten(0, 1)

    def fetched(self, own: Tensor, start: int, index: Tensor) -> Tensor:
        """Return rows of a table that lies in parts with all ranks, whoever holds them.

        Every rank fills in what it holds of what anybody wants; the sums with the others' zeros are taken of the bytes
        and so are exact for every type.

        Args:
            own: The rows that are here.
            start: Number of the first of them in the table.
            index: Numbers of the wanted rows, of the same shape on all ranks.
        """
        from torch import distributed

        place = self.gathered(index[None]) - start
        absent = (place < 0) | (place >= len(own))
        rows = own[place.clamp_(0, len(own) - 1)]
        rows.masked_fill_(absent.view(*absent.shape, *(1,) * (rows.ndim - absent.ndim)), 0)
        mine = torch.empty_like(rows[0])
        distributed.reduce_scatter(mine.view(torch.uint8), list(rows.view(torch.uint8).unbind(0)))
        return mine

    def collected(self, own: Tensor, total: int) -> Tensor:
        """Return all `total` rows of a table in main memory on the first rank; the others keep what they have."""
        if not self.several:
            return own
        from torch import distributed

        own = own.detach().contiguous()
        step = max(1, PIECE // max(1, own.element_size() * prod(own.shape[1:])))
        if not self.first:
            for piece in own.split(step):
                distributed.send(piece.view(torch.uint8), 0)
            return own
        whole = torch.empty((total, *own.shape[1:]), dtype=own.dtype)
        whole[self.part(total)] = own.cpu()
        for rank in range(1, self.count):
            for piece in whole[self.part(total, rank)].split(step):
                received = torch.empty_like(piece, device=own.device)
                distributed.recv(received.view(torch.uint8), rank)
                piece.copy_(received)
        return whole


ALONE = Ranks()
