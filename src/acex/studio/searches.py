"""Searches as pages follow them: what was asked so far, what came of it, and whether it goes on.

A search is known by the identity of its plan. What is not in memory is read from the ledger: after a crash, a page that
followed a search finds it where it was. All of this runs in the server's loop; work that takes a while does not.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeAlias

import pandas as pd
from starlette.concurrency import run_in_threadpool

import acex
from acex.studio.jobs import Message, OneRow
from acex.studio.request_parsing import as_said, frame_of, in_words, recorded_options, same_row
from acex.studio.serializers import explanation_told, step_told
from acex.studio.worker_pool import Crew, Task
from acex.studio.workspace import Desk

MOST_KEPT = 200  # searches in memory; the ledger has them all
BEAT = 15.0  # seconds after which a page that waits hears that the server lives
State: TypeAlias = Literal["waiting", "running", "stopping", "stopped", "ended", "failed", "interrupted"]
LIVE = ("waiting", "running", "stopping")
OTHER_WISHES = (
    "this explanation was made with settings that the studio does not know, or with other data; pick its row and "
    "search anew: answers that were paid for stay free."
)


class Event(NamedTuple):
    """What a page hears: a word for it, its number among the steps, and what it is."""

    name: str
    number: int | None
    data: Any


class Feed:
    """Something that pages follow while it changes."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def stir(self) -> None:
        """Wake everybody who waits for news."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def wait(self) -> bool:
        """Wait for news; False where there was none for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BEAT):
                return await self._news.wait()
        return False


class Search(Feed):
    """One search: its row and wishes, its steps, and where it stands."""

    def __init__(self, identity: str, row: pd.DataFrame, factual: Mapping[str, Any], options: dict[str, Any]) -> None:
        super().__init__()
        self.identity, self.row, self.factual, self.options = identity, row, factual, options
        self.steps: list[dict[str, Any]] = []
        self.told: dict[str, Any] | None = None
        self.state: State = "interrupted"
        self.paid = 0
        self.error = ""
        self.task: Task | None = None
        self._form: str | None = None

    def position(self, desk: Desk) -> int | None:
        """Which of the rows it is about; None for one that somebody typed in."""
        if self._form is None:  # worked out once: every page that looks at it asks for it
            [self._form] = desk.forms_of(self.row)
        return None if self._form is None else desk.places.get(self._form)

    @property
    def is_live(self) -> bool:
        """Is somebody working on it, or about to?"""
        return self.state in LIVE

    def take(self, message: Message) -> None:
        """What the process that works on it says."""
        name, data = message
        if name == "step":
            if self.state == "waiting":
                self.state = "running"
            del self.steps[data["position"] :]
            self.steps.append(data)
        elif name == "paid":
            self.paid = data
        elif name == "told":
            self.told = data
        elif name in ("ended", "stopped"):
            self.told, self.state = data or self.told, "ended" if name == "ended" else "stopped"
        elif name == "failed":
            self.error, self.state = data, "failed"
        self.stir()

    def snapshot(self, desk: Desk) -> dict[str, Any]:
        """Where it stands, without the steps."""
        return {
            "id": self.identity,
            "state": self.state,
            "error": self.error,
            "budget": self.options.get("budget", 60),
            "paid": self.paid,
            "money": desk.money(self.paid),
            "told": self.told,
            "n_steps": len(self.steps),
        }

    async def events(self, desk: Desk, after: int) -> AsyncIterator[Event | None]:
        """Everything from the step after this one on, until it ends; None from time to time, as a sign of life."""
        sent, shown = after + 1, None
        while True:
            sent = min(sent, len(self.steps))
            while sent < len(self.steps):
                yield Event("step", sent, self.steps[sent])
                sent += 1
            now = self.snapshot(desk)
            if now != shown:
                shown = now
                yield Event("state", None, now)
            elif not self.is_live:
                return
            elif not await self.wait():
                yield None


def in_loop(take: Callable[[Message], None]) -> Callable[[Message], None]:
    """The same for messages that come from another thread: they are taken in the loop that runs here."""
    loop = asyncio.get_running_loop()

    def note(message: Message) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens
            loop.call_soon_threadsafe(take, message)

    return note


class Searches:
    """All searches of a studio."""

    def __init__(self, desk: Desk, crew: Crew) -> None:
        self._desk, self._crew = desk, crew
        self._known: OrderedDict[str, Search] = OrderedDict()

    async def begin(self, row: pd.DataFrame, options: dict[str, Any]) -> Search:
        """Search for this row; one that runs already with the same wishes is the same search."""
        plan = await run_in_threadpool(self._desk.explainer.plan, row, **options)
        search = self._known.get(plan.identity)
        if search is None:
            search = self._keep(Search(plan.identity, row, plan.factual, options))
        return self._run(search, options)

    async def go_on(self, identity: str, budget: int) -> Search:
        """Go on with a search from where it is, with this budget for all of it.

        A budget that is divided among several answers makes another search, which finds what is known for free.
        """
        search = await self.get(identity)
        options = search.options | {"budget": budget}
        if options.get("count", 1) > 1:
            return await self.begin(search.row, options)
        plan = await run_in_threadpool(self._desk.explainer.plan, search.row, **options)
        if plan.identity != identity:
            raise ValueError(OTHER_WISHES)
        return self._run(search, options)

    def _run(self, search: Search, options: dict[str, Any]) -> Search:
        if search.is_live:
            return search
        search.options, search.state, search.error = options, "waiting", ""
        search.task = self._crew.do(OneRow(search.row, options), in_loop(search.take))
        search.stir()
        return search

    def stop(self, search: Search) -> None:
        """Stop after the answer that is awaited."""
        if search.is_live and search.task is not None:
            search.state = "stopping"
            search.task.stop()
            search.stir()

    def _keep(self, search: Search) -> Search:
        self._known[search.identity] = search
        for identity in [i for i, s in self._known.items() if not s.is_live][: max(len(self._known) - MOST_KEPT, 0)]:
            del self._known[identity]
        return search

    async def get(self, identity: str) -> Search:
        """The search of this identity, from memory or the ledger.

        Raises:
            LookupError: there is none.
        """
        if identity not in self._known:
            search = await run_in_threadpool(self._read, identity)
            self._known.setdefault(identity, search)
        return self._known[identity]

    def _read(self, identity: str) -> Search:
        """A search as the ledger has it."""
        ledger = self._desk.ledger
        try:
            record = ledger.explanation(identity)
        except ValueError:
            raise LookupError("There is no such search.") from None
        if record.model != self._desk.explainer.model_id:
            raise LookupError("There is no such search of this model.")
        options = recorded_options(record, self._desk)
        asks = ledger.asks(identity)
        try:
            e = acex.recorded(ledger, identity)
        except ValueError:  # not even its own row has an answer
            e = None
        if e is None:
            lines = ledger.tables.explanations(record.model)
            factual = json.loads(lines.loc[lines["id"] == identity, "factual"].iloc[0])
        else:
            factual = dict(e.steps[0].row)
        row = frame_of(factual, self._desk)
        search = Search(identity, row, factual, options)
        search.paid = sum(ask.paid for ask in asks)
        if e is not None:
            search.steps = [step_told(step, e.plan) for step in e.steps]
            search.told = explanation_told(e)
            search.options = options | {"budget": e.plan.budget}
            is_whole = len(e.steps) == len(asks) and record.result is not None
            if is_whole and record.result is not None and record.result["asked"] == len(asks):
                search.state = "ended"
        return search

    def beside(self, search: Search) -> list[dict[str, Any]]:
        """Explanations of the same row in the ledger that have found something."""
        lines = self._desk.ledger.tables.explanations(self._desk.explainer.model_id)
        asked = lines[lines["asked"] > 1]
        same = [i for i, row in zip(asked["id"], asked["factual"], strict=True) if same_row(row, search.factual)]
        return [told for told in map(self._told, same) if told is not None and told["told"]["answers"]]

    def _told(self, identity: str) -> dict[str, Any] | None:
        record = self._desk.ledger.explanation(identity)
        try:
            e = acex.recorded(self._desk.ledger, identity)
        except ValueError:
            return None
        options = recorded_options(record, self._desk)
        return {
            "id": identity,
            "told": explanation_told(e),
            "wishes": as_said(options, self._desk),
            "rules": in_words(options, e.plan.factual, self._desk),
            "paid": e.n_queries,
        }
