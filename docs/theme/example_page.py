"""The live example of the site: the exported page of a trial of 2-Moons, with numbers of Python's to hold it against.

    thetafield train two-moons neurallio --out out/moons
    python docs/theme/example_page.py out/moons

writes docs/examples/two-moons.html, as `thetafield explore out/moons --export` does, and two-moons.json beside it: what
was trained, how it errs, and answers at a few descriptors. Without a folder, the page that is there keeps its numbers
and gets the explorer's program and look of today; where their format has changed, the tests say so, and it has to be
made again. Either way Chromium, by playwright, takes the picture that the tutorial shows.
"""

import argparse
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from thetafield.explorer import Saved, explorer_page, open_saved
from thetafield.explorer.page import assemble
from thetafield.fields.doubt import trust_at
from thetafield.files import write_json, write_whole

PAGE = Path(__file__).parent.parent / "examples" / "two-moons.html"
RECORD = PAGE.with_suffix(".json")
PICTURE = PAGE.parent.parent / "images" / "explorer-two-moons.png"
KEPT = ("dataset", "method", "seed", "metric", "score", "macro", "worst_decile", "train_seconds", "device", "versions")
# Inside the training range, at its corner and beyond it.
DESCRIPTORS = ((12.0, 30.0), (25.0, 25.0), (3.5, 47.0), (44.0, 8.0), (50.0, 50.0), (54.0, -3.0))
INPUTS = ((0.3, -0.7), (4.0, 2.0), (-1.5, 3.0))


def renewed(page: str) -> str:
    """Return a page with the program of today around the numbers that it holds."""
    found = re.search(r'id="description">(.*?)</script>\s*<script[^>]*id="weights">(.*?)</script>', page, re.DOTALL)
    if found is None:
        raise SystemExit(f"{PAGE} is not a page of the explorer: make it again from a trial.")
    return assemble(json.loads(found[1]), found[2])


def record(saved: Saved) -> dict[str, Any]:
    """Return what was trained, and what Python answers."""
    assert saved.trial is not None
    x = torch.tensor(INPUTS)
    answers = []
    for place in DESCRIPTORS:
        z = torch.tensor([place])
        logits = saved.model.row_outputs(x, z.expand(len(x), -1))
        answers.append({"z": place, "logits": logits.tolist(), "trust": float(trust_at(saved.model, z)[0])})
    return {name: saved.trial[name] for name in KEPT} | {"inputs": INPUTS, "answers": answers}


def take_picture() -> None:
    """Take a picture of the upper half of the page, where z is dragged."""
    from playwright.sync_api import sync_playwright
    from run_page import shrink

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page.goto(PAGE.as_uri())
        page.wait_for_timeout(3000)  # until the fine picture and the tint of trust are there
        card = page.locator("#answer-card").bounding_box()
        assert card is not None
        taken = Path(folder) / "page.png"
        page.screenshot(path=taken, clip={"x": 0, "y": 0, "width": 1280, "height": card["y"] + card["height"] + 16})
        browser.close()
        shrink(taken, PICTURE)


def main() -> None:
    """Make the page of a trial, or renew the one that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="Folder of the trial; without it the page is renewed.")
    given = parser.parse_args()
    if given.folder is None:
        write_whole(PAGE, renewed(PAGE.read_text(encoding="utf-8")).encode())
    else:
        saved = open_saved(given.folder)
        write_whole(PAGE, explorer_page(saved).encode())
        write_json(RECORD, record(saved))
    take_picture()


if __name__ == "__main__":
    main()
