"""The price of many explanations, estimated from a ledger. Nothing is sent, and nothing is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from acex.ledger import BaseLedger
from acex.plan.plan import Plan
from acex.values import is_missing

LATEST = 50  # explanations that ended, from which the next ones are estimated
LEAST = 5  # with fewer there is no estimate


@dataclass(frozen=True)
class Quote:
    """What explaining some rows would cost.

    Attributes:
        rows: how many. different: of these, each identical row once. ended: of these, explained before. wrong: rows
            that do not fit the data and would fail.
        paid_before: queries that earlier runs have paid for these rows.
        expected_queries: how many more are likely, by the model's latest explanations; None with fewer than five.
        most_queries: the most that can be sent, within the budgets of the batch and of the model's lifetime.
        price_per_row: price of a query; None where the ledger has none.
        seconds: how long the expected queries take one after the other.
    """

    rows: int
    different: int
    ended: int
    wrong: int
    paid_before: int
    expected_queries: int | None
    most_queries: int
    price_per_row: float | None
    seconds: float | None

    @property
    def expected_money(self) -> float | None:
        """What the expected queries cost."""
        known = self.expected_queries is not None and self.price_per_row is not None
        return self.expected_queries * self.price_per_row if known else None  # type: ignore[operator]

    @property
    def most_money(self) -> float | None:
        """What the most queries cost."""
        return None if self.price_per_row is None else self.most_queries * self.price_per_row

    def __str__(self) -> str:
        same = self.rows - self.different - self.wrong
        rows = f"{self.rows} rows" + (f", {same} of them the same as others" if same else "")
        rows += f", {self.wrong} of them wrong" if self.wrong else ""
        before = f" {self.ended} were explained before." if self.ended else ""
        before += f" {self.paid_before} queries were paid before." if self.paid_before else ""
        expected = (
            "How many are likely is unknown: too few explanations of this model have ended."
            if self.expected_queries is None
            else f"Likely {self.expected_queries}{_money(self.expected_money)}{_time(self.seconds)}."
        )
        return f"{rows}.{before} At most {self.most_queries} queries{_money(self.most_money)}. {expected}"


def quote(
    plans: Iterable[Plan | None],
    ledger: BaseLedger,
    model_id: str,
    *,
    budget: int,
    budget_total: int | None = None,
    price_per_row: float | None = None,
) -> Quote:
    """The price of these plans, None for a row that does not fit; the ledger is only read."""
    recorded = _explanations(ledger, model_id)
    known = {line["id"]: line for line in recorded.to_dict("records")}
    times: Counter[str | None] = Counter()  # how often each explanation occurs; None for rows that do not fit
    like: Plan | None = None
    for plan in plans:
        times[None if plan is None else plan.identity] += 1
        like = plan or like
    begun = [known[identity] for identity in times if identity in known]
    new = len(times.keys() - {None}) - len(begun)
    paid = sum(int(line["paid"]) for line in begun)
    left = [*(_left(line, budget) for line in begun), *[budget] * new]
    account = ledger.account(model_id)
    limit = min(inf if budget_total is None else max(budget_total - paid, 0), account.remaining)
    usual, pace = _usual(recorded, like)
    expected = None if usual is None else min(float(sum(min(usual, more) for more in left)), limit)
    return Quote(
        rows=times.total(),
        different=len(left),
        ended=left.count(0),
        wrong=times[None],
        paid_before=paid,
        expected_queries=None if expected is None else round(expected),
        most_queries=int(min(sum(left), limit)),
        price_per_row=account.price_per_row if price_per_row is None else price_per_row,
        seconds=None if expected is None or pace is None else expected * pace,
    )


def _explanations(ledger: BaseLedger, model_id: str) -> pd.DataFrame:
    """A line for each explanation of the model; a ledger in memory keeps none."""
    if ledger.is_memory:
        return pd.DataFrame(columns=["id", "settings", "started_at", "finished_at", "result", "asked", "paid"])
    from acex.ledger.sql import Ledger

    assert isinstance(ledger, Ledger)
    return ledger.tables.explanations(model_id)


def _left(line: dict[Any, Any], budget: int) -> int:
    """How many more queries an explanation in the ledger may take; 0 where it ended before its budget."""
    result = None if is_missing(line["result"]) else json.loads(line["result"])
    if result is not None and result["asked"] == line["asked"] and result.get("stopped_by") != "budget":
        return 0
    return max(budget - int(line["paid"]), 0)


def _usual(recorded: pd.DataFrame, like: Plan | None) -> tuple[float | None, float | None]:
    """Queries of an explanation, and seconds of a query, as in the latest ones of the same target that ended."""
    done = recorded[recorded["finished_at"].notna() & (recorded["asked"] > 0)]
    if like is not None:
        targets = [json.loads(text).get("target") for text in done["settings"]]
        done = done[np.array([target == like.target.described for target in targets], dtype=bool)]
    done = done.sort_values("finished_at").tail(LATEST)
    if len(done) < LEAST:
        return None, None
    took = pd.to_datetime(done["finished_at"]) - pd.to_datetime(done["started_at"])
    pace = np.median(took.dt.total_seconds() / done["asked"])
    return float(done["paid"].mean()), float(pace)


def _money(amount: float | None) -> str:
    return "" if amount is None else f" for {amount:.6g}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= size:
            return f", about {seconds / size:.1f} {unit} one after the other"
    return f", about {seconds:.2g} seconds one after the other"
