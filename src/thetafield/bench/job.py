"""What workers can run and a store can hold: a trial of a registered dataset, or a fold of somebody's own domains."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

LOOK = "look.json"  # in the folder of a job whose field is kept: what figures show of it


@runtime_checkable
class Job(Protocol):
    """A piece of work that travels to a process, with the key under which its result is kept."""

    @property
    def key(self) -> str:
        """Stands for all that determines the result."""

    @property
    def dataset(self) -> str:
        """How the data are called."""

    @property
    def method(self) -> str:
        """Registry name of the method."""

    @property
    def seed(self) -> int:
        """Root seed."""

    @property
    def dataset_label(self) -> str:
        """What displays call the data."""

    @property
    def method_label(self) -> str:
        """What displays call the method."""

    @property
    def keep(self) -> bool:
        """Whether the trained field is kept."""

    @property
    def record(self) -> Mapping[str, Any]:
        """All that determines the result, as it is stored."""

    @property
    def labels(self) -> Mapping[str, Any]:
        """What does not determine it."""

    @property
    def command(self) -> str:
        """The command that runs it."""

    @property
    def expected(self) -> float | None:
        """About how many seconds it takes, where that is known."""

    def run(self, out: Path, *, device: str, checkpoint_every: float, crowded: bool) -> dict[str, Any]:
        """Do the work in a folder, going on from what is there, and return the result.

        A field is left in `field/`, its losses in `history.json`, and what figures show of it in LOOK.
        """
