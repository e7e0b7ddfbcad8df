"""Where rows are explained: in this process, in processes of this machine, or on a Dask cluster.

An executor sends the job to each worker once and yields each item with the result of `task(job, item)` as soon as it is
available, in any order. If the workers of an item keep dying, its result is `Lost`.
"""

from __future__ import annotations

import socket
import tempfile
import warnings
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import cloudpickle

from acex._version import __version__
from acex.errors import ExecutorFailed, optional
from acex.values import is_count

if TYPE_CHECKING:
    from distributed import Client

MOST_DEATHS = 3  # largest number of workers that may die at the same item
TIMEOUT = 30.0  # seconds for a cluster to respond at the start
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # the cores are divided among the workers
RESUME = "Answers so far are in the ledger: the same call continues from there."


class Lost(NamedTuple):
    """The result of an item whose workers died."""

    reason: str


# Executors know nothing about rows: `batch.scheduling` defines the job, the items and the results.
Job: TypeAlias = Any
Item: TypeAlias = Any
Result: TypeAlias = Any
Task: TypeAlias = Callable[[Job, Item], Result]
Results: TypeAlias = "Iterator[tuple[Item, Result | Lost]]"


class Executor(Protocol):
    """Runs a task for each item."""

    def run(self, job: Job, task: Task, items: Iterable[Item]) -> Results:
        """Each item with its result, as they finish."""


class InProcess:
    """One item after another in this process: nothing is pickled, and the same seed gives the same results."""

    def run(self, job: Job, task: Task, items: Iterable[Item]) -> Results:
        """Each item with its result, in order."""
        for item in items:
            yield item, task(job, item)


class JoblibExecutor:
    """Processes on this machine.

    Args:
        n_jobs: number of processes; -1 for one per core.
    """

    def __init__(self, n_jobs: int = -1) -> None:
        self.n_jobs = n_jobs

    def run(self, job: Job, task: Task, items: Iterable[Item]) -> Results:
        """Each item with its result, as they finish; a worker that dies is replaced."""
        from joblib import cpu_count, effective_n_jobs
        from joblib.externals.loky import ProcessPoolExecutor
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        n = effective_n_jobs(self.n_jobs)
        threads = dict.fromkeys(THREADS, str(max(cpu_count() // n, 1)))

        def new_pool() -> ProcessPoolExecutor:  # not joblib's shared pool, which the caller's code may use
            return ProcessPoolExecutor(n, env=threads)

        with tempfile.TemporaryDirectory(prefix="acex-") as folder:
            path = Path(folder) / "job"
            path.write_bytes(_packed(job))
            pool = new_pool()

            def submit(item: Item) -> Future[Result]:
                nonlocal pool
                try:
                    future: Future[Result] = pool.submit(_call, path, task, item)
                except TerminatedWorkerError:
                    pool = new_pool()
                    future = pool.submit(_call, path, task, item)
                return future

            def result(future: Future[Result], item: Item) -> Result | Lost:
                # A worker that dies breaks the pool, so all its rows fail. They are retried one at a time: one of them
                # may be what kills workers, and alone in a pool it does not affect the others.
                for n_deaths in range(MOST_DEATHS):
                    try:
                        return (submit(item) if n_deaths else future).result()
                    except TerminatedWorkerError:
                        warnings.warn("A worker process died. The rows in work are tried again.", stacklevel=2)
                return Lost(f"the worker process died {MOST_DEATHS} times at this row; it may have run out of memory.")

            try:
                # No more items in work than workers: a row that starts later knows more answers.
                yield from _as_finished(submit, result, items, lambda: n)
            except BaseException:  # also if the caller stops early: send nothing more
                pool.shutdown(kill_workers=True)
                raise
            pool.shutdown()


def _as_finished(
    submit: Callable[[Item], Future[Result]],
    result: Callable[[Future[Result], Item], Result | Lost],
    items: Iterable[Item],
    room: Callable[[], int],
) -> Results:
    """Each item with its result, as they finish; at most `room()` items are in work at a time."""
    waiting, in_work = iter(items), dict[Future[Result], Item]()
    while True:
        for item in islice(waiting, max(room() - len(in_work), 0)):
            in_work[submit(item)] = item
        if not in_work:
            return
        for future in wait(in_work, return_when=FIRST_COMPLETED).done:
            item = in_work.pop(future)
            yield item, result(future, item)


class DaskExecutor:
    """The workers of a Dask cluster.

    Args:
        client_or_address: a `distributed.Client`, or the address of a scheduler: "tcp://host:8786" or "dask://host:8786".
        timeout: seconds to wait for the scheduler and the workers at the start.
    """

    def __init__(self, client_or_address: Client | str, *, timeout: float = TIMEOUT) -> None:
        self._where, self.timeout = client_or_address, timeout

    def run(self, job: Job, task: Task, items: Iterable[Item]) -> Results:
        """Each item with its result, as they finish; the items of a dead worker go to another one.

        Raises:
            ExecutorFailed: the cluster does not respond, has no workers or another version of acex, or failed.
            ValueError: the ledger is a file, and a worker is on another machine.
        """
        with self._connected() as client, warnings.catch_warnings():
            self._check(client, job.planner.ledger.path)
            packed = _packed(job)
            warnings.filterwarnings("ignore", message="Sending large graph")
            pool = client.get_executor(pure=False, retries=2)
            try:
                # A task rather than scattered data: the scheduler can recompute it if all workers that hold it die.
                shared = client.submit(bytes, packed, pure=False)
                client.replicate(shared)

                def submit(item: Item) -> Future[Result]:
                    future: Future[Result] = pool.submit(_call, shared, task, item)
                    return future

                # More items than threads, so that none is idle, but few: a row that starts later knows more answers.
                yield from _as_finished(submit, _result, items, lambda: 2 * max(sum(client.nthreads().values()), 1))
            except (Exception, CancelledError) as error:  # errors of the client and of sockets
                raise ExecutorFailed(f"The Dask cluster failed ({type(error).__name__}: {error}). {RESUME}") from error
            finally:
                with suppress(Exception):  # the scheduler may no longer respond
                    pool.shutdown(wait=False)

    def _connected(self) -> AbstractContextManager[Client]:
        distributed = optional("distributed", "DaskExecutor", "dask")
        if isinstance(self._where, distributed.Client):
            return nullcontext(self._where)
        try:
            address = self._where.replace("dask://", "tcp://")
            connected: AbstractContextManager[Client] = distributed.Client(
                address, timeout=self.timeout, set_as_default=False
            )
        except (OSError, ValueError, TimeoutError) as error:
            raise ExecutorFailed(f"No Dask scheduler answers at {self._where} ({error}).") from error
        return connected

    def _check(self, client: Client, ledger_file: Path | None) -> None:
        """Raise unless scheduler and workers have this version of acex and can open the ledger."""

        def identify() -> tuple[str, str]:  # a local function is sent as code: acex may be missing there
            import socket

            from acex._version import __version__

            return __version__, socket.gethostname()

        try:
            client.wait_for_workers(1, timeout=self.timeout)
            found = {client.run_on_scheduler(identify), *client.run(identify).values()}
        except TimeoutError:
            raise ExecutorFailed(f"The Dask cluster has no workers after {self.timeout:g} s.") from None
        except ImportError as error:
            raise ExecutorFailed(f"The Dask scheduler or a worker has no acex ({error}): install it there.") from None
        if others := sorted({version for version, _ in found} - {__version__}):
            raise ExecutorFailed(f"The Dask cluster has acex {', '.join(others)}, and this is acex {__version__}.")
        hosts = {host for _, host in found} - {socket.gethostname()}
        if ledger_file is not None and hosts:
            raise ValueError(
                f"ledger: {ledger_file} is a file, which workers on {', '.join(sorted(hosts))} cannot open. On a "
                f"cluster use PostgreSQL: ledger='postgresql://user@host/database'."
            )


def _result(future: Future[Result], item: Item) -> Result | Lost:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        return Lost(f"the workers that had this row died: {error}")


# -- on a worker -----------------------------------------------------------------------------------------------


def _call(packed: bytes | Path, task: Task, item: Item) -> Result:
    return task(_unpacked(packed), item)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes | Path) -> Job:
    return cloudpickle.loads(packed.read_bytes() if isinstance(packed, Path) else packed)


def _packed(job: Job) -> bytes:
    try:
        return bytes(cloudpickle.dumps(job))
    except Exception as error:  # pickling may raise anything
        raise TypeError(
            f"the model, a rule or another option cannot be sent to another process: {error}. Use n_jobs=1, or load "
            f"it inside a function: model=lambda rows: load().predict(rows)."
        ) from error


def executor_for(n_jobs: int, executor: Executor | None) -> Executor:
    """The executor if one is given, or else one for this number of processes."""
    from joblib import effective_n_jobs

    if executor is not None:
        if not hasattr(executor, "run"):
            raise TypeError(f"executor: expected acex.DaskExecutor(...) or the like, got {type(executor).__name__}.")
        return executor
    if not (is_count(n_jobs) or n_jobs == -1):
        raise ValueError(f"n_jobs: expected -1 (all cores) or a whole number of at least 1, got {n_jobs!r}.")
    return InProcess() if effective_n_jobs(n_jobs) == 1 else JoblibExecutor(n_jobs)
