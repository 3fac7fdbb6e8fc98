"""Which tensors of a run's state lie in parts with several ranks, and how they become whole."""

import torch

from thetafield.errors import FormatError
from thetafield.methods.base import Method
from thetafield.methods.phase import Phase
from thetafield.ranks import ALONE, Ranks


class Spread:
    """Tables with a row per domain of which every rank keeps its own rows, and Adam's moments of them.

    A checkpoint holds them whole, so that a run may go on with another number of ranks.

    Args:
        ranks: Who holds the parts.
        total: Rows of a whole table.
        names: Names of the tables among the method's tensors.
    """

    def __init__(self, ranks: Ranks = ALONE, total: int = 0, names: frozenset[str] = frozenset()) -> None:
        self.ranks, self.total, self.names = ranks, total, names

    @classmethod
    def of(cls, method: Method, phases: list[Phase]) -> "Spread":
        """Return what is spread in a method's training."""
        players = [player for phase in phases for player in phase.players]
        tables = {id(rows.table) for player in players for rows in player.tables if rows.ranks.several}
        names = frozenset(name for name, parameter in method.named_parameters() if id(parameter) in tables)
        return cls(method.problem.ranks, len(method.problem.domains), names)

    def __contains__(self, name: str) -> bool:
        """Return whether the tensor of a checkpoint called group/name is spread."""
        group, _, key = name.partition("/")
        return bool(self.names) and ("/rows" in key if group == "optimiser" else key in self.names)

    def whole(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor of a checkpoint with the rows of all ranks, on the first one."""
        return self.ranks.collected(tensor, self.total) if name in self else tensor

    @property
    def part(self) -> slice:
        """The rows of this rank."""
        return self.ranks.part(self.total)

    def unite(self, method: Method) -> None:
        """Give the first rank's method all rows, in main memory."""
        for name, parameter in method.named_parameters():
            if name in self.names:
                parameter.data = self.ranks.collected(parameter.data, self.total)

    def check_same(self, place: tuple[int, int], device: torch.device) -> None:
        """Refuse ranks that begin at different places, as they would where hosts do not see the same files."""
        if self.ranks.several:
            places = self.ranks.gathered(torch.tensor([place], device=device))
            if (places != places[0]).any():
                raise FormatError(
                    "The ranks do not find the same checkpoint: let all hosts share the folder of the trial."
                )
