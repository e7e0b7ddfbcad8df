"""An explanation: a plan, its steps and how it ended; everything else is computed from these on access.

`Explanation.of` builds it from a running search as well as from a record in a ledger or a file.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.engine.certificate import certified
from acex.engine.redaction import redacted, saved
from acex.errors import NoCounterfactual
from acex.plan.plan import Plan
from acex.plan.step import Ending, Outcome, Step, StoppedBy, factual_label, steps_written
from acex.plan.target import Measured
from acex.space.space import Space
from acex.values import (
    Label,
    Remark,
    answer_text,
    answer_texts,
    as_json,
    counted,
    did_you_mean,
    joined_words,
    listed,
    printable,
    readable,
    records,
    refuse_overwriting,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from acex.show.plots import Kind
    from acex.show.sentences import Templates

QUERY_COLUMNS = ("purpose", "label", "hit", "cost", "best")
FORMAT = 2  # of the JSON form
WIDTH = 80  # columns of a terminal
NOTHING_FOUND = {
    "already_target": "Nothing to change: the row is already {label}.",
    "budget_spent": "The budget was spent before a hit.",
    "time_spent": "The time limit was reached before a hit.",
    "unlikely": "A hit became too unlikely to continue.",
    "exhausted": "Every plausible point within the constraints was sent.",
    "failed": "The row could not be explained.",
    "unfinished": "No counterfactual was found so far; the search has not ended.",
}
ADVICE = {  # if no single option excludes most candidates
    "budget_spent": "Raise budget",
    "time_spent": "Raise time_limit",
    "unlikely": "Choose another target",
    "exhausted": "Relax plausibility (a lower threshold, or None)",
}
RELAXED = {  # how to relax each option
    "plausibility": "plausibility=None, or a lower Plausibility(threshold=...); in the shell --plausibility none",
    "max_changes": "a larger max_changes, or None",
    "freeze": "freeze=(), or fewer columns",
    "ranges": "wider ranges, or ranges=None",
    "values": "more values, or values=None",
    "directions": "directions=None, or fewer columns",
    "rules": "rules=(), or fewer rules",
}


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer for one row (the factual). Every counterfactual in it was labelled by the model itself.

    Attributes:
        plan: what to explain, and how.
        steps: every row that was sent, in order, with its label.
        n_queries: rows paid for. n_reused: rows whose answer was already known.
        remarks: what a reader should know; `warnings` are those that make the answer doubtful.
    """

    plan: Plan
    steps: tuple[Step, ...]
    ending: Ending
    n_queries: int
    n_reused: int
    remarks: tuple[Remark, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)  # versions, and when it ran

    @classmethod
    def of(
        cls,
        plan: Plan,
        steps: Sequence[Step],
        ending: Ending | None = None,
        *,
        unanswered: int = 0,
        remarks: Sequence[Remark] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """The explanation that consists of these steps of a plan.

        Args:
            ending: how it ended; by default what follows from the steps alone.
            unanswered: number of rows that were paid for but not answered.
            remarks: in addition to those of the plan and the ending.
            metadata: versions and the like.
        """
        ending = Ending.so_far(steps, plan.target) if ending is None else ending
        return cls(
            plan=plan,
            steps=tuple(steps),
            ending=ending,
            n_queries=sum(step.paid for step in steps) + unanswered,
            n_reused=sum(step.paid == 0 for step in steps),
            remarks=(*plan.remarks, *ending.remarks, *remarks),
            metadata=metadata or {},
        )

    @property
    def warnings(self) -> tuple[Remark, ...]:
        """The remarks that make the answer doubtful, such as a model that contradicts itself."""
        return tuple(remark for remark in self.remarks if remark.is_warning)

    # -- the question --------------------------------------------------------------------------------------------

    @property
    def target(self) -> Any:
        """The wanted label or list of labels; None for any but `label_before`; a mapping for a range of numbers."""
        return self.plan.target.named(self.plan.class_names).described

    @property
    def settings(self) -> dict[str, Any]:
        """All options of the search in plain values, and the versions it ran with."""
        return {**self.plan.settings, **self.metadata}

    @cached_property
    def _points(self) -> FloatArray:
        """The rows that were sent, as points, (n, d)."""
        space = self.plan.space
        rows = pd.DataFrame([step.row for step in self.steps], columns=pd.Index(space.names), dtype=object)
        return space.snap(space.encode(rows))

    @cached_property
    def _rows(self) -> pd.DataFrame:
        """The rows that were sent, in the format of the data; see `asked_rows`."""
        return self.plan.space.frame(self._points)

    @property
    def trace(self) -> pd.DataFrame:
        """A row per query: purpose, label, hit, cost, best (cost of the best counterfactual so far), and the row sent.

        If a feature has the name of such a column, say "label", the query's column is called "label of query".
        """
        rows = self._rows
        names = {name: f"{name} of query" if name in rows.columns else name for name in QUERY_COLUMNS}
        columns = {names[name]: [getattr(step, name) for step in self.steps] for name in QUERY_COLUMNS}
        columns[names["label"]] = labels_of(self)
        return pd.concat([pd.DataFrame(columns), rows], axis=1)

    # -- the answer ----------------------------------------------------------------------------------------------

    @property
    def outcome(self) -> Outcome:
        """ "found", "already_target", "failed", "unfinished", or why nothing was found.

        That is "budget_spent", "time_spent", "unlikely" or "exhausted".
        """
        return self.ending.outcome

    @property
    def stopped_by(self) -> StoppedBy:
        """Why the search ended.

        "budget": used up, or too little left to check a cheaper answer; "time"; "settled": more queries are
        unlikely to pay off; "exhausted": there is no allowed row left to send; "unfinished": it has not ended.
        """
        return self.ending.stopped_by

    @property
    def error(self) -> str | None:
        """What went wrong; None unless the outcome is "failed"."""
        return self.ending.error

    @property
    def _chosen(self) -> list[Step]:
        return [self.steps[position] for position in self.ending.counterfactuals]

    @cached_property
    def factual(self) -> pd.Series[Any]:
        """The row that was explained."""
        if not self.steps:  # the row may not fit the space, which may be why there are none
            return pd.Series(dict(self.plan.factual), dtype=object)
        return self._rows.iloc[0].rename(None)

    @property
    def label_before(self) -> Label:
        """The model's label of the row; None if it is not known."""
        return self._with_class_name(factual_label(self.steps, self.plan.target)) if self.steps else None

    @property
    def label_after(self) -> Label:
        """The model's label of the best counterfactual; None if there is none."""
        return self._with_class_name(self._chosen[0].label) if self._chosen else None

    def _with_class_name(self, label: Label) -> Label:
        """The class name of a label, if it has one."""
        return label if isinstance(self.plan.target, Measured) else self.plan.class_names.get(label, label)

    @property
    def counterfactual(self) -> pd.Series[Any]:
        """The best counterfactual.

        Raises:
            NoCounterfactual: there is none; the message says what to relax.
        """
        if not self.ending.counterfactuals:
            raise NoCounterfactual(self.error or f"{self._why_none()} ({self._queries()})")
        return self.counterfactuals.iloc[0]

    @cached_property
    def counterfactuals(self) -> pd.DataFrame:
        """The counterfactuals, best first; with `kinds`, a realistic and a short one; empty if nothing was found."""
        return self._rows.iloc[list(self.ending.counterfactuals)].reset_index(drop=True)

    @property
    def cost(self) -> float | None:
        """Cost J of the best counterfactual: the size of its changes; None if there is none."""
        return self.costs[0] if self._chosen else None

    @property
    def costs(self) -> tuple[float, ...]:
        """Cost J of each counterfactual."""
        return tuple(step.cost for step in self._chosen)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """What the best counterfactual changes: feature, before, after, step in standard deviations, and `needed`.

        "needed" says how the need for it was checked (see `acex.search.reverts`), or "not checked".
        """
        if not self.ending.counterfactuals:
            return pd.DataFrame(columns=["feature", "before", "after", "step", "needed"])
        return self.changes_of(0)

    def changes_of(self, i: int) -> pd.DataFrame:
        """What counterfactual number i changes, with the columns of `changes`."""
        space, pair = self.plan.space, [0, self.ending.counterfactuals[i]]
        rows, (x, best) = self._rows.iloc[pair], self._points[pair]
        steps = self.plan.scale.differences(best[None], x)[0]
        changed = np.flatnonzero(best != x)
        changed = changed[np.argsort(-np.abs(steps[changed]), kind="stable")]
        columns = [rows[c].tolist() for c in rows.columns]
        marks = self.ending.needed[i] if self.ending.needed else {}
        return pd.DataFrame(
            {
                "feature": [space.names[j] for j in changed],
                # The dtype object keeps each value as its own column holds it.
                "before": pd.Series([columns[j][0] for j in changed], dtype=object),
                "after": pd.Series([columns[j][1] for j in changed], dtype=object),
                "step": steps[changed],
                "needed": [marks.get(space.names[j], "not checked") for j in changed],
            }
        )

    # -- how good it is ------------------------------------------------------------------------------------------

    @property
    def affinities(self) -> tuple[float, ...]:
        """How similar each counterfactual is to the reference (1: an inlier); empty if not recorded."""
        recorded = [step.note.affinity for step in self._chosen]
        return () if None in recorded else tuple(float(a) for a in recorded if a is not None)

    @property
    def robustness(self) -> tuple[float, ...]:
        """The surrogate's P(hit) close to each; empty without a margin if the model gives scores."""
        return self.ending.robustness

    @property
    def certainty(self) -> tuple[float, ...]:
        """With noise, the probability that each is a hit, after its votes; empty without."""
        return tuple(certainty for *_, certainty in self.ending.votes)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The model's own probability of the target for each counterfactual; empty if it gives no scores."""
        known = [self.plan.target.probability(step.scores, self.steps[0].label) for step in self._chosen]
        return tuple(p for p in known if p is not None)

    @property
    def kinds(self) -> tuple[str, ...]:
        """ "realistic" or "short" for each counterfactual; empty unless both are offered (see `prefer`).

        A short one changes at most four features. It may be unusual: `affinities` says how much.
        """
        return self.ending.kinds

    @property
    def improvement_odds(self) -> tuple[float, ...]:
        """The estimated chances that a counterfactual at least 10%, 25%, 50% cheaper exists; empty if unknown."""
        return self.ending.improvement_odds

    def measures(self) -> dict[str, float]:
        """Queries, validity, cost, distances, number of changes and affinity of the best counterfactual.

        They are named as in section 4.2 of the paper: d2 and g1 are the l2 and l1 distance in codes, d2n and g1n the
        same in standard deviations of the reference; the cost is J = d2n + beta g1n with the weights of the features.
        NaN without a counterfactual.
        """
        values = {"queries": float(self.n_queries), "validity": float(self.outcome == "found")}
        if self.outcome != "found":
            return values | dict.fromkeys(("cost", "d2", "g1", "d2n", "g1n", "n_changed", "affinity"), math.nan)
        scale, (x, best) = self.plan.scale, self._points[[0, self.ending.counterfactuals[0]]]
        z, step = scale.differences(best[None], x)[0], scale.steps(best[None], x)[0]
        return values | {
            "cost": self.costs[0],
            "d2": float(np.linalg.norm(step)),
            "g1": float(np.abs(step).sum()),
            "d2n": float(np.linalg.norm(z)),
            "g1n": float(np.abs(z).sum()),
            "n_changed": float((best != x).sum()),
            "affinity": next(iter(self.affinities), math.nan),
        }

    # -- text and pictures ---------------------------------------------------------------------------------------

    @property
    def advice(self) -> str:
        """What to do if no counterfactual was found; empty if one was."""
        if self.outcome == "found":
            return ""
        has_outcomes = bool(self.plan.settings.get("outcomes"))
        result = NOTHING_FOUND[self.outcome].format(label=labels_as_text(self)[0])
        if self.outcome not in ADVICE:
            return result
        limits = [name for name in RELAXED if name != "plausibility" and self.plan.settings.get(name)]
        limits += ["freeze"] if any(feature.frozen for feature in self.plan.space.features) else []
        hints = [] if has_outcomes or self.outcome == "exhausted" else ["pass known outcomes"]
        ways = [ADVICE[self.outcome], *hints, *([f"relax {joined_words(limits)}"] if limits else [])]
        return f"{result} {self._most_restrictive(has_outcomes) or joined_words(ways, 'or') + '.'}"

    def _most_restrictive(self, has_outcomes: bool) -> str:
        """Which options exclude candidates, and how to relax them; empty if no single one does."""
        n = dict(self.ending.excluded)
        if not n:
            return ""
        rows = "rows with the wanted outcome" if has_outcomes else "candidate rows"
        n_left = n.pop("as given")
        names = sorted(n, key=lambda name: (-n[name], name))
        ways = "; ".join(f"without {name} {n[name]} ({RELAXED[name]})" for name in names)
        return f"Most restrictive: {joined_words(names)}. As given, {n_left} {rows} are allowed; {ways}."

    def _why_none(self) -> str:
        if self.outcome == "already_target":
            return self.advice
        answers = listed(dict.fromkeys(self._with_class_name(step.label) for step in self.steps))
        if isinstance(self.plan.target, Measured):
            numbers = [step.label for step in self.steps if isinstance(step.label, (int, float))]
            answers = f"{readable(min(numbers))} to {readable(max(numbers))}"
        met = any(self.plan.target.is_hit(step.label, self.steps[0].label) for step in self.steps)
        text = f"{self.advice} The model answered {answers}"
        if met or self.target is None:
            return f"{text}."
        meant = did_you_mean(self.target, [step.label for step in self.steps])
        return f"{text}, never {self.plan.target.range_text or repr(self.target)}.{meant}"

    def _queries(self) -> str:
        queries = counted(self.n_queries, "query", "queries")
        return f"{len(self.steps)} answers used, {queries.replace(' ', ' new ')}" if self.n_reused else queries

    def summary(self) -> str:
        """A sentence on the result and the number of queries, and another one for each remark."""
        words = [f"{'Warning' if remark.is_warning else 'Note'}: {remark}" for remark in self.remarks]
        return " ".join([self._result(), *words])

    def _result(self) -> str:
        if self.outcome == "found":
            sure = f"; {self.ending.certainty_text()}" if self.ending.votes else ""
            wanted = f" (wanted: {self.plan.target.range_text})" if self.plan.target.range_text else ""
            return (
                f"{' -> '.join(labels_as_text(self))}{wanted} by changing {changes_counted(self)} "
                f"(cost {self.cost:.3g}, {self._queries()}{sure})."
            )
        if self.outcome == "failed":
            return f"failed: {self.error} ({self._queries()})"
        if self.outcome == "already_target":
            labels = [step.label for step in self.steps if step.purpose == "factual"]
            n_for = labels.count(factual_label(self.steps, self.plan.target))
            votes = f"; {n_for} of {len(labels)} votes" if self.plan.noise is not None else ""
            return f"{self.advice} ({self._queries()}{votes})"
        return f"No counterfactual: still {labels_as_text(self)[0]} ({self._queries()}). {self._why_none()}"

    def __str__(self) -> str:
        if self.outcome != "found":
            return printable(self.summary())
        tables = [_as_table(changes_as_text(self, i)) for i in range(len(self.counterfactuals))]
        titled = [f"{heading}\n{table}".lstrip() for heading, table in zip(headings(self), tables, strict=True)]
        return "\n".join([printable(self.summary()), *titled, self._about_cost()])

    __repr__ = __str__

    def _about_cost(self) -> str:
        beta = (self.plan.settings.get("cost") or {}).get("beta", 5.0)
        affinity = "\naffinity: 1 is typical of the data" if self.kinds else ""
        return f"cost: distance + {beta:g} x sum of all changes, in standard deviations of the data{affinity}"

    def _repr_html_(self) -> str:
        from acex.show.html import explanation_html

        return explanation_html(self)

    def plot(self, kind: Kind | None = None, *, dark: bool = False) -> Figure:
        """A picture of the changes and of the cost against queries, or only the picture named by `kind`.

        Args:
            kind: "changes", "trace" (cost against queries) or "numbers" (the model's numbers against queries).
            dark: colors for a dark background.
        """
        from acex.show.plots import draw_explanation

        return draw_explanation(self, kind, dark=dark)

    def sentences(self, templates: Templates | None = None) -> list[str]:
        """A sentence for each change, for letters; `acex.sentences.Templates` change the wording or language."""
        from acex.show.sentences import ENGLISH, sentences

        return sentences(self, ENGLISH if templates is None else templates)

    def to_html(self, path: str | Path | None = None, *, profile: str = "report", **options: Any) -> str:
        """The explanation as a single HTML page, also written to `path` if given.

        Args:
            profile: "report", with a certificate, or "notice", for the person concerned.
            options: `redact`, `sign` as in `to_json`; a notice also takes `fields`, `template` (`show.report.page`).
        """
        from acex.show.report import page

        refuse_overwriting([path], [options.get("sign")])
        return saved(page(self, profile, **options), path)

    # -- JSON ----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON-compatible values."""
        document = {
            "format": FORMAT,
            "outcome": self.outcome,
            "stopped_by": self.stopped_by,
            "error": self.error,
            "label_before": self.label_before,
            "label_after": self.label_after,
            "target": self.target,
            "n_queries": self.n_queries,
            "n_reused": self.n_reused,
            "factual": records(self._rows.iloc[:1] if self.steps else self.factual.to_frame().T)[0],
            "counterfactuals": records(self.counterfactuals),
            "positions": self.ending.counterfactuals,
            "changes": records(self.changes),
            "costs": self.costs,
            "affinities": self.affinities,
            "robustness": self.robustness,
            "needed": self.ending.needed,
            "votes": self.ending.votes,
            "improvement_odds": self.improvement_odds,
            "kinds": self.kinds,
            "excluded": self.ending.excluded,
            "remarks": [remark.to_dict() for remark in self.remarks],
            "queries": [
                {
                    "purpose": step.purpose,
                    "label": as_json(step.label),
                    "hit": step.hit,
                    "counts": step.note.counts,
                    "cost": step.cost,
                    "best": None if math.isinf(step.best) else step.best,
                    "scores": step.scores,
                    "paid": step.paid,
                    "at": step.at,
                    "reference": step.note.reference,
                }
                for step in self.steps
            ],
            "asked": [list(row.values()) for row in records(self._rows)],
            "settings": self.settings,
            "space": self.plan.space.to_dict(),
            "deviations": self.plan.scale.deviations.tolist(),
        }
        # A round trip through text turns NumPy numbers, tuples and other labels into JSON-compatible values.
        plain: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False, default=as_json))
        return plain

    def to_json(
        self,
        path: str | Path | None = None,
        *,
        redact: Iterable[str] = (),
        left_out: str | Path | None = None,
        sign: str | Path | None = None,
    ) -> str:
        """The explanation as JSON text with a certificate (see `acex verify`), also written to `path` if given.

        Args:
            redact: features to leave out, with a salted hash of each in their place.
            left_out: a file for the redacted columns and their salts, which the owner keeps.
            sign: a file with the Ed25519 private key (PEM) to sign with.
        """
        refuse_overwriting([path, left_out], [sign])
        document, private = redacted(self.to_dict(), redact)
        return saved(certified(document, sign), path, private, left_out)

    @classmethod
    def from_json(cls, source: str | Path) -> Explanation:
        """The explanation in a JSON text or a file that `to_json` wrote.

        Raises:
            ValueError: it has another format, such as format 1, which acex 0.1 and 0.2 wrote.
        """
        text = str(source)
        if not text.lstrip().startswith("{"):
            text = Path(source).read_text(encoding="utf-8")
        data = json.loads(text)
        if data.get("format") != FORMAT or "rows" in data:
            raise ValueError(f"expected an explanation of format {FORMAT}, got format {data.get('format')!r}.")
        return _from_dict(data)


def asked_rows(explanation: Explanation) -> pd.DataFrame:
    """The rows that were sent, in the format of the data."""
    return explanation._rows


def without(explanation: Explanation, columns: Iterable[str]) -> Explanation:
    """The explanation with these columns redacted."""
    gone = list(columns)
    return Explanation.from_json(json.dumps(redacted(explanation.to_dict(), gone)[0])) if gone else explanation


def single(explanation: Explanation, i: int) -> Explanation:
    """The explanation as if counterfactual number i were its only one."""
    by_counterfactual = ("counterfactuals", "robustness", "needed", "votes", "kinds")
    own = {name: getattr(explanation.ending, name)[i : i + 1] for name in by_counterfactual}
    return replace(explanation, ending=replace(explanation.ending, **own))


def n_redacted_changes(explanation: Explanation, i: int = 0) -> int:
    """How many of the features that counterfactual number i changes are redacted."""
    counts = explanation.settings.get("redacted_changes")
    return counts[i] if counts else 0


def changes_counted(explanation: Explanation) -> str:
    """How many features the best counterfactual changes, as in "2 of 9 features"; includes redacted ones."""
    n_redacted = n_redacted_changes(explanation)
    n_features = len(explanation.plan.space) + len(explanation.settings.get("redacted", ()))
    counted = f"{len(explanation.changes) + n_redacted} of {n_features} features"
    return f"{counted}, {n_redacted} of them redacted" if n_redacted else counted


def headings(explanation: Explanation) -> list[str]:
    """The heading of each counterfactual's table; empty for the first one, unless it has a kind."""
    out = []
    for i, (step, cost) in enumerate(zip(explanation._chosen, explanation.costs, strict=True)):
        number = [answer_text(step.label)] if isinstance(explanation.plan.target, Measured) else []
        if not explanation.kinds:
            out.append(f"or ({', '.join([*number, f'cost {cost:.3g}'])}):" if i else "")
            continue
        n = len(explanation.changes_of(i)) + n_redacted_changes(explanation, i)
        parts = [*number, counted(n, "change"), f"cost {cost:.3g}"]
        if step.note.affinity is not None:
            parts.append(f"affinity {step.note.affinity:.2f}{'' if step.note.counts else ' (unusual)'}")
        out.append(f"{'or ' if i else ''}{explanation.kinds[i]}: {', '.join(parts)}")
    return out


def is_reference_row(explanation: Explanation) -> bool:
    """Whether the best counterfactual is an unchanged row of the data rather than one made by the search."""
    chosen = explanation.ending.counterfactuals
    return bool(chosen and explanation.steps[chosen[0]].note.reference)


def labels_as_text(explanation: Explanation) -> tuple[str, str]:
    """The labels before and after, as text for people."""
    return answer_texts(explanation.label_before, explanation.label_after)


def labels_of(explanation: Explanation) -> list[Label]:
    """The model's answer to each row that was sent; its class name, if it has one."""
    return [explanation._with_class_name(step.label) for step in explanation.steps]


def changes_as_text(explanation: Explanation, i: int = 0) -> list[tuple[str, str, str, str, str]]:
    """For each change of counterfactual number i: feature, before, after, step and `needed`, as text for people.

    Categories and missing values have no standard deviation: their step is "change".
    """
    out = []
    for name, before, after, step, needed in explanation.changes_of(i).itertuples(index=False):
        feature = explanation.plan.space.feature(name)
        far = f"{step:+.2f} sd" if abs(step) >= 0.01 else f"{step:+.1g} sd"
        leaps = feature.way(step, before, after) == "other"
        out.append((name, *feature.texts(before, after), "change" if leaps else far, needed))
    return out


def _as_table(changes: Iterable[tuple[str, ...]]) -> str:
    """Changes as a table for the terminal; long texts are wrapped, never truncated."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="none")
    for name in ("feature", "before", "after", "step", "needed"):
        table.add_column(name, overflow="fold", justify="left" if name in ("feature", "needed") else "right")
    for line in changes:
        table.add_row(*(Text(printable(word)) for word in line))
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _from_dict(data: Mapping[str, Any]) -> Explanation:
    """The explanation that `to_dict` wrote."""
    space = Space.from_dict(data["space"])
    plan = Plan.from_record(data["settings"], data["factual"], space, data["deviations"])
    asked = [dict(zip(space.names, row, strict=True)) for row in data["asked"]]
    affinities = dict(zip(data["positions"], data["affinities"], strict=False))  # empty if not recorded
    steps = steps_written(asked, data["queries"], affinities)
    ending = Ending.from_dict({**data, "counterfactuals": data["positions"], "remarks": ()})
    remarks = tuple(Remark.of(remark) for remark in data["remarks"])
    counts = {"n_queries": data["n_queries"], "n_reused": data["n_reused"]}  # rows without an answer are not in `asked`
    return replace(Explanation.of(plan, steps, ending), remarks=remarks, **counts)
