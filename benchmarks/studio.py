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
            begun = []
            for i in range(SEARCHES):
                body = {"row": {"position": 17 + i}, "wishes": {"budget": 400, "target": []}}
                begun.append(json.loads(asked(host, "/api/searches", body)[1])["id"])
            for identity in begun:  # processes start, once; then they search
                while not json.loads(asked(host, f"/api/searches/{identity}")[1])["n_steps"]:
                    time.sleep(0.1)
            busy = browse(host)
            live = [json.loads(asked(host, f"/api/searches/{i}")[1])["state"] == "running" for i in begun]
            paid = [json.loads(asked(host, f"/api/searches/{i}")[1])["paid"] for i in begun]
        finally:
            process.kill()
            process.wait()
    print(f"{BROWSERS} browsers, {SEARCHES} searches ({sum(live)} still running, {sum(paid)} questions answered)")
    print(
        f"median of a page: {1000 * idle:.1f} ms idle, {1000 * busy:.1f} ms while searches run: {busy / idle:.2f} times"
    )


if __name__ == "__main__":
    main()
