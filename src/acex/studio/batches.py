"""The explanations in the ledger as a table, including those made elsewhere, such as by `acex batch`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from statistics import median
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.engine.explanation import changes_as_text, labels_as_text
from acex.ledger import canonical
from acex.studio.searches import Tracked
from acex.studio.serializers import page_text
from acex.studio.worker_pool import Message
from acex.studio.workspace import PAGE_SIZE, Workspace
from acex.values import answer_text

AT_ONCE = 40  # explanations read from the ledger per request; the page requests the others afterwards
MAX_LINES = 2000  # only the newest explanations are shown
SORTED_BY = ("position", "before", "outcome", "changes", "cost", "paid")
QUARTERS = 4  # number of groups for a numeric feature


class TrackedBatch(Tracked):
    """A batch of rows that is being explained, or has been."""

    def __init__(self, total: int) -> None:
        super().__init__("waiting" if total else "ended")
        self.total = total
        self.rows: list[dict[str, Any]] = []

    def receive(self, message: Message) -> None:
        name, data = message
        if name == "row":
            self.rows.append(data)
        super().receive(message)

    def to_json(self) -> dict[str, Any]:
        """The progress of the batch."""
        errors = [row["error"] for row in self.rows if row["error"]]
        return {
            "state": self.state,
            "live": self.is_live,
            "total": self.total,
            "done": len(self.rows),
            "paid": sum(row["paid"] for row in self.rows),
            "found": sum(row["outcome"] == "found" for row in self.rows),
            "error": self.error or (page_text(errors[-1]) if errors else ""),
        }


class ExplanationTable:
    """One line per explanation of the model; a line is only read again if its explanation has changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._lines: dict[tuple[Any, ...], dict[str, Any]] = {}  # by a key that changes with the explanation
        self._rows: dict[str, str] = {}  # the key of each explanation's row
        self._of_row: dict[str | None, dict[tuple[Any, ...], Any]] = {}  # the records of each row, newest first
        self._state: tuple[Any, ...] = ()  # of the ledger when the records were read
        self._known: dict[tuple[Any, ...], Any] = {}

    def _records(self) -> dict[tuple[Any, ...], Any]:
        """The newest explanations, newest first, by a key that changes with the explanation."""
        state = self._workspace.ledger.tables.state()
        if state == self._state:
            return self._known
        records = self._workspace.ledger.tables.explanations(self._workspace.explainer.model_id)
        records = records[records["asked"] > 0].iloc[::-1].head(MAX_LINES)
        # A search that has only queried the row itself is not shown, unless it has ended.
        records = records[(records["asked"] > 1) | records["finished_at"].notna()].astype(object)
        records = records.where(records.notna(), None)  # NaN is unequal to itself and not allowed in JSON
        new = records[~records["id"].isin(self._rows.keys())]
        factuals = pd.DataFrame([list(json.loads(text).values()) for text in new["factual"]], dtype=object)
        self._rows |= dict(zip(new["id"], canonical(factuals), strict=True)) if len(new) else {}
        self._state = state
        self._known = {(r.id, r.asked, r.finished_at, r.paid): r for r in records.itertuples(index=False)}
        self._lines = {key: line for key, line in self._lines.items() if key in self._known}
        self._of_row = {}
        for key, record in self._known.items():
            self._of_row.setdefault(self._rows[record.id], {})[key] = record
        return self._known

    def _read(self, records: dict[tuple[Any, ...], Any], at_most: int) -> list[dict[str, Any]]:
        """The lines of records; of those not cached, at most `at_most` are read from the ledger now."""
        new = [key for key in records if key not in self._lines]
        self._lines |= {key: self._line(records[key]) for key in new[:at_most]}
        return [self._lines[key] for key in records if key in self._lines]

    def of_row(self, key: str) -> list[str]:
        """The identities of the explanations of a row by its key in the ledger, newest first."""
        with self._lock:
            self._records()
            return [record.id for record in self._of_row.get(key, {}).values()]

    def best_of(self, positions: Collection[int]) -> dict[int, dict[str, Any]]:
        """The current line of each of these rows that was explained, and the number of its explanations."""
        with self._lock:
            self._records()
            records = {i: self._of_row.get(self._workspace.keys[i], {}) for i in positions}
            lines = {i: self._read(records[i], len(records[i])) for i in positions if records[i]}
        return {i: _public(_current(some)[0]) | {"times": len(some)} for i, some in lines.items()}

    def read(self, query: Mapping[str, str], page: int) -> dict[str, Any]:
        """A page of the lines, the number not read yet, and a summary of the current line of each row.

        Args:
            query: `q` and `outcome` filter, `sort` and `down` sort, `by` groups, and `all` adds earlier explanations.
        """
        with self._lock:
            records = self._records()
            lines = self._read(records, AT_ONCE)
        current = _current(lines)
        shown = self._matching(lines if query.get("all") else current, query)
        if (sort := query.get("sort", "")) in SORTED_BY:
            known = [line for line in shown if line[sort] is not None]
            known.sort(key=lambda line: len(line[sort]) if sort == "changes" else line[sort])
            shown = (known[::-1] if query.get("down") else known) + [line for line in shown if line[sort] is None]
        return {
            "lines": [_public(line) for line in shown[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]],
            "total": len(shown),
            "page": page,
            "size": PAGE_SIZE,
            "explanations": len(records),
            "pending": len(records) - len(lines),
            "groups": self._groups(current, query.get("by", "")),
            "summary": _summary(current) | {"paid": sum(line["paid"] for line in lines)},
        }

    def _matching(self, lines: Sequence[dict[str, Any]], query: Mapping[str, str]) -> list[dict[str, Any]]:
        text = query.get("q", "").lower()
        rows = set(self._workspace.matching(text, "")) if text else set()
        words, outcome = text.split(), query.get("outcome")
        return [
            line
            for line in lines
            if (not outcome or line["outcome"] == outcome)
            and (not text or line["position"] in rows or all(word in line["text"] for word in words))
        ]

    def _line(self, record: Any) -> dict[str, Any]:
        factual = json.loads(record.factual)
        position = self._workspace.positions.get(self._rows[record.id])
        out: dict[str, Any] = {
            "id": record.id,
            "key": self._rows[record.id],
            "position": position,
            "name": self._workspace.name(position),
            "row": factual,
            "outcome": "unfinished" if record.finished_at is None else record.outcome,
            "before": None,
            "after": None,
            "cost": None,
            "changes": [],
            "paid": int(record.paid),
        }
        with suppress(ValueError):  # no answer recorded yet
            e = acex.load_explanation(self._workspace.ledger, record.id)
            out |= {"before": answer_text(e.label_before), "outcome": out["outcome"] if not e.costs else "found"}
            if e.costs:
                out["before"], out["after"] = labels_as_text(e)
                out["cost"] = e.costs[0]
                out["changes"] = [list(change[:3]) for change in changes_as_text(e, 0)]
        texts = [*factual.values(), out["before"], out["after"], *(text for c in out["changes"] for text in c)]
        return out | {"text": "\n".join("" if text is None else str(text) for text in texts).lower()}

    def _groups(self, lines: Sequence[dict[str, Any]], by: str) -> list[dict[str, Any]]:
        """A summary of the rows for each value of a feature; numbers are grouped by quartile."""
        if by not in self._workspace.space.names or not lines:
            return []
        feature = self._workspace.space.feature(by)
        values = [line["row"][by] for line in lines]
        if feature.is_number and len(set(values) - {None}) > 1:
            numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").to_numpy(float)
            edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, QUARTERS + 1)))
            order = [*(f"{feature.text(a)} to {feature.text(b)}" for a, b in pairwise(edges)), "missing"]
            quarters = np.where(np.isnan(numbers), -1, np.searchsorted(edges[1:-1], numbers))
            names = [order[quarter] for quarter in quarters.tolist()]
        else:
            names = ["missing" if value is None else str(value) for value in values]
            order = sorted(set(names))
        members: dict[str, list[dict[str, Any]]] = {name: [] for name in order}
        for name, line in zip(names, lines, strict=True):
            members[name].append(line)
        return [{"group": name, **_summary(some)} for name, some in members.items() if some]


def _current(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line per row: its newest explanation with a counterfactual, or the newest one if none has any."""
    by_row: dict[str, dict[str, Any]] = {}
    for line in lines:  # newest first
        if by_row.setdefault(line["key"], line)["outcome"] != "found" and line["outcome"] == "found":
            by_row[line["key"]] = line
    return list(by_row.values())


def _public(line: dict[str, Any]) -> dict[str, Any]:
    """A line without the values that only the server needs."""
    return {name: value for name, value in line.items() if name not in ("key", "row", "text")}


def _summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The number of lines with a counterfactual, the most frequent changes, and the costs."""
    found = [line for line in lines if line["outcome"] == "found"]
    often = Counter([change[0] for line in found for change in line["changes"]])
    costs = [line["cost"] for line in found]
    return {
        "rows": len(lines),
        "found": len(found),
        "paid": sum(line["paid"] for line in lines),
        "median_cost": median(costs) if costs else None,
        "mean_changes": often.total() / len(found) if found else None,
        "often": [{"feature": name, "share": n / len(found)} for name, n in often.most_common(8)],
    }
