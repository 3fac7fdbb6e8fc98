"""What trials took: those that share a device count once while they run side by side."""

import pytest

from reported import Builder
from thetafield.report.store.cost import cost, covered, seconds
from thetafield.report.store.items import Trial
from thetafield.report.store.reading import read_store
from thetafield.report.store.sections import Wanted, sections


def trial(number, end, took, device="NVIDIA H200"):
    result = {
        "device": device,
        "finished": f"2026-11-16T10:{end // 60:02d}:{end % 60:02d}+00:00",
        "trial_seconds": took,
        "train_seconds": took / 2,
        "eval_seconds": None,
    }
    return Trial(str(number), "real", {}, {}, number, result=result, command="")


def test_side_by_side_counts_once():
    trials = [trial(0, 600, 300), trial(1, 660, 300), trial(2, 1200, 60), trial(3, 100, 40, "x86_64 CPU, 1 thread")]
    expected = (
        "3 trials took 7 min of NVIDIA H200 (side by side: their own times add up to 11 min); "
        "1 trial took 40 s of x86_64 CPU."
    )
    assert cost(trials) == expected
    assert cost([*trials, trials[0]]) == expected, "one that stands in several suites counts once"
    assert cost([]) == ""


def test_what_lies_inside_another_adds_nothing():
    assert covered([(0.0, 10.0), (2.0, 3.0), (9.0, 12.0), (20.0, 21.0)]) == 13 and covered([]) == 0


def test_older_results_add_up_what_is_known():
    draws = [{"seconds": 3.0}, {"seconds": 4.0}, {"seconds": None}]
    older = {
        "train_seconds": 10.0,
        "eval_seconds": 0.5,
        "tuning": {"draws": draws},
        "choice": {"candidates": draws[:1]},
    }
    assert seconds(older) == pytest.approx(20.5)
    assert seconds({"train_seconds": 10.0, "eval_seconds": None, "tuning": None, "choice": None}) == 10.0
    assert seconds(older | {"trial_seconds": 25.0}) == 25.0
    assert seconds(older | {"trial_seconds": 2.0}) == pytest.approx(20.5), "it was stopped, and went on"


def test_a_section_says_it(tmp_path):
    builder = Builder(tmp_path)
    builder.trial("real", "weather-aus", "erm", 0, [1.0, 2.0])
    (part,) = sections(read_store(tmp_path), Wanted(figures=False))
    assert part.about == "About real. 1 trial took 10 s of a machine."
