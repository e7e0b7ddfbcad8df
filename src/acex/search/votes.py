"""Models whose answers vary: P(hit) of a point from all its answers, and when to ask it again.

    epsilon   share of answers that are flipped, independently of each other
    n, m      answers for and against a point; its *lead* is n - m
    p         P(hit) when the point was first asked (`Query.p_hit`)

By Bayes' rule the odds of a hit are p / (1 - p) ((1 - epsilon) / epsilon)^lead. The Gaussian process is fitted to these
probabilities, and points with a positive lead count as hits. A point is *confirmed* when its lead is at least `confirm`
and its P(hit) at least `SURE`. Until then a *vote* asks the point again:

1. at once, if the point that would be returned is doubtful, because the search for cheaper points depends on it;
2. at the end, until it is confirmed or dropped. The queries that this takes are reserved in the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import expit, logit

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.search.problem import History, Problem, Query, Stop, key
from acex.search.strategy import Strategy, best_counterfactuals, ranked_counterfactuals
from acex.values import check_count, is_finite

Share: TypeAlias = float | Literal["auto"]

DOUBTFUL = 0.9  # a point of less than this P(hit) is asked again before it is used
SURE = 0.99  # least P(hit) of a confirmed point
# P(hit) before a point is asked is clipped to this range, because it was estimated from unreliable answers too.
PRIOR_RANGE = (0.01, 0.5)
PRIOR_SHARE, PRIOR_WEIGHT = 0.08, 8.0  # "auto": the share assumed at first, and how many answers that counts for
SHARES = (0.005, 0.35)  # range of the estimate for "auto"


@dataclass(frozen=True)
class Noise:
    """How often a model's answers are flipped, and when a counterfactual is confirmed.

    Args:
        share: share of answers that are flipped; "auto" estimates it from points that were asked more than once.
        confirm: how many more answers for than against it a returned point needs.
    """

    share: Share
    confirm: int = 3

    @classmethod
    def of(cls, share: Share, confirm: int) -> Noise | None:
        """The noise given by `share` and `confirm`; None for a model without noise.

        Raises:
            ValueError: one of them is invalid.
        """
        if not (share == "auto" or (is_finite(share) and 0 <= share < 0.5)):
            raise ValueError(f'noise: expected a share of answers, at least 0 and below 0.5, or "auto", got {share!r}.')
        check_count("confirm", confirm)
        if share == "auto":
            return cls("auto", int(confirm))
        return cls(float(share), int(confirm)) if share else None


class Tally:
    """All answers of a search, counted by point: u different points, the factual first."""

    def __init__(self, noise: Noise, history: History) -> None:
        self.noise, self._all = noise, history  # contains every vote; `history` has each point once
        positions: dict[bytes, list[int]] = {}
        for i, query in enumerate(history.queries):
            positions.setdefault(key(query.point), []).append(i)
        self._positions = list(positions.values())
        answers = [history.is_hit[row] for row in self._positions]
        self.n_asked = np.array([len(row) for row in answers])  # (u,)
        self.n_for = np.array([int(row.sum()) for row in answers])  # (u,)

    @property
    def lead(self) -> IntArray:
        """Answers for minus answers against, (u,)."""
        lead: IntArray = 2 * self.n_for - self.n_asked
        return lead

    @cached_property
    def share(self) -> float:
        """Share of answers that are flipped: as given, or estimated from points with several answers."""
        if self.noise.share != "auto":
            return self.noise.share
        several = self.n_asked > 1
        flipped = np.minimum(self.n_for, self.n_asked - self.n_for)[several].sum()
        estimate = (PRIOR_SHARE * PRIOR_WEIGHT + flipped) / (PRIOR_WEIGHT + self.n_asked[several].sum())
        return float(np.clip(estimate, *SHARES))

    @cached_property
    def certainty(self) -> FloatArray:
        """P(hit) of each point, (u,)."""
        certainty: FloatArray = expit(self._prior_odds - self.lead * logit(self.share))
        certainty[0] = 0.0  # the votes on the factual came before the search
        return certainty

    @cached_property
    def confirmed(self) -> BoolArray:
        """Which points are confirmed hits, (u,)."""
        return np.asarray(self.lead >= self._required_lead)

    @cached_property
    def _prior_odds(self) -> FloatArray:
        """Log odds of a hit before a point was asked, (u,)."""
        p_hit = [self._all.queries[row[0]].p_hit for row in self._positions]
        return np.asarray(logit(np.clip(p_hit, *PRIOR_RANGE)))

    @cached_property
    def _required_lead(self) -> FloatArray:
        """The lead that confirms a point, (u,): `confirm`, or more if that does not reach `SURE`."""
        return np.maximum(self.noise.confirm, np.ceil((self._prior_odds - logit(SURE)) / logit(self.share)))

    @cached_property
    def history(self) -> History:
        """Each point once, with its P(hit); a hit is a point with a positive lead. The strategy reads this."""
        return self._with_hits(self.lead > 0)

    def _with_hits(self, hits: BoolArray) -> History:
        queries = tuple(self._all.queries[row[0]] for row in self._positions)
        certainty = tuple(self.certainty.tolist())
        hits = hits & (np.arange(len(hits)) > 0)
        return History(queries, tuple(hits.tolist()), (), self._all.known, certainty, self.share)

    def position(self, i: int) -> int:
        """Position of the first answer to point i that agrees with most of its answers."""
        majority = bool(self.lead[i] > 0)
        return next((k for k in self._positions[i] if self._all.hits[k] == majority), self._positions[i][0])

    def counterfactuals(self, problem: Problem, count: int, margin: float | None) -> IntArray:
        """The counterfactuals, best first: confirmed points, or without any the likeliest hit that is not doubtful."""
        confirmed = best_counterfactuals(problem, self._with_hits(self.confirmed), count, margin)
        if len(confirmed):
            return confirmed
        hits = ranked_counterfactuals(problem, self._with_hits((self.lead > 0) & (self.certainty >= DOUBTFUL)), margin)
        return hits[np.argsort(-self.certainty[hits], kind="stable")][:1]

    def next_query(self, problem: Problem, strategy: Strategy, *, seed: int, count: int, budget: float) -> Query | Stop:
        """The next query: a vote, or the query of the strategy."""
        best = best_counterfactuals(problem, self.history, count, strategy.margin)
        best = best[~self.confirmed[best]]
        doubtful = best[self.certainty[best] < DOUBTFUL]
        if len(doubtful):
            return self._vote(int(doubtful[0]))
        n_votes, reserved = len(self._all.queries) - len(self._positions), self._votes_needed(best)
        next_: Query | Stop = Stop("budget")  # the rest of it is kept for votes
        if budget - len(self._all.queries) > reserved:
            left = budget - n_votes - reserved
            next_ = strategy.next_query(problem, self.history, seed=seed, count=count, budget=left)
        return next_ if isinstance(next_, Query) or not len(best) else self._vote(int(best[0]))

    def _votes_needed(self, rows: IntArray) -> int:
        """Expected number of votes that confirm these points: the lead of a hit grows by 1 - 2 epsilon per vote."""
        missing = (self._required_lead - self.lead)[rows].sum()
        return int(np.ceil(missing / (1 - 2 * self.share)))

    def _vote(self, i: int) -> Query:
        return Query(
            self._all.queries[self._positions[i][0]].point,
            "vote",
            self._all.queries[-1].round,
            max_p_hit=float(self.certainty[i]),
        )
