"""CAMELS: how much water flows out of a river basin that nobody gauges?

Inputs: precipitation in mm, temperature in °C and potential evaporation in mm of the last 120 days, the day of the
target among them, standardised by the training basins, and the day of the year as a sine and a cosine; shape (120, 5),
kept as half floats. The weather is that of Caravan, taken from ERA5-Land, whose potential evaporation is far too high
(here five times the descriptor of that name): read it as a measure of warm, dry days, not as an amount.

Target: the runoff of the day in mm (regression).

Domain: a basin; its id is the number of its gauge. Descriptors, none of them derived from flow: `precipitation` and
`potential evaporation` (means, mm a day), `seasonality` (of precipitation, positive where it falls in summer), `snow`
(share of precipitation), `aridity` (potential evaporation over precipitation), `wet days` and `dry days` (a year, above
five times the mean and below 1 mm), `elevation` (m), `log area` (of km²), `soil depth` (m), `water capacity` (of the
soil, m), `sand` and `clay` (%), `forest` (share of the area), `leaf area` (largest monthly index), `permeability` (of
the rock, log₁₀ m²), `latitude` and `longitude` of the gauge (degrees; the factor `place`). A random 60 % of the basins
are for training, the group `unseen` is the rest.

Samples are every tenth day, so that all seasons occur and overlapping windows take little memory. Days whose runoff or
one of whose inputs is missing are left out (the published basins lack 1,097 days of runoff, nearly all of gauge
03281100); so are basins without a sample. A missing descriptor takes the median of the training basins (the published
ones are complete).

Source: GitHub stsfk/generative_hydro_app (series of Caravan) and jmframe/mclstm_2021_extrapolate (attributes), both of
CAMELS-US, to be put under the data root at camels/camels_daily_1995_2005_f16.npz (x of shape basins × days × P, T, PET,
Q; ids; cols; start, the first day) and camels/camels_attributes_482.csv. Licence: CC-BY-4.0 for the series, none stated
for the attributes.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from numpy.lib.stride_tricks import sliding_window_view

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.root import damaged, read_table
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.datasets.tables import damaged_file, read_npz
from thetafield.errors import DataError
from thetafield.options import Count, Natural
from thetafield.streams import numpy_stream

SOURCE = Source(
    dataset="camels",
    origin="GitHub stsfk/generative_hydro_app (series) and jmframe/mclstm_2021_extrapolate (attributes)",
    licence="CC-BY-4.0 (series); none stated (attributes)",
    files=(DataFile("camels/camels_daily_1995_2005_f16.npz"), DataFile("camels/camels_attributes_482.csv")),
)
NAMES = {
    "p_mean": "precipitation",
    "pet_mean": "potential evaporation",
    "p_seasonality": "seasonality",
    "frac_snow": "snow",
    "aridity": "aridity",
    "high_prec_freq": "wet days",
    "low_prec_freq": "dry days",
    "elev_mean": "elevation",
    "area_gages2": "log area",
    "soil_depth_pelletier": "soil depth",
    "max_water_content": "water capacity",
    "sand_frac": "sand",
    "clay_frac": "clay",
    "frac_forest": "forest",
    "lai_max": "leaf area",
    "geol_permeability": "permeability",
    "gauge_lat": "latitude",
    "gauge_lon": "longitude",
}
FACTORS = (*list(NAMES.values())[:-2], "place", "place")
COLUMNS = {"gauge_id": pa.string(), **dict.fromkeys(NAMES, pa.float64())}
SERIES = ["P", "T", "PET", "Q"]
YEAR = 365.25
TRAINING = 0.6


@DATASETS.register("camels")
@from_files(SOURCE)
def camels(seed: int, *, days: Count = 120, every: Count = 10, split: Natural = 0) -> Dataset:
    """Read the river basins of CAMELS-US from October 1995 to September 2005, one domain per basin.

    Args:
        seed: Not used, since all that is drawn is the split.
        days: Days of weather that are seen.
        every: Days from one sample to the next.
        split: Which random split of the basins into training and unseen ones.
    """
    series_path, attributes_path = SOURCE.paths()
    ids, start, series = _series(series_path)
    if days > series.shape[1]:
        raise DataError(f"camels has {series.shape[1]} days, but days={days}: choose fewer days.")
    # A window is whole where all that it shows and the runoff of its last day are known, shape (basins, windows).
    known = sliding_window_view(np.isfinite(series[..., :3]).all(-1), days, axis=1)[:, ::every].all(-1)
    known &= np.isfinite(series[:, days - 1 :: every, 3])
    basins = np.flatnonzero(known.any(1))
    if len(basins) < 2:
        raise DataError(
            f"{series_path} has {len(basins)} basins with {days} days in a row that are known, but needs two to split: "
            "choose fewer days."
        )
    seen = numpy_stream(split, "camels", "split").permutation(len(basins)) < round(TRAINING * len(basins))
    train, test = basins[seen], basins[~seen]
    z = _descriptors(attributes_path, ids, train)
    inputs = _inputs(series[..., :3], train, start)
    sets = []
    for part in (train, test):
        windows = sliding_window_view(inputs[part], days, axis=1)[:, ::every].swapaxes(2, 3)
        sets.append(
            DomainSet(
                x=torch.from_numpy(windows[known[part]]),
                y=torch.from_numpy(series[part, days - 1 :: every, 3][known[part]][:, None]),
                z=torch.from_numpy(z[part]),
                offsets=torch.from_numpy(np.concatenate([[0], known[part].sum(1).cumsum()])),
                ids=ids[part],
                descriptors=tuple(NAMES.values()),
                factors=FACTORS,
                classes=None,
            )
        )
    return Dataset(name="camels", train=sets[0], test={"unseen": sets[1]}, predictor="temporal", skill=True)


def _inputs(weather: np.ndarray, train: np.ndarray, start: np.datetime64) -> np.ndarray:
    """Return standardised weather and the day of the year as half floats, shape (basins, days, 5)."""
    known = weather[train].reshape(-1, 3).astype(np.float64)
    mean, spread = np.nanmean(known, 0), np.nanstd(known, 0)
    dates = start + np.arange(weather.shape[1])
    turn = 2 * np.pi * (dates - dates.astype("datetime64[Y]")).astype(np.int64) / YEAR
    season = np.stack([np.sin(turn), np.cos(turn)], -1)
    inputs = np.empty((*weather.shape[:2], 5), dtype=np.float16)
    inputs[..., :3] = (weather - np.float32(mean)) / np.float32(np.where(spread > 0, spread, 1))
    inputs[..., 3:] = season
    return inputs


def _series(path: Path) -> tuple[np.ndarray, np.datetime64, np.ndarray]:
    """Return gauges in order, the first day, and P, T, PET, Q of shape (basins, days, 4), NaN where missing."""
    stored = read_npz(path, ["x", "ids", "cols", "start"])
    series, ids = stored["x"], stored["ids"]
    try:
        start = np.datetime64(str(stored["start"]), "D")
    except ValueError:
        start = np.datetime64("NaT")
    if stored["cols"].tolist() != SERIES or series.ndim != 3 or series.shape[::2] != (len(ids), len(SERIES)):
        finding = "shape and names of the series do not fit"
    elif series.dtype.kind != "f" or np.isinf(series).any() or (series[..., [0, 3]] < 0).any():
        finding = "x has a value that is infinite, or a negative precipitation or runoff"
    elif len(np.unique(ids)) < len(ids):
        finding = "two basins share a gauge"
    elif np.isnat(start):
        finding = f"start is no day: {stored['start']}"
    else:
        order = np.argsort(ids)
        return ids[order], start, series[order].astype(np.float32)
    raise damaged_file(path, finding, f"x of shape basins × days × {', '.join(SERIES)}, cols, ids and the first day")


def _descriptors(path: Path, ids: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the descriptors of the basins, shape (N, d); what is missing takes the median of the training basins."""
    table = read_table(path, COLUMNS)
    gauges = table["gauge_id"].to_numpy().astype(str)
    order = np.argsort(gauges)
    rows = order[np.searchsorted(gauges, ids, sorter=order).clip(max=len(order) - 1)]
    if (gauges[rows] != ids).any():
        raise damaged(path, COLUMNS, f"it lacks gauge {ids[gauges[rows] != ids][0]}")
    z = np.column_stack([table[name].to_numpy()[rows] for name in NAMES])
    area = list(NAMES).index("area_gages2")
    if not (z[:, area] > 0).all():
        raise damaged(path, COLUMNS, "an area is missing or not positive")
    z[:, area] = np.log(z[:, area])
    if not np.isfinite(z[train]).any(0).all():
        raise damaged(path, COLUMNS, "an attribute is missing in all training basins")
    return np.where(np.isfinite(z), z, np.nanmedian(z[train], 0)).astype(np.float32)
