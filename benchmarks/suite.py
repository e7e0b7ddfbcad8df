"""Suites of measurements: run, resume, read.

A suite runs jobs, one for each data set, method and row. A job gives one or more raw lines, which are appended to
`results/NAME.csv` when it is done; when a run is resumed, jobs that have lines are skipped. When a method changes, its
revision is increased, and only its jobs run again.

The lines of a large suite are committed compressed, in `results/NAME/DATA.csv.gz`, to which lines are only added. A run
appends to `results/NAME.csv` and packs these lines when it ends or when the next one starts.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from benchmarks.table import Table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
PICTURES = ROOT / "docs/pictures"
CAP = 100_000  # number of queries after which a method is stopped
KEY = ("data", "method", "row", "seed")
JSON_COLUMNS = (
    *("curve", "asked", "factual", "counterfactual", "made"),
    *("changed", "unseen", "digits", "ids", "broken", "implied", "lookups", "remarks", "warnings"),
)

Line = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One measurement: a row of a data set, explained by a method."""

    data: str
    method: str
    row: int
    seed: int
    cap: int = CAP


def once(data: str, step: int) -> list[tuple[int, int]]:
    """Each row once, with its position as the seed."""
    return [(step, step)]


@dataclass(frozen=True)
class Suite:
    """One entry of the registry `benchmarks.suites.SUITES`.

    Args:
        data: names of data sets.
        methods: names of the methods or variants that are compared.
        columns: columns of the raw lines, in addition to those of `KEY` and the revision.
        measure: from a job to its raw lines, without the columns of `KEY`.
        tables: from all raw lines to tables, by name; pages refer to them as `SUITE:NAME`.
        rows: default number of rows of each data set, or of repetitions (see `instances`).
        instances: rows and seeds of a data set at each step from 0 to `rows` - 1.
        pictures: from all raw lines to figures, by file name without its ending.
        revision: the revision of a method.
        missing: why a method cannot run on a data set; None if it can.
        parallel: False for measurements of time, whose jobs run one after the other.
        packed: whether the lines are committed compressed, one file per data set.
    """

    name: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    columns: tuple[str, ...]
    measure: Callable[[Job], list[Line]]
    tables: Callable[[pd.DataFrame], dict[str, Table]]
    rows: int = 1
    instances: Callable[[str, int], Sequence[tuple[int, int]]] = once
    pictures: Callable[[pd.DataFrame], dict[str, Figure]] = lambda lines: {}
    revision: Callable[[str], int] = lambda method: 1
    missing: Callable[[str, str], str | None] = lambda data, method: None
    parallel: bool = True
    packed: bool = False

    def jobs(
        self,
        rows: int | None = None,
        data: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        cap: int = CAP,
    ) -> Iterator[Job]:
        """The jobs of the suite, ordered so that all methods progress at the same rate."""
        possible = {
            name: [method for method in methods or self.methods if self.missing(name, method) is None]
            for name in data or self.data
        }
        for step in range(self.rows if rows is None else rows):
            for name, able in possible.items():
                for row, seed in self.instances(name, step):
                    for method in able:
                        yield Job(name, method, row, seed, cap)

    def path(self, folder: Path = RESULTS) -> Path:
        """The file that a run appends raw lines to."""
        return folder / f"{self.name}.csv"

    def lines(self, folder: Path = RESULTS) -> pd.DataFrame:
        """The raw lines of all revisions."""
        if not self.packed:
            return read(self.path(folder))
        files = [*sorted((folder / self.name).glob("*.csv.gz")), self.path(folder)]
        parts = [part for part in map(read, files) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else read(self.path(folder))

    def pack(self, folder: Path = RESULTS) -> None:
        """Append the lines of the plain file to the compressed files of their data sets, and delete it."""
        path = self.path(folder)
        if not (self.packed and path.exists()):
            return
        header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        assert KEY[0] == "data"  # each line must start with its data set
        by_data: dict[str, list[str]] = {}
        for line in lines:
            if line.endswith("\n"):
                by_data.setdefault(line.partition(",")[0], []).append(line)
        (folder / self.name).mkdir(exist_ok=True)
        for data, some in by_data.items():
            target = folder / self.name / f"{data}.csv.gz"
            text = "".join(some if target.exists() else [header, *some])
            with target.open("ab") as file:  # gzip files may have several members
                file.write(gzip.compress(text.encode(), mtime=0))
        path.unlink()

    def todo(self, jobs: Sequence[Job], folder: Path = RESULTS) -> list[Job]:
        """The jobs without lines of the current revision of their method."""
        lines = self.lines(folder)
        key = [name for name in (*KEY, "cap") if name in lines]
        revisions = {name: self.revision(str(name)) for name in lines["method"].unique()}
        current = lines[lines["revision"] == lines["method"].map(revisions)]
        done = set(current[key].itertuples(index=False, name=None))
        return [job for job in jobs if tuple(asdict(job)[name] for name in key) not in done]

    def run(
        self,
        jobs: Sequence[Job],
        folder: Path = RESULTS,
        n_jobs: int = -1,
        progress: Callable[[Job], None] = lambda job: None,
    ) -> dict[str, str]:
        """Run these jobs and append their lines; returns errors by method. A failed job has no lines."""
        folder.mkdir(parents=True, exist_ok=True)
        self.pack(folder)
        errors: dict[str, str] = {}
        parallel = joblib.Parallel(n_jobs=n_jobs if self.parallel else 1, return_as="generator_unordered", batch_size=1)
        for job, lines, error in parallel(joblib.delayed(_measured)(self.name, job) for job in jobs):
            if error is not None:
                errors[job.method] = error
            else:
                whole = asdict(job) | {"revision": self.revision(job.method)}
                append(self.path(folder), (*KEY, "revision", *self.columns), [whole | line for line in lines])
            progress(job)
        self.pack(folder)
        return errors

    def read(self, folder: Path = RESULTS) -> pd.DataFrame:
        """The raw lines, only those of the newest revision of each method."""
        lines = self.lines(folder)
        if lines.empty:
            raise FileNotFoundError(
                f"{self.path(folder)}: no results; run: python -m benchmarks run --suite {self.name}"
            )
        return newest(lines)


def newest(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of the newest revision of each method."""
    return lines[lines["revision"] == lines.groupby("method")["revision"].transform("max")].reset_index(drop=True)


def _measured(suite: str, job: Job) -> tuple[Job, list[Line], str | None]:
    """Runs in a worker, which looks the suite up by name: its functions need not be pickled."""
    from benchmarks.suites import SUITES

    with threadpool_limits(1):
        try:
            return job, SUITES[suite].measure(job), None
        except Exception as error:  # often in another package; the other jobs continue
            return job, [], f"{type(error).__name__}: {error}"


def append(path: Path, columns: Sequence[str], lines: Sequence[Line]) -> None:
    """Append raw lines, after removing an incomplete last line left by a killed run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    with path.open("ab+") as file:
        file.seek(0)
        whole = file.read().rpartition(b"\n")
        file.truncate(len(whole[0]) + len(whole[1]))
        if not whole[1]:
            writer.writerow(columns)
        for line in lines:
            writer.writerow([_cell(line.get(name)) for name in columns])
        file.write(text.getvalue().encode())


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    return value


def read(path: Path) -> pd.DataFrame:
    """The raw lines of a file, without an incomplete last line; empty if there is no file."""
    text = ""
    if path.exists():
        text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return pd.DataFrame(columns=[*KEY, "revision"])
    lines = pd.read_csv(io.StringIO(whole), dtype={"data": str, "method": str}, keep_default_na=False, na_values=[""])
    for name in JSON_COLUMNS:
        if name in lines:
            lines[name] = [json.loads(cell) if isinstance(cell, str) else None for cell in lines[name]]
    return lines
