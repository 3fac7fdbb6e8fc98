"""One thread per test process, so that two workers share two cores, and the same numbers everywhere."""

import os

# Before torch is loaded, here and in every process the tests start: threads of two workers that wait for each other on
# two cores take a hundred times as long as one thread each.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
# Time limits per example mislead on shared machines; the whole run has one.
settings.register_profile("default", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("default")


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)
