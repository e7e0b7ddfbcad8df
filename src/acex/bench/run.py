"""Running methods on tasks: resumable, on all cores, one JSON line for each explanation."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from acex.arrays import FloatArray
from acex.bench import control
from acex.bench.ground import Ground, ground
from acex.bench.methods import METHODS
from acex.bench.methods.method import CAP
from acex.bench.records import Record, append, read
from acex.bench.task import CapReached, Door, Task
from acex.datasets import PAPER
from acex.space.cost import n_changed

PAPERS = ("penalty", "baycon", "moc", "moc-stop", "growing-spheres")  # what the paper compares


@dataclass(frozen=True)
class Suite:
    """The data sets of a suite, its methods, and whether the same rows are explained with many seeds."""

    data: tuple[str, ...]
    methods: tuple[str, ...]
    is_repeated: bool = False


SUITES = {
    "mixed": Suite(PAPER, tuple(name for name in METHODS if name != "feasible-margin")),
    "fixed": Suite(PAPER, ("feasible", *PAPERS), is_repeated=True),
    "moons": Suite(("moons",), ("feasible", *PAPERS, "nearest", "random")),
    "mnist": Suite(("mnist",), ("feasible", "penalty", "gradient")),
    "control": Suite(
        tuple(control.PASSED),
        ("feasible", "feasible-labels", "feasible-margin", "penalty", "nearest", "growing-spheres"),
        is_repeated=True,
    ),
}
PLANE = 2  # features: with so few, all that was asked is kept for the picture


@dataclass(frozen=True)
class Job:
    """One explanation to be made, and what it is known by."""

    suite: str
    data: str
    row: int
    seed: int
    method: str
    cap: int


def jobs(
    suite: str, data: Sequence[str], methods: Sequence[str], *, rows: int, seeds: int, cap: int = CAP
) -> Iterator[Job]:
    """What a suite consists of, in an order in which all methods get on alike.

    In the fixed test two rows, one of either label, are explained with many seeds, in "control" one row with many
    histories; in the others each row once.
    """
    for step in range(seeds if SUITES[suite].is_repeated else rows):
        for name in data:
            g = _ground(name, step)
            repeated = two_rows(g) if suite == "fixed" else (0,)
            for row in repeated if SUITES[suite].is_repeated else (step,):
                for method in methods:
                    if row < len(g.rows) and METHODS[method].refuses(g) is None:
                        yield Job(suite, name, row, step, method, cap)


def two_rows(g: Ground) -> tuple[int, int]:
    """The first withheld rows that the model gives label 0 and label 1."""
    labels = g.predict(g.rows)
    return int(np.argmax(labels == 0)), int(np.argmax(labels == 1))


def run(todo: Sequence[Job], out: Path, n_jobs: int = -1, told: Callable[[Record], None] = lambda record: None) -> None:
    """Do the jobs, and write each result as a line into a file of the suite's name in the folder `out`.

    Args:
        told: is called with each result when it is written.
    """
    out.mkdir(parents=True, exist_ok=True)
    results = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
        joblib.delayed(explained)(job) for job in todo
    )
    for record in results:
        append(out / f"{record['suite']}.jsonl", record)
        told(record)


def cores(n_jobs: int) -> int:
    """How many processes that many jobs are: -1 is one for each core."""
    return int(joblib.effective_n_jobs(n_jobs))


def unfinished(todo: Sequence[Job], out: Path) -> list[Job]:
    """The jobs that have no result yet, or only one of an earlier revision of the method."""
    done = {_job(record) for record in read(out) if "error" not in record and is_current(record)}
    return [job for job in todo if job not in done]


def is_current(record: Record) -> bool:
    """Would the method, as it is now, ask the same?"""
    return bool(record.get("revision", 1) == METHODS[record["method"]].revision)


def _job(record: Record) -> Job:
    return Job(**{name: record[name] for name in Job.__dataclass_fields__})


def explained(job: Job) -> Record:
    """What one method reaches on one row; an exception of the method is a result too."""
    g = _ground(job.data, job.seed)
    task = Task(g, g.rows[job.row])
    door = Door(task, job.cap)
    started = time.perf_counter()
    method = METHODS[job.method]
    record: Record = asdict(job) | {"revision": method.revision}
    record |= {"settings": _settings(g, task), "versions": _versions(method.package)}
    with threadpool_limits(1):
        try:
            candidates = method.explain(task, door, job.seed)
        except CapReached:
            candidates = np.empty((0, len(task.x))) if door.best is None else door.best[None]
        except Exception as error:  # of somebody else's package: the other rows go on
            candidates = np.empty((0, len(task.x)))
            record["error"] = f"{type(error).__name__}: {error}"
    record |= {
        "seconds": round(time.perf_counter() - started, 3),
        "queries": door.queries,
        "distinct": door.distinct,
        "candidates": len(candidates),
        "curve": door.curve,
        "label": door.before,
        "reference": len(g.reference),
        "factual": task.x.tolist(),
    }
    if len(task.x) == PLANE:
        record["asked"] = door.answers
    record |= _measured(task, candidates)
    if job.suite == "mnist" and record.get("is_reference_row"):
        record["made"] = _made(task, door)
    if job.suite == "control" and record["valid"]:
        record["steady"] = control.steadiness(np.array(record["counterfactual"]))
    return record


def _made(task: Task, door: Door) -> Record:
    """The measures of the best hit that the method made itself, where its answer is an image of the reference."""
    asked = np.array([row for row, label in door.answers if label != door.before])
    own = asked[[not task.ground.in_reference(x) for x in asked]]
    return _measured(task, own)


def _measured(task: Task, candidates: FloatArray) -> Record:
    """The measures of the valid candidate of least J. The referee looks at the model itself: this is no query."""
    g = task.ground
    if len(candidates):
        before = g.predict(task.x[None])[0]
        candidates = candidates[task.allowed(candidates) & (g.predict(candidates) != before)]
    if len(candidates) == 0:
        return {"valid": False}
    best = candidates[np.argmin(task.cost(candidates))]
    step, z = best - task.x, (best - task.x) / g.deviations
    return {
        "valid": True,
        "J": float(task.cost(best[None])[0]),
        "d2": float(np.linalg.norm(step)),
        "g1": float(np.abs(step).sum()),
        "d2n": float(np.linalg.norm(z)),
        "g1n": float(np.abs(z).sum()),
        "n_changed": int(n_changed(best[None], task.x)[0]),
        "affinity": float(g.density.affinity(best[None])[0]),
        "is_reference_row": g.in_reference(best),
        "counterfactual": best.tolist(),
    }


def _ground(name: str, seed: int) -> Ground:
    """The ground of a job: for controllers one for each seed, with a history of its own."""
    return control.ground(name, seed) if name in control.PASSED else _only_ground(name)


@cache
def _only_ground(name: str) -> Ground:
    return ground(name)


def _settings(g: Ground, task: Task) -> dict[str, Any]:
    """What was the same for every method of this task; what a method decides by itself is in its file."""
    return {
        "model": type(g.model).__name__,
        "movable": [f.name for f, moves in zip(g.space.features, task.movable, strict=True) if moves],
        "beta": 5.0,
        "plausibility": g.density.settings.described,
    }


@cache
def _versions(package: str) -> dict[str, str]:
    names = ("acex", "numpy", "scipy", "scikit-learn", package)
    return {"python": platform.python_version()} | {name: version(name) for name in names}
