"""The page: one HTML file that holds the field, its own program and its look, and asks for nothing else."""

import base64
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from thetafield.errors import OptionError
from thetafield.explorer.arrays import Arrays
from thetafield.explorer.description import describe_model
from thetafield.explorer.inputs import read_rows
from thetafield.explorer.saved import Saved, draw, samples_by_default

POINTS = 60  # samples of a domain that are shown in a plane without being asked for


def explorer_page(saved: Saved, rows: Path | None = None, samples: int | None = None) -> str:
    """Return the page of a saved field as HTML that needs neither server nor network.

    Args:
        saved: The model.
        rows: A table whose rows the page offers as inputs.
        samples: Samples of each training domain to show; None shows some where inputs are points of a plane.

    Raises:
        ThetafieldError: The rows or samples cannot be had.
    """
    if samples is not None and samples < 0:
        raise OptionError(f"--samples is a number of samples, 0 or more, but got {samples}.")
    notes = []
    if samples is None:
        shown, reason = samples_by_default(saved, POINTS)
        notes += [] if reason is None else [f"No samples are shown: {reason}"]
    else:
        shown = draw(saved.training_domains(), samples) if samples else None
    arrays = Arrays()
    table = None if rows is None else read_rows(saved.model, rows)
    description = describe_model(saved, arrays, table, shown, notes)
    return assemble(description | {"arrays": arrays.table}, arrays.text())


def assemble(description: dict[str, Any], weights: str) -> str:
    """Return the page of a description and the arrays that it refers to, with the program and the look of today."""
    static = files("thetafield.explorer").joinpath("static")
    modules = sorted(entry.name for entry in static.iterdir() if entry.name.endswith(".js"))
    # A page opened from a file may not load modules beside it. The map of imports gives each module as its own content;
    # modules name each other as "thetafield/name.js", so that the files need no build step.
    content = {name: base64.b64encode(static.joinpath(name).read_bytes()).decode() for name in modules}
    imports = {f"thetafield/{name}": f"data:text/javascript;base64,{text}" for name, text in content.items()}
    parts = {
        "STYLE": static.joinpath("page.css").read_text(encoding="utf-8"),
        "IMPORTS": json.dumps({"imports": imports}),
        "DESCRIPTION": json.dumps(description, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c"),
        "WEIGHTS": weights,
    }
    page = static.joinpath("page.html").read_text(encoding="utf-8")
    for name, content in parts.items():
        page = page.replace(f"{{{{{name}}}}}", content)
    return page
