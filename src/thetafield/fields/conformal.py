"""Sets and intervals that hold the truth as often as they say, on domains that nobody has seen."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from thetafield.errors import OptionError

LEVELS = 1000


@dataclass(frozen=True)
class Conformal:
    """How strange the truth may look: quantiles over held-out domains of how strange it looked there.

    Each held-out domain counts as one, whatever its number of samples: what is promised is promised for a new domain.
    The models that held-out domains were tried on had fewer domains to learn from than the one that answers, so that
    answers err on the safe side; the usual correction for a finite number of domains is left out.

    Args:
        levels: Quantiles at 0, 1/1000, …, 1.

    Reference:
        Lee, Barber and Willett, *Distribution-free inference with hierarchical data*, 2023.
    """

    levels: Tensor

    @classmethod
    def fit(cls, strangeness: Float[Tensor, "j q"]) -> "Conformal":
        """Join the quantiles of J domains, each at q evenly spaced levels.

        Example:
            >>> found = Conformal.fit(torch.linspace(0, 1, 101, dtype=torch.double).expand(99, -1))
            >>> round(found.threshold(0.9), 2)
            0.9
        """
        # torch's own quantile takes 2²⁴ numbers at most.
        return cls(torch.from_numpy(np.quantile(strangeness.double().numpy(), np.linspace(0, 1, LEVELS + 1))))

    def threshold(self, coverage: float) -> float:
        """Return how strange the truth may look, if that many of the answers are to hold it."""
        if not 0 < coverage < 1:
            raise OptionError(f"coverage is a share between 0 and 1, but got {coverage!r}: 0.9 is usual.")
        return float(self.levels[math.ceil(coverage * LEVELS)])
