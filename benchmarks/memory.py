"""What a batch keeps in memory: peak over rows of generated records, with a ledger on disk.

    python benchmarks/memory.py                 # 10,000 and 100,000 rows, each in a process of its own

No model is asked: an executor hands out an explanation that was written into the ledger before, the same for all rows,
so that the numbers are those of the batch alone. Printed are the peak resident memory, what is left of it after the
process's own (a batch of 10 rows), a row's share of that, and the same for a batch that keeps everything, as 0.1.0 did.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.batch import shelf
from acex.batch.explanations import Done, Explanations
from acex.options import Options

COLUMNS = [f"x{j}" for j in range(10)]


def model(rows: pd.DataFrame) -> Any:
    return np.where(rows["x0"] > 0.8, "yes", "no")


class Generated:
    """An executor that knows the answer: one explanation, told anew for each row."""

    is_here = True

    def __init__(self, explanation: acex.Explanation) -> None:
        self.explanation = explanation

    def run(self, tool: Any, task: Any, items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        for item in items:
            steps = tuple(replace(step, row=dict(step.row)) for step in self.explanation.steps)
            yield item, Done(replace(self.explanation, steps=steps), len(steps))

    def refuse_file(self, path: Path) -> None:
        """Any file will do."""


def peak(n: int, keep: bool) -> float:
    """Peak resident memory in MB of walking twice through a batch of n rows."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(size=(200, 10)), columns=pd.Index(COLUMNS))
    rows = pd.DataFrame(rng.uniform(size=(n, 10)), columns=pd.Index(COLUMNS))
    if keep:
        shelf.MOST_KEPT = n
    with tempfile.TemporaryDirectory() as folder:
        explainer = acex.Explainer(model, data, ledger=Path(folder) / "ledger.db", model_id="m")
        explanation = explainer.explain(data.iloc[0], target="yes", budget=10)
        many = Explanations(explainer, rows, Options(), Generated(explanation), progress=False)
        for _ in many.as_finished():
            pass
        assert many[0].steps[0].row == explanation.steps[0].row  # read back
        many.summary()
        explainer.ledger.close()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(n: int, keep: bool) -> float:
    words = [sys.executable, __file__, "--one", str(n), *(["--keep"] if keep else [])]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--one", type=int, help="one measurement, in this process")
    parser.add_argument("--keep", action="store_true", help="keep every explanation in memory")
    args = parser.parse_args()
    if args.one is not None:
        print(peak(args.one, args.keep))
        return
    base = measured(10, keep=False)
    lines = []
    for n in args.rows:
        mb = measured(n, keep=False)
        lines.append((n, "ledger", round(mb), round(mb - base), round((mb - base) * 1024 / n, 2)))
    n = args.rows[0]
    mb = measured(n, keep=True)
    lines.append((n, "all kept", round(mb), round(mb - base), round((mb - base) * 1024 / n, 2)))
    frame = pd.DataFrame(lines, columns=pd.Index(["rows", "kept in", "peak_mb", "above_base_mb", "kb_a_row"]))
    print(frame.to_string(index=False))
    frame.to_csv(Path(__file__).parent / "results" / "memory.csv", index=False)


if __name__ == "__main__":
    main()
