"""Comparisons where there is little to go by: few domains, marks that few domains have, and little trust."""

import numpy as np
import pytest

from compared import SMALL, compared, domain_set
from thetafield import DomainSet
from thetafield.compare.doubting import doubts

READING = ("erm-d", "trees")  # both are asked what each descriptor is worth to them


@pytest.mark.parametrize("count", [5, 6, 9])
@pytest.mark.parametrize("folds", ["random", "blocked"])
def test_from_five_domains_on_methods_that_read_descriptors_take_part(tmp_path, count, folds):
    result = compared(domain_set("turning", num_domains=count, rows=12), tmp_path / "out", READING, folds=folds)
    assert not result["absent"] and {line["method"] for line in result["leaderboard"]} == {*READING}


def test_a_mark_that_one_domain_has_stops_nobody(tmp_path):
    """Where that domain is held out, outside or inside, the others all have the same value."""
    plain = domain_set("turning", num_domains=12, rows=12)
    z = np.column_stack([plain.z[:, 0].numpy(), np.arange(12) == 3])
    domains = plain.with_descriptors(type(plain.z)(z), ("height", "coast"))
    methods = (*READING, "neurallio")
    result = compared(domains, tmp_path / "out", methods, options=SMALL)
    assert not result["absent"] and len(result["leaderboard"]) == len(methods)


def told(trust):
    """Return what is said of a trust, where domain 0 errs most and the last one least."""
    count = len(trust)
    domains = DomainSet.from_arrays(np.arange(count), np.arange(count) % 2, domain=[f"D{i}" for i in range(count)])
    errors = np.linspace(40.0, 10.0, count)
    return doubts(domains, np.arange(count), errors, np.array(trust), "error", {})


def test_domains_of_little_trust_are_named_and_no_others():
    [sentence] = told([0.2, 0.6, 0.9, 0.8])
    assert sentence.startswith("Trust is below 0.5 at 1 of 4 domains (least at 'D0'): the error is 40.0 % there")
    assert not told([0.6, 0.7, 0.9, 0.8])


def test_where_trust_is_little_everywhere_it_is_said():
    [sentence] = told([0.0, 0.04, 0.01, 0.02])
    assert sentence == (
        "Trust is below 0.5 at all 4 domains that were held out (0.04 at most): do not count on it at new ones."
    )
