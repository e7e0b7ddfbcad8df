"""How long pages take while four searches run: eight browsers' worth of requests, as a ratio to an idle studio.

Idle and busy phases alternate, so that whatever else the machine does is in both.

python benchmarks/studio.py [--out benchmarks/results/studio.csv]     # two minutes
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

BROWSERS, SEARCHES = 8, 4
ROUNDS = 6  # of an idle phase and a busy one
SECONDS = 5.0  # of each phase
PAUSE = 0.25  # seconds between two pages of a person, who is quick
PAGES = ("/", "/static/search.js", "/api/workspace", "/api/rows?q=car&page=1", "/api/rows/17")
LIVE = ("waiting", "running", "stopping")


def asked(host: str, path: str, body: object = None) -> tuple[float, bytes]:
    """Seconds that an answer took, and what it was."""
    connection = http.client.HTTPConnection(host, timeout=60)
    start = time.perf_counter()
    if body is None:
        connection.request("GET", path)
    else:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    connection.close()
    return time.perf_counter() - start, text


def browse(host: str) -> list[tuple[str, float]]:
    """What each page took, for all browsers at once."""
    times: list[tuple[str, float]] = []

    def person(n: int) -> None:
        time.sleep(n * PAUSE / BROWSERS)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for path in PAGES:
                times.append((path, asked(host, path)[0]))
                time.sleep(PAUSE)

    people = [threading.Thread(target=person, args=(n,)) for n in range(BROWSERS)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    return times


class Lane:
    """One search after the other, each of another row, as long as they are wanted."""

    def __init__(self, host: str, number: int) -> None:
        self.host, self.answered, self.over = host, 0, threading.Event()
        self._rows = iter(range(number, 1000, SEARCHES))
        self._thread = threading.Thread(target=self._search)

    def begin(self) -> None:
        self.over.clear()
        self._thread = threading.Thread(target=self._search)
        self._thread.start()

    def end(self) -> None:
        self.over.set()
        self._thread.join()

    def _search(self) -> None:
        while not self.over.is_set():
            body = {"row": {"position": next(self._rows)}, "options": {"budget": 100, "target": [], "effort": "spend"}}
            result = json.loads(asked(self.host, "/api/searches", body)[1])
            before, address = self.answered, f"/api/searches/{result['id']}"
            while result["state"] in LIVE:
                if self.over.is_set() and result["state"] != "stopping":
                    asked(self.host, f"{address}/stop", {})
                time.sleep(0.5)
                result = json.loads(asked(self.host, address)[1])
                self.answered = before + result["n_steps"]


@contextmanager
def studio() -> Iterator[str]:
    """The demonstration as a process of its own, and its host."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "acex", "studio", "--demo", "--port", "0", "--ledger", str(Path(folder, "l.db"))]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        try:
            found = next(m for line in process.stdout if (m := re.search(r"http://\S+", line)))
            yield urlsplit(found[0]).netloc
        finally:
            process.kill()
            process.wait()


def measured() -> Iterator[dict[str, object]]:
    """A line for each phase and page: its median and how much the searches asked meanwhile."""
    with studio() as host:
        asked(host, "/api/rows")  # what is worked out once
        lanes = [Lane(host, n) for n in range(SEARCHES)]
        for round_ in range(ROUNDS):
            for phase in ("idle", "busy"):
                before = [lane.answered for lane in lanes]
                if phase == "busy":
                    for lane in lanes:
                        lane.begin()
                    while any(lane.answered <= was for lane, was in zip(lanes, before, strict=True)):
                        time.sleep(0.1)
                    before = [lane.answered for lane in lanes]
                times = browse(host)
                questions = sum(lane.answered for lane in lanes) - sum(before)
                for lane in lanes if phase == "busy" else ():
                    lane.end()
                for page in (*PAGES, "all"):
                    mine = [seconds for path, seconds in times if page in (path, "all")]
                    yield {
                        "round": round_,
                        "phase": phase,
                        "page": page,
                        "requests": len(mine),
                        "median_ms": round(1000 * statistics.median(mine), 2),
                        "questions": questions,
                        "cores": os.cpu_count(),
                    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    lines = list(measured())
    if out is not None:
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    print(f"{BROWSERS} browsers, {SEARCHES} searches at any time of the busy phases, {os.cpu_count()} cores")
    for page in (*PAGES, "all"):
        idle, busy = (
            statistics.median([float(str(m["median_ms"])) for m in lines if (m["phase"], m["page"]) == (phase, page)])
            for phase in ("idle", "busy")
        )
        print(f"{page:<24} {idle:7.1f} ms idle {busy:7.1f} ms with searches: {busy / idle:.2f} times")
    asked_meanwhile = sum(int(str(m["questions"])) for m in lines if m["page"] == "all")
    print(f"the searches asked {asked_meanwhile} questions meanwhile")


if __name__ == "__main__":
    main()
