"""The model of one descriptor as a file that runs without thetafield: a torch program (.pt2) or ONNX (.onnx).

Nothing of the kind is needed for speed: `torch.compile(model.model_at(z))` works as for any module.
"""

import copy
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import torch
from torch import Tensor, nn

from thetafield.data.columns import NumberColumn
from thetafield.errors import DataError, ExportError, NeedError, OptionError, closest
from thetafield.fields.model import Model
from thetafield.files import write_whole

TOLERANCE = 1e-5  # of the largest answer, where that exceeds one
TYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "uint8": torch.uint8}


def save_program(module: nn.Module, sample: Tensor, path: Path) -> None:
    """Write a program for any number of samples; `torch.export.load(path).module()` runs it on the CPU.

    Args:
        module: What `model_at(z)` returned.
        sample: A few inputs as it will get them, shape (n, *x): their shape and type become those of the program, and
            its answers for them are compared with the module's.
        path: The file; it is put in place whole, and only once its answers agree.

    Raises:
        ExportError: torch cannot export the module, or the answers differ.
    """
    module, sample = _on_cpu(module, sample)
    buffer = BytesIO()
    with _said("a torch program"):
        torch.export.save(_program(module, sample), buffer)
        loaded = torch.export.load(BytesIO(buffer.getvalue())).module()
    _compare(loaded, module, sample, path)
    write_whole(Path(path), buffer.getvalue())


def save_onnx(module: nn.Module, sample: Tensor, path: Path) -> None:
    """Write an ONNX model for any number of samples, with input "x" and output "answer".

    Arguments and errors are those of :func:`save_program`; the answers are those of onnxruntime.

    Raises:
        NeedError: A package of the extra `onnx` is missing.
    """
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise NeedError(f"ONNX needs {' and '.join(missing)}: pip install 'thetafield[onnx]'.")
    module, sample = _on_cpu(module, sample)
    with _said("ONNX"):
        program = torch.onnx.export(
            _program(module, sample), dynamo=True, input_names=["x"], output_names=["answer"], verbose=False
        )
        assert program is not None
        content = program.model_proto.SerializeToString()
        session = import_module("onnxruntime").InferenceSession(content, providers=["CPUExecutionProvider"])
    _compare(lambda x: torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), module, sample, path)
    write_whole(Path(path), content)


SAVERS: dict[str, Callable[[nn.Module, Tensor, Path], None]] = {".pt2": save_program, ".onnx": save_onnx}


def export_model(model: Model, z: str | None, path: Path, inputs: str = "float32") -> None:
    """Write the model of one descriptor, for a file with the suffix .pt2 or .onnx.

    Args:
        model: The field's model, on the CPU.
        z: The descriptor as text: numbers (or dates, where the field was fitted on a table with dates), separated by
            commas; None for a field without descriptors.
        path: The file.
        inputs: Type of the inputs: float32, float64, float16 or uint8.
    """
    if path.suffix not in SAVERS:
        raise OptionError(f"The file ends in .pt2 (a torch program) or .onnx, but got {path.name!r}.")
    if inputs not in TYPES:
        raise OptionError(f"There is no type of inputs {inputs!r}; {closest(inputs, TYPES)}")
    module = model.model_at(parse_descriptor(model, z))
    SAVERS[path.suffix](module, made_up_samples(model, TYPES[inputs]), path)


def parse_descriptor(model: Model, text: str | None) -> Tensor:
    """Return the descriptor, shape (d,), that a person wrote as numbers or dates with commas between them."""
    words = [word.strip() for word in text.split(",")] if text else []
    columns = model.encoder.descriptors if model.encoder is not None else ()
    if model.encoder is not None and len(words) == len(columns) > 0:
        row = {c.name: _number(w) if isinstance(c, NumberColumn) else w for c, w in zip(columns, words, strict=True)}
        return torch.tensor(model.encoder.raw_descriptors(row)[0], dtype=torch.float32)
    return torch.tensor([_number(word) for word in words])


def _number(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        raise OptionError(f"A descriptor is numbers with commas between them, but got {word!r}.") from None
    if not abs(number) < torch.finfo(torch.float32).max:
        raise OptionError(f"A descriptor is finite numbers, but got {word!r}.")
    return number


def made_up_samples(model: Model, dtype: torch.dtype, count: int = 4) -> Tensor:
    """Return inputs of the right shape, and of the size of the training inputs where that is known."""
    generator = torch.Generator().manual_seed(0)
    shape = (count, *model.recipe.input_shape)
    if dtype == torch.uint8:
        return torch.randint(256, shape, dtype=dtype, generator=generator)
    samples = torch.randn(shape, generator=generator)
    return (samples if model.inputs is None else model.inputs.inverse(samples)).to(dtype)


def _on_cpu(module: nn.Module, sample: Tensor) -> tuple[nn.Module, Tensor]:
    """Return copies on the CPU; with one sample torch would take one for the only number there is."""
    if not len(sample):
        raise DataError("An export needs at least one sample of the inputs, but got none.")
    module = copy.deepcopy(module).cpu().eval().requires_grad_(False)
    sample = sample.detach().cpu()
    return module, sample if len(sample) > 1 else torch.cat([sample, sample])


def _program(module: nn.Module, sample: Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(module, (sample,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},))


@contextmanager
def _said(kind: str) -> Iterator[None]:
    """Turn whatever torch raises into one sentence, and keep its words about its own parts from the user."""
    log = logging.getLogger("torch.onnx._internal.exporter._registration")  # that torchvision is not installed
    level = log.level
    try:
        log.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)` is deprecated")
            yield
    except Exception as error:
        finding = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise ExportError(f"torch cannot turn this model into {kind} ({finding}): use layers it can export.") from error
    finally:
        log.setLevel(level)


@torch.no_grad()
def _compare(exported: Callable[[Tensor], Tensor], module: nn.Module, sample: Tensor, path: Path) -> None:
    """Raise unless both give the same answers, for one sample, for those it was made with, and for one more."""
    for batch in (sample[:1], sample, torch.cat([sample, sample[:1]])):
        answer, expected = exported(batch), module(batch)
        if answer.shape != expected.shape:
            shapes = f"{tuple(answer.shape)} instead of {tuple(expected.shape)}"
            raise ExportError(f"The exported model gives answers of shape {shapes}, so {path} was not written.")
        apart = float((answer.double() - expected.double()).abs().max())
        bound = TOLERANCE * max(1.0, float(expected.abs().max()))
        if not apart <= bound:
            raise ExportError(
                f"The exported model's answers differ from the model's by {apart:.1e}, more than the {bound:.1e} that "
                f"rounding explains, so {path} was not written."
            )
