"""Atmosphere: the surface temperature over Central America from what a satellite sees of the air above it.

Inputs: monthly means of the temperature of the air near the surface (K), surface pressure (mb), ozone (Dobson units),
and low, middle and high clouds (% of the sky), standardised by the training rows; the month as a sine and a cosine.

Target: the monthly mean temperature of the surface under a clear sky, in kelvin (regression).

Domain: a cell of the 24 × 24 grid, with the 72 months from January 1995 to December 2000. Descriptors: `latitude` and
`longitude` of the cell in degrees (the factor `place`) and `elevation` in metres (a factor of its own). A random 60 %
of the cells are for training, the group `unseen` is the rest.

The published elevations lie on the same grid, but transposed: the rows of the original file, which are latitudes from
north to south, were read as longitudes from west to east. So the Andes seem to stand in the Amazon, where the pressure
is that of the sea. They are put back here; their correlation with the pressure is then −0.92 instead of −0.16.

Left out: 110 months in four cells of the high Andes without low clouds, which would lie below the ground.

Source: GitHub cran/nasaweather (2006 ASA Data Expo), the data frames atmos as Parquet and elev as CSV, to be put at
nasaweather/atmos.parquet and nasaweather/elev.csv under the data root. Licence: MIT.
"""

from dataclasses import replace
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
    dataset="atmosphere",
    origin="GitHub cran/nasaweather (atmos, elev)",
    licence="MIT",
    files=(DataFile("nasaweather/atmos.parquet"), DataFile("nasaweather/elev.csv")),
    note="Save the R data frame atmos as Parquet and elev as CSV.",
)
MEASURES = ("temp", "pressure", "ozone", "cloudlow", "cloudmid", "cloudhigh")
COLUMNS = {
    "lat": pa.float64(),
    "long": pa.float64(),
    "month": pa.int64(),
    "surftemp": pa.float64(),
    **dict.fromkeys(MEASURES, pa.float64()),
}
ELEVATIONS = {"long": pa.float64(), "lat": pa.float64(), "elev": pa.float64()}
DECIMALS = 3  # of a degree, far below the 2.5 degrees of the grid, so that rounding errors do not part equal places
TRAINING = 0.6


@DATASETS.register("atmosphere")
@from_files(SOURCE)
def atmosphere(seed: int, *, split: Natural = 0) -> Dataset:
    """Read the atmosphere over Central America, 1995 to 2000, one domain per cell of the grid.

    Args:
        seed: Not used, since all that is drawn is the split.
        split: Which random split of the cells into training and unseen ones.
    """
    path, elevations = SOURCE.paths()
    months = read_parquet(path, COLUMNS).drop_null()
    values = np.column_stack([column.to_numpy() for column in months.columns])
    if not months.num_rows or not np.isfinite(values).all():
        raise damaged_file(path, "a number is infinite or no row is complete", "finite numbers")
    latitude, longitude, month, target = values[:, :4].T
    measures = values[:, 4:]
    north, row = np.unique(latitude.round(DECIMALS), return_inverse=True)
    east, column = np.unique(longitude.round(DECIMALS), return_inverse=True)
    height = _elevation(elevations, north, east)
    cells, cell = np.unique(row * len(east) + column, return_inverse=True)
    seen = numpy_stream(split, "atmosphere", "split").permutation(len(cells)) < round(TRAINING * len(cells))
    known = seen[cell]
    spread = measures[known].std(0)
    angle = 2 * np.pi * (month - 1) / 12
    whole = DomainSet.from_arrays(
        np.column_stack(
            [(measures - measures[known].mean(0)) / np.where(spread > 0, spread, 1), np.sin(angle), np.cos(angle)]
        ),
        target,
        domain=cell,
        z=np.column_stack([north[row], east[column], height[row, column]]),
        descriptors=["latitude", "longitude", "elevation"],
        factors=["place", "place", "elevation"],
        features=[*MEASURES, "month sine", "month cosine"],
        classification=False,
    )
    places = np.char.mod("%.1f", np.column_stack([north[cells // len(east)], east[cells % len(east)]]))
    whole = replace(whole, ids=np.char.add(np.char.add(places[:, 0], " "), places[:, 1]))
    return Dataset(
        name="atmosphere",
        train=whole.select(seen),
        test={"unseen": whole.select(~seen)},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
    )


def _elevation(path: Path, north: np.ndarray, east: np.ndarray) -> np.ndarray:
    """Return the elevation of each cell, latitudes from south to north by longitudes from west to east."""
    table = read_table(path, ELEVATIONS)
    long, lat, height = (column.to_numpy() for column in table.columns)
    if not all(np.isfinite(column).all() for column in (long, lat, height)):
        raise damaged(path, ELEVATIONS, "a number is missing or infinite")
    order = np.lexsort([-lat, long])
    places = np.column_stack([long, lat])[order].round(DECIMALS)
    grid = np.stack(np.meshgrid(east, north[::-1], indexing="ij"), -1).reshape(-1, 2)
    if len(north) != len(east) or not np.array_equal(places, grid):
        raise damaged(path, ELEVATIONS, "its places are not the square grid of the measurements")
    # From west to east, and within that from north to south, the labels run as the numbers of the original file do:
    # its rows are latitudes from north to south, its columns longitudes from west to east.
    return height[order].reshape(len(north), len(east))[::-1]
