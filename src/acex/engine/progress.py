"""Progress bars on stderr: by default only where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from acex.engine.explanation import Explanation
from acex.engine.session import Session


@contextmanager
def _bar(wanted: bool | None, title: str, first: str, total: int, *, timed: bool = False) -> Iterator[Any]:
    """The bar and its task; None where none is shown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if wanted is False or (wanted is None and not console.is_terminal):
        yield None
        return
    left = (TimeRemainingColumn(), TextColumn("left")) if timed else ()
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), *left)
    with Progress(*columns, console=console, transient=True) as progress:
        yield progress, progress.add_task(first, total=total)


@contextmanager
def of_queries(wanted: bool | None, budget: int) -> Iterator[Callable[[Session], None]]:
    """What shows how far one explanation has got."""
    with _bar(wanted, "asking", "no counterfactual yet", budget) as shown:

        def show(session: Session) -> None:
            if shown is not None:
                cost = session.best_cost
                words = "no counterfactual yet" if cost is None else f"best cost {cost:.3g}"
                shown[0].update(shown[1], completed=session.box.n_queries, description=words)

        yield show


@contextmanager
def of_rows(wanted: bool | None, n: int) -> Iterator[Callable[[Explanation, int], None]]:
    """Shows how far a batch is, with rate and time left; call it with each explanation and its queries."""
    with _bar(wanted, "explaining", "", n, timed=True) as shown:
        queries = found = failed = 0

        def show(explanation: Explanation, paid: int) -> None:
            nonlocal queries, found, failed
            queries += paid
            found += explanation.outcome == "found"
            failed += explanation.outcome == "failed"
            if shown is None:
                return
            progress, task = shown
            progress.advance(task)
            now = progress.tasks[0]
            rate = "" if not now.speed else f", {now.speed:.2g} rows/s"
            errors = f", {failed} failed" if failed else ""
            words = f"{found} found{errors}, {queries / now.completed:.1f} queries a row{rate}"
            progress.update(task, description=words)

        yield show
