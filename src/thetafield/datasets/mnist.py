"""MNIST: digits that are turned, coloured and covered by the descriptor (paper, appendix A.1).

Inputs: colour images of 28 × 28 pixels in bytes, shape (3, 28, 28). A domain holds 1,000 digits drawn without
replacement from the 60,000 of the original training set; then they are turned, coloured and covered, in this order.

Target: the digit, 0 to 9.

Domain: one setting of the three factors. Descriptors: `rotation` in [0, 50], a unit of which turns the digits by 18°
counter-clockwise (bilinear, black outside); `colour` in [0, 50], from red at 0 to blue at 50, intensity · (1 − c, 0, c)
with c = colour / 50; `occlusion` in [5, 15], a white centred square whose side is the largest even number of pixels
that is at most ⌊occlusion⌋. Training domains and the test group `random` are uniform, from streams of their own.

Source: the two gzipped idx files of the training set, to be put at mnist/ under the data root. Licence: none stated.
"""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.cache import cached
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.errors import DataError
from thetafield.options import Count, Share
from thetafield.streams import numpy_stream

MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")


def _file(name: str, size: int, md5: str) -> DataFile:
    return DataFile(f"mnist/{name}", size, md5, tuple(mirror + name for mirror in MIRRORS))


SOURCE = Source(
    dataset="mnist",
    origin="the mirrors of MNIST that torchvision uses",
    licence="none stated",
    files=(
        _file("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        _file("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
    ),
)
LOW, HIGH = (0.0, 0.0, 5.0), (50.0, 50.0, 15.0)
DEGREES = 18.0  # per unit of rotation
DIGITS = 1000  # per domain
SIDE = 28
CHUNK = 5  # domains at once: more need more memory and are not faster


@DATASETS.register("mnist")
@from_files(SOURCE)
def mnist(seed: int, *, num_train: Count = 50, num_test: Count = 50, dropout: Share = 0.5) -> Dataset:
    """Draw the MNIST domains of the paper: z = (rotation, colour, occlusion) in [0, 50] × [0, 50] × [5, 15].

    Args:
        seed: Root seed of the domains and of their digits.
        num_train: Number of training domains.
        num_test: Number of test domains.
        dropout: Share of the backbone's features that are dropped in training.
    """
    files = SOURCE.paths()
    return Dataset(
        name="mnist",
        train=_domains(seed, "train", num_train, 0, files),
        test={"random": _domains(seed, "test", num_test, num_train, files)},
        predictor="convnet",
        predictor_options={"dropout": dropout},
    )


def _domains(seed: int, group: str, count: int, first_id: int, files: list[Path]) -> DomainSet:
    """Return `count` domains of one group; more of one group never change the other."""
    z = torch.from_numpy(numpy_stream(seed, "mnist", group).uniform(LOW, HIGH, (count, 3)).astype(np.float32))

    def make() -> dict[str, Tensor]:
        digits, labels = read_idx(files[0], 3), read_idx(files[1], 1)
        if digits.shape[1:] != (SIDE, SIDE) or len(labels) != len(digits) or len(digits) < DIGITS:
            shapes = f"{digits.shape} and {labels.shape}"
            raise DataError(f"{files[0].parent} does not hold MNIST: images and labels have shapes {shapes}.")
        stream = numpy_stream(seed, "mnist", group, "digits")
        picked = np.stack([stream.choice(len(digits), DIGITS, replace=False) for _ in range(count)])
        images = torch.empty(count, DIGITS, 3, SIDE, SIDE, dtype=torch.uint8)
        for begin in range(0, count, CHUNK):
            part = slice(begin, begin + CHUNK)
            images[part] = transformed(torch.from_numpy(digits[picked[part]]), z[part])
        return {"x": images.flatten(0, 1), "y": torch.from_numpy(labels[picked].ravel().astype(np.int64))}

    made = cached("mnist", {"version": 1, "seed": seed, "group": group, "count": count}, files, make)
    names = ("rotation", "colour", "occlusion")
    return DomainSet(
        x=made["x"],
        y=made["y"],
        z=z,
        offsets=torch.arange(count + 1) * DIGITS,
        ids=first_id + np.arange(count),
        descriptors=names,
        factors=names,
        classes=np.arange(10),
    )


def transformed(digits: Tensor, z: Tensor) -> Tensor:
    """Turn, colour and cover all digits of several domains at once.

    Args:
        digits: Grey images in bytes, shape (N, n, 28, 28).
        z: Rotation, colour and occlusion, shape (N, 3).

    Returns:
        Colour images in bytes, shape (N, n, 3, 28, 28).
    """
    angle = torch.deg2rad(DEGREES * z[:, 0].double())
    cosine, sine, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # A pixel of the turned image is looked up where it came from, hence the inverse turn; rows count downwards, hence
    # the inverse of that.
    turn = torch.stack([cosine, -sine, zero, sine, cosine, zero], -1).view(-1, 2, 3).float()
    # The digits of a domain are the channels of one image, so that they share one grid.
    grid = affine_grid(turn, [len(z), 1, SIDE, SIDE], align_corners=False)
    grey = grid_sample(digits.float(), grid, align_corners=False)
    blue = (z[:, 1] / HIGH[1])[:, None, None, None]
    images = torch.zeros(*digits.shape[:2], 3, SIDE, SIDE, dtype=torch.uint8)
    images[:, :, 0] = (grey * (1 - blue)).round_().to(torch.uint8)
    images[:, :, 2] = (grey * blue).round_().to(torch.uint8)
    half = (z[:, 2].floor() / 2).floor()[:, None]
    near = (torch.arange(SIDE) - (SIDE - 1) / 2).abs() < half
    square = near[:, None, :, None] & near[:, None, None, :]
    return images.masked_fill_(square[:, :, None], 255)


def read_idx(path: Path, axes: int) -> np.ndarray:
    """Read a gzipped idx file of bytes with a number of axes.

    Raises:
        DataError: It is cut short, corrupt, or another kind of file.
    """
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, str(error)) from None
    start = 4 + 4 * axes
    if content[:4] != bytes([0, 0, 8, axes]) or len(content) < start:
        raise _damaged(path, "it is no idx file of bytes with that many axes")
    shape = np.frombuffer(content[4:start], ">u4").tolist()
    if len(content) - start != math.prod(shape):
        raise _damaged(path, f"it holds {len(content) - start:,} values, but says {math.prod(shape):,}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _damaged(path: Path, finding: str) -> DataError:
    return DataError(f"{path} is damaged ({finding.rstrip('.')}): delete it and run `thetafield data fetch mnist`.")
