"""Where rows are explained: in this process, in processes of this machine, or on a Dask cluster.

An executor sends the job to each worker once and yields each item with `task(job, item)` as the results come, in any
order. An item whose workers keep dying comes with `Lost`.
"""

from __future__ import annotations

import socket
import tempfile
import warnings
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
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
    from distributed import Client

MOST_DEATHS = 3  # of workers at the same item
TIMEOUT = 30.0  # seconds for a cluster to answer at the beginning
RESUME = "Answers so far are in the ledger: the same call continues from there."


class Lost(NamedTuple):
    """The result of an item whose workers died."""

    reason: str


# Executors know nothing of rows: `batch.scheduling` has the job, the items and the results.
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
    """One item after the other, in this process: nothing is pickled, and the same seed gives the same results."""

    def run(self, job: Job, task: Task, items: Iterable[Item]) -> Results:
        """Each item with its result, in order."""
        for item in items:
            yield item, task(job, item)


class JoblibExecutor:
    """Processes on this machine.

    Args:
        n_jobs: how many; -1 for as many as there are cores.
    """

    def __init__(self, n_jobs: int = -1) -> None:
        self.n_jobs = n_jobs

    def run(self, job: Job, task: Task, items: Iterable[Item]) -> Results:
        """Each item with its result, as they finish; a worker that dies is replaced."""
        from joblib import Parallel
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        with tempfile.TemporaryDirectory(prefix="acex-") as folder:
            path = Path(folder) / "job"
            path.write_bytes(_packed(job))
            waiting = iter(items)
            while True:
                in_work: dict[int, Item] = {}  # by position
                # No more in work than there are workers: a row that starts later knows more answers.
                parallel = Parallel(
                    self.n_jobs, backend="loky", batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered"
                )
                try:
                    for position, result in parallel(_calls(path, task, waiting, in_work)):
                        yield in_work.pop(position), result
                    return
                except TerminatedWorkerError:
                    warnings.warn(
                        f"A worker process died. The {len(in_work)} rows in work are tried again, one by one.",
                        stacklevel=2,
                    )
                    # One of them may be what kills workers: alone in a pool it cannot harm the others.
                    for item in in_work.values():
                        yield item, _alone(path, task, item)


def _calls(path: Path, task: Task, waiting: Iterator[Item], in_work: dict[int, Item]) -> Iterator[Any]:
    """What joblib is to call for each item, which is then in work."""
    from joblib import delayed

    for item in waiting:
        in_work[item.position] = item
        yield delayed(_numbered)(path, task, item)


def _alone(path: Path, task: Task, item: Item) -> Result | Lost:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    for _ in range(MOST_DEATHS - 1):
        try:
            # With one job joblib would stay in this process.
            result: Result = Parallel(2, backend="loky")([delayed(_call)(path, task, item)])[0]
            return result
        except TerminatedWorkerError:
            pass
    return Lost(f"the worker process died {MOST_DEATHS} times at this row; it may have run out of memory.")


class DaskExecutor:
    """The workers of a Dask cluster.

    Args:
        client_or_address: a `distributed.Client`, or the address of a scheduler: "tcp://host:8786" or "dask://host:8786".
        timeout: seconds for the scheduler and the workers to answer at the beginning.
    """

    def __init__(self, client_or_address: Client | str, *, timeout: float = TIMEOUT) -> None:
        self._where, self.timeout = client_or_address, timeout

    def run(self, job: Job, task: Task, items: Iterable[Item]) -> Results:
        """Each item with its result, as they finish; another worker does what a dead one had.

        Raises:
            ExecutorFailed: the cluster does not answer, has no workers or another acex, or failed.
            ValueError: the ledger is a file, and a worker is on another machine.
        """
        with self._connected() as client, warnings.catch_warnings():
            _check(_workers(client, self.timeout), job.planner.ledger.path)
            packed = _packed(job)
            warnings.filterwarnings("ignore", message="Sending large graph")
            pool = client.get_executor(pure=False, retries=2)
            try:
                # As a task, not as scattered data: the scheduler can compute it again when its holders have died.
                shared = client.submit(bytes, packed, pure=False)
                client.replicate(shared)
                waiting = iter(items)
                in_work: dict[Future[Result], Item] = {}
                while True:
                    # A few more than there are threads, so that none is idle; a row that starts later knows more.
                    room = 2 * max(sum(client.nthreads().values()), 1) - len(in_work)
                    for item in islice(waiting, max(room, 0)):
                        in_work[pool.submit(_call, shared, task, item)] = item
                    if not in_work:
                        return
                    for future in wait(in_work, return_when=FIRST_COMPLETED).done:
                        yield in_work.pop(future), _result(future)
            except (Exception, CancelledError) as error:  # the client's own, and those of sockets
                raise ExecutorFailed(f"The Dask cluster failed ({type(error).__name__}: {error}). {RESUME}") from error
            finally:
                with suppress(Exception):  # of a scheduler that does not answer any more
                    pool.shutdown(wait=False)

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


def _result(future: Future[Result]) -> Result | Lost:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        return Lost(f"the workers that had this row died: {error}")


def _workers(client: Client, timeout: float) -> dict[str, tuple[str | None, str]]:
    """Version of acex and host of the scheduler and of each worker."""

    def look() -> tuple[str | None, str]:  # inside, so that it is sent as code: there may be no acex to import
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

    threads = ThreadPoolExecutor(1)  # the calls themselves have no time limit
    try:
        return threads.submit(ask).result(2 * timeout)
    except TimeoutError:
        raise ExecutorFailed(
            f"The Dask cluster has no workers, or does not answer, after {timeout:g} s. Is a worker started?"
        ) from None
    finally:
        threads.shutdown(wait=False)


def _check(workers: Mapping[str, tuple[str | None, str]], ledger_file: Path | None) -> None:
    """Raise unless scheduler and workers have this acex and can open the ledger."""
    for name, (version, _) in workers.items():
        if version != __version__:
            has = "no acex" if version is None else f"acex {version}"
            raise ExecutorFailed(
                f"The {name} has {has}, and this is acex {__version__}: install acex=={__version__} there."
            )
    hosts = {host for _, host in workers.values()} - {socket.gethostname()}
    if ledger_file is not None and hosts:
        raise ValueError(
            f"ledger: {ledger_file} is a file, which workers on {', '.join(sorted(hosts))} cannot open. On a cluster "
            f"use PostgreSQL: ledger='postgresql://user@host/database'."
        )


# -- on a worker -----------------------------------------------------------------------------------------------


def _numbered(path: Path, task: Task, item: Item) -> tuple[int, Result]:
    return item.position, _call(path, task, item)


def _call(packed: bytes | Path, task: Task, item: Item) -> Result:
    with _unpacking:  # once, also where a worker has several threads
        job = _unpacked(packed)
    return task(job, item)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes | Path) -> Any:
    return cloudpickle.loads(packed.read_bytes() if isinstance(packed, Path) else packed)


_unpacking = Lock()


def _packed(job: Job) -> bytes:
    try:
        return bytes(cloudpickle.dumps(job))
    except Exception as error:  # objects raise what they like
        for name, part in job.parts().items():
            try:
                cloudpickle.dumps(part)
            except Exception as why:
                raise TypeError(
                    f"{name} ({type(part).__name__}) cannot be sent to another process: {why}. Use n_jobs=1, or "
                    f"load it inside a function: model=lambda rows: load().predict(rows)."
                ) from error
        raise


def executor_for(n_jobs: int, executor: Executor | None) -> Executor:
    """The executor given, or one for so many processes."""
    from joblib import effective_n_jobs

    if executor is not None:
        if not callable(getattr(executor, "run", None)):
            raise TypeError(f"executor: expected acex.DaskExecutor(...) or the like, got {type(executor).__name__}.")
        return executor
    if not (is_count(n_jobs) or n_jobs == -1):
        raise ValueError(f"n_jobs: expected -1 (all cores) or a whole number of at least 1, got {n_jobs!r}.")
    return InProcess() if effective_n_jobs(n_jobs) == 1 else JoblibExecutor(n_jobs)
