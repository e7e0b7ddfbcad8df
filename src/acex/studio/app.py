"""The studio as a web application. A page is static files without data; everything it shows it requests as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, TypeAlias

import pandas as pd
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

import acex
from acex.ledger import canonical
from acex.show.report import explanation_page
from acex.spreadsheets import write_csv
from acex.studio import exports
from acex.studio.batches import ExplanationTable, TrackedBatch
from acex.studio.request_parsing import (
    check_budget,
    declarations_json,
    option_sentences,
    options_json,
    read_options,
    read_row,
    search_arguments,
    wanted,
)
from acex.studio.searches import Searches, ServerEvent, TrackedSearch, in_loop
from acex.studio.security import RequestRefused, SecurityMiddleware
from acex.studio.worker_pool import ManyRowsJob, WorkerPool
from acex.studio.workspace import Workspace
from acex.values import is_count, is_missing

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

MAX_SEARCHES = 4  # at once; others wait for their turn
MAX_ROWS = 5000  # of a batch that a page starts
MAX_TEXT = 200  # characters of a search text
RETRY = 1000  # milliseconds after which a page that lost the server tries again
KINDS = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"
IDENTITY = re.compile(r"[0-9a-f]{8,64}")
EXPORTS: dict[str, tuple[Callable[[acex.Explanation], str], str]] = {
    "letter.txt": (exports.letter, "text/plain; charset=utf-8"),
    "answers.csv": (exports.answers_csv, "text/csv; charset=utf-8"),
    "steps.csv": (lambda e: write_csv(e.trace), "text/csv; charset=utf-8"),
    "explanation.json": (lambda e: e.to_json(), "application/json"),
}


def studio_app(
    workspace: Workspace,
    *,
    port: int,
    hosts: Iterable[str] = (),
    any_address: bool = False,
    token: str | None = None,
    in_threads: bool = False,
) -> ASGIApp:
    """The studio as an ASGI application; see `SecurityMiddleware` and `WorkerPool` for the arguments."""
    pools = [WorkerPool(workspace.explainer, size, in_threads=in_threads) for size in (MAX_SEARCHES, 1)]
    studio = Studio(workspace, *pools)
    return SecurityMiddleware(studio.app(), port=port, hosts=hosts, any_address=any_address, token=token)


class Studio:
    """The endpoints; one pool searches for single rows, the other for many."""

    def __init__(self, workspace: Workspace, pool: WorkerPool, batch_pool: WorkerPool) -> None:
        self.workspace, self.pool, self.batch_pool = workspace, pool, batch_pool
        self.searches, self.batch = Searches(workspace, pool), TrackedBatch()
        self.table = ExplanationTable(workspace)
        folder = files("acex.studio") / "static"
        # Read once, by the names that exist: no request can lead to another file.
        self._files = {f.name: (f.read_bytes(), KINDS[f.name.rpartition(".")[2]]) for f in folder.iterdir()}

    def app(self) -> Starlette:
        """All routes."""
        endpoints: dict[str, Endpoint] = {
            "GET /": self.file,
            "GET /static/{name}": self.file,
            "GET /api/workspace": self.about,
            "GET /api/rows": self.rows,
            "GET /api/rows/{position:int}": self.row,
            "POST /api/plan": self.plan,
            "POST /api/ask": self.ask,
            "POST /api/searches": self.begin,
            "GET /api/searches/{id}": self.search,
            "POST /api/searches/{id}/resume": self.resume,
            "POST /api/searches/{id}/stop": self.stop,
            "GET /api/searches/{id}/events": self.events,
            "GET /api/searches/{id}/answers": self.answers,
            "GET /api/searches/{id}/exports/{name}": self.export,
            "GET /api/many": self.many,
            "POST /api/many": self.begin_many,
            "POST /api/many/stop": self.stop_many,
        }
        routes = [
            Route(name.split(" ")[1], _with_errors(endpoint), methods=[name.split(" ")[0]])
            for name, endpoint in endpoints.items()
        ]

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            self.pool.warm_up()
            try:
                yield
            finally:
                await run_in_threadpool(self.pool.close)
                await run_in_threadpool(self.batch_pool.close)

        return Starlette(routes=routes, lifespan=lifespan)

    # -- files -------------------------------------------------------------------------------------------------

    async def file(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            raise LookupError("There is no such page.")
        content, kind = self._files[name]
        return Response(content, media_type=kind)

    # -- rows and plans ----------------------------------------------------------------------------------------

    async def about(self, request: Request) -> Response:
        about = await run_in_threadpool(self.workspace.to_json)
        options = {"options": options_json(self.workspace.options, self.workspace), "declared": declarations_json()}
        return JSONResponse(about | options)

    async def rows(self, request: Request) -> Response:
        query = request.query_params
        text, page = query.get("q", ""), query.get("page", "0")
        if len(text) > MAX_TEXT or not page.isdecimal() or len(page) > 9:
            raise ValueError(f"expected a text of at most {MAX_TEXT} characters, and a page number.")
        found = await run_in_threadpool(self.workspace.find, text, query.get("decision", ""), int(page))
        return JSONResponse(found)

    async def row(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.workspace.row_json, request.path_params["position"]))

    async def _row_and_options(self, request: Request) -> tuple[pd.DataFrame, dict[str, Any]]:
        body = await _json(request)
        return read_row(body.get("row"), self.workspace), read_options(body.get("options", {}), self.workspace)

    async def plan(self, request: Request) -> Response:
        """What a search would be and cost. Nothing is sent to the model."""
        row, options = await self._row_and_options(request)
        plan = await self.searches.plan(row, options)
        return JSONResponse(await run_in_threadpool(self._plan_json, plan, row, options))

    def _plan_json(self, plan: acex.Plan, row: Any, options: dict[str, Any]) -> dict[str, Any]:
        workspace = self.workspace
        paid = sum(ask.paid for ask in workspace.ledger.asks(plan.identity))
        label, left = self._known_label(row), workspace.remaining
        most = max(plan.budget - paid, 0) if paid else plan.budget - (label is not None)
        most = most if left is None else min(most, left)
        return {
            "paid": paid,
            "most": most,
            "money": workspace.price_of(most),
            "decision": label,
            "rules": option_sentences(options, plan.factual, workspace),
            "remarks": [remark.to_dict() for remark in plan.remarks],
        }

    def _known_label(self, row: Any) -> Any:
        """The model's answer to a row, if the ledger has it."""
        known = self.workspace.ledger.known(self.workspace.explainer.model_id, canonical(row))
        return next((self.workspace.label_text(answer.label) for answer in known.values()), None)

    async def ask(self, request: Request) -> Response:
        """The decision on one row: free if it is known, otherwise the model is asked only if `pay` is true."""
        body = await _json(request)
        return JSONResponse(await run_in_threadpool(self._ask, body))

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        workspace = self.workspace
        row = read_row(body.get("row"), workspace)
        known = self._known_label(row)
        if known is not None or body.get("pay") is not True:
            return {"label": known, "known": known is not None, "paid": 0, "price": workspace.price_per_row}
        # The first query of any search is the row itself; for numbers, a search needs some range.
        target = {"at_least": 0} if workspace.gives_numbers else None
        step = next(iter(workspace.explainer.search(row, target=target, budget=2)))
        label = workspace.label_text(step.label)
        return {"label": label, "known": True, "paid": step.paid, "price": workspace.price_per_row}

    # -- searches ----------------------------------------------------------------------------------------------

    async def begin(self, request: Request) -> Response:
        search = await self.searches.begin(*await self._row_and_options(request))
        return JSONResponse(search.snapshot(self.workspace))

    async def _search(self, request: Request) -> TrackedSearch:
        identity = request.path_params["id"]
        if not IDENTITY.fullmatch(identity):
            raise LookupError("There is no such search.")
        return await self.searches.get(identity)

    async def search(self, request: Request) -> Response:
        search = await self._search(request)
        return JSONResponse(await run_in_threadpool(self._search_json, search))

    def _search_json(self, search: TrackedSearch) -> dict[str, Any]:
        workspace, feature = self.workspace, self.workspace.space.feature
        return {
            **search.snapshot(workspace),
            "steps": search.steps,
            "row": {n: "" if is_missing(v) else feature(n).text(v) for n, v in search.factual.items()},
            "position": search.position(workspace),
            "wanted": list(wanted(search.options, workspace).words),
            "options": options_json(search.options, workspace),
            "rules": option_sentences(search.options, search.factual, workspace),
        }

    async def resume(self, request: Request) -> Response:
        search, body = await self._search(request), await _json(request)
        resumed = await self.searches.resume(search.identity, check_budget(body.get("budget")))
        return JSONResponse(resumed.snapshot(self.workspace))

    async def stop(self, request: Request) -> Response:
        search = await self._search(request)
        search.stop()
        return JSONResponse(search.snapshot(self.workspace))

    async def events(self, request: Request) -> Response:
        search = await self._search(request)
        last = request.headers.get("last-event-id", request.query_params.get("after", ""))
        after = int(last) if re.fullmatch(r"\d{1,6}", last) else -1

        async def stream() -> AsyncIterator[bytes]:
            yield f"retry: {RETRY}\n\n".encode()
            async for event in search.events(self.workspace, after):
                yield _event_bytes(event)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def answers(self, request: Request) -> Response:
        search = await self._search(request)
        return JSONResponse(await run_in_threadpool(self.searches.of_same_row, search))

    async def export(self, request: Request) -> Response:
        search = await self._search(request)
        return await run_in_threadpool(self._export, search, request.path_params["name"])

    def _export(self, search: TrackedSearch, name: str) -> Response:
        workspace = self.workspace
        if name == "commands":
            arguments = (workspace, search.position(workspace), search.factual, search.options)
            shell = exports.shell_command(*arguments)
            no_command = workspace.setup.why_not or "These options cannot be written as a command; the script has them."
            why_not = "" if shell else no_command
            return JSONResponse({"python": exports.python_code(*arguments), "shell": shell, "why_not": why_not})
        e = acex.load_explanation(workspace.ledger, search.identity)
        stem, _, suffix = name.rpartition(".")
        how = "inline" if suffix == "html" else "attachment"
        headers = {"content-disposition": f'{how}; filename="acex-{stem}-{search.identity[:12]}.{suffix}"'}
        if name == "report.html":
            page = explanation_page(e, price_per_row=workspace.price_per_row)
            policy = {"content-security-policy": REPORT_POLICY}
            return Response(page, media_type=KINDS["html"], headers=headers | policy)
        if name not in EXPORTS:
            raise LookupError("There is no such export.")
        write, kind = EXPORTS[name]
        return Response(write(e), media_type=kind, headers=headers)

    # -- many rows ---------------------------------------------------------------------------------------------

    async def many(self, request: Request) -> Response:
        table = await run_in_threadpool(self.table.read, request.query_params.get("by", ""))
        return JSONResponse(table | {"batch": self.batch.to_json()})

    async def begin_many(self, request: Request) -> Response:
        body = await _json(request)
        if self.batch.is_live:
            raise ValueError("rows are being explained already: wait, or stop them first.")
        total = body.get("budget_total")
        if not (total is None or is_count(total)):
            raise ValueError(f"budget_total: expected a whole number of at least 1, got {total!r}.")
        positions = await run_in_threadpool(self._matching, body.get("rows"))
        options = read_options(body.get("options", {}), self.workspace)
        rows = self.workspace.rows
        await self.searches.plan(rows.iloc[[positions[0]]], options)  # a wrong option is reported now
        self.batch.begin(len(positions))
        job = ManyRowsJob(rows.iloc[positions], search_arguments(options) | {"budget_total": total})
        self.batch.job = self.batch_pool.submit(job, in_loop(self.batch.receive))
        return JSONResponse(self.batch.to_json())

    def _matching(self, given: Any) -> list[int]:
        """The positions of the first rows that match the filters of a page."""
        most: Any = given.get("most") if isinstance(given, dict) else None
        if not is_count(most) or most > MAX_ROWS:
            raise ValueError(f"rows: expected filters and a number from 1 to {MAX_ROWS}, got {given!r}.")
        found = self.workspace.matching(str(given.get("text", ""))[:MAX_TEXT], str(given.get("decision", "")))
        if not found:
            raise ValueError("rows: none match.")
        return [i for i, _ in found[:most]]

    async def stop_many(self, request: Request) -> Response:
        self.batch.stop()
        return JSONResponse(self.batch.to_json())


def _with_errors(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with errors that a person can correct as one sentence of JSON."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except RequestRefused as refused:
            return _error(refused.status, refused)
        except LookupError as error:
            return _error(404, error)
        except (ValueError, TypeError) as error:
            return _error(422, error)
        except acex.AcexError as error:
            return _error(503, error)

    return answer


def _error(status: int, error: Exception) -> Response:
    message = str(error.args[0]) if error.args else type(error).__name__
    return JSONResponse({"error": message}, status_code=status)


async def _json(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise ValueError("expected JSON.") from None
    if not isinstance(body, dict):
        raise ValueError(f"expected an object, got {type(body).__name__}.")
    return body


def _event_bytes(event: ServerEvent | None) -> bytes:
    """An event as the stream carries it."""
    if event is None:
        return b": still here\n\n"
    number = "" if event.number is None else f"id: {event.number}\n"
    return f"event: {event.name}\n{number}data: {json.dumps(event.data)}\n\n".encode()
