"""Pictures of the report as SVG in the page's own fonts and colours: small, sharp in print, and always the same bytes.

`acex verify` makes a page again from its certificate and compares; matplotlib's SVG differs between versions.
"""

from __future__ import annotations

import numpy as np

from acex.show.plots.explanation import Change, Trace
from acex.show.report.html import Markup, tag
from acex.values import readable

WIDTH, HEIGHT = 560.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 8.0, 10.0, 34.0  # margins around the costs
LEAST_GAP = 26.0  # between two labels of an axis
BAR = 120.0  # width of a feature's range


def range_bar(change: Change) -> Markup | None:
    """The feature's range as a line, with a ring for the value before and a diamond for the value after.

    None for categories without an order.
    """
    if not change.low and not change.high:
        return None
    start, end = (8 + (BAR - 16) * min(max(place, 0.0), 1.0) for place in (change.start, change.end))
    drawn = tag(
        "svg",
        tag("line", x1=8, x2=BAR - 8, y1=9, y2=9, class_="range"),
        tag("line", x1=f"{start:.1f}", x2=f"{end:.1f}", y1=9, y2=9, class_="way"),
        tag("circle", cx=f"{start:.1f}", cy=9, r=4, class_="before"),
        tag("path", d=f"M{end - 5:.1f} 9l5 -5l5 5l-5 5z", class_="after"),
        viewBox=f"0 0 {BAR:g} 18",
        width=f"{BAR:g}",
        height=18,
        role="img",
        aria_label=f"from {change.before} to {change.after}, within {change.low} to {change.high}",
    )
    ends = tag("span", tag("span", change.low), tag("span", change.high), class_="ends", aria_hidden="true")
    return tag("span", drawn, ends, class_="bar")


def costs(trace: Trace) -> Markup:
    """Every query by its cost, a dot for a hit and a cross for a miss, and a line for the best so far."""
    n, most, bend = len(trace.query), float(trace.cost.max()) or 1.0, trace.threshold

    def x(query: float) -> float:
        return LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * (query - 1) / max(n - 1, 1)

    def y(cost: float) -> float:
        share = cost / most if bend is None else np.log1p(cost / bend) / np.log1p(most / bend)
        return float(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share)

    levels = _apart([(y(cost), readable(cost)) for cost in (0.0, *_round_numbers(most))])
    queries = _apart([(x(q), f"{q:g}") for q in (n, 1, *_round_numbers(n)) if q >= 1])
    marks = [
        tag("circle", cx=f"{x(q):.1f}", cy=f"{y(c):.1f}", r=3.2, class_="hit")
        if hit
        else tag("path", d=f"M{x(q) - 3:.1f} {y(c) - 3:.1f}l6 6m0 -6l-6 6", class_="miss")
        for q, c, hit in zip(trace.query.tolist(), trace.cost.tolist(), trace.is_hit.tolist(), strict=True)
    ]
    known = np.isfinite(trace.best)
    best = trace.best[known].tolist()
    # Horizontal, then down to the next: each query has the point at the best before it, and its own.
    line = [
        f"{x(q):.1f},{y(cost):.1f}"
        for q, before, after in zip(trace.query[known].tolist(), [*best[:1], *best[:-1]], best, strict=True)
        for cost in (before, after)
    ]
    progress = f"; the best cost fell from {readable(best[0])} to {readable(best[-1])}" if best else ""
    return tag(
        "svg",
        [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="rule") for at, _ in levels],
        tag("polyline", points=" ".join(line), class_="best") if len(best) > 1 else None,
        marks,
        [tag("text", text, x=LEFT - 6, y=f"{at + 4:.1f}", text_anchor="end") for at, text in levels],
        [tag("text", text, x=f"{at:.1f}", y=HEIGHT - BOTTOM + 15, text_anchor="middle") for at, text in queries],
        tag("text", "query", x=WIDTH - RIGHT, y=HEIGHT - 3, text_anchor="end"),
        tag("text", "cost", x=LEFT - 6, y=HEIGHT - 3, text_anchor="end"),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_label=f"Cost of each of {n} queries, {trace.is_hit.sum()} of them hits{progress}.",
        class_="costs",
    )


def _round_numbers(most: float) -> list[float]:
    """1, 2 and 5 times each power of ten up to `most`, the greatest first, over four decades."""
    top = int(np.floor(np.log10(most)))
    numbers = [float(f"{digit}e{power}") for power in range(top, top - 4, -1) for digit in (5, 2, 1)]
    return [number for number in numbers if number <= most]


def _apart(labels: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """The labels that keep their distance from those before them."""
    kept: list[tuple[float, str]] = []
    for at, text in labels:
        if all(abs(at - other) >= LEAST_GAP for other, _ in kept):
            kept.append((at, text))
    return kept
