"""The whole report of a store: every table and figure, on a page that stands alone and works in a browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch

from reported import LAWS, Builder, with_gaps
from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.source import state_of
from thetafield.evaluation.looks import look_at
from thetafield.files import write_json
from thetafield.report.demo import QUICK_OPTIONS
from thetafield.report.figures.digits import digit_domains
from thetafield.report.store import kept as kept_module
from thetafield.report.store.drawing import drawn, shares
from thetafield.report.store.kept import Kept
from thetafield.report.store.picture import Picture
from thetafield.report.store.reading import read_store
from thetafield.report.store.sections import Section, Wanted, sections
from thetafield.report.store.write import Asked, write_report
from thetafield.training.train import train_field

FIGURES = [
    *("paper-table1-overview", "paper-table1-distance", "paper-table1-relevance", "paper-table1-trust"),
    *("real-overview", "real-distance", "real-places", "imperfection", "convergence", "sensitivity", "scaling"),
    *("descriptor-space", "error-maps", "boundaries", "manifold", "directions"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A store with something of every suite, its report, and what the command printed."""
    folder = tmp_path_factory.mktemp("report")
    builder = Builder(folder / "store")
    rng = np.random.default_rng(0)
    data = DATASETS["two-moons"](0)
    for method, level in (("erm", 34), ("erm-d", 13), ("neurallio", 3)):
        for seed in range(2):
            errors = np.clip(rng.normal(level, level / 5, 591), 0, 100)
            extra = {"relevance": {"scale": 0.1 + seed / 10, "rotation": 1.0}}
            extra["trust"] = {"trust": np.clip(1 - errors / 60, 0, 1).tolist(), "correlation": 0.7}
            spec = builder.trial("paper-table1", "two-moons", method, seed, errors, extra=extra)
            if seed == 0:
                model = train_field(data.train, method, seed=0, options=QUICK_OPTIONS[method], device="cpu").model
                write_json(builder.path / "looks" / f"{spec.key}.json", look_at(model, data, 0).record())
    with_gaps(builder)
    for suite, name, levels in (
        ("imperfection", "noise_coordinates", (1, 2, 5)),
        ("imperfection", "redundant_coordinates", (1, 2)),
        ("imperfection", "dropped_coordinates", (0, 4)),
        ("convergence", "num_train", (10, 20)),
        ("scaling", "num_train", (20, 100)),
    ):
        for level in levels:
            losses = [{"phase": "joint", "epoch": i + 1, "loss": 1 / (i + 1)} for i in range(5)]
            extra = {"train_seconds": 1.0 + level}
            builder.trial(
                suite,
                "two-moons",
                "neurallio",
                0,
                [5 + level],
                dataset_options={name: level},
                history=losses,
                extra=extra,
            )
    for epochs in (10, 20):
        losses = [{"phase": "joint", "epoch": i + 1, "loss": 2 / (i + 1)} for i in range(epochs)]
        builder.trial("convergence", "two-moons", "neurallio", 0, [9.0], options={"epochs": epochs}, history=losses)
    for value in (8, 16):
        builder.trial("sensitivity", "two-moons", "neurallio", 0, [4.0], options={"latent_dim": value})
    for method in ("erm", "neurallio"):
        errors = [10.0, 12.0, 9.0, 14.0, 11.0, 8.0, 13.0, 10.0, 9.5, 7.0, 12.5, 10.5, 8.5]
        builder.trial("real", "two-moons-time", method, 0, errors, dataset_options={"num_test": 13})
        builder.trial("runtime", "two-moons-time", method, 0, errors)
    builder.trial("laws", "two-moons", "neurallio", 0, [3.0], extra={"laws": LAWS}, options={"gate": True})
    for size in (1000, 10000):
        extra = {"train_seconds": size / 1e5}
        builder.trial(
            "scaling", "two-moons-wide", "neurallio", 0, [5.0], dataset_options={"parameters": size}, extra=extra
        )
    # A folder name that has to be quoted in a command.
    out = folder / "the page"
    asked = Asked(out, folder / "docs" / "results.md", folder / "docs" / "images", worst=True)
    return folder, json.loads(json.dumps(write_report(builder.path, asked).record()))


@pytest.fixture(scope="module")
def page(report):
    return Path(report[1]["page"]).read_text(encoding="utf-8")


class Resources(HTMLParser):
    """Collects tags, what they load, names, and pictures."""

    def __init__(self):
        super().__init__()
        self.loads, self.tags, self.ids, self.pictures, self.links = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.loads += [attributes[key] for key in ("src", "srcset", "data", "poster", "action") if key in attributes]
        self.links += [attributes["href"]] if "href" in attributes else []
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.pictures += [attributes] if tag == "img" else []


@pytest.fixture(scope="module")
def parsed(page):
    parser = Resources()
    parser.feed(page)
    return parser


def test_methods_that_share_no_seed_make_a_report(builder, tmp_path):
    builder.trial("real", "two-moons", "erm", 0, [1.0, 2.0])
    builder.trial("real", "two-moons", "neurallio", 1, [1.0, 2.0])
    parts = sections(builder.read(), Wanted())
    assert not [picture for part in parts for picture in part.pictures if picture.name == "real-distance"]


def test_page_stands_alone(page, parsed):
    assert parsed.loads and all(load.startswith("data:") for load in parsed.loads)
    # Links go to places on the page; the icon is empty.
    assert all(link.startswith("#") or link == "data:," for link in parsed.links)
    assert all(link[1:] in parsed.ids for link in parsed.links if link.startswith("#"))
    assert "@import" not in page and "url(" not in page.partition("</style>")[0]
    assert len(parsed.ids) == len(set(parsed.ids)) and len(page) < 6_000_000


def test_page_says_what_falls_short_first(page):
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert heads[0] == "What falls short" and heads[-1].startswith("How this page")
    assert "2-Moons" in page.partition("What falls short</h2>")[2].partition("</section>")[0]


def test_page_has_all_tables_and_figures(page, parsed, report):
    figures = [name.removeprefix("figure-") for name in parsed.ids if name.startswith("figure-")]
    assert [name for name in FIGURES if name not in figures] == []
    assert all(len(one["alt"]) > 30 for one in parsed.pictures)
    tables = {Path(path).stem for path in report[1]["tables"]}
    assert {name.removeprefix("table-") for name in parsed.ids if name.startswith("table-")} == tables
    assert {"paper-table1", "paper-table1-worst", "paper-table1-paired", "imperfection-noise", "laws"} <= tables
    assert "paper 3.2 ± 1.2" in page and "bench paper-table1 --store" in page


def test_digits_are_shown_where_their_files_are(parsed, report):
    here = state_of(DATASETS["mnist"]).word == "present"
    assert ("figure-mnist-domains" in parsed.ids) is here and ("mnist-domains" in report[1]["not_drawn"]) is not here


def test_a_digit_of_every_domain_is_drawn():
    """Of 20 training domains 18 are shown, of two test domains both, each with its label and where it is."""
    groups = {}
    for name, count in (("train", 20), ("test", 2)):
        x, y = torch.arange(count).repeat_interleave(2), torch.arange(2 * count) % 10
        pictures = (x / 20)[:, None, None, None].expand(-1, 3, 28, 28).numpy()
        groups[name] = DomainSet.from_arrays(pictures, y.numpy(), domain=x.numpy(), z=np.full((count, 3), 25.0))
    figure = digit_domains(Dataset("mnist", groups["train"], {"random": groups["test"]}))
    shown = [ax for ax in figure.axes if ax.images]
    assert len(shown) == 20 and [part.get_suptitle() for part in figure.subfigs] == [
        "18 of 20 training domains",
        "2 of 2 test domains",
    ]
    assert [round(20 * float(ax.images[0].get_array().max())) for ax in shown] == [*range(18), 0, 1]
    assert [ax.get_title() for ax in shown[:2]] == ["domain 1, a 0", "domain 2, a 2"]
    assert shown[0].get_xlabel() == "90°, 50 % blue, 24 px"


def test_what_is_not_drawn_is_said(page, report):
    """MNIST is not here, or has other domains than the made-up result; 2-Moons has a map of its own."""
    undrawn = report[1]["not_drawn"]
    assert "mnist" in undrawn["paper-table1-places"] and 'id="absent-paper-table1-places"' in page
    assert "trust" in undrawn["real-trust"]


def test_files_are_there_and_counted(report):
    written = report[1]
    assert all(Path(path).is_file() for path in (*written["tables"], *written["figures"], written["document"]))
    assert {Path(path).suffix for path in written["tables"]} == {".md", ".tex", ".csv"}
    assert written["trials"] == len(list((report[0] / "store" / "results").iterdir()))
    assert written["gaps"] == {"data": 3, "failed": 1, "missing": 2, "needs": 6}


def test_document_has_tables_commands_and_figures(report):
    text = Path(report[1]["document"]).read_text(encoding="utf-8")
    assert text.index("## What falls short") < text.index("## Paper-Table1")
    assert "thetafield bench paper-table1 --store" in text and "| Method |" in text
    links = re.findall(r'<img src="([^"]+)"', text)
    assert len(links) >= 10 and all((report[0] / "docs" / link).is_file() for link in links)


def test_report_is_a_pure_function_of_the_store(report, tmp_path):
    folder = report[0]
    again = write_report(folder / "store", Asked(markdown=tmp_path / "results.md"))
    write_report(folder / "store", Asked(markdown=tmp_path / "again.md"))
    text = (tmp_path / "results.md").read_text()
    assert text.replace("results.md", "") == (tmp_path / "again.md").read_text().replace("again.md", "")
    assert "figures" not in again.files and "<img" not in text


def test_dear_figures_are_kept_while_nothing_changes(report, monkeypatch):
    folder, store = report[0] / "the page" / "figures", read_store(report[0] / "store")
    pictures = {one.name: one for part in sections(store, Wanted()) for one in part.pictures}
    kept = Kept(folder)
    assert kept.find(pictures["manifold"]).uri == Picture.drawn(pictures["manifold"]).embedded.uri
    assert kept.find(pictures["imperfection"]) is None  # cheap ones are drawn every time
    assert kept.find(replace(pictures["manifold"], content_digest="another field")) is None
    monkeypatch.setattr(kept_module, "_code", lambda: "other code")
    assert kept.find(pictures["manifold"]) is None
    monkeypatch.undo()
    file = folder / pictures["manifold"].file
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    assert kept.find(pictures["manifold"]) is None
    file.write_bytes(content)


def test_a_share_that_fails_elsewhere_fails_here():
    def broken():
        raise RuntimeError("a figure that cannot be drawn")

    good = Section("a", "A", "", pictures=(Picture("a", "A", "", "", reason="nothing to draw"),))
    bad = Section("b", "B", "", pictures=(Picture("b", "B", "", "", draw=broken),))
    assert drawn([good])[0].pictures[0].embedded is None
    with pytest.raises(RuntimeError, match="cannot be drawn"):
        drawn([good, bad, bad])
    assert shares([1, 1, 1, 1]) == ([0, 2], [1, 3])


FRAME = """<!doctype html><body><iframe src="index.html" style="width:WIDTHpx;height:900px;border:0"></iframe><script>
addEventListener("load", () => setTimeout(() => {
  document.body.dataset.found = document.querySelector("iframe").contentDocument.body.dataset.found;
}))</script></body>"""


@pytest.mark.parametrize("width", [390, 1360])
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium to open the page")
def test_browser_shows_everything_sorts_and_logs_nothing(page, parsed, tmp_path, width):
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update"
    flags += " --disable-sync --no-first-run --enable-logging=stderr --v=0 --dump-dom"
    probe = tmp_path / "index.html"
    # The probe clicks a head of the main table twice and writes down what came of everything.
    script = """<script>addEventListener("load", () => {
      const drawn = [...document.images].filter(i => i.complete && i.naturalWidth > 0).length;
      const table = document.getElementById("table-paper-table1");
      const names = () => [...table.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].textContent.trim());
      const shown = [...document.querySelectorAll("table")].filter(t => t.offsetHeight > 20).length;
      const button = table.tHead.rows[0].cells[1].querySelector("button"), states = [names()];
      for (let i = 0; i < 3; i++) { button.click(); states.push(names()); }
      const wide = document.documentElement.scrollWidth - innerWidth;
      document.body.dataset.found = JSON.stringify({drawn, shown, wide, states,
        copies: [...document.querySelectorAll("button.copy")].filter(b => !b.hidden).length});
    })</script></body>"""
    probe.write_text(page.replace("</body>", script), encoding="utf-8")
    # A window of the browser is 500 pixels wide at least; a frame in it may be as narrow as a telephone.
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    command = ["chromium", *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,900"]
    command += ["--allow-file-access-from-files", "--virtual-time-budget=20000"]
    done = subprocess.run([*command, frame.as_uri()], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "CONSOLE" not in done.stderr
    found = json.loads(re.search(r'data-found="([^"]*)"', done.stdout)[1].replace("&quot;", '"'))
    assert found["drawn"] == len(parsed.pictures) and found["shown"] == parsed.tags.count("table")
    assert found["wide"] <= 0 and found["copies"] > 5
    first, rising, falling, last = found["states"]
    assert first == last and len(first) > len(rising)  # the parts' heads hide while rows are sorted
    assert rising.index("NeuralLio") < rising.index("ERM") and falling.index("NeuralLio") > falling.index("ERM")
