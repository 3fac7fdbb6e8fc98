"""The few sentences that the page and the document share."""

from thetafield.report.store.cost import cost
from thetafield.report.store.reading import Results


def headline(results: Results) -> str:
    """Return what the report is about in a few words."""
    count = len({trial.key for trial in results.trials})
    return f"What {count:,} {'trial says' if count == 1 else 'trials say'}"


def lede(results: Results) -> str:
    """Say what is in the store: methods, datasets, suites, and what has no result."""
    methods, datasets = ({getattr(trial, name) for trial in results.trials} for name in ("method", "dataset"))
    without = len({gap.key for gap in results.gaps if gap.kind != "needs"})
    counted = [(len(methods), "method"), (len(datasets), "dataset"), (len(results.suites), "suite")]
    said = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counted)
    lacking = "every trial that can be run has a result"
    if without:
        lacking = f"{without:,} {'trial has' if without == 1 else 'trials have'} no result yet, and it is said why"
    return " ".join(filter(None, (f"{said}; {lacking}.", cost(results.trials))))
