"""What many explanations have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from acex.audit.groups import Groups
from acex.engine.row_result import RowResult, frame_of
from acex.values import counted, printable

MOST_LINES = 12  # of a table are printed


@dataclass(frozen=True, eq=False)
class Summary:
    """What many explanations have in common.

    Attributes:
        outcomes: how many rows have each outcome.
        changes: a line for each feature that has to change, most often first: in how many rows, their share of those
            found, how often up, down or to another category, and the median step up or down in standard deviations.
        not_found: the names of rows without a counterfactual, with the outcome or the error.
        queries: rows sent, or claimed by a run that was killed, for all of them. earlier: those of earlier runs.
        groups: groups of rows side by side; None without `by`.
    """

    outcomes: pd.Series[int]
    changes: pd.DataFrame
    not_found: pd.Series[str]
    queries: int
    earlier: int = 0
    groups: Groups | None = None

    @classmethod
    def of(cls, results: Sequence[RowResult], index: pd.Index[Any], groups: Groups | None = None) -> Summary:
        """The summary of these results, by the names of their rows."""
        frame = frame_of(results, index)
        missed = frame[~frame["outcome"].isin(["found", "already_target"])]
        return cls(
            outcomes=frame["outcome"].value_counts(),
            changes=_changes([result for result in results if result.outcome == "found"]),
            not_found=missed["error"].fillna(missed["outcome"]),
            queries=int(frame["queries"].sum()),
            earlier=sum(max(result.queries - result.new, 0) for result in results),
            groups=groups,
        )

    def __str__(self) -> str:
        n = int(self.outcomes.sum())
        words = {outcome: outcome.replace("_", " ") for outcome in self.outcomes.index}
        ends = ", ".join(f"{count} {words[outcome]}" for outcome, count in self.outcomes.items()) or "none to explain"
        new = self.queries - self.earlier
        earlier = f" ({self.earlier} in earlier runs, {new} in this one)" if self.earlier else ""
        queries = f"{counted(self.queries, 'query', 'queries')}{earlier}, {self.queries / max(n, 1):.1f} a row"
        parts = [f"{counted(n, 'row')}: {ends}. {queries}."]
        if len(self.changes):
            parts += ["", "What has to change:", self.changes.head(MOST_LINES).to_string(index=False, na_rep="")]
        if len(self.not_found):
            shown = [f"  {name}: {words.get(why, why)}" for name, why in self.not_found.head(MOST_LINES).items()]
            more = len(self.not_found) - len(shown)
            parts += ["", "Nothing was found for:", *shown, *([f"  ... and {more} more"] if more else [])]
        if self.groups is not None:
            parts += ["", str(self.groups)]
        return printable("\n".join(parts))

    __repr__ = __str__


def _changes(found: Sequence[RowResult]) -> pd.DataFrame:
    """How often each feature has to change, which way, and how far."""
    steps = pd.DataFrame([way for result in found for way in result.ways], columns=pd.Index(["feature", "way", "size"]))
    lines = []
    for name, group in steps.groupby("feature"):
        ways = Counter(group["way"])
        sizes = group["size"][group["way"] != "other"]  # a category has no standard deviations
        share, median = round(len(group) / len(found), 3), round(float(sizes.median()), 3)
        lines.append((name, len(group), share, ways["up"], ways["down"], ways["other"], median))
    columns = pd.Index(["feature", "rows", "share", "up", "down", "other", "median_step"])
    return pd.DataFrame(lines, columns=columns).sort_values("rows", ascending=False, kind="stable", ignore_index=True)
