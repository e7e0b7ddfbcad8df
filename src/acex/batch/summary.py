"""What many explanations say together: what the lines of their rows have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from acex.audit.groups import Groups
from acex.engine.row_result import RowResult, frame_of
from acex.values import printable

BLOCKS = 10  # of rows, in the order in which they finished, in a summary
MOST_LINES = 12  # of a table of a summary are shown


@dataclass(frozen=True, eq=False)
class Summary:
    """What many explanations say together.

    Attributes:
        outcomes: how many rows ended how.
        changes: a line for each feature that has to change, most often first: in how many rows, their share of those
            found, how often up, down or to another category, and the median step up or down in standard deviations.
        not_found: the names of rows for which nothing was found, with the outcome or the error.
        progress: blocks of rows in the order in which they finished: rows, queries a row, mean cost, share found.
        queries: rows sent to the model for all of them.
        groups: the same by groups of rows, side by side, where it was asked for.
    """

    outcomes: pd.Series[int]
    changes: pd.DataFrame
    not_found: pd.Series[str]
    progress: pd.DataFrame
    queries: int
    groups: Groups | None = None

    @classmethod
    def of(
        cls, lines: Sequence[RowResult], index: pd.Index[Any], finished: Sequence[int], groups: Groups | None = None
    ) -> Summary:
        """The summary of these lines, whose rows finished in this order."""
        frame = frame_of(lines, index)
        missed = frame[~frame["outcome"].isin(["found", "already_target"])]
        return cls(
            outcomes=frame["outcome"].value_counts(),
            changes=_changes([line for line in lines if line.outcome == "found"]),
            not_found=missed["error"].fillna(missed["outcome"]),
            progress=_progress(frame.iloc[list(finished)]),
            queries=int(frame["queries"].sum()),
            groups=groups,
        )

    def __str__(self) -> str:
        n = int(self.outcomes.sum())
        ends = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.items())
        parts = [
            f"{n} row{'' if n == 1 else 's'}: {ends}. {self.queries} queries, {self.queries / max(n, 1):.1f} a row."
        ]
        if len(self.changes):
            parts += ["", "What has to change:", self.changes.head(MOST_LINES).to_string(index=False, na_rep="")]
        if len(self.not_found):
            shown = [f"  {name}: {why}" for name, why in self.not_found.head(MOST_LINES).items()]
            more = len(self.not_found) - len(shown)
            parts += ["", "Nothing was found for:", *shown, *([f"  ... and {more} more"] if more else [])]
        if len(self.progress) > 1:
            parts += ["", "As the work went on:", self.progress.to_string(index=False)]
        if self.groups is not None:
            parts += ["", str(self.groups)]
        return printable("\n".join(parts))

    __repr__ = __str__


def _changes(found: Sequence[RowResult]) -> pd.DataFrame:
    """How often each feature has to change, which way, and how far."""
    steps = pd.DataFrame([way for line in found for way in line.ways], columns=pd.Index(["feature", "way", "size"]))
    lines = []
    for name, group in steps.groupby("feature"):
        ways = Counter(group["way"])
        sizes = group["size"][group["way"] != "other"]  # a category has no standard deviations
        share, median = round(len(group) / len(found), 3), round(float(sizes.median()), 3)
        lines.append((name, len(group), share, ways["up"], ways["down"], ways["other"], median))
    columns = pd.Index(["feature", "rows", "share", "up", "down", "other", "median_step"])
    return pd.DataFrame(lines, columns=columns).sort_values("rows", ascending=False, kind="stable", ignore_index=True)


def _progress(frame: pd.DataFrame) -> pd.DataFrame:
    """What rows cost as the work went on, a line for each block of them; `frame` is in the order of finishing."""
    edges = np.linspace(0, len(frame), min(BLOCKS, len(frame)) + 1).astype(int)
    blocks = [(a, b, frame.iloc[a:b]) for a, b in pairwise(edges.tolist())]
    return pd.DataFrame(
        {
            "rows": [f"{a + 1}-{b}" for a, b, _ in blocks],
            "queries": [round(float(block["queries"].mean()), 2) for *_, block in blocks],
            "reused": [round(float(block["reused"].mean()), 2) for *_, block in blocks],
            "mean_cost": [round(float(block["cost"].mean()), 4) for *_, block in blocks],
            "found": [round(float((block["outcome"] == "found").mean()), 3) for *_, block in blocks],
        }
    )
