"""The addresses of the studio. A page is files that hold no data; all it shows it asks for, as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

import acex
from acex.ledger import canonical
from acex.show.report import explanation_page
from acex.studio import exports as take
from acex.studio.jobs import ManyRows
from acex.studio.many import Batch, Table
from acex.studio.request_parsing import MOST_QUERIES, as_said, in_words, options_of, row_of, wanted
from acex.studio.searches import LIVE, Event, Search, Searches, in_loop
from acex.studio.security import Guard, Refused
from acex.studio.worker_pool import Crew
from acex.studio.workspace import Desk
from acex.values import is_missing

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

MOST_SEARCHES = 4  # at once; others wait for their turn
MOST_ROWS = 5000  # of a batch that a page starts
MOST_TEXT = 200  # characters of what somebody looks for
RETRY = 1000  # milliseconds after which a page that lost the server looks for it again
KINDS = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"
IDENTITY = re.compile(r"[0-9a-f]{8,64}")


def studio_app(
    desk: Desk,
    *,
    port: int,
    hosts: Iterable[str] = (),
    any_address: bool = False,
    token: str | None = None,
    here: bool = False,
) -> ASGIApp:
    """The studio as an ASGI application, with its guard in front; see `Guard` and `Crew` for the arguments."""
    studio = Studio(desk, Crew(desk.explainer, MOST_SEARCHES, here=here), Crew(desk.explainer, 1, here=here))
    return Guard(studio.app(), port=port, hosts=hosts, any_address=any_address, token=token)


class Studio:
    """What answers, address by address; one crew searches for single rows, the other for many."""

    def __init__(self, desk: Desk, crew: Crew, batch_crew: Crew) -> None:
        self.desk, self.crew, self.batch_crew = desk, crew, batch_crew
        self.searches, self.batch, self.table = Searches(desk, crew), Batch(), Table(desk)
        folder = files("acex.studio") / "static"
        # Read once, by names that are here already: no address can lead to another file.
        self._files = {f.name: (f.read_bytes(), KINDS[f.name.rpartition(".")[2]]) for f in folder.iterdir()}

    def app(self) -> Starlette:
        """All addresses."""
        get: dict[str, Endpoint] = {
            "/": self.page,
            "/static/{name}": self.file,
            "/api/desk": self.about,
            "/api/rows": self.rows,
            "/api/rows/{position:int}": self.row,
            "/api/searches/{id}": self.search,
            "/api/searches/{id}/events": self.events,
            "/api/searches/{id}/answers": self.answers,
            "/api/searches/{id}/take/{what}": self.take,
            "/api/many": self.many,
        }
        post: dict[str, Endpoint] = {
            "/api/plan": self.plan,
            "/api/searches": self.begin,
            "/api/searches/{id}/go": self.go,
            "/api/searches/{id}/stop": self.stop,
            "/api/ask": self.ask,
            "/api/many": self.begin_many,
            "/api/many/stop": self.stop_many,
        }
        routes = [Route(path, _told(answer), methods=["GET"]) for path, answer in get.items()]
        routes += [Route(path, _told(answer), methods=["POST"]) for path, answer in post.items()]

        @asynccontextmanager
        async def life(app: Starlette) -> AsyncIterator[None]:
            self.crew.warm_up()
            try:
                yield
            finally:
                await run_in_threadpool(self.crew.close)
                await run_in_threadpool(self.batch_crew.close)

        return Starlette(routes=routes, lifespan=life)

    # -- files -------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        return self._file("index.html")

    async def file(self, request: Request) -> Response:
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        if name not in self._files:
            raise LookupError("There is no such page.")
        content, kind = self._files[name]
        return Response(content, media_type=kind)

    # -- rows and plans ----------------------------------------------------------------------------------------

    async def about(self, request: Request) -> Response:
        about = await run_in_threadpool(self.desk.about)
        about |= {"wishes": as_said(self.desk.wishes, self.desk)}
        return JSONResponse(about | {"remaining": await run_in_threadpool(lambda: self.desk.remaining)})

    async def rows(self, request: Request) -> Response:
        said = request.query_params
        text, page = said.get("q", ""), said.get("page", "0")
        if len(text) > MOST_TEXT or not page.isdecimal() or len(page) > 9:
            raise ValueError(f"expected a text of at most {MOST_TEXT} characters, and a page.")
        found = await run_in_threadpool(self.desk.find, text, said.get("decision", ""), int(page))
        return JSONResponse(found)

    async def row(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.desk.row, request.path_params["position"]))

    async def plan(self, request: Request) -> Response:
        said = await _json(request)
        return JSONResponse(await run_in_threadpool(self._plan, said))

    def _plan(self, said: dict[str, Any]) -> dict[str, Any]:
        """What an explanation would be and cost. Nothing is asked."""
        desk = self.desk
        row, options = row_of(said.get("row"), desk), options_of(said.get("wishes", {}), desk)
        plan = desk.explainer.plan(row, **options)
        paid = sum(ask.paid for ask in desk.ledger.asks(plan.identity))
        label = self._label(row)
        most = max(plan.budget - paid, 0) if paid else plan.budget - (label is not None)
        left = desk.remaining
        most = most if left is None else min(most, left)
        return {
            "id": plan.identity,
            "budget": plan.budget,
            "paid": paid,
            "most": most,
            "money": desk.money(most),
            "decision": label,
            "remaining": left,
            "rules": in_words(options, plan.factual, desk),
            "remarks": list(plan.remarks),
        }

    def _label(self, row: Any) -> Any:
        """The model's answer to a row, if it is known."""
        known = self.desk.ledger.known(self.desk.explainer.model_id, canonical(row))
        return next((self.desk.spoken(answer.label) for answer in known.values()), None)

    async def ask(self, request: Request) -> Response:
        """The decision on one row: free where it is known, and else asked for only where `pay` says so."""
        said = await _json(request)
        return JSONResponse(await run_in_threadpool(self._ask, said))

    def _ask(self, said: dict[str, Any]) -> dict[str, Any]:
        desk = self.desk
        row = row_of(said.get("row"), desk)
        known = self._label(row)
        if known is not None or said.get("pay") is not True:
            free = {"label": known, "known": known is not None, "paid": 0}
            return free | {"price": desk.price_per_row, "remaining": desk.remaining}
        # The first question of any search is the row itself; of numbers, some range has to be wanted.
        anything = {"at_least": 0} if desk.gives_numbers else None
        step = next(iter(desk.explainer.search(row, target=anything, budget=2)))
        return {"label": desk.spoken(step.label), "known": True, "paid": step.paid, "price": desk.price_per_row}

    # -- searches ----------------------------------------------------------------------------------------------

    async def begin(self, request: Request) -> Response:
        said = await _json(request)
        row, options = row_of(said.get("row"), self.desk), options_of(said.get("wishes", {}), self.desk)
        return JSONResponse((await self.searches.begin(row, options)).snapshot(self.desk))

    async def _search(self, request: Request) -> Search:
        identity = request.path_params["id"]
        if not IDENTITY.fullmatch(identity):
            raise LookupError("There is no such search.")
        return await self.searches.get(identity)

    async def search(self, request: Request) -> Response:
        search = await self._search(request)
        return JSONResponse(await run_in_threadpool(self._whole, search))

    def _whole(self, search: Search) -> dict[str, Any]:
        feature = self.desk.space.feature
        return {
            **search.snapshot(self.desk),
            "steps": search.steps,
            "row": {n: "" if is_missing(v) else feature(n).text(v) for n, v in search.factual.items()},
            "position": search.position(self.desk),
            "wanted": list(wanted(search.options, self.desk).words),
            "wishes": as_said(search.options, self.desk),
            "rules": in_words(search.options, search.factual, self.desk),
        }

    async def go(self, request: Request) -> Response:
        search, said = await self._search(request), await _json(request)
        budget = said.get("budget")
        if not isinstance(budget, int) or isinstance(budget, bool) or not 2 <= budget <= MOST_QUERIES:
            raise ValueError(f"budget: expected a whole number from 2 to {MOST_QUERIES}, got {budget!r}.")
        return JSONResponse((await self.searches.go_on(search.identity, budget)).snapshot(self.desk))

    async def stop(self, request: Request) -> Response:
        search = await self._search(request)
        self.searches.stop(search)
        return JSONResponse(search.snapshot(self.desk))

    async def events(self, request: Request) -> Response:
        search = await self._search(request)
        last = request.headers.get("last-event-id", request.query_params.get("after", ""))
        after = int(last) if re.fullmatch(r"\d{1,6}", last) else -1

        async def stream() -> AsyncIterator[bytes]:
            yield f"retry: {RETRY}\n\n".encode()
            async for event in search.events(self.desk, after):
                yield _written(event)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def answers(self, request: Request) -> Response:
        search = await self._search(request)
        return JSONResponse(await run_in_threadpool(self.searches.beside, search))

    async def take(self, request: Request) -> Response:
        search = await self._search(request)
        return await run_in_threadpool(self._take, search, request.path_params["what"])

    def _take(self, search: Search, what: str) -> Response:
        desk, stem = self.desk, search.identity[:12]
        if what == "commands":
            said = (desk, search.position(desk), search.factual, search.options)
            shell = take.shell_command(*said)
            why_not = (
                "" if shell else desk.recipe.why_not or "There is no command for these wishes; the script has them all."
            )
            return JSONResponse({"python": take.python_code(*said), "shell": shell, "why_not": why_not})
        e = acex.recorded(desk.ledger, search.identity)
        if what == "report.html":
            page = explanation_page(e, price_per_row=desk.price_per_row)
            return Response(
                page, media_type=KINDS["html"], headers={"content-security-policy": REPORT_POLICY, **_file(stem, what)}
            )
        written: dict[str, tuple[Callable[[acex.Explanation], str], str]] = {
            "letter.txt": (take.letter, "text/plain; charset=utf-8"),
            "answers.csv": (take.answers_csv, "text/csv; charset=utf-8"),
            "steps.csv": (take.steps_csv, "text/csv; charset=utf-8"),
            "explanation.json": (lambda told: told.to_json(), "application/json"),
        }
        if what not in written:
            raise LookupError("There is nothing of this name to take along.")
        write, kind = written[what]
        return Response(write(e), media_type=kind, headers=_file(stem, what))

    # -- many rows ---------------------------------------------------------------------------------------------

    async def many(self, request: Request) -> Response:
        table = await run_in_threadpool(self.table.read, request.query_params.get("by", ""))
        return JSONResponse(table | {"batch": self.batch.told()})

    async def begin_many(self, request: Request) -> Response:
        said = await _json(request)
        if self.batch.state in LIVE:
            raise ValueError("rows are being explained already: wait, or stop them first.")
        total, chosen = said.get("budget_total"), said.get("rows")
        if not (total is None or (isinstance(total, int) and not isinstance(total, bool) and total >= 1)):
            raise ValueError(f"budget_total: expected a whole number of at least 1, got {total!r}.")
        places = await run_in_threadpool(self._chosen, chosen)
        options = options_of(said.get("wishes", {}), self.desk)
        await run_in_threadpool(self.desk.explainer.plan, self.desk.rows.iloc[[places[0]]], **options)
        self.batch.begin(len(places))
        job = ManyRows(self.desk.rows.iloc[places], options, total)
        self.batch.task = self.batch_crew.do(job, in_loop(self.batch.take))
        return JSONResponse(self.batch.told())

    def _chosen(self, said: Any) -> list[int]:
        """The rows that a page means: the first so many that fit its filters."""
        most = said.get("most") if isinstance(said, dict) else None
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST_ROWS:
            raise ValueError(f"rows: expected filters and a number from 1 to {MOST_ROWS}, got {said!r}.")
        found = self.desk.matching(str(said.get("text", ""))[:MOST_TEXT], str(said.get("decision", "")))
        if not found:
            raise ValueError("no row fits.")
        return [i for i, _ in found[:most]]

    async def stop_many(self, request: Request) -> Response:
        if self.batch.state in LIVE and self.batch.task is not None:
            self.batch.state = "stopping"
            self.batch.task.stop()
        return JSONResponse(self.batch.told())


def _told(answer: Endpoint) -> Endpoint:
    """The same, where an error a person can mend is one sentence."""

    async def told(request: Request) -> Response:
        try:
            return await answer(request)
        except Refused as refused:
            return _error(refused.status, refused)
        except LookupError as error:
            return _error(404, error)
        except (ValueError, TypeError) as error:
            return _error(422, error)
        except acex.AcexError as error:
            return _error(503, error)

    return told


def _error(status: int, error: Exception) -> Response:
    words = str(error.args[0]) if error.args else type(error).__name__
    return JSONResponse({"error": words}, status_code=status)


async def _json(request: Request) -> dict[str, Any]:
    try:
        said = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise ValueError("expected JSON.") from None
    if not isinstance(said, dict):
        raise ValueError(f"expected an object, got {type(said).__name__}.")
    return said


def _written(event: Event | None) -> bytes:
    """An event as the stream writes it."""
    if event is None:
        return b": still here\n\n"
    number = "" if event.number is None else f"id: {event.number}\n"
    return f"event: {event.name}\n{number}data: {json.dumps(event.data)}\n\n".encode()


def _file(stem: str, what: str) -> dict[str, str]:
    """The name under which a browser saves it."""
    name, _, kind = what.rpartition(".")
    how = "inline" if kind == "html" else "attachment"
    return {"content-disposition": f'{how}; filename="acex-{name}-{stem}.{kind}"'}
