"""Write the page of a finished comparison beside its numbers."""

from pathlib import Path

from thetafield.files import write_whole
from thetafield.report.compare.page import render_page
from thetafield.report.compare.reading import Comparison

PAGE = "index.html"


def write_page(folder: Path) -> None:
    """Draw the page of a comparison from `result.json` and `domains.csv`."""
    write_whole(folder / PAGE, render_page(Comparison.read(folder)).encode())
