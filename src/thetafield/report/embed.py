"""A figure as a data URI: drawn into the page, so that the page stands alone."""

import io
from base64 import b64encode
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from thetafield.report.style import PIXELS_PER_INCH, SETTINGS

SHARPNESS = 2  # image pixels per page pixel, for screens of high density
LARGE = 400_000  # bytes


@dataclass(frozen=True)
class Embedded:
    """A picture for the page.

    Args:
        uri: The data URI.
        width: Width in page pixels at full size.
        height: Height in page pixels at full size.
    """

    uri: str
    width: int
    height: int


def embed(figure: Figure, vector: bool) -> Embedded:
    """Encode a figure as SVG, or as PNG where it has so many marks that vectors would be the larger file.

    An image element is used for SVG too: glyph and clip names of inlined SVGs would clash with each other.
    """
    # Fonts are looked up when a figure is drawn, and an SVG must not change with the date.
    with mpl.rc_context(SETTINGS):
        buffer = io.BytesIO()
        if vector:
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        else:
            _save_png(figure, buffer)
    kind = "svg+xml" if vector else "png"
    width, height = (round(side * PIXELS_PER_INCH) for side in figure.get_size_inches().tolist())
    return Embedded(f"data:image/{kind};base64,{b64encode(buffer.getvalue()).decode()}", width, height)


def _save_png(figure: Figure, buffer: io.BytesIO) -> None:
    """Write a PNG; a large one keeps the 256 colours it has most use for, which halves it and hardly shows."""
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(SHARPNESS * PIXELS_PER_INCH)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    picture.save(buffer, "PNG")
    if buffer.tell() > LARGE:
        buffer.seek(0)
        buffer.truncate()
        picture.quantize(256, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
