"""The verdict on own domains: right where the truth is known, and told alike by page, terminal and files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from compared import SMALL, columns, compared, domain_set, stored, table_file
from thetafield import DomainSet, load_field
from thetafield.cli.explore import explore
from thetafield.compare.fold import Fold
from thetafield.compare.jobs import FoldTrial
from thetafield.data.folds import domain_folds
from thetafield.datasets.own_table import OwnTable
from thetafield.evaluation.scores import evaluate
from thetafield.explorer.saved import open_saved
from thetafield.methods import METHODS
from thetafield.report.compare.page import number_format, render_page, whole_words
from thetafield.report.compare.reading import Comparison
from thetafield.report.compare.terminal import print_comparison
from thetafield.report.compare.write import write_page
from thetafield.serving.run import field_folder
from thetafield.training.train import train_field


@pytest.fixture(scope="module")
def turning(tmp_path_factory):
    """A comparison where the field turns with the first descriptor."""
    out = tmp_path_factory.mktemp("turning") / "out"
    domains = domain_set("turning", num_domains=15, rows=25)
    return domains, out, compared(domains, out, ("erm", "trees", "neurallio"))


def test_where_the_field_turns_with_z_a_method_that_reads_it_is_recommended(turning):
    _, _, result = turning
    assert result["verdict"]["descriptors_help"] is True
    assert result["method"] in ("trees", "neurallio")
    words = " ".join(result["verdict"]["sentences"])
    assert "The descriptors help" in words and "height" in words
    leader = result["leaderboard"][0]
    assert leader["method"] == result["method"] and leader["low"] < leader["error"] < leader["high"]
    height, noise = (result["reliance"][name] for name in ("height", "noise"))
    assert height["low"] > 5 and height["mean"] > 5 * abs(noise["mean"])  # the boundary turns with the height alone
    assert "it errs more: height by" in words


def test_where_descriptors_are_noise_it_says_so(tmp_path):
    methods = ("erm", "erm-d", "trees", "trees-x")
    result = compared(domain_set("steady", num_domains=10, rows=25), tmp_path / "out", methods)
    assert result["verdict"]["descriptors_help"] is False
    assert result["method"] in ("erm", "trees-x")
    assert any(sentence.startswith("The descriptors do not help") for sentence in result["verdict"]["sentences"])


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """A comparison where the truth is made of steps."""
    out = tmp_path_factory.mktemp("steps") / "out"
    domains = domain_set("steps", num_domains=10, rows=80)
    return domains, out, compared(domains, out, ("erm", "trees", "trees-x"))


def test_where_the_truth_is_made_of_steps_trees_win(steps):
    domains, out, result = steps
    assert result["method"] == "trees-x" and result["verdict"]["descriptors_help"] is False
    assert any(sentence.startswith("Boosted trees win") for sentence in result["verdict"]["sentences"])
    # The field of trees has no θ(z), but it is saved and loaded like any other.
    assert evaluate(load_field(out / "field").model_, domains).score == pytest.approx(result["seen"])


def test_trees_that_won_are_explored_like_any_field(steps, tmp_path):
    _, out, _ = steps
    explore(out, export=tmp_path / "page.html")
    assert '"forest": {' in (tmp_path / "page.html").read_text()


def test_the_table_of_domains_is_complete(turning):
    domains, out, result = turning
    lines = columns(out)
    methods = [line["method"] for line in result["leaderboard"]]
    assert list(lines[0]) == [
        "domain", "height", "noise", "rows", "fold", "distance", "trust", *(f"error_{method}" for method in methods)
    ]  # fmt: skip
    assert [line["domain"] for line in lines] == list(map(str, domains.ids))
    for line, z, size in zip(lines, domains.z.tolist(), domains.sizes.tolist(), strict=True):
        assert [float(line["height"]), float(line["noise"])] == pytest.approx(z) and int(line["rows"]) == size
        assert float(line["distance"]) > 0 and 0 <= float(line["trust"]) <= 1
    for entry in result["leaderboard"]:
        errors = [float(line[f"error_{entry['method']}"]) for line in lines]
        assert np.mean(errors) == pytest.approx(entry["error"])


def test_a_fold_of_a_method_as_it_was_is_run_again(turning, monkeypatch):
    domains, out, _ = turning
    fold = Fold(stored(domains, out), "random", 5, 0)
    old = [FoldTrial(fold, method, {}, 0).key for method in ("erm", "trees")]
    monkeypatch.setattr(METHODS["erm"], "revision", 7)
    new = [FoldTrial(fold, method, {}, 0).key for method in ("erm", "trees")]
    assert new[0] != old[0] and new[1] == old[1]


def test_numbers_are_those_of_a_field_that_has_not_seen_the_domain(turning):
    domains, out, result = turning
    lines = columns(out)
    allotment = next(each for each in result["plan"] if each["method"] == "trees")
    kept, held = domain_folds(domains, 5, 0, "random")[0]
    assert all(lines[place]["fold"] == "1" for place in held)
    trial = FoldTrial(Fold(stored(domains, out), "random", 5, 0), "trees", allotment["options"], 0, tune=1)
    options = json.loads((out / "trials" / "results" / f"{trial.key}.json").read_text())["options"]
    model = train_field(domains.select(kept), "trees", seed=0, options=options, standardise=True, device="cpu").model
    errors = evaluate(model, domains.select(held)).per_domain
    assert errors == pytest.approx([float(lines[place]["error_trees"]) for place in held])


def test_the_saved_field_is_the_recommended_method_on_all_domains(turning):
    domains, out, result = turning
    loaded = load_field(out / "field")
    assert loaded.model_.recipe.method == result["method"]
    assert len(loaded.model_.trust.anchors) == len(domains)
    assert evaluate(loaded.model_, domains).score == pytest.approx(result["seen"])
    assert field_folder(out) == out / "field"


def test_a_field_is_calibrated_and_can_be_explored_and_served(tmp_path):
    table = table_file(tmp_path / "t.csv", num_domains=15, rows=12)
    own = OwnTable(str(table), "größe", "place", ("height", "noise"), holdout=None)
    result = compared(own, tmp_path / "out", ("erm", "neurallio"))
    loaded = load_field(tmp_path / "out" / "field")
    assert loaded.model_.trust.blind is not None and loaded.model_.conformal is not None
    assert result["trust"] == {"calibrated": True}
    saved = open_saved(tmp_path / "out")
    assert len(saved.training_domains()) == 15  # built again from the table that the result names


@pytest.mark.parametrize("numbers", [False, True])
def test_trees_too_know_where_they_err(numbers, tmp_path):
    """Labels are noise where height is large: no inputs tell them, but held-out domains tell where that is."""
    stream = np.random.default_rng(0)
    z = stream.uniform(size=(40, 2)).round(3)
    domain = np.repeat(np.arange(40), 30)
    x = stream.uniform(-1, 1, size=(1200, 2))
    y = x[:, 0] + 1.5 * z[domain, 0] ** 2 * stream.normal(size=1200)
    y = y if numbers else (y > 0).astype(int)
    domains = DomainSet.from_arrays(x, y, domain=domain, z=z, descriptors=["height", "noise"])
    result = compared(domains, tmp_path / "out", ("trees",))
    assert result["trust"] == {"calibrated": True}
    lines = columns(tmp_path / "out")
    trust, errors = (np.array([float(line[name]) for line in lines]) for name in ("trust", f"{result['metric']}_trees"))
    assert np.corrcoef(trust, errors)[0, 1] < -0.6
    loaded = load_field(tmp_path / "out" / "field")
    low, high, far = loaded.trust([[0.1, 0.5], [0.9, 0.5], [30.0, 0.5]])
    assert low > high + 0.2 and far < 1e-3
    at = np.full((30, 2), [0.1, 0.5])
    noisy, quiet = loaded.trust(at, np.zeros((30, 2))), loaded.trust(at, np.full((30, 2), 0.9))
    assert numbers or quiet[0] > noisy[0]  # whose answers are sure
    at, x = stream.uniform(size=(2000, 2)), stream.uniform(-1, 1, size=(2000, 2))  # places that nobody has seen
    y = x[:, 0] + 1.5 * at[:, 0] ** 2 * stream.normal(size=2000)
    if numbers:
        ends = loaded.predict_interval(x, z=at)
        covered, size = (ends[:, 0] <= y) & (y <= ends[:, 1]), ends[:, 1] - ends[:, 0]
    else:
        sets = loaded.predict_set(x, z=at)
        covered, size = sets[np.arange(2000), (y > 0).astype(int)], sets.sum(1)
    assert 0.85 < covered.mean() < 0.96
    assert not numbers or size[at[:, 0] > 0.8].mean() > 2 * size[at[:, 0] < 0.2].mean()


def test_the_page_stands_alone_and_says_the_verdict_first(turning):
    _, out, result = turning
    write_page(out)
    page = (out / "index.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "") and "<script" not in page
    assert page.index('class="verdict"') < page.index("<table")
    assert page.count("data:image/") == 4
    for line in result["leaderboard"]:
        assert f"{line['error']:.1f}" in page and line["method"] in page


def test_the_page_says_what_trust_is_worth(turning):
    _, out, _ = turning
    read = Comparison.read(out)
    errors = np.linspace(1, 30, len(read.ids))

    def said(trust):
        columns = read.columns | {f"error_{read.method}": errors, "trust": trust}
        return " ".join(render_page(replace(read, columns=columns)).split())

    assert "Errors grow where it falls (rank correlation −1.00)" in said(np.linspace(0.9, 0.2, len(errors)))
    assert "wrong way round" in said(np.linspace(0.7, 0.8, len(errors)))
    assert "tells nothing" in said(0.5 + 0.1 * (np.arange(len(errors)) % 2)) and "tells nothing" in said(0 * errors + 1)


def test_the_page_claims_tuning_only_where_every_method_was_tuned(turning):
    _, out, _ = turning
    read = Comparison.read(out)
    rung = {"share": 1.0, "draws": 2, "folds": 1, "depth": "none"}
    for draws, words in ((2, "was tuned and trained on"), (0, "trained, and tuned where the budget allowed, on")):
        plan = [{"rung": rung}, {"rung": rung | {"draws": draws}}]
        assert words in render_page(replace(read, result=read.result | {"plan": plan}))


def test_numbers_of_a_column_share_a_format_and_options_stay_whole():
    assert number_format(np.array([323.5, 324.0, 0.0])) == "%.1f" and number_format(np.array([0.0])) == "%.0f"
    assert (
        number_format(np.float32([97.6, 5.1]).astype(float)) == "%.1f" and number_format(np.array([12345.6])) == "%.0f"
    )
    assert number_format(np.array([1e-6, 2.0])) == "%.2e"
    assert whole_words("<b> erm-d: -2.4, a/b-c") == '&lt;b&gt; <span class="whole">erm-d</span>: -2.4, a/b-c'


def test_a_page_where_nobody_errs(tmp_path):
    x, domain = np.tile([[-1.0], [1.0]], (30, 1)), np.repeat(np.arange(6), 10)
    y, z = np.where(x[:, 0] > 0, "yes", "no"), np.arange(6.0)[:, None]
    domains = DomainSet.from_arrays(x, y, domain=domain, z=z)
    options = {name: SMALL[name] for name in ("trees", "trees-x")}
    result = compared(domains, tmp_path / "out", tuple(options), options=options)
    assert all(line["error"] == line["high"] == 0 for line in result["leaderboard"])
    write_page(tmp_path / "out")
    assert "0.0 %" in (tmp_path / "out" / "index.html").read_text()


def test_the_terminal_shows_leaderboard_and_verdict(turning, capsys):
    _, out, result = turning
    print_comparison(result, out)
    said = capsys.readouterr().out
    assert "decile" in said and "Use " in said and "load_field" in said
