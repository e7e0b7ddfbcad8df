"""Searches as pages follow them: what was asked so far, what was found, and whether the search is still running.

A search is identified by its plan. What is not in memory is read from the ledger: after a crash, a page that followed a
search finds it where it was. All of this runs in the server's event loop; work that takes a while does not.
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
from acex.studio.request_parsing import as_frame, options_json, recorded_options, search_arguments
from acex.studio.serializers import explanation_json, step_json
from acex.studio.worker_pool import Message, SearchJob, SubmittedJob, WorkerPool
from acex.studio.workspace import Workspace
from acex.values import as_json

MAX_IN_MEMORY = 200  # searches; the ledger has all of them
HEARTBEAT = 15.0  # seconds after which a page that waits is sent a sign of life
State: TypeAlias = Literal["waiting", "running", "stopping", "stopped", "ended", "failed", "interrupted"]
LIVE = ("waiting", "running", "stopping")
CANNOT_RESUME = (
    "This explanation was made with settings that the studio does not have, or with other data. Pick its row and start "
    "a new search: answers already paid for are reused."
)


class ServerEvent(NamedTuple):
    """What a page is sent: the name of the event, its number among the steps, and its data."""

    name: str
    number: int | None
    data: Any


class Tracked:
    """Something that pages follow while it changes."""

    def __init__(self) -> None:
        self.state: State = "interrupted"
        self.error = ""
        self.job: SubmittedJob | None = None
        self._changed = asyncio.Event()

    @property
    def is_live(self) -> bool:
        """Is it running, or about to?"""
        return self.state in LIVE

    def stop(self) -> None:
        """Stop after the answer that is awaited."""
        if self.is_live and self.job is not None:
            self.state = "stopping"
            self.job.stop()
            self.notify()

    def notify(self) -> None:
        """Wake everything that waits for a change."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait(self) -> bool:
        """Wait for a change; False if there was none for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT):
                return await self._changed.wait()
        return False

    def receive(self, message: Message) -> None:
        """Take in a message of the job."""
        name, data = message
        if name in ("step", "row") and self.state == "waiting":
            self.state = "running"
        elif name in ("ended", "stopped"):
            self.state = "ended" if name == "ended" else "stopped"
        elif name == "failed":
            self.state, self.error = "failed", data
        self.notify()


class TrackedSearch(Tracked):
    """One search: its row and options, its steps, and its state."""

    def __init__(self, identity: str, row: pd.DataFrame, factual: Mapping[str, Any], options: dict[str, Any]) -> None:
        super().__init__()
        self.identity, self.row, self.factual, self.options = identity, row, factual, options
        self.steps: list[dict[str, Any]] = []
        self.explanation: dict[str, Any] | None = None
        self.paid = 0
        self._key: str | None = None

    def position(self, workspace: Workspace) -> int | None:
        """Which of the rows it is about; None for one that was typed in."""
        if self._key is None:  # computed once: every page that shows the search needs it
            [self._key] = workspace.keys_of(self.row)
        return None if self._key is None else workspace.positions.get(self._key)

    def receive(self, message: Message) -> None:
        name, data = message
        if name == "step":
            del self.steps[data["position"] :]
            self.steps.append(data)
        elif name == "paid":
            self.paid = data
        elif name in ("explanation", "ended", "stopped"):
            self.explanation = data or self.explanation
        super().receive(message)

    def snapshot(self, workspace: Workspace) -> dict[str, Any]:
        """Its state, without the steps."""
        return {
            "id": self.identity,
            "state": self.state,
            "error": self.error,
            "budget": options_json(self.options, workspace)["budget"],
            "paid": self.paid,
            "money": workspace.price_of(self.paid),
            "explanation": self.explanation,
            "n_steps": len(self.steps),
        }

    async def events(self, workspace: Workspace, after: int) -> AsyncIterator[ServerEvent | None]:
        """Everything from the step after this one, until it ends; None from time to time, as a sign of life."""
        sent, shown = after + 1, None
        while True:
            sent = min(sent, len(self.steps))
            while sent < len(self.steps):
                yield ServerEvent("step", sent, self.steps[sent])
                sent += 1
            now = self.snapshot(workspace)
            if now != shown:
                shown = now
                yield ServerEvent("state", None, now)
            elif not self.is_live:
                return
            elif not await self.wait():
                yield None


def in_loop(receive: Callable[[Message], None]) -> Callable[[Message], None]:
    """The same function for messages from other threads: they are received in the event loop that runs here."""
    loop = asyncio.get_running_loop()

    def note(message: Message) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(receive, message)

    return note


class Searches:
    """All searches of a studio."""

    def __init__(self, workspace: Workspace, pool: WorkerPool) -> None:
        self._workspace, self._pool = workspace, pool
        self._known: OrderedDict[str, TrackedSearch] = OrderedDict()

    async def begin(self, row: pd.DataFrame, options: dict[str, Any]) -> TrackedSearch:
        """Search for this row; if a search with the same options is running, that one."""
        return self._begin(row, options, await self.plan(row, options))

    async def plan(self, row: pd.DataFrame, options: Mapping[str, Any]) -> acex.Plan:
        """The plan of a search; nothing is sent."""
        arguments = search_arguments(options)
        return await run_in_threadpool(lambda: self._workspace.explainer.search(row, **arguments).plan)

    def _begin(self, row: pd.DataFrame, options: dict[str, Any], plan: acex.Plan) -> TrackedSearch:
        search = self._known.get(plan.identity)
        if search is None:
            search = self._keep(TrackedSearch(plan.identity, row, plan.factual, options))
        if not search.is_live:
            search.options, search.state, search.error = options, "waiting", ""
            search.job = self._pool.submit(SearchJob(row, search_arguments(options)), in_loop(search.receive))
            search.notify()
        return search

    async def resume(self, identity: str, budget: int) -> TrackedSearch:
        """Continue a search from where it is, with this budget for all of it.

        A budget that is divided among several counterfactuals makes another search, for which known answers are free.
        """
        search = await self.get(identity)
        options = search.options | {"budget": budget}
        plan = await self.plan(search.row, options)
        if plan.identity != identity and plan.count == 1:
            raise ValueError(CANNOT_RESUME)
        return self._begin(search.row, options, plan)

    def _keep(self, search: TrackedSearch) -> TrackedSearch:
        self._known[search.identity] = search
        surplus = max(len(self._known) - MAX_IN_MEMORY, 0)
        for identity in [i for i, s in self._known.items() if not s.is_live][:surplus]:
            del self._known[identity]
        return search

    async def get(self, identity: str) -> TrackedSearch:
        """The search of this identity, from memory or the ledger.

        Raises:
            LookupError: there is no such search.
        """
        if identity not in self._known:
            search = await run_in_threadpool(self._read, identity)
            self._known.setdefault(identity, search)
        return self._known[identity]

    def _read(self, identity: str) -> TrackedSearch:
        """A search as recorded in the ledger."""
        workspace, ledger = self._workspace, self._workspace.ledger
        try:
            record = ledger.explanation(identity)
        except ValueError:
            raise LookupError("There is no such search.") from None
        if record.model != workspace.explainer.model_id:
            raise LookupError("There is no such search of this model.")
        asks = ledger.asks(identity)
        try:
            e = acex.load_explanation(ledger, identity)
            factual, settings, space = e.steps[0].row, e.plan.settings, e.plan.space
        except ValueError:  # not even its own row has an answer
            e, lines = None, ledger.tables.explanations(record.model)
            factual = json.loads(lines.loc[lines["id"] == identity, "factual"].iloc[0])
            space = acex.Space.from_dict(record.space) if record.space else workspace.space
            settings = record.settings
        options = recorded_options(settings, space, workspace)
        search = TrackedSearch(identity, as_frame(factual, workspace), factual, options)
        search.paid = sum(ask.paid for ask in asks)
        if e is not None:
            search.steps = [step_json(step, e.plan) for step in e.steps]
            search.explanation = explanation_json(e)
            if record.result is not None and record.result["asked"] == len(asks) == len(e.steps):
                search.state = "ended"
        return search

    def of_same_row(self, search: TrackedSearch) -> list[dict[str, Any]]:
        """Explanations of the same row in the ledger that have found a counterfactual."""
        workspace = self._workspace
        lines = workspace.ledger.tables.explanations(workspace.explainer.model_id)
        asked, out = lines[lines["asked"] > 1], []
        row = json.loads(json.dumps(dict(search.factual), default=as_json))  # as the ledger holds it
        for identity in [i for i, text in zip(asked["id"], asked["factual"], strict=True) if json.loads(text) == row]:
            with suppress(ValueError):  # without an answer
                e = acex.load_explanation(workspace.ledger, identity)
                options = options_json(recorded_options(e.plan.settings, e.plan.space, workspace), workspace)
                out.append({"id": identity, "explanation": explanation_json(e), "options": options})
        return [search for search in out if search["explanation"]["answers"]]
