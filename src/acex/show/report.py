"""An explanation as a page: a report, which is a single HTML file with its own certificate, or a notice.

`acex verify` renders a page again from its certificate and compares the two, so the same explanation must give the same
bytes. The pictures are SVG written here, because matplotlib's SVG differs between versions.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acex.engine.certificate import canonical_form, certified, parsed
from acex.engine.explanation import (
    Explanation,
    asked_rows,
    changes_counted,
    headings,
    is_reference_row,
    labels_as_text,
    labels_of,
    without,
)
from acex.options import DECLARED
from acex.plan.step import Step
from acex.plan.target import Measured
from acex.show.html import render
from acex.show.notice import notice_page
from acex.show.records import bend, changes_record
from acex.show.sentences import OUTCOMES, cost_texts, one_sentence, robustness_sentence
from acex.values import answer_text, is_missing, joined_words, readable

MOST_SHOWN = 12  # maximum number of changes listed per query
LATELY = 5  # an improvement within the last 5 queries suggests that more queries would find another

FACTS = {
    "id": "row",
    "explanation": "explanation",
    "model_id": "model",
    "started_at": "started",
    "finished_at": "ended",
    "n_reference": "known rows",
}
ELSEWHERE = ("target", "ranges", "values", "rules", "class_names")  # shown in other parts of the page
STOPPED = {
    "budget": "The budget was used up, or too little of it was left to check a cheaper answer.",
    "time": "The time limit was reached.",
    "settled": "The search stopped because more queries were unlikely to pay off.",
    "exhausted": "There was no allowed row left to send.",
    "unfinished": "The search has not ended.",
}


def explanation_page(
    explanation: Explanation, *, price_per_row: float | None = None, sign: str | Path | None = None
) -> str:
    """The report as HTML, with a certificate: the explanation as JSON with a checksum (see `acex verify`).

    Args:
        price_per_row: price of a query, if known.
        sign: file with an Ed25519 private key (PEM), used to sign the certificate.
    """
    return page_of(certified({**explanation.to_dict(), "page": {"price_per_row": price_per_row}}, sign))


def page(
    explanation: Explanation,
    profile: str = "report",
    *,
    redact: Iterable[str] = (),
    price_per_row: float | None = None,
    sign: str | Path | None = None,
    fields: Mapping[str, Any] | str | Path | None = None,
    template: str | Path = "english",
) -> str:
    """The page as HTML.

    Args:
        profile: "report" or "notice".
        redact: features to leave out.
        price_per_row, sign: for a report, see `explanation_page`.
        fields, template: for a notice, see `acex.show.notice.notice_page`.
    """
    if profile not in ("report", "notice"):
        raise ValueError(f"profile must be 'report' or 'notice', got {profile!r}.")
    explanation = without(explanation, redact)
    if profile == "report":
        return explanation_page(explanation, price_per_row=price_per_row, sign=sign)
    if fields is None:
        raise ValueError("profile 'notice' needs fields: a mapping or a TOML file; see docs/audit.md.")
    if sign is not None:
        raise ValueError("sign: a notice has no certificate; sign the report.")
    return notice_page(explanation, fields, template)


def page_of(certificate: str) -> str:
    """Render the page of a certificate; the same certificate gives the same bytes."""
    certificate = canonical_form(parsed(certificate))
    document = json.loads(certificate)
    explanation = Explanation.from_json(certificate)
    values = {**_result(explanation), **_reliability(explanation)}
    if explanation.steps:  # empty if it failed before the first query
        values |= _queries(explanation)
    return render(
        "report.html",
        e=explanation,
        **values,
        price_per_row=document["page"]["price_per_row"],
        certificate=certificate,
        sha256=document["certificate"]["sha256"],
        public_key=document["certificate"]["public_key"] if "signature" in document["certificate"] else None,
    )


def certificate_in(page: str) -> str:
    """The certificate in a page.

    Raises:
        ValueError: the page contains none.
    """
    found = re.search(r"<pre data-certificate>(.*?)</pre>", page, flags=re.DOTALL)
    if found is None:
        raise ValueError("no certificate found: this is an index, a page of another program, or from before 0.2.0.")
    return html.unescape(found[1])


def _result(explanation: Explanation) -> dict[str, Any]:
    """The counterfactuals found, and the record of the search, for the template."""
    before, after = labels_as_text(explanation)
    answers = [answer_text(label) for label in labels_of(explanation)]
    costs = cost_texts(explanation.costs)
    ways = [text.removeprefix("or ").removesuffix(":") for text in headings(explanation)]
    return {
        "title": one_sentence(explanation),
        "is_measured": isinstance(explanation.plan.target, Measured),
        "before": before,
        "after": after,
        "answers": joined_words(list(dict.fromkeys(answers))) if answers else "",
        "wanted": _wanted(explanation),
        "changed": changes_counted(explanation),
        "remarks": [(r.is_warning, r.text) for r in sorted(explanation.remarks, key=lambda r: not r.is_warning)],
        "ways": [
            {"heading": heading, "label": answers[place], "cost": costs[i], "changes": changes_record(explanation, i)}
            for i, (place, heading) in enumerate(zip(explanation.ending.counterfactuals, ways, strict=True))
        ],
        "record": _record(explanation),
    }


# -- queries ---------------------------------------------------------------------------------------------------------


def _queries(explanation: Explanation) -> dict[str, Any]:
    """Every row that was queried, as a picture and as a table, and what each feature could become."""
    space, rows = explanation.plan.space, asked_rows(explanation)
    X = space.encode(rows)
    sizes = np.abs(explanation.plan.scale.differences(X, X[0]))
    columns = [rows[c].tolist() for c in rows.columns]
    queries = []
    for i, (step, label) in enumerate(zip(explanation.steps, labels_of(explanation), strict=True)):
        changed = [j for j in np.argsort(-sizes[i], kind="stable").tolist() if X[i, j] != X[0, j]]
        texts = [
            (space.features[j].name, space.features[j].texts(columns[j][0], columns[j][i])[1])
            for j in changed[:MOST_SHOWN]
        ]
        if not changed and step.cost and "redacted" in explanation.settings:
            texts = [("redacted features", "differ")]
        query = {"purpose": step.purpose, "changed": texts, "n_more": max(len(changed) - MOST_SHOWN, 0)}
        queries.append(query | {"answer": answer_text(label), "is_hit": step.hit, "cost": f"{step.cost:.3g}"})
    return {
        "picture": _picture(explanation.steps),
        "queries": queries,
        "limits": _limits_as_text(explanation),
        "features": _features(explanation),
    }


def _picture(steps: Sequence[Step]) -> dict[str, Any]:
    """The positions of all elements in the picture of costs against queries, in pixels."""
    width, height, left, right, top, bottom = 560, 230, 48, 552, 10, 196
    n, most, turn = len(steps), max(step.cost for step in steps) or 1.0, bend(steps)

    def x(query: float) -> float:
        return left + 8 + (right - left - 16) * (query - 1) / max(n - 1, 1)

    def y(cost: float) -> float:
        share = cost / most if turn is None else np.log1p(cost / turn) / np.log1p(most / turn)
        return float(bottom - (bottom - top) * share)

    known = [(query, step.best) for query, step in enumerate(steps, 1) if np.isfinite(step.best)]
    best = [cost for _, cost in known]
    progress = f"; the best cost fell from {readable(best[0])} to {readable(best[-1])}" if best else ""
    return {
        **{"width": width, "height": height, "left": left, "right": right, "bottom": bottom},
        "levels": _apart([(y(cost), readable(cost)) for cost in (0.0, *_round_numbers(most))]),
        "queries": _apart([(x(q), f"{q:g}") for q in (n, 1, *_round_numbers(n)) if q >= 1]),
        "marks": [(x(query), y(step.cost), step.hit) for query, step in enumerate(steps, 1)],
        # A step line: each query has two points, at the best cost before it and at its own.
        "best": [
            (x(query), y(cost))
            for (query, after), before in zip(known, [*best[:1], *best[:-1]], strict=True)
            for cost in (before, after)
        ],
        "description": f"Cost of each of {n} queries, {sum(step.hit for step in steps)} of them hits{progress}.",
    }


def _round_numbers(most: float) -> list[float]:
    """1, 2 and 5 times powers of ten up to `most`, over four decades, largest first."""
    top = int(np.floor(np.log10(most)))
    numbers = [float(f"{digit}e{power}") for power in range(top, top - 4, -1) for digit in (5, 2, 1)]
    return [number for number in numbers if number <= most]


def _apart(labels: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """The labels of an axis, without those closer than 26 pixels to an earlier one."""
    kept: list[tuple[float, str]] = []
    for at, text in labels:
        if all(abs(at - other) >= 26 for other, _ in kept):
            kept.append((at, text))
    return kept


# -- what was held fixed ---------------------------------------------------------------------------------------------


def _features(explanation: Explanation) -> list[tuple[str, str, str, str]]:
    """For each feature: its name, its value before and (if changed) after, and what it could become."""
    row = explanation.factual.tolist()
    best = explanation.counterfactuals.iloc[0].tolist() if explanation.outcome == "found" else row
    changed = set(explanation.changes["feature"])
    lines = []
    for j, feature in enumerate(explanation.plan.space.features):
        is_changed = feature.name in changed
        before, after = feature.texts(row[j], best[j]) if is_changed else (feature.text(row[j]), "")
        lines.append((feature.name, before, after, _may_become(explanation, j)))
    return lines


def _limits(explanation: Explanation) -> dict[str, tuple[Any, ...] | list[Any]]:
    """The ranges (as tuples) and the lists of allowed values that the caller gave, by feature."""
    settings = explanation.settings
    ranges = {name: tuple(limits) for name, limits in (settings.get("ranges") or {}).items()}
    return {**ranges, **(settings.get("values") or {})}


def _may_become(explanation: Explanation, j: int) -> str:
    """What feature j could become, and what limited it."""
    feature, now = explanation.plan.space.features[j], explanation.factual.iloc[j]
    if feature.frozen:
        return "frozen"
    if explanation.plan.scale.deviations[j] == 0:
        return "unchanged: the same in all known rows"
    limits = _limits(explanation).get(feature.name)
    if limits is None and is_missing(now):
        return "stays missing: no value was allowed"
    if limits == [None]:
        return "missing, as requested"
    bounds = feature.span() if limits is None else f"limited to {feature.span(limits)}"
    if feature.direction is None:
        return bounds
    return f"{bounds}; only {'more' if feature.direction == 'increase' else 'less'} than {feature.text(now)}"


def _limits_as_text(explanation: Explanation) -> list[str]:
    """One sentence per kind of limit that applied."""
    space, settings = explanation.plan.space, explanation.settings
    n_frozen = settings.get("redacted_frozen", 0)
    named = {
        "Frozen": [f.name for f in space.features if f.frozen] or ["no feature"] * (not n_frozen),
        "Could only increase": [f.name for f in space.features if f.direction == "increase"],
        "Could only decrease": [f.name for f in space.features if f.direction == "decrease"],
        "Limited by the caller": list(_limits(explanation)),
        "Weighted": [f"{f.name} (× {readable(float(f.weight))})" for f in space.features if f.weight != 1],
    }
    out = [f"{title}: {joined_words(names)}." for title, names in named.items() if names]
    if n_frozen:
        out.append("One frozen column is redacted." if n_frozen == 1 else f"{n_frozen} frozen columns are redacted.")
    out += [f"Rule: {text}" for text in settings.get("rules") or ()]
    if n := settings.get("redacted_rules"):
        out.append("1 rule names a redacted column." if n == 1 else f"{n} rules name redacted columns.")
    if settings.get("functions"):
        out.append("Functions of the caller checked every changed row.")
    return out


# -- how reliable it is, and how it was made -------------------------------------------------------------------------


def _reliability(explanation: Explanation) -> dict[str, Any]:
    """Values for the sections "Who decided", "Is there less to change?", "Is it realistic?" and "Is it robust?"."""
    settings = explanation.settings
    best = [step.best for step in explanation.steps]
    found_by = best.index(best[-1]) + 1 if best else 0
    kind = (settings.get("plausibility") or {}).get("kind")
    margin = (settings.get("strategy") or {}).get("margin")
    return {
        "stopped": STOPPED.get(explanation.stopped_by, ""),
        "found_by": found_by,
        "still_improving": found_by > len(best) - LATELY and explanation.stopped_by != "settled",
        "odds": [f"{chance:.0%}" for chance in explanation.improvement_odds],
        "is_reference_row": is_reference_row(explanation),
        "plausibility": "off" if settings.get("plausibility", {}) is None else kind,
        "affinity": next(iter(explanation.affinities), None),
        "probability": next(iter(explanation.probabilities), None),
        "robustness": robustness_sentence(explanation.robustness[0]) if explanation.robustness else None,
        "margin": None if is_missing(margin) else margin,
    }


def _record(explanation: Explanation) -> list[tuple[str, str]]:
    """The options and circumstances of the search, by name."""
    settings = explanation.settings
    lines = [
        ("outcome", OUTCOMES[explanation.outcome]),
        ("stopped by", explanation.stopped_by),
        ("answer wanted" if isinstance(explanation.plan.target, Measured) else "decision wanted", _wanted(explanation)),
    ]
    options = {d.name: d.name.replace("_", " ") for d in DECLARED if d.name not in ELSEWHERE}
    shown = FACTS | options | {"acex": "acex", "versions": "with"}
    lines += [(title, _setting(settings[name])) for name, title in shown.items() if settings.get(name) is not None]
    return lines


def _setting(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name} {_setting(v)}" for name, v in value.items() if v is not None)
        case float():
            return f"{value:g}"
    return str(value)


def _wanted(explanation: Explanation) -> str:
    """The target labels or range of numbers, as text."""
    return joined_words(explanation.plan.target.named(explanation.plan.class_names).words, "or")
