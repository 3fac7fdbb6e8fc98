"""The import graph points one way, and the program starts light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import thetafield

ROOT = Path(thetafield.__file__).parent
# From the top of the house to the ground: a module imports from its own floor or from those below.
FLOORS = [
    {"cli", "__main__"},
    {"speed"},
    {"testing"},
    {"report", "explorer", "serving"},
    {"compare"},
    {"bench"},
    {"estimators"},
    {"training", "evaluation"},
    {"methods"},
    {"fields"},
    {"geometry", "predictors", "datasets"},
    {"data"},
    {
        "errors",
        "evenly",
        "files",
        "interrupts",
        "kernels",
        "memory",
        "options",
        "ranks",
        "registry",
        "streams",
        "typing",
        "__init__",
    },
]
ABOUT = {"__version__"}


def rooms():
    return [path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"]


def floor(module):
    parts = module.split(".")
    room = parts[1] if len(parts) > 1 and parts[1] not in ABOUT else "__init__"
    return next(i for i, names in enumerate(FLOORS) if room in names)


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            bare = node.module == "thetafield"  # of which a name may be a room
            yield from (f"thetafield.{alias.name}" for alias in node.names) if bare else (node.module,)


@pytest.mark.parametrize("path", rooms(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    here = "thetafield." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for name in imports(path):
        if name.split(".")[0] == "thetafield":
            assert floor(name) >= floor(here), f"{here} imports {name}, which lies above it"


def test_every_file_fits_in_a_head():
    long = {str(p.relative_to(ROOT)): n for p in rooms() if (n := len(p.read_text().splitlines())) > 320}
    assert not long


def test_core_imports_nothing_but_core():
    """Everything outside report (and later extras) runs on the core dependencies alone, kernels on Triton as well."""
    core = {"torch", "numpy", "scipy", "sklearn", "safetensors", "pyarrow", "typer", "rich", "jaxtyping", "thetafield"}
    for path in rooms():
        if path.relative_to(ROOT).parts[0] not in ("report", "serving"):
            allowed = core | ({"triton"} if path.stem.endswith("_kernel") else set())
            for name in imports(path):
                top = name.split(".")[0]
                assert top in allowed or top in sys.stdlib_module_names, f"{path} imports {name}"


def test_kernels_are_imported_where_they_serve_alone():
    """A kernel needs Triton, which comes with torch for GPUs: nothing imports one at its top."""
    for path in rooms():
        assert not any(name.endswith("_kernel") for name in imports(path)), f"{path} imports a kernel"


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["train", "--help"],
        ["bench", "--help"],
        ["compare", "--help"],
        ["demo", "--help"],
        ["speed", "--help"],
    ],
)
def test_help_does_not_import_torch(words):
    script = (
        "import sys; sys.argv = ['thetafield', *sys.argv[1:]]\n"
        "from thetafield.cli import app\n"
        "try: app()\n"
        "except SystemExit as end: code = end.code\n"
        "heavy = {'torch', 'sklearn', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "thetafield" in done.stdout.lower()
