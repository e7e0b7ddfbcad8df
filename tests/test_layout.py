"""The rooms are in order: a file imports only from the ones before it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import acex

SOURCE = Path(acex.__file__).parent
ROOMS = """
    errors arrays values features columns space schema region scale quantiles cost plausibility
    kernel surrogate acquisition climb branch propose problem families polish penalty belief feasible search hints
    ledger_tables ledger_store ledger models protocols remote modelfiles target blackbox explanation recorded sentences
    measures plots report pool session explainer executors batch datasets bench cli
"""
ORDER = ROOMS.split()
POINTS_ONLY = ORDER[ORDER.index("kernel") : ORDER.index("search") + 1]


def imports(path: Path) -> set[str]:
    """The acex modules that a file imports at module level, type checking aside."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("acex."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "acex":
            found.update(a.name for a in node.names)
    return found


def rooms() -> dict[str, set[str]]:
    out: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room not in ("__init__", "__main__"):
            out.setdefault(room, set()).update(imports(path) - {room})
    return out


def test_every_file_has_its_place_in_the_order() -> None:
    assert set(rooms()) <= set(ORDER)


def test_imports_point_one_way() -> None:
    for room, used in rooms().items():
        later = {u for u in used & set(ORDER) if ORDER.index(u) > ORDER.index(room)}
        assert not later, f"{room} imports {later}"


def test_from_kernel_to_search_there_is_no_pandas() -> None:
    for room in POINTS_ONLY:
        assert "pandas" not in (SOURCE / f"{room}.py").read_text(encoding="utf-8"), room


def test_importing_acex_leaves_what_only_some_models_need() -> None:
    some = {"httpx2", "skops", "onnxruntime", "dask", "distributed", "pyarrow.parquet"}
    code = f"import acex, sys; print(*{some} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
