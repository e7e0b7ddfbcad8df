"""CPU time of `Ledger.import_answers` over that of a plain `executemany` of the same rows.

    python -m benchmarks run --suite import_answers

The plain insert writes the same lines into the same tables, indexes included, in one transaction.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from pathlib import Path

import pandas as pd

import acex
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table, number

LIMIT = 5.0
N_ANSWERS = ("100000", "1000000")
MODEL = "loans"


def measure(job: Job) -> list[Line]:
    """CPU seconds of both, for the number of answers in the name of the method."""
    n = int(job.method)
    rows = [json.dumps([i, i / 8, "clerk", i % 17]) for i in range(n)]
    labels = ["good" if i % 3 else "bad" for i in range(n)]
    with tempfile.TemporaryDirectory() as folder:
        imported, plain = Path(folder) / "imported.db", Path(folder) / "plain.db"
        with acex.Ledger(imported) as ledger:
            start = time.process_time()
            ledger.import_answers(MODEL, rows, labels)
            import_s = time.process_time() - start
        with acex.Ledger(plain) as ledger:
            ledger.register(MODEL)
        source, copy = sqlite3.connect(imported), sqlite3.connect(plain)
        lines = {table: source.execute(f"SELECT * FROM {table}").fetchall() for table in ("queries", "answers")}
        copy.execute("PRAGMA synchronous = FULL")
        start = time.process_time()
        for table, values in lines.items():
            copy.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values[0]))})", values)
        copy.commit()
        plain_s = time.process_time() - start
        source.close()
        copy.close()
    return [{"import_s": import_s, "plain_s": plain_s, "ratio": import_s / plain_s}]


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The ratio and its limit."""
    rows = [
        [number(int(line["method"]), 0), f"{line['import_s']:.1f}", f"{line['plain_s']:.1f}", f"{line['ratio']:.1f}"]
        for _, line in lines.iterrows()
    ]
    header = ["answers", "import, s of CPU", "executemany, s of CPU", "ratio", "limit"]
    return {"import_answers": Table("import of answers", header, [[*row, f"{LIMIT:.0f}"] for row in rows])}


SUITES = (
    Suite("import_answers", ("ledger",), N_ANSWERS, ("import_s", "plain_s", "ratio"), measure, tables, parallel=False),
)
