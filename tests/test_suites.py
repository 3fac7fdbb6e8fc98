"""What a trial is: what its key stands for, which of them a suite asks for, and what a person may get wrong."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from benched import SUITE, written
from thetafield.bench.plan import Plan, matching, once
from thetafield.bench.spec import TrialSpec
from thetafield.bench.suite import load_suite, suite_names
from thetafield.cli.bench import bench
from thetafield.datasets.base import DATASETS
from thetafield.errors import OptionError, ThetafieldError
from thetafield.methods import METHODS
from thetafield.options import checked, parse_assignments


def one_sentence(error):
    assert isinstance(error, ThetafieldError)
    assert "\n" not in str(error) and str(error).endswith(".")


def test_a_key_stands_for_all_that_determines_the_result():
    spec = TrialSpec.of("two-moons", "erm", seed=0, options={"steps": 100}, dataset_options={"num_train": 20})
    assert spec.key == "b12a25d75c938adb", "keys must not change: stored results would be lost"
    same = {
        "options": {"steps": "100"},
        "dataset_options": {"num_train": 20.0, "num_test": 150},
    }
    assert TrialSpec.of("two-moons", "erm", seed=0, **same).key == spec.key
    assert replace(spec, group="x", dataset_label="y", method_label="z", keep=True).key == spec.key
    others = [
        replace(spec, seed=1),
        replace(spec, tune=3),
        replace(spec, tune=3, tune_folds=2),
        replace(spec, method="erm-d"),
        replace(spec, dataset="mnist"),
        # Given is not the same as default: what is given is not left to the data.
        TrialSpec.of("two-moons", "erm", seed=0, options={"steps": 100, "lr": 1e-3}, dataset_options={"num_train": 20}),
        TrialSpec.of("two-moons", "erm", seed=0, options={"steps": 100}, dataset_options={"num_train": 21}),
    ]
    assert len({spec.key, *(other.key for other in others)}) == 8


def test_a_method_that_has_changed_has_other_keys(monkeypatch):
    spec = TrialSpec.of("two-moons", "erm", seed=0, options={"steps": 100})
    before = spec.key
    monkeypatch.setattr(METHODS["erm"], "revision", 1)
    raised = spec.key
    monkeypatch.undo()
    # As if the default of its step size were another.
    monkeypatch.setattr("thetafield.methods.base.checked", lambda *given: checked(*given) | {"lr": 5e-3})
    assert len({before, raised, spec.key}) == 3


def test_a_dataset_that_has_changed_has_other_keys(monkeypatch):
    spec = TrialSpec.of("two-moons", "erm", seed=0)
    before = spec.key
    monkeypatch.setitem(DATASETS._revisions, "two-moons", 1)
    raised = spec.key
    monkeypatch.setitem(DATASETS._revisions, "two-moons", 2)
    assert len({before, raised, spec.key}) == 3


def test_folds_of_no_tuning_are_no_other_trial():
    assert len({TrialSpec.of("two-moons", "erm", seed=0, tune_folds=folds).key for folds in (1, 3)}) == 1
    assert len({TrialSpec.of("two-moons", "erm", seed=0, tune=2, tune_folds=folds).key for folds in (1, 3)}) == 2


def test_a_suite_that_does_not_exist_is_said_in_a_sentence():
    with pytest.raises(OptionError, match=r"There is no suite 'smok'; did you mean 'smoke'\?") as caught:
        load_suite("smok")
    one_sentence(caught.value)


def test_the_command_of_a_trial_is_the_trial():
    spec = TrialSpec.of(
        "two-moons",
        "neurallio",
        seed=4,
        options={"widths": [64, 32], "gate": False, "reach": None, "lr": 3e-4},
        dataset_options={"noise_coordinates": 2},
        tune=3,
        tune_folds=2,
    )
    assert spec.command == (
        "thetafield train two-moons neurallio --seed 4 --data-set noise_coordinates=2 --set widths=64,32 "
        "--set gate=false --set reach=none --set lr=0.0003 --tune 3 --tune-folds 2"
    )
    words = spec.command.split()
    typed = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    again = TrialSpec.of("two-moons", "neurallio", seed=4, options=parse_assignments(typed))
    assert again.options == spec.options


@pytest.mark.parametrize("name", suite_names())
def test_shipped_suites_expand(name):
    """Names and options are checked as a suite is read."""
    suite = load_suite(name)
    assert suite.title and suite.about.endswith(".")
    assert all(spec.group and spec.dataset_label and spec.method_label for spec in suite.trials)
    trials = once(suite.trials)
    # What has the same labels is the same but for its seed and split, or a table would mix the two.
    cells = {(s.group, s.dataset_label, s.method_label, s.seed, s.dataset_options.get("split")) for s in suite.trials}
    assert len(cells) == len({(s.group, s.key) for s in suite.trials}) == len(suite.trials)
    assert len({spec.key for spec in trials}) == len(trials)


def test_splits_repeat_like_seeds(tmp_path):
    grid = """
        [[grid]]
        datasets = ["tpt48", { name = "eurosat", options = { domain = "country" }, label = "by country" }]
        splits = [7, 8]
        methods = ["erm"]
        seeds = [3]
    """
    trials = written(tmp_path, grid).trials
    assert [(spec.dataset_label, spec.dataset_options["split"]) for spec in trials] == [
        ("tpt48", 7),
        ("by country", 7),
        ("tpt48", 8),
        ("by country", 8),
    ]
    assert trials[1].dataset_options["domain"] == "country"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("erm-d", "ermd", "grid 1: There is no method 'ermd'; did you mean 'erm-d'?"),
        ("two-moons-time", "two-moon-time", "did you mean 'two-moons-time'?"),
        ("rounds", "round", "trees has no option 'round'; did you mean 'rounds'?"),
        ("num_train = 6", "num_train = 0", "expects at least 1, but got 0"),
        ("seeds = 2", "seed = 2", "unknown key 'seed'; did you mean 'seeds'?"),
        ("seeds = 2", "", "grid 1 has no seeds"),
        ("seeds = 2", "seeds = 0", "a count such as 5, or a list"),
        ("seeds = 2", "seeds = [0, true]", "but got True"),
        ("seeds = 2", "seeds = 2\ntune = -1", "'tune' expects a whole number from 0 on, but got -1"),
        ("seeds = 2", "seeds = 2\nsplits = 7", "'splits' expects a list of numbers such as [7, 8], but got 7"),
        ("seeds = 2", "seeds = 2\nsplits = [-1]", "'splits' expects a list of numbers such as [7, 8], but got -1"),
        ("seeds = 2", "seeds = 2\nsplits = [7]", "two-moons-time has no option 'split'"),
        ("seeds = 2", "seeds = 2\nkeep = 1", "'keep' expects true or false"),
        ('label = "moons"', 'label = " "', "'label' of 'two-moons-time' expects some text, but got ' '"),
        ("seeds = 2", "seeds = [0, 1, 0]", "'seeds' has a seed twice: 0, 1, 0"),
        ("seeds = 2", "seeds = 1000000000000", "asks for 3,000,000,000,000 trials, but a grid has 100,000 at most"),
        ("steps = 40, samples = 4 }", 'steps = 40 }, label = "a"', "'methods' has two entries labelled 'a'"),
        ("label =", "labels =", "unknown key 'labels'; did you mean 'label'?"),
        ("title", "titel", "unknown key 'titel'; did you mean 'title'?"),
        ("[[grid]]", "[[grid", "is not TOML"),
        ("[[grid]]", "[[grids]]", "did you mean 'grid'?"),
    ],
)
def test_a_wrong_suite_is_refused(old, new, sentence, tmp_path):
    with pytest.raises(OptionError) as caught:
        written(tmp_path, SUITE.replace(old, new))
    one_sentence(caught.value)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("patterns", "count"),
    [
        (["erm"], 2),
        (["erm*"], 4),
        (["trees", "erm"], 4),
        (["trees", "seed=1"], 1),
        (["seed=0", "seed=1"], 6),
        (["dataset=moons", "method=erm-d"], 2),
        (["dataset=two-moons-time"], 6),
        (["erm steps=40 samples=4"], 2),
        (["group=tiny"], 6),
    ],
)
def test_patterns_choose_trials(patterns, count, tmp_path):
    assert len(matching(written(tmp_path).trials, patterns)) == count


@pytest.mark.parametrize("pattern", ["eurosat", "method=tree", "seeds=0", "seed=7"])
def test_a_pattern_that_matches_nothing_is_refused(pattern, tmp_path):
    with pytest.raises(OptionError) as caught:
        matching(written(tmp_path).trials, [pattern])
    one_sentence(caught.value)


def test_a_limit_gets_on_past_data_that_stay_absent(tmp_path):
    trials = once(written(tmp_path).trials)
    states = {trials[0].key: "data", trials[1].key: "failed", trials[2].key: "done"}
    plan = Plan(trials, states)
    assert plan.todo(limit=2) == [trials[3], trials[4]]
    assert plan.todo(retry=True) == [*trials[3:], trials[1], trials[0]]


def test_a_suite_says_how_many_of_its_trials_run_at_a_time(tmp_path):
    assert written(tmp_path).jobs is None and written(tmp_path, f"jobs = 1\n{SUITE}").jobs == 1
    assert {name for name in suite_names() if load_suite(name).jobs == 1} == {"runtime", "scaling"}
    with pytest.raises(OptionError, match="'jobs' expects a whole number from 1 on, but got 0") as caught:
        written(tmp_path, f"jobs = 0\n{SUITE}")
    one_sentence(caught.value)


def test_help_names_every_suite():
    [suite] = [each for each in inspect.get_annotations(bench)["suite"].__metadata__ if each.help]
    assert set(suite.help.partition("(")[2].partition(")")[0].split(", ")) == set(suite_names())


@pytest.mark.parametrize("named", ["data", None])
def test_workers_elsewhere_are_told_where_the_data_are(tmp_path, monkeypatch, named):
    """By a path that does not depend on where they are; where nothing is named, they have their own."""
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THETAFIELD_DATA", named or "")
    told = []

    def run(*_, conditions, **__):
        told.append(conditions.data_root)
        raise KeyboardInterrupt

    monkeypatch.setattr("thetafield.bench.engine.run_suite", run)
    with pytest.raises(typer.Exit):
        bench("tiny.toml", store=Path("s"))
    assert told == [named and str(tmp_path / named)]
