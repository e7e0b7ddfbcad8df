"""What was found, what it cost, and every step on the way.

An explanation is a plan, its steps and how it ended; everything else follows from these and is worked out when somebody
wants to see it. `Explanation.of` is the only builder, in a running search and from a ledger or a file alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from acex.engine.advice import advice
from acex.engine.certificate import certified
from acex.engine.frames import records
from acex.engine.redaction import redacted, saved
from acex.errors import NoCounterfactual
from acex.plan.plan import Plan
from acex.plan.step import Ending, Outcome, Step, StoppedBy, factual_label, steps_written
from acex.plan.target import Measured
from acex.space.scale import Scale
from acex.space.space import Space
from acex.values import Label, answer_texts, as_json, listed, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from acex.show.plots import Kind
    from acex.show.sentences import Templates

FORMAT = 1  # of the JSON form


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer for one factual. Every counterfactual in it was labelled by the model itself.

    Attributes:
        plan: what was to be explained, and how.
        steps: every row that was asked, in order, with its label and what came of it.
        n_queries: rows paid for. n_reused: rows whose answer was known already.
        warnings: what makes the answers doubtful, such as a model that contradicts itself.
    """

    plan: Plan
    steps: tuple[Step, ...]
    ending: Ending
    n_queries: int
    n_reused: int
    warnings: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)  # versions, and when it ran: not what decides what is asked

    @classmethod
    def of(
        cls,
        plan: Plan,
        steps: Sequence[Step],
        ending: Ending | None = None,
        *,
        unanswered: int = 0,
        warnings: Sequence[str] = (),
        about: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """The explanation that these steps of a plan make.

        Args:
            ending: how it ended; by default what the steps say by themselves.
            unanswered: rows that were paid for without an answer.
            warnings: besides those of the plan and the ending.
            about: what else is worth telling, such as versions.
        """
        ending = Ending.so_far(steps, plan.target) if ending is None else ending
        return cls(
            plan=plan,
            steps=tuple(steps),
            ending=ending,
            n_queries=sum(step.paid for step in steps) + unanswered,
            n_reused=sum(step.paid == 0 for step in steps),
            warnings=(*plan.remarks, *ending.warnings, *warnings),
            about=about or {},
        )

    # -- what was asked --------------------------------------------------------------------------

    @property
    def space(self) -> Space:
        """What each feature can hold."""
        return self.plan.space

    @property
    def scale(self) -> Scale:
        """The standard deviations of the reference."""
        return self.plan.scale

    @property
    def target(self) -> Any:
        """The label wanted, or a list of them; None for any other than `label_before`; of numbers a mapping."""
        return self.plan.target.named(self.plan.class_names).said

    @property
    def settings(self) -> dict[str, Any]:
        """What the search was told: target, budget, seed, strategy, and so on; and the versions it ran with."""
        return {**self.plan.settings, **self.about}

    @cached_property
    def asked(self) -> pd.DataFrame:
        """The rows that were asked."""
        rows = pd.DataFrame([step.row for step in self.steps], columns=pd.Index(self.space.names), dtype=object)
        return self.space.frame(self.space.encode(rows))

    @cached_property
    def queries(self) -> pd.DataFrame:
        """A row per query: purpose, label, hit, cost, best (cost of the best counterfactual so far)."""
        names = ("purpose", "label", "hit", "cost", "best")
        columns = {name: [getattr(step, name) for step in self.steps] for name in names}
        return pd.DataFrame(columns | {"label": [self._called(step.label) for step in self.steps]})

    @property
    def trace(self) -> pd.DataFrame:
        """A row per query: why and what was asked, its label and cost, and the best cost so far.

        Where a feature is called "label" or the like, the query's own is "label of query".
        """
        taken = {c: f"{c} of query" for c in self.queries.columns if c in self.asked.columns}
        return pd.concat([self.queries.rename(columns=taken), self.asked], axis=1)

    # -- what came of it -------------------------------------------------------------------------

    @property
    def outcome(self) -> Outcome:
        """ "found", "already_target", "budget_spent", "unlikely", "exhausted" or "failed"."""
        return self.ending.outcome

    @property
    def stopped_by(self) -> StoppedBy:
        """ "budget", "settled" (more queries would not pay) or "exhausted" (nothing left to ask)."""
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
        if not self.steps:  # it may be no row of the space: that may be why there are none
            return pd.Series(dict(self.plan.factual), dtype=object)
        return self.asked.iloc[0].rename(None)

    @property
    def label_before(self) -> Label:
        """The model's label of the factual; None if it was never told."""
        return self._called(factual_label(self.steps, self.plan.target)) if self.steps else None

    @property
    def label_after(self) -> Label:
        """The model's label of the best counterfactual; None when there is none."""
        return self._called(self._chosen[0].label) if self._chosen else None

    def _called(self, label: Label) -> Label:
        """The class name of a label, if it has one."""
        return label if isinstance(self.plan.target, Measured) else self.plan.class_names.get(label, label)

    @property
    def labels_in_words(self) -> tuple[str, str]:
        """The labels before and after, as people write them."""
        return answer_texts(self.label_before, self.label_after)

    @cached_property
    def counterfactuals(self) -> pd.DataFrame:
        """The counterfactuals, best first; empty when nothing was found."""
        return self.asked.iloc[list(self.ending.counterfactuals)].reset_index(drop=True)

    @property
    def costs(self) -> tuple[float, ...]:
        """Cost J of each counterfactual."""
        return tuple(step.cost for step in self._chosen)

    @property
    def affinities(self) -> tuple[float, ...]:
        """How much each looks like the reference (1: an inlier); empty where it was not recorded."""
        told = [step.note.affinity for step in self._chosen]
        return () if None in told else tuple(float(a) for a in told if a is not None)

    @property
    def is_reference_row(self) -> bool:
        """Is the best counterfactual a row of `data` as it is, found there and not made by the search?"""
        return bool(self._chosen and self._chosen[0].note.reference)

    @property
    def least_usual(self) -> tuple[str, ...]:
        """Of each, the pair of values that is rarest in the data, in words; empty where none is rare."""
        return self.ending.least_usual

    @property
    def steadiness(self) -> tuple[float, ...]:
        """The surrogate's P(hit) close to each; with a margin, or where the model gives no scores."""
        return self.ending.steadiness

    @property
    def certainty(self) -> tuple[float, ...]:
        """With noise, the probability that each is a hit, after its votes (`ending.votes`); empty without."""
        return tuple(certainty for *_, certainty in self.ending.votes)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The model's own probability of what was wanted, of each counterfactual; empty where it gives no scores."""
        told = [self.plan.target.probability(step.scores, self.steps[0].label) for step in self._chosen]
        return tuple(p for p in told if p is not None)

    @property
    def counterfactual(self) -> pd.Series[Any]:
        """The best counterfactual.

        Raises:
            NoCounterfactual: there is none; the message says what to relax.
        """
        if not self.ending.counterfactuals:
            raise NoCounterfactual(self._advice() if self.error else f"{self._advice()} ({self._price()})")
        return self.counterfactuals.iloc[0]

    def alone(self, i: int) -> Explanation:
        """The explanation as if counterfactual number i were its only one."""
        by_counterfactual = ("counterfactuals", "steadiness", "least_usual", "needed", "votes")
        mine = {name: getattr(self.ending, name)[i : i + 1] for name in by_counterfactual}
        return replace(self, ending=replace(self.ending, **mine))

    def _price(self) -> str:
        known = f", {self.n_reused} known before" if self.n_reused else ""
        return f"{self.n_queries} {'query' if self.n_queries == 1 else 'queries'}{known}"

    @property
    def advice(self) -> str:
        """What to do about it, where no counterfactual was found."""
        return advice(self.outcome, has_outcomes=self.plan.outcomes)

    def _advice(self) -> str:
        if self.error is not None:
            return self.error
        answers = dict.fromkeys(self._called(step.label) for step in self.steps)
        met = any(self.plan.target.is_hit(step.label, self.steps[0].label) for step in self.steps)
        never = "" if met or self.target is None else f", never {self.plan.target.wish or repr(self.target)}"
        return f"{self.advice} The model answered [{listed(answers)}]{never}."

    @cached_property
    def changes(self) -> pd.DataFrame:
        """What the best counterfactual changes: feature, before, after, step in standard deviations, and `needed`.

        "needed" says how that was checked (see `acex.search.reverts`), or "not checked".
        """
        if not self.ending.counterfactuals:
            return pd.DataFrame(columns=["feature", "before", "after", "step", "needed"])
        return self.changes_of(0)

    def changes_of(self, i: int) -> pd.DataFrame:
        """What counterfactual number i changes, in the form of `changes`."""
        rows = self.asked.iloc[[0, self.ending.counterfactuals[i]]]
        x, best = self.space.encode(rows)
        steps = self.scale.differences(best[None], x)[0]
        changed = np.flatnonzero(best != x)
        changed = changed[np.argsort(-np.abs(steps[changed]), kind="stable")]
        columns = [rows[c].tolist() for c in rows.columns]
        marks = self.ending.needed[i] if self.ending.needed else {}
        return pd.DataFrame(
            {
                "feature": [self.space.names[j] for j in changed],
                # As objects each value stays as its own column holds it.
                "before": pd.Series([columns[j][0] for j in changed], dtype=object),
                "after": pd.Series([columns[j][1] for j in changed], dtype=object),
                "step": steps[changed],
                "needed": [marks.get(self.space.names[j], "not checked") for j in changed],
            }
        )

    # -- for people ------------------------------------------------------------------------------

    def measures(self) -> dict[str, float]:
        """Queries, validity, cost, distances, number of changes and affinity of the best counterfactual."""
        from acex.show.measures import measures

        return measures(self)

    def plot(self, kind: Kind | None = None) -> Figure:
        """A picture of the changes and of the cost against queries, or one of the kind that is named.

        Args:
            kind: "changes", "counterfactuals" (all of them side by side), "trace" (cost against queries),
                "boundary" (where the surrogate sees the decision change) or "numbers" (the model's, against queries).
        """
        from acex.show.plots import draw_explanation, draw_kind

        return draw_explanation(self) if kind is None else draw_kind(self, kind)

    def sentences(self, templates: Templates | None = None) -> list[str]:
        """A sentence for each change, for letters; `acex.sentences.Templates` are for other words or languages."""
        from acex.show.sentences import ENGLISH, sentences

        return sentences(self, ENGLISH if templates is None else templates)

    def summary(self) -> str:
        """One sentence: what happened and what it cost; another one for each warning."""
        return " ".join([self._result(), *(f"Warning: {warning}" for warning in self.warnings)])

    def _result(self) -> str:
        if self.outcome == "found":
            sure = f"; {self.ending.sureness()}" if self.ending.votes else ""
            return (
                f"{' -> '.join(self.labels_in_words)} by changing {len(self.changes)} of "
                f"{len(self.space)} features (cost {self.costs[0]:.3g}, {self._price()}{sure})."
            )
        if self.outcome == "failed":
            return f"failed: {self.error} ({self._price()})"
        return f"{self.outcome}: still {self.labels_in_words[0]} ({self._price()}). {self._advice()}"

    def __str__(self) -> str:
        from acex.show.text import drawn

        if self.outcome != "found":
            return printable(self.summary())
        tables = [drawn(self.changes_in_words(i)) for i in range(len(self.counterfactuals))]
        or_else = [f"or (cost {cost:.3g}):\n{table}" for cost, table in zip(self.costs[1:], tables[1:], strict=True)]
        return "\n".join([printable(self.summary()), tables[0], *or_else])

    __repr__ = __str__

    def changes_in_words(self, i: int = 0) -> list[tuple[str, str, str, str, str]]:
        """For each change of counterfactual number i: feature, before, after, step and `needed`, as people write them.

        A category and a gap have no standard deviations: the step is "change"."""
        out = []
        for name, before, after, step, needed in self.changes_of(i).itertuples(index=False):
            feature = self.space.feature(name)
            far = f"{step:+.2f} sd" if abs(step) >= 0.01 else f"{step:+.1g} sd"
            leaps = feature.way(step, before, after) == "other"
            out.append((name, *feature.texts(before, after), "change" if leaps else far, needed))
        return out

    def _repr_html_(self) -> str:
        from acex.show.report import explanation_html

        return explanation_html(self)

    def to_html(self, path: str | Path | None = None, *, profile: str = "report", **options: Any) -> str:
        """The explanation as one HTML page that needs nothing else, also written to `path` if given.

        Args:
            profile: "report", with a certificate, or "notice", for the person concerned.
            options: `redact` and `sign` as in `to_json`; of a notice `fields` and `template`: see `acex.show.pages`.
        """
        from acex.show.pages import page

        text = page(self, profile, **options)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    # -- for machines ----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The explanation in plain values, as JSON holds them."""
        queries = records(self.queries)
        told = {
            "format": FORMAT,
            "outcome": self.outcome,
            "stopped_by": self.stopped_by,
            "error": self.error,
            "label_before": self.label_before,
            "label_after": self.label_after,
            "target": self.target,
            "n_queries": self.n_queries,
            "n_reused": self.n_reused,
            "factual": records(self.asked.iloc[:1] if self.steps else self.factual.to_frame().T)[0],
            "counterfactuals": records(self.counterfactuals),
            "positions": self.ending.counterfactuals,
            "changes": records(self.changes),
            "costs": self.costs,
            "affinities": self.affinities,
            "steadiness": self.steadiness,
            "least_usual": self.least_usual,
            "needed": self.ending.needed,
            "votes": self.ending.votes,
            "closer": self.ending.closer,
            "warnings": self.warnings,
            "queries": [
                q | {"label": as_json(s.label), "scores": s.scores} | s.circumstances
                for q, s in zip(queries, self.steps, strict=True)
            ],
            "asked": [list(row.values()) for row in records(self.asked)],
            "settings": self.settings,
            "space": self.space.to_dict(),
            "deviations": self.scale.deviations.tolist(),
        }
        # Through text: numbers of numpy's, labels of other types and tuples become what JSON knows.
        plain: dict[str, Any] = json.loads(json.dumps(told, allow_nan=False, default=as_json))
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
            left_out: a file for what was left out, with the salts, for who is to keep it.
            sign: a file with an Ed25519 private key (PEM) that signs it.
        """
        document, private = redacted(self.to_dict(), redact)
        return saved(certified(document, sign), path, private, left_out)

    @classmethod
    def from_json(cls, source: str | Path) -> Explanation:
        """The explanation back from JSON text or from a file."""
        text = str(source)
        if not text.lstrip().startswith("{"):
            text = Path(source).read_text(encoding="utf-8")
        data = json.loads(text)
        if data.get("format") != FORMAT or "rows" in data:
            raise ValueError(f"expected an explanation of format {FORMAT}, got {data.get('format')!r}.")
        return _from_dict(data)


def _from_dict(data: Mapping[str, Any]) -> Explanation:
    """The explanation that `to_json` wrote, in this version or an earlier one."""
    space = Space.from_dict(data["space"])
    plan = Plan.from_record(data["settings"], data["factual"], space, data["deviations"])
    asked = [dict(zip(space.names, row, strict=True)) for row in data["asked"]]
    # Version 0.1.0 wrote the counterfactuals, but not where they stand among the rows asked.
    positions = data.get("positions") or [asked.index(row) for row in data["counterfactuals"]]
    affinities = dict(zip(positions, data["affinities"] or [None] * len(positions), strict=True))
    steps = steps_written(asked, data["queries"], affinities)
    ending = Ending.from_dict({**data, "counterfactuals": positions, "warnings": ()})
    about = {name: value for name, value in data["settings"].items() if name not in plan.settings}
    told = Explanation.of(plan, steps, ending, warnings=data.get("warnings", ()), about=about)
    return replace(told, n_queries=data["n_queries"], n_reused=data["n_reused"])  # 0.1.0 did not say for which rows
