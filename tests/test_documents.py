"""What the documents show is run: the README's example and commands, and CONTRIBUTING's method in one file."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from thetafield.methods import METHODS
from thetafield.testing import check_method

ROOT = Path(__file__).parent.parent


def blocks(document, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def test_readme_example_runs_and_ends_in_a_model(tmp_path):
    (example,) = [block for block in blocks("README.md", "python") if "model_at" in block]
    assert 15 <= len(example.strip().splitlines()) <= 26
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_the_method_of_contributing_passes_the_suite(tmp_path, monkeypatch):
    source = next(block for block in blocks("CONTRIBUTING.md", "python") if "@METHODS.register" in block)
    (tmp_path / "worst_example.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    METHODS.names()
    try:
        __import__("worst_example")
        check_method("worst")
    finally:
        METHODS._entries.pop("worst", None)


def test_the_two_commands_are_on_the_first_screen():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:40])
    assert "make demo" in first_screen and "make test" in first_screen


def test_every_registered_method_is_in_the_readme():
    text = (ROOT / "README.md").read_text()
    missing = [name for name in METHODS.names() if f"`{name}`" not in text]
    assert not missing


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout: a fresh clone cannot be made")
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_demo_in_a_fresh_clone(tmp_path):
    """The README's first command, by its own words, in a fresh clone; set-up is stood in for by this environment."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    # The stamps say that set-up is done, so that nothing is fetched: a second run of either command sets up nothing.
    stamps = clone / ".venv"
    (stamps / "bin").mkdir(parents=True)
    for name in ("torch", "demo", "test"):
        (stamps / f"{name}.stamp").touch()
    script = stamps / "bin" / "thetafield"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{clone}/src" exec "{sys.executable}" -m thetafield "$@"\n')
    script.chmod(0o755)
    done = subprocess.run(["make", "demo", "ARGS=--quick"], cwd=clone, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Installing" not in done.stdout
    assert (clone / "out/demo/index.html").is_file()
