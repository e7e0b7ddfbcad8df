"""Strategy "feasible" of version 0.1.0 on the rows of the suites "anytime-*", in a process that imports that version.

    git worktree add ../acex-0.1.0 8dabb5a
    ACEX_0_1_0=../acex-0.1.0 python -m benchmarks run --suite anytime-forest-1 --methods 0.1.0

It queries its own copy of the model; the caller evaluates the points with the current model, filter and cost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

from acex.arrays import FloatArray

FOLDER = "ACEX_0_1_0"  # environment variable that names the checkout
MODELS = ("forest", "boosting", "logistic", "svc", "mlp")  # models in the benchmark of 0.1.0
SERVER = """
import json, sys
import numpy as np
import acex
from limit import grounds
from threadpoolctl import threadpool_limits

threadpool_limits(1)
for line in sys.stdin:
    data, model, seed, row, n = json.loads(line)
    ground, problems = grounds(data, model, False, seed)
    is_hit = problems.is_hit(row)
    search = acex.search.Search.begin(problems.of(row), acex.Feasible(0.0), row)
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        search = search.tell(query, bool(is_hit(query.point[None])[0]))
    print(json.dumps([query.point.tolist() for query in search.history.queries]), flush=True)
"""


def why_not(model: str) -> str | None:
    """Why 0.1.0 cannot be run with a model; None if it can."""
    if model not in MODELS:
        return f"the benchmark of 0.1.0 has no {model}"
    return None if FOLDER in os.environ else f"{FOLDER} has to name a checkout of 0.1.0"


@cache
def _server() -> subprocess.Popen[str]:
    folder = Path(os.environ[FOLDER]).resolve()
    path = os.pathsep.join([str(folder / "src"), str(folder / "benchmarks")])
    command = [sys.executable, "-W", "ignore", "-c", SERVER]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, stdin=pipe, stdout=pipe, text=True)


def asked(data: str, model: str, seed: int, row: int, n: int) -> FloatArray:
    """The points that 0.1.0 queries for a withheld row, the row itself first, (n, d)."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    print(json.dumps([data, model, seed, row, n]), file=server.stdin, flush=True)
    line = server.stdout.readline()
    if not line:
        raise RuntimeError(f"The process of version 0.1.0 ended with status {server.wait()}.")
    return np.array(json.loads(line))
