"""Boosted trees that also read the descriptor: the comparison to beat on tables. They have no θ."""

from collections.abc import Callable

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from torch import Tensor

from thetafield.fields.direct import Answers
from thetafield.methods.base import METHODS, DirectMethod, Needs, Problem
from thetafield.methods.space import Choice, Range
from thetafield.options import Count, NonNegative, Positive
from thetafield.streams import stream_seed

Booster = HistGradientBoostingClassifier | HistGradientBoostingRegressor
PIECES = 10  # reports of progress


class TreeAnswers(Answers):
    """The log-probabilities of one booster, or the targets of one booster per column.

    Args:
        boosters: The fitted boosters.
        num_outputs: Classes or target columns.
        read_descriptor: Whether the descriptor is among the columns.
    """

    def __init__(self, boosters: list[Booster], num_outputs: int, read_descriptor: bool) -> None:
        self.boosters, self.num_outputs, self.read_descriptor = boosters, num_outputs, read_descriptor

    def __call__(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (M, o)."""
        table = columns(x, z, self.read_descriptor)
        first = self.boosters[0]
        if isinstance(first, HistGradientBoostingRegressor):
            return torch.from_numpy(np.stack([booster.predict(table) for booster in self.boosters], 1))
        # A class that no training sample has is as good as impossible.
        answer = torch.full((len(table), self.num_outputs), 1e-12, dtype=torch.float64)
        if len(first.classes_) == 1:  # nothing to tell apart
            answer[:, first.classes_] = 1.0
        else:
            answer[:, first.classes_] = torch.from_numpy(first.predict_proba(table)).clamp(min=1e-12)
        return answer.log()


def columns(x: Tensor, z: Tensor, read_descriptor: bool) -> np.ndarray:
    """Return the table that boosters see: flattened inputs and, if asked for, the row's descriptor."""
    flat = x.detach().cpu().flatten(1)
    return torch.cat([flat, z.detach().to(flat)], 1).numpy() if read_descriptor else flat.numpy()


@METHODS.register("trees")
class Trees(DirectMethod):
    """Histogram gradient boosting (scikit-learn) on x and z together, all rows of all domains alike.

    There is no parameter field: `model_at`, `field_` and `save` say so; everything else works as for any method.

    Args:
        problem: The training side.
        rounds: Boosting rounds.
        lr: Shrinkage of a round.
        leaves: Most leaves of a tree.
        min_samples: Fewest samples of a leaf.
        l2: Regularisation of the leaves' values.

    Reference:
        Ke et al., *LightGBM*, NeurIPS 2017; Pedregosa et al., *Scikit-learn*, JMLR 2011.
    """

    name = "trees"
    title = "Trees"
    reference = "Ke et al., 2017"
    needs = Needs(descriptor=True)
    read_descriptor = True
    space = {
        "rounds": Choice((100, 300, 600)),
        "lr": Range(0.02, 0.3),
        "leaves": Choice((15, 31, 63)),
        "min_samples": Choice((5, 20, 60)),
    }

    def __init__(
        self,
        problem: Problem,
        *,
        rounds: Count = 300,
        lr: Positive = 0.1,
        leaves: Count = 31,
        min_samples: Count = 20,
        l2: NonNegative = 0.0,
    ) -> None:
        self.problem = problem
        self.rounds, self.lr, self.leaves, self.min_samples, self.l2 = rounds, lr, leaves, min_samples, l2

    def booster(self) -> Booster:
        """Return an empty booster that grows by further calls of fit."""
        kind = HistGradientBoostingRegressor
        settings = {
            "learning_rate": self.lr,
            "max_leaf_nodes": max(2, self.leaves),
            "min_samples_leaf": self.min_samples,
            "l2_regularization": self.l2,
            "early_stopping": False,  # it would hold rows out at random, not domains
            "warm_start": True,
            "random_state": stream_seed(self.problem.seed, "boosting") % 2**32,
        }
        if self.problem.loss == "cross_entropy":
            return HistGradientBoostingClassifier(**settings)
        return kind(loss=self.problem.loss, **settings)

    def learn(self, report: Callable[[int, int], None]) -> TreeAnswers:
        """Boost: one booster for classes, one for each target column."""
        domains = self.problem.domains
        z = domains.z.repeat_interleave(domains.sizes, dim=0)
        table, y = columns(domains.x, z, self.read_descriptor), domains.y.cpu().numpy()
        targets = [y] if y.ndim == 1 else list(y.T)
        boosters = [self.booster() for _ in targets]
        step = -(-self.rounds // PIECES)
        for done, (booster, target) in enumerate(zip(boosters, targets, strict=True)):
            for rounds in range(step, self.rounds + step, step):
                booster.set_params(max_iter=min(rounds, self.rounds)).fit(table, target)
                report(done * self.rounds + min(rounds, self.rounds), len(targets) * self.rounds)
        return TreeAnswers(boosters, domains.num_outputs, self.read_descriptor)
