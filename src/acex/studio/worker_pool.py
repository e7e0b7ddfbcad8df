"""Work that takes a while, and the processes that do it, so that pages stay fast.

A job is a value that travels to a process and yields messages while it runs. Each process holds the explainer and does
one job at a time. If a process dies, nothing is lost: answers are in the ledger, and the next one continues from there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeAlias

import cloudpickle
import pandas as pd

import acex
from acex.studio.serializers import explanation_json, step_json

Message: TypeAlias = tuple[str, Any]
IsStopped: TypeAlias = Callable[[], bool]

DONE, STOP = "done", "stop"
NICE = 19  # of a process that searches: pages come first
PATIENCE = 5.0  # seconds for a process to end by itself
LOST = "The process that searched has ended unexpectedly. Nothing is lost: go on continues from the ledger."


# -- jobs --------------------------------------------------------------------------------------------------------


class StudioJob(Protocol):
    """Something that a process can be given to do."""

    def messages(self, explainer: acex.Explainer, is_stopped: IsStopped) -> Iterator[Message]:
        """What the server is sent meanwhile; `is_stopped` is called between two answers."""


@dataclass(frozen=True)
class WarmUpJob:
    """Does nothing, but starts the process and loads the explainer."""

    def messages(self, explainer: acex.Explainer, is_stopped: IsStopped) -> Iterator[Message]:
        return iter(())


@dataclass(frozen=True)
class SearchJob:
    """The search for one row, from where the ledger has it; `arguments` are those of `Explainer.search`."""

    row: pd.DataFrame
    arguments: Mapping[str, Any]

    def messages(self, explainer: acex.Explainer, is_stopped: IsStopped) -> Iterator[Message]:
        session = explainer.search(self.row, **self.arguments)
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


@dataclass(frozen=True)
class ManyRowsJob:
    """Many rows, one after the other, which learn from each other; the explanations are in the ledger."""

    rows: pd.DataFrame
    arguments: Mapping[str, Any]  # of `Explainer.explain_many`

    def messages(self, explainer: acex.Explainer, is_stopped: IsStopped) -> Iterator[Message]:
        many = explainer.explain_many(self.rows, n_jobs=1, progress=False, **self.arguments)
        for position, e in many.as_finished():
            yield "row", {"position": position, "outcome": e.outcome, "paid": e.n_queries, "error": e.error}
            if is_stopped():
                yield "stopped", None
                return
        yield "ended", None


# -- processes ---------------------------------------------------------------------------------------------------


def work(connection: Connection, packed: bytes) -> None:
    """A process of the pool: does the jobs that come through the connection until that is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    with suppress(OSError):
        os.nice(NICE)
    serve(connection, lambda: cloudpickle.loads(packed))


def serve(connection: Connection, load: Callable[[], acex.Explainer]) -> None:
    """Do jobs until the connection is closed."""

    def is_stopped() -> bool:
        return connection.poll() and connection.recv() == STOP

    explainer: acex.Explainer | None = None
    with suppress(EOFError, OSError):  # the server is gone
        while True:
            job = connection.recv()
            if job == STOP:  # it came too late
                continue
            try:
                explainer = load() if explainer is None else explainer
                for message in job.messages(explainer, is_stopped):
                    connection.send(message)
            except (EOFError, OSError):
                raise
            except Exception as error:
                connection.send(("failed", f"{type(error).__name__}: {error}"))
            connection.send((DONE, None))


class SubmittedJob:
    """A job that waits, runs or is done."""

    def __init__(self, job: StudioJob, note: Callable[[Message], None]) -> None:
        self.job, self.note = job, note
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._is_cancelled = False

    def stop(self) -> None:
        """End it after the answer that is awaited, or before it has begun."""
        with self._lock:
            self._is_cancelled = True
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.send(STOP)

    def begin(self, connection: Connection) -> bool:
        """Send it to a process; False if it was stopped before."""
        with self._lock:
            if self._is_cancelled:
                return False
            connection.send(self.job)
            self._connection = connection
            return True

    def end(self) -> None:
        """Forget the connection: the job is done."""
        with self._lock:
            self._connection = None


class WorkerPool:
    """Runs a limited number of jobs at once; others wait for their turn.

    Args:
        explainer: goes to each process once. One that cannot be pickled works in threads here, and pages are slower.
        size: how many jobs at once.
        in_threads: work in threads of this process.
    """

    def __init__(self, explainer: acex.Explainer, size: int, *, in_threads: bool = False) -> None:
        self._explainer, self._packed, self._in_threads = explainer, b"", in_threads
        if not in_threads:
            try:
                self._packed = cloudpickle.dumps(explainer)
            except Exception:  # a model may raise anything here
                self._in_threads = True
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="acex-worker")
        self._own = threading.local()
        self._workers: list[tuple[Any, Connection]] = []

    def submit(self, job: StudioJob, note: Callable[[Message], None]) -> SubmittedJob:
        """Run a job; `note` is called in another thread with each message, the last of which is "done"."""
        submitted = SubmittedJob(job, note)
        self._threads.submit(self._run, submitted)
        return submitted

    def warm_up(self) -> None:
        """Start one process before it is needed."""
        self.submit(WarmUpJob(), lambda message: None)

    def _run(self, submitted: SubmittedJob) -> None:
        try:
            connection = self._connection()
            if not submitted.begin(connection):
                submitted.note(("stopped", None))
                return
            while (message := connection.recv())[0] != DONE:
                submitted.note(message)
        except (EOFError, OSError):
            self._own.worker = None
            submitted.note(("failed", LOST))
        finally:
            submitted.end()
            submitted.note((DONE, None))

    def _connection(self) -> Connection:
        """To the process of this thread, which is started if there is none."""
        known: tuple[Any, Connection] | None = getattr(self._own, "worker", None)
        if known is not None and known[0].is_alive():  # it may have died while it had nothing to do
            return known[1]
        ours, theirs = multiprocessing.Pipe()
        worker: Any
        if self._in_threads:
            worker = threading.Thread(target=serve, args=(theirs, lambda: self._explainer), daemon=True)
            worker.start()
        else:
            worker = multiprocessing.get_context("spawn").Process(
                target=work, args=(theirs, self._packed), name="acex-worker", daemon=True
            )
            worker.start()
            theirs.close()
        self._own.worker = worker, ours
        self._workers.append(self._own.worker)
        return ours

    def close(self) -> None:
        """End all work after the answers that are awaited."""
        for _, connection in self._workers:
            # Closing alone would not wake a thread that reads.
            with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        for worker, _ in self._workers:
            worker.join(PATIENCE)
            if worker.is_alive() and hasattr(worker, "terminate"):
                worker.terminate()
        self._threads.shutdown(wait=False, cancel_futures=True)
