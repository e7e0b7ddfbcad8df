"""Do the tests hold the code? A seeded sample of small faults, planted one by one: `make mutants`, or

    python benchmarks/mutants.py                        # 200 faults over search, bench and ledger; goes on where it was
    python benchmarks/mutants.py --rooms search --n 40
    python benchmarks/mutants.py --report               # what there is

cosmic-ray plants the faults (another operator, another number, a condition turned round) in a copy of the tree under
build/mutants, and the quick tests of the same room are run against each; a fault is *killed* when one of them fails or
none ends in time. Places are drawn evenly, then a fault at that place; type annotations, which nobody evaluates, and
texts are left out. A baseline without a fault must pass first.

Writes benchmarks/results/mutants.csv, a line for each fault; a word about each survivor stands in mutants-words.csv.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parents[1]
COPY = ROOT / "build/mutants"
OUT = ROOT / "benchmarks/results/mutants.csv"
ROOMS = {  # the tests of each room that take seconds
    "search": (
        "acquisition", "alternatives", "belief", "feasible", "penalty", "problem", "propose", "prune", "search",
        "strategy", "surrogate",
    ),
    "bench": ("bench", "rivals", "control", "paper", "optimum"),
    "ledger": ("ledger", "ledger_damage", "ledger_faults", "ledger_journal", "ledger_versions", "owner", "recorded"),
}  # fmt: skip
N, SEED = 200, 0
PATIENCE = 4.0  # times the baseline's seconds, after which a fault counts as killed


def modules(room: str) -> list[Path]:
    """The files of a room, relative to the root."""
    return sorted(p.relative_to(ROOT) for p in (ROOT / "src/acex" / room).rglob("*.py"))


def everything(room: str) -> list[Any]:
    """All faults that can be planted in a room and mean something."""
    from cosmic_ray.commands.init import init
    from cosmic_ray.work_db import WorkDB

    with tempfile.TemporaryDirectory() as folder:
        book = WorkDB(Path(folder) / "book.sqlite", WorkDB.Mode.create)
        init(modules(room), book, {})
        faults = [item.mutations[0] for item in book.work_items]
        book.close()
    silent = {path: set(unevaluated(path)) for path in modules(room)}
    return [fault for fault in faults if fault.start_pos[0] not in silent[fault.module_path]]


def unevaluated(path: Path) -> Iterator[int]:
    """Lines that hold an annotation and nothing else that runs: `x: int | None` in a signature or a class."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        notes = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for note in notes:
            if note is not None:
                yield from range(note.lineno, (note.end_lineno or note.lineno) + 1)


def sample(n: int, rooms: list[str]) -> list[tuple[str, Any]]:
    """So many faults, each with its room: places drawn evenly over all rooms, then a fault at the place."""
    places: dict[tuple[str, Path, Any], list[Any]] = {}
    for room in rooms:
        for fault in everything(room):
            places.setdefault((room, fault.module_path, fault.start_pos), []).append(fault)
    rng = random.Random(SEED)
    chosen = rng.sample(sorted(places, key=str), min(n, len(places)))
    return [(place[0], rng.choice(sorted(places[place], key=str))) for place in chosen]


def command(room: str) -> list[str]:
    """What runs the quick tests of a room in the copy."""
    files = [f"tests/test_{name}.py" for name in ROOMS[room] if (COPY / f"tests/test_{name}.py").exists()]
    return [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *files]


def baseline(room: str) -> float:
    """The seconds that the tests take without a fault.

    Raises:
        SystemExit: they fail without one.
    """
    started = time.monotonic()
    if subprocess.run(command(room), cwd=COPY, capture_output=True, check=False).returncode:
        raise SystemExit(f"the tests of {room} fail without a fault: {' '.join(command(room))} in {COPY}")
    return time.monotonic() - started


def copied() -> None:
    """A fresh copy of what tests need."""
    shutil.rmtree(COPY, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, COPY / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy(ROOT / name, COPY / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--n", type=int, default=N)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        plant(args.rooms.split(","), args.n)
    report(pd.read_csv(OUT, keep_default_na=False))


def plant(rooms: list[str], n: int) -> None:
    """Plant the faults that have no line yet, one by one."""
    from cosmic_ray.mutating import mutate_and_test

    os.chdir(ROOT)
    wanted = sample(n, rooms)
    done = pd.read_csv(OUT, keep_default_na=False) if OUT.exists() else pd.DataFrame(columns=["fault"])
    todo = [(room, fault) for room, fault in wanted if name(fault) not in set(done["fault"])]
    print(f"{len(todo)} of {len(wanted)} faults are to be planted.", flush=True)
    copied()
    os.environ["PYTHONPATH"] = str(COPY / "src")
    os.chdir(COPY)
    seconds = {room: baseline(room) for room in sorted({room for room, _ in todo})}
    hours = sum(seconds[room] for room, _ in todo) / 3600
    print(f"At most about {hours:.1f} hours, if all survive.", flush=True)
    for room, fault in todo:
        limit = 30 + PATIENCE * seconds[room]
        result = mutate_and_test([fault], " ".join(command(room)), limit)
        changed = [
            line for line in (result.diff or "").splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
        ]
        line = {
            "fault": name(fault),
            "room": room,
            "outcome": "survived" if not result.is_killed else "killed",
            "change": " -> ".join(text[1:].strip() for text in changed),
        }
        done = pd.concat([done, pd.DataFrame([line])], ignore_index=True)
        done.to_csv(OUT, index=False)
        print(f"{line['outcome']:9s} {line['fault']}: {line['change']}", flush=True)


def name(fault: Any) -> str:
    """What tells a fault from others."""
    where = f"{fault.module_path}:{fault.start_pos[0]}:{fault.start_pos[1]}"
    return f"{where} {fault.operator_name.removeprefix('core/')} {fault.occurrence}"


def report(done: pd.DataFrame) -> None:
    """How many were killed, by room, and who survived."""
    killed = done["outcome"] == "killed"
    for room, part in done.groupby("room"):
        print(f"{room}: {killed[part.index].sum()} of {len(part)} killed")
    print(f"all: {killed.sum()} of {len(done)} killed ({killed.mean():.0%})")
    for line in done[~killed].to_dict("records"):
        print(f"  survived: {line['fault']}: {line['change']}")


if __name__ == "__main__":
    main()
