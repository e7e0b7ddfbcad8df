"""Cost and answer of every query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import FigureBase
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.engine.explanation import Explanation
from acex.show.plots.style import BEST, HIT, MISS, legend

WIDE = 5  # times the best cost: from here on the axis of the costs is logarithmic


@dataclass(frozen=True, eq=False)
class Trace:
    """Every query and what it brought."""

    query: IntArray  # 1, 2, ...; the first is the factual, (n,)
    cost: FloatArray  # (n,)
    is_hit: BoolArray  # (n,)
    best: FloatArray  # cost of the best counterfactual so far, infinite before the first, (n,)
    n_reused: int  # of the queries were known before, and free


def trace_record(explanation: Explanation) -> Trace:
    """Cost and answer of each query, and the cost of the best so far."""
    steps = explanation.steps
    return Trace(
        query=np.arange(1, len(steps) + 1),
        cost=np.array([step.cost for step in steps], dtype=float),
        is_hit=np.array([step.hit for step in steps], dtype=bool),
        best=np.array([step.best for step in steps], dtype=float),
        n_reused=explanation.n_reused,
    )


def draw_trace(trace: Trace, figure: FigureBase) -> None:
    """Hits and misses by their cost, and the cost of the best so far, against queries."""
    axes = figure.add_subplot()
    for is_hit, style in ((True, HIT), (False, MISS)):
        chosen = trace.is_hit == is_hit
        axes.plot(trace.query[chosen], trace.cost[chosen], **style, alpha=0.8, clip_on=False)
    known = np.isfinite(trace.best)
    axes.step(trace.query[known], trace.best[known], where="post", **BEST)
    axes.set_ylabel("cost")
    # The factual costs nothing, but the first queries may cost a hundred times the best.
    most = float(trace.cost.max())
    bend = float(trace.best[known].min()) if known.any() else most
    if 0 < WIDE * bend < most:
        axes.set_yscale("symlog", linthresh=bend)
        axes.set_yticks(_ticks(bend, most))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylabel("cost (logarithmic above the best)")
    axes.set_ylim(0, 1.1 * most or 1.0)
    axes.set_xlim(0, len(trace.query) + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel("queries" + (f" ({trace.n_reused} of them known before)" if trace.n_reused else ""))
    axes.spines[["top", "right"]].set_visible(False)
    legend(axes, {"hit": HIT, "miss": MISS, "best so far": BEST})


def _ticks(bend: float, most: float) -> list[float]:
    """Round numbers up to `most`: none or two below the bend, then one or three a decade."""
    decades = np.arange(np.floor(np.log10(bend)) - 1, np.ceil(np.log10(most)) + 1)
    steps = (1, 2, 5) if most < 200 * bend else (1,)
    round_numbers = [float(f"{step}e{int(decade)}") for decade in decades for step in steps]
    return [0.0, *(number for number in round_numbers if 0.3 * bend <= number <= 1.1 * most)]
