"""EuroSAT: what covers the ground of a satellite picture, in a part of Europe that nobody has labelled?

Inputs: either 128 features of a tile, the whitened principal components of EfficientNet-Lite0's (kept as half floats;
the components were fitted on all tiles without their labels), or, for a part of the tiles, the picture itself in red,
green and blue, shape (3, 64, 64), 10 m a pixel, kept as bytes.

Target: one of ten kinds of land cover.

Domain: a map cell of 2° × 3° with at least 60 inputs, whose id is its south-western corner in degrees (+48+009), or a
country with at least 40 inputs, whose id is its ISO code. Descriptors are means over all tiles of the domain, pictured
or not: `latitude` and `longitude` in degrees, `temperature` in °C, relative `humidity` in %, `elevation` in m. Columns
that say what is on the ground (vegetation, lights, people) are left out; latitude and longitude are the factor `place`.
A random 60 % of the domains are for training, the group `unseen` is the rest.

Left out: the 477 tiles off shore. Where a temperature or an elevation was missing (mostly of water, and of elevation
north of 60°), the published columns hold the mean over all tiles, those of test domains too: such values are taken as
missing again, and a domain without any other takes the mean of the training domains.

Source: GitHub wongyufei1/AAI3001_EuroSAT (pictures) and pappoja/eurosat (places and climate), to be put under the data
root as eurosat_geo/eurosat_geo_features.parquet (27,000 tiles), eurosat_geo/eurosat_effnetlite0_pca128_f16.npz (x, the
features of the same tiles) and eurosat_geo/eurosat_geo_images_cap400.parquet (jpeg and row, the tile it shows; at most
400 a country). Licence: none stated.
"""

from dataclasses import replace
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.cache import cached
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.datasets.tables import damaged_file, read_npz, read_parquet
from thetafield.errors import DataError, NeedError
from thetafield.options import Natural
from thetafield.streams import numpy_stream

TILES = DataFile("eurosat_geo/eurosat_geo_features.parquet")
FEATURES = DataFile("eurosat_geo/eurosat_effnetlite0_pca128_f16.npz")
IMAGES = DataFile("eurosat_geo/eurosat_geo_images_cap400.parquet")
SOURCE = Source(
    dataset="eurosat",
    origin="GitHub wongyufei1/AAI3001_EuroSAT (pictures) and pappoja/eurosat (places and climate)",
    licence="none stated",
    files=(TILES, FEATURES, IMAGES),
    note="the pictures are needed for inputs=images only",
)
NAMES = {
    "latitude": "latitude",
    "longitude": "longitude",
    "temperature_c": "temperature",
    "humidity_pct": "humidity",
    "elevation_m": "elevation",
}
COLUMNS = {"label": pa.string(), "iso3": pa.string(), **dict.fromkeys(NAMES, pa.float64())}
PICTURES = {"row": pa.int64(), "jpeg": pa.binary()}
CLASSES = (
    "AnnualCrop",
    "Forest",
    "HerbaceousVegetation",
    "Highway",
    "Industrial",
    "Pasture",
    "PermanentCrop",
    "Residential",
    "River",
    "SeaLake",
)
FILLED = {"temperature_c": 16.946892, "elevation_m": 242.6162}  # what was put in the place of a missing value
OFFSHORE = "OFFSHORE"
HEIGHT, WIDTH = 2, 3  # of a cell, in degrees
FEWEST = {"cell": 60, "country": 40}
SIDE = 64
TRAINING = 0.6


@DATASETS.register("eurosat")
@from_files(SOURCE)
def eurosat(
    seed: int,
    *,
    inputs: Literal["features", "images"] = "features",
    domain: Literal["cell", "country"] = "cell",
    split: Natural = 0,
) -> Dataset:
    """Read satellite tiles of Europe, one domain per map cell.

    Args:
        seed: Not used, since all that is drawn is the split.
        inputs: What is seen of a tile: features of a pretrained network, or the picture.
        domain: What a domain is: a cell of 2° × 3° or a country.
        split: Which random split of the domains into training and unseen ones.
    """
    read, file = (_features, FEATURES) if inputs == "features" else (_images, IMAGES)
    path, inputs_path = replace(SOURCE, files=(TILES, file)).paths()
    label, country, place = _tiles(path)
    x, tile = read(inputs_path, len(label))
    key = country if domain == "country" else _cells(place[:, 0], place[:, 1])
    land = country != OFFSHORE
    ids, sizes = np.unique(key[tile][land[tile]], return_counts=True)
    ids = ids[sizes >= FEWEST[domain]]
    if len(ids) < 2:
        raise DataError(
            f"{inputs_path} has {len(ids)} domains ({domain}) with at least {FEWEST[domain]} tiles, but needs two to "
            f"split: get the published file from {SOURCE.origin}."
        )
    member = np.where(land & np.isin(key, ids), np.searchsorted(ids, key), -1)  # the domain of each tile
    rows = np.argsort(member[tile], kind="stable")[np.count_nonzero(member[tile] < 0) :]
    seen = numpy_stream(split, "eurosat", "split").permutation(len(ids)) < round(TRAINING * len(ids))
    z = _means(place[member >= 0], member[member >= 0], len(ids))
    if not np.isfinite(z[seen]).any(0).all():
        raise damaged_file(path, "a descriptor is missing in all training domains", "places and climate of the tiles")
    z = np.where(np.isfinite(z), z, np.nanmean(z[seen], 0))
    whole = DomainSet(
        x=x[torch.from_numpy(rows)],
        y=torch.from_numpy(label[tile[rows]]),
        z=torch.from_numpy(z.astype(np.float32)),
        offsets=torch.from_numpy(np.concatenate([[0], np.bincount(member[tile[rows]]).cumsum()])),
        ids=ids,
        descriptors=tuple(NAMES.values()),
        factors=("place", "place", "temperature", "humidity", "elevation"),
        classes=np.array(CLASSES),
    )
    return Dataset(
        name="eurosat",
        train=whole.select(seen),
        test={"unseen": whole.select(~seen)},
        predictor="mlp" if inputs == "features" else "convnet",
        predictor_options={"hidden": (64, 64)} if inputs == "features" else {},
    )


def _tiles(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return class, country and place (with NaN where it is missing) of all tiles."""
    table = read_parquet(path, COLUMNS)
    names = table["label"].to_numpy().astype(str)
    place = np.column_stack([table[name].to_numpy() for name in NAMES])
    for name, value in FILLED.items():
        column = place[:, list(NAMES).index(name)]
        column[np.isclose(column, value, rtol=1e-6)] = np.nan
    if not np.isin(names, CLASSES).all():
        raise damaged_file(path, "a label is missing or unknown", f"labels {', '.join(CLASSES)}")
    if table["iso3"].null_count or not np.isfinite(place[:, :2]).all():
        raise damaged_file(path, "a country or a place is missing", "iso3, latitude and longitude of each tile")
    return np.searchsorted(CLASSES, names), table["iso3"].to_numpy().astype(str), place


def _cells(latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    """Return the south-western corner of each tile's cell, +48+009 or +38-006."""
    corners = np.stack([latitude // HEIGHT * HEIGHT, longitude // WIDTH * WIDTH], 1).astype(np.int64)
    distinct, cell = np.unique(corners, axis=0, return_inverse=True)
    return np.array([f"{south:+03d}{west:+04d}" for south, west in distinct.tolist()])[cell.ravel()]


def _means(values: np.ndarray, member: np.ndarray, num: int) -> np.ndarray:
    """Return the means of the finite values of each domain, shape (num, columns); NaN where there is none."""
    known = np.isfinite(values)
    sums = np.stack([np.bincount(member, column, num) for column in np.where(known, values, 0).T], 1)
    counts = np.stack([np.bincount(member, column, num) for column in known.T], 1)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _features(path: Path, num_tiles: int) -> tuple[Tensor, np.ndarray]:
    """Return the features and the tiles that they are of: all."""
    features = read_npz(path, ["x"])["x"]
    if features.ndim != 2 or len(features) != num_tiles or features.dtype != np.float16:
        finding = f"x has shape {features.shape} and type {features.dtype}"
        raise damaged_file(path, finding, f"half floats, one row for each of the {num_tiles:,} tiles")
    if not np.isfinite(features).all():
        raise damaged_file(path, "a feature is missing or infinite", "finite numbers")
    return torch.from_numpy(features), np.arange(num_tiles)


def _images(path: Path, num_tiles: int) -> tuple[Tensor, np.ndarray]:
    """Return the pictures, shape (M, 3, 64, 64), and the tiles that they show; decoded once, then kept."""
    stored = cached("eurosat-images", {"side": SIDE}, [path], lambda: _decoded(path))
    tile = stored["tile"].numpy()
    if tile.min() < 0 or tile.max() >= num_tiles or len(np.unique(tile)) < len(tile):
        raise damaged_file(path, "a row is no tile or occurs twice", f"rows of the {num_tiles:,} tiles")
    return stored["pictures"], tile


def _decoded(path: Path) -> dict[str, Tensor]:
    try:
        image = import_module("PIL.Image")
    except ImportError:
        raise NeedError("The pictures of eurosat are JPEG and need Pillow: pip install 'thetafield[vision]'.") from None
    table = read_parquet(path, PICTURES)
    if any(column.null_count for column in table.columns):
        raise damaged_file(path, "a picture or its row is missing", "a JPEG and a row for each")
    pictures = np.empty((table.num_rows, SIDE, SIDE, 3), dtype=np.uint8)
    for number, content in enumerate(table["jpeg"].to_pylist()):
        try:
            picture = np.asarray(image.open(BytesIO(content)).convert("RGB"))
        except (OSError, SyntaxError, ValueError):
            raise damaged_file(path, f"picture {number} cannot be read", "JPEG") from None
        if picture.shape != (SIDE, SIDE, 3):
            raise damaged_file(path, f"picture {number} has shape {picture.shape[:2]}", f"{SIDE} × {SIDE} pixels")
        pictures[number] = picture
    return {
        "pictures": torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous(),
        "tile": torch.from_numpy(table["row"].to_numpy().copy()),
    }
