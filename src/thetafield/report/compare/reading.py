"""What a comparison left in its folder, as the page takes it."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.errors import FormatError

POOLED = "erm"
DIRECT = ("trees", "trees-x")  # methods without θ(z)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A finished comparison.

    Args:
        result: `result.json`.
        ids: Names of the domains that were held out.
        z: Their descriptors by name.
        columns: What the comparison found of them, by the head of the column in `domains.csv`.
    """

    result: dict[str, Any]
    ids: list[str]
    z: dict[str, np.ndarray]
    columns: dict[str, np.ndarray]

    @classmethod
    def read(cls, folder: Path) -> "Comparison":
        """Read the folder of a comparison.

        Raises:
            FormatError: It holds none, or one that has not ended.
        """
        try:
            result = json.loads((folder / "result.json").read_text())
            with (folder / "domains.csv").open(newline="", encoding="utf-8") as file:
                head, *lines = list(csv.reader(file))
            result["verdict"], result["leaderboard"]
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{folder} holds no finished comparison ({error}): run thetafield compare.") from None
        # By place, since a descriptor may be called as one of the comparison's own columns is.
        own = 1 + len(result["data"]["descriptors"])
        fold = own + head[own:].index("fold")
        judged = [line for line in lines if line[fold]]
        values = [np.array([float(line[at]) for line in judged]) for at in range(len(head)) if at not in (0, fold)]
        names = [name for at, name in enumerate(head) if at not in (0, fold)]
        z, found = ({names[at]: values[at] for at in part} for part in (range(own - 1), range(own - 1, len(names))))
        return cls(result, [line[0] for line in judged], z, found)

    @property
    def method(self) -> str:
        """The recommended method."""
        return self.result["method"]

    @property
    def metric(self) -> str:
        """Either "error" or "mae"."""
        return self.result["metric"]

    def errors(self, method: str) -> np.ndarray:
        """Return a method's error on each domain."""
        return self.columns[f"{self.metric}_{method}"]

    @property
    def descriptors(self) -> list[str]:
        """The descriptors, the most relevant first where that is known."""
        data, leans = self.result["data"], self.result["reliance"]
        pairs = zip(data["descriptors"], data["factors"], strict=True)
        return [name for name, _ in sorted(pairs, key=lambda pair: -leans.get(pair[1], {"mean": 0.0})["mean"])]

    @property
    def field_method(self) -> str | None:
        """The best method with a θ(z) that reads descriptors."""
        for line in self.result["leaderboard"]:
            if line["reads_descriptors"] and line["method"] not in DIRECT:
                return line["method"]
        return None

    @property
    def all_tuned(self) -> bool:
        """Whether something of every method was chosen on held-out domains."""
        rungs = [each["rung"] for each in self.result["plan"]]
        return all(rung is not None and (rung["draws"] > 0 or rung["depth"] != "none") for rung in rungs)

    @property
    def has_pooled(self) -> bool:
        """Whether the pooled network was compared."""
        return any(line["method"] == POOLED for line in self.result["leaderboard"])
