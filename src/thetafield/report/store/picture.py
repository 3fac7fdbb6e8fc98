"""A figure before it is drawn: what it shows, what it was made from, or why it cannot be drawn."""

from __future__ import annotations

import unicodedata
import warnings
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from thetafield.errors import ThetafieldError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thetafield.report.embed import Embedded


@dataclass(frozen=True)
class Picture:
    """A figure of the report.

    Args:
        name: Its file.
        title: Its head.
        caption: What a reader should see in it.
        alt: What a reader without eyes gets.
        command: What made the results that it shows.
        draw: Draws it; None where it cannot be drawn.
        reason: Why it cannot be drawn.
        vector: Whether it is kept as vectors; with very many marks pixels are the smaller file.
        narrow: The least width in pixels at which it can be read.
        cost: About how long it takes to draw, for a fair share of the work.
        content_digest: Stands for all that it shows, so that it need not be drawn twice; empty draws it every time.
        embedded: The drawing, once it is made.
    """

    name: str
    title: str
    caption: str
    alt: str
    command: str = ""
    draw: Callable[[], Figure] | None = None
    reason: str = ""
    vector: bool = True
    narrow: int = 820
    cost: int = 1
    content_digest: str = ""
    embedded: Embedded | None = None

    def drawn(self) -> Picture:
        """Return the picture with its drawing, or with the reason why there is none."""
        from thetafield.report.embed import embed
        from thetafield.report.store.pixels import as_pixels

        if self.draw is None or self.embedded is not None:
            return self
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a label may hold any sign
                figure = self.draw()
                return replace(self, embedded=embed(figure, vector=True) if self.vector else as_pixels(figure))
        except ThetafieldError as error:
            return replace(self, draw=None, reason=str(error))

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.name}.{'svg' if self.vector else 'png'}"

    @property
    def content(self) -> bytes:
        """The bytes of its file."""
        assert self.embedded is not None
        return b64decode(self.embedded.uri.partition("base64,")[2])


def drawable(label: str) -> str:
    """Return a label in signs that fonts have: script letters such as 𝒯 become plain ones.

    >>> drawable("𝒯-Plain, θ²")
    'T-Plain, θ²'
    """
    return "".join(unicodedata.normalize("NFKC", sign) if ord(sign) > 0xFFFF else sign for sign in label)
