"""Long-running jobs and the worker processes that run them, so that pages stay responsive.

A job is a generator function of an explainer, a function `is_stopped` and further arguments; it yields messages, pairs
of a name and data. Each process holds the explainer and runs one job at a time. If a process ends unexpectedly, the
answers are in the ledger, and another process can continue from there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import cloudpickle
import pandas as pd

import acex
from acex.studio.serializers import explanation_json, step_json

Message: TypeAlias = tuple[str, Any]
Messages: TypeAlias = Iterator[Message]
IsStopped: TypeAlias = Callable[[], bool]
Worker: TypeAlias = tuple[Any, Connection]  # a process and the connection to it

NICE = 5  # niceness of worker processes: pages have priority, but searches still get CPU time
PATIENCE = 5.0  # seconds that jobs have to stop when the studio is closed
LOST = "The process that searched has ended unexpectedly. Nothing is lost: “Go on” continues from the ledger."


# -- jobs --------------------------------------------------------------------------------------------------------


def search_row(
    explainer: acex.Explainer,
    is_stopped: IsStopped,
    row: pd.DataFrame,
    arguments: Mapping[str, Any],
    names: Sequence[str] = (),
    extended_to: int | None = None,
) -> Messages:
    """Run or continue the search for one row; `arguments` are those of `Explainer.search`."""
    session = explainer.search(row, **arguments)
    if extended_to is not None:
        session.extend(extended_to)
    session.begin(names)
    best = float("inf")
    for step in session:
        yield "step", step_json(step, session.plan)
        yield "paid", session.box.paid
        if step.best < best:
            best = step.best
            yield "explanation", explanation_json(session.explanation())
        if is_stopped():
            yield "stopped", explanation_json(session.explanation())
            return
    yield "ended", explanation_json(session.explanation())


def explain_rows(
    explainer: acex.Explainer, is_stopped: IsStopped, rows: pd.DataFrame, arguments: Mapping[str, Any]
) -> Messages:
    """Explain many rows, one after the other; `arguments` are those of `Explainer.explain_many`."""
    many = explainer.explain_many(rows, n_jobs=1, progress=False, **arguments)
    for position, e in many.as_finished():
        yield "row", {"position": position, "outcome": e.outcome, "paid": e.n_queries, "error": e.error}
        if is_stopped():
            yield "stopped", None
            return
    yield "ended", None


def _messages(job: Callable[..., Messages], *arguments: Any) -> Messages:
    """The messages of a job; an exception becomes the message "failed"."""
    try:
        yield from job(*arguments)
    except Exception as error:
        yield "failed", str(error) or type(error).__name__


# -- processes ---------------------------------------------------------------------------------------------------


def work(connection: Connection, packed: bytes) -> None:
    """Run jobs received over a connection until it closes; None marks the end of a job's messages, or stops a job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server stops this process
    with suppress(OSError):
        os.nice(NICE)
    explainer = cloudpickle.loads(packed)
    with suppress(EOFError, OSError):  # the server is gone
        while True:
            if (received := connection.recv()) is None:  # a job was stopped after it had ended
                continue
            job, arguments = received
            for message in _messages(
                job, explainer, lambda: connection.poll() and connection.recv() is None, *arguments
            ):
                connection.send(message)
            connection.send(None)


class SubmittedJob:
    """A job that is queued, running or done."""

    def __init__(self, job: Callable[..., Messages], arguments: tuple[Any, ...], receive: Callable[[Message], None]):
        self._job, self._arguments, self.receive = job, arguments, receive
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Stop the job after the current query, or before it starts."""
        with self._lock:
            self._is_stopped = True
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.send(None)

    def run(self, explainer: acex.Explainer, connection: Connection | None) -> None:
        """Run the job, in the process behind a connection or, without one, in this thread.

        Raises:
            EOFError, OSError: the worker process has ended.
        """
        with self._lock:
            if self._is_stopped:
                self.receive(("stopped", None))
                return
            if connection is not None:
                connection.send((self._job, self._arguments))
                self._connection = connection
        here = _messages(self._job, explainer, lambda: self._is_stopped, *self._arguments)
        try:
            for message in here if connection is None else iter(connection.recv, None):
                self.receive(message)
        finally:
            with self._lock:
                self._connection = None


class WorkerPool:
    """Runs a limited number of jobs at once; others are queued.

    Args:
        explainer: sent to each process once. If it cannot be pickled, jobs run in threads here, and pages are slower.
        size: how many jobs may run at once.
    """

    def __init__(self, explainer: acex.Explainer, size: int) -> None:
        self._explainer, self._packed = explainer, b""
        with suppress(Exception):  # pickling a model may raise anything
            self._packed = cloudpickle.dumps(explainer)
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="acex-worker")
        self._jobs: dict[Future[None], SubmittedJob] = {}
        self._workers: list[Worker] = []
        self._idle: deque[Worker] = deque()

    def submit(self, receive: Callable[[Message], None], job: Callable[..., Messages], *arguments: Any) -> SubmittedJob:
        """Queue a job; `receive` is called with each message, in another thread."""
        submitted = SubmittedJob(job, arguments, receive)
        future = self._threads.submit(self._run, submitted)
        self._jobs[future] = submitted
        future.add_done_callback(self._jobs.pop)
        return submitted

    def _run(self, job: SubmittedJob) -> None:
        try:
            worker = self._idle_worker() if self._packed else None
            job.run(self._explainer, worker and worker[1])
            if worker is not None:
                self._idle.append(worker)
        except (EOFError, OSError):
            job.receive(("failed", LOST))

    def warm_up(self) -> None:
        """Start one process in advance."""
        if self._packed:
            self._idle.append(self._idle_worker())

    def _idle_worker(self) -> Worker:
        with suppress(IndexError):
            while not (worker := self._idle.pop())[0].is_alive():
                pass
            return worker
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=work, args=(theirs, self._packed), daemon=True)
        process.start()
        theirs.close()
        self._workers.append((process, ours))
        return self._workers[-1]

    def close(self) -> None:
        """Stop all jobs after their current queries, then terminate the processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for job in list(self._jobs.values()):
            job.stop()
        wait(list(self._jobs), PATIENCE)
        for process, _ in self._workers:
            process.terminate()
