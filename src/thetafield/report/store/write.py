"""The report of a store, written: tables, figures, the page and the document."""

import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from thetafield import __version__
from thetafield.bench.packing import called, opened
from thetafield.files import writable_folder, write_whole
from thetafield.report.store.comma import csv_table
from thetafield.report.store.cost import processor
from thetafield.report.store.document import markdown_document
from thetafield.report.store.latex import latex_table
from thetafield.report.store.leftovers import sweep
from thetafield.report.store.markdown import markdown_table
from thetafield.report.store.reading import Results, read_store
from thetafield.report.store.sections import Section, Wanted, sections
from thetafield.report.store.shortfalls import missing, ordered
from thetafield.report.store.wording import lede

WRITERS = {"md": markdown_table, "tex": latex_table, "csv": csv_table}


@dataclass(frozen=True)
class Asked:
    """Where a report goes, and what is in it.

    Args:
        out: Folder of the page, its tables and its figures; None writes none.
        markdown: File of the document; None writes none.
        figures: Folder of figures for the document; None leaves them out of it.
        macro: Whether tables of means over domains are added.
        worst: Whether tables of the worst tenth of the domains are added.
    """

    out: Path | None = None
    markdown: Path | None = None
    figures: Path | None = None
    macro: bool = False
    worst: bool = False

    @property
    def drawn(self) -> bool:
        """Whether figures are needed."""
        return self.out is not None or self.figures is not None

    def command(self, store: Path) -> str:
        """Return the command that writes it again."""
        words = ["thetafield", "report", str(store)]
        for name in ("out", "markdown", "figures"):
            if (place := getattr(self, name)) is not None:
                words += [f"--{name}", str(place)]
        words += [f"--{name}" for name in ("macro", "worst") if getattr(self, name)]
        return shlex.join(words)


@dataclass(frozen=True)
class Report:
    """What was written.

    Args:
        files: The page, the document, tables and figures.
        trials: Number of finished trials.
        gaps: Number of trials without a result, by kind.
        short: Number of things that fall short, by kind.
        undrawn: Figures that could not be drawn, and why.
    """

    files: dict[str, Any]
    trials: int
    gaps: dict[str, int]
    short: dict[str, int]
    undrawn: dict[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return self.files | {
            "trials": self.trials,
            "gaps": self.gaps,
            "short": self.short,
            "not_drawn": self.undrawn,
        }


def write_report(store: Path, asked: Asked) -> Report:
    """Read a store, which may be a packed one, and write what is asked for.

    Raises:
        FormatError: There is no store, or it cannot be read.
        StoreError: It is of another format, or a packed one is damaged.
        NeedError: Figures are asked for, and the extra `thetafield[report]` is not installed.
        OptionError: A folder cannot be written to.
    """
    if asked.drawn:
        from thetafield.report.demo import check_extra

        check_extra()
    for folder in filter(None, (asked.out, asked.figures, asked.markdown and asked.markdown.parent)):
        writable_folder(folder)
    with opened(store) as folder:
        return _written(replace(read_store(folder), called=called(store)), store, asked)


def _written(results: Results, store: Path, asked: Asked) -> Report:
    parts = sections(results, Wanted(asked.macro, asked.worst, figures=asked.drawn))
    kept = None
    if asked.drawn:
        from thetafield.report.store.drawing import drawn
        from thetafield.report.store.kept import Kept

        folders = [asked.out and asked.out / "figures", asked.figures]
        kept = Kept(next(filter(None, folders)))
        parts = drawn(parts, kept)
    short = ordered([*(one for part in parts for one in part.shortfalls), *missing(results)])
    written: dict[str, Any] = {}
    if asked.out is not None:
        written["tables"] = _write_tables(parts, asked.out / "tables", store)
        written["figures"] = _write_figures(parts, asked.out / "figures", store)
        written["page"] = str(asked.out / "index.html")
        write_whole(asked.out / "index.html", _page(results, parts, short, asked, store).encode())
    if asked.figures is not None:
        written["document_figures"] = _write_figures(parts, asked.figures, store)
    if kept is not None:
        kept.note([one for part in parts for one in part.pictures])
    if asked.markdown is not None:
        command = asked.command(store)
        text = markdown_document(parts, short, command, lede(results), asked.markdown, asked.figures)
        write_whole(asked.markdown, text.encode())
        written["document"] = str(asked.markdown)
    kinds = sorted({gap.kind for gap in results.gaps})
    return Report(
        files=written,
        trials=len({trial.key for trial in results.trials}),
        gaps={kind: len({gap.key for gap in results.gaps if gap.kind == kind}) for kind in kinds},
        short={kind: len(found) for kind, found in short.items()},
        undrawn={one.name: one.reason for part in parts for one in part.pictures if one.embedded is None},
    )


def _write_tables(parts: Sequence[Section], folder: Path, store: Path) -> list[str]:
    written = []
    for table in (table for part in parts for table in part.tables):
        for ending, write in WRITERS.items():
            write_whole(folder / f"{table.name}.{ending}", write(table).encode())
            written.append(str(folder / f"{table.name}.{ending}"))
    sweep(folder, map(Path, written), store)
    return written


def _write_figures(parts: Sequence[Section], folder: Path, store: Path) -> list[str]:
    drawn = [one for part in parts for one in part.pictures if one.embedded is not None]
    for one in drawn:
        write_whole(folder / one.file, one.content)
    sweep(folder, [folder / one.file for one in drawn], store)
    return [str(folder / one.file) for one in drawn]


def _versions(results: Results, name: str) -> str:
    """Return with which versions of a program trials were run."""
    found = {str((trial.result.get("versions") or {}).get(name, "")) for trial in results.trials} - {""}
    return ", ".join(sorted(found)) or "not stored"


def _page(results: Results, parts: Sequence[Section], short: dict[str, Any], asked: Asked, store: Path) -> str:
    from thetafield.report.store.page import Made, render_store_page

    devices = sorted({processor(trial.result["device"]) for trial in results.trials if trial.result.get("device")})
    finished = sorted(str(trial.result["finished"])[:10] for trial in results.trials if trial.result.get("finished"))
    facts = {
        "Store": str(store),
        "Trained on": "; ".join(devices) or "not stored",
        "Trained between": f"{finished[0]} and {finished[-1]}" if finished else "not stored",
        **{f"Trained with {name}": _versions(results, name) for name in ("thetafield", "torch", "python")},
        "This page": f"thetafield {__version__}, Python {platform.python_version()}",
    }
    return render_store_page(results, parts, short, Made(asked.command(store), facts))
