"""METR-LA: how fast is the traffic on the freeways of Los Angeles in the next quarter of an hour?

Inputs: the speeds of the last 48 steps of five minutes (four hours), shape (48, 1), standardised by the training
sensors.

Target: the speeds of the next 3 steps, in miles per hour (regression with three targets).

Domain: a sensor on a freeway; its id is the published number. Descriptors: `latitude` and `longitude` in degrees (the
factor `place`). A random 60 % of the sensors are for training, the group `unseen` is the rest.

Windows begin at every fifth step: five has no common factor with the 288 steps of a day, so that each time of it is
forecast. A missing speed is empty or zero, and windows that touch one are left out; there is none in the published
week, where gaps have been filled by straight lines (up to seven hours of one and the same speed).

Source: GitHub lehaifeng/T-GCN (speeds of 207 sensors, 1 to 7 March 2012, 2,016 steps) and liyaguang/DCRNN (places), to
be put at traffic/metr_la_week_speed.parquet (one column per sensor_id) and traffic/metr_la_sensor_locations.csv
(sensor_id, latitude, longitude) under the data root. Licence: none stated.
"""

import numpy as np
import pyarrow as pa

from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.root import damaged, read_table
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.datasets.tables import damaged_file, read_parquet
from thetafield.datasets.windows import forecasts
from thetafield.options import Count, Natural

SOURCE = Source(
    dataset="metr-la",
    origin="GitHub lehaifeng/T-GCN (los_speed.csv) and liyaguang/DCRNN (graph_sensor_locations.csv)",
    licence="none stated",
    files=(DataFile("traffic/metr_la_week_speed.parquet"), DataFile("traffic/metr_la_sensor_locations.csv")),
)
PLACES = {"sensor_id": pa.string(), "latitude": pa.float64(), "longitude": pa.float64()}


@DATASETS.register("metr-la")
@from_files(SOURCE)
def metr_la(seed: int, *, past: Count = 48, ahead: Count = 3, every: Count = 5, split: Natural = 0) -> Dataset:
    """Read a week of traffic on the freeways of Los Angeles, one domain per sensor.

    Args:
        seed: Not used, since all that is drawn is the split.
        past: Steps of five minutes that are seen.
        ahead: Steps to forecast.
        every: Steps from the beginning of a window to that of the next.
        split: Which random split of the sensors into training and unseen ones.
    """
    speeds_path, places_path = SOURCE.paths()
    places = read_table(places_path, PLACES)
    ids, latitude, longitude = (places[name].to_numpy() for name in PLACES)
    if any(column.null_count for column in places.columns) or len(set(ids)) < len(ids):
        raise damaged(places_path, PLACES, "a sensor has no place, no number or two of them")
    table = read_parquet(speeds_path, dict.fromkeys(ids.tolist(), pa.float32()))
    speeds = np.column_stack([column.to_numpy() for column in table.columns])
    if (speeds < 0).any() or np.isinf(speeds).any():
        raise damaged_file(speeds_path, "a speed is negative or infinite", "speeds in miles per hour")
    speeds = np.where(speeds == 0, np.float32(np.nan), speeds)
    where = np.column_stack([latitude, longitude])
    train, test = forecasts("metr-la", speeds, ids.astype(str), where, (past, ahead, every), split)
    return Dataset(name="metr-la", train=train, test={"unseen": test}, predictor="temporal")
