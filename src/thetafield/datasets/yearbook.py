"""Yearbook: portraits of American high-school students, 1930 to 2013.

Inputs: grey images of 32 × 32 pixels in bytes, shape (1, 32, 32).

Target: the gender noted with the portrait, 0 for male and 1 for female.

Domain: all portraits of a year. Descriptor: `time`, in years since the first domain (1930). Of the 84 years 40 are
taken, those of Koodos (NeurIPS 2024); the first 28 are for training, the group `future` is the 12 later ones.

Source: either yearbook.pkl of Wild-Time, to be put at yearbook/ under the data root, or the folder of the original
portraits, which are made grey and small here. Licence: MIT as Wild-Time states it; the portraits' page states none.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.cache import cached
from thetafield.datasets.images import read_image
from thetafield.datasets.pickles import read_plain_pickle
from thetafield.datasets.source import EitherFile, Source, from_files
from thetafield.errors import DataError

PORTRAITS = "faces_aligned_small_mirrored_co_aligned_cropped_cleaned"
SOURCE = Source(
    dataset="yearbook",
    origin="Wild-Time (github.com/huaxiuyao/Wild-Time, Google Drive file 1mPpxoX2y2oijOvW1ymiHEYd7oMu2vVRb, 1.8 GB)",
    licence="MIT as Wild-Time states it; none stated with the original portraits",
    files=(EitherFile("yearbook/yearbook.pkl", other=f"yearbook/{PORTRAITS}"),),
    note=(
        f"Instead of the pickle, {PORTRAITS}.tar.gz of the original portraits (A Century of Portraits, "
        f"shiry.eecs.berkeley.edu/yearbooks), unpacked as yearbook/{PORTRAITS}/F/*.png and …/M/*.png with names that "
        "begin with the year, will do; it needs Pillow (pip install 'thetafield[vision]')."
    ),
)
FIRST = 1930
# fmt: off
TIMES = (
    0, 3, 5, 6, 7, 13, 15, 18, 20, 21, 24, 25, 26, 27, 28, 31, 33, 34, 36, 38, 39, 42, 45, 48, 49, 50, 51, 53,
    54, 55, 59, 60, 64, 65, 68, 69, 70, 73, 74, 78,
)
# fmt: on
PAST = 28
SIDE = 32
TRAIN, TEST, WHOLE = 0, 1, 2  # parts of a year in the pickle: the third holds the images of the other two
# An early version of the pickle has members of an enumeration in the place of these numbers.
STAND_INS = {"data.utils.Mode": int, "wildtime.data.utils.Mode": int}


@DATASETS.register("yearbook")
@from_files(SOURCE)
def yearbook(seed: int) -> Dataset:
    """Read the portraits of 40 years, one domain per year, with gender as the target.

    Args:
        seed: Not used, since nothing is drawn.
    """
    (path,) = SOURCE.paths()
    files = [path / sex for sex in "MF"] if path.is_dir() else [path]
    for missing in (file for file in files if not file.exists()):
        raise DataError(f"{missing} does not exist: unpack the whole archive of portraits, with the folders M and F.")
    made = cached("yearbook", {"version": 1}, files, lambda: _tensors(path))
    sizes = made["sizes"]
    whole = DomainSet(
        x=made["x"],
        y=made["y"],
        z=torch.tensor(TIMES, dtype=torch.float32)[:, None],
        offsets=torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
        ids=np.array([str(FIRST + time) for time in TIMES]),
        descriptors=("time",),
        factors=("time",),
        classes=np.array([0, 1]),
    )
    return Dataset(
        name="yearbook",
        train=whole.select(np.arange(PAST)),
        test={"future": whole.select(np.arange(PAST, len(TIMES)))},
        predictor="convnet",
        predictor_options={"hidden": (128, 32)},
        ordered=True,
    )


def _tensors(path: Path) -> dict[str, Tensor]:
    """Return images (M, 1, 32, 32) and labels (M,) year by year, and the number of each year."""
    years = _from_folders(path) if path.is_dir() else _from_pickle(path)
    images, labels = zip(*years, strict=True)
    return {
        "x": torch.from_numpy(np.concatenate(images)[:, None]),
        "y": torch.from_numpy(np.concatenate(labels).astype(np.int64)),
        "sizes": torch.tensor([len(part) for part in labels]),
    }


def _from_pickle(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    stored = read_plain_pickle(path, STAND_INS)
    try:
        return [_year(stored[FIRST + time]) for time in TIMES]
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path} is not Wild-Time's yearbook.pkl ({type(error).__name__}: {error}): expected year → part (0, 1, 2) "
            "→ images (n, 32, 32, 3) in [0, 1] and labels (n,), so get the file again."
        ) from None


def _year(parts: Any) -> tuple[np.ndarray, np.ndarray]:
    chosen = [parts[WHOLE]] if WHOLE in parts else [parts[TRAIN], parts[TEST]]
    images = np.concatenate([np.asarray(part["images"], dtype=np.float32) for part in chosen])
    labels = np.concatenate([np.asarray(part["labels"]) for part in chosen])
    if images.ndim == 4:  # the three colours of a grey image are alike
        images = images.mean(3)
    if images.shape != (len(labels), SIDE, SIDE) or not len(labels):
        raise ValueError(f"images of shape {images.shape} with {len(labels)} labels")
    if not (images.min() >= 0 and images.max() <= 1 and np.isin(labels, [0, 1]).all()):
        raise ValueError("an image is not in [0, 1] or a label is not 0 or 1")
    return np.rint(255 * images).astype(np.uint8), labels


def _from_folders(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    found: dict[int, list[tuple[Path, int]]] = {FIRST + time: [] for time in TIMES}
    for label, sex in enumerate("MF"):
        for file in sorted((path / sex).glob("*.png")):
            if file.name[:4].isdigit() and int(file.name[:4]) in found:
                found[int(file.name[:4])].append((file, label))
    years = []
    for year, portraits in found.items():
        if not portraits:
            raise DataError(f"{path} holds no portrait of {year}: unpack the whole archive of portraits.")
        images = [read_image(file, "L", SIDE) for file, _ in portraits]
        years.append((np.stack(images), np.array([label for _, label in portraits])))
    return years
