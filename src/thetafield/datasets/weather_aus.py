"""Weather in Australia: does it rain tomorrow?

Inputs: the observations of a day, that is lowest and highest temperature (°C), rain and evaporation (mm, taken as
log(1 + mm), since downpours of hundreds of millimetres would leave nothing of all other differences), sunshine (hours),
speed of the strongest gust, and wind speed (km/h), humidity (%), pressure (hPa), clouds (eighths of the sky) and
temperature at 9 am and 3 pm. A missing number becomes the median of the training rows, and each number that is missing
in a training row has one more column that is 1 where it is missing: whole stations lack an instrument. Numbers are then
standardised by the training rows. Three directions of the wind (gust, 9 am, 3 pm) are a sine and a cosine each, both 0
where the direction is missing. `RainToday` is 1 after more than 1 mm of rain, else 0; where it is missing, so is the
rain, whose indicator tells.

Target: `Yes` where more than 1 mm of rain fell on the next day, else `No`; days without this answer are left out. So is
the column RISK_MM, the amount of tomorrow's rain.

Domain: a station in a season (summer is December to February). Descriptors: `latitude` and `longitude` in degrees,
`season_sine` and `season_cosine`, the season as an angle of 0 (summer), 90, 180 (winter) or 270 degrees; the former two
are the factor `place`, the latter the factor `season`. A random 60 % of the domains are for training, the group
`unseen` is the rest: most of its stations are trained on in another season.

Source: GitHub cran/rattle.data, the data frame weatherAUS as Parquet, to be put at weather_aus/weatherAUS.parquet under
the data root, from the Australian Bureau of Meteorology; the coordinates in weather_aus/stations.csv (Location, lat,
lon) are typed by hand. Licence: GPL-3.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.root import damaged, read_table
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.datasets.tables import damaged_file, read_parquet
from thetafield.options import Natural
from thetafield.streams import numpy_stream

SOURCE = Source(
    dataset="weather-aus",
    origin="GitHub cran/rattle.data (weatherAUS)",
    licence="GPL-3",
    files=(DataFile("weather_aus/weatherAUS.parquet"), DataFile("weather_aus/stations.csv")),
    note="Save the R data frame weatherAUS as Parquet, and the latitude and longitude of each Location as CSV.",
)
AMOUNTS = ("Rainfall", "Evaporation")
NUMBERS = (
    *AMOUNTS,
    "MinTemp",
    "MaxTemp",
    "Sunshine",
    "WindGustSpeed",
    "WindSpeed9am",
    "WindSpeed3pm",
    "Humidity9am",
    "Humidity3pm",
    "Pressure9am",
    "Pressure3pm",
    "Cloud9am",
    "Cloud3pm",
    "Temp9am",
    "Temp3pm",
)
WINDS = ("WindGustDir", "WindDir9am", "WindDir3pm")
COMPASS = ("N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW")
ANSWERS = ("No", "Yes")
COLUMNS = {
    "Date": pa.timestamp("ms"),
    "Location": pa.string(),
    **dict.fromkeys(NUMBERS, pa.float64()),
    **dict.fromkeys((*WINDS, "RainToday", "RainTomorrow"), pa.string()),
}
STATIONS = {"Location": pa.string(), "lat": pa.float64(), "lon": pa.float64()}
SEASONS = np.array([" summer", " autumn", " winter", " spring"])
CYCLE = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])  # sine and cosine of each season
TRAINING = 0.6


@DATASETS.register("weather-aus")
@from_files(SOURCE)
def weather_aus(seed: int, *, split: Natural = 0) -> Dataset:
    """Read the weather of 49 Australian stations, 2007 to 2017, one domain per station and season.

    Args:
        seed: Not used, since all that is drawn is the split.
        split: Which random split of the domains into training and unseen ones.
    """
    path, stations = SOURCE.paths()
    days = read_parquet(path, COLUMNS)
    days = days.filter(days["RainTomorrow"].is_valid())
    if not days.num_rows or days["Date"].null_count or days["Location"].null_count:
        raise damaged_file(path, "a day has no Date or no Location, or none has RainTomorrow", "all of them")
    month = days["Date"].to_numpy().astype("datetime64[M]").astype(np.int64) % 12  # January is 0
    season = (month + 1) % 12 // 3
    location = days["Location"].to_numpy().astype(str)
    domain = np.char.add(location, SEASONS[season])
    names, codes = np.unique(domain, return_inverse=True)
    seen = numpy_stream(split, "weather-aus", "split").permutation(len(names)) < round(TRAINING * len(names))
    inputs, features = _inputs(path, days, seen[codes])
    tomorrow = _codes(path, days, "RainTomorrow", ANSWERS).astype(np.int64)
    whole = DomainSet.from_arrays(
        inputs,
        np.array(ANSWERS)[tomorrow],
        domain=domain,
        z=np.column_stack([_coordinates(stations, location), CYCLE[season]]),
        descriptors=["latitude", "longitude", "season_sine", "season_cosine"],
        factors=["place", "place", "season", "season"],
        features=features,
        classification=True,
    )
    return Dataset(
        name="weather-aus",
        train=whole.select(seen),
        test={"unseen": whole.select(~seen)},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
    )


def _inputs(path: Path, days: pa.Table, known: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return inputs and their names; medians, indicators and scales come from the training rows `known`."""
    numbers = np.column_stack([days[name].to_numpy() for name in NUMBERS])
    missing = np.isnan(numbers)
    if missing[known].all(0).any():
        empty = NUMBERS[int(missing[known].all(0).argmax())]
        raise damaged_file(path, f"column {empty} has no value in any training row", "some numbers in each column")
    amounts = numbers[:, : len(AMOUNTS)]
    if np.isinf(numbers).any() or (amounts < 0).any():
        raise damaged_file(path, "a number is infinite or an amount of water is negative", "finite amounts from 0")
    np.log1p(amounts, out=amounts)
    numbers = np.where(missing, np.nanmedian(numbers[known], 0), numbers)
    spread = numbers[known].std(0)
    numbers = (numbers - numbers[known].mean(0)) / np.where(spread > 0, spread, 1)
    lacking = np.flatnonzero(missing[known].any(0))
    angles = np.column_stack([_codes(path, days, name, COMPASS) for name in WINDS]) * (2 * np.pi / len(COMPASS))
    winds = np.nan_to_num(np.stack([np.sin(angles), np.cos(angles)], 2)).reshape(len(angles), -1)
    rain = np.nan_to_num(_codes(path, days, "RainToday", ANSWERS))
    names = [
        *NUMBERS,
        *(f"{NUMBERS[column]} missing" for column in lacking),
        *(f"{name} {part}" for name in WINDS for part in ("sine", "cosine")),
        "RainToday",
    ]
    return np.column_stack([numbers, missing[:, lacking], winds, rain]).astype(np.float32), names


def _codes(path: Path, days: pa.Table, name: str, words: Sequence[str]) -> np.ndarray:
    """Return the position of each value of a column among `words`; NaN where it is missing."""
    column = days[name].combine_chunks().dictionary_encode()
    found = column.dictionary.to_pylist()
    strange = [word for word in found if word not in words]
    if strange:
        raise damaged_file(path, f"column {name} has the word {strange[0]!r}", f"one of {', '.join(words)}")
    return np.array([*map(words.index, found), np.nan])[column.indices.fill_null(-1).to_numpy()]  # -1 is the NaN


def _coordinates(path: Path, location: np.ndarray) -> np.ndarray:
    """Return latitude and longitude of each row."""
    stations = read_table(path, STATIONS)
    row_of = {name: row for row, name in enumerate(stations["Location"].to_pylist())}
    names, codes = np.unique(location, return_inverse=True)
    unknown = [name for name in names.tolist() if name not in row_of]
    if unknown:
        raise damaged(path, STATIONS, f"there is no Location {unknown[0]}")
    place = np.column_stack([stations["lat"].to_numpy(), stations["lon"].to_numpy()])
    if not np.isfinite(place).all():
        raise damaged(path, STATIONS, "a latitude or longitude is missing")
    return place[[row_of[name] for name in names.tolist()]][codes]
