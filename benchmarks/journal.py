"""What it costs an explanation that each answer is on the disk before it is settled (the journal of the ledger).

    python benchmarks/journal.py                  # 40 rows of the bundled loans, 40 queries each
    python benchmarks/journal.py --folder /mnt/x  # on another disk

Explains each row twice on new SQLite ledgers in the same folder, with the journal and without, in turn, and compares
the two within the run; then the same for claims and answers alone. Writes the table to results/journal.csv beside this
file. Run it on a machine that does nothing else, or it measures how busy the disk is.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

import numpy as np
import pandas as pd

import acex
from acex.ledger import Question, journal
from acex.ledger.sql import Ledger

RESULTS = Path(__file__).parent / "results"


def timed(work: Callable[[Path], object], n: int, folder: str | None) -> pd.DataFrame:
    """Seconds of `work` on n new ledgers with a journal and n without, (n, 2)."""
    lines = []
    for i in range(n):
        seconds = {}
        for kind in ("with", "without") if i % 2 else ("without", "with"):
            with tempfile.TemporaryDirectory(dir=folder) as here:
                if kind == "with":
                    start = perf_counter()
                    work(Path(here) / "ledger.db")
                else:
                    with patch.object(journal, "_flush", lambda file: None):
                        start = perf_counter()
                        work(Path(here) / "ledger.db")
                seconds[kind] = perf_counter() - start
        lines.append(seconds)
    return pd.DataFrame(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--budget", type=int, default=40)
    parser.add_argument("--folder", help="where the ledgers are; by default the system's folder for such files")
    options = parser.parse_args()
    loans = acex.datasets.load("loan")

    def model(rows: pd.DataFrame) -> list[str]:
        good = (rows["income"] > 2500) & (rows["debt_ratio"] < 0.3)
        return ["approved" if each else "rejected" for each in good]

    rejected = loans.rows[np.array(model(loans.rows)) == "rejected"]
    rows = iter(rejected.iloc[np.repeat(np.arange(options.rows), 2)].to_dict("records"))

    def explain(path: Path) -> None:
        acex.explain(
            model,
            next(rows),
            data=loans.rows,
            target="approved",
            budget=options.budget,
            strategy=acex.Feasible(effort="spend"),
            ledger=path,
            model_id="loans",
        )

    def answer(path: Path) -> None:
        with Ledger(path) as ledger:
            for i in range(options.budget):
                ledger.claim("loans", [Question(f"[{i}]")])
                ledger.record("loans", [f"[{i}]"], ["approved"])

    table = []
    for name, work in (("an explanation", explain), ("claims and answers alone", answer)):
        work_seconds = timed(work, options.rows, options.folder)
        ratio = (work_seconds["with"] / work_seconds["without"]).quantile([0.25, 0.5, 0.75])
        more = (work_seconds["with"] - work_seconds["without"]).median() / options.budget
        table.append(
            {
                "what": f"{name}, {options.budget} queries",
                "without, ms a query": work_seconds["without"].median() / options.budget * 1e3,
                "more with the journal, ms a query": more * 1e3,
                "ratio": ratio[0.5],
                "ratio, lower quartile": ratio[0.25],
                "ratio, upper quartile": ratio[0.75],
            }
        )
    frame = pd.DataFrame(table).round(3)
    RESULTS.mkdir(exist_ok=True)
    frame.to_csv(RESULTS / "journal.csv", index=False)
    print(frame.to_string(index=False))


if __name__ == "__main__":
    main()
