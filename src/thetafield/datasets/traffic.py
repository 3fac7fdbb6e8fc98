"""Traffic: the flow of taxis in and out of a region of Beijing, February to June 2015.

Inputs: 96 numbers, inflow and outflow (taxis per hour) of the last 48 hours, hour by hour; standardised by the training
regions.

Target: inflow and outflow of the next three hours, six numbers (regression). Windows follow each other by `step` hours,
three by default, so that every hour is predicted once. Windows whose target holds an hour in which 5,000 taxis or fewer
were counted in the whole city are left out, as in ST-MetaNet: the data of these hours are missing.

Domain: one of the 32 × 32 regions. Descriptors: the distribution of its points of interest, the share of each category;
all are zero where there is none. 100 regions drawn by `split` are for training, the test group `regions` is the others.

Source: GitHub panzheyi/ST-MetaNet (Pan et al., KDD 2019), flow-prediction/data.zip, to be put at traffic/ under the
data root as numpy arrays. Licence: MIT, that of the repository.
"""

from pathlib import Path

import numpy as np
import torch

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.errors import DataError, OptionError
from thetafield.options import Count, Natural
from thetafield.streams import numpy_stream

SOURCE = Source(
    dataset="traffic",
    origin="GitHub panzheyi/ST-MetaNet (flow-prediction/data.zip)",
    licence="MIT (that of the repository)",
    files=(DataFile("traffic/flow.npy"), DataFile("traffic/poi.npy")),
    note=(
        "The archive holds HDF5 files; save two of them as numpy arrays, with h5py: BJ_FLOW.h5 as traffic/flow.npy of "
        "shape (days, 24, 32, 32, 2), inflow before outflow (150 days from 1 February 2015), and BJ_POI.h5 as "
        "traffic/poi.npy of shape (32, 32, categories), the points of interest of each category."
    ),
)
GRID = (32, 32)
PAST, FUTURE = 48, 3  # hours
LEAST = 5000  # taxis in the city in an hour that counts


@DATASETS.register("traffic")
@from_files(SOURCE)
def traffic(
    seed: int, *, num_train: Count = 100, num_test: Count = 924, split: Natural = 0, step: Count = 3
) -> Dataset:
    """Read the taxi flow of Beijing, one domain per region, with its points of interest as its descriptor.

    Args:
        seed: Not used: the regions are drawn by `split`.
        num_train: Number of training regions.
        num_test: Number of test regions.
        split: Which regions are for training: each number is one draw.
        step: Hours between two samples of a region.
    """
    num_regions = GRID[0] * GRID[1]
    if num_train + num_test > num_regions:
        raise OptionError(
            f"traffic has {num_regions} regions, but num_train={num_train} and num_test={num_test} need "
            f"{num_train + num_test}: choose fewer."
        )
    flow_path, poi_path = SOURCE.paths()
    flow, shares = _flow(flow_path), _shares(poi_path)
    starts = np.arange(0, len(flow) - PAST - FUTURE + 1, step)
    counted = flow.sum((1, 2), dtype=np.float64) > LEAST
    starts = starts[counted[starts[:, None] + PAST + np.arange(FUTURE)].all(1)]
    if not len(starts):
        raise DataError(f"{flow_path} has no {PAST + FUTURE} hours on end with a flow to predict: get it again.")
    drawn = numpy_stream(split, "traffic", "split").permutation(num_regions)
    seen, unseen = np.sort(drawn[:num_train]), np.sort(drawn[num_train : num_train + num_test])
    mean, spread = flow[:, seen].mean((0, 1)), flow[:, seen].std((0, 1))
    spread = np.where(spread > 0, spread, 1)

    def domains(regions: np.ndarray) -> DomainSet:
        # Windows of all regions at once: (windows, regions, 2, hours), brought to (regions, windows, hours, 2).
        windows = np.lib.stride_tricks.sliding_window_view(flow[:, regions], PAST + FUTURE, 0)[starts]
        windows = windows.transpose(1, 0, 3, 2)
        names = tuple(f"poi {number}" for number in range(shares.shape[1]))
        past = ((windows[:, :, :PAST] - mean) / spread).astype(np.float32)
        return DomainSet(
            x=torch.from_numpy(past.reshape(-1, 2 * PAST)),
            y=torch.from_numpy(windows[:, :, PAST:].reshape(-1, 2 * FUTURE)),
            z=torch.from_numpy(shares[regions]),
            offsets=torch.arange(len(regions) + 1) * len(starts),
            ids=np.array([f"{row:02d}-{column:02d}" for row, column in zip(*divmod(regions, GRID[1]), strict=True)]),
            descriptors=names,
            factors=names,
            classes=None,
            features=tuple(f"{way} {hour} h" for hour in range(-PAST, 0) for way in ("inflow", "outflow")),
        )

    return Dataset(
        name="traffic",
        train=domains(seen),
        test={"regions": domains(unseen)},
        predictor="mlp",
        predictor_options={"hidden": (64, 64)},
    )


def _flow(path: Path) -> np.ndarray:
    """Return the flow of each hour and region, shape (hours, 1024, 2)."""
    expected = "(days, 24, 32, 32, 2)"
    flow = _numbers(path, expected)
    if flow.ndim != 5 or flow.shape[1:] != (24, *GRID, 2) or not len(flow):
        raise _damaged(path, f"it has shape {flow.shape}", expected)
    return flow.reshape(-1, GRID[0] * GRID[1], 2)


def _shares(path: Path) -> np.ndarray:
    """Return the share of each category among a region's points of interest, shape (1024, categories)."""
    expected = "(32, 32, categories)"
    counts = _numbers(path, expected)
    if counts.ndim != 3 or counts.shape[:2] != GRID or not counts.size:
        raise _damaged(path, f"it has shape {counts.shape}", expected)
    counts = counts.reshape(GRID[0] * GRID[1], -1)
    total = counts.sum(1, keepdims=True)
    return counts / np.where(total > 0, total, 1)


def _numbers(path: Path, expected: str) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
        values = np.asarray(values, dtype=np.float32)
    except (ValueError, TypeError, OSError, EOFError) as error:
        raise _damaged(path, str(error), expected) from None
    if not np.isfinite(values).all() or (values < 0).any():
        raise _damaged(path, "a number is negative, infinite or missing", expected)
    return values


def _damaged(path: Path, finding: str, expected: str) -> DataError:
    finding = " ".join(finding.split()).rstrip(".")
    return DataError(f"{path} is damaged ({finding}): expected an array of shape {expected}, so make it again.")
