"""The processes that search, so that pages stay quick: each holds the explainer, and does one job at a time.

A process that dies takes nothing with it: what was answered is in the ledger, and the next one goes on from there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

import acex
from acex.studio.jobs import Job, Message, WarmUp

DONE, STOP = "done", "stop"
NICE = 19  # of a process that searches: pages come first, and so does all else
PATIENCE = 5.0  # seconds for a process to end by itself
LOST = "The process that searched has ended unexpectedly. Nothing is lost: go on continues from the ledger."


def work(connection: Connection, packed: bytes) -> None:
    """A process of the crew: does the jobs that come through the connection until that is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server says when it is over
    with suppress(OSError):
        os.nice(NICE)
    serve(connection, lambda: cloudpickle.loads(packed))


def serve(connection: Connection, load: Callable[[], acex.Explainer]) -> None:
    """Do jobs until the connection is closed."""

    def stopped() -> bool:
        return connection.poll() and connection.recv() == STOP

    explainer: acex.Explainer | None = None
    with suppress(EOFError, OSError):  # nobody is there any more
        while True:
            job = connection.recv()
            if job == STOP:  # it came too late
                continue
            try:
                explainer = load() if explainer is None else explainer
                for message in job.messages(explainer, stopped):
                    connection.send(message)
            except (EOFError, OSError):
                raise
            except Exception as error:
                connection.send(("failed", f"{type(error).__name__}: {error}"))
            connection.send((DONE, None))


class Task:
    """A job that waits, runs or is done."""

    def __init__(self, job: Job, note: Callable[[Message], None]) -> None:
        self.job, self.note = job, note
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._is_unwanted = False

    def stop(self) -> None:
        """End it after the answer that is awaited, or before it has begun."""
        with self._lock:
            self._is_unwanted = True
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.send(STOP)

    def begin(self, connection: Connection) -> bool:
        """Send it to a process; False where nobody wants it any more."""
        with self._lock:
            if self._is_unwanted:
                return False
            connection.send(self.job)
            self._connection = connection
            return True

    def end(self) -> None:
        """It is done: nothing is to be sent any more."""
        with self._lock:
            self._connection = None


class Crew:
    """So many jobs at once; others wait for their turn.

    Args:
        explainer: goes to each process once. One that cannot travel works in threads here, and pages are slower.
        most: how many at once.
        here: work in threads of this process.
    """

    def __init__(self, explainer: acex.Explainer, most: int, *, here: bool = False) -> None:
        self._explainer, self._packed = explainer, b""
        self.why_here = "as wanted" if here else ""
        if not here:
            try:
                self._packed = cloudpickle.dumps(explainer)
            except Exception as error:  # a model may raise anything here
                self.why_here = f"{type(error).__name__}: {error}"
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="acex-crew")
        self._mine = threading.local()
        self._members: list[tuple[Any, Connection]] = []

    def do(self, job: Job, note: Callable[[Message], None]) -> Task:
        """Have a job done; `note` is called with each message, in another thread, and with "done" at last."""
        task = Task(job, note)
        self._threads.submit(self._run, task)
        return task

    def warm_up(self) -> None:
        """Start one process before somebody waits for it."""
        self.do(WarmUp(), lambda message: None)

    def _run(self, task: Task) -> None:
        try:
            connection = self._connection()
            if not task.begin(connection):
                task.note(("stopped", None))
                return
            while True:
                message = connection.recv()
                if message[0] == DONE:
                    break
                task.note(message)
        except (EOFError, OSError):
            self._mine.member = None
            task.note(("failed", LOST))
        finally:
            task.end()
            task.note((DONE, None))

    def _connection(self) -> Connection:
        """To the process of this thread; a new one where there is none."""
        known: tuple[Any, Connection] | None = getattr(self._mine, "member", None)
        if known is not None and known[0].is_alive():  # it may have died while it had nothing to do
            return known[1]
        ours, theirs = multiprocessing.Pipe()
        member: Any
        if self.why_here:
            member = threading.Thread(target=serve, args=(theirs, lambda: self._explainer), daemon=True)
            member.start()
        else:
            member = multiprocessing.get_context("spawn").Process(
                target=work, args=(theirs, self._packed), name="acex-crew", daemon=True
            )
            member.start()
            theirs.close()
        self._mine.member = member, ours
        self._members.append(self._mine.member)
        return ours

    def close(self) -> None:
        """End all work after the answers that are awaited."""
        for _, connection in self._members:
            _hang_up(connection)
        for member, _ in self._members:
            member.join(PATIENCE)
            if member.is_alive() and hasattr(member, "terminate"):
                member.terminate()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _hang_up(connection: Connection) -> None:
    """Close both ways at once; closing alone would not wake a thread that reads."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
