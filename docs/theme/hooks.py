"""What MkDocs lacks for this site: links into the repository, tables of commands and suites, formulas."""

import logging
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
SHOWN = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}  # pages that hold such a file
KATEX = ("theme/katex/katex.min.css", "theme/katex/katex.min.js", "theme/formulas.js")

log = logging.getLogger("mkdocs.hooks")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files outside docs/ into links to the repository, or into plain paths where it has no address.

    And put the table of commands or suites where a page asks for it.
    """
    root, folder = Path(config.docs_dir).parent, posixpath.dirname(page.file.src_uri)

    def turned(link: re.Match[str]) -> str:
        words, target, anchor = link.groups(default="")
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        if path.startswith("docs/"):
            return link[0]
        if path in SHOWN:
            return f"[{words}]({posixpath.relpath(SHOWN[path], folder or '.')}{anchor})"
        if not (root / path).exists():
            log.warning("%s links to %s, which is not in the repository.", page.file.src_uri, path)
        if config.repo_url:
            return f"[{words}]({config.repo_url.rstrip('/')}/blob/main/{path}{anchor})"
        return f"`{path}`" if path in words or words in path else f"{words} (`{path}`)"

    for mark, table in TABLES.items():
        if mark in markdown:
            markdown = markdown.replace(mark, table(root))
    return LINK.sub(turned, markdown)


def _commands(root: Path) -> str:
    """Return the commands of the program, each with the first paragraph of its help."""
    from typer.main import get_command

    from thetafield.cli import app

    def listed(group: Any, words: str) -> Iterator[str]:
        for name, command in sorted(group.commands.items()):
            if hasattr(command, "commands"):
                yield from listed(command, f"{words} {name}")
            else:
                said = (command.help or "").split("\n\n")[0]
                yield f"| `{words} {name}` | {' '.join(said.split())} |"

    return "\n".join(["| command | does |", "|---|---|", *listed(get_command(app), "thetafield")])


def _suites(root: Path) -> str:
    """Return the suites of the package, each with what it says of itself."""
    suites = sorted((root / "src/thetafield/bench/suites").glob("*.toml"))
    lines = [f"| `{path.stem}` | {tomllib.loads(path.read_text(encoding='utf-8'))['about']} |" for path in suites]
    return "\n".join(["| suite | what it shows |", "|---|---|", *lines])


TABLES = {"<!-- commands -->": _commands, "<!-- suites -->": _suites}


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load KaTeX on pages with formulas, and nowhere else."""
    if 'class="arithmatex"' not in output:
        return output
    sheet, *scripts = (get_relative_url(path, page.url) for path in KATEX)
    loads = [
        f'<link rel="stylesheet" href="{sheet}">',
        *(f'<script defer src="{script}"></script>' for script in scripts),
    ]
    return output.replace("</head>", "\n".join([*loads, "</head>"]), 1)
