"""The studio as a web application. Pages are static files that request all data as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, TypeAlias

import pandas as pd
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler

import acex
from acex.ledger import canonical
from acex.options import search_arguments
from acex.plan.target import Measured, Target
from acex.studio.batches import ExplanationTable, TrackedBatch
from acex.studio.exports import EXPORTS, python_code
from acex.studio.request_parsing import (
    check_budget,
    declarations_json,
    options_json,
    read_options,
    read_row,
    restrictions,
    wanted,
)
from acex.studio.searches import Searches, TrackedSearch
from acex.studio.security import SecurityMiddleware
from acex.studio.serializers import page_text, remarks_json
from acex.studio.worker_pool import WorkerPool, explain_rows
from acex.studio.workspace import Workspace
from acex.values import check_count, is_count, is_missing

Body: TypeAlias = dict[str, Any]
Handler: TypeAlias = Callable[[Request, Body], Any]  # a result other than a Response is sent as JSON

MAX_JOBS = 4  # searches that run at once, a batch counting as one; others wait in a queue
MAX_ROWS = 5000  # largest batch that a page can start
MAX_TEXT = 200  # characters of a search text; the rest is ignored
MAX_TRIED = 50  # what-if rows in one request
MAX_BYTES = 256 * 1024  # largest accepted request body
MEDIA_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
MEDIA_TYPES |= {"csv": "text/csv; charset=utf-8", "json": "application/json"}
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"


def studio_app(
    workspace: Workspace,
    *,
    port: int,
    hosts: Iterable[str] = (),
    any_address: bool = False,
    token: str | None = None,
) -> ASGIApp:
    """The studio as an ASGI application; see `SecurityMiddleware` and `WorkerPool` for the arguments."""
    studio = Studio(workspace, WorkerPool(workspace.explainer, MAX_JOBS))
    return SecurityMiddleware(studio.app(), port=port, hosts=hosts, any_address=any_address, token=token)


class Studio:
    """The request handlers and the state that they share."""

    def __init__(self, workspace: Workspace, pool: WorkerPool) -> None:
        self.workspace, self.pool = workspace, pool
        self.searches, self.batch = Searches(workspace, pool), TrackedBatch(0)
        self.table = ExplanationTable(workspace)
        folder = files("acex.studio") / "static"
        # Read once and served by name, so that no request can reach any other file.
        self._files = {f.name: (f.read_bytes(), MEDIA_TYPES[f.name.rpartition(".")[2]]) for f in folder.iterdir()}

    def app(self) -> Starlette:
        """The application with all routes."""
        handlers: dict[str, Handler] = {
            "GET /": self.file,
            "GET /static/{name}": self.file,
            "GET /api/workspace": self.describe,
            "GET /api/rows": self.rows,
            "GET /api/rows/{position:int}": lambda request, _: self.workspace.row_json(request.path_params["position"]),
            "POST /api/plan": self.plan,
            "POST /api/answers": self.answers,
            "POST /api/ask": self.ask,
            "POST /api/searches": lambda _, body: self.searches.begin(*self._row_and_options(body)).snapshot(),
            "GET /api/searches/{id}": self.search,
            "POST /api/searches/{id}/resume": self.resume,
            "POST /api/searches/{id}/stop": self.stop,
            "GET /api/searches/{id}/events": self.events,
            "GET /api/searches/{id}/exports/{name}": self.export,
            "GET /api/many": self.many,
            "POST /api/many": self.begin_many,
            "POST /api/many/stop": self.stop_many,
        }
        routes = [
            Route(path, _endpoint(handler), methods=[method])
            for (method, path), handler in ((key.split(" "), handler) for key, handler in handlers.items())
        ]

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            self.pool.warm_up()
            try:
                yield
            finally:
                await run_in_threadpool(self.pool.close)

        errors = {LookupError: 404, ValueError: 422, TypeError: 422, acex.AcexError: 503}
        exception_handlers: dict[Any, ExceptionHandler] = {kind: _error(status) for kind, status in errors.items()}
        return Starlette(routes=routes, lifespan=lifespan, exception_handlers=exception_handlers)

    def file(self, request: Request, body: Body) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            raise LookupError("There is no such page.")
        content, kind = self._files[name]
        return Response(content, media_type=kind)

    # -- rows and plans ----------------------------------------------------------------------------------------

    def describe(self, request: Request, body: Body) -> Any:
        options = options_json(self.workspace.options, self.workspace)
        return {**self.workspace.to_json(), "options": options, "declared": declarations_json()}

    def rows(self, request: Request, body: Body) -> Any:
        query = request.query_params
        text, page = query.get("q", "")[:MAX_TEXT], int(query.get("page", "0"))
        found = self.workspace.find(text, query.get("decision", ""), page)
        known = self.table.best_of([line["position"] for line in found["lines"]])
        lines = [line | {"known": known.get(line["position"])} for line in found["lines"]]
        return found | {"lines": lines}

    def _row_and_options(self, body: Body) -> tuple[pd.DataFrame, dict[str, Any]]:
        return read_row(body.get("row"), self.workspace), read_options(body.get("options", {}), self.workspace)

    def plan(self, request: Request, body: Body) -> Any:
        """The plan of a search and its maximum number of queries. Nothing is sent to the model."""
        workspace = self.workspace
        row, options = self._row_and_options(body)
        plan = self.searches.plan(row, options)
        paid = workspace.ledger.paid(plan.identity)
        [answer], left = workspace.known(row), workspace.remaining
        most = max(plan.budget - paid, 0) if paid else plan.budget - (answer is not None)
        most = most if left is None else min(most, left)
        if paid and self.searches.get(plan.identity).has_ended(plan.budget):
            most = 0
        return {
            "id": plan.identity,
            "paid": paid,
            "most": most,
            "decision": None if answer is None else workspace.label_text(answer.label),
            "rules": [rule._asdict() for rule in restrictions(options, plan.factual, workspace)],
            "remarks": remarks_json(plan.remarks),
        }

    def answers(self, request: Request, body: Body) -> Any:
        """Known counterfactuals of a row, from earlier searches and what-if rows, checked against these options."""
        row, options = self._row_and_options(body)
        tried = body.get("tried", [])
        if not isinstance(tried, list) or len(tried) > MAX_TRIED:
            raise ValueError(f"tried: expected at most {MAX_TRIED} rows, got {tried!r}.")
        rows = pd.concat([row, *(read_row({"values": values}, self.workspace) for values in tried)], ignore_index=True)
        return self.searches.answers(rows, options, self.table.of_row(canonical(row)[0]))

    def ask(self, request: Request, body: Body) -> Any:
        """The decision on one row: free if it is cached; otherwise the model is queried, but only if `pay` is true."""
        workspace = self.workspace
        row = read_row(body.get("row"), workspace)
        # The first query of any search is the row itself; for numbers, a search needs some range.
        target = {"at_least": 0} if workspace.gives_numbers else None
        if "options" in body:
            target = read_options(body["options"], workspace).get("target")
        [answer], paid = workspace.known(row), 0
        if answer is None and body.get("pay") is True:
            step = next(iter(workspace.explainer.search(row, target=target, budget=2)))
            [answer], paid = workspace.known(row), step.paid
        wanted_range = Target.of(target)
        is_probability = isinstance(wanted_range, Measured) and wanted_range.label is not None
        _, [x] = workspace.space.reaching(row)
        return {
            "label": None if answer is None else workspace.label_text(answer.label),
            "number": None if answer is None or not is_probability else wanted_range.value(answer.label, answer.scores),
            "known": answer is not None,
            "paid": paid,
            "price": workspace.price_per_row,
            "outside": [name for remark in workspace.space.remarks_on(row, x) for name in remark.columns],
        }

    # -- searches ----------------------------------------------------------------------------------------------

    def _search(self, request: Request) -> TrackedSearch:
        return self.searches.get(request.path_params["id"])

    def search(self, request: Request, body: Body) -> Any:
        search, workspace = self._search(request), self.workspace
        text = {feature.name: feature.text for feature in workspace.space.features}
        return {
            **search.snapshot(),
            "steps": search.steps,
            "row": {name: "" if is_missing(value) else text[name](value) for name, value in search.factual.items()},
            "position": search.position,
            "name": workspace.name(search.position),
            "wanted": list(wanted(search.options, workspace).words),
            "options": options_json(search.options, workspace),
            "rules": [rule._asdict() for rule in restrictions(search.options, search.factual, workspace)],
        }

    def resume(self, request: Request, body: Body) -> Any:
        budget = body.get("budget")
        return self.searches.resume(self._search(request), None if budget is None else check_budget(budget)).snapshot()

    def stop(self, request: Request, body: Body) -> Any:
        search = self._search(request)
        search.stop()
        return search.snapshot()

    def events(self, request: Request, body: Body) -> Response:
        last = request.headers.get("last-event-id", request.query_params.get("after", ""))
        after = int(last) if re.fullmatch(r"\d{1,6}", last) else -1
        return StreamingResponse(self._search(request).events(after), media_type="text/event-stream")

    def export(self, request: Request, body: Body) -> Any:
        search, name, workspace = self._search(request), request.path_params["name"], self.workspace
        if name == "code":
            return {"python": python_code(workspace, search.position, search.factual, search.options)}
        if name not in EXPORTS:
            raise LookupError("There is no such export.")
        e = acex.load_explanation(workspace.ledger, search.identity)
        stem, _, suffix = name.rpartition(".")
        called = re.sub(r"[^A-Za-z0-9._-]+", "-", workspace.name(search.position)).strip("-.") or search.identity[:12]
        how = "inline" if suffix == "html" else "attachment"
        headers = {"content-disposition": f'{how}; filename="{stem}-row-{called}.{suffix}"'}
        headers |= {"content-security-policy": REPORT_POLICY} if suffix == "html" else {}
        return Response(
            EXPORTS[name](e, workspace, request.query_params), media_type=MEDIA_TYPES[suffix], headers=headers
        )

    # -- many rows ---------------------------------------------------------------------------------------------

    def many(self, request: Request, body: Body) -> Any:
        query = request.query_params
        given = {
            name: query[name][:MAX_TEXT] for name in ("q", "outcome", "sort", "down", "by", "all") if name in query
        }
        return self.table.read(given, int(query.get("page", "0"))) | {"batch": self.batch.to_json()}

    def begin_many(self, request: Request, body: Body) -> Any:
        if self.batch.is_live:
            raise ValueError("rows are being explained already: wait, or stop them first.")
        total = body.get("budget_total")
        check_count("budget_total", total, optional=True)
        options = read_options(body.get("options", {}), self.workspace)
        positions = self._matching(body.get("rows"))
        rows, names = self.workspace.rows.iloc[positions], self.workspace.names
        self.searches.plan(rows.iloc[[0]], options)  # so that a wrong option is reported now
        self.batch = TrackedBatch(len(rows))
        if names is not None:
            rows = rows.set_axis([names[i] for i in positions], axis=0)
        arguments = search_arguments(options) | {"budget_total": total}
        self.batch.job = self.pool.submit(self.batch.receive, explain_rows, rows, arguments)
        return self.batch.to_json()

    def _matching(self, given: Any) -> list[int]:
        """The positions of the first rows that match the filters in a request."""
        most: Any = given.get("most") if isinstance(given, dict) else None
        if not is_count(most) or most > MAX_ROWS:
            raise ValueError(f"rows: expected filters and a number from 1 to {MAX_ROWS}, got {given!r}.")
        found = self.workspace.matching(str(given.get("text", ""))[:MAX_TEXT], str(given.get("decision", "")))
        if not found:
            raise ValueError("rows: none match.")
        return found[:most]

    def stop_many(self, request: Request, body: Body) -> Any:
        self.batch.stop()
        return self.batch.to_json()


def _endpoint(handler: Handler) -> Callable[[Request], Any]:
    """The Starlette endpoint for a handler, which runs in a thread so that it does not block other requests."""

    async def answer(request: Request) -> Response:
        body = await _json(request) if request.method == "POST" else {}
        result = await run_in_threadpool(handler, request, body)
        return result if isinstance(result, Response) else JSONResponse(result)

    return answer


async def _json(request: Request) -> Body:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BYTES:
            raise HTTPException(413, f"A request may have at most {MAX_BYTES} bytes.")
    try:
        body = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise ValueError("expected JSON.") from None
    if not isinstance(body, dict):
        raise ValueError(f"expected an object, got {type(body).__name__}.")
    return body


def _error(status: int) -> ExceptionHandler:
    """A handler that responds with the message of an exception and this status."""

    def answer(request: Any, error: Exception) -> Response:
        message = str(error.args[0]) if error.args else type(error).__name__
        return JSONResponse({"error": page_text(message)}, status_code=status)

    return answer
