"""Do the tests hold the code? A seeded sample of small faults, planted one by one: `make mutants`, or

    python benchmarks/mutants.py --workers 16      # 200 faults over search, bench and ledger; goes on where it was
    python benchmarks/mutants.py --n 6             # the first six of them
    python benchmarks/mutants.py --again           # those that survived once more, after a test was added
    python benchmarks/mutants.py --report          # what there is

benchmarks/faults.py says what a fault is and draws the sample. Each worker has a copy of the tree under build/mutants.
The quick tests of the three rooms are run once with coverage, for what they reach and how long they take; what is
skipped there (no PostgreSQL, no ACEX_DATA) or fails, which is printed, is left out. Against a fault run the tests that
reach its line, quickest first, and then the others of its room that reach its file, up to the first that fails:
*killed*; *timeout* when a test takes far longer than it did; *survived* otherwise.

Left out are the files that need packages acex does not depend on: bench/methods/peers.py and whitebox.py (methods of
others), and bench/network.py (torch).

Appends to benchmarks/results/mutants.csv a line for each fault as it is decided; a word about each survivor stands in
mutants-words.csv.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import csv
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pandas as pd
from faults import Fault, sample

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/mutants"
OUT = ROOT / "benchmarks/results/mutants.csv"
WORDS = ROOT / "benchmarks/results/mutants-words.csv"
ROOMS = {  # the tests of each room that take seconds
    "search": (
        "acquisition", "alternatives", "belief", "feasible", "hints", "metric", "missing", "noise", "penalty",
        "problem", "maximise", "reverts", "questions", "ranges", "search", "strategy", "surrogate", "wishes",
    ),
    "bench": ("bench", "rivals", "control", "paper", "optimum"),
    "ledger": (
        "cli_ledger", "ledger", "ledger_damage", "ledger_faults", "ledger_journal", "ledger_processes",
        "ledger_versions", "memory_journal", "owner", "purge", "recorded",
    ),
}  # fmt: skip
LEFT_OUT = {f"src/acex/bench/{name}.py" for name in ("methods/peers", "methods/whitebox", "network")}
N, SEED = 200, 0
COLUMNS = ("mutant", "room", "module", "line", "operator", "change", "outcome", "seconds", "tests", "killer")
RUNNING: set[subprocess.Popen[str]] = set()
Map = dict[str, Any]  # "seconds": by test; "lines": by file, by line, the tests that ran it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--n", type=int, default=N)
    parser.add_argument("--again", action="store_true", help="plant the survivors once more")
    parser.add_argument("--report", action="store_true", help="plant nothing")
    args = parser.parse_args()
    drawn = sample(ROOT, modules(), args.n, SEED)
    if not args.report:
        kept = decided(drawn)
        settled = kept[kept["outcome"] != "survived"] if args.again else kept
        plant([fault for fault in drawn if fault.key not in set(settled["mutant"])], args.workers)
    report(decided(drawn), len(drawn))


def modules() -> list[str]:
    """The files in which faults are planted, relative to the root."""
    paths = (path for room in ROOMS for path in (ROOT / "src/acex" / room).rglob("*.py"))
    return sorted({path.relative_to(ROOT).as_posix() for path in paths} - LEFT_OUT)


def decided(drawn: list[Fault]) -> pd.DataFrame:
    """The last line of each fault of the sample."""
    if not OUT.exists():
        return pd.DataFrame(columns=list(COLUMNS))
    lines = pd.read_csv(OUT, keep_default_na=False).drop_duplicates("mutant", keep="last")
    return lines[lines["mutant"].isin({fault.key for fault in drawn})]


def plant(todo: list[Fault], workers: int) -> None:
    """Plant faults, each in a worker's copy, and append what came of them."""
    print(f"{len(todo)} faults are to be planted.", flush=True)
    if not todo:
        return
    shutil.rmtree(BUILD, ignore_errors=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ThreadPoolExecutor(workers) as pool, stopping(pool):
        copies: queue.Queue[Path] = queue.Queue()
        for copy in pool.map(copied, range(workers)):
            copies.put(copy)
        started = time.monotonic()
        reach = reached(pool, copies)
        print(f"{len(reach['seconds'])} tests pass without a fault ({time.monotonic() - started:.0f} s).", flush=True)
        jobs = [pool.submit(judged, fault, reach, copies) for fault in todo]
        new = not OUT.exists()
        with OUT.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if new:
                writer.writeheader()
            for number, job in enumerate(as_completed(jobs), 1):
                line = job.result()
                writer.writerow(line)
                file.flush()
                where = f"{line['module'].removeprefix('src/acex/')}:{line['line']}"
                print(
                    f"{number:3d} {line['outcome']:9s}{line['seconds']:6.1f} s  {where}  {line['change']}", flush=True
                )
    print(f"{time.monotonic() - started:.0f} s in all.")


@contextlib.contextmanager
def stopping(pool: ThreadPoolExecutor) -> Iterator[None]:
    """Whoever stops the run waits for nothing and leaves nothing running."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in list(RUNNING):
            ended(child)
        raise


def ended(child: subprocess.Popen[str]) -> None:
    """End a run of pytest and whatever its tests had started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def copied(number: int) -> Path:
    """A copy of what tests need, compiled."""
    copy = BUILD / f"copy-{number}"
    unneeded = shutil.ignore_patterns(".*", "__pycache__", "build", "site", "node_modules")
    shutil.copytree(ROOT, copy, ignore=unneeded)
    compileall.compile_dir(copy / "src", quiet=2)
    return copy


def reached(pool: ThreadPoolExecutor, copies: queue.Queue[Path]) -> Map:
    """Which test reaches which lines and how long it takes, each file of tests in a process of its own.

    Raises:
        SystemExit: a file of tests ends without a map.
    """

    def run(name: str) -> Map:
        copy = copies.get()
        try:
            out = BUILD / f"map-{name}.json"
            end, text = tested(copy, [name], {"PROBE_MAP": str(out)}, 1800)
            if not out.exists():
                raise SystemExit(f"test_{name}.py does not run without a fault ({end}):\n{text[-3000:]}")
            if failed := [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]:
                print("\n".join(failed), flush=True)
            found: Map = json.loads(out.read_text(encoding="utf-8"))
            return found
        finally:
            copies.put(copy)

    whole: Map = {"seconds": {}, "lines": {}}
    for part in pool.map(run, [name for names in ROOMS.values() for name in names]):
        whole["seconds"].update(part["seconds"])
        for path, lines in part["lines"].items():
            kept = whole["lines"].setdefault(path, {})
            for line, tests in lines.items():
                kept.setdefault(int(line), []).extend(tests)
    return whole


def chosen(fault: Fault, reach: Map) -> dict[str, float]:
    """The tests to run against a fault, in order, and the seconds after which each counts as stuck."""
    seconds: dict[str, float] = reach["seconds"]
    lines: dict[int, list[str]] = reach["lines"].get(fault.module, {})
    first = {test for line in fault.lines for test in lines.get(line, [])}
    of_room = {f"tests/test_{name}.py" for name in ROOMS[room_of(fault)]}
    then = {test for tests in lines.values() for test in tests if test.split("::")[0] in of_room} - first
    order = sorted(first, key=seconds.__getitem__) + sorted(then, key=seconds.__getitem__)
    return {test: 20 + 10 * seconds[test] for test in order}


def judged(fault: Fault, reach: Map, copies: queue.Queue[Path]) -> dict[str, Any]:
    """The line of a fault: planted, tested and taken out again."""
    tests, copy = chosen(fault, reach), copies.get()
    path, listed, killer = copy / fault.module, copy / "probe-tests.json", copy / "probe-killer.txt"
    source, stamp = path.read_bytes(), path.stat()
    listed.write_text(json.dumps(tests), encoding="utf-8")
    killer.unlink(missing_ok=True)
    probe = {"PROBE_TESTS": str(listed), "PROBE_KILLER": str(killer)}
    names = sorted({test.split("::")[0].removeprefix("tests/test_").removesuffix(".py") for test in tests})
    started = time.monotonic()
    try:
        path.write_bytes(fault.planted(source))
        end = tested(copy, names, probe, 1800)[0] if tests else 0
        by = killer.read_text(encoding="utf-8") if killer.exists() else "import" if end in (2, 3, 4) else ""
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # what was compiled from it holds again
        copies.put(copy)
    outcome = "survived" if end == 0 else "killed" if by else "timeout"
    found = {"outcome": outcome, "seconds": round(time.monotonic() - started, 1), "tests": len(tests), "killer": by}
    place = {"mutant": fault.key, "room": room_of(fault), "module": fault.module, "line": fault.line}
    return {**place, "operator": fault.kind, "change": fault.change(source), **found}


def room_of(fault: Fault) -> str:
    return fault.module.split("/")[2]


def tested(copy: Path, names: list[str], probe: dict[str, str], limit: float) -> tuple[int, str]:
    """How pytest ended in a copy (-1: not within the limit), and what it printed."""
    plugins = ("-p", "probe", "-p", "no:cacheprovider", "-p", "no:faulthandler")
    files = [f"tests/test_{name}.py" for name in names]
    order = [sys.executable, "-m", "pytest", "-q", "-n0", *plugins, f"--basetemp={copy}/tmp", *files]
    if "PROBE_TESTS" in probe:
        order.append("-x")
    paths = os.pathsep.join([str(copy / "src"), str(copy / "benchmarks")])
    calm = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.Popen(
        order, cwd=copy, env={**os.environ, **calm, **probe}, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    RUNNING.add(child)
    try:
        text, _ = child.communicate(timeout=limit)
        return child.returncode, text
    except subprocess.TimeoutExpired:
        return -1, ""
    finally:
        ended(child)
        child.wait()
        RUNNING.discard(child)


def report(done: pd.DataFrame, wanted: int) -> None:
    """How many were killed, by room, and which survived, with a word about each."""
    killed = done["outcome"] != "survived"
    for room, part in done.groupby("room"):
        print(f"{room}: {killed[part.index].sum()} of {len(part)} killed")
    print(f"all: {killed.sum()} of {len(done)} killed ({killed.mean():.0%}); {wanted - len(done)} were not planted yet")
    words = dict(pd.read_csv(WORDS).to_numpy()) if WORDS.exists() else {}
    for line in done[~killed].to_dict("records"):
        print(f"  {line['mutant']} {line['module']}:{line['line']}  {line['change']}  {words.get(line['mutant'], '')}")


if __name__ == "__main__":
    main()
