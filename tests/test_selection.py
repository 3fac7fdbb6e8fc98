"""Tuning: drawn settings are judged on held-out training domains, never on test domains, and all are recorded."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from thetafield.bench import run_trial
from thetafield.data.folds import domain_folds
from thetafield.datasets import DATASETS, Dataset
from thetafield.errors import DivergenceError, FormatError, OptionError, ThetafieldError
from thetafield.evaluation import evaluate, tune
from thetafield.methods import METHODS
from thetafield.methods.space import Choice, Range, draw_settings
from thetafield.training import train_field
from thetafield.training.fit import Progress

FEW = {"steps": 20, "samples": 4}


@pytest.fixture
def moons(monkeypatch):
    """A small dataset under the name "small"."""

    def small(seed: int) -> Dataset:
        data = DATASETS["two-moons"](seed, num_train=9, num_test=3)
        return replace(data, name="small", test={"random": data.test["random"]})

    monkeypatch.setitem(DATASETS._entries, "small", small)
    return small


def trainer(**fixed):
    def train(domains, options, report):
        return train_field(domains, "erm", seed=0, options={**options, **fixed}, report=report)

    return train


def test_draws_stay_in_their_space_and_spare_what_is_fixed():
    space = {"lr": Range(1e-4, 1e-2), "share": Range(0.0, 0.2, log=False), "hidden": Choice(((8,), (8, 8)))}
    drawn = [draw_settings(space, np.random.default_rng(n), {}) for n in range(200)]
    assert all(1e-4 <= d["lr"] <= 1e-2 and 0 <= d["share"] <= 0.2 and d["hidden"] in ((8,), (8, 8)) for d in drawn)
    assert abs(np.mean([np.log10(d["lr"]) for d in drawn]) + 3) < 0.15  # the logarithm is uniform
    assert set(draw_settings(space, np.random.default_rng(0), {"lr": 1.0})) == {"share", "hidden"}


def test_the_best_draw_on_held_out_domains_is_chosen_and_every_draw_recorded(moons):
    domains = moons(0).train
    seen = []

    def train(part, options, report):
        seen.append((part, options))
        return trainer(**FEW)(part, options=options, report=report)

    selection = tune(domains, "erm", train, draws=3, seed=5, fixed={"weight_decay": 0.0, "dropout": 0.0, "steps": 10})
    assert len(selection.draws) == 4 and selection.draws[0].options == {}
    assert all(set(draw.options) == {"lr"} for draw in selection.draws[1:])
    scores = [draw.score for draw in selection.draws]
    assert selection.best == int(np.argmin(scores)) and selection.options == selection.draws[selection.best].options
    [(kept, held)] = domain_folds(domains, 1, seed=5)
    assert selection.held_out == [domains.ids[held].tolist()]
    for (part, options), score in zip(seen, scores, strict=True):
        assert part.ids.tolist() == domains.ids[kept].tolist()
        model = trainer(**FEW)(part, options, None).model
        assert score == pytest.approx(evaluate(model, domains.select(held)).score)
    assert json.loads(json.dumps(selection.record()))["space"] == {"lr": "0.0003 to 0.003, log"}


def test_a_setting_that_comes_twice_is_trained_once(moons, monkeypatch):
    monkeypatch.setattr(METHODS["erm"], "space", {"lr": Choice((1e-3, 2e-3))})  # of which one is the default
    seen = []

    def train(part, options, report):
        seen.append(options["lr"])
        return trainer(**FEW)(part, options=options, report=report)

    selection = tune(moons(0).train, "erm", train, draws=6, seed=5, fixed={"steps": 10})
    assert sorted(seen) == [1e-3, 2e-3] and len(selection.draws) == 7
    scores = {draw.options.get("lr", 1e-3): set() for draw in selection.draws}
    for draw in selection.draws:
        scores[draw.options.get("lr", 1e-3)].add(draw.score)
    assert all(len(each) == 1 for each in scores.values())


def test_a_score_is_the_mean_over_folds(moons):
    domains, shown = moons(0).train, []
    selection = tune(domains, "erm", trainer(**FEW), draws=1, seed=5, fixed={}, folds=2, report=shown.append)
    scores = []
    for kept, held in domain_folds(domains, 2, seed=5):
        model = trainer(**FEW)(domains.select(kept), selection.draws[1].options, None).model
        scores.append(evaluate(model, domains.select(held)).score)
    assert selection.draws[1].score == pytest.approx(sum(scores) / 2)
    assert [len(part) for part in selection.held_out] == [5, 4]
    assert [progress.phase.partition(", pooled")[0] for progress in shown] == [
        "defaults, fold 1 of 2",
        "defaults, fold 2 of 2",
        "draw 1 of 1, fold 1 of 2",
        "draw 1 of 1, fold 2 of 2",
    ]
    assert shown[-1].done == shown[-1].total


def test_a_failed_draw_is_recorded_and_lost(moons):
    def train(part, options, report):
        if options["lr"] != 1e-3:
            raise ThetafieldError("Training diverged.")
        return trainer(**FEW)(part, options=options, report=report)

    selection = tune(moons(0).train, "erm", train, draws=2, seed=0, fixed={})
    assert selection.best == 0
    assert [draw.failure for draw in selection.draws] == [None, "Training diverged.", "Training diverged."]
    assert [draw.score is None for draw in selection.draws] == [False, True, True]

    def out_of_memory(part, options, report):
        if options["lr"] != 1e-3:
            raise RuntimeError("out of memory")
        return trainer(**FEW)(part, options=options, report=report)

    selection = tune(moons(0).train, "erm", out_of_memory, draws=1, seed=0, fixed={})
    assert selection.draws[1].failure == "RuntimeError: out of memory" and selection.best == 0

    def never(part, options, report):
        raise ThetafieldError("No.")

    with pytest.raises(ThetafieldError, match="None of 3 settings could be trained; the defaults: No"):
        tune(moons(0).train, "erm", never, draws=2, seed=0, fixed={})
    everything = {"lr": 1.0, "weight_decay": 0.0, "dropout": 0.0, "steps": 10}
    with pytest.raises(OptionError, match="nothing left to tune"):
        tune(moons(0).train, "erm", never, draws=2, seed=0, fixed=everything)


def test_a_stopped_tuning_goes_on_where_it_was(moons, tmp_path):
    domains, calls = moons(0).train, []

    def train(part, options, report):
        calls.append(options)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return trainer(**FEW)(part, options=options, report=report)

    def again(folder, **changed):
        arguments = {"draws": 3, "seed": 1, "fixed": {}} | changed
        return tune(domains, "erm", train, folder=folder, **arguments)

    with pytest.raises(KeyboardInterrupt):
        again(tmp_path)
    assert len(json.loads((tmp_path / "tuning.json").read_text())["entries"]) == 2
    stopped = again(tmp_path)
    assert len(calls) == 3 + 2  # two draws were kept
    whole = again(None)
    assert [draw.score for draw in stopped.draws] == [draw.score for draw in whole.draws]
    for changed in ({"seed": 2}, {"where": {"dataset": "other"}}, {"folds": 2}, {"kind": "edge"}):
        with pytest.raises(FormatError, match="belongs to another run"):
            again(tmp_path, **changed)
    other = replace(domains, x=domains.x + 1)
    with pytest.raises(FormatError, match="belongs to another run"):
        tune(other, "erm", train, folder=tmp_path, draws=3, seed=1, fixed={})
    (tmp_path / "tuning.json").write_text("{")
    with pytest.raises(FormatError, match="is damaged: delete it to search again"):
        again(tmp_path)


def test_draws_of_a_method_as_it_was_are_not_gone_on_with(moons, tmp_path, monkeypatch):
    given = {"draws": 1, "seed": 0, "fixed": FEW, "folder": tmp_path}
    tune(moons(0).train, "erm", trainer(), **given)
    monkeypatch.setattr(METHODS["erm"], "revision", 7)
    with pytest.raises(FormatError, match="belongs to another run"):
        tune(moons(0).train, "erm", trainer(), **given)


def test_a_tuned_trial_records_its_draws_and_resumes(moons, tmp_path):
    shown = []
    words = {"seed": 0, "out": tmp_path / "t", "options": FEW, "tune_draws": 2, "device": "cpu"}
    result = run_trial("small", "erm", report=shown.append, **words)
    assert result["tune"] == 2 and len(result["tuning"]["draws"]) == 3
    best = result["tuning"]["draws"][result["tuning"]["best"]]
    assert result["options"] | best["options"] == result["options"] and result["options"]["steps"] == 20
    assert not set(result["tuning"]["held_out"][0]) & set(moons(0).test["random"].ids.tolist())
    assert json.loads((tmp_path / "t/result.json").read_text()) == result
    assert run_trial("small", "erm", resume=True, **words) == result
    with pytest.raises(FormatError, match="holds another trial"):
        run_trial("small", "erm", resume=True, **(words | {"tune_draws": 3}))
    with pytest.raises(FormatError, match="holds another trial"):
        run_trial("small", "erm", resume=True, **(words | {"options": {"steps": 30}}))
    with pytest.raises(FormatError, match="holds another trial"):
        run_trial("small", "erm", resume=True, **(words | {"tune_by": "macro"}))
    phases = [progress.phase for progress in shown]
    assert phases[0].startswith("defaults, ") and phases[1].startswith("draw 1 of 2, ") and phases[-1] == "pooled"
    assert all(isinstance(progress, Progress) and progress.done <= progress.total for progress in shown)


def test_test_domains_decide_nothing(moons, tmp_path, monkeypatch):
    """The same draws, scores and choice whatever the test domains are."""

    def other(seed: int) -> Dataset:
        data = moons(seed)
        test = data.test["random"]
        return replace(data, test={"random": replace(test, x=torch.full_like(test.x, 7.0), y=1 - test.y)})

    monkeypatch.setitem(DATASETS._entries, "other", other)
    results = [
        run_trial(name, "erm", seed=0, out=tmp_path / name, options=FEW, tune_draws=2, device="cpu")
        for name in ("small", "other")
    ]
    tunings = [
        [(draw["options"], draw["score"]) for draw in result["tuning"]["draws"]] + [result["tuning"]["best"]]
        for result in results
    ]
    assert tunings[0] == tunings[1] and results[0]["score"] != results[1]["score"]


def test_domains_that_are_dates_are_recorded(moons):
    days = np.array([f"2020-01-0{i + 1}" for i in range(9)], dtype="datetime64[D]").astype(object)
    domains = replace(moons(0).train, ids=days)
    selection = tune(domains, "erm", trainer(**FEW), draws=1, seed=0, fixed={})
    assert selection.record()["held_out"][0][0].startswith("2020-01-")


def test_answers_that_are_not_finite_are_no_score(moons):
    model = train_field(moons(0).train, "erm", seed=0, options=FEW, device="cpu").model
    with torch.no_grad():
        model.field.theta.fill_(float("nan"))
    with pytest.raises(DivergenceError, match="erm has no finite answer for domain 0"):
        evaluate(model, moons(0).train)


@pytest.mark.parametrize("name", METHODS.names())
def test_every_space_is_shown(name, capsys):
    from thetafield.report.catalogue import catalogue

    (entry,) = [entry for entry in catalogue("methods")["methods"] if entry["name"] == name]
    assert set(entry["space"]) == set(METHODS[name].space)
    assert set(entry["choices"]) == {*METHODS[name].foundations, *METHODS[name].choices}
