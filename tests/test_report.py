"""The demo's page: figures are pure functions, and the page stands alone, whole, and quiet in a browser."""

import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from thetafield.datasets.two_moons import RANGE, moon_domains
from thetafield.errors import NeedError, OptionError
from thetafield.evaluation.looks import DIRECTIONS, believed, class_probabilities, manifold, quarter_domains
from thetafield.report import demo as demo_module
from thetafield.report.demo import DEMO_METHODS, check_extra, result_table, run_demo
from thetafield.report.embed import embed
from thetafield.report.figures import (
    descriptor_space,
    direction_boundaries,
    error_maps,
    parameter_manifold,
    relevance_bars,
    unseen_boundaries,
)
from thetafield.report.figures.moons import size, turn
from thetafield.report.page import law_rows
from thetafield.streams import numpy_stream

FIGURES = ("space", "maps", "relevance", "boundaries", "manifold", "directions")
TITLES = ("ERM", "ERM-D", "NDA", "NeuralLio")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A quick run: its result, its folder, and what it printed."""
    out = tmp_path_factory.mktemp("demo") / "page"
    console = Console(file=io.StringIO(), width=120)
    result = run_demo(out, seed=3, device="cpu", quick=True, console=console)
    return result, out, console.file.getvalue()


@pytest.fixture(scope="module")
def page(demo):
    return (demo[1] / "index.html").read_text(encoding="utf-8")


class Resources(HTMLParser):
    """Collects tags, what they load, and the names and texts that a reader without eyes gets."""

    def __init__(self):
        super().__init__()
        self.loads, self.tags, self.ids, self.pictures = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.loads += [attributes[key] for key in ("src", "href", "srcset", "data", "poster") if key in attributes]
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "img":
            self.pictures.append(attributes)


@pytest.fixture(scope="module")
def parsed(page):
    parser = Resources()
    parser.feed(page)
    return parser


def test_page_loads_nothing(page, parsed):
    assert parsed.loads and all(load.startswith("data:") for load in parsed.loads)
    assert "script" not in parsed.tags
    assert "@import" not in page and "url(" not in page.partition("</style>")[0]
    assert len(page) < 4_000_000


def test_page_has_every_figure_and_method(page, parsed):
    assert [name for name in parsed.ids if name.startswith("figure-")] == [f"figure-{name}" for name in FIGURES]
    assert all(f'<th scope="row">{title}<small>' in page for title in TITLES)
    assert "laws-table" in parsed.ids


def test_page_is_readable_without_eyes(page, parsed):
    assert len(parsed.pictures) == len(FIGURES) and all(len(image["alt"]) > 40 for image in parsed.pictures)
    assert parsed.tags.count("h1") == 1 and parsed.tags.count("main") == 1
    assert len(parsed.ids) == len(set(parsed.ids))
    for label in re.findall(r'aria-labelledby="([^"]+)"', page):
        assert label in parsed.ids


def test_quick_run_is_labelled(page, demo):
    result, _, printed = demo
    assert "Quick run." in page and "quick run" in printed
    assert "--quick" in result.command and result.command in page


def test_record(demo):
    result, out, _ = demo
    record = json.loads((out / "result.json").read_text())
    assert record == result.record()
    keys = {"seed", "device", "quick", "command", "dataset", "metric", "methods", "laws", "versions", "seconds"}
    assert set(record) == keys and record["seed"] == 3
    assert set(record["methods"]) == set(DEMO_METHODS)
    for method in record["methods"].values():
        assert {name: len(group["per_domain"]) for name, group in method["groups"].items()} == {
            "random": 150,
            "mesh": 441,
        }
        assert method["score"] == pytest.approx(
            (150 * method["groups"]["random"]["score"] + 441 * method["groups"]["mesh"]["score"]) / 591
        )
        assert method["options"] and method["train_seconds"] > 0
    assert record["laws"]["num_pairs"] == 150**2
    assert {"thetafield", "torch", "python"} <= set(record["versions"])


def test_nothing_is_left_half_written(demo):
    assert sorted(path.name for path in demo[1].iterdir()) == ["index.html", "result.json"]


def test_terminal_shows_one_table_and_the_page(demo):
    result, out, printed = demo
    assert printed.count("Error on unseen domains") == 1
    assert all(title in printed for title in TITLES)
    assert printed.rstrip().endswith(str(out / "index.html"))
    assert [column.header for column in result_table(result).columns] == [
        "method",
        "random (150)",
        "mesh (441)",
        "worst decile",
        "seconds",
    ]


def draw(name, result):
    data, last = result.dataset, result.runs[-1].model
    if name == "space":
        return descriptor_space(data, result.unseen)
    if name == "maps":
        return error_maps({run.title: run.groups["mesh"] for run in result.runs}, data.test["mesh"], data.train)
    if name == "boundaries":
        some = data.test["random"].select([0, 1])
        return unseen_boundaries({run.title: believed(run.model, some, pixels=8) for run in result.runs[:2]}, some)
    if name == "manifold":
        return parameter_manifold(manifold(last, mesh=6))
    if name == "relevance":
        return relevance_bars(last.relevance_ranges())
    beliefs = {each.title: believed(last, each.domains(0), 8, one_zoom=True) for each in DIRECTIONS}
    return direction_boundaries(beliefs, data.train, seed=0)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_pure(demo, name):
    before = dict(mpl.rcParams)
    first, second = (embed(draw(name, demo[0]), vector=True) for _ in range(2))
    assert isinstance(draw(name, demo[0]), Figure)
    assert first == second and first.uri.startswith("data:image/svg+xml;base64,")
    assert dict(mpl.rcParams) == before


def test_relevance_is_drawn_heaviest_first_with_its_range():
    ax = relevance_bars({"age": (0.2, 0.1, 0.4), "latitude": (1.0, 0.9, 1.0), "size": (0.0, 0.0, 0.0)}).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["latitude", "age", "size"]
    assert [bar.get_width() for bar in ax.patches] == [1.0, 0.2, 0.0]
    assert [0.1, 0.4] in [list(line.get_xdata()) for line in ax.lines]


def test_error_map_shows_scale_from_left_to_right(demo):
    result = demo[0]
    axes = draw("maps", result).axes[0]
    shown = axes.images[0].get_array()
    mesh, errors = result.dataset.test["mesh"].z.numpy(), result.runs[0].groups["mesh"].per_domain
    column, row = 4, 17
    cell = np.flatnonzero((mesh == [column * RANGE / 20, row * RANGE / 20]).all(1))
    assert shown[row, column] == errors[cell]


def test_probabilities_lie_where_the_points_do(demo):
    """A grid's pixel is the model's answer at that point of that domain."""
    model, z = demo[0].runs[-1].model, np.array([[3.0, 40.0], [45.0, 7.0]])
    reach = np.array([3.0, 12.0])
    grid = class_probabilities(model, z, reach, pixels=5)
    points = [[[0.5 * r, -1.0 * r]] for r in reach.tolist()]
    outputs = model.domain_outputs(
        demo[0].dataset.train.x.new_tensor(points), demo[0].dataset.train.z.new_tensor(z.tolist())
    )
    np.testing.assert_allclose(grid[:, 0, 3], outputs.softmax(-1)[:, 0, 1].numpy(), rtol=1e-5)


def test_words_for_a_descriptor_match_the_data():
    """Size and turn, as captions print them, are what moon_domains does to the points."""
    z = np.array([[0.0, 0.0], [30.0, 27.0]])
    plain, moved = (moon_domains(row[None], numpy_stream(0, "words")).x.numpy() for row in z)
    angle = np.deg2rad(turn(z)[1])
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    np.testing.assert_allclose(size(z)[1] * plain @ rotation.T, moved, atol=1e-4)


def test_looked_at_domains_are_one_per_quarter():
    z = numpy_stream(0, "quarters").uniform(0, RANGE, (150, 2))
    picked = z[list(quarter_domains(z))]
    assert (picked > RANGE / 2).tolist() == [[False, False], [False, True], [True, False], [True, True]]


def test_laws_stand_beside_the_papers(demo):
    rows = law_rows(demo[0].laws)
    assert [(row.name, row.paper) for row in rows] == [
        ("Identity", 99.9),
        ("Associativity", 99.1),
        ("Invertibility", 98.3),
    ]


def test_missing_extra_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr(demo_module, "find_spec", lambda name: None)
    with pytest.raises(NeedError, match=r"thetafield\[report\]"):
        check_extra()


def test_a_file_in_the_way_is_said_before_training(tmp_path):
    (tmp_path / "page").write_text("")
    with pytest.raises(OptionError, match="name another folder"):
        run_demo(tmp_path / "page", quick=True)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium to open the page")
def test_browser_shows_every_figure_and_logs_nothing(demo, tmp_path):
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update"
    flags += " --disable-sync --no-first-run --enable-logging=stderr --v=0 --dump-dom"
    probe = tmp_path / "index.html"
    # The page has no script, so the probe adds one that writes down what was drawn and how wide it came out.
    script = """<script>addEventListener("load", () => {
      const drawn = [...document.images].filter(i => i.complete && i.naturalWidth > 0).map(i => i.closest("figure").id);
      document.body.dataset.drawn = drawn.join(" ");
      document.body.dataset.spill = document.documentElement.scrollWidth - innerWidth;
    })</script></body>"""
    probe.write_text((demo[1] / "index.html").read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    done = subprocess.run(
        [
            "chromium",
            *flags.split(),
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=500,900",
            probe.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert f'data-drawn="{" ".join(f"figure-{name}" for name in FIGURES)}"' in done.stdout
    assert int(re.search(r'data-spill="(-?\d+)"', done.stdout)[1]) <= 0
    assert "CONSOLE" not in done.stderr
