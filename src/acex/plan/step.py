"""A queried row (`Step`), and how an explanation ended (`Ending`), as values.

Progress bars, callbacks, the ledger, reports and live pages all read steps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import takewhile
from math import inf
from typing import Any, Literal, TypeAlias

from acex.plan.target import Scores, Target
from acex.values import Label, Remark, counted

Outcome: TypeAlias = Literal[
    "found", "already_target", "budget_spent", "time_spent", "unlikely", "exhausted", "failed", "unfinished"
]
StoppedBy: TypeAlias = Literal["budget", "time", "settled", "exhausted", "unfinished"]
NOTE_FIELDS_BEFORE_0_3 = {"hope": "max_p_hit", "chance": "p_hit"}  # names in ledgers of 0.1 and 0.2
MOST_SURE = 0.999  # largest probability displayed


@dataclass(frozen=True)
class Note:
    """What is known about a row before it is asked; the ledger stores it with the query.

    Args:
        first: position of the first row of its round; rows of a round are asked together.
        cost: J of the row.
        counts: whether the row is a counterfactual if it is a hit.
        affinity: similarity to the reference (1: an inlier); None if not recorded.
        round, penalty, max_p_hit, p_hit: what the strategy needs to continue from here (see `search.problem.Query`).
        reference: whether it is an unchanged row of the reference; None if not recorded.
    """

    first: int
    cost: float
    counts: bool
    affinity: float | None = None
    round: int = 0
    penalty: float = 0.0
    max_p_hit: float = 1.0
    reference: bool | None = None
    p_hit: float = 0.5

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, note: Mapping[str, Any]) -> Note:
        """The note that `to_dict` wrote, in this version or an earlier one."""
        values = {NOTE_FIELDS_BEFORE_0_3.get(name, name): value for name, value in note.items()}
        known = [field.name for field in fields(cls)]
        return cls(**{name: values[name] for name in known if name in values})


@dataclass(frozen=True)
class Step:
    """A row that was asked, and the result.

    Attributes:
        position: its position among the rows of its explanation; 0 is the factual.
        row: its values by feature, as the model saw them.
        purpose: why it was asked, in a word.
        label: the model's answer. hit: whether the answer is what the target wants; always False for the factual.
        cost: J of the row. best: cost of the best counterfactual so far; infinite before the first.
        paid: how often it was paid for; 0 if the answer was known.
        at: when the answer was recorded (ISO 8601, UTC); None if unknown.
        seen: number of the newest answer in the ledger that could influence the query.
        note: what was known about it before.
        scores: the model's probability of each label, if it gives scores.
    """

    position: int
    row: Mapping[str, Any]
    purpose: str
    label: Label
    hit: bool
    best: float
    paid: int
    at: str | None
    seen: int
    note: Note
    scores: Scores | None = None

    @property
    def cost(self) -> float:
        """J of the row."""
        return self.note.cost

    @property
    def is_counterfactual(self) -> bool:
        """Whether it is a hit that is plausible and respects every constraint."""
        return self.hit and self.note.counts


def all_judged(steps: Iterable[Step], target: Target) -> list[Step]:
    """Steps, the factual's first, with the fields that follow from labels and order: `hit` and `best`."""
    done: list[Step] = []
    for step in steps:
        done.append(judged(step, done, target))
    return done


def judged(step: Step, before: Sequence[Step], target: Target) -> Step:
    """A step after these, with the fields that follow from its label and position: `hit` and `best`."""
    if step.purpose == "factual" or not before:
        return replace(step, hit=False, best=inf)
    step = replace(step, hit=target.is_hit(step.label, factual_label(before, target)))
    if step.purpose == "vote":
        return replace(step, best=min((s.cost for s in leading([*before, step])), default=inf))
    best = min(before[-1].best, step.cost) if step.is_counterfactual else before[-1].best
    return replace(step, best=best)


def steps_written(
    rows: Sequence[Mapping[str, Any]], queries: Sequence[Mapping[str, Any]], affinities: Mapping[int, float]
) -> list[Step]:
    """The steps in the JSON form of an explanation."""
    steps = []
    for i, (row, query) in enumerate(zip(rows, queries, strict=True)):
        note = Note(i, query["cost"], query["counts"], affinities.get(i), reference=query["reference"])
        best = inf if query["best"] is None else query["best"]
        answer = {name: query[name] for name in ("purpose", "label", "hit", "paid", "at", "scores")}
        steps.append(Step(position=i, row=row, best=best, seen=0, note=note, **answer))
    return steps


def factual_label(steps: Sequence[Step], target: Target) -> Label:
    """The factual's label: its first answer, or the majority if it was asked several times."""
    labels = [step.label for step in takewhile(lambda step: step.purpose == "factual", steps)]
    if len(labels) < 2:
        return steps[0].label
    most = _by_meaning(labels, target)[0][0]
    return Counter(label for label in labels if _meaning(label, target) == most).most_common(1)[0][0]


def factual_lead(steps: Sequence[Step], target: Target) -> int:
    """How many more answers the factual's label has than any label with a different meaning for the target."""
    counts = _by_meaning([step.label for step in steps if step.purpose == "factual"], target)
    return counts[0][1] - (counts[1][1] if len(counts) > 1 else 0)


def _by_meaning(labels: Sequence[Label], target: Target) -> list[tuple[Any, int]]:
    return Counter(_meaning(label, target) for label in labels).most_common()


def _meaning(label: Label, target: Target) -> Any:
    """A value that is equal for labels of the factual with the same meaning for the target."""
    return target.is_met(label), target.same_hits(label)


def leading(steps: Sequence[Step]) -> list[Step]:
    """The first hit of each row that counts and whose answers are mostly hits."""
    answers = defaultdict(list)
    for step in steps:
        answers[repr(list(step.row.values()))].append(step)
    ahead = (row for row in answers.values() if 2 * sum(step.hit for step in row) > len(row))
    return [next(step for step in row if step.hit) for row in ahead if row[0].note.counts]


@dataclass(frozen=True)
class Ending:
    """How an explanation ended, or its present state.

    Attributes:
        counterfactuals: positions of the steps that are the result, best first.
        robustness: the surrogate's P(hit) close to each; only with a margin, or without scores.
        needed: for each, its changes by feature: "needed" and how that was checked, or "not checked".
        votes: with noise, for each (answers for it, all its answers, probability that it is a hit).
        improvement_odds: probabilities that a counterfactual at least 10%, 25%, 50% cheaper exists; empty if unknown.
        kinds: "realistic" or "short" for each counterfactual if both are offered; otherwise empty.
        excluded: if nothing was found, how many candidates may be asked without one of the options; see `obstacles`.
        remarks: what a reader should know.
        error: what went wrong, if the explanation failed.
    """

    outcome: Outcome
    stopped_by: StoppedBy = "budget"
    counterfactuals: tuple[int, ...] = ()
    robustness: tuple[float, ...] = ()
    remarks: tuple[Remark, ...] = ()
    error: str | None = None
    needed: tuple[Mapping[str, str], ...] = ()
    votes: tuple[tuple[int, int, float], ...] = ()
    improvement_odds: tuple[float, ...] = ()
    kinds: tuple[str, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def so_far(cls, steps: Sequence[Step], target: Target) -> Ending:
        """The ending that follows from these steps alone: the result is the cheapest counterfactual."""
        best = min(leading(steps), key=lambda s: s.cost, default=None)
        if best is not None:
            return cls("found", "unfinished", (best.position,))
        met = bool(steps) and target.is_met(factual_label(steps, target))
        return cls("already_target", "settled") if met else cls("unfinished", "unfinished")

    def certainty_text(self) -> str:
        """The certainty that the best counterfactual is a hit, as text; empty without noise."""
        if not self.votes:
            return ""
        n_for, n_all, certainty = self.votes[0]
        return f"a hit with probability {min(certainty, MOST_SURE):.3g} after {n_for} of {counted(n_all, 'vote')}"

    def to_dict(self) -> dict[str, Any]:
        """The ending as JSON-compatible values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Ending:
        """The ending that `to_dict` wrote, in this version or an earlier one."""
        written = {FORMER_NAMES.get(name, name): value for name, value in written.items()}
        known = {f.name: written[f.name] for f in fields(cls) if f.name in written}
        for name in ("counterfactuals", "robustness", "needed", "improvement_odds", "kinds"):
            known[name] = tuple(known.get(name, ()))
        known["votes"] = tuple(tuple(votes) for votes in known.get("votes", ()))
        known["remarks"] = tuple(Remark.of(remark) for remark in known.get("remarks", ()))
        return cls(**known)


FORMER_NAMES = {  # in versions 0.1 and 0.2
    "steadiness": "robustness",
    "warnings": "remarks",
    "closer": "improvement_odds",
}
