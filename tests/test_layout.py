"""The rooms are in order: a file imports only from the rooms before its own, lazily, for types or otherwise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FrameType

import pytest

import acex
from toys import bank, people, rejected

SOURCE = Path(acex.__file__).parent
ORDER = ["_version", "errors", "arrays", "values", "spreadsheets", "space", "search", "plan", "options"]
ORDER += ["ledger", "models", "engine", "audit", "batch", "api", "show", "datasets", "studio", "cli"]
# What a person types without a further import (`e.plot()`, `e.to_html()`); the work is done when they do.
CONVENIENCE = {
    ("acex.space.space", "acex.show"),
    ("acex.engine.explanation", "acex.show"),
    ("acex.batch.explanations", "acex.show"),
    ("acex.audit.groups", "acex.show"),
    ("acex.audit.feature_subsets", "acex.show"),
}
POINTS_ONLY = sorted((SOURCE / "search").glob("*.py"))


def module_of(path: Path) -> str:
    parts = ("acex", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in SOURCE.rglob("*.py")}
FACE = ("acex", "acex.__main__")  # may know every room


def imports(path: Path) -> set[str]:
    """The acex modules that a file imports anywhere in it: at the top, inside functions, for type checking."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.split(".")[0] == "acex")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "acex":
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(inside & set(MODULES) or {str(node.module)})
    return found


def room(module: str) -> str:
    return module.split(".")[1]


def test_every_file_has_its_place_in_the_order() -> None:
    assert {room(m) for m in MODULES if m not in FACE} <= set(ORDER)


@pytest.mark.parametrize("module", sorted(set(MODULES) - set(FACE)))
def test_imports_point_one_way(module: str) -> None:
    for used in imports(MODULES[module]):
        if used == "acex":
            # The face stands for every room but the last, which drives the library as users do.
            assert room(module) in ("studio", "cli"), f"{module} imports the face of the library"
        elif ORDER.index(room(used)) > ORDER.index(room(module)):
            assert any(module == at and used.startswith(to) for at, to in CONVENIENCE), f"{module} imports {used}"


MOST_IMPORTS = 15
MORE_IMPORTS = {  # with the reason
    "acex.api": "the public interface brings all rooms together",
    "acex.engine.planner": "turns options, a row, a model and a reference into a plan and a session",
    "acex.engine.session": "the one place where search, ledger and model meet",
    "acex.batch.explanations": "plans, runs, records and tabulates many rows",
}


@pytest.mark.parametrize("module", sorted(set(MODULES) - set(FACE)))
def test_a_module_imports_few_others(module: str) -> None:
    used = {name for name in imports(MODULES[module]) if name != "acex"}
    assert len(used) <= MOST_IMPORTS or module in MORE_IMPORTS, f"{module} imports {len(used)} modules: {sorted(used)}"


def test_class_names_are_unique() -> None:
    homes: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_no_two_files_need_each_other() -> None:
    edges = {m: {u for u in imports(MODULES[m]) if u != "acex" and room(u) == room(m)} for m in set(MODULES) - {*FACE}}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as cycle:
        pytest.fail(f"these import each other: {cycle.args[1]}")


@pytest.mark.parametrize("path", MODULES.values(), ids=lambda path: path.stem)
def test_the_package_does_not_import_the_benchmarks(path: Path) -> None:
    assert not re.search(r"^\s*(?:from|import) benchmarks\b", path.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("path", POINTS_ONLY, ids=lambda path: path.stem)
def test_the_search_knows_points_only(path: Path) -> None:
    assert "pandas" not in path.read_text(encoding="utf-8")


def loaded_after(code: str) -> set[str]:
    """The modules that a new process has after this code."""
    told = f"{code}\nimport sys; print(*sys.modules, sep='\\n', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


HELP = """
from acex.cli import app
from typer.main import get_command

def helps(command, *words):
    app([*words, "--help"], prog_name="acex", standalone_mode=False)
    parts = getattr(command, "commands", {})
    return 1 + sum(helps(part, *words, name) for name, part in parts.items())

assert helps(get_command(app)) >= 20
"""
FOR_SOME = {
    "httpx2",
    "jinja2",
    "skops",
    "onnxruntime",
    "dask",
    "distributed",
    "joblib",
    "matplotlib",
    "sklearn",
    "scipy.stats",
}


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("import acex", FOR_SOME | {"numpy", "pandas", "sqlalchemy", "scipy", "rich", "typer"}),
        (HELP, FOR_SOME | {"numpy", "pandas", "sqlalchemy", "scipy", "rich.progress"}),
        ("from acex import Space, Continuous, Plausibility, Region", FOR_SOME | {"sqlalchemy", "scipy", "rich"}),
        ("from acex import HttpModel", FOR_SOME | {"sqlalchemy", "scipy", "rich"}),
        ("from acex import Ledger", FOR_SOME | {"scipy", "rich"}),
        ("from acex import Explainer", FOR_SOME | {"rich", "typer"}),
    ],
    ids=["acex", "help of every command", "space", "http", "ledger", "explainer"],
)
def test_what_only_some_need_is_left_until_it_is_used(code: str, left: set[str]) -> None:
    assert loaded_after(code) & left == set()


MOST_FILES = 45


def test_an_explanation_without_a_ledger_runs_through_few_files() -> None:
    rows, explain = people(), acex.explain
    called = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            called.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        explain(bank, rejected(rows), rows, budget=15)
    finally:
        sys.setprofile(None)
    assert 0 < len(called) <= MOST_FILES, sorted(called)


# Modules without a test file of their own; each is covered by tests of what uses it.
# Classes without behaviour, and what the tests of batches and of redaction look at.
NO_TEST_FILE = {"acex.errors", "acex.engine.row_result"}


@pytest.mark.parametrize("module", sorted(set(MODULES) - {*FACE, "acex._version"}))
def test_a_module_has_a_test_file_of_its_name(module: str) -> None:
    _, *rooms, name = module.split(".")
    folder, names = Path(__file__).parent.joinpath(*rooms[:1]), [*rooms[1:], name]  # one file for all of show.plots
    tests = [path for name in names for path in (*folder.glob(f"test_{name}.py"), *folder.glob(f"test_{name}_*.py"))]
    is_package = MODULES[module].name == "__init__.py"
    assert is_package or bool(tests) != (module in NO_TEST_FILE)


def test_the_map_in_contributing_names_every_module_and_no_other() -> None:
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)/?`", " ".join(row))}
    modules = {part for module in MODULES for part in module.split(".")} - {"acex", "__main__", "_version"}
    assert modules <= named and named - modules <= {"explain", "Explainer", "Remark", "templates"}


def test_every_public_name_can_be_had() -> None:
    for name in acex.__all__:
        assert getattr(acex, name) is not None
    assert set(acex.__all__) <= set(dir(acex))
