"""Answers that contradict each other: how sure a row is a hit, and when it is asked again.

    epsilon   share of answers that are flipped, each independently of all others
    n, m      answers for and against a row; its *lead* is n - m
    p         P(hit) as it was believed when the row was first asked (`Query.chance`)

By Bayes' rule the odds of a hit are p / (1 - p) ((1 - epsilon) / epsilon)^lead. The Gaussian process is fitted to these
probabilities, and rows with a positive lead count as hits. A row is *confirmed* when its lead is as large as was
wished and the rule makes it `SURE`. Where that is not so yet, a *vote* asks the row again:

1. at once, while the row that would be returned is doubtful: everything cheaper is looked for beside it;
2. last, until it is confirmed or dropped. As many queries of the budget as that takes are kept for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import expit, logit

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.search import answer
from acex.search.problem import History, Problem, Query, Stop, key
from acex.search.strategy import Strategy
from acex.values import is_count, is_finite

Share: TypeAlias = float | Literal["auto"]

DOUBTFUL = 0.9  # a row of less than this P(hit) is asked again before anything rests on it
SURE = 0.99  # what is confirmed has at least this P(hit)
TRUSTED = (
    0.01,
    0.5,
)  # no belief before a row is asked counts for more: it rests on such answers
BEGIN_SHARE, BEGIN_WEIGHT = 0.08, 8.0  # "auto": a share believed at first, and how many answers that is worth
SHARES = (0.005, 0.35)  # what "auto" takes for possible


@dataclass(frozen=True)
class Noise:
    """A model that contradicts itself.

    Args:
        share: of its answers that are flipped; "auto" learns it from rows that were asked more than once.
        confirm: how many more answers for than against a row has that is returned.
    """

    share: Share
    confirm: int = 3

    @classmethod
    def of(cls, share: Share, confirm: int) -> Noise | None:
        """What a caller said; None for a model without noise.

        Raises:
            ValueError: one of them is wrong.
        """
        if not (share == "auto" or (is_finite(share) and 0 <= share < 0.5)):
            raise ValueError(
                f'noise must be a share of answers from 0 to below 0.5, such as 0.05, or "auto", got {share!r}.'
            )
        if not is_count(confirm):
            raise ValueError(f"confirm must be a whole number of at least 1, got {confirm!r}.")
        if share == "auto":
            return cls("auto", int(confirm))
        return cls(float(share), int(confirm)) if share else None


class Tally:
    """All answers of a search, told row by row: u different rows, the factual first."""

    def __init__(self, noise: Noise, history: History) -> None:
        self.noise, self._told = noise, history
        places: dict[bytes, list[int]] = {}
        for i, query in enumerate(history.queries):
            places.setdefault(key(query.point), []).append(i)
        self._places = list(places.values())
        answers = [history.is_hit[row] for row in self._places]
        self.n_asked = np.array([len(row) for row in answers])  # (u,)
        self.n_for = np.array([int(row.sum()) for row in answers])  # (u,)

    @property
    def lead(self) -> IntArray:
        """How many more answers for than against, (u,)."""
        lead: IntArray = 2 * self.n_for - self.n_asked
        return lead

    @cached_property
    def share(self) -> float:
        """Of all answers, those that are flipped: as was told, or as rows with several answers suggest."""
        if self.noise.share != "auto":
            return self.noise.share
        several = self.n_asked > 1
        flipped = np.minimum(self.n_for, self.n_asked - self.n_for)[several].sum()
        estimate = (BEGIN_SHARE * BEGIN_WEIGHT + flipped) / (BEGIN_WEIGHT + self.n_asked[several].sum())
        return float(np.clip(estimate, *SHARES))

    @cached_property
    def certainty(self) -> FloatArray:
        """P(hit) of each row, (u,)."""
        certainty: FloatArray = expit(self._before - self.lead * logit(self.share))
        certainty[0] = 0.0  # the factual has been voted on before anything else
        return certainty

    @cached_property
    def confirmed(self) -> BoolArray:
        """Which rows are hits as surely as was wished, (u,)."""
        return np.asarray(self.lead >= self._enough)

    @cached_property
    def _before(self) -> FloatArray:
        """Log odds of a hit before a row was asked, (u,)."""
        chances = [self._told.queries[row[0]].chance for row in self._places]
        return np.asarray(logit(np.clip(chances, *TRUSTED)))

    @cached_property
    def _enough(self) -> FloatArray:
        """The lead with which a row is confirmed, (u,): as was wished, or more where that does not make it sure."""
        return np.maximum(self.noise.confirm, np.ceil((self._before - logit(SURE)) / logit(self.share)))

    @cached_property
    def history(self) -> History:
        """Every row once, those with a positive lead as hits, and how sure that is: what a strategy learns from."""
        return self._with_hits(self.lead > 0)

    def _with_hits(self, hits: BoolArray) -> History:
        queries = tuple(self._told.queries[row[0]] for row in self._places)
        certainty = tuple(self.certainty.tolist())
        hits = hits & (np.arange(len(hits)) > 0)
        return History(queries, tuple(hits.tolist()), (), self._told.known, certainty, self.share)

    def position(self, i: int) -> int:
        """Where row number i first got the answer that most of its answers are."""
        wanted = bool(self.lead[i] > 0)
        return next((place for place in self._places[i] if self._told.hits[place] == wanted), self._places[i][0])

    def chosen(self, problem: Problem, count: int, steady: float | None) -> IntArray:
        """The rows that are the answer, best first: confirmed ones, and while there is none the likeliest hit.

        One that is doubtful is no answer.
        """
        confirmed = answer.chosen(problem, self._with_hits(self.confirmed), count, steady)
        if len(confirmed):
            return confirmed
        hits = answer.ranked(problem, self._with_hits((self.lead > 0) & (self.certainty >= DOUBTFUL)), steady)
        return hits[np.argsort(-self.certainty[hits], kind="stable")][:1]

    def next_query(self, problem: Problem, strategy: Strategy, *, seed: int, count: int, budget: float) -> Query | Stop:
        """What to ask next: a row again, or what the strategy wants to know."""
        best = answer.chosen(problem, self.history, count, strategy.steady)
        best = best[~self.confirmed[best]]
        doubtful = best[self.certainty[best] < DOUBTFUL]
        if len(doubtful):
            return self._vote(int(doubtful[0]))
        n_votes, kept = len(self._told.queries) - len(self._places), self._wanted(best)
        next_: Query | Stop = Stop("settled")
        if budget - len(self._told.queries) > kept:
            left = budget - n_votes - kept
            next_ = strategy.next_query(problem, self.history, seed=seed, count=count, budget=left)
        return next_ if isinstance(next_, Query) or not len(best) else self._vote(int(best[0]))

    def _wanted(self, rows: IntArray) -> int:
        """How many votes it takes to confirm these rows, in expectation: a hit's lead grows by 1 - 2 epsilon a vote."""
        missing = (self._enough - self.lead)[rows].sum()
        return int(np.ceil(missing / (1 - 2 * self.share)))

    def _vote(self, i: int) -> Query:
        return Query(
            self._told.queries[self._places[i][0]].point,
            "vote",
            self._told.queries[-1].round,
            hope=float(self.certainty[i]),
        )
