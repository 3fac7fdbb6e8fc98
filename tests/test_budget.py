"""How minutes are shared out: rungs, their prices, and pilots that take longer than they may."""

import re
import time

import numpy as np
import pytest

from benched import Here
from compared import domain_set
from thetafield.bench.attempt import Outcome
from thetafield.compare import compare
from thetafield.compare.budget import (
    BARE,
    SAFETY,
    SCORING,
    Load,
    allotted,
    cost,
    fixed_options,
    rungs,
    shortened,
)
from thetafield.compare.folder import ABOUT, read
from thetafield.compare.pace import Pace
from thetafield.compare.population import StoredPopulation
from thetafield.compare.stages import Stages, silent
from thetafield.errors import NeedError
from thetafield.evaluation import choosing


def stages(tmp_path, seconds_of):
    """Stages whose pilots take given seconds; None is longer than they may."""

    class Paced(Here):
        def attempt(self, task):
            seconds = seconds_of["start" if task.spec.start else task.spec.method]
            if seconds is None:
                return Outcome.failed("timeout", "It took too long.")
            return Outcome("result", {"score": 1.0, "seconds": seconds}, [])

    population = StoredPopulation.of(domain_set("steady", num_domains=8, rows=8), tmp_path / "data", "domains")
    return Stages(population, tmp_path / "out", "random", 5, 0, 1, "", silent, lambda count: Paced())


def test_what_lacks_time_is_told_the_budget_that_it_needs(tmp_path):
    methods = ("erm", "trees-x", "nda")
    run = stages(tmp_path, {"erm": None, "trees-x": [0.01, 0.02], "nda": [30.0, 60.0]})
    plan = run.planned(methods, {method: {} for method in methods}, load(6), 60.0, 16, time.perf_counter())
    assert [each.method for each in plan.allotments] == ["trees-x"]
    late, slow = plan.absent["erm"], plan.absent["nda"]
    assert "took longer than their share of 128 s; give about --budget " in late and late.endswith(
        " and another --out."
    )
    assert "its shortest training takes about " in slow and slow.endswith(" and another --out.")
    # The budget that is advised is enough where the pilots take as long again.
    least = int(re.search(r"--budget (\d+)", slow)[1])
    total = 60 * least / run.turns(2, 16)
    paces = {"trees-x": Pace.of([0.01, 0.02]), "nda": Pace.of([30.0, 60.0])}
    assert all(each.rung is not None for each in allotted(paces, total, load(6)))


@pytest.mark.parametrize(("start", "depth"), [([1.0], "bare"), (None, None)])
def test_a_method_whose_charts_take_too_long_takes_part_with_what_it_starts_from(tmp_path, start, depth):
    run = stages(tmp_path, {"neurallio": None, "start": start, "erm": [0.1, 0.2]})
    plan = run.planned(("neurallio", "erm"), {"neurallio": {}, "erm": {}}, load(), 600.0, 2, time.perf_counter())
    found = {each.method: each for each in plan.allotments}
    assert ("neurallio" in found) == (depth is not None) and "erm" in found
    if depth is None:
        assert "took longer than their share" in plan.absent["neurallio"]
    else:
        assert found["neurallio"].rung.depth == depth and found["neurallio"].options["epochs"] == 0


def load(domains=40, **settings):
    return Load(domains=domains, kind="random", folds=domains, seed=0, **settings)


def test_more_time_is_never_less_thorough():
    paces = {method: Pace(0.1, 5.0) for method in ("erm", "trees", "neurallio", "nda")}
    earlier = None
    for total in (0.1, 2.0, 10.0, 40.0, 200.0, 5000.0):
        found = {each.method: each for each in allotted(paces, total, load())}
        assert sum(each.seconds for each in found.values() if each.rung) <= total
        rank = {
            m: len(rungs(m, load())) if e.rung is None else rungs(m, load()).index(e.rung) for m, e in found.items()
        }
        if earlier is not None:
            assert all(rank[method] <= earlier[method] for method in paces)
        earlier = rank
    assert set(earlier.values()) == {0}


def test_nobody_gets_much_more_than_the_others_until_they_have_all_they_can_use():
    paces = {"erm": Pace(0.0, 5.0), "erm-d": Pace(0.0, 5.0), "neurallio": Pace(1.0, 50.0)}
    found = {each.method: each for each in allotted(paces, 51.0, load())}
    assert found["erm"].rung == found["erm-d"].rung and found["erm"].tuned
    assert found["neurallio"].rung is not None and found["neurallio"].seconds < 3 * found["erm"].seconds


def test_a_short_training_has_its_length_fixed_and_something_left_to_draw():
    for method in ("erm", "trees", "interpolate", "hypernet", "neurallio"):
        for rung in rungs(method, load()):
            fixed = fixed_options(method, rung, load())
            assert cost(method, rung, Pace(0.1, 1.0), load()) > 0
            given = rung.share < 1 or rung.depth in BARE
            assert ("steps" in fixed or "rounds" in fixed or "epochs" in fixed) == given
    assert fixed_options("neurallio", rungs("neurallio", load())[-1], load())["select"] is False
    drawn = {
        method: fixed_options(method, rungs(method, load(400))[0], load(400))["samples"] for method in ("erm", "nda")
    }
    assert drawn == {"erm": 4, "nda": 16}  # models of single domains are tuned on more of each
    depths = {
        rung.depth: fixed_options("neurallio", rung, load(400))["samples"] for rung in rungs("neurallio", load(400))
    }
    assert depths.pop("bare") == depths.pop("kind") == 4 and set(depths.values()) == {64}
    least = next(rung for rung in rungs("neurallio", load()) if rung.depth == "kind")
    fixed = fixed_options("neurallio", least, load())
    assert {"base_dropout", "base_decay", "base_steps", "epochs"} <= set(fixed) and "base" not in fixed
    bare = [rung for rung in rungs("neurallio", load()) if rung.depth == "bare"]
    assert bare and all(fixed_options("neurallio", rung, load())["epochs"] == 0 for rung in bare)
    for given in ({"epochs": 5}, {"base": "none"}):  # what a person gave is kept
        assert not any(rung.depth == "bare" for rung in rungs("neurallio", load(), given))
    given = {"steps": 100, "lr": 0.01, "weight_decay": 0.0, "dropout": 0.0}
    assert all(rung.draws == 0 for rung in rungs("erm", load(), given))


def test_a_larger_budget_waits_longer_for_pilots_that_took_too_long(tmp_path):
    seconds = {"erm": None}
    run, given = stages(tmp_path, seconds), {"erm": {}}
    with pytest.raises(NeedError, match="erm: It was left out for lack of time"):
        run.planned(["erm"], given, load(6), 60.0, 16, time.perf_counter())
    seconds["erm"] = [0.1, 0.2]
    plan = run.planned(["erm"], given, load(6), 600.0, 16, time.perf_counter())
    assert [each.method for each in plan.allotments] == ["erm"] and not plan.absent


def test_options_given_as_text_are_those_of_numbers(tmp_path):
    domains, asked = domain_set("steady", num_domains=8, rows=8), []

    def hire(count):
        raise KeyboardInterrupt  # before anything is trained

    for number, given in enumerate(({"steps": 20}, {"steps": "20"}, {"steps": np.int64(20)})):
        with pytest.raises(KeyboardInterrupt):
            compare(domains, tmp_path / str(number), methods=["erm"], options={"erm": given}, hire=hire, device="cpu")
        asked.append(read(tmp_path / str(number) / ABOUT)["options"])
    assert asked == [{"erm": {"steps": 20}}] * 3


def test_a_length_that_the_data_decide_is_cut_no_shorter():
    assert shortened("drain", 0.1) == {} and shortened("drain", 0.1, {"epochs": 30}) == {"epochs": 3}
    [each] = allotted({"drain": Pace(0.1, 5.0)}, 500.0, load())
    assert each.rung is not None and "epochs" not in each.options


@pytest.mark.parametrize("backbone", [True, False])
def test_a_dear_rung_does_not_bar_the_way_to_a_more_thorough_one(backbone):
    pace, many = Pace(0.5, 30.0, 1.0), load(backbone=backbone)
    half = next(rung for rung in rungs("neurallio", many) if (rung.share, rung.depth) == (0.5, "all"))
    price = cost("neurallio", half, pace, many)
    [each] = allotted({"neurallio": pace}, 1.01 * price, many)
    assert each.rung == half and each.seconds == price
    assert fixed_options("neurallio", half, many).get("freeze") == (None if backbone else False)


def test_a_choice_is_priced_by_the_folds_that_it_has():
    price = {}
    for kind, folds in (("random", 4), ("edge", 2)):
        assert choosing.fold_count(kind, 40, 2) == folds
        own = Load(domains=40, kind=kind, folds=2, seed=0)
        rung = next(rung for rung in rungs("neurallio", own) if rung.depth == "bare")
        price[kind] = cost("neurallio", rung, Pace(0.0, 0.0, 1.0), own)
    last = SAFETY * SCORING / 0.3  # the training after the choice, longer than the least start
    assert price["random"] - last == pytest.approx(2 * (price["edge"] - last))
