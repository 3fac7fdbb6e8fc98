"""The documentation site: its pages run as they stand, it builds without a warning, and it loads nothing from afar."""

import os
import re
import shutil
import socket
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from thetafield.datasets.base import DATASETS
from thetafield.datasets.root import AbsentError, data_root
from thetafield.datasets.weather_aus import SOURCE
from thetafield.methods.base import METHODS
from thetafield.predictors.base import PREDICTORS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
RUNNER = DOCS / "theme" / "run_page.py"
PAGES = ("tutorial-two-moons", "tutorial-table", "compare", "extending", "benchmarks")
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}

spec = spec_from_file_location("run_page", RUNNER)
run_page = module_from_spec(spec)
sys.modules["run_page"] = run_page
spec.loader.exec_module(run_page)


def run(page, folder, **variables):
    words = [sys.executable, "-W", "error", RUNNER, page, "--out", folder]
    env = os.environ | {"OMP_NUM_THREADS": "1", "THETAFIELD_DATA": str(folder)} | variables
    return subprocess.run(words, capture_output=True, text=True, env=env, timeout=400)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_and_prints_what_it_shows(name, tmp_path):
    done = run(DOCS / f"{name}.md", tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_tutorial_on_rain_runs_where_its_data_are(tmp_path):
    """Its service listens on a free port, since others may run the page on this machine too."""
    try:
        SOURCE.paths()
    except AbsentError as absent:
        pytest.skip(str(absent))
    if find_spec("uvicorn") is None:
        pytest.skip("the service needs the extra: pip install 'thetafield[serve]'")
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
    done = run(DOCS / "tutorial-rain.md", tmp_path, THETAFIELD_DATA=str(data_root()), PORT=str(port))
    assert done.returncode == 0, done.stderr


def test_the_home_page_shows_the_example_of_the_readme():
    """That one is run by test_documents; what the home page shows besides would have to be run here."""
    (example,) = [
        block.text for block in run_page.blocks((DOCS / "index.md").read_text()) if block.language == "python"
    ]
    assert example in (ROOT / "README.md").read_text(), "docs/index.md: copy the example of README.md"


def test_a_page_that_shows_other_words_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint('error 3.25 %')\n```\n\n```text\nerror 4.5 %\n```\n")
    assert run(page, tmp_path).returncode == 0
    page.write_text(page.read_text().replace("error 4.5 %", "mistakes 3.25 %"))
    done = run(page, tmp_path)
    assert done.returncode == 1 and "but this was printed:\n\nerror 3.25 %" in done.stderr
    page.write_text("```sh\nfalse\n```\n")
    assert "exit code 1" in run(page, tmp_path).stderr


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a 1\n", "a   -2.5e-3\n", True),
        ("[0.2,0.8]\n", "[1.7e-09,1.0]\n", True),
        ("a\n", "b\n", False),
        ("…\nend\n", "one\ntwo\nend\n", True),
        ("…\nend\n", "end\n", True),
        ("begin\n…\n", "begin\nmore\n", True),
        ("begin\n…\nend\n", "begin\n", False),
    ],
)
def test_outputs_are_compared_up_to_numbers(shown, printed, expected):
    assert run_page.same(shown, printed) is expected


def test_everything_registered_is_in_the_reference():
    for registry, page in ((METHODS, "methods"), (DATASETS, "datasets"), (PREDICTORS, "predictors")):
        shown = re.findall(r"^      heading: (\S+)$", (DOCS / f"api/{page}.md").read_text(), re.MULTILINE)
        own = {name for name, entry in registry if entry.__module__.startswith("thetafield.")}
        assert set(shown) == own, f"docs/api/{page}.md lacks {own - set(shown)} or has too much: {set(shown) - own}"


needs_mkdocs = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings")),
    reason="the site is built by mkdocs-material and mkdocstrings: pip install 'thetafield[docs]'",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
    return folder


class Parsed(HTMLParser):
    """Collects what a browser fetches by itself, links to other pages, and places to link to."""

    def __init__(self, page):
        super().__init__()
        self.loads, self.links, self.places = [], [], set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.places |= {attributes[key] for key in ("id", "name") if key in attributes}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        relation = set((attributes.get("rel") or "").split())
        if tag == "link" and relation - {"next", "prev", "canonical", "alternate", "edit"}:
            self.loads.append(attributes["href"])
        elif attributes.get(LOADED.get(tag)):
            self.loads.append(attributes[LOADED[tag]])
        assert "srcset" not in attributes


@needs_mkdocs
def test_the_site_loads_nothing_from_the_network(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loads = Parsed(page).loads
        assert loads
        for load in loads:
            parts = urlsplit(load)
            if parts.scheme == "data":
                continue
            assert not parts.scheme and not parts.netloc, f"{page.name} loads {load}"
            # The page of unknown addresses may be asked for from any folder, so its paths begin at the root.
            place = site if parts.path.startswith("/") else page.parent
            assert (place / unquote(parts.path).lstrip("/")).is_file(), f"{page.name} loads {load}, which is not there"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "@import" not in text
        assert not re.findall(r"url\(\s*[\"']?(?:https?:)?//", text), sheet


@needs_mkdocs
def test_links_lead_somewhere(site):
    """Strict building looks at pages, and not at places within those that are made from docstrings."""
    pages = {page.resolve(): Parsed(page) for page in site.rglob("*.html") if page.name != "404.html"}
    for page, parsed in pages.items():
        for link in parsed.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page.name} links to {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].places, f"{page.name} links to {link}: no such place"


@needs_mkdocs
def test_pages_are_completed_from_the_repository(site):
    """Links out of docs/ become paths, and tables of suites and commands are those of the package."""
    text = (site / "neurallio.html").read_text(encoding="utf-8")
    assert "<code>results/runs.jsonl.xz</code>" in text and "../results" not in text
    text = (site / "benchmarks.html").read_text(encoding="utf-8")
    assert all(f"<code>{path.stem}</code>" in text for path in (ROOT / "src/thetafield/bench/suites").glob("*.toml"))
    text = (site / "api/index.html").read_text(encoding="utf-8")
    assert all(f"<code>thetafield {command}</code>" in text for command in ("train", "data fetch", "bench", "report"))


@needs_mkdocs
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium to open the pages")
@pytest.mark.parametrize(
    "name",
    [
        "theory.html",
        "beyond.html",
        "tutorial-two-moons.html",
        "tutorial-table.html",
        "tutorial-rain.html",
        "api/methods.html",
    ],
)
def test_a_browser_shows_the_page_from_the_disk(site, name, tmp_path):
    """Formulas are set, pictures are there, nothing is logged, and nothing is wider than the screen."""
    script = """<script>addEventListener("load", () => setTimeout(() => {
      const all = selector => [...document.querySelectorAll(selector)];
      document.body.dataset.plain = all(".arithmatex").filter(e => !e.querySelector(".katex-html")).length;
      document.body.dataset.formulas = all(".arithmatex").length;
      document.body.dataset.missing = all("img").filter(i => i.naturalWidth === 0).length;
      document.body.dataset.spill = document.documentElement.scrollWidth - innerWidth;
    }, 300))</script></body>"""
    page = site / name
    probe = page.with_name(f"probe-{page.name}")
    probe.write_text(page.read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update"
    flags += " --disable-sync --no-first-run --enable-logging=stderr --v=0 --virtual-time-budget=5000 --dump-dom"
    words = ["chromium", *flags.split(), f"--user-data-dir={tmp_path}", "--window-size=500,900", probe.as_uri()]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    finally:
        probe.unlink()
    assert done.returncode == 0
    found = dict(re.findall(r'data-(plain|formulas|missing|spill)="(-?\d+)"', done.stdout))
    assert found["plain"] == found["missing"] == "0" and int(found["spill"]) <= 0, found
    assert (int(found["formulas"]) > 0) == (name in ("theory.html", "beyond.html"))
    assert "CONSOLE" not in done.stderr, done.stderr
