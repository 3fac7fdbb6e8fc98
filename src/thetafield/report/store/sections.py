"""What is shown of each suite: its tables, its figures, and the words around them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from thetafield.report.store import shortfalls as falls
from thetafield.report.store import standing
from thetafield.report.store.comparison import MACRO, MICRO, WORST, Measure, comparison
from thetafield.report.store.cost import cost
from thetafield.report.store.pairing import duel_table, duels
from thetafield.report.store.parts import part_table
from thetafield.report.store.picture import Picture
from thetafield.report.store.properties import law_table, time_table, trust_table
from thetafield.report.store.ranking import ranking, standings
from thetafield.report.store.reading import Results
from thetafield.report.store.rebuilt import Rebuilt
from thetafield.report.store.shortfalls import Shortfall
from thetafield.report.store.sweeps import (
    Panel,
    convergence_panels,
    imperfection_panels,
    scaling_panels,
    sensitivity_panels,
    sweep_table,
)
from thetafield.report.store.table import Table

# Titles of the suites that come with the package, where the store does not have them.
TITLES = {
    "paper-table1": "The paper's main table",
    "real": "Real data",
    "ablation": "Ablation",
    "imperfection": "Imperfect descriptors",
    "laws": "The laws of the transport",
    "convergence": "Convergence",
    "sensitivity": "Sensitivity",
    "scaling": "Growth with domains and parameters",
    "runtime": "Time of training and testing",
    "smoke": "Smoke test",
}


@dataclass(frozen=True)
class Wanted:
    """What was asked for beside the main tables.

    Args:
        macro: Whether means over domains are shown too.
        worst: Whether means over the worst tenth of the domains are shown too.
        figures: Whether figures are drawn.
    """

    macro: bool = False
    worst: bool = False
    figures: bool = True

    @property
    def measures(self) -> list[Measure]:
        """What comparisons are made of."""
        return [MICRO, *[MACRO] * self.macro, *[WORST] * self.worst]


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Args:
        name: Name of the suite, or of what is looked at.
        title: Its head.
        about: Its first words.
        tables: Its tables.
        pictures: Its figures, drawn or not.
        shortfalls: What in it falls short.
        stands: What in it stands, in sentences.
        command: What runs it.
    """

    name: str
    title: str
    about: str
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    shortfalls: tuple[Shortfall, ...] = field(default=(), repr=False)
    stands: tuple[str, ...] = ()
    command: str = ""


def sections(results: Results, wanted: Wanted) -> list[Section]:
    """Return the parts of the report in the order of reading; figures are not drawn yet."""
    rebuilt = Rebuilt()
    made = [_section(results.of(suite), wanted, rebuilt) for suite in results.suites]
    if wanted.figures:
        from thetafield.report.store.look_pictures import look_pictures

        looks = tuple(look_pictures(results, rebuilt))
        if looks:
            about = "What methods make of single domains, on the data that everybody can picture."
            made.append(Section("looks", "A closer look", about, pictures=looks))
    return made


def _section(results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    suite = results.suite
    text = results.texts.get(suite)
    title = (text.title if text else "") or TITLES.get(suite, suite)
    about = " ".join(filter(None, (text.about if text else "", cost(results.trials))))
    plain = Section(suite, title, about, command=results.command(suite))
    build = BUILDERS.get(suite, _comparison)
    made = build(plain, results, wanted, rebuilt)
    return replace(made, tables=tuple(table.settled() for table in made.tables))


def _comparison(plain: Section, results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    """Methods by datasets, ours against the best other, and the domains behind the means."""
    found = duels(results)
    tables = [comparison(results, measure, _title(plain, measure)) for measure in wanted.measures]
    places = standings(tables[0])
    if places.say and len(places.complete) > 1:
        tables.append(ranking(tables[0], places))
    if found:
        tables.append(duel_table(results, found))
    trust = trust_table(results)
    tables += [trust] * (not trust.empty and plain.name != "ablation")
    parts = part_table(results)
    tables += [parts] * (not parts.empty and plain.name != "ablation")
    pictures: list[Picture] = []
    if wanted.figures and results.trials:
        from thetafield.report.store.domain_pictures import domain_pictures
        from thetafield.report.store.look_pictures import digit_pictures
        from thetafield.report.store.sweep_pictures import overview_picture

        pictures += filter(None, [overview_picture(tables[0])])
        pictures += domain_pictures(results, rebuilt) if plain.name != "ablation" else []
        pictures += digit_pictures(results, rebuilt) if plain.name == "paper-table1" else []
    short = [
        *falls.beside_the_paper(tables[0], baselines=plain.name == "paper-table1"),
        *falls.against_rivals(found),
        *falls.unsteady(results),
        *(falls.not_needed(tables[0]) if plain.name == "ablation" else ()),
    ]
    stands = [
        *standing.matched(tables[0], plain.title),
        *standing.ahead(found, plain.title),
        *standing.near(places, plain.title),
    ]
    return replace(plain, tables=tuple(tables), pictures=tuple(pictures), shortfalls=tuple(short), stands=tuple(stands))


def _title(plain: Section, measure: Measure) -> str:
    return plain.title if measure is MICRO else f"{plain.title}: {measure.words[0].lower()}{measure.words[1:]}"


def _smoke(plain: Section, results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    """A table alone: it is there to see that everything runs, and says nothing about methods."""
    return replace(plain, tables=tuple(comparison(results, one, _title(plain, one)) for one in wanted.measures))


def _laws(plain: Section, results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    table = law_table(results, plain.title)
    return replace(plain, tables=(table,), shortfalls=tuple(falls.beside_the_paper(table)))


def _runtime(plain: Section, results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    table = time_table(results, plain.title)
    return replace(plain, tables=(table,), shortfalls=tuple(falls.beside_the_paper(table)))


def _sweep(panels: list[Panel], plain: Section, results: Results) -> Section:
    tables = [sweep_table(panel, results, f"{plain.title}: {panel.label}") for panel in panels if panel.lines]
    short = [one for panel in panels for one in falls.unsteady_along(panel)]
    return replace(plain, tables=tuple(tables), shortfalls=tuple(short))


def _imperfection(plain: Section, results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    panels = imperfection_panels(results)
    made = _sweep(panels, plain, results)
    made = replace(made, shortfalls=(*falls.gate_in_noise(panels[0]), *made.shortfalls))
    if wanted.figures:
        from thetafield.report.store.imperfection_picture import imperfection_picture

        made = replace(made, pictures=(imperfection_picture(results, panels, plain.title),))
    return made


def _sensitivity(plain: Section, results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    panels = sensitivity_panels(results)
    made = _sweep(panels, plain, results)
    if wanted.figures:
        from thetafield.report.store.sweep_pictures import sensitivity_picture

        made = replace(made, pictures=(sensitivity_picture(results, panels, plain.title),))
    return made


def _convergence(plain: Section, results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    panels = convergence_panels(results)
    made = _sweep(panels, plain, results)
    made = replace(made, shortfalls=(*falls.beyond_bounds(panels[0]), *made.shortfalls))
    if wanted.figures:
        from thetafield.report.store.sweep_pictures import convergence_picture

        made = replace(made, pictures=(convergence_picture(results, panels),))
    return made


def _scaling(plain: Section, results: Results, wanted: Wanted, rebuilt: Rebuilt) -> Section:
    panels = scaling_panels(results)
    made = _sweep(panels, plain, results)
    if wanted.figures:
        from thetafield.report.store.sweep_pictures import growth_picture

        made = replace(made, pictures=(growth_picture(results, panels),))
    return made


Build = Callable[[Section, Results, Wanted, Rebuilt], Section]
# Suites of other names are comparisons.
BUILDERS: dict[str, Build] = {
    "smoke": _smoke,
    "imperfection": _imperfection,
    "laws": _laws,
    "convergence": _convergence,
    "sensitivity": _sensitivity,
    "scaling": _scaling,
    "runtime": _runtime,
}
