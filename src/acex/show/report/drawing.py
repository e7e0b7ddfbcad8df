"""Pictures as SVG with the page's own fonts and colours: small, sharp on paper, and text stays text."""

from __future__ import annotations

import numpy as np

from acex.show.plots import Change, Trace
from acex.show.report.markup import Markup, tag
from acex.values import readable

WIDTH, HEIGHT = 560.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 8.0, 10.0, 34.0  # margins around the costs
WIDE = 5  # times the best cost: from here on high costs are drawn closer together
LEAST_GAP = 26.0  # between two labels of an axis
BAR = 120.0  # width of a feature's range


def range_bar(change: Change) -> Markup | None:
    """A line for the feature's range, with where it was (a ring) and where it goes (a diamond).

    None for categories without an order.
    """
    if not change.low and not change.high:
        return None
    start, end = (8 + (BAR - 16) * min(max(place, 0.0), 1.0) for place in (change.start, change.end))
    words = f"from {change.before} to {change.after}, where {change.low} to {change.high} are possible"
    diamond = f"M{end - 5:.1f} 9l5 -5l5 5l-5 5z"
    drawn = tag(
        "svg",
        tag("line", x1=8, x2=BAR - 8, y1=9, y2=9, class_="range"),
        tag("line", x1=f"{start:.1f}", x2=f"{end:.1f}", y1=9, y2=9, class_="way"),
        tag("circle", cx=f"{start:.1f}", cy=9, r=4, class_="before"),
        tag("path", d=diamond, class_="after"),
        viewBox=f"0 0 {BAR:g} 18",
        width=f"{BAR:g}",
        height=18,
        role="img",
        aria_label=words,
    )
    ends = tag("span", tag("span", change.low), tag("span", change.high), class_="ends", aria_hidden="true")
    return tag("span", drawn, ends, class_="bar")


def costs(trace: Trace) -> Markup:
    """Every query by its cost, a dot for a hit and a cross for a miss, and a line for the best so far."""
    known = np.isfinite(trace.best)
    most = float(trace.cost.max()) or 1.0
    bend = float(trace.best[known].min()) if known.any() else most
    is_wide = 0 < WIDE * bend < most

    def x(query: float) -> float:
        return LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * (query - 1) / max(len(trace.query) - 1, 1)

    def y(cost: float) -> float:
        share = np.log1p(cost / bend) / np.log1p(most / bend) if is_wide else cost / most
        return float(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share)

    levels = _spread([(y(c), readable(c)) for c in _round_numbers(most)])
    numbers = _spread([(x(q), str(q)) for q in _counts(len(trace.query))])
    rules = [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="rule") for at, _ in levels]
    marks = [
        tag("circle", cx=f"{x(q):.1f}", cy=f"{y(c):.1f}", r=3.2, class_="hit")
        if hit
        else tag("path", d=f"M{x(q) - 3:.1f} {y(c) - 3:.1f}l6 6m0 -6l-6 6", class_="miss")
        for q, c, hit in zip(trace.query.tolist(), trace.cost.tolist(), trace.is_hit.tolist(), strict=True)
    ]
    steps: list[str] = []
    for q, best in zip(trace.query[known].tolist(), trace.best[known].tolist(), strict=True):
        corner = [f"{x(q):.1f},{steps[-1].split(',')[1]}"] if steps else []
        steps += [*corner, f"{x(q):.1f},{y(best):.1f}"]
    base = HEIGHT - BOTTOM + 15
    return tag(
        "svg",
        rules,
        tag("polyline", points=" ".join(steps), class_="best") if len(steps) > 1 else None,
        marks,
        [tag("text", text, x=LEFT - 6, y=f"{at + 4:.1f}", text_anchor="end") for at, text in levels],
        [tag("text", text, x=f"{at:.1f}", y=base, text_anchor="middle") for at, text in numbers],
        tag("text", "query", x=WIDTH - RIGHT, y=HEIGHT - 3, text_anchor="end"),
        tag("text", "cost", x=LEFT - 6, y=HEIGHT - 3, text_anchor="end"),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_label=_in_words(trace),
        class_="costs",
    )


def _in_words(trace: Trace) -> str:
    hits = int(trace.is_hit.sum())
    reached = trace.best[np.isfinite(trace.best)]
    best = f"; the best cost fell from {readable(reached[0])} to {readable(reached[-1])}" if len(reached) else ""
    return f"Cost of each of {len(trace.query)} queries, {hits} of them hits{best}."


def _round_numbers(most: float) -> list[float]:
    """Zero, and 1, 2 and 5 times each power of ten up to `most`, the greatest first after zero."""
    top = int(np.floor(np.log10(most)))
    numbers = [float(f"{digit}e{power}") for power in range(top, top - 4, -1) for digit in (5, 2, 1)]
    return [0.0, *(number for number in numbers if number <= most)]


def _counts(n: int) -> list[int]:
    """Numbers of queries worth a label: the last and the first, then round ones."""
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if n <= 12 * s)
    return [n, 1, *range(step, n, step)]


def _spread(labels: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Those of the labels, the first ones first, that do not come too close to each other."""
    kept: list[tuple[float, str]] = []
    for at, text in labels:
        if all(abs(at - other) >= LEAST_GAP for other, _ in kept):
            kept.append((at, text))
    return kept
