"""Results on disk: one JSON line for each explanation, or packed as a table for keeping.

A packed table has no rows and settings, and its curve is text: `12:8.31 15:7.2` is J = 8.31 after 12 queries and 7.2
after 15. Both kinds are read alike, so a run goes on from packed results too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

Record = dict[str, Any]

WHOLE = ("row", "seed", "cap", "revision", "label", "reference", "queries", "distinct", "candidates")
FLAGS = ("valid", "is_reference_row")
REAL = ("J", "d2", "g1", "d2n", "g1n", "n_changed", "affinity", "steady", "seconds")
KEPT = ("suite", "data", "method", *WHOLE, *FLAGS, *REAL, "curve")


def append(path: Path, record: Record) -> None:
    """Add a line, also after one that a killed run left half written."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(record).encode() + b"\n")


def read(folder: Path) -> list[Record]:
    """All results in a folder; a line that a killed run left half written is skipped."""
    records = []
    for path in sorted(folder.glob("*.csv")):
        records += unpacked(path)
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return records


def pack(records: Sequence[Record], path: Path) -> None:
    """Write those results that are no failures as a table, each job once with its last result, in order."""
    lines = [_packed(record) for record in records if "error" not in record]
    table = pd.DataFrame(lines, columns=list(KEPT))
    job = ["suite", "data", "method", "row", "seed"]
    table = table.drop_duplicates([*job, "cap"], keep="last").sort_values(job)
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False, float_format="%.6g")


def _packed(record: Record) -> Record:
    curve = " ".join(f"{asked}:{J:.6g}" for asked, J in record["curve"])
    return record | {"curve": curve}


def unpacked(path: Path) -> list[Record]:
    """The results of a packed table."""
    records = []
    for line in pd.read_csv(path, keep_default_na=False, dtype=str).to_dict("records"):
        record: Record = {str(name): value for name, value in line.items() if value != ""}
        record |= {name: int(record[name]) for name in WHOLE}
        record |= {name: record[name] == "True" for name in FLAGS if name in record}
        record |= {name: float(record[name]) for name in REAL if name in record}
        pairs = (pair.split(":") for pair in record.get("curve", "").split())
        record["curve"] = [[int(asked), float(J)] for asked, J in pairs]
        records.append(record)
    return records
