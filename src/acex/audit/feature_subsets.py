"""Which small sets of features are sufficient to change the decision, within one budget.

Each set is an explanation in which all other features are frozen: it is recorded in the ledger, can be resumed, and
learns from the answers to the other sets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import pandas as pd

from acex.arrays import Rows
from acex.engine.explanation import Explanation, changes_as_text
from acex.engine.planner import Planner
from acex.engine.redaction import saved
from acex.options import Options
from acex.values import as_json, check_count, counted, is_count, joined_words, printable, records

State: TypeAlias = Literal["found", "not found", "impossible", "not asked"]  # in display order


@dataclass(frozen=True, eq=False)
class FeatureSubset:
    """One set of features, and whether changing these alone is enough.

    Attributes:
        features: those that may change; all others are frozen.
        explanation: with the counterfactual, if there is one; None if the budget was spent on other sets.
    """

    features: tuple[str, ...]
    explanation: Explanation | None

    @property
    def state(self) -> State:
        """ "found"; "not found" (which proves nothing); "impossible" (no plausible value is left); "not asked"."""
        e = self.explanation
        if e is None:
            return "not asked"
        return "found" if e.outcome == "found" else "impossible" if e.outcome == "exhausted" else "not found"

    @property
    def cost(self) -> float | None:
        """J of the counterfactual; None if there is none."""
        return None if self.explanation is None else self.explanation.cost

    @property
    def asked(self) -> int:
        """How many rows were asked in addition to the factual, whether paid for or known."""
        return 0 if self.explanation is None else max(len(self.explanation.steps) - 1, 0)

    @property
    def change(self) -> str:
        """What to change, in words; empty if nothing was found."""
        if self.state != "found" or self.explanation is None:
            return ""
        return ", ".join(f"{name} {before} → {after}" for name, before, after, *_ in changes_as_text(self.explanation))

    @property
    def words(self) -> str:
        """The state as text for people."""
        if self.state == "impossible":
            return "no: no plausible change is left" + (f" after {counted(self.asked, 'row')}" if self.asked else "")
        return {"found": "yes", "not found": "asked and not found", "not asked": "not asked"}[self.state]


@dataclass(frozen=True, eq=False)
class FeatureSubsets:
    """What can be done about a decision, by small sets of features: the cheapest found first, those not asked last.

    A set is left out if a subset of it is enough.

    Attributes:
        n_queries: rows sent to the model, in all runs together. budget: how many may be sent.
        summary: the result in one sentence.
    """

    entries: tuple[FeatureSubset, ...]
    n_queries: int
    budget: int
    summary: str

    def frame(self) -> pd.DataFrame:
        """A line per set: features, state, cost, change, asked."""
        lines = [(e.features, e.state, e.cost, e.change, e.asked) for e in self.entries]
        return pd.DataFrame(lines, columns=pd.Index(["features", "state", "cost", "change", "asked"]))

    def to_json(self, path: str | Path | None = None) -> str:
        """The feature subsets as JSON text, also written to `path` if given."""
        lines = []
        for entry in self.entries:
            e, line = entry.explanation, {"features": entry.features, "state": entry.state, "cost": entry.cost}
            found = records(e.counterfactuals.head(1))[0] if e is not None and entry.state == "found" else None
            identity = None if e is None else e.plan.identity
            lines.append({**line, "asked": entry.asked, "counterfactual": found, "explanation": identity})
        document = {"summary": self.summary, "n_queries": self.n_queries, "budget": self.budget}
        return saved(json.dumps(document | {"feature_subsets": lines}, ensure_ascii=False, default=as_json), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The feature subsets as a single HTML page, also written to `path` if given."""
        from acex.show.html import render

        return saved(render("feature_subsets.html", subsets=self), path)

    def __str__(self) -> str:
        lines = [f"{' and '.join(e.features)}: {e.words}{_result(e)}" for e in self.entries]
        return printable("\n".join([self.summary, *lines]))

    __repr__ = __str__


def _result(entry: FeatureSubset) -> str:
    if entry.state == "found":
        return f", {entry.change} (cost {entry.cost:.3g})"
    return f" ({entry.asked} rows)" if entry.state == "not found" else ""


def find_feature_subsets(
    planner: Planner, x: Rows, options: Options, *, max_features: int, queries_each: int
) -> FeatureSubsets:
    """The feature subsets of one row; the budget of `options` is for all of them together.

    Raises:
        ValueError: an option is wrong.
    """
    if not is_count(max_features) or max_features > 3:
        raise ValueError(f"max_features: expected 1, 2 or 3, got {max_features!r}.")
    check_count("queries_each", queries_each, least=2)
    plan = planner.plan(x, options)[0]
    free = [name for name, limits in plan.may_become.items() if limits is not None]
    budget, paid = plan.budget, 0
    entries: dict[tuple[str, ...], FeatureSubset] = {}
    for size in range(1, min(max_features, len(free)) + 1):
        for features in _ordered(free, size, entries):
            entry = FeatureSubset(features, None)
            if budget - paid >= 2:
                frozen = tuple(name for name in plan.space.names if name not in features)
                part = replace(options, freeze=frozen, budget=min(queries_each, budget - paid))
                session = planner.session(x, part)
                entry = FeatureSubset(features, session.run())
                paid += session.box.paid  # in all runs: an interrupted run has paid for the same sets
            entries[features] = entry
            if entry.explanation is not None and entry.explanation.outcome == "already_target":
                return FeatureSubsets((), paid, budget, entry.explanation.advice)
    states = get_args(State)
    ranked = sorted(entries.values(), key=lambda e: (states.index(e.state), e.cost or 0.0, len(e.features)))
    return FeatureSubsets(tuple(ranked), paid, budget, _summary(ranked, paid, budget))


def _ordered(free: Sequence[str], size: int, entries: dict[tuple[str, ...], FeatureSubset]) -> list[tuple[str, ...]]:
    """The sets of this size, most promising first, without those that contain a smaller set that is enough."""
    done = [set(features) for features, entry in entries.items() if entry.state == "found"]
    alone = {features[0]: e for features, e in entries.items() if len(features) == 1 and e.asked}
    # The largest P(hit) of all candidates when the last row was chosen.
    p_hits = {name: e.explanation.steps[-1].note.max_p_hit for name, e in alone.items() if e.explanation is not None}
    sets = (s for s in combinations(free, size) if not any(d <= set(s) for d in done))
    return sorted(sets, key=lambda s: -sum(p_hits.get(f, 0.0) for f in s))


def _summary(entries: Sequence[FeatureSubset], paid: int, budget: int) -> str:
    found = [e.features for e in entries if e.state == "found"]
    alone = [features[0] for features in found if len(features) == 1]
    several, unasked = len(found) - len(alone), sum(e.state == "not asked" for e in entries)
    words = f"Enough alone: {joined_words(alone)}" if alone else "No feature was found to be enough alone"
    together = f"; enough together: {counted(several, 'set')} of several" if several else ""
    rest = f"; not asked: {counted(unasked, 'set')}" if unasked else ""
    return f"{words}{together}{rest} ({paid} of at most {budget} rows sent)."
