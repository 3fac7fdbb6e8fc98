"""fMoW: what a place seen from space is used for, country by country.

Inputs: 2,048 features of a satellite image of 224 × 224 pixels, by a ResNet-50 that was trained on ImageNet and is left
as it is; extracted once and kept in half precision.

Target: the place's category; the ten with most images of fMoW's 62.

Domain: the images of a country, at most `per_domain` of them, always the same; the 96 countries with most images. Rows
of the sequestered part (split `seq`), whose images are not published, are left out, and so are countries without
climate.

Descriptors: the country's climate, means of 2002 to 2017: temperature in °C from December to February, March to May,
June to August and September to November; precipitation in mm a month; specific humidity in g/kg. 50 countries drawn by
`split` are for training, the test group `countries` is the rest.

Source: fMoW as published by WILDS (version 1.1), to be put at fmow/ under the data root, with the weights of
torchvision and the table country_climate/country_climate.csv. Licence: fMoW Challenge Public License.
"""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.cache import cached
from thetafield.datasets.groups import largest_groups
from thetafield.datasets.images import read_image
from thetafield.datasets.root import read_table
from thetafield.datasets.source import DataFile, EitherFile, Source, from_files
from thetafield.errors import DataError
from thetafield.options import Count, Natural
from thetafield.predictors.resnet import load_resnet50
from thetafield.streams import numpy_stream

SOURCE = Source(
    dataset="fmow",
    origin="WILDS (wilds.stanford.edu, archive fmow_v1.1, 54 GB) and torchvision (resnet50-0676ba61.pth)",
    licence="fMoW Challenge Public License (images), BSD-3-Clause (weights), MIT (climate)",
    files=(
        DataFile("fmow/rgb_metadata.csv"),
        DataFile("fmow/images"),
        DataFile("country_climate/country_climate.csv"),
        EitherFile(
            "fmow/resnet50.pth",
            urls=("https://download.pytorch.org/models/resnet50-0676ba61.pth",),
            other="fmow/resnet50.safetensors",
        ),
    ),
    note=(
        "Unpack the archive as fmow/rgb_metadata.csv (with the columns split, category and country_code) and "
        "fmow/images/rgb_img_<row>.png, where row counts the lines of the table from 0. The climate table has the "
        "columns ISO3, temp_DJF, temp_MAM, temp_JJA, temp_SON, precip_ann and spec_humidity_ann; the paper's is CRU "
        "(crudata.uea.ac.uk/cru/data/hrg). Images need Pillow (pip install 'thetafield[vision]')."
    ),
)
IMAGES = {"split": pa.string(), "category": pa.string(), "country_code": pa.string()}
CLIMATE = {
    "temp_DJF": "temperature",
    "temp_MAM": "temperature",
    "temp_JJA": "temperature",
    "temp_SON": "temperature",
    "precip_ann": "precipitation",
    "spec_humidity_ann": "humidity",
}
CLASSES = 10
CHUNK = 64  # images at once


@DATASETS.register("fmow")
@from_files(SOURCE)
def fmow(
    seed: int, *, num_train: Count = 50, num_test: Count = 46, split: Natural = 0, per_domain: Count = 500
) -> Dataset:
    """Read satellite images of 96 countries, one domain per country, with the country's climate as its descriptor.

    Args:
        seed: Not used: the countries are drawn by `split`.
        num_train: Number of training countries.
        num_test: Number of test countries.
        split: Which countries are for training: each number is one draw.
        per_domain: Most images of a country.
    """
    metadata, images, climate, weights = SOURCE.paths()
    table = read_table(metadata, IMAGES)
    part, category, country = (np.array(table[name].to_pylist(), dtype=str) for name in IMAGES)
    described = read_table(climate, {"ISO3": pa.string(), **dict.fromkeys(CLIMATE, pa.float64())}).drop_null()
    codes = np.array(described["ISO3"].to_pylist())
    rows = np.flatnonzero((part != "seq") & np.isin(country, codes))
    kinds, counts = np.unique(category[rows], return_counts=True)
    kinds = np.sort(kinds[np.argsort(-counts, kind="stable")][:CLASSES])
    rows = rows[np.isin(category[rows], kinds)]
    rows = rows[largest_groups(country[rows], num_train + num_test, per_domain, "fmow", metadata)]
    key = {"version": 1, "rows": hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()}
    features = cached("fmow", key, [metadata, weights], lambda: {"x": _features(images, rows, weights)})["x"]
    ids, sizes = np.unique(country[rows], return_counts=True)
    place = {code: row for row, code in enumerate(codes.tolist())}
    statistics = np.column_stack([described[name].to_numpy() for name in CLIMATE])
    whole = DomainSet(
        x=features,
        y=torch.from_numpy(np.searchsorted(kinds, category[rows])),
        z=torch.from_numpy(statistics[[place[code] for code in ids.tolist()]].astype(np.float32)),
        offsets=torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)])),
        ids=ids,
        descriptors=tuple(CLIMATE),
        factors=tuple(CLIMATE.values()),
        classes=kinds,
    )
    order = numpy_stream(split, "fmow", "split").permutation(len(whole))
    return Dataset(
        name="fmow",
        train=whole.select(np.sort(order[:num_train])),
        test={"countries": whole.select(np.sort(order[num_train:]))},
        predictor="mlp",
        predictor_options={"hidden": (128, 64)},
    )


def _features(folder: Path, rows: np.ndarray, weights: Path) -> Tensor:
    """Return the features of the images at `rows`, shape (M, 2048), in half precision."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = load_resnet50(weights).to(device)
    parts = []
    for chunk in np.array_split(rows, range(CHUNK, len(rows), CHUNK)):
        images = [read_image(folder / f"rgb_img_{row}.png", "RGB") for row in chunk.tolist()]
        shapes = {image.shape for image in images}
        if len(shapes) > 1:
            raise DataError(f"{folder} holds images of shapes {sorted(shapes)}, but WILDS has one: unpack again.")
        stacked = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).to(device)
        parts.append(network(stacked).half().cpu())
    return torch.cat(parts)
