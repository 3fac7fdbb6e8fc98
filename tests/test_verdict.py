"""The verdict on boards made by hand: who is recommended, and what is said about it."""

import re

import numpy as np
import pytest

from thetafield.compare.board import Standing
from thetafield.compare.verdict import Reliance, judge, recommended
from thetafield.evaluation.pairs import mean_interval
from thetafield.evaluation.scores import Scores

DOMAINS = 40


def board(means, seed=0, noise=0.2):
    """Return standings whose errors share what makes domains hard, so that small differences are sure."""
    stream = np.random.default_rng(seed)
    hard = stream.uniform(0, 10, DOMAINS)
    found = []
    for method, mean in means.items():
        own = stream.normal(size=DOMAINS)
        errors = hard + mean + noise * (own - own.mean())
        scores = Scores.of("error", errors, np.full(DOMAINS, 100))
        found.append(Standing(method, scores, *mean_interval([errors]), 1.0, []))
    return sorted(found, key=lambda each: each.error)


def said(means, reliance=(), noise=0.2):
    verdict = judge(board(means, noise=noise), dict(reliance), [])
    return verdict, " ".join(verdict.sentences)


def test_a_clear_lead_is_called_clear_with_its_numbers():
    verdict, words = said({"neurallio": 5, "hypernet": 7, "erm": 9})
    assert verdict.method == "neurallio" and verdict.rival == "hypernet" and not verdict.ties
    assert verdict.headline.startswith("Use neurallio: on unseen domains it errs by ")
    assert "2 points less than the best alternative, hypernet: clear" in words and "p < 0.001" in words
    assert "The descriptors help: neurallio, the best method that reads them, errs" in words


def test_descriptors_that_matter_are_named_with_what_they_are_worth():
    leans = {"age": Reliance(0.1, -0.1, 0.3), "height": Reliance(4.0, 3.0, 5.0), "depth": Reliance(0.5, 0.2, 0.8)}
    words = said({"neurallio": 5, "erm": 9}, leans)[1]
    assert "it errs more: height by 4 points, depth by 0.5 points; age by no more than noise." in words
    words = said({"neurallio": 5, "erm": 9}, {"age": leans["age"], "day": leans["age"]})[1]
    assert "No descriptor matters by itself" in words
    many = {f"d{i}": Reliance(9.0 - i, 0.1, 10.0) for i in range(8)}
    assert "d4 by 5 points and 3 more." in said({"neurallio": 5, "erm": 9}, many)[1]
    assert "errs more:" not in said({"neurallio": 5, "erm": 9}, {"height": leans["height"]})[1]  # the only one


def test_a_lead_on_few_domains_is_not_called_clear():
    """Where the winner errs a little more almost everywhere and far less somewhere, ranks speak against it."""
    errors = np.full(100, 10.0), np.where(np.arange(100) < 15, 15.0, 9.9)
    pair = [
        Standing(method, Scores.of("error", each, np.full(100, 10)), *mean_interval([each]), 1.0, [])
        for method, each in zip(("trees-x", "erm"), errors, strict=True)
    ]
    words = " ".join(judge(sorted(pair, key=lambda each: each.error), {}, []).sentences)
    assert "likely, not certain" in words and "better on 15 % of 100 domains" in words


@pytest.mark.parametrize("count", [5, 8, 30])
def test_intervals_of_few_domains_hold_the_truth_as_often_as_they_say(count):
    stream = np.random.default_rng(0)
    ends = [mean_interval([stream.normal(size=count)]) for _ in range(400)]
    assert np.mean([low <= 0 <= high for low, high in ends]) > 0.9


def test_one_difference_is_told_once():
    """Where the best alternative is also the best that ignores descriptors, its numbers are not said again."""
    verdict, words = said({"trees": 5, "trees-x": 7, "erm": 9})
    assert verdict.descriptors_help and words.count("95 % interval") == 1
    assert "The descriptors help: trees-x is the best method that ignores them." in words
    verdict, words = said({"erm-d": 5, "erm": 5.02}, noise=0.5)
    assert verdict.method == "erm" and verdict.descriptors_help is False and words.count("95 % interval") == 1
    assert re.search(r"by no more than the standard error of 0\.\d+ points, so the simpler one is recommended\.", words)


def test_a_reader_within_noise_of_one_that_ignores_descriptors_is_not_recommended():
    means = {"neurallio": 5, "erm-d": 5.01, "erm": 5.02}
    standings = board(means, noise=0.5)
    assert recommended(standings)[0].method == "erm" and recommended(standings)[1] is False
    verdict, words = said(means, noise=0.5)
    assert {*verdict.ties} == {"neurallio", "erm-d"} and "Within noise of erm: " in words


def test_a_lead_beyond_one_standard_error_is_the_better_guess_but_not_certain():
    """The difference of two methods has a standard error of about 0.5 · √2 / √40 = 0.11 here."""
    means = {"erm-d": 5, "erm": 5.17}
    lead = board(means, noise=0.5)[0].against(board(means, noise=0.5)[1])
    assert lead.within_noise and lead.spread == pytest.approx(0.11, abs=0.03)
    verdict, words = said(means, noise=0.5)
    assert verdict.method == "erm-d" and verdict.descriptors_help is False and verdict.ties == ("erm",)
    assert (
        "not certain: erm, the best method that ignores them, errs more by no more than noise, but by more than"
        in words
    )
    assert words.count("95 % interval") == 1


@pytest.mark.parametrize(
    ("means", "words"),
    [
        ({"erm": 5, "erm-d": 8}, "no method that reads them errs less than erm, which ignores them (erm-d comes"),
        ({"erm": 5, "trees-x": 8}, "is not known: no method that reads them was compared"),
        ({"erm-d": 5, "nda": 8}, "is not known: no method that ignores them was compared"),
        ({"trees": 5, "erm": 8}, "Boosted trees win: plain trees on the inputs and the descriptors suit this table"),
        ({"trees-x": 5, "erm": 8, "erm-d": 8}, "Boosted trees win: plain trees on the inputs alone suit this table"),
        (
            {"trees": 5, "erm": 5.5, "neurallio": 5.02},
            "do as well as any network that was compared, fields θ(z) included",
        ),
    ],
)
def test_what_else_is_said(means, words):
    assert words in said(means)[1]


def test_an_interval_says_the_same_way_round_as_its_sentence():
    words = said({"erm-d": 5, "nda": 5.05, "erm": 9}, noise=0.5)[1]
    assert "points less than the best alternative, nda, which is within noise (95 % interval -0." in words
    low, high = map(float, re.search(r"interval (-[\d.]+) to ([\d.]+) points", words).groups())
    assert -low < high  # the mean is on the side that is told


@pytest.mark.parametrize(
    ("naive", "words"), [(5.0, "It is of no use: "), (10.8, "It may be of no use: "), (20.0, None)]
)
def test_a_method_that_a_constant_answer_does_as_well_as_is_called_so(naive, words):
    sentences = judge(board({"erm": 5, "erm-d": 7}), {}, [], naive).sentences
    assert sentences[0].startswith(words) if words else not any("of no use" in each for each in sentences)


def test_one_method_alone_has_no_rival():
    verdict, words = said({"erm": 5})
    assert verdict.rival is None and verdict.against is None and "alternative" not in words
