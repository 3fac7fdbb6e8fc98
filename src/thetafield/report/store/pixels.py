"""A figure as pixels: for those with so many marks or tints that vectors would be the larger file."""

import io
from base64 import b64encode

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from thetafield.report.embed import SHARPNESS, Embedded
from thetafield.report.style import PIXELS_PER_INCH, SETTINGS


def as_pixels(figure: Figure) -> Embedded:
    """Encode a figure as PNG in the 256 colours it has most use for, at once: a report has many, and encodes each once.

    :func:`thetafield.report.embed.embed` keeps all colours where it can, which takes three times as long.
    """
    with mpl.rc_context(SETTINGS):  # fonts are looked up when a figure is drawn
        canvas = FigureCanvasAgg(figure)
        figure.set_dpi(SHARPNESS * PIXELS_PER_INCH)
        canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    buffer = io.BytesIO()
    picture.quantize(256, dither=Image.Dither.NONE).save(buffer, "PNG")
    width, height = (round(side * PIXELS_PER_INCH) for side in figure.get_size_inches().tolist())
    return Embedded(f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}", width, height)
