"""`expm_action` against the dense exponential in double precision: the error by norm and type.

Run: .venv/bin/python benchmarks/expm.py --out results/cpu/expm.json
Its time is measured by `thetafield speed --only exponential`.
"""

import argparse
from pathlib import Path

import torch

from thetafield import __version__
from thetafield.files import write_json
from thetafield.geometry.expm import expm_action
from thetafield.speed.exponential import dense_action, draw


def error(norm: float, dtype: torch.dtype) -> float:
    """Return the largest relative error of a column against the dense float64 exponential."""
    inputs = draw(norm, dtype)
    expected = dense_action(*(value.double() for value in inputs))
    difference = (expm_action(*inputs).double() - expected).norm(dim=1) / expected.norm(dim=1)
    return float(difference.max())


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    errors = [
        {"norm": norm, "dtype": str(dtype).removeprefix("torch."), "relative_error": error(norm, dtype)}
        for dtype in (torch.float32, torch.float64)
        for norm in (0.5, 2.0, 5.0, 10.0, 20.0, 50.0)
    ]
    for row in errors:
        print(f"{row['dtype']} norm {row['norm']:>4}: relative error {row['relative_error']:.1e}")
    if arguments.out:
        content = {
            "command": "python benchmarks/expm.py --out results/cpu/expm.json",
            "versions": {"thetafield": __version__, "torch": torch.__version__},
            "errors": errors,
        }
        write_json(arguments.out, content)


if __name__ == "__main__":
    main()
