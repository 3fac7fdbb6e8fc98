"""Reading image files in bytes, with Pillow where it is installed."""

from importlib import import_module
from pathlib import Path

import numpy as np

from thetafield.errors import DataError, NeedError


def read_image(path: Path, mode: str, side: int | None = None) -> np.ndarray:
    """Return an image in bytes: "L" is grey with shape (height, width), "RGB" has shape (height, width, 3).

    Args:
        path: The file.
        mode: The colours.
        side: Height and width to bring it to; None leaves it as it is.

    Raises:
        NeedError: Pillow is not installed.
        DataError: The file is missing or no image.
    """
    try:
        pillow = import_module("PIL.Image")
    except ImportError:
        raise NeedError("Reading images needs Pillow: pip install 'thetafield[vision]'.") from None
    try:
        with pillow.open(path) as image:
            image = image.convert(mode)
            return np.asarray(image if side is None else image.resize((side, side), pillow.Resampling.LANCZOS))
    except (OSError, SyntaxError, ValueError) as error:
        finding = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"{path} is missing or no image ({finding}): unpack the archive again.") from None
