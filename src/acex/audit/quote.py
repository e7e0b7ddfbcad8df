"""The price of many explanations, estimated from a ledger. Nothing is sent or recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import pandas as pd

from acex.ledger import BaseLedger
from acex.plan.plan import Plan
from acex.values import as_money, check_positive, counted, is_missing

LATEST = 50  # number of completed explanations that the estimate uses
LEAST = 5  # with fewer of these there is no estimate
FEW = 4  # queries per row below which few rows get a counterfactual


@dataclass(frozen=True)
class Quote:
    """What explaining some rows would cost.

    Attributes:
        model_id: the key of the model in the ledger.
        rows: number of rows, including identical ones. ended: how many distinct rows are already explained. wrong: the
            rows that would fail because they do not fit the data, by name, with the reason.
        paid_before: queries that earlier runs have paid for these rows.
        expected_queries: likely number of further queries, by the model's latest explanations; None with fewer than 5.
        most_queries: largest number that can be sent, within the budgets of the batch and of the model's lifetime.
        price_per_row: price of a query; None if the ledger has none.
        beyond_budget: further queries that may be needed, but that the model's budget in the ledger does not allow.
    """

    model_id: str
    rows: int
    ended: int
    wrong: Mapping[str, str]
    paid_before: int
    expected_queries: int | None
    most_queries: int
    price_per_row: float | None
    beyond_budget: int = 0

    def money(self, queries: int | None) -> float | None:
        """The price of this number of queries; None if unknown."""
        return None if queries is None or self.price_per_row is None else queries * self.price_per_row

    def __str__(self) -> str:
        wrong = [f"{len(self.wrong)} would fail, such as {row}: {why}" for row, why in [*self.wrong.items()][:1]]
        parts = [f"{counted(self.rows, 'row')}.", *wrong, f"Model: {self.model_id}."]
        parts += [f"{self.ended} were explained before."] if self.ended else []
        parts += [f"{self.paid_before} queries were paid before."] if self.paid_before else []
        parts.append(f"At most {self._priced(self.most_queries)}.")
        left = self.rows - self.ended
        if self.most_queries < FEW * left:
            share = f"That is {self.most_queries / left:.1f} a row, shared equally"
            parts.append(f"{share}: too few for most rows, since the first query of each is the row itself.")
        if self.beyond_budget:
            wanted = self._priced(self.most_queries + self.beyond_budget)
            parts.append(f"The model's budget in the ledger allows no more rows; {wanted} may be needed.")
        if self.expected_queries is None:
            parts.append("The likely number is unknown: too few explanations of this model have ended.")
        else:
            parts.append(f"Likely {self._priced(self.expected_queries)}.")
        return " ".join(parts)

    def _priced(self, queries: int) -> str:
        money, n = self.money(queries), counted(queries, "query", "queries")
        return n if money is None else f"{n} for {as_money(money)}"


def quote(
    plans: Iterable[Plan],
    ledger: BaseLedger,
    model_id: str,
    *,
    budget: int,
    budget_total: int | None = None,
    price_per_row: float | None = None,
    wrong: Mapping[str, str] | None = None,
) -> Quote:
    """The price of these plans; rows that are `wrong` cost nothing. The ledger is only read."""
    check_positive("price_per_row", price_per_row, zero=True, optional=True)
    recorded = _explanations(ledger, model_id)
    known = {line["id"]: line for line in recorded.to_dict("records")}
    times = Counter(plan.identity for plan in plans)
    started = [known[identity] for identity in times if identity in known]
    paid = sum(int(line["paid"]) for line in started)
    left = [*(_left(line, budget) for line in started), *[budget] * (len(times) - len(started))]
    account = ledger.account(model_id)
    price = account.price_per_row if price_per_row is None else price_per_row
    needed = min(sum(left), inf if budget_total is None else max(budget_total - paid, 0))
    limit = min(needed, account.affordable(price))
    done = recorded[recorded["finished_at"].notna() & (recorded["asked"] > 0)].sort_values("finished_at").tail(LATEST)
    expected = None
    if len(done) >= LEAST:
        usual = float(done["paid"].mean())
        expected = round(min(float(sum(min(usual, more) for more in left)), limit))
    return Quote(
        model_id=model_id,
        rows=times.total() + len(wrong or ()),
        ended=left.count(0),
        wrong=wrong or {},
        paid_before=paid,
        expected_queries=expected,
        most_queries=int(limit),
        price_per_row=price,
        beyond_budget=int(needed - limit),
    )


def _explanations(ledger: BaseLedger, model_id: str) -> pd.DataFrame:
    """A line per explanation of the model; a ledger in memory keeps none."""
    if ledger.is_memory:
        return pd.DataFrame(columns=["id", "finished_at", "result", "asked", "paid"])
    from acex.ledger.sql import Ledger

    assert isinstance(ledger, Ledger)
    return ledger.tables.explanations(model_id)


def _left(line: dict[Any, Any], budget: int) -> int:
    """How many more queries an explanation in the ledger may take; 0 if it ended before its budget was spent."""
    result = {} if is_missing(line["result"]) else json.loads(line["result"])
    if result.get("asked") == line["asked"] and (
        result.get("stopped_by") != "budget" or result.get("budget", 0) >= budget
    ):
        return 0
    return max(budget - int(line["paid"]), 0)
