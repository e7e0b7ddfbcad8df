"""The state of searches that pages follow: the queries so far, what was found, and whether the search is running.

A search is identified by its plan. A search that is not in memory is read from the ledger, so that a page can continue
to follow it after a crash. Messages of jobs are received in other threads; requests read the current state.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import Lock
from typing import Any

import pandas as pd

import acex
from acex.ledger import without_vote
from acex.options import search_arguments
from acex.plan.target import Measured
from acex.studio.request_parsing import broken, budget_of, options_json, recorded_options, wanted
from acex.studio.serializers import explanation_json, page_text, step_json, tried
from acex.studio.worker_pool import Message, SubmittedJob, WorkerPool, search_row
from acex.studio.workspace import Workspace

MAX_IN_MEMORY = 200  # at this many searches, those not running are dropped; the ledger has all of them
MAX_ANSWERED = 20  # maximum number of explanations of one row whose answers are shown
POLL = 0.2  # seconds between checks for news of a search that a page follows
CANNOT_RESUME = (
    "This explanation was made with settings that the studio does not have, or with other data. Pick its row and start "
    "a new search: answers already paid for are reused."
)


class Tracked:
    """A job that pages follow; its state is waiting, running, stopping, stopped, ended, failed or interrupted."""

    def __init__(self, state: str) -> None:
        self.state, self.error = state, ""
        self.job: SubmittedJob | None = None
        self._lock = Lock()

    @property
    def is_live(self) -> bool:
        """Whether the job is waiting, running or stopping."""
        return self.state in ("waiting", "running", "stopping")

    def stop(self) -> None:
        """Stop after the current query."""
        with self._lock:
            if not self.is_live or self.job is None:
                return
            self.state = "stopping"
        self.job.stop()

    def receive(self, message: Message) -> None:
        """Update the state from a message of the job."""
        name, data = message
        with self._lock:
            if name in ("step", "row") and self.state == "waiting":
                self.state = "running"
            elif name in ("ended", "stopped", "failed"):
                self.state = name
            if name == "failed":
                self.error = page_text(data)


class TrackedSearch(Tracked):
    """One search: its row and options, its steps, and its state."""

    def __init__(
        self, workspace: Workspace, identity: str, factual: Mapping[str, Any], options: dict[str, Any]
    ) -> None:
        super().__init__("interrupted")
        self.workspace, self.identity, self.factual, self.options = workspace, identity, factual, options
        self.steps: list[dict[str, Any]] = []
        self.explanation: dict[str, Any] | None = None
        self.paid, self.budget = 0, budget_of(options)
        self._repeats = False
        self.is_extended = False  # continued beyond its original budget, or after it had settled

    @cached_property
    def position(self) -> int | None:
        """The position of the row that is explained; None if it was typed in."""
        return self.workspace.position_of(self.factual)

    def has_ended(self, budget: int) -> bool:
        """Whether the search has ended and would not send more queries with this budget."""
        ended_by = (self.explanation or {}).get("stopped_by")
        return self.state == "ended" and (ended_by in ("settled", "exhausted") or self.budget >= budget)

    def receive(self, message: Message) -> None:
        name, data = message
        if name == "step":
            # A search that is continued replays its earlier steps first, which pages already have.
            self._repeats = data["position"] < len(self.steps)
            if not self._repeats:
                self.steps = [*self.steps, data]
        elif name == "paid":
            self.paid = data
        elif name == "ended" or (name in ("explanation", "stopped") and not self._repeats):
            self.explanation = data or self.explanation
        super().receive(message)

    def snapshot(self) -> dict[str, Any]:
        """The current state, without the steps."""
        return {
            "id": self.identity,
            "state": self.state,
            "error": self.error,
            "budget": self.budget,
            "extended": self.is_extended,
            "paid": self.paid,
            "explanation": self.explanation,
            "n_steps": len(self.steps),
        }

    async def events(self, after: int) -> AsyncIterator[str]:
        """Server-sent events: the steps after this one and each change of state, until the search ends."""
        sent, shown = after + 1, None
        while True:
            is_live, steps, now = self.is_live, self.steps, self.snapshot()
            sent = min(sent, len(steps))
            for step in steps[sent:]:
                yield f"event: step\nid: {step['position']}\ndata: {json.dumps(step)}\n\n"
            sent = len(steps)
            if now != shown:
                shown = now
                yield f"event: state\ndata: {json.dumps(now)}\n\n"
            if not is_live:
                return
            await asyncio.sleep(POLL)


class Searches:
    """All searches of a studio."""

    def __init__(self, workspace: Workspace, pool: WorkerPool) -> None:
        self._workspace, self._pool = workspace, pool
        self._known: dict[str, TrackedSearch] = {}
        self._lock = Lock()

    def plan(self, row: pd.DataFrame, options: Mapping[str, Any]) -> acex.Plan:
        """The plan of a search; nothing is sent to the model."""
        return self._workspace.explainer.search(row, **search_arguments(options)).plan

    def begin(self, row: pd.DataFrame, options: dict[str, Any]) -> TrackedSearch:
        """Start the search for this row; if a search with the same plan is running, return that one."""
        plan = self.plan(row, options)
        try:
            search = self.get(plan.identity)
        except LookupError:
            search = TrackedSearch(self._workspace, plan.identity, plan.factual, options)
        with self._lock:
            search = self._keep(search)
            if not search.is_live:
                search.options = options
            return self._run(search, row, None)

    def resume(self, search: TrackedSearch, budget: int | None = None) -> TrackedSearch:
        """Continue a search; with a new total budget, even if the search has settled."""
        row = self._workspace.frame(search.factual)
        if self.plan(row, search.options).identity != search.identity:
            raise ValueError(CANNOT_RESUME)
        with self._lock:
            return self._run(search, row, budget)

    def _run(self, search: TrackedSearch, row: pd.DataFrame, extended_to: int | None) -> TrackedSearch:
        if not search.is_live:
            search.budget, search.is_extended = extended_to or budget_of(search.options), extended_to is not None
            search.state, search.error = "waiting", ""
            all_names, position = self._workspace.names, search.position
            names = [] if all_names is None or position is None else [all_names[position]]
            arguments = search_arguments(search.options)
            search.job = self._pool.submit(search.receive, search_row, row, arguments, names, extended_to)
        return search

    def get(self, identity: str) -> TrackedSearch:
        """The search with this identity, from memory or the ledger.

        Raises:
            LookupError: there is no such search.
        """
        if (known := self._known.get(identity)) is not None:
            return known
        search = self._read(identity)
        with self._lock:
            return self._keep(search)

    def _keep(self, search: TrackedSearch) -> TrackedSearch:
        """Keep a search in memory, unless one with this identity is there already; return the one in memory."""
        if len(self._known) >= MAX_IN_MEMORY:
            self._known = {identity: other for identity, other in self._known.items() if other.is_live}
        return self._known.setdefault(search.identity, search)

    def _read(self, identity: str) -> TrackedSearch:
        """A search as recorded in the ledger."""
        workspace, ledger = self._workspace, self._workspace.ledger
        try:
            record, asks = ledger.explanation(identity), ledger.asks(identity)
        except ValueError:
            raise LookupError("There is no such search.") from None
        if record.model != workspace.explainer.model_id or not asks:
            raise LookupError("There is no such search of this model.")
        space = acex.Space.from_dict(record.space) if record.space else workspace.space
        factual = dict(zip(space.names, json.loads(without_vote(asks[0].row)), strict=True))
        search = TrackedSearch(workspace, identity, factual, recorded_options(record.settings, space, workspace))
        search.paid = sum(ask.paid for ask in asks)
        with suppress(ValueError):  # not even the row itself has an answer
            e = acex.load_explanation(ledger, identity)
            # The plan has the latest budget, but the identity depends on the original one.
            began = {**e.plan.settings, "budget": record.settings.get("budget", e.plan.budget)}
            search.options, search.budget = recorded_options(began, space, workspace), e.plan.budget
            search.steps = [step_json(step, e.plan) for step in e.steps]
            search.explanation = explanation_json(e)
            if record.result is not None and record.result["asked"] == len(asks) == len(e.steps):
                search.state = "ended"
        return search

    def answers(self, rows: pd.DataFrame, options: Mapping[str, Any], identities: Sequence[str]) -> list[Any]:
        """Known counterfactuals of a row, oldest first, and which restrictions of these options each one violates.

        Args:
            rows: the row, followed by what-if versions of it; those with a cached answer that are hits count.
            identities: explanations of the row, newest first.
        """
        workspace, row = self._workspace, rows.iloc[[0]]
        session = workspace.explainer.search(row, **search_arguments(options))
        explanations, target = list[tuple[str, acex.Explanation]](), session.plan.target
        for identity in reversed(identities[:MAX_ANSWERED]):
            with suppress(ValueError):  # no answer recorded yet
                explanations.append((identity, acex.load_explanation(workspace.ledger, identity)))
        before, *after = workspace.known(rows)
        for i, answer in enumerate(after, 1):
            if before is not None and answer is not None:
                explanations.append(("", tried(session, rows.iloc[[0, i]], (before, answer))))
        out = []
        for identity, e in explanations:
            own = options_json(recorded_options(e.plan.settings, e.plan.space, workspace), workspace)
            for i, found in enumerate(explanation_json(e)["answers"]):
                breaks = broken(session.plan, options, e.counterfactuals.iloc[[i]], workspace)
                label, is_same = e.steps[found["position"]].label, e.plan.target.described == target.described
                if not (is_same or (not isinstance(target, Measured) and target.is_hit(label, e.steps[0].label))):
                    breaks.append(f"It was found for {' or '.join(wanted(e.plan.settings, workspace).words)}.")
                out.append({"id": identity, "options": own, "answer": found, "breaks": breaks})
        return out
