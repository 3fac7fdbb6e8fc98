"""From training domains to a field model: scaling, predictor, problem, method, fit."""

import platform
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from thetafield.data.descriptors import DescriptorScaler
from thetafield.data.domains import DomainSet
from thetafield.data.shard import Shard
from thetafield.errors import DataError, OptionError
from thetafield.fields.direct import DirectModel
from thetafield.fields.model import FieldModel, Model
from thetafield.fields.recipe import Affine, Recipe
from thetafield.fields.storage import tensor_digest
from thetafield.geometry.trust import Trust
from thetafield.methods.base import METHODS, DirectMethod, Loss, Method, Problem
from thetafield.options import checked
from thetafield.predictors.base import PREDICTORS
from thetafield.ranks import ALONE, Ranks
from thetafield.streams import seeded
from thetafield.training.checkpoint import Checkpoint
from thetafield.training.fit import Progress, Report, fit
from thetafield.training.recall import Recall


@dataclass(frozen=True)
class Trained:
    """A model with the record of its training."""

    model: Model
    history: list[dict[str, Any]]
    seconds: float


def check_device_name(name: str) -> None:
    """Refuse what is no name of a device; whether this machine has it is not asked."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", str(name)):
        raise OptionError(f"device is one of auto, cpu or cuda, but got {name!r}.")


def pick_device(name: str) -> torch.device:
    """Return the device called auto, cpu or cuda (cuda:1, …)."""
    check_device_name(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise OptionError("device is 'cuda', but torch sees no GPU: use 'cpu' or 'auto'.")
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """Return a device in the words that results carry."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{_processor()}, {threads} thread{'s' if threads > 1 else ''}"


def _processor() -> str:
    """Return which processor this is, where the system tells: seconds of two models are those of two machines."""
    told = Path("/proc/cpuinfo")
    models = re.search(r"^model name\s*:\s*(.+)$", told.read_text(), re.MULTILINE) if told.exists() else None
    return re.sub(r"\((R|TM)\)", "", models[1]).strip() if models else f"{platform.machine()} CPU"


def train_field(
    domains: DomainSet,
    method: str,
    *,
    seed: int,
    options: Mapping[str, Any] | None = None,
    predictor: str = "mlp",
    predictor_options: Mapping[str, Any] | None = None,
    loss: Loss | None = None,
    ordered: bool = False,
    where: str = "the data",
    standardise: bool = False,
    single_target: bool = True,
    device: str = "auto",
    checkpoint: Path | None = None,
    checkpoint_every: float = 20.0,
    report: Report | None = None,
    recall: Recall | None = None,
    ranks: Ranks = ALONE,
) -> Trained:
    """Learn the parameter field of training domains.

    Several ranks, once joined, all call this with the same domains. Each keeps a part of them; the model of the first
    rank is the result, that of the others has shapes and no values.

    Args:
        domains: Training domains with raw descriptors.
        method: Registry name of the method.
        seed: Root seed of the start, the batches and the noise.
        options: The method's options.
        predictor: Registry name of the predictor.
        predictor_options: Its options.
        loss: Loss of a sample; cross-entropy for classes and the absolute error for numbers by default.
        ordered: Whether the only descriptor is an order such as time.
        where: How the data are called in messages.
        standardise: Whether inputs are standardised; regression targets always are.
        single_target: Whether answers of a one-column regression are one-dimensional.
        device: auto, cpu or cuda.
        checkpoint: Folder of the checkpoint; an existing one is resumed.
        checkpoint_every: Least seconds between two checkpoints.
        report: Called after every epoch.
        recall: What phases of other trainings on the same domains, with the same seed, left behind.
        ranks: Who trains together.
    """
    method_class = METHODS[method]
    method_options = checked(method_class, options or {}, method)
    build = PREDICTORS[predictor]
    predictor_options = checked(build, predictor_options or {}, predictor)
    method_class.check_needs(domains, ordered, where)
    method_class.check_ranks(ranks)
    place = ranks.device(pick_device(device))
    scaler = DescriptorScaler.fit(domains.z)
    if domains.on_disk and (standardise or not domains.classification):
        raise DataError(
            "Domains on the disk are trained on as they are stored: store standardised inputs and class labels, or "
            "load them with select first."
        )
    inputs = Affine.fit(domains.x) if standardise else None
    outputs = None if domains.classification else Affine.fit(domains.y)
    scaled = replace(
        domains,
        x=domains.x if inputs is None else inputs(domains.x),
        y=domains.y if outputs is None else outputs(domains.y),
        z=scaler(domains.z),
    )
    digest = None if checkpoint is None else data_digest(scaled)
    scaled = Shard.of(scaled, ranks).to(place)
    loss = loss or ("cross_entropy" if domains.classification else "absolute_error")
    input_shape = tuple(domains.x.shape[1:])
    with seeded(seed, "start"):
        template = build(input_shape, domains.num_outputs, **predictor_options).to(place)
        learner = method_class(Problem(scaled, template, loss, seed), **method_options)
    if isinstance(learner, Method):
        learner.to(place)
    recipe = Recipe(
        method=method,
        options=method_options,
        predictor=predictor,
        predictor_options=predictor_options,
        input_shape=input_shape,
        num_outputs=domains.num_outputs,
        loss=loss,
        descriptors=domains.descriptors,
        factors=domains.factors,
        features=domains.features,
        single_target=single_target,
        lift=learner.predictor.lift if isinstance(learner, Method) else None,
    )
    parts = {
        "recipe": recipe,
        "scaler": scaler,
        "trust": Trust.fit(scaled.z.cpu()),
        "classes": domains.classes,
        "inputs": inputs,
        "outputs": outputs,
        "encoder": domains.encoder,
    }
    if isinstance(learner, DirectMethod):
        started = time.perf_counter()
        answers = learner.learn(_rounds_report(report))
        return Trained(DirectModel(answers=answers, **parts), [], time.perf_counter() - started)
    assert isinstance(learner, Method)
    keeper = None
    if checkpoint is not None:
        fingerprint = {
            "method": method,
            "revision": learner.revision,
            "options": method_options,
            "predictor": predictor,
            "predictor options": predictor_options,
            "loss": loss,
            "seed": seed,
            "device": place.type,
            "torch": torch.__version__,
            "training data": digest,
        }
        keeper = Checkpoint(checkpoint, fingerprint, checkpoint_every)
    state = fit(learner, keeper, report, recall=recall)
    model = FieldModel(predictor=learner.predictor.eval(), field=learner.field().eval(), **parts)
    model.to(place if ranks.first else "meta")
    return Trained(model, state.history, state.seconds)


def data_digest(domains: DomainSet) -> str:
    """Return a digest of the training side; of samples on the disk, descriptors and sizes stand for them."""
    small = [domains.z, domains.offsets]
    return tensor_digest(small if domains.on_disk else [domains.x, domains.y, *small])


def _rounds_report(report: Report | None) -> Callable[[int, int], None]:
    """Return a report of rounds as the display of epochs takes it."""

    def tell(done: int, total: int) -> None:
        if report:
            report(Progress("boosting", done, total, done, total, None))

    return tell
