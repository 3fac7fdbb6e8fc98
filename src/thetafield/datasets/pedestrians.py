"""Pedestrians: how many people walk past a sensor in Melbourne in each of the next three hours?

Inputs: the counts of the last 48 hours, shape (48, 1), standardised by the training sensors.

Target: the counts of the next 3 hours, in people per hour (regression with three targets).

Domain: a sensor; its id is the published name. Descriptors: `latitude` and `longitude` in degrees (the factor `place`).
A random 60 % of the sensors are for training, the group `unseen` is the rest.

Windows begin at every fifth hour: five has no common factor with the 168 hours of a week, so that each hour of it is
forecast. A window with a missing hour, written −1, is left out, and so is one that touches 24 or more zeros in a row: a
sensor in the inner city that counts nobody for a day is out of order (six sensors, up to 612 hours).

Source: GitHub uctb/Urban-Dataset (55 sensors, hours of local time from 1 January 2021 to 31 October 2022), to be put at
traffic/pedestrian_melbourne.npz under the data root: counts (hours × sensors), lat, lon and name. Licence: none stated.
"""

from pathlib import Path

import numpy as np
from scipy import ndimage

from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.datasets.tables import damaged_file, read_npz
from thetafield.datasets.windows import forecasts
from thetafield.options import Count, Natural

SOURCE = Source(
    dataset="pedestrians",
    origin="GitHub uctb/Urban-Dataset (Melbourne pedestrians)",
    licence="none stated",
    files=(DataFile("traffic/pedestrian_melbourne.npz"),),
)
MISSING = -1
OUTAGE = 24  # zeros in a row, in hours


@DATASETS.register("pedestrians")
@from_files(SOURCE)
def pedestrians(seed: int, *, past: Count = 48, ahead: Count = 3, every: Count = 5, split: Natural = 0) -> Dataset:
    """Read the pedestrians of Melbourne, one domain per sensor.

    Args:
        seed: Not used, since all that is drawn is the split.
        past: Hours that are seen.
        ahead: Hours to forecast.
        every: Hours from the beginning of a window to that of the next.
        split: Which random split of the sensors into training and unseen ones.
    """
    (path,) = SOURCE.paths()
    counts, names, places = _read(path)
    series = np.where(counts == MISSING, np.nan, counts).astype(np.float32)
    series[ndimage.binary_opening(counts == 0, np.ones((OUTAGE, 1)))] = np.nan
    train, test = forecasts("pedestrians", series, names, places, (past, ahead, every), split)
    return Dataset(name="pedestrians", train=train, test={"unseen": test}, predictor="temporal")


def _read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts, shape (hours, sensors), names and places of the sensors, or say what is wrong with them."""
    stored = read_npz(path, ["counts", "lat", "lon", "name"])
    counts, names = stored["counts"], stored["name"]
    num = len(names) if names.ndim == 1 else 0
    if counts.ndim != 2 or stored["lat"].shape != (num,) or stored["lon"].shape != (num,) or counts.shape[1] != num:
        finding = "counts, lat, lon and name are not of one number of sensors"
    elif counts.dtype.kind not in "iuf" or not (counts >= MISSING).all():
        finding = "a count is neither a number of people nor −1 for a missing one"
    elif len(np.unique(names)) < num:
        finding = "two sensors share a name"
    else:
        return counts, names, np.column_stack([stored["lat"], stored["lon"]])
    raise damaged_file(path, finding, "counts of shape hours × sensors, and lat, lon and name of each sensor")
