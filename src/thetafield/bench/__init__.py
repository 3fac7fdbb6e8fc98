"""Trials: one dataset, one method, one seed, and the record of what came out."""

from thetafield.bench.trial import run_trial

__all__ = ["run_trial"]
