"""Run a page of the documentation from top to bottom in one folder.

A block that starts with ```python runs in one namespace for the whole page, ```sh in a shell. A block with a title,
such as ```python title="affine.py", is written to a file of that name and not run. A ```text block that follows a
block shows what it printed; a line of … stands for any lines. Its words must be those that were printed, its numbers
need not: they differ from machine to machine.

    python docs/theme/run_page.py docs/tutorial-two-moons.md --out out/page

With --write, what was printed and the pictures that were drawn take the place of those in the documentation.
"""

import argparse
import io
import os
import re
import subprocess
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+−]?\d(?:[\d.,]|e[-+]?\d)*|\bNone\b")  # an option without a value may get one elsewhere
ANY = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Args:
        language: The word behind the fence.
        title: Name of the file that it is written to; empty where it is run.
        text: What it holds.
        span: Where its text lies in the page.
    """

    language: str
    title: str
    text: str
    span: tuple[int, int]


class PageError(Exception):
    """A block failed, or printed other words than the page shows."""


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return [Block(found[1], found[2] or "", found[3], found.span(3)) for found in BLOCK.finditer(page)]


def words(text: str) -> str:
    """Return what is printed, whatever the numbers and the widths of columns are."""
    return "\n".join(" ".join(NUMBER.sub("0", line).split()) for line in text.strip().splitlines())


def same(shown: str, printed: str) -> bool:
    """Return whether printed lines are the shown ones up to numbers; a line of … stands for any lines."""
    parts = [re.escape(words(part)) for part in re.split(rf"^{ANY}$", shown, flags=re.MULTILINE)]
    return re.fullmatch(r"\s*.*\s*".join(parts), words(printed), re.DOTALL) is not None


def run_page(path: Path, watch: bool = False) -> dict[Block, str]:
    """Run the blocks of a page in the current folder and return what each output block should show."""
    main = ModuleType("__main__")
    sys.modules["__main__"] = main  # classes and functions of the page belong to it
    sys.path.insert(0, "")
    outputs: dict[Block, str] = {}
    printed: str | None = None
    for block in blocks(path.read_text(encoding="utf-8")):
        started = time.perf_counter()
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
            continue
        if block.language == "python":
            printed = _python(block, main)
        elif block.language == "sh":
            printed = _shell(block)
        elif block.language == "text" and printed is not None:
            outputs[block], printed = printed, None
            continue
        else:
            continue
        if watch:
            first = block.text.strip().splitlines()[0]
            print(f"{time.perf_counter() - started:5.1f} s  {first}", file=sys.stderr)
    return outputs


def _python(block: Block, main: ModuleType) -> str:
    with redirect_stdout(io.StringIO()) as caught:
        exec(compile(block.text, "<page>", "exec"), main.__dict__)
    return caught.getvalue()


def _shell(block: Block) -> str:
    # The commands of this environment come first, so that `thetafield` is the one that is documented.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path, "COLUMNS": "100"},
        check=False,
    )
    if done.returncode:
        raise PageError(f"{block.text}\nended with exit code {done.returncode}:\n{done.stderr}")
    return done.stdout


def check(outputs: dict[Block, str]) -> None:
    """Raise where an output block shows other words than were printed."""
    for block, printed in outputs.items():
        if not same(block.text, printed):
            raise PageError(f"The page shows\n\n{block.text}\nbut this was printed:\n\n{printed}")


def write(path: Path, outputs: dict[Block, str]) -> None:
    """Put what was printed, and the pictures that were drawn, into the documentation."""
    page = path.read_text(encoding="utf-8")
    for block, printed in reversed(outputs.items()):
        if f"{ANY}\n" not in block.text:
            lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
            page = page[: block.span[0]] + "\n".join(lines) + "\n" + page[block.span[1] :]
    path.write_text(page, encoding="utf-8")
    for name in re.findall(r"\(images/([\w.-]+)\)", page):
        if Path(name).exists():
            shrink(Path(name), path.parent / "images" / name)


def shrink(picture: Path, target: Path) -> None:
    """Write a picture with 128 colours, a third of its size."""
    from PIL import Image

    with Image.open(picture) as image:
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)


def main() -> None:
    """Run the page that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="An empty folder to run in.")
    parser.add_argument(
        "--write",
        action="store_true",
        help="Write outputs and pictures into the documentation.",
    )
    given = parser.parse_args()
    page = given.page.absolute()
    given.out.mkdir(parents=True, exist_ok=True)
    os.chdir(given.out)
    outputs = run_page(page, watch=True)
    if given.write:
        write(page, outputs)
    else:
        check(outputs)


if __name__ == "__main__":
    main()
