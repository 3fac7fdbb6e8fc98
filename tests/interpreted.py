"""The kernels of GPUs on the CPU, in Triton's interpreter: it must be chosen before Triton is imported."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton, whose interpreter runs the kernels, is not installed"
)


def interpreted(path):
    """Run a test file as a program of its own, in the interpreter, and return what it prints as JSON."""
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def relative_error(got, expected):
    return float((got.double() - expected).abs().max() / expected.abs().max())
