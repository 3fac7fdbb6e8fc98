"""The live example of the documentation: small, of today's program, and with Python's numbers in a real browser."""

import json
import re
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parent.parent / "docs"
CHROMIUM = shutil.which("chromium")
MAKE = "thetafield train two-moons neurallio --out out/moons && python docs/theme/example_page.py out/moons"

spec = spec_from_file_location("example_page", DOCS / "theme" / "example_page.py")
example_page = module_from_spec(spec)
sys.modules["example_page"] = example_page
spec.loader.exec_module(example_page)
RECORD = json.loads(example_page.RECORD.read_text())


def test_page_is_small_and_has_the_program_of_today():
    page = example_page.PAGE.read_text(encoding="utf-8")
    assert len(page.encode()) < 2_000_000
    assert example_page.renewed(page) == page, "the explorer has changed: python docs/theme/example_page.py"


def test_tutorial_leads_to_it_and_tells_its_error():
    text = (DOCS / "tutorial-two-moons.md").read_text(encoding="utf-8")
    assert f"({example_page.PAGE.relative_to(DOCS)})" in text and f"({example_page.PICTURE.relative_to(DOCS)})" in text
    said = re.search(r"errs on ([\d.]+) % of the samples of unseen domains", text)
    assert said[1] == f"{RECORD['score']:.2f}", "docs/tutorial-two-moons.md tells of another training"


@pytest.mark.skipif(CHROMIUM is None, reason="needs the browser chromium to open the page")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_browser_computes_what_python_computed(width, scheme):
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright to open the page")
    wrong = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or wrong.append(request.url))
        page.goto(example_page.PAGE.as_uri())
        for _ in range(200):  # the page's own rules forbid playwright's way of waiting
            if wrong or page.evaluate("!!window.thetafield && window.thetafield.frames.some(frame => frame.fine)"):
                break
            page.wait_for_timeout(50)
        assert not wrong, f"{wrong}: if its format has changed, make it again: {MAKE}"
        for answer in RECORD["answers"]:
            for x, logits in zip(RECORD["inputs"], answer["logits"], strict=True):
                found = page.evaluate("([x, z]) => thetafield.predict(x, z)", [x, answer["z"]])
                np.testing.assert_allclose(found, logits, rtol=1e-4, atol=1e-4)
            assert page.evaluate("z => thetafield.trust(z)", answer["z"]) == pytest.approx(answer["trust"], abs=1e-4)
        assert page.inner_text("h1") == "NeuralLio on two-moons"
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        browser.close()
    assert not wrong
