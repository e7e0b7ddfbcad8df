"""All tables and pictures of the paper, beside ours, by one command: `make paper`, or

    python benchmarks/paper.py                          # everything that is not there yet; says how long it will take
    python benchmarks/paper.py --suites moons,control   # some of it
    python benchmarks/paper.py --rows 20 --seeds 10     # smaller
    python benchmarks/paper.py --dry-run                # what is missing, and how long that would take

The mixed test with all methods, the fixed test (two rows of either label, 100 seeds) with the paper's methods and
"feasible", its pictures of moons and MNIST, and the tuning of a controller. It can be stopped at any time and goes on;
results of a method that has changed since are made again. What is done is kept in benchmarks/results/paper, packed;
the tables are written to tables.md there, the pictures to docs/pictures.

Needs the data sets (ACEX_DATA), `make peers`, and for MNIST's convolutional network torch.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from acex.bench import figures, run
from acex.bench.ground import ground
from acex.bench.methods import METHODS
from acex.bench.records import Record, pack, read
from acex.bench.score import frame
from acex.bench.table import markdown, tables

ROOT = Path(__file__).parents[1]
KEPT, WORK, PICTURES = ROOT / "benchmarks/results/paper", ROOT / "build/paper", ROOT / "docs/pictures"
AS_LINES = ("moons", "mnist")  # their pictures need the rows, which packing leaves out
PICTURED = 1  # rows of moons and mnist
FEW = 20  # rows in the picture of curves, which all methods have
GUESS = 5.0  # seconds for an explanation by a method of which nothing is known


def jobs(suites: Sequence[str], methods: Sequence[str] | None, rows: int, seeds: int) -> Iterator[run.Job]:
    """All that belongs to these suites."""
    for name in suites:
        suite = run.SUITES[name]
        wanted = [m for m in suite.methods if methods is None or m in methods]
        n = min(rows, PICTURED) if name in AS_LINES else rows
        yield from run.jobs(name, suite.data, wanted, rows=n, seeds=seeds)


def hours(todo: Sequence[run.Job], done: Sequence[Record], cores: int) -> float:
    """How long these jobs would take, by what their like have taken."""
    seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for record in done:
        for key in ((record["method"], record["data"]), (record["method"],)):
            seconds[key].append(record["seconds"])

    def one(job: run.Job) -> float:
        known = seconds.get((job.method, job.data)) or seconds.get((job.method,)) or [GUESS]
        return float(np.mean(known))

    return sum(map(one, todo)) / 3600 / cores


def keep(records: Sequence[Record], suites: Sequence[str]) -> None:
    """Write what is current of these suites into the folder that is kept."""
    current = [record for record in records if run.is_current(record)]
    for name in suites:
        part = [record for record in current if record["suite"] == name]
        if part and name in AS_LINES:
            last = {(record["data"], record["row"], record["method"]): record for record in part}
            text = "".join(json.dumps(record) + "\n" for record in last.values())
            (KEPT / f"{name}.jsonl").write_text(text, encoding="utf-8")
        elif part:
            pack(part, KEPT / f"{name}.csv")


def show(results: pd.DataFrame) -> None:
    """The tables and the pictures of all that there is."""
    text = "\n".join(markdown(table) for table in tables(results))
    (KEPT / "tables.md").write_text(text, encoding="utf-8")
    for suite, part in results.groupby("suite", sort=False):
        if suite == "mixed":
            blind = part[(part["row"] < FEW) & (part["method"] != "treecf")]  # who knows the model needs no queries
            figure = figures.draw_curves(figures.curves_record(blind))
            figure.savefig(PICTURES / "benchmark.png")
        one = part[part["row"] == 0]
        if suite == "moons":
            runs = {line["method"]: line for line in one.to_dict("records")}
            drawn = [figures.boundary_record(ground("moons"), runs[m]) for m in figures.IN_THE_PLANE if m in runs]
            figures.draw_boundaries(drawn).savefig(PICTURES / "moons.png")
        if suite == "mnist" and one["valid"].any():
            figures.draw_digits(figures.digits_record(one)).savefig(PICTURES / "mnist.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default=",".join(run.SUITES))
    parser.add_argument("--methods", help="with commas between them; by default those of each suite")
    parser.add_argument("--rows", type=int, default=100, help="of each data set in the mixed test")
    parser.add_argument("--seeds", type=int, default=100, help="in the fixed test, and histories of controllers")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for all cores")
    parser.add_argument("--dry-run", action="store_true", help="say what is missing, and do nothing")
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    for path in (*KEPT.glob("*.csv"), *KEPT.glob("*.jsonl")):
        if path.suffix == ".csv" or not (WORK / path.name).exists():
            shutil.copy(path, WORK / path.name)
    missing = {word for name in METHODS if (word := METHODS[name].missing()) is not None}
    suites = args.suites.split(",")
    if "mnist" in suites and find_spec("torch") is None:
        suites.remove("mnist")
        missing.add("mnist needs torch for its convolutional network: pip install torch")
    for word in sorted(missing):
        print(f"left out: {word}")
    methods = None if args.methods is None else args.methods.split(",")
    everything = list(jobs(suites, methods, args.rows, args.seeds))
    todo, before = run.unfinished(everything, WORK), read(WORK)
    cores = run.cores(args.jobs)
    left = f"{len(todo)} of {len(everything)} explanations are missing"
    print(f"{left}: about {hours(todo, before, cores):.1f} hours on {cores} cores. Stopped, the same command goes on.")
    if args.dry_run:
        return
    started = time.monotonic()
    try:
        run.run(todo, WORK, args.jobs)
    finally:
        keep(read(WORK), suites)
    print(f"{len(todo)} explanations in {(time.monotonic() - started) / 3600:.2f} hours.")
    show(frame(read(KEPT)))
    print(f"tables: {KEPT.relative_to(ROOT) / 'tables.md'}; pictures: {PICTURES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
