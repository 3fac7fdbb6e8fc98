"""The conformance suite of methods."""

import inspect
import tempfile
from collections.abc import Callable, Hashable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from thetafield.fields.base import FIELDS, ParameterField
from thetafield.fields.direct import Answers
from thetafield.methods.base import METHODS, DirectMethod, Loss, Method, Problem
from thetafield.methods.space import draw_settings
from thetafield.options import checked, schema
from thetafield.streams import seeded
from thetafield.testing.toys import make_learner, make_method, make_method_of_images, own_problem, toy_problem
from thetafield.training.capture import StepRunner
from thetafield.training.checkpoint import Checkpoint
from thetafield.training.fit import Progress, fit
from thetafield.training.running import Running


def check_method(name: str) -> None:
    """Assert what every method owes its users; see the single checks below."""
    check_described(name)
    check_space(name)
    if issubclass(METHODS[name], DirectMethod):
        for loss in _losses(name):
            check_answers(name, loss)
        return
    for loss in _losses(name):
        check_gradients(name, loss)
        check_learns(name, loss)
    check_same_bits(name)
    check_recordable(name)
    if getattr(METHODS[name], "renumberable", False):
        check_permutation(name)
    check_rebuilt(name)
    check_images(name)
    check_resumed(name)
    if not METHODS[name].needs.descriptor:
        check_ignores_descriptors(name)


def _losses(name: str) -> list[Loss]:
    return ["cross_entropy"] if METHODS[name].needs.classification else ["cross_entropy", "squared_error"]


def _trained(name: str, problem: Problem, **changed: Any) -> Method:
    method = make_method(name, problem, **changed)
    fit(method)
    return method


def check_described(name: str) -> None:
    """Every option has a default and a line in the docstring; the method names its reference."""
    entry = METHODS[name]
    documentation = "\n".join(
        inspect.getdoc(base) or "" for base in entry.__mro__ if base.__module__ == entry.__module__
    )
    inherited = "\n".join(inspect.getdoc(base) or "" for base in entry.__mro__)
    assert documentation, f"{name} has no docstring"
    assert entry.name == name and entry.title and entry.reference
    for key, (_, default) in schema(entry).items():
        assert default is not inspect.Parameter.empty, f"{name}: option {key} has no default"
        assert f"{key}:" in inherited, f"{name}: option {key} is not described in the docstring"


def check_space(name: str) -> None:
    """Tuning draws values that the method takes."""
    entry = METHODS[name]
    options = schema(entry)
    assert set(entry.space) <= set(options), f"{name}: the search space names an option that does not exist"
    for number in range(20):
        checked(entry, draw_settings(entry.space, np.random.default_rng(number), {}), name)


def check_answers(name: str, loss: Loss) -> None:
    """A method without θ answers with the right shape, learns, repeats itself, and ignores z if it says so."""
    problem = own_problem(name, loss)
    domains = problem.domains
    z = domains.z.repeat_interleave(domains.sizes, dim=0)
    calls: list[tuple[int, int]] = []

    def answers() -> Answers:
        learner = make_learner(name, problem, min_samples=2)
        assert isinstance(learner, DirectMethod)
        return learner.learn(lambda done, total: calls.append((done, total)))

    learned = answers()
    first, second = learned(domains.x, z), answers()(domains.x, z)
    assert first.shape == (len(domains.x), domains.num_outputs) and torch.isfinite(first).all()
    assert torch.equal(first, second), f"{name}: same seed, other answers"
    assert calls[-1][0] == calls[-1][1], f"{name}: progress does not end at its total"
    if loss == "cross_entropy":
        assert float((first.argmax(1) == domains.y).double().mean()) > 0.8, f"{name} does not learn"
    else:
        assert (first - domains.y).abs().mean() < (domains.y - domains.y.mean(0)).abs().mean(), f"{name} does not learn"
    moved = learned(domains.x, 1 - z)
    assert torch.equal(moved, first) != METHODS[name].needs.descriptor, f"{name}: needs and use of z disagree"


def check_gradients(name: str, loss: Loss) -> None:
    """Every loss term is a finite scalar, and every trained parameter feels the loss within an epoch.

    Not at the start, where all domains may be alike and some gradients vanish, but a little beside it.
    """
    method = make_method(name, own_problem(name, loss))
    for phase in method.phases():
        phase.begin()
        with seeded(0, "beside"), torch.no_grad():
            for parameter in phase.parameters:
                parameter.add_(1e-2 * torch.randn_like(parameter))
        for player in phase.players:
            felt = [torch.zeros_like(p) for p in player.parameters]
            for batch in phase.batches(0):
                terms = player.loss(batch)
                for term, value in terms.items():
                    assert value.shape == () and torch.isfinite(value), f"{name}: term {term} is not a finite scalar"
                total = torch.stack(list(terms.values())).sum()
                gradients = torch.autograd.grad(total, player.parameters, allow_unused=True)
                felt = [f if g is None else f + g.abs() for f, g in zip(felt, gradients, strict=True)]
            assert all(bool(f.any()) for f in felt), f"{name}: a parameter of phase {phase.name} gets no gradient"


def check_learns(name: str, loss: Loss) -> None:
    """The loss falls on a toy, and the field answers for any batch shape."""
    problem = own_problem(name, loss)
    # Recurrences in time see one domain after another, and need longer.
    longer = {"epochs": 40} if METHODS[name].needs.ordered and "epochs" in schema(METHODS[name]) else {}
    method = make_method(name, problem, **longer)
    history = fit(method).history
    # The adversaries' parts of a loss may go either way; the risk must fall.
    key = "risk" if all("risk" in record for record in history) else "loss"
    last_phase = [record[key] for record in history if record["phase"] == history[-1]["phase"]]
    assert min(last_phase) <= last_phase[0], f"{name}: the loss never fell"
    assert last_phase[-1] <= history[0][key] or len({r["phase"] for r in history}) > 1, f"{name}: the loss rose"
    thetas = method.field()(torch.rand(2, 3, problem.domains.z.shape[1], dtype=torch.float64))
    assert thetas.shape == (2, 3, problem.predictor.dim)
    assert torch.isfinite(thetas).all()


def check_same_bits(name: str) -> None:
    """The same seed gives the same bits; another seed does not."""
    first, second = (_trained(name, own_problem(name)).state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first), f"{name}: same seed, other bits"
    other = _trained(name, own_problem(name, seed=1)).state_dict()
    assert any(not torch.equal(first[key], other[key]) for key in first), f"{name}: the seed does nothing"


class _FromHost(TorchDispatchMode):
    """Refuses what a recorded step cannot do: make a tensor of numbers of the host."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is not torch.ops.aten.lift_fresh.default, "a step that may be recorded takes numbers from the host"
        return func(*args, **(kwargs or {}))


class _Watching(StepRunner):
    """Runs steps as they are; from the second one of a kind on, under the watch."""

    def run(self, kind: Hashable, step: Callable[[], None]) -> None:
        first, self.seen[kind] = kind not in self.seen, 1
        with nullcontext() if first else _FromHost():
            step()


def check_recordable(name: str) -> None:
    """A step that may be recorded takes no numbers from the host: on a GPU, recording would fail."""
    for phase in make_method(name, own_problem(name)).phases():
        phase.begin()
        running = Running(phase, 1, capture=False)
        running.runner = _Watching(phase.device, False)
        for epoch in range(min(2, phase.epochs) if phase.captured else 0):
            running.run_epoch(epoch)
            running.epochs = 0


def check_permutation(name: str) -> None:
    """Renumbering the domains changes nothing: every θ(z) stays the same.

    Each domain holds one sample and each block holds all domains, so that draws do not depend on the numbering.
    """
    order = [3, 1, 5, 0, 4, 2]
    problems = [own_problem(name, sizes=(1,), order=given) for given in (None, order)]
    fields = [_trained(name, problem).field() for problem in problems]
    width = problems[0].domains.z.shape[1]
    query = torch.rand(7, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for z in (query, problems[0].domains.z):
        torch.testing.assert_close(fields[0](z), fields[1](z), rtol=1e-7, atol=1e-9, msg=lambda m: f"{name}: {m}")


def check_rebuilt(name: str) -> None:
    """The field is rebuilt from its kind, config and state dict alone."""
    field = _trained(name, own_problem(name)).field()
    rebuilt: ParameterField = FIELDS[field.kind](**field.config).double()
    rebuilt.load_state_dict(field.state_dict())
    z = torch.rand(5, field.descriptor_dim, dtype=torch.float64)
    assert torch.equal(field.eval()(z), rebuilt.eval()(z)), f"{name}: the rebuilt field differs"


def check_images(name: str) -> None:
    """Images with a backbone of convolutions are learned from, and scored, like rows of numbers."""
    method = make_method_of_images(name)
    fit(method)
    domains = method.problem.domains
    shown = domains.x[None, :5].expand(len(domains), -1, -1, -1, -1)
    outputs = method.predictor.eval()(method.field().eval()(domains.z), shown)
    assert torch.isfinite(outputs).all(), f"{name}: images have no finite outputs"


def check_resumed(name: str) -> None:
    """Stopped after half of its epochs and begun again, a training with a backbone ends in the same bits."""
    whole, stopped, resumed = (make_method_of_images(name) for _ in range(3))
    epochs = len(fit(whole).history)
    seen = 0

    def report(progress: Progress) -> None:
        nonlocal seen
        seen += 1
        if 2 * seen > epochs:
            raise InterruptedError

    with tempfile.TemporaryDirectory() as folder:
        with suppress(InterruptedError):
            fit(stopped, Checkpoint(Path(folder), {}, every=0.0), report)
        fit(resumed, Checkpoint(Path(folder), {}, every=0.0))
    expected = whole.state_dict()
    for key, value in resumed.state_dict().items():
        assert torch.equal(value, expected[key]), f"{name}: {key} differs after a stop"


def check_ignores_descriptors(name: str) -> None:
    """A method that declares no need of descriptors learns the same θ whatever they are."""
    problem = toy_problem()
    shuffled = replace(problem, domains=replace(problem.domains, z=problem.domains.z.flip(0) * 3))
    thetas: list[Tensor] = []
    for given in (problem, shuffled):
        given = replace(given, predictor=toy_problem().predictor)
        thetas.append(_trained(name, given).field()(torch.zeros(1, 2, dtype=torch.float64)))
    assert torch.equal(*thetas), f"{name} declares no need of descriptors, but reads them"
