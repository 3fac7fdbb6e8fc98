"""The runs of this project: read by the program of today, and told in the documents as they are."""

from pathlib import Path

import pytest

from thetafield.bench.packing import unpack
from thetafield.bench.store import Store
from thetafield.bench.suite import load_suite
from thetafield.report.store.reading import read_store
from thetafield.report.store.write import Asked, write_report

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "results" / "runs.jsonl.xz"
LACKING = {"time": 3}  # a tuned Koodos, which takes a quarter of an hour of a core each


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "runs"
    assert unpack(RUNS, folder) > 2000
    return folder


def test_figures_that_look_into_fields_are_there(store):
    states = Store(store).states()
    kept = {spec.key for spec in load_suite("paper-table1").trials if spec.keep and states[spec.key] == "done"}
    assert len(kept) == 14 and kept <= {path.stem for path in (store / "looks").iterdir()}


def test_every_trial_that_the_suites_ask_for_ran_or_could_not(store):
    """Those of the package as it is today: what is left out lacks its data, or does not apply, or is known to lack."""
    held = Store(store)
    for suite in sorted({trial.suite for trial in read_store(store).items}):
        counts = held.plan(load_suite(suite).trials).counts()
        assert (counts["missing"], counts["failed"]) == (LACKING.get(suite, 0), 0), (suite, counts)


def test_the_document_is_made_of_the_runs(store, tmp_path):
    """Its tables and what falls short; figures are left out, since some are drawn from data that may not be here."""
    write_report(store, Asked(markdown=tmp_path / "results.md"))
    made, told = (path.read_text().splitlines() for path in (tmp_path / "results.md", ROOT / "docs/results.md"))
    assert "thetafield report results/runs.jsonl.xz --markdown docs/results.md --figures docs/images/results" in told
    for start in ("| ", "- "):
        assert [line for line in made if line.startswith(start)] == [line for line in told if line.startswith(start)]
