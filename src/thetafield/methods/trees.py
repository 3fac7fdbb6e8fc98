"""Boosted trees that also read the descriptor: the comparison to beat on tables. They have no θ."""

from collections.abc import Callable
from threading import Thread

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from thetafield.fields.forest import Forest, columns
from thetafield.methods.base import METHODS, DirectMethod, Needs, Problem
from thetafield.methods.space import Choice, Range
from thetafield.options import Count, NonNegative, Positive
from thetafield.streams import stream_seed

Booster = HistGradientBoostingClassifier | HistGradientBoostingRegressor
LOOK = 0.2  # seconds between two reports of progress


def planted(boosters: list[Booster], num_outputs: int, read_descriptor: bool) -> Forest:
    """Return the trees of one booster of classes, or of one booster for each target column, as plain arrays."""
    trees, column, baseline = [], [], []
    for booster in boosters:
        first = len(baseline)
        baseline += np.ravel(booster._baseline_prediction).tolist()
        for grown in booster._predictors:  # one tree for each sum, round after round
            trees += [tree.nodes for tree in grown]
            column += [first + i for i in range(len(grown))]
    sizes = np.array([len(nodes) for nodes in trees], dtype=np.int64)
    roots = np.cumsum(sizes) - sizes
    nodes = np.concatenate(trees)
    own, leaf = np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
    start = np.repeat(roots, sizes)
    fitted = isinstance(boosters[0], HistGradientBoostingClassifier)
    arrays = {
        "feature": np.where(leaf, 0, nodes["feature_idx"]),
        "threshold": nodes["num_threshold"],
        "missing_left": nodes["missing_go_to_left"].astype(bool),
        "left": np.where(leaf, own, start + nodes["left"]),
        "right": np.where(leaf, own, start + nodes["right"]),
        "value": np.where(leaf, nodes["value"], 0.0),
        "roots": roots,
        "column": np.array(column),
        "baseline": np.array(baseline),
        "labels": boosters[0].classes_.astype(np.int64) if fitted else np.empty(0, dtype=np.int64),
    }
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    return Forest(tensors, num_outputs=num_outputs, read_descriptor=read_descriptor)


@METHODS.register("trees")
class Trees(DirectMethod):
    """Histogram gradient boosting (scikit-learn) on x and z together, all rows of all domains alike.

    There is no parameter field: `model_at` and `field_` say so; everything else works as for any method.

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
        """Return an empty booster."""
        settings = {
            "learning_rate": self.lr,
            "max_leaf_nodes": max(2, self.leaves),
            "min_samples_leaf": self.min_samples,
            "l2_regularization": self.l2,
            "early_stopping": False,  # it would hold rows out at random, not domains
            "max_iter": self.rounds,
            "random_state": stream_seed(self.problem.seed, "boosting") % 2**32,
        }
        if self.problem.loss == "cross_entropy":
            return HistGradientBoostingClassifier(**settings)
        return HistGradientBoostingRegressor(loss=self.problem.loss, **settings)

    def learn(self, report: Callable[[int, int], None]) -> Forest:
        """Boost: one booster for classes, one for each target column."""
        domains = self.problem.domains
        z = domains.z.repeat_interleave(domains.sizes, dim=0)
        table, y = columns(domains.x, z, self.read_descriptor).numpy(), domains.y.cpu().numpy()
        targets = [y] if y.ndim == 1 else list(y.T)
        boosters = [self.booster() for _ in targets]
        total = len(targets) * self.rounds
        for number, (booster, target) in enumerate(zip(boosters, targets, strict=True)):
            _grow(booster, table, target, lambda done, first=number * self.rounds: report(first + done, total))
        return planted(boosters, domains.num_outputs, self.read_descriptor)


def _grow(booster: Booster, table: np.ndarray, target: np.ndarray, tell: Callable[[int], None]) -> None:
    """Fit a booster in a thread of its own, and tell how many rounds it has.

    It calls nobody back, and to grow it by several calls of fit bins the table in each of them: four times the time.
    """
    failures: list[BaseException] = []

    def fit() -> None:
        try:
            booster.fit(table, target)
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=fit, daemon=True)  # whoever is interrupted does not wait for it
    thread.start()
    while thread.is_alive():
        thread.join(LOOK)
        tell(len(getattr(booster, "_predictors", ())))
    if failures:
        raise failures[0]
