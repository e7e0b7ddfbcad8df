"""What was found, what it cost, and every step on the way."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from acex.errors import NoCounterfactual
from acex.plan.target import Target
from acex.space.scale import Scale
from acex.space.space import Space
from acex.values import as_json, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from acex.show.plots import Kind
    from acex.show.sentences import Templates

Outcome: TypeAlias = Literal["found", "already_target", "budget_spent", "unlikely", "exhausted"]
StoppedBy: TypeAlias = Literal["budget", "settled", "exhausted"]

ADVICE = {
    "already_target": "The factual already has the label that was asked for: there is nothing to change.",
    "budget_spent": "The budget ran out before a hit. Raise budget, give known outcomes as labels, unfreeze features, "
    "or loosen ranges and constraint.",
    "unlikely": "A hit became too unlikely to go on. Give known outcomes as labels, unfreeze features, loosen ranges "
    "or constraint, choose another target.",
    "exhausted": "Every plausible point within the constraints was asked. Unfreeze features, widen ranges, "
    "or relax plausibility (a lower threshold, or None).",
}
FORMAT = 1  # of the JSON form
WIDTH = 80  # columns of a terminal


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer for one factual. Every counterfactual in it was labelled by the model itself.

    Attributes:
        factual: the row that was explained.
        label_before: the model's label of the factual.
        label_after: the model's label of the best counterfactual; None when there is none.
        target: the label that was wanted; None for any other than `label_before`.
        outcome: "found", "already_target", "budget_spent", "unlikely" or "exhausted".
        stopped_by: "budget", "settled" (more queries would not pay) or "exhausted" (nothing left to ask).
        counterfactuals: a frame, best first; empty when nothing was found.
        costs, affinities: cost J of each, and how much it looks like the reference (1: an inlier).
        steadiness: with a margin, the surrogate's P(hit) in a small neighbourhood of each; empty without.
        n_queries: rows paid for. n_reused: rows whose answer was known already.
        queries: a frame with a row per query: purpose, label, hit, cost, best (cost of the best so far).
        asked: the rows of these queries.
        settings: what the search was told: target, budget, seed, strategy, versions and so on.
        warnings: what makes the answers doubtful, such as a model that contradicts itself.
    """

    factual: pd.Series[Any]
    label_before: Hashable
    label_after: Hashable
    target: Hashable
    outcome: Outcome
    stopped_by: StoppedBy
    counterfactuals: pd.DataFrame
    costs: tuple[float, ...]
    affinities: tuple[float, ...]
    n_queries: int
    n_reused: int
    queries: pd.DataFrame
    asked: pd.DataFrame
    settings: dict[str, Any]
    space: Space
    scale: Scale
    steadiness: tuple[float, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def counterfactual(self) -> pd.Series[Any]:
        """The best counterfactual.

        Raises:
            NoCounterfactual: there is none; the message says what to relax.
        """
        if self.counterfactuals.empty:
            raise NoCounterfactual(f"{self._advice()} ({self._price()})")
        return self.counterfactuals.iloc[0]

    def _price(self) -> str:
        reused = f", {self.n_reused} known before" if self.n_reused else ""
        return f"{self.n_queries} {'query' if self.n_queries == 1 else 'queries'}{reused}"

    def _advice(self) -> str:
        answers = self.queries["label"].unique().tolist()
        wanted = Target.of(self.target).wanted
        never = "" if wanted is None or set(wanted) & set(answers) else f", never {self.target!r}"
        return f"{ADVICE[self.outcome]} The model answered {answers}{never}."

    @cached_property
    def changes(self) -> pd.DataFrame:
        """What the best counterfactual changes: feature, before, after, step in standard deviations."""
        if self.counterfactuals.empty:
            return pd.DataFrame(columns=["feature", "before", "after", "step"])
        return self.changes_of(0)

    def changes_of(self, i: int) -> pd.DataFrame:
        """What counterfactual number i changes, in the form of `changes`."""
        rows = pd.concat([self.asked.iloc[[0]], self.counterfactuals.iloc[[i]]])
        x, best = self.space.encode(rows)
        steps = self.scale.differences(best[None], x)[0]
        changed = np.flatnonzero(best != x)
        changed = changed[np.argsort(-np.abs(steps[changed]), kind="stable")]
        columns = [rows[c].tolist() for c in rows.columns]
        return pd.DataFrame(
            {
                "feature": [self.space.names[j] for j in changed],
                # As objects each value stays as its own column holds it.
                "before": pd.Series([columns[j][0] for j in changed], dtype=object),
                "after": pd.Series([columns[j][1] for j in changed], dtype=object),
                "step": steps[changed],
            }
        )

    @property
    def trace(self) -> pd.DataFrame:
        """A row per query: why and what was asked, its label and cost, and the best cost so far.

        Where a feature is called "label" or the like, the query's own is "label of query".
        """
        taken = {c: f"{c} of query" for c in self.queries.columns if c in self.asked.columns}
        return pd.concat([self.queries.rename(columns=taken), self.asked], axis=1)

    def measures(self) -> dict[str, float]:
        """Queries, validity, cost, distances, number of changes and affinity of the best counterfactual."""
        from acex.show.measures import measures

        return measures(self)

    def plot(self, kind: Kind | None = None) -> Figure:
        """A picture of the changes and of the cost against queries, or one of the kind that is named.

        Args:
            kind: "changes", "counterfactuals" (all of them side by side), "trace" (cost against queries) or
                "boundary" (where the surrogate sees the decision change).
        """
        from acex.show.plots import draw_explanation, draw_kind

        return draw_explanation(self) if kind is None else draw_kind(self, kind)

    # -- for people ------------------------------------------------------------------------------

    def sentences(self, templates: Templates | None = None) -> list[str]:
        """A sentence for each change, for letters; `acex.show.sentences.Templates` are for other words or languages."""
        from acex.show.sentences import ENGLISH, sentences

        return sentences(self, ENGLISH if templates is None else templates)

    def summary(self) -> str:
        """One sentence: what happened and what it cost; another one for each warning."""
        return " ".join([self._result(), *(f"Warning: {warning}" for warning in self.warnings)])

    def _result(self) -> str:
        if self.outcome == "found":
            return (
                f"{self.label_before} -> {self.label_after} by changing {len(self.changes)} of "
                f"{len(self.space)} features (cost {self.costs[0]:.3g}, {self._price()})."
            )
        return f"{self.outcome}: still {self.label_before} ({self._price()}). {self._advice()}"

    def __str__(self) -> str:
        if self.outcome != "found":
            return printable(self.summary())
        tables = [_drawn(_shown(self.changes_of(i))) for i in range(len(self.counterfactuals))]
        or_else = [f"or (cost {cost:.3g}):\n{table}" for cost, table in zip(self.costs[1:], tables[1:], strict=True)]
        return "\n".join([printable(self.summary()), tables[0], *or_else])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from acex.show.report import explanation_html

        return explanation_html(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """The explanation as one HTML page that needs nothing else, also written to `path` if given."""
        from acex.show.report import explanation_page

        text = explanation_page(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    # -- for machines ----------------------------------------------------------------------------

    def to_json(self, path: str | Path | None = None) -> str:
        """The explanation as JSON text, also written to `path` if given."""
        text = json.dumps(
            {
                "format": FORMAT,
                "outcome": self.outcome,
                "stopped_by": self.stopped_by,
                "label_before": self.label_before,
                "label_after": self.label_after,
                "target": self.target,
                "n_queries": self.n_queries,
                "n_reused": self.n_reused,
                "factual": _values(self.factual.to_frame().T)[0],
                "counterfactuals": _values(self.counterfactuals),
                "changes": _values(self.changes),
                "costs": self.costs,
                "affinities": self.affinities,
                "steadiness": self.steadiness,
                "warnings": self.warnings,
                "queries": _values(self.queries),
                "asked": [list(row.values()) for row in _values(self.asked)],
                "settings": self.settings,
                "space": self.space.to_dict(),
                "deviations": self.scale.deviations.tolist(),
            },
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
            default=as_json,  # numbers of numpy's, labels of other types
        )
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> Explanation:
        """The explanation back from JSON text or from a file."""
        text = str(source)
        if not text.lstrip().startswith("{"):
            text = Path(source).read_text(encoding="utf-8")
        data = json.loads(text)
        if data.get("format") != FORMAT:
            raise ValueError(f"expected an explanation of format {FORMAT}, got {data.get('format')!r}.")
        space = Space.from_dict(data["space"])
        asked = space.frame(space.encode(pd.DataFrame(data["asked"], columns=space.names)))
        found = pd.DataFrame(data["counterfactuals"])
        queries = pd.DataFrame(data["queries"])
        queries["best"] = queries["best"].astype(float).fillna(math.inf)
        return cls(
            factual=space.frame(space.encode(data["factual"])).iloc[0].rename(None),
            counterfactuals=asked.iloc[:0] if found.empty else space.frame(space.encode(found)),
            asked=asked,
            queries=queries,
            costs=tuple(data["costs"]),
            affinities=tuple(data["affinities"]),
            steadiness=tuple(data["steadiness"]),
            warnings=tuple(data.get("warnings", ())),
            space=space,
            scale=Scale(np.array(data["deviations"]), space.is_nominal, space.n_codes),
            **{
                name: data[name]
                for name in (
                    "label_before", "label_after", "target", "outcome", "stopped_by", "n_queries", "n_reused",
                    "settings",
                )
            },
        )  # fmt: skip


def readable(value: Any, digits: int = 4) -> str:
    """A value as people write it: four significant digits behind a point, none where it is whole."""
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return f"{value:.0f}" if abs(value) >= 10**digits or value.is_integer() else f"{value:.{digits}g}"
    return str(value)


def readable_pair(before: Any, after: Any) -> tuple[str, str]:
    """Both values as people write them, with as many digits as it takes to tell them apart."""
    for digits in range(4, 18):  # 17 tell any two floats apart
        pair = readable(before, digits), readable(after, digits)
        if pair[0] != pair[1]:
            break
    return pair


def _shown(changes: pd.DataFrame) -> pd.DataFrame:
    """Changes in words."""
    pairs = [readable_pair(b, a) for b, a in zip(changes["before"], changes["after"], strict=True)]
    return pd.DataFrame(
        {
            "feature": changes["feature"],
            "before": [before for before, _ in pairs],
            "after": [after for _, after in pairs],
            "step": changes["step"].map("{:+.2f} sd".format),
        }
    )


def _drawn(shown: pd.DataFrame) -> str:
    """A frame of texts as a table that fits a terminal: long ones are folded, none is cut short."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="none")
    for name in shown.columns:
        table.add_column(name, overflow="fold", justify="left" if name == "feature" else "right")
    for line in shown.itertuples(index=False):
        table.add_row(*(Text(printable(word)) for word in line))
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _values(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as JSON knows them; infinity becomes null."""
    columns = {str(c): [_plain(v) for v in frame[c].tolist()] for c in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    value = as_json(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
