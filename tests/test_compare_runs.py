"""A comparison on its way: resumed when killed, blind to what it judges, and not stopped by one that fails."""

import json
import os
import signal
import subprocess
import sys
import time
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benched import Here
from compared import BRIEF, SMALL, brief, columns, compared, domain_set, stored, table_file
from thetafield import DomainSet
from thetafield.bench.attempt import Outcome
from thetafield.compare.board import Layout
from thetafield.compare.fold import Fold, fold_count
from thetafield.compare.jobs import FoldTrial
from thetafield.compare.population import StoredPopulation
from thetafield.compare.trusting import unseen_trust
from thetafield.data.folds import domain_folds
from thetafield.datasets.own_table import OwnTable
from thetafield.errors import DataError, FormatError, NeedError, OptionError, ThetafieldError
from thetafield.evaluation import pairs
from thetafield.evaluation.pairs import DRAWS, Paired, mean_interval
from thetafield.evaluation.scores import evaluate
from thetafield.streams import numpy_stream
from thetafield.training.train import train_field


class Stopped(Here):
    """Workers that are interrupted after a few jobs."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def wait(self, seconds):
        if len(self.ran) == self.after:
            raise KeyboardInterrupt
        return super().wait(seconds)


def test_a_stopped_comparison_goes_on_with_what_is_finished(tmp_path):
    domains = domain_set("steady", num_domains=8, rows=10)
    whole = brief(domains, tmp_path / "whole")
    first = Stopped(6)
    with pytest.raises(KeyboardInterrupt):
        brief(domains, tmp_path / "out", first)
    plan = (tmp_path / "out" / "plan.json").read_bytes()
    second = Here()
    result = brief(domains, tmp_path / "out", second)
    assert not set(first.ran) & set(second.ran) and len(first.ran) + len(second.ran) == 2 + 2 * 5 + 1
    assert (tmp_path / "out" / "plan.json").read_bytes() == plan
    assert result["per_domain"] == whole["per_domain"]
    third = Here()
    assert brief(domains, tmp_path / "out", third) == result and not third.ran
    with pytest.raises(FormatError, match="holds a comparison of folds 'random', not 'blocked'"):
        brief(domains, tmp_path / "out", folds="blocked")
    with pytest.raises(FormatError, match="holds a comparison of other data"):
        brief(domain_set("turning", num_domains=8, rows=10), tmp_path / "out")


def test_killed_by_the_kernel_the_same_command_goes_on(tmp_path):
    table_file(tmp_path / "t.csv", "steady", num_domains=8, rows=10)
    words = ["compare", "t.csv", "--target", "größe", "--domain", "place", "--descriptors", "height,noise"]
    words += ["--methods", "trees-x,erm", "--budget", "0.4", "--jobs", "1", "--out", "out", "--json"]
    command = [sys.executable, "-m", "thetafield", *words]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kept = tmp_path / "out" / "trials" / "results"
    until = time.monotonic() + 120
    while time.monotonic() < until and not (kept.is_dir() and len(list(kept.glob("*.json"))) > 2):
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    before = {path.name: path.read_bytes() for path in kept.glob("*.json")}
    assert len(before) > 2
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"]["headline"].startswith("Use ")
    assert all((kept / name).read_bytes() == content for name, content in before.items())
    assert (tmp_path / "out" / "index.html").is_file()


@pytest.mark.parametrize("method", ["erm-d", "trees", "neurallio"])
def test_selection_never_sees_the_domains_it_is_judged_on(method, tmp_path):
    """Poisoned held-out domains leave every bit of the trained field as it was."""
    clean = domain_set("turning", num_domains=15, rows=10)
    _, held = domain_folds(clean, 5, 0, "random")[1]
    outside = np.isin(np.repeat(np.arange(len(clean)), clean.sizes), held)
    poisoned = domain_set("turning", num_domains=15, rows=10)
    poisoned.x[outside] = 1e4
    poisoned.y[outside] = 1 - poisoned.y[outside]
    fields = []
    for name, domains in (("clean", clean), ("poisoned", poisoned)):
        fold = Fold(StoredPopulation.of(domains, tmp_path / name / "data", "t"), "random", 5, 1)
        options = SMALL[method] if method != "neurallio" else {**SMALL[method], "select": True, "base": "pooled"}
        work = tmp_path / name / "work"
        work.mkdir()
        trial = FoldTrial(fold, method, options, 0, tune=0 if method == "neurallio" else 2)
        result = trial.run(work, device="cpu", checkpoint_every=60.0)
        fields.append((work / "field" / "field.safetensors").read_bytes())
        assert (result["choice"] if method == "neurallio" else result["tuning"]) is not None
    assert fields[0] == fields[1]


def test_a_table_is_encoded_by_the_kept_rows_alone(tmp_path):
    own = OwnTable(str(table_file(tmp_path / "t.csv", num_domains=10)), "größe", "place", ("height",), holdout=None)
    fold = Fold(own, "random", 5, 0)
    data = fold.build(0)
    kept, held = domain_folds(own.whole(), 5, 0, "random")[0]
    assert data.train.ids.tolist() == own.whole().ids[kept].tolist() and data.holdout == "random"
    [test] = data.test.values()
    assert test.ids.tolist() == own.whole().ids[held].tolist()
    assert fold.build(0) is data  # read once for all methods


@pytest.mark.parametrize(
    ("kind", "descriptors", "expected"),
    [("random", 2, 5), ("blocked", 2, 4), ("edge", 1, 2), ("edge", 3, 5), ("time", 1, 2)],
)
def test_fewer_folds_where_the_kind_has_fewer(kind, descriptors, expected):
    z = torch.rand(9, descriptors, generator=torch.Generator().manual_seed(0))
    assert fold_count(z, kind) == expected


@pytest.mark.parametrize("kind", ["blocked", "edge", "time"])
def test_folds_of_other_kinds(kind, tmp_path):
    domains = domain_set("steady", num_domains=12, rows=8)
    if kind != "blocked":
        domains = domains.with_descriptors(domains.z[:, :1], ["height"])
    result = brief(domains, tmp_path / "out", folds=kind)
    lines = columns(tmp_path / "out")
    judged = [line for line in lines if line["fold"]]
    assert result["data"]["judged"] == len(judged) == (6 if kind in ("time", "edge") else 12)
    assert all((line["error_erm"] == "") == (line["fold"] == "") for line in lines)
    if kind == "time":  # the future of a fold is neither trained on nor judged by it
        fold = Fold(stored(domains, tmp_path / "out"), "time", 2, 0).build(0)
        [test] = fold.test.values()
        assert float(fold.train.z.max()) < float(test.z.min()) and len(fold.train) + len(test) < len(domains)


def test_a_large_table_is_compared_on_some_rows_and_the_best_method_trained_on_all(tmp_path, monkeypatch):
    domains = domain_set("steady", num_domains=8, rows=20)
    monkeypatch.setattr("thetafield.compare.run.CELLS", domains.x.numel() / 20)
    monkeypatch.setattr("thetafield.compare.fold.FEWEST_ROWS", 1)
    folds = []

    class Watched(Here):
        def start(self, task):
            folds.append(task.spec.fold)
            super().start(task)

    result = brief(domains, tmp_path / "out", workers=Watched(), budget=5.0)
    assert {(fold.every, fold.number is None) for fold in folds} == {(4, False), (1, True)}
    assert "compared on one in 4 rows of each domain" in " ".join(result["warnings"])
    assert "trained on all 160; give about --budget 20" in " ".join(result["warnings"])
    fold = Fold(stored(domains, tmp_path / "out"), "random", 5, 0, 4)
    data = fold.build(0)
    [test] = data.test.values()
    assert data.train.sizes.unique().tolist() == test.sizes.unique().tolist() == [5]
    assert fold.options != Fold(stored(domains, tmp_path / "out"), "random", 5, 0).options


def test_a_method_that_cannot_run_does_not_stop_the_others(tmp_path):
    domains = domain_set("steady", num_domains=8, rows=8)
    options = {"drain": {}, "trees-x": BRIEF["trees-x"]}
    result = compared(domains, tmp_path / "out", tuple(options), options=options)
    assert result["method"] == "trees-x" and "needs one ordered descriptor" in result["absent"]["drain"]
    with pytest.raises(NeedError, match="No method can run on these data; drain: DRAIN needs one ordered"):
        compared(domains, tmp_path / "none", ("drain",), options=options)


def test_a_method_that_fails_on_a_fold_is_shown_with_its_reason(tmp_path):
    class Failing(Here):
        def attempt(self, task):
            if task.spec.method == "erm" and task.spec.dataset_label == "fold 2":
                return Outcome.failed("error", "The loss is not finite.")
            return super().attempt(task)

    result = brief(domain_set("steady", num_domains=8, rows=8), tmp_path / "out", Failing())
    assert result["absent"]["erm"] == "It failed on fold 2: The loss is not finite."
    assert [line["method"] for line in result["leaderboard"]] == ["trees-x"]
    assert result["verdict"]["descriptors_help"] is None


def test_a_fold_on_which_all_failed_before_a_stop_counts_as_run(tmp_path):
    """Started again, the method that failed there is not judged by the other folds alone."""

    class Failing(Stopped):
        def attempt(self, task):
            if task.spec.dataset_label == "fold 2":
                return Outcome.failed("error", "The loss is not finite.")
            return super().attempt(task)

    domains, options = domain_set("steady", num_domains=8, rows=8), {"trees-x": BRIEF["trees-x"]}
    with pytest.raises(KeyboardInterrupt):
        compared(domains, tmp_path / "out", ("trees-x",), Failing(4), options)
    with pytest.raises(ThetafieldError, match="trees-x: It failed on fold 2: The loss is not finite"):
        compared(domains, tmp_path / "out", ("trees-x",), Here(), options)


def test_when_the_time_is_over_no_further_fold_begins(tmp_path, monkeypatch):
    """A fold that has begun is ended for every method, and two are run however long they take."""
    clock = [0.0]
    for module in ("run", "stages"):
        monkeypatch.setattr(f"thetafield.compare.{module}.time", SimpleNamespace(perf_counter=lambda: clock[0]))

    class Slow(Here):
        def attempt(self, task):
            clock[0] += 3600.0 * (task.spec.dataset_label == "fold 1")
            return super().attempt(task)

    domains = domain_set("steady", num_domains=10, rows=8)
    workers = Slow()
    result = brief(domains, tmp_path / "out", workers, budget=60.0)
    assert result["folds"] == {"kind": "random", "count": 2} and result["data"]["judged"] == 4
    assert len(workers.ran) == 2 + 2 * 2 + 1
    assert any("The time was over after 2 of 5 folds" in sentence for sentence in result["warnings"])
    held = [held for _, held in domain_folds(domains, 5, 0, "random")[:2]]
    told = {line["domain"]: line["fold"] for line in columns(tmp_path / "out")}
    assert {name for name, fold in told.items() if fold} == {str(domains.ids[i]) for i in np.concatenate(held)}


def test_a_budget_that_is_too_small_is_refused_and_a_larger_one_goes_on(tmp_path):
    domains = domain_set("steady", num_domains=8, rows=8)
    with pytest.raises(OptionError, match="too small for any of these methods: give about --budget"):
        brief(domains, tmp_path / "out", budget=1e-4)
    workers = Here()
    assert brief(domains, tmp_path / "out", workers)["verdict"]
    assert len(workers.ran) == 2 * 5 + 1  # the pilots were kept


def test_no_method_and_no_minutes_are_refused(tmp_path):
    domains = domain_set("steady", num_domains=8, rows=8)
    with pytest.raises(OptionError, match="no method to compare"):
        compared(domains, tmp_path / "out", ())
    with pytest.raises(OptionError, match="number of minutes above zero, but got nan"):
        brief(domains, tmp_path / "out", budget=float("nan"))


def test_another_predictor_is_another_comparison(tmp_path):
    domains = domain_set("steady", num_domains=8, rows=8)
    brief(domains, tmp_path / "out")
    with pytest.raises(FormatError, match="predictor"):
        brief(domains, tmp_path / "out", predictor_options={"hidden": (3,)})


def looked_at(held, z, errors, signs=0):
    """Results of folds, as far as trust is learned from them."""
    return [
        {
            "distance": [0.1] * len(part),
            "reach": 1.0,
            "observed": {
                "z": z[part].tolist(),
                "errors": errors[part].tolist(),
                "attained": [0.5] * len(part),
                "blind": np.ones((len(part), signs)).tolist(),
                "sighted": np.ones((len(part), 1)).tolist(),
                "strangeness": np.ones((len(part), 3)).tolist(),
            },
        }
        for part in held
    ]


@pytest.mark.parametrize("signs", [1, 0])
def test_trust_at_a_domain_is_not_learned_from_itself(signs):
    """At the edge a domain is held out twice: the other fold's look at it would tell its error."""
    stream = np.random.default_rng(0)
    z = stream.uniform(size=(80, 2))
    held = [np.arange(50), np.arange(30, 80)]
    errors = 1 + 9 * z[:, 0]
    before, calibrated = unseen_trust(looked_at(held, z, errors, signs), held, 20.0)
    assert calibrated
    assert np.corrcoef(before[0], errors[held[0]])[0, 1] < -0.9  # some places are harder than others, doubts or not
    other = errors.copy()
    other[40] *= 5  # held out by both
    after, _ = unseen_trust(looked_at(held, z, other, signs), held, 20.0)
    lost = [(20 - np.array(each) / np.exp(-0.5 * (0.1 / 3) ** 2) * 19.5) for each in (before[0], after[0])]
    ratio = lost[1] / lost[0]  # of expected errors: only how large they are on the whole has changed
    assert ratio.std() < 1e-9 and ratio.mean() > 1.01


def test_where_errors_have_nothing_to_do_with_place_all_folds_are_trusted_alike():
    """The mean of the others is lower for a fold that errs more: that must not be taken for trust."""
    z, held = np.random.default_rng(1).uniform(size=(40, 2)), np.array_split(np.arange(40), 5)
    errors = np.random.default_rng(0).permutation(np.linspace(1, 10, 40))
    trusts, calibrated = unseen_trust(looked_at(held, z, errors), held, 20.0)
    assert calibrated and np.ptp(np.concatenate(trusts)) < 1e-9


def test_without_descriptors_or_with_few_domains_trust_is_not_calibrated():
    held = np.array_split(np.arange(40), 5)
    trusts, calibrated = unseen_trust(looked_at(held, np.empty((40, 0)), np.arange(40.0)), held, 50.0)
    assert not calibrated and np.concatenate(trusts).tolist() == [1.0] * 40
    held = np.array_split(np.arange(12), 5)  # three of them leave nine to learn from
    trusts, calibrated = unseen_trust(looked_at(held, np.ones((12, 1)), np.arange(12.0)), held, 50.0)
    assert not calibrated and np.ptp(np.concatenate(trusts)) == 0


def test_the_bootstrap_of_many_domains_is_drawn_in_parts(monkeypatch):
    values = numpy_stream(3, "values").normal(size=50)
    whole = mean_interval([values, values[:7]])
    monkeypatch.setattr(pairs, "CELLS", 120)
    assert mean_interval([values, values[:7]]) == whole


def test_the_bootstrap_is_that_of_a_plain_loop():
    values = numpy_stream(3, "values").normal(size=11)
    stream, means = numpy_stream(0, "report", "pairs"), []
    for row in stream.integers(len(values), size=(DRAWS, len(values))):
        means.append(sum(values[place] for place in row) / len(values))
    low, high = mean_interval([values])
    # Eleven values: Student's 2.228 for 10 degrees of freedom, times √(11 / 10), is 2.337 of the normal's deviations.
    outside = 100 * NormalDist().cdf(-2.2281388 * (11 / 10) ** 0.5)
    assert outside == pytest.approx(0.972, abs=1e-3)
    assert (low, high) == pytest.approx((np.percentile(means, outside), np.percentile(means, 100 - outside)))
    assert low < values.mean() < high
    found = Paired.of([values])
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-8) and found.within_noise == (low <= 0 <= high)


def test_a_domain_that_is_held_out_twice_counts_once():
    layout = Layout([np.array([0, 2]), np.array([2, 3])], np.ones(5))
    assert layout.judged.tolist() == [0, 2, 3]
    assert layout.gathered([[1.0, 2.0], [4.0, 5.0]]).tolist() == [1.0, 3.0, 5.0]


def test_regression_is_compared_by_absolute_errors(tmp_path):
    stream = np.random.default_rng(0)
    z, x = stream.uniform(size=(10, 1)), stream.normal(size=(100, 2))
    domain = np.repeat(np.arange(10), 10)
    y = 1e-3 * (x[:, 0] * z[domain, 0] + 0.1 * stream.normal(size=100))
    domains = DomainSet.from_arrays(x, y, domain=domain, z=z, classification=False)
    result = brief(domains, tmp_path / "out")
    assert result["metric"] == "mae" and 0 < result["macro"] < 2e-3
    kept, held = domain_folds(domains, 5, 0, "random")[0]
    options = next(each["options"] for each in result["plan"] if each["method"] == "trees-x")
    trial = FoldTrial(Fold(stored(domains, tmp_path / "out"), "random", 5, 0), "trees-x", options, 0, tune=1)
    options = json.loads((tmp_path / "out" / "trials" / "results" / f"{trial.key}.json").read_text())["options"]
    model = train_field(domains.select(kept), "trees-x", seed=0, options=options, standardise=True, device="cpu").model
    errors = evaluate(model, domains.select(held)).per_domain
    written = [float(columns(tmp_path / "out")[place]["mae_trees-x"]) for place in held]
    assert errors == pytest.approx(written, rel=1e-5)  # six digits


def test_domains_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(DataError, match="needs at least 5"):
        compared(domain_set("steady", num_domains=4), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert torch.get_num_threads() == 1
