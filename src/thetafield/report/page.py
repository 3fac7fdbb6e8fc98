"""The demo's page: one HTML file that asks for nothing else."""

from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from thetafield.evaluation.looks import DIRECTIONS, believed, manifold
from thetafield.geometry.laws import Laws
from thetafield.report.embed import Embedded, embed
from thetafield.report.figures import (
    descriptor_space,
    direction_boundaries,
    error_maps,
    parameter_manifold,
    relevance_bars,
    unseen_boundaries,
)
from thetafield.report.result import DemoResult

# Error in % on all test domains of 2-Moons, from the paper's table of main results.
PAPER_ERRORS = {"erm": "34.7 ± 0.2", "erm-d": "13.1 ± 1.5", "nda": "25.4 ± 0.3", "neurallio": "3.2 ± 1.2"}
IN_WORDS = {
    "erm": "one model for all domains",
    "erm-d": "one model that also reads the descriptor",
    "nda": "the model of the nearest training domain",
    "neurallio": "a model for every descriptor, carried there by a learned transport",
}


@dataclass(frozen=True)
class LawRow:
    """A line of the table of laws: cosines and latent defect in %."""

    name: str
    meaning: str
    cosine: float
    paper: float
    defect: float


def law_rows(laws: Laws) -> list[LawRow]:
    """Return the measured laws beside the paper's values (its table of structure properties)."""
    return [
        LawRow("Identity", "from z to z changes nothing", laws.identity, 99.9, laws.identity_defect),
        LawRow(
            "Associativity",
            "by way of a third domain, or straight",
            laws.associativity,
            99.1,
            laws.associativity_defect,
        ),
        LawRow("Invertibility", "there and back again", laws.invertibility, 98.3, laws.invertibility_defect),
    ]


def draw_figures(result: DemoResult) -> dict[str, Embedded]:
    """Draw every figure of the page; a quick run gets coarser ones."""
    data, last = result.dataset, result.runs[-1]
    on_mesh = {run.title: run.groups["mesh"] for run in result.runs}
    unseen = data.test["random"].select(list(result.unseen))
    pixels, mesh = (40, 20) if result.quick else (160, 100)
    at_unseen = {run.title: believed(run.model, unseen, pixels) for run in result.runs}
    on_paths = {
        each.title: believed(last.model, each.domains(result.seed), pixels, one_zoom=True) for each in DIRECTIONS
    }
    surface = manifold(last.model, mesh)
    assert surface is not None  # a transported field is no constant
    return {
        "space": embed(descriptor_space(data, result.unseen), vector=True),
        "maps": embed(error_maps(on_mesh, data.test["mesh"], data.train), vector=True),
        "relevance": embed(relevance_bars(last.model.relevance_ranges()), vector=True),
        "boundaries": embed(unseen_boundaries(at_unseen, unseen), vector=False),
        "manifold": embed(parameter_manifold(surface), vector=False),
        "directions": embed(direction_boundaries(on_paths, data.train, result.seed), vector=False),
    }


def render_page(result: DemoResult) -> str:
    """Return the whole page as HTML."""
    package = files("thetafield.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(package.joinpath("page.html.jinja").read_text(encoding="utf-8"))
    last = result.runs[-1]
    return template.render(
        css=package.joinpath("page.css").read_text(encoding="utf-8"),
        result=result,
        figures=draw_figures(result),
        laws=law_rows(result.laws) if result.laws is not None else [],
        last=last,
        rival=min(result.runs[:-1], key=lambda run: run.scores.score),
        worst=max(run.scores.score for run in result.runs),
        paper=PAPER_ERRORS,
        in_words=IN_WORDS,
        num_test=len(last.scores.per_domain),
        relevance=", ".join(f"{name} {share:.2f}" for name, share in last.model.relevance().items()) + ".",
        mean_errors=", ".join(f"{run.title} {run.groups['mesh'].macro:.1f} %" for run in result.runs) + ".",
    )
