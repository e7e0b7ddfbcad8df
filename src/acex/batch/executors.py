"""Where work is done: in this process, on all cores of this machine, or on a Dask cluster.

An executor is given a tool, a task and items. It takes the tool to each worker once, and yields each item with
`task(tool, item)` as the results come, in any order. An item whose worker keeps dying comes back with `Lost`.
"""

from __future__ import annotations

import socket
import tempfile
import uuid
import warnings
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import cloudpickle

from acex._version import __version__
from acex.errors import ExecutorFailed, MissingExtra
from acex.values import is_count

if TYPE_CHECKING:
    from distributed import Client, Future

MOST_DEATHS = 3  # of workers that had the same item
PATIENCE = 30.0  # seconds for a cluster to say who it is


class Lost(NamedTuple):
    """What comes back for an item whose workers died."""

    reason: str


Task: TypeAlias = Callable[[Any, Any], Any]
Results: TypeAlias = Iterator[tuple[Any, Any]]  # each item with its result, or with `Lost`


class Tool(Protocol):
    """What a task needs in addition to its item."""

    def parts(self) -> Mapping[str, Any]:
        """What it is made of, by the names people know, to say which of them cannot travel."""


class Executor(Protocol):
    """Whatever does the work."""

    is_here: bool  # in this process, where nothing has to travel

    def run(self, tool: Tool, task: Task, items: Iterable[Any]) -> Results:
        """Each item with its result, as they finish."""

    def refuse_file(self, path: Path) -> None:
        """Raise when a file of this machine cannot be shared by all workers."""


class InProcess:
    """One item after the other, here: nothing has to be pickled, and the same seed gives the same results."""

    is_here = True

    def run(self, tool: Tool, task: Task, items: Iterable[Any]) -> Results:
        """Each item with its result, in order."""
        for item in items:
            yield item, task(tool, item)

    def refuse_file(self, path: Path) -> None:
        """Any file can be used."""


class JoblibExecutor:
    """Processes on this machine.

    Args:
        n_jobs: how many; -1 for as many as there are cores.
    """

    is_here = False

    def __init__(self, n_jobs: int = -1) -> None:
        self.n_jobs = n_jobs

    def run(self, tool: Tool, task: Task, items: Iterable[Any]) -> Results:
        """Each item with its result, as they finish; a worker that dies is replaced."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        with _in_a_file(_packed(tool)) as path:
            waiting = iter(items)
            while True:
                started: dict[int, Any] = {}  # and not finished
                try:
                    for n, result in self._side_by_side(_calls(path, task, waiting, started)):
                        yield started.pop(n), result
                    return
                except TerminatedWorkerError:
                    warnings.warn(
                        f"A worker process died. The {len(started)} rows in work are tried again, one by one.",
                        stacklevel=2,
                    )
                    # One of them may be what kills workers: alone in a pool it cannot harm the others.
                    for item in started.values():
                        yield item, self._alone(path, task, item)

    def refuse_file(self, path: Path) -> None:
        """Any file can be used: all workers are on this machine."""

    def _side_by_side(self, calls: Any) -> Any:
        from joblib import Parallel

        # Not more at once than there are workers: what starts later knows more.
        parallel = Parallel(
            self.n_jobs, backend="loky", batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered"
        )
        return parallel(calls)

    def _alone(self, path: Path, task: Task, item: Any) -> Any:
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        for _ in range(MOST_DEATHS - 1):
            try:
                # With one job joblib would stay in this process.
                return Parallel(2, backend="loky")([delayed(_call)(path, task, 0, item)])[0][1]
            except TerminatedWorkerError:
                pass
        return Lost(f"the worker process died {MOST_DEATHS} times at this row, such as for want of memory.")


class DaskExecutor:
    """The workers of a Dask cluster.

    Args:
        client_or_address: a `distributed.Client`, or the address of a scheduler: "tcp://host:8786" or "dask://host:8786".
        timeout: seconds for the scheduler and the workers to answer at the beginning.
    """

    is_here = False

    def __init__(self, client_or_address: Client | str, *, timeout: float = PATIENCE) -> None:
        self._where, self.timeout = client_or_address, timeout

    def run(self, tool: Tool, task: Task, items: Iterable[Any]) -> Results:
        """Each item with its result, as they finish; what a dead worker had is done by another.

        Raises:
            ExecutorFailed: the cluster does not answer, has no workers or another acex, or went away.
        """
        with self._connected() as client, warnings.catch_warnings():
            _refuse_other_versions(client, self.timeout)
            packed = _packed(tool)
            warnings.filterwarnings("ignore", message="Sending large graph")
            with _faults():
                # As a task, not as scattered data: the scheduler can make it again when those who held it have died.
                shared = client.submit(_itself, packed, pure=False)
                client.replicate(shared)
                yield from _as_they_finish(client, (uuid.uuid4().hex, shared), task, iter(items))

    def refuse_file(self, path: Path) -> None:
        """Raise when a worker is on another machine.

        Raises:
            ValueError: one is.
        """
        with self._connected() as client:
            hosts = {host for _, host in _about(client, self.timeout).values()}
        if hosts - {socket.gethostname()}:
            raise ValueError(
                f"The ledger {path} is a file, which workers on {', '.join(sorted(hosts))} cannot share. On a cluster "
                f"use PostgreSQL: ledger='postgresql://user@host/database'."
            )

    @contextmanager
    def _connected(self) -> Iterator[Client]:
        try:
            from distributed import Client
        except ImportError:
            raise MissingExtra("DaskExecutor", "dask") from None
        if not isinstance(self._where, str):
            yield self._where
            return
        address = self._where.replace("dask://", "tcp://")
        try:
            client = Client(address, timeout=self.timeout, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ExecutorFailed(f"No Dask scheduler answers at {address} ({error}).") from error
        with client:
            yield client


# -- joblib ------------------------------------------------------------------------------------------


@contextmanager
def _in_a_file(packed: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="acex-") as folder:
        path = Path(folder) / "tool"
        path.write_bytes(packed)
        yield path


def _calls(path: Path, task: Task, waiting: Iterator[Any], started: dict[int, Any]) -> Iterator[Any]:
    from joblib import delayed

    for n, item in enumerate(waiting):
        started[n] = item
        yield delayed(_call)(path, task, n, item)


def _call(path: Path, task: Task, n: int, item: Any) -> tuple[int, Any]:
    return n, task(_from_file(path), item)


@lru_cache(maxsize=1)
def _from_file(path: Path) -> Any:
    return cloudpickle.loads(path.read_bytes())


def _packed(tool: Tool) -> bytes:
    try:
        return bytes(cloudpickle.dumps(tool))
    except Exception as error:  # of whatever kind the objects raise
        for name, part in tool.parts().items():
            try:
                cloudpickle.dumps(part)
            except Exception as why:
                raise TypeError(
                    f"{name} ({type(part).__name__}) cannot be sent to another process: {why}. Use n_jobs=1, or "
                    f"load it inside a function: model=lambda rows: load().predict(rows)."
                ) from error
        raise


# -- Dask --------------------------------------------------------------------------------------------


def _as_they_finish(client: Client, shared: tuple[str, Future], task: Task, waiting: Iterator[Any]) -> Results:
    from distributed import as_completed

    token, tool = shared
    started: dict[str, tuple[Future, Any]] = {}  # and not finished
    finished = as_completed(loop=client.loop)  # otherwise it uses the default client of this process

    def start() -> None:
        # A few more than there are threads, so that none waits; what starts later knows more.
        room = 2 * max(sum(client.nthreads().values()), 1) - len(started)
        for item in islice(waiting, max(room, 0)):
            future = client.submit(_work, token, tool, task, item, pure=False, retries=2)
            started[future.key] = future, item
            finished.add(future)

    start()
    try:
        for future in finished:
            _, item = started.pop(future.key)
            yield item, _result(future)
            start()
    finally:
        with suppress(Exception):  # of a scheduler that is gone
            client.cancel([tool, *(future for future, _ in started.values())])


@contextmanager
def _faults() -> Iterator[None]:
    """Whatever a client raises whose scheduler or workers go away under it: its own errors, or those of sockets."""
    try:
        yield
    except ExecutorFailed:
        raise
    except (Exception, CancelledError) as error:
        raise ExecutorFailed(
            f"The Dask cluster does not work any more ({type(error).__name__}: {error}). What was answered is in the "
            f"ledger: the same call goes on from there."
        ) from error


def _result(future: Future) -> Any:
    from distributed import KilledWorker

    if future.status in ("cancelled", "lost"):
        raise ExecutorFailed(
            "The Dask scheduler gave up the work, or is gone. What was answered is in the ledger: the same call goes "
            "on from there."
        )
    try:
        return future.result()
    except KilledWorker as error:
        return Lost(f"the workers that had this row died: {error}")
    except Exception as error:
        raise ExecutorFailed(f"A worker could not begin: {type(error).__name__}: {error}") from error


def _itself(packed: bytes) -> bytes:
    return packed


def _work(token: str, packed: bytes, task: Task, item: Any) -> Any:
    tool = _held.get(token)
    if tool is None:
        with _unpacking:  # once, also where a worker has several threads
            tool = _held.get(token) or cloudpickle.loads(packed)
            _held.clear()
            _held[token] = tool
    return task(tool, item)


_held: dict[str, Any] = {}  # the tool of this process, by the token of its run
_unpacking = Lock()


def _refuse_other_versions(client: Client, timeout: float) -> None:
    """Raise unless scheduler and workers have this acex.

    Raises:
        ExecutorFailed: one has not; tasks would fail there, or hang.
    """
    about = _about(client, timeout)
    for who, (version, _) in about.items():
        if version != __version__:
            has = "no acex" if version is None else f"acex {version}"
            raise ExecutorFailed(
                f"The {who} has {has}, and this is acex {__version__}: install acex=={__version__} there."
            )


def _about(client: Client, timeout: float) -> dict[str, tuple[str | None, str]]:
    """Version of acex and host of the scheduler and of each worker."""

    def look() -> tuple[str | None, str]:  # inside, so that it travels as code: there may be no acex to find it in
        import socket

        try:
            from acex._version import __version__
        except ImportError:
            return None, socket.gethostname()
        return __version__, socket.gethostname()

    def ask() -> dict[str, tuple[str | None, str]]:
        client.wait_for_workers(1, timeout=timeout)
        workers = {f"worker {address}": found for address, found in client.run(look).items()}
        return {"scheduler": client.run_on_scheduler(look), **workers}

    # The calls themselves have no limit of time.
    threads = ThreadPoolExecutor(1)
    try:
        return threads.submit(ask).result(2 * timeout)
    except TimeoutError:
        raise ExecutorFailed(
            f"The Dask cluster has no workers, or does not answer, after {timeout:g} s. Is a worker started?"
        ) from None
    finally:
        threads.shutdown(wait=False)


def executor_for(n_jobs: int, executor: Executor | None) -> Executor:
    """Who does the work."""
    from joblib import effective_n_jobs

    if executor is not None:
        if not callable(getattr(executor, "run", None)):
            raise TypeError(f"executor must be acex.DaskExecutor(...) or the like, got {type(executor).__name__}.")
        return executor
    if not (is_count(n_jobs) or n_jobs == -1):
        raise ValueError(f"n_jobs must be -1 (all cores) or a whole number of at least 1, got {n_jobs!r}.")
    return InProcess() if effective_n_jobs(n_jobs) == 1 else JoblibExecutor(n_jobs)
