"""The figures that look into 2-Moons: its descriptor space, boundaries at unseen domains, the manifold, error maps."""

from collections import Counter
from collections.abc import Container, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from thetafield.evaluation.looks import quarter_domains
from thetafield.evaluation.scores import Scores
from thetafield.report.figures import (
    descriptor_space,
    direction_boundaries,
    error_maps,
    parameter_manifold,
    unseen_boundaries,
)
from thetafield.report.figures.digits import digit_domains
from thetafield.report.store.items import Trial
from thetafield.report.store.kept import digest
from thetafield.report.store.paper import is_ours
from thetafield.report.store.picture import Picture, drawable
from thetafield.report.store.reading import Results
from thetafield.report.store.rebuilt import Rebuilt

ROWS = ("erm", "erm-d", "nda", "cida", "neurallio-paper", "neurallio")
BOUNDED = ROWS[1:]  # in the figure of boundaries, as in the paper's


def look_pictures(results: Results, rebuilt: Rebuilt) -> list[Picture]:
    """Return the figures of one seed of 2-Moons; none without a result on it."""
    moons = [trial for trial in results.trials if trial.dataset == "two-moons" and not trial.altered]
    moons.sort(key=lambda trial: results.suites.index(trial.suite))  # a trial goes by its label in the first suite
    return _moon_pictures(results, moons, rebuilt) if moons else []


def digit_pictures(results: Results, rebuilt: Rebuilt) -> list[Picture]:
    """Return what the domains of MNIST look like, where a suite asks for them."""
    asked = next((item for item in results.items if item.dataset == "mnist" and not item.altered), None)
    if asked is None:
        return []
    return [
        Picture(
            name="mnist-domains",
            title="MNIST's domains",
            caption=(
                "One digit of each of 18 training and 18 test domains. Below it: by how much digits are turned, how "
                "far their colour is from red to blue, and the side of the square that covers them."
            ),
            alt="Pictures of handwritten digits, turned, coloured from red to blue, with a white square each.",
            command=results.command(results.suite),
            draw=lambda: digit_domains(rebuilt.dataset(asked)),
            vector=False,
            cost=2,
        )
    ]


def _moon_pictures(results: Results, moons: Sequence[Trial], rebuilt: Rebuilt) -> list[Picture]:
    looks = {t.key: look for t in moons if t.method in BOUNDED and (look := results.look(t)) is not None}
    seed = _seed(moons, looks)
    chosen: dict[str, Trial] = {}
    for trial in sorted(moons, key=lambda trial: trial.key not in looks):  # of several, the first is taken
        if trial.spec["seed"] == seed:
            chosen.setdefault(trial.method, trial)
    rows = [chosen[method] for method in ROWS if method in chosen]
    fields = [trial for trial in rows if trial.key in looks]
    ours = next((trial for trial in reversed(fields) if is_ours(trial.method)), None)
    look = looks[ours.key] if ours is not None else None
    surface = look.surface if look is not None else None
    command = results.command(moons[0].suite)
    none = (
        f"No field of 2-Moons with seed {seed} was kept: a suite keeps them where its grid says `keep = true`, as "
        "`paper-table1` does with seed 0, and running it adds what is lacking."
    )
    data = partial(rebuilt.dataset, moons[0] if not rows else rows[0])

    def boundaries() -> Figure:
        random = data().test["random"]
        beliefs = {drawable(trial.row): looks[trial.key].unseen for trial in fields}
        return unseen_boundaries(beliefs, random.select(list(quarter_domains(random.z.numpy()))))

    def maps() -> Figure:
        mesh = data().test["mesh"]
        for trial in _four(rows):
            rebuilt.check(trial)
        scores = {drawable(trial.row): _mesh_scores(trial, len(mesh)) for trial in _four(rows)}
        return error_maps(scores, mesh, data().train)

    marks = {trial.key: digest(looks[trial.key].record()) for trial in fields}
    name = ours.row if ours is not None else "our method"
    return [
        Picture(
            name="descriptor-space",
            title="The descriptor space of 2-Moons",
            caption=(
                "Every dot is a whole data set. Left: what methods are trained on. Right: where they are asked; A to D "
                "are the random test domains nearest the centre of each quarter. Below: the same two moons, six times."
            ),
            alt="Training domains, and random and mesh test domains, as dots in the plane of scale and rotation.",
            command=command,
            draw=lambda: descriptor_space(data(), quarter_domains(data().test["random"].z.numpy())),
        ),
        Picture(
            name="error-maps",
            title="Where each method errs on 2-Moons",
            caption=f"One cell per mesh domain of seed {seed}, one scale; pale is good, dots are training domains.",
            alt=f"Maps of the error over scale and rotation for {', '.join(trial.row for trial in _four(rows))}.",
            command=command,
            draw=maps if rows else None,
            reason="There is no result of a method to map.",
        ),
        Picture(
            name="boundaries",
            title="Four domains that nobody has seen",
            caption=(
                "Rows are methods, columns the domains A to D. The tint is the probability of each class, the line the "
                "decision boundary, the number the error."
            ),
            alt=f"Decision boundaries of {', '.join(trial.row for trial in fields)} at four unseen domains.",
            command=command,
            draw=boundaries if fields else None,
            reason=none,
            vector=False,
            cost=5,
            content_digest=digest("boundaries", seed, *((trial.row, marks[trial.key]) for trial in fields)),
            narrow=640,
        ),
        Picture(
            name="manifold",
            title="The parameters form a surface",
            caption=f"θ(z) of {name} on a mesh over all of Z, projected on its three main directions.",
            alt="A curved surface in three dimensions, drawn twice: coloured by scale and coloured by rotation.",
            command=command,
            draw=(lambda: parameter_manifold(surface)) if surface is not None else None,
            reason=none if look is None else f"θ(z) of {name} is the same everywhere.",
            vector=False,
            cost=5,
            content_digest=digest("manifold", marks[ours.key]) if ours is not None else "",
        ),
        Picture(
            name="directions",
            title="Travelling through the plane",
            caption=f"{name} along three straight paths; every panel is a domain of its own with fresh data.",
            alt="Rows of panels with the decision boundary along scale only, rotation only, and both.",
            command=command,
            draw=(lambda: direction_boundaries(look.directions, data().train, seed)) if look is not None else None,
            reason=none,
            vector=False,
            cost=5,
            content_digest=digest("directions", seed, marks[ours.key]) if ours is not None else "",
            narrow=960,
        ),
    ]


def _seed(trials: Sequence[Trial], looks: Container[str]) -> int:
    """Return the seed with the most looks; the lowest of several."""
    counts = Counter({trial.spec["seed"]: 0 for trial in trials})
    counts.update(trial.spec["seed"] for trial in trials if trial.key in looks)
    return min(counts, key=lambda seed: (-counts[seed], seed))


def _four(rows: Sequence[Trial]) -> list[Trial]:
    """Return at most four methods: the first, the best of the others, and ours."""
    ours = [trial for trial in rows if is_ours(trial.method)]
    others = sorted((trial for trial in rows if not is_ours(trial.method)), key=lambda trial: trial.result["score"])
    shown = {trial.key for trial in [*rows[:1], *others[: 4 - len(ours)], *ours]}
    picked = [trial for trial in rows if trial.key in shown]
    return picked if len(picked) <= 4 else [*picked[: 4 - len(ours)], *ours]


def _mesh_scores(trial: Trial, count: int) -> Scores:
    """Return the scores on the mesh, which is the last group; its domains have equal sizes."""
    errors = np.asarray(trial.result["per_domain"][-count:])
    return Scores.of(trial.result["metric"], errors, np.ones(count))
