"""What is chosen on held-out training domains, inside `fit`."""

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from chosen import TINY, informed_domains, quick_train
from thetafield.bench.trial import run_trial
from thetafield.datasets.base import Dataset
from thetafield.errors import DivergenceError, FormatError, ThetafieldError
from thetafield.evaluation import choosing, judging
from thetafield.evaluation.choosing import choose, is_chosen, train_chosen
from thetafield.evaluation.judging import Candidate
from thetafield.methods import METHODS
from thetafield.options import schema
from thetafield.predictors import PREDICTORS
from thetafield.predictors.base import Predictor
from thetafield.predictors.perceptron import perceptron
from thetafield.training.recall import Recall
from thetafield.training.train import train_field


def test_edge_folds_of_a_choice_are_no_more_than_there_are_edges():
    one = informed_domains(40)
    one = one.with_descriptors(one.z[:, :1], ["angle"])
    assert 1 <= len(choosing._folds(one, 0, "edge")) <= 2


def test_a_setting_that_fails_late_sets_no_bar_and_a_perfect_one_is_perfect(monkeypatch):
    tried = []

    def train(domains, *, options, report=None, recall=None):
        tried.append(options)
        if options["base"] == "pooled" and len(tried) % 2 == 0:
            raise DivergenceError("it diverged")
        return quick_train()(domains, options=options | {"epochs": 1})

    def errors(model, held, fixed):
        return {(): np.full(len(held), 0.0 if tried[-1]["epochs"] == 200 else 5.0)}

    monkeypatch.setattr(judging, "dialled_errors", errors)
    monkeypatch.setattr(judging, "turn", lambda field, dials: None)
    fixed = {name: value for name, value in TINY.items() if name != "epochs"}
    choice = choose(informed_domains(40), "neurallio", train, seed=0, fixed=fixed | {"metric": False})
    assert choice.candidates[0].failure == "it diverged"
    assert choice.candidates[choice.best].score == 0.0 and choice.options["epochs"] == 200


def test_what_is_chosen_is_recorded_and_beats_the_defaults(monkeypatch):
    monkeypatch.setattr(choosing, "JUDGED", 12)  # two folds
    calls = []
    choice = choose(informed_domains(24), "neurallio", quick_train(calls), seed=0, fixed=TINY)
    record = choice.record()
    assert json.loads(json.dumps(record)) == record
    tried = [candidate["options"] for candidate in record["candidates"]]
    alone = [options for options in tried if options.get("epochs") == 0]
    assert tried[:2] == [{}, {"epochs": 0, "metric": False}] and any(o.get("base") == "knots" for o in alone)
    assert any("metric" in options for options in tried if options not in alone)
    given = set(TINY) - {"epochs"}
    assert not any(set(options) & given for options in tried)  # what is given is not up for choice
    assert all("epochs" not in options for options in tried if options not in alone)
    best = choice.candidates[choice.best]
    assert choice.best == 0 or best.beats(choice.candidates[0])
    assert best.options not in alone
    assert best.score == pytest.approx(np.mean(best.per_domain)) and len(best.per_domain) == 12
    assert set(best.dials) >= {"blend", "bandwidth"}
    assert {call["epochs"] for call in calls} == {0, 1}  # a third of three, and starts alone
    held = np.concatenate(record["held_out"])
    assert len(np.unique(held)) == len(held) == 12
    assert choice.observed.errors == best.per_domain


def test_the_length_of_training_is_chosen_last_unless_it_is_given(monkeypatch):
    monkeypatch.setattr(choosing, "JUDGED", 6)  # one fold
    free = {name: value for name, value in TINY.items() if name != "epochs"}
    base = {"base": "pooled", "base_dropout": 0.0, "base_decay": 0.0, "freeze": False}
    fixed = free | base | {"metric": False, "block": 99}
    calls = []
    choice = choose(informed_domains(24), "neurallio", quick_train(calls), seed=0, fixed=fixed)
    assert [candidate.options for candidate in choice.candidates] == [{"epochs": 200}, {"epochs": 600}]
    assert choice.options["epochs"] in (200, 600)
    assert sorted({call["epochs"] for call in calls}) == [200, 600]


def test_a_stopped_choice_goes_on_and_another_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "JUDGED", 12)  # two folds
    domains, calls = informed_domains(24), []
    train = quick_train(calls)

    def stopping(part, *, options, report=None, recall=None):
        if len(calls) == 5:
            raise KeyboardInterrupt
        return train(part, options=options, report=report, recall=recall)

    with pytest.raises(KeyboardInterrupt):
        choose(domains, "neurallio", stopping, seed=0, fixed=TINY, folder=tmp_path)
    kept = len(json.loads((tmp_path / choosing.NAME).read_text())["entries"])
    assert kept >= 1
    again = choose(domains, "neurallio", train, seed=0, fixed=TINY, folder=tmp_path)
    whole = choose(domains, "neurallio", quick_train(), seed=0, fixed=TINY)
    assert [c.score for c in again.candidates] == [c.score for c in whole.candidates] and again.best == whole.best
    with pytest.raises(FormatError, match="belongs to another run"):
        choose(domains, "neurallio", train, seed=1, fixed=TINY, folder=tmp_path)


def test_dials_that_work_in_one_fold_each_are_a_setting_that_failed(monkeypatch):
    monkeypatch.setattr(choosing, "JUDGED", 12)  # two folds
    tried = []

    def errors(model, held, fixed):
        tried.append(model)
        finite = len(tried) % 2
        return {(("blend", blend),): np.full(len(held), 1.0 if blend == finite else np.inf) for blend in (0, 1)}

    monkeypatch.setattr(judging, "dialled_errors", errors)
    with pytest.raises(ThetafieldError, match=r"None of \d+ settings could be trained; the defaults: No blend"):
        choose(informed_domains(24), "neurallio", quick_train(), seed=0, fixed=TINY)


def test_a_setting_that_fails_is_not_chosen(tmp_path):
    def train(domains, *, options, report=None, recall=None):
        if options["base"] == "reading":
            raise RuntimeError("out of memory")
        return quick_train()(domains, options=options, report=report)

    for _ in range(2):  # the second time from the ledger
        choice = choose(informed_domains(), "neurallio", train, seed=0, fixed=TINY, folder=tmp_path)
    failed = next(c for c in choice.candidates if c.options.get("base") == "reading")
    assert failed.score is None and failed.failure == "RuntimeError: out of memory"
    assert choice.options.get("base") != "reading"


def test_one_setting_beats_another_only_clearly_and_on_the_same_domains():
    def candidate(errors, folds=2):
        score = None if errors is None else float(np.mean(errors))
        return Candidate({}, {}, score, [] if errors is None else errors, folds, 0.0)

    base = candidate([10.0, 20.0, 30.0, 40.0])
    assert candidate([9.0, 19.0, 29.0, 39.0]).beats(base)
    assert not base.beats(base)
    assert not candidate([0.0, 30.0, 29.0, 40.0]).beats(base)  # less on average, by luck on one domain
    assert not candidate([1.0, 1.0], folds=1).beats(base)
    assert candidate([99.0]).beats(candidate(None)) and not candidate(None).beats(base)


def test_few_domains_choose_the_base_alone_with_more_folds_at_full_length():
    calls = []
    fixed = TINY | {"metric": False}
    choice = choose(informed_domains(14), "neurallio", quick_train(calls), seed=0, fixed=fixed)
    alone = {"epochs": 0, "metric": False}
    tried = [candidate.options for candidate in choice.candidates]
    assert tried[:3] == [{}, alone, alone | {"base": "reading"}] and tried[-1] == {"base": "none"}
    assert {name for options in tried for name in options} == {"epochs", "metric", "base"}
    assert {call["epochs"] for call in calls} == {0, TINY["epochs"]}
    assert sum(map(len, choice.held_out)) >= 10 and max(map(len, choice.held_out)) == 2


@dataclass
class Judged:
    """A training whose error on held-out domains is given by its options."""

    errors: dict
    tried: list = field(default_factory=list)

    def train(self, domains, *, options, report=None, recall=None):
        self.tried.append(options)
        return quick_train()(domains, options=options | {"epochs": min(1, options["epochs"])})

    def judge(self, model, held, fixed):
        options = self.tried[-1]
        rng = np.random.default_rng(0)  # a little apart from domain to domain
        return {(): self.errors.get((options["base"], options["epochs"] > 0), 50.0) + 0.01 * rng.normal(size=len(held))}


@pytest.mark.parametrize(("carried", "best"), [(5.0, "knots"), (30.0, "pooled")])
def test_the_best_start_is_chosen_alone_and_has_to_prove_itself_with_the_rest(monkeypatch, carried, best):
    errors = {("pooled", False): 20.0, ("reading", False): 15.0, ("knots", False): 10.0}
    judged = Judged(errors | {("pooled", True): 12.0, ("knots", True): carried})
    monkeypatch.setattr(judging, "dialled_errors", judged.judge)
    monkeypatch.setattr(judging, "turn", lambda field, dials: None)
    choice = choose(informed_domains(40), "neurallio", judged.train, seed=0, fixed=TINY)
    assert choice.options.get("base", "pooled") == best
    whole = [candidate.options for candidate in choice.candidates if candidate.options.get("epochs") != 0]
    assert {"base": "knots"} in whole and not any(options.get("base") == "reading" for options in whole)


def test_where_nothing_else_is_trained_the_start_is_all_there_is_to_choose():
    fixed = {**TINY, "epochs": 0, "base_dropout": 0.0}
    calls = []
    trained, choice = train_chosen(informed_domains(24), "neurallio", quick_train(calls), seed=0, given=fixed)
    assert {call["epochs"] for call in calls} == {0}
    assert {name for candidate in choice.candidates for name in candidate.options} == {"base", "base_decay"}
    best = choice.candidates[choice.best]
    assert best.dials["shrink"] == 0.0 and choice.observed.errors == best.per_domain
    z, field = torch.rand(5, 3), trained.model.field
    assert torch.equal(field(z), field.base(z)) and trained.model.trust.blind is not None
    assert {"metric", "epochs"} & {*choice.options} == set() and trained.model.recipe.options["metric"]


def test_without_a_base_there_is_no_start_to_choose():
    fixed = TINY | {"base": "none", "metric": False}
    choice = choose(informed_domains(24), "neurallio", quick_train(), seed=0, fixed=fixed)
    assert not any(candidate.options.get("epochs") == 0 for candidate in choice.candidates)


def test_trainings_that_begin_alike_share_what_they_begin_with():
    domains, recall, reported = informed_domains(), Recall(), []
    others = (
        {},
        {"neighbours": 3},
        {"latent_dim": 5},
        {"base": "reading"},
        {"base_dropout": 0.2},
        {"base_decay": 0.01},
    )
    settings = [TINY | other for other in others]
    for number, options in enumerate(settings):
        shared = quick_train()(domains, options=options, report=reported.append, recall=recall)
        alone = quick_train()(domains, options=options)
        z = domains.z
        assert torch.equal(shared.model.theta(z), alone.model.theta(z))  # bit for bit
        phases = {entry["phase"] for entry in shared.history}
        assert ("pooled" in phases) == (number in (0, 3, 4, 5))
        assert "joint" in phases
    assert len(recall.kept) == 8  # four bases, with their probes


def normed(input_shape, num_outputs):
    backbone = nn.Sequential(nn.Linear(*input_shape, 4), nn.BatchNorm1d(4))
    return Predictor(perceptron([4, 6, num_outputs]), backbone)


def test_what_is_shared_has_the_statistics_of_its_backbone(monkeypatch):
    PREDICTORS.names()
    monkeypatch.setitem(PREDICTORS._entries, "normed", normed)
    domains, recall = informed_domains(), Recall()
    how = {"seed": 0, "predictor": "normed", "device": "cpu", "options": TINY | {"epochs": 0, "metric": False}}
    models = [train_field(domains, "neurallio", recall=each, **how).model for each in (recall, recall, None)]
    first, shared, alone = (dict(model.predictor.backbone.named_buffers()) for model in models)
    assert len(recall.kept) == 1 and first["1.num_batches_tracked"] == TINY["base_steps"]
    assert all(torch.equal(shared[name], alone[name]) and torch.equal(first[name], alone[name]) for name in alone)


def test_the_choice_can_be_switched_off_and_needs_enough_domains():
    domains = informed_domains(choosing.FEWEST)
    defaults = {"select": True}
    assert is_chosen("neurallio", defaults, domains)
    assert not is_chosen("neurallio", {"select": False}, domains)
    assert not is_chosen("neurallio", defaults, domains.select(np.arange(choosing.FEWEST - 1)))
    assert not is_chosen("neurallio-paper", {}, domains)
    trained, choice = train_chosen(domains, "neurallio", quick_train(), seed=0, given=TINY | {"select": False})
    assert choice is None and trained.model.recipe.options["base"] == "pooled"


@dataclass(frozen=True)
class Poisoned:
    """A task whose test domains are scaled by a factor."""

    factor: float
    name: str = "informed"
    options: dict = field(default_factory=dict)

    def build(self, seed):
        domains = informed_domains(28)
        test = domains.select(np.arange(24, 28))
        test = replace(test, x=self.factor * test.x, y=test.y.flip(0), z=self.factor * test.z)
        return Dataset(self.name, domains.select(np.arange(24)), {"unseen": test}, "mlp", {"hidden": (6,)})


def test_test_domains_have_no_part_in_the_field(tmp_path, monkeypatch):
    """Scaling, metric, choice, trust and training see the training domains alone: the others may be anything."""
    monkeypatch.setattr(choosing, "JUDGED", 12)  # two folds
    options = TINY | {"reach": 1.0, "blend": 2}
    for factor in (1.0, 1e3):
        run_trial(Poisoned(factor), "neurallio", seed=0, out=tmp_path / str(factor), options=options, device="cpu")
    first, second = (load_file(tmp_path / str(factor) / "field" / "field.safetensors") for factor in (1.0, 1e3))
    assert first and all(torch.equal(first[name], second[name]) for name in first)
    trusts = [
        json.loads((tmp_path / str(factor) / "field" / "field.json").read_text())["trust"] for factor in (1.0, 1e3)
    ]
    assert trusts[0] == trusts[1] and trusts[0]["blind"] is not None
    assert (tmp_path / "1.0" / "choice.json").read_bytes() != b""


def test_every_choice_is_an_option():
    for name in METHODS.names():
        for option in METHODS[name].choices:
            assert option in schema(METHODS[name])
