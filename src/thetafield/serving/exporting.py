"""A process that writes the model at one descriptor as ONNX: python -m thetafield.serving.exporting FIELD OUT [Z]."""

import sys
from pathlib import Path

from thetafield.errors import ThetafieldError
from thetafield.fields.export import export_model
from thetafield.fields.storage import load_model


def main(field: str, out: str, z: str | None = None) -> None:
    """Write the file, or end with one sentence."""
    try:
        export_model(load_model(Path(field)), z, Path(out))
    except ThetafieldError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
