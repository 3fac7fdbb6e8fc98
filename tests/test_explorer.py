"""The explorer's page in a real browser: its numbers are Python's, and it works by hand, by keys and on a phone."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from threading import Thread
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pytest
import torch

from explored import CASES, calibrated, classifier, frame, image_classifier, regressor
from thetafield.datasets.base import Registered
from thetafield.datasets.own_table import OwnTable
from thetafield.errors import DataError, FormatError, NeedError, OptionError
from thetafield.explorer import Saved, explorer_page, open_saved
from thetafield.explorer.arrays import Arrays
from thetafield.explorer.description import describe_model
from thetafield.explorer.inputs import find_ranges
from thetafield.explorer.server import page_server
from thetafield.fields.direct import Answers
from thetafield.fields.doubt import trust_at
from thetafield.fields.model import FieldModel
from thetafield.fields.storage import save_model
from thetafield.training.train import train_field

CHROMIUM = shutil.which("chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright to open pages")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs the browser chromium to open pages")
MOONS = {"epochs": 2, "base_steps": 20, "tune_steps": 5, "samples": 20, "select": False, "blend": 3}


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """The folder of a trial of 2-Moons as `thetafield train` leaves it, trained for a moment and without scores."""
    out = tmp_path_factory.mktemp("moons") / "trial"
    trained = train_field(Registered("two-moons").build(0).train, "neurallio", seed=0, options=MOONS, device="cpu")
    save_model(trained.model, out / "field")
    (out / "result.json").write_text(json.dumps({"dataset": "two-moons", "method": "neurallio", "seed": 0}))
    return out


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(browser, tmp_path):
    """Open HTML from a file, and see to it that nothing is logged and nothing asked for."""
    wrong, pages = [], []

    def open_page(html, width=1280, height=900, scheme="light"):
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(html, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        pages.append(page)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or wrong.append(request.url))
        page.goto(path.as_uri())
        settle(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not wrong


def settle(page):
    """Wait until the page has drawn its first fine picture; its own rules forbid playwright's way of waiting."""
    for _ in range(200):
        if page.evaluate("!!window.thetafield && window.thetafield.frames.some(frame => frame.fine)"):
            return
        page.wait_for_timeout(50)
    pytest.fail("the page drew nothing")


def descriptors(model, count=6):
    """Return descriptors inside the training range and a little beyond it."""
    low, high = model.scaler.low.double().numpy(), model.scaler.high.double().numpy()
    share = np.random.default_rng(5).uniform(-0.05, 1.05, (count, len(low)))
    return low + share * (high - low)


def check_numbers(page, model, inputs, tolerance=1e-4):
    """Compare θ, answers and trust with Python's; trees have no θ."""
    for z in descriptors(model):
        tensor = torch.tensor(z, dtype=torch.float32)
        theta = model.theta(tensor).double().numpy() if isinstance(model, FieldModel) else []
        np.testing.assert_allclose(
            page.evaluate("z => thetafield.at(z)", z.tolist()), theta, rtol=tolerance, atol=tolerance
        )
        for x in inputs:
            expected = model.row_outputs(torch.tensor(x)[None], tensor[None])[0].numpy()
            found = page.evaluate("([x, z]) => thetafield.predict(x, z)", [x.tolist(), z.tolist()])
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        trust = float(trust_at(model, tensor[None])[0])
        assert page.evaluate("z => thetafield.trust(z)", z.tolist()) == pytest.approx(trust, abs=tolerance)


@needs_browser
@pytest.mark.parametrize("name", CASES)
def test_page_computes_what_python_computes(name, show):
    model = classifier(name).model_
    page = show(explorer_page(Saved(model)))
    inputs = np.array([[0.5, 80.0], [-3.0, 120.0], [2.0, 101.0]])
    told = "computed exactly" if isinstance(model, FieldModel) else "Trees have no parameters"
    assert told in page.inner_text("#footer")
    check_numbers(page, model, inputs)


@needs_browser
@pytest.mark.parametrize("width", [0.7, None])
def test_calibrated_trust_reads_doubts_as_python_does(show, width):
    model = calibrated(width).model_
    check_numbers(show(explorer_page(Saved(model))), model, [np.array([0.5, 80.0])])


@needs_browser
def test_two_moons(trial, show):
    saved = open_saved(trial)
    html = explorer_page(saved)
    assert len(html.encode()) < 2_000_000
    page = show(html)
    check_numbers(page, saved.model, np.array([[0.3, -0.7], [4.0, 2.0]]))
    assert page.inner_text("h1") == "NeuralLio on two-moons"
    charts = page.evaluate("thetafield.charts(thetafield.state().z)")
    assert len(charts) == 3 and sum(one["share"] for one in charts) == pytest.approx(1)
    assert page.locator("#charts tbody tr").count() >= 3


@needs_browser
def test_dragging_moves_z_and_what_is_shown(trial, show):
    page = show(explorer_page(open_saved(trial)))
    box = page.locator("#plane").bounding_box()
    before, said = page.evaluate("thetafield.state().z"), page.inner_text("#trust b")
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.2, steps=6)
    page.mouse.up()
    page.wait_for_timeout(300)
    after = page.evaluate("thetafield.state().z")
    assert after[0] > before[0] + 10 and after[1] > before[1] + 10
    assert page.inner_text("#trust b") != said
    shown = page.evaluate("[...document.querySelectorAll('#descriptors input[type=number]')].map(i => i.valueAsNumber)")
    np.testing.assert_allclose(shown, after, rtol=1e-3)
    # The page goes no farther than its own range.
    page.mouse.down()
    page.mouse.move(box["x"] + 5000, box["y"] - 5000)
    page.mouse.up()
    model = open_saved(trial).model
    assert (np.array(page.evaluate("thetafield.state().z")) <= 1.11 * model.scaler.high.numpy()).all()


@needs_browser
@pytest.mark.parametrize("name", ["blended", "hypernet", "trees"])
def test_what_is_shown_after_a_drag_is_what_python_says(name, show):
    model = classifier(name).model_
    page = show(explorer_page(Saved(model)))
    box = page.locator("#plane").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    for way in ((0.3, 0.7), (0.8, 0.3)):
        page.mouse.move(box["x"] + box["width"] * way[0], box["y"] + box["height"] * way[1], steps=4)
        page.wait_for_timeout(300)
        state = page.evaluate("thetafield.state()")
        z = torch.tensor([state["z"]])
        trust = float(trust_at(model, z)[0])
        assert float(page.inner_text("#trust b").removesuffix(" %")) == pytest.approx(100 * trust, abs=0.06)
        outputs = model.row_outputs(torch.tensor([state["row"]]).float(), z)[0].double()
        bars = page.locator("#answer .bar")
        told = {bar.split()[0]: float(bar.split()[-2]) for bar in bars.all_inner_texts()}
        expected = dict(zip(model.classes.tolist(), (100 * outputs.softmax(0)).tolist(), strict=True))
        assert told == pytest.approx(expected, abs=0.06)  # one digit behind the point is shown
        assert page.inner_text("#answer .big") == max(expected, key=expected.get)
    page.mouse.up()


@needs_browser
def test_a_box_left_without_a_number_shows_where_z_is(trial, show):
    page = show(explorer_page(open_saved(trial)))
    box = page.locator("#descriptors input[type=number]").first
    before = box.input_value()
    box.fill("")
    box.blur()
    page.wait_for_timeout(300)
    assert box.input_value() == before


@needs_browser
def test_keys_move_z_and_every_control_is_named(trial, show):
    page = show(explorer_page(open_saved(trial)))
    start = page.evaluate("thetafield.state().z")
    page.focus("#plane")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key in ("ArrowRight", "Shift+ArrowUp"):
        page.keyboard.press(key)
    moved = page.evaluate("thetafield.state().z")
    assert moved[0] == pytest.approx(start[0] + 0.5, abs=0.1) and moved[1] == pytest.approx(start[1] + 2.5, abs=0.2)
    page.keyboard.press("Home")
    assert page.evaluate("thetafield.state().z") == pytest.approx(start)
    page.wait_for_timeout(300)
    assert re.search(r"scale .*trust", page.inner_text("#live"))
    nameless = """[...document.querySelectorAll("button, input, select, [tabindex]")].filter(
        node => !(node.getAttribute("aria-label") || node.textContent.trim() || node.closest("label")))"""
    assert page.evaluate(f"{nameless}.length") == 0
    order = []
    for _ in range(4):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.tagName"))
    assert "BODY" not in order


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_has_no_sideways_scroll(trial, show, scheme):
    for html in (explorer_page(open_saved(trial)), explorer_page(Saved(regressor().model_))):
        page = show(html, width=360, height=740, scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@needs_browser
def test_colours_follow_the_system_and_the_switch(trial, show):
    page = show(explorer_page(open_saved(trial)), scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.click("#theme")
    assert page.evaluate(paper) != dark and "light" in page.inner_text("#theme")
    page.click("#theme")
    assert page.evaluate(paper) == dark


@needs_browser
def test_table(show, tmp_path):
    model = regressor().model_
    encoded = model.encoder.inputs(pa.Table.from_pandas(frame()))[:3]
    page = show(explorer_page(Saved(model)))
    check_numbers(page, model, encoded)
    assert "medians of the training rows" in page.inner_text("#answer")
    row = page.evaluate("thetafield.state().row")
    names = list(model.recipe.features)
    assert row[names.index("heat")] == pytest.approx(frame()["heat"].median(), abs=1e-3)
    assert row[names.index("damp missing")] == 0
    before = page.inner_text("#answer .big")
    page.get_by_label("heat", exact=True).fill("30")
    page.get_by_label("heat", exact=True).press("Enter")
    page.get_by_label("sky").select_option("snow")
    page.get_by_label("day").fill("2021-07-01")
    page.get_by_text("missing").click()
    page.wait_for_timeout(300)
    row = np.array(page.evaluate("thetafield.state().row"))
    table = frame().iloc[:1].assign(heat=30.0, damp=np.nan, sky="snow", day=np.datetime64("2021-07-01"))
    np.testing.assert_allclose(row, model.encoder.inputs(pa.Table.from_pandas(table))[0], atol=1e-3)
    assert page.inner_text("#answer .big") != before
    assert page.locator(".curves figure").count() == 2
    # Three descriptors: any two are axes.
    page.get_by_label("x axis").select_option(label="altitude")
    page.wait_for_timeout(300)
    state = page.evaluate("thetafield.state()")
    assert state["x"] == 2 and state["y"] != 2


@needs_browser
def test_trees_on_a_table(show):
    """Numbers at which trees part the training rows are compared as Python compares them, to the last bit."""
    model = regressor("trees").model_
    page = show(explorer_page(Saved(model)))
    rows = model.encoder.inputs(pa.Table.from_pandas(frame()))
    check_numbers(page, model, rows[:40])
    forest = model.answers.arrays
    inner = forest["left"] != torch.arange(len(forest["left"]))
    for column in range(2):  # raw values that come to lie as near to a threshold as single precision allows
        here = inner & (forest["feature"] == column)
        shift, scale = (float(part[column]) for part in (model.inputs.shift, model.inputs.scale))
        for threshold in forest["threshold"][here].tolist()[:20]:
            row = rows[0].copy()
            row[column] = np.float32(threshold * scale + shift)
            z = model.scaler.low
            expected = float(model.row_outputs(torch.tensor(row)[None], z[None])[0])
            [found] = page.evaluate("([x, z]) => thetafield.predict(x, z)", [row.tolist(), z.tolist()])
            assert found == pytest.approx(expected, rel=1e-4)
    assert page.locator("#surface-card").is_hidden() and page.locator(".curves figure").count() > 0
    assert "Trees answer for all domains at once" in page.inner_text("#charts")
    moved = page.inner_text("#answer .big")
    page.evaluate("z => thetafield.move(z)", model.scaler.high.tolist())
    page.wait_for_timeout(300)
    assert page.inner_text("#answer .big") != moved


@needs_browser
def test_rows_of_a_file_can_be_taken(show, tmp_path):
    frame().to_csv(tmp_path / "rows.csv", index=False)
    page = show(explorer_page(Saved(regressor().model_), rows=tmp_path / "rows.csv"))
    assert "the given rows" in page.inner_text("#answer")
    page.get_by_label("A row of the table").select_option("4")
    page.wait_for_timeout(200)
    heat = list(regressor().model_.recipe.features).index("heat")
    assert page.evaluate("thetafield.state().row")[heat] == pytest.approx(frame()["heat"][4], abs=1e-4)


def test_a_typical_row_has_a_category_and_a_day_of_the_data():
    model, names = regressor().model_, list(regressor().model_.recipe.features)
    table = frame().iloc[:9].assign(sky=["snow"] * 4 + ["sun"] * 3 + ["rain"] * 2)  # none of them in half of the rows
    rows = model.encoder.inputs(pa.Table.from_pandas(table))
    start = find_ranges(model, rows, "these").start
    assert [name for name in names if name.startswith("sky=") and start[names.index(name)] == 1] == ["sky=snow"]
    assert start[names.index("sky=sun")] == start[names.index("sky=rain")] == 0
    day = [names.index(name) for name in names if name.startswith("day ")]
    assert any(np.array_equal(start[day], row[day]) for row in rows)
    damp = [names.index(name) for name in ("damp", "damp missing")]
    np.testing.assert_allclose(start[damp], [table["damp"].median(), 0])
    alone = find_ranges(model, None, "").start[day]  # without rows, too, season and trend are of one day
    assert alone[:2] @ alone[:2] == pytest.approx(1)


def test_controls_end_where_the_data_of_a_trial_end(tmp_path):
    table = frame().assign(heat=lambda rows: np.exp(rows["heat"] / 6))  # above 0, and three deviations reach below it
    table.to_csv(tmp_path / "rows.csv", index=False)
    columns = {"target": "load", "domain": "station", "descriptors": ["lat", "lon", "altitude"], "holdout": None}
    own = OwnTable(str(tmp_path / "rows.csv"), "load", "station", ("lat", "lon", "altitude"), holdout=None)
    model = train_field(own.build(0).train, "erm", seed=0, options={"steps": 3}, device="cpu", standardise=True).model
    trial = {"dataset": "rows.csv", "seed": 0, "dataset_options": {"path": own.path, **columns}}
    heat = list(model.recipe.features).index("heat")
    inputs = describe_model(Saved(model, trial), Arrays(), None, None, [])["inputs"]
    assert inputs["low"][heat] >= table["heat"].min() and inputs["high"][heat] <= table["heat"].max()
    (tmp_path / "rows.csv").unlink()
    inputs = describe_model(Saved(model, trial), Arrays(), None, None, [])["inputs"]
    assert inputs["low"][heat] < 0 and "not known without --rows" in inputs["source"]


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_who_answers_stays_inside_its_card(show, width):
    page = show(explorer_page(Saved(regressor().model_)), width=width)
    card, button = (page.locator(name).first.bounding_box() for name in ("#charts-card", ".who button"))
    assert button["x"] + button["width"] <= card["x"] + card["width"]
    assert (
        page.evaluate(
            "(() => { const box = document.querySelector('.scroll'); return box.scrollWidth - box.clientWidth; })()"
        )
        <= 0
    )


@needs_browser
@pytest.mark.parametrize("method", ["erm-d", "trees"])
def test_images_show_samples_or_say_how_to_get_them(show, method):
    estimator, domains = image_classifier(method)
    saved = Saved(estimator.model_)
    page = show(explorer_page(saved))
    assert "--samples" in page.inner_text("#answer")
    assert page.locator("#surface canvas").count() == (method == "erm-d")

    class WithData(Saved):
        def training_domains(self):
            return domains

    page = show(explorer_page(WithData(estimator.model_), samples=2))
    assert page.locator(".tile").count() == 12
    z = [0.4, 0.6]
    rows = [i * 10 + 5 * k for i in range(6) for k in range(2)]
    expected = estimator.model_.row_outputs(domains.x[rows].float(), torch.tensor([z] * 12)).numpy()
    found = [page.evaluate("([k, z]) => thetafield.answer(k, z)", [k, z]) for k in range(12)]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@needs_browser
def test_server_shows_the_same_page(trial, browser):
    html = explorer_page(open_saved(trial))
    server = page_server(html)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        with urlopen(address) as answer:
            assert answer.read().decode() == html
        page = browser.new_page()
        asked = []
        page.on("request", lambda request: request.url.startswith("data:") or asked.append(request.url))
        page.goto(address)
        settle(page)
        assert asked == [address]
        page.close()
        with pytest.raises(OptionError, match="another one"):
            page_server(html, server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_page_asks_for_nothing(trial):
    html = explorer_page(open_saved(trial))
    assert not re.search(r'(src|href)="(?!data:)', html) and "{{" not in html.partition("<script")[0]
    assert "default-src 'none'" in html


@needs_browser
@pytest.mark.parametrize("name", ["erm-d", "tknets"])
def test_large_fields_come_on_a_grid_with_their_error(name, monkeypatch, show):
    monkeypatch.setattr("thetafield.explorer.description.LARGEST", 1000)
    model = classifier(name).model_
    arrays = Arrays()
    field = describe_model(Saved(model), arrays, None, None, [])["field"]
    assert field["kind"] == "grid" and 0 <= field["error"]["median"] < 0.02
    page = show(explorer_page(Saved(model)))
    assert "interpolated on a grid" in page.inner_text("#footer")
    errors, mean = [], model.theta(torch.tensor(descriptors(model, 200)).float()).double().mean(0).numpy()
    for z in descriptors(model, 30):
        theta = model.theta(torch.tensor(z).float()).double().numpy()
        found = page.evaluate("z => thetafield.at(z)", z.tolist())
        errors.append(np.linalg.norm(found - theta) / max(np.linalg.norm(theta - mean), 1e-9))
    assert np.median(errors) <= 3 * field["error"]["median"] + 1e-3


def run(*words):
    done = subprocess.run([sys.executable, "-m", "thetafield", "explore", *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


def test_command_writes_one_file(trial, tmp_path):
    code, out, _ = run(str(trial), "--export", str(tmp_path / "page.html"))
    assert code == 0 and "MB" in out
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_bad_input_is_one_sentence_and_code_2(trial, tmp_path):
    code, out, err = run(str(tmp_path / "nowhere"), "--export", str(tmp_path / "page.html"))
    assert code == 2 and not out and err.startswith("thetafield: There is no folder") and "\n" not in err
    assert not (tmp_path / "page.html").exists()


class Strange(Answers):
    """What another method may have learned."""

    def __call__(self, x, z):
        return x[:, :1]


def test_what_cannot_be_explored_is_said(trial, tmp_path):
    with pytest.raises(FormatError, match="no saved field"):
        open_saved(tmp_path)
    shutil.copytree(trial, tmp_path / "damaged")
    told = (tmp_path / "damaged" / "result.json").read_text()
    (tmp_path / "damaged" / "result.json").write_text("{")
    with pytest.raises(FormatError, match="damaged"):
        open_saved(tmp_path / "damaged")
    (tmp_path / "damaged" / "result.json").write_text(told)
    strange = replace(regressor("trees").model_, answers=Strange())
    with pytest.raises(NeedError, match=r"can compute fields θ\(z\) and trees, but trees is neither"):
        explorer_page(Saved(strange))
    path = tmp_path / "damaged" / "field" / "field.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(FormatError, match="altered or truncated"):
        open_saved(tmp_path / "damaged")
    model = regressor().model_
    with pytest.raises(NeedError, match="folder of a trial"):
        explorer_page(Saved(model), samples=3)
    with pytest.raises(DataError, match="no file"):
        explorer_page(Saved(model), rows=tmp_path / "none.csv")
    with pytest.raises(OptionError, match="0 or more"):
        explorer_page(Saved(model), samples=-1)
