"""Datasets, one file each, found by the registry."""

from thetafield.datasets.base import DATASETS, Dataset

__all__ = ["DATASETS", "Dataset"]
