"""How long pages take while four searches run: eight browsers' worth of requests, as a ratio to an idle studio.

python benchmarks/studio.py            # half a minute; a median each, and their ratio
"""

from __future__ import annotations

import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

BROWSERS, SEARCHES = 8, 4
SECONDS = 10.0  # of each measurement
PAUSE = 0.25  # seconds between two pages of a person, who is quick
PAGES = ("/", "/static/search.js", "/api/desk", "/api/rows?q=car&page=1", "/api/rows/17")


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


def browse(host: str) -> float:
    """The median of what pages take for all browsers at once."""
    times: list[float] = []

    def person(n: int) -> None:
        time.sleep(n * PAUSE / BROWSERS)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for path in PAGES:
                times.append(asked(host, path)[0])
                time.sleep(PAUSE)

    people = [threading.Thread(target=person, args=(n,)) for n in range(BROWSERS)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    return statistics.median(times)


def search(host: str, lane: int, over: threading.Event, answered: list[int]) -> None:
    """One search after the other, each of another row, and how many questions they had answered."""
    rows = iter(range(lane, 1000, SEARCHES))
    before = 0
    while not over.is_set():
        body = {"row": {"position": next(rows)}, "wishes": {"budget": 100, "target": []}}
        told = json.loads(asked(host, "/api/searches", body)[1])
        while told["state"] in ("waiting", "running") and not over.is_set():
            time.sleep(0.5)
            told = json.loads(asked(host, f"/api/searches/{told['id']}")[1])
            answered[lane] = before + told["n_steps"]
        before = answered[lane]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "acex", "studio", "--demo", "--port", "0", "--ledger", str(Path(folder, "l.db"))]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        try:
            found = next(m for line in process.stdout if (m := re.search(r"http://\S+", line)))
            host = urlsplit(found[0]).netloc
            asked(host, "/api/rows")  # what is worked out once
            idle = browse(host)
            over, answered = threading.Event(), [0] * SEARCHES
            lanes = [threading.Thread(target=search, args=(host, n, over, answered)) for n in range(SEARCHES)]
            for lane in lanes:
                lane.start()
            while not all(answered):  # processes start, once; then they search
                time.sleep(0.1)
            before = sum(answered)
            busy = browse(host)
            done = sum(answered) - before
            over.set()
            for lane in lanes:
                lane.join()
        finally:
            process.kill()
            process.wait()
    print(f"{BROWSERS} browsers, {SEARCHES} searches at any time, which asked {done} questions meanwhile")
    print(f"median of a page: {1000 * idle:.1f} ms idle, {1000 * busy:.1f} ms with searches: {busy / idle:.2f} times")


if __name__ == "__main__":
    main()
