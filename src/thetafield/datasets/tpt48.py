"""TPT-48: the monthly temperature of 48 American states, six months ahead.

Inputs: the mean temperatures of six months in a row, standardised by the mean and the spread of the training states.

Target: those of the six months after them, in degrees Fahrenheit (regression with six targets).

Domain: a contiguous state of the United States, 2008 to 2019. As published, a training state gives one sample for each
of the 133 months that can be the first of twelve, an unseen state one for each of the 12 calendar years.

Descriptors: `longitude` and `latitude`, scaled to [0, 1] over the 48 states as published (not degrees; 0 is the west
and the south). A random 60 % of the states are for training, the group `unseen` is the rest; `sources` chooses one of
the two published splits instead: the 6 states in the far west, or the northern 24. There the unlabelled months of the
other states are used for adaptation; here they are not, and they do not enter the scales.

Source: GitHub Wang-ML-Lab/VDI, TPT-48/train_data/data/month_temp_data.pkl as a numpy archive with the arrays states
(48) and temp (48, 144), to be put at tpt48/tpt48_monthly_temp.npz under the data root, and
TPT-48/visualization/usa_map/longitude-latitude-normalize.csv, at tpt48/lonlat.csv. The temperatures are from NOAA.
Licence: MIT.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.root import damaged, read_table
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.datasets.tables import damaged_file, read_npz
from thetafield.errors import DataError
from thetafield.options import Natural
from thetafield.streams import numpy_stream

SOURCE = Source(
    dataset="tpt48",
    origin="GitHub Wang-ML-Lab/VDI (TPT-48)",
    licence="MIT",
    files=(DataFile("tpt48/tpt48_monthly_temp.npz"), DataFile("tpt48/lonlat.csv")),
    note="Save the series of month_temp_data.pkl as a numpy archive with the arrays states and temp.",
)
PLACES = {"state": pa.string(), "longitude": pa.float64(), "latitude": pa.float64()}
WEST = ("WA", "OR", "CA", "ID", "NV", "AZ")
MONTHS = 6
YEAR = 2 * MONTHS
TRAINING = 0.6


@DATASETS.register("tpt48")
@from_files(SOURCE)
def tpt48(seed: int, *, sources: Literal["random", "west", "north"] = "random", split: Natural = 0) -> Dataset:
    """Read the monthly temperatures of 48 American states, 2008 to 2019, one domain per state.

    Args:
        seed: Not used, since all that is drawn is the split.
        sources: The training states: a random 60 %, the 6 in the far west, or the northern half.
        split: Which random split of the states into training and unseen ones.
    """
    path, places = SOURCE.paths()
    stored = read_npz(path, ["states", "temp"])
    states, temperature = stored["states"], stored["temp"]
    _check(path, states, temperature)
    z = _places(places, states)
    if sources == "random":
        stream = numpy_stream(split, "tpt48", "split")
        seen = stream.permutation(len(states)) < round(TRAINING * len(states))
    else:
        seen = np.isin(states, WEST) if sources == "west" else z[:, 1] > np.median(z[:, 1])
    if seen.all() or not seen.any():
        raise DataError(f"{path} has {seen.sum()} of {len(states)} states for training: get the published 48 states.")
    spread = float(temperature[seen].std())
    inputs = (temperature - temperature[seen].mean()) / (spread if spread > 0 else 1)
    train, unseen = (
        DomainSet.from_arrays(
            _windows(inputs[part], step)[..., :MONTHS].reshape(-1, MONTHS),
            _windows(temperature[part], step)[..., MONTHS:].reshape(-1, MONTHS),
            domain=np.repeat(states[part], _windows(inputs, step).shape[1]),
            z=np.repeat(z[part], _windows(inputs, step).shape[1], axis=0),
            descriptors=["longitude", "latitude"],
            factors=["place", "place"],
            features=[f"month {month}" for month in range(1 - MONTHS, 1)],
            classification=False,
        )
        for part, step in ((seen, 1), (~seen, YEAR))
    )
    return Dataset(
        name="tpt48",
        train=train,
        test={"unseen": unseen},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
    )


def _windows(series: np.ndarray, step: int) -> np.ndarray:
    """Return twelve months from every `step`-th month of each series, shape (states, windows, 12)."""
    return np.lib.stride_tricks.sliding_window_view(series, YEAR, axis=1)[:, ::step]


def _check(path: Path, states: np.ndarray, temperature: np.ndarray) -> None:
    """Raise where the arrays do not hold a series of whole years for each state."""
    expected = "states (48) in letters and temp (48, 144) in degrees Fahrenheit"
    shapes = f"states has shape {states.shape} and temp {temperature.shape}"
    if states.ndim != 1 or states.dtype.kind != "U" or len(np.unique(states)) != len(states):
        raise damaged_file(path, "states are not distinct names", expected)
    if temperature.ndim != 2 or len(temperature) != len(states) or temperature.shape[1] < YEAR:
        raise damaged_file(path, shapes, expected)
    if temperature.dtype.kind not in "fiu" or not np.isfinite(temperature).all():
        raise damaged_file(path, "a temperature is not a finite number", expected)


def _places(path: Path, states: np.ndarray) -> np.ndarray:
    """Return longitude and latitude of each state."""
    table = read_table(path, PLACES)
    row_of = {state: row for row, state in enumerate(table["state"].to_pylist())}
    unknown = [state for state in states.tolist() if state not in row_of]
    if unknown:
        raise damaged(path, PLACES, f"there is no state {unknown[0]}")
    place = np.column_stack([table["longitude"].to_numpy(), table["latitude"].to_numpy()])
    if not np.isfinite(place).all():
        raise damaged(path, PLACES, "a longitude or latitude is missing")
    return place[[row_of[state] for state in states.tolist()]]
