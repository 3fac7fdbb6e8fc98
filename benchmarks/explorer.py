"""How fast the explorer's page follows: z is dragged across the plane of 2-Moons in headless Chromium.

Run: python benchmarks/explorer.py --out results/cpu/explorer.json
"""

import argparse
import math
import platform
import shutil
import statistics
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Page, sync_playwright

from thetafield import __version__
from thetafield.datasets.base import Registered
from thetafield.explorer import Saved, explorer_page, open_saved
from thetafield.fields.storage import save_model
from thetafield.files import write_json
from thetafield.training.train import train_field

METHODS = {
    "neurallio": {"epochs": 60, "base_steps": 300, "select": False, "blend": 4},
    "erm-d": {"steps": 500},
    "nda": {"steps": 300, "tune_steps": 100},
    "trees": {},
}
LIMIT = 30.0  # milliseconds of a frame while z is dragged, at 64 × 64 answers


def quantile(values: list[float], share: float) -> float:
    """Return the value that a share of all stay below."""
    return sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def drag(page: Page, moves: int) -> dict:
    """Drag z around the plane and return the times of its frames; the first frames, which compile, are left out."""
    box = page.locator("#plane").bounding_box()

    def spot(k: int) -> tuple[float, float]:
        turn = 2 * math.pi * k / 60
        return box["x"] + box["width"] * (0.55 + 0.3 * math.cos(turn)), box["y"] + box["height"] * (
            0.45 + 0.3 * math.sin(2 * turn)
        )

    page.mouse.move(*spot(0))
    page.mouse.down()
    for k in range(40):
        page.mouse.move(*spot(k))
        page.wait_for_timeout(20)
    page.evaluate("thetafield.frames.length = 0")
    for k in range(moves):
        page.mouse.move(*spot(k))
        page.wait_for_timeout(20)
    frames = [frame["ms"] for frame in page.evaluate("thetafield.frames") if not frame["fine"]]
    page.mouse.up()
    return {
        "frames": len(frames),
        "median_ms": round(statistics.median(frames), 2),
        "p95_ms": round(quantile(frames, 0.95), 2),
        "largest_ms": round(max(frames), 2),
        "within_limit": round(sum(ms <= LIMIT for ms in frames) / len(frames), 3),
    }


def main() -> None:
    """Train, export, drag, and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--field", type=Path, help="a trial of 2-Moons instead of one that is trained here")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    domains, record = Registered("two-moons").build(0).train, {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        version = browser.version
        for method, options in METHODS.items():
            if arguments.field is not None and method == "neurallio":
                saved = open_saved(arguments.field)
            else:
                model = train_field(domains, method, seed=0, options=options, device="cpu").model
                save_model(model, Path(name) / method)
                saved = Saved(model, {"dataset": "two-moons", "seed": 0})
            html = explorer_page(saved)
            path = Path(name) / f"{method}.html"
            path.write_text(html, encoding="utf-8")
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            page.wait_for_timeout(4000)  # shading and surface are made between frames; they are done by then
            record[method] = {"page_bytes": len(html.encode()), **drag(page, arguments.moves)}
            page.close()
            print(method, record[method])
        browser.close()
    write_json(
        arguments.out,
        {
            "what": "milliseconds of one frame while z is dragged: θ(z), trust, charts, 64 × 64 answers and all views",
            "limit_ms": LIMIT,
            "methods": record,
            "versions": {
                "thetafield": __version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
                "chromium": version,
            },
            "machine": f"{platform.machine()}, 2 cores shared with other work, headless, no GPU",
        },
    )


if __name__ == "__main__":
    main()
