"""The methods of the benchmark, by the names that the command line knows."""

from __future__ import annotations

from acex.bench.methods import baselines, ours
from acex.bench.methods.method import Method

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("feasible", ours.feasible),
        Method("penalty", ours.penalty),
        Method("nearest", baselines.nearest),
        Method("random", baselines.random),
    )
}
