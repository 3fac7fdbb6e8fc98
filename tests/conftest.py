"""One thread per test process, so that two workers share two cores, and the same numbers everywhere."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

# Before torch is loaded, here and in every process the tests start: threads of two workers that wait for each other on
# two cores take a hundred times as long as one thread each.
os.environ["OMP_NUM_THREADS"] = "1"

# A shell starts what it runs in the background deaf to Ctrl-C, and so would be every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
# Time limits per example mislead on shared machines; the whole run has one.
settings.register_profile("default", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("default")
# Where real data lie beside the repository they are used; elsewhere the tests that need them say that they skip.
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if "THETAFIELD_DATA" not in os.environ and SHARED.is_dir():
    os.environ["THETAFIELD_DATA"] = str(SHARED)
# What is made from them is kept apart from the user's own cache.
os.environ.setdefault("THETAFIELD_CACHE", str(Path(tempfile.gettempdir()) / "thetafield-test-cache"))


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def builder(tmp_path):
    """An empty store of made-up results, for the tests of reports."""
    from reported import Builder

    return Builder(tmp_path / "store")


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder on a disk of 48 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", place], capture_output=True)
    if mount.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)
