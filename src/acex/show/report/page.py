"""The page about one explanation."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from acex.engine.certificate import canonical_form, certified, parsed
from acex.engine.explanation import Explanation, asked_rows, is_reference_row, labels_as_text, labels_of
from acex.options import DECLARED
from acex.plan.target import Measured
from acex.show.plots import changes_record, trace_record
from acex.show.report import drawing
from acex.show.report.html import Child, Markup, bullets, document, joined, scrolling, section, table, tag
from acex.show.sentences import one_sentence
from acex.space.rules import Rule
from acex.values import answer_text, is_missing, joined_words, readable

MOST_OPEN = 12  # lines of a table that are visible; longer ones are folded on a screen, and printed in full
MOST_SHOWN = 12  # changes of a query that are listed
LATELY = 5  # an improvement among the last queries suggests that more would find another

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
    "budget": "The budget was used up.",
    "time": "The time limit was reached.",
    "settled": "The search stopped because further queries were unlikely to pay off.",
    "exhausted": "There was no allowed row left to ask.",
}
CHANGES_KEY = (
    "The line is the range of the feature, the ring its value now, the diamond the value it would need. Steps are in "
    "standard deviations (sd) of the known rows; a category just changes. Needed (asked): without this change the "
    "model gave another answer. Needed (rules, plausibility, margin, alternatives): without it the row breaks a rule, "
    "is implausible, is less robust than requested, or is too similar to another counterfactual. Not checked: the "
    "other changes may be enough."
)
COST_KEY = (
    " a miss. The line is the cost of the best so far. The cost is the distance from the row plus a multiple of the "
    "sum of all changes, in standard deviations."
)
ASKED_KEY = "Only differences from the row itself are listed; the full rows are in the explanation's JSON and ledger."
NOT_CAUSAL = (
    "A counterfactual says how this model would decide, not what would happen in the world. It is not causal advice: "
    "changing one thing in life may change others, and the model may be replaced in the meantime."
)
CERTIFICATE = (
    "The checksum detects accidental changes. Only a signature protects against deliberate ones, and only if you know "
    "the signer's key from elsewhere. acex verify checks both, and can query the model again."
)


def explanation_page(
    explanation: Explanation, *, price_per_row: float | None = None, sign: str | Path | None = None
) -> str:
    """The whole page, as text, with a certificate: the explanation as JSON with a checksum (see `acex verify`).

    Args:
        price_per_row: price of a query, if known.
        sign: a file with an Ed25519 private key (PEM) that signs the certificate.
    """
    return page_of(certified({**explanation.to_dict(), "page": {"price_per_row": price_per_row}}, sign))


def page_of(certificate: str) -> str:
    """The page of a certificate: the same bytes for the same certificate."""
    certificate = canonical_form(parsed(certificate))
    explanation = Explanation.from_json(certificate)
    price_per_row = json.loads(certificate)["page"]["price_per_row"]
    sentence = one_sentence(explanation)
    parts: list[Child] = [_head(explanation, sentence)]
    if explanation.steps:  # none if it failed before anything was asked
        parts += [
            _changes(explanation),
            _alternatives(explanation),
            _queries(explanation, price_per_row),
            _held_fixed(explanation),
            _reliability(explanation),
        ]
    return document(sentence, *parts, _record(explanation), _certificate(certificate))


def certificate_in(page: str) -> str:
    """The certificate that a page contains.

    Raises:
        ValueError: it contains none.
    """
    found = re.search(r"<pre data-certificate>(.*?)</pre>", page, flags=re.DOTALL)
    if found is None:
        raise ValueError("no certificate found: this is an index, a page of another program, or from before 0.2.0.")
    return html.unescape(found[1])


def _head(explanation: Explanation, sentence: str) -> Markup:
    model, name = (explanation.settings.get(what) for what in ("model_id", "id"))
    of_row = None if name is None else f" for row {name}"
    before, after = labels_as_text(explanation)
    facts: list[Child] = []
    if explanation.outcome == "found":
        facts = [
            joined(tag("b", before), tag("span", " becomes ", class_="becomes"), tag("b", after)),
            f"{len(explanation.changes)} of {len(explanation.plan.space)} features changed",
            f"cost {explanation.cost:.3g}",
        ]
    elif explanation.steps:
        facts = [tag("b", before)]
    facts.append(f"{_counted(explanation.n_queries, 'query', 'queries')} paid")
    remarks = [
        tag(
            "p",
            tag("b", "Warning: " if r.is_warning else "Note: "),
            str(r),
            class_="warning" if r.is_warning else "note",
        )
        for r in sorted(explanation.remarks, key=lambda r: not r.is_warning)
    ]
    return tag(
        "header",
        tag("p", "Counterfactual explanation", of_row, f" of a decision by {model}" if model else None, class_="kind"),
        tag("h1", sentence),
        bullets(facts, class_="facts"),
        *remarks,
    )


# -- changes ---------------------------------------------------------------------------------------------------------


def _changes(explanation: Explanation) -> Markup | None:
    if explanation.outcome != "found":
        return None
    key = tag("p", CHANGES_KEY, class_="note")
    return section("What would have to change", _changes_table(explanation, 0), key)


def _alternatives(explanation: Explanation) -> Markup | None:
    if len(explanation.costs) < 2:
        return None
    labels = [answer_text(labels_of(explanation)[place]) for place in explanation.ending.counterfactuals]
    blocks = [
        (tag("h3", f"{labels[i]}, at a cost of {explanation.costs[i]:.3g}"), _changes_table(explanation, i))
        for i in range(1, len(labels))
    ]
    intro = "Each of these changes at least one feature that the others leave unchanged."
    return section("Other ways", tag("p", intro), *blocks)


def _changes_table(explanation: Explanation, i: int) -> Markup:
    """The changes of counterfactual number i; if there are many, the smaller ones are folded."""
    header = ("feature", "now", "instead", "within its range", "step", "needed")
    lines: list[tuple[Child, ...]] = []
    for c in changes_record(explanation, most=len(explanation.plan.space), i=i).shown:
        unit = explanation.plan.space.feature(c.feature).unit
        name: Child = [c.feature, tag("span", f" in {unit}", class_="note")] if unit else c.feature
        step = c.step if _has_scale(explanation) else "not recorded"
        lines.append((name, c.before, tag("b", c.after), drawing.range_bar(c), step, c.needed))
    first, rest = (table(header, part, class_="changes") for part in (lines[:MOST_OPEN], lines[MOST_OPEN:]))
    title = f"{len(lines) - MOST_OPEN} smaller changes"
    more = tag("details", tag("summary", title), scrolling(rest, title)) if len(lines) > MOST_OPEN else None
    return joined(scrolling(first, "Changes"), more)


# -- queries ---------------------------------------------------------------------------------------------------------


def _queries(explanation: Explanation, price_per_row: float | None) -> Markup:
    n, budget, known = explanation.n_queries, explanation.settings.get("budget"), explanation.n_reused
    of = "" if budget is None else f" of at most {budget}"
    money = "" if price_per_row is None else f", at {price_per_row:g} each: {n * price_per_row:.6g} in total"
    reused = f" {_counted(known, 'more answer was', 'more answers were')} already known and free." if known else ""
    spent = f"{n}{of} {'row was' if n == 1 else 'rows were'} sent to the model{money}.{reused}"
    key = tag(
        "p",
        tag("span", "●", class_="sign hit"),
        f" a hit: the model gave {'a number in the range' if _is_measured(explanation) else 'the label'} wanted. ",
        tag("span", "×", class_="sign miss"),
        COST_KEY,
        class_="note",
    )
    picture = [tag("figure", drawing.costs(trace_record(explanation))), key] if len(explanation.steps) > 1 else None
    title = f"Every row that was asked ({len(explanation.steps)})"
    asked = scrolling(_queries_table(explanation), title)
    folded = tag("details", tag("summary", title), tag("p", ASKED_KEY, class_="note"), asked)
    return section("What was asked, and what it cost", tag("p", spent), picture, folded)


def _queries_table(explanation: Explanation) -> Markup:
    space, rows = explanation.plan.space, asked_rows(explanation)
    X = space.encode(rows)
    sizes = np.abs(explanation.plan.scale.differences(X, X[0]))
    columns = [rows[c].tolist() for c in rows.columns]
    lines: list[tuple[Child, ...]] = []
    for i, (step, label) in enumerate(zip(explanation.steps, labels_of(explanation), strict=True)):
        changed = [j for j in np.argsort(-sizes[i], kind="stable").tolist() if X[i, j] != X[0, j]]
        parts: list[str] = []
        for j in changed[:MOST_SHOWN]:
            value = space.features[j].texts(columns[j][0], columns[j][i])[1]
            parts.append(joined(space.features[j].name, " ", tag("b", value)))
        if len(changed) > MOST_SHOWN:
            parts.append(f"and {len(changed) - MOST_SHOWN} more")
        different = Markup(", ".join(parts) or "nothing")
        kind = "hit" if step.hit else "miss"
        lines.append((i + 1, step.purpose, different, answer_text(label), kind, f"{step.cost:.3g}"))
    answer = "answer" if _is_measured(explanation) else "label"
    return table(("query", "why", "what was different", answer, "", "cost"), lines, class_="lines queries")


# -- what was held fixed ---------------------------------------------------------------------------------------------


def _held_fixed(explanation: Explanation) -> Markup:
    row = explanation.factual.tolist()
    best = explanation.counterfactuals.iloc[0].tolist() if explanation.outcome == "found" else row
    changed = set(explanation.changes["feature"])
    lines: list[tuple[Child, ...]] = []
    for j, feature in enumerate(explanation.plan.space.features):
        before, after = feature.texts(row[j], best[j])
        if feature.name not in changed:  # texts has the digits that tell two values apart
            before, after = feature.text(row[j]), ""
        lines.append((feature.name, before, tag("b", after) if after else None, _may_become(explanation, j)))
    title = f"The whole row ({len(lines)} features)"
    drawn = scrolling(table(("feature", "now", "instead", "could become"), lines, class_="lines"), title)
    folded = drawn if len(lines) <= MOST_OPEN else tag("details", tag("summary", title), drawn)
    return section("What was held fixed", bullets(_limits_as_text(explanation)), folded)


def _limits(explanation: Explanation) -> dict[str, tuple[Any, ...] | list[Any]]:
    """The ranges (as tuples) and the lists of allowed values that the caller gave, by feature."""
    space, settings = explanation.plan.space, explanation.settings
    given: dict[str, Any] = {**(settings.get("ranges") or {})}
    for name, limits in given.items():  # version 0.2 had lists of allowed values among the ranges
        given[name] = list(limits) if len(limits) != 2 or space.feature(name).lists_codes else tuple(limits)
    return {**given, **(settings.get("values") or {})}


def _may_become(explanation: Explanation, j: int) -> str:
    """What feature j could become, and why no more than that."""
    feature, now = explanation.plan.space.features[j], explanation.factual.iloc[j]
    if not _has_scale(explanation):
        return "not recorded"
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
    """A sentence for each kind of limit that there was."""
    if not _has_scale(explanation):
        return ["What was frozen or limited is not recorded."]
    space, settings = explanation.plan.space, explanation.settings
    named = {
        "Frozen": [f.name for f in space.features if f.frozen] or ["no feature"],
        "Could only increase": [f.name for f in space.features if f.direction == "increase"],
        "Could only decrease": [f.name for f in space.features if f.direction == "decrease"],
        "Limited by the caller": list(_limits(explanation)),
        "Weighted": [f"{f.name} (× {readable(float(f.weight))})" for f in space.features if f.weight != 1],
    }
    out = [f"{title}: {joined_words(names)}." for title, names in named.items() if names]
    out += [f"Rule: {Rule.of(text, space).sentence}" for text in settings.get("rules") or ()]
    if n := settings.get("redacted_rules"):
        out.append(f"{_counted(n, 'rule is', 'rules are')} left out with the columns that they name.")
    if settings.get("functions"):
        out.append("Functions of the caller checked every changed row.")
    return out


# -- how reliable it is ----------------------------------------------------------------------------------------------


def _reliability(explanation: Explanation) -> Markup:
    parts = [("Who decided", _decided_by(explanation)), ("Is there less to change?", _progress(explanation))]
    if explanation.outcome == "found":
        parts += [("Is it realistic?", _plausibility(explanation)), ("Is it robust?", _robustness(explanation))]
    parts.append(("What it is not", NOT_CAUSAL))
    return section("How reliable it is", tag("dl", [(tag("dt", title), tag("dd", text)) for title, text in parts]))


def _decided_by(explanation: Explanation) -> str:
    if explanation.outcome != "found":
        answers = joined_words([answer_text(label) for label in dict.fromkeys(labels_of(explanation))])
        n = len(explanation.steps)
        rows = "the row itself" if n == 1 else f"the row and {n - 1} changed versions of it"
        return f"The model itself was asked about {rows}. It answered {answers}; wanted was {_wanted(explanation)}."
    text = f"The model itself answered {labels_as_text(explanation)[1]} for the changed row; this is not an estimate."
    if len(explanation.costs) > 1:
        text += " The same holds for each alternative."
    if explanation.ending.votes:
        noise = explanation.settings.get("noise")
        share = "estimated from repeated queries" if noise == "auto" else f"assumed to be {noise:.3g}"
        text += f" The model contradicts itself; the share of wrong answers is {share}. "
        text += f"The row is {explanation.ending.sureness()}."
    return text


def _progress(explanation: Explanation) -> str:
    if explanation.outcome == "already_target":
        return explanation.advice
    if explanation.outcome != "found":
        return f"{explanation.advice} Nothing found does not mean that no counterfactual exists."
    best = np.array([step.best for step in explanation.steps], dtype=float)
    n, last = len(best), int(np.argmax(best == best[-1])) + 1
    trend = f"Query {last} of {n} found the best counterfactual."
    if last > n - LATELY:
        trend += " The search was still improving, so more queries may find a cheaper one."
    odds = "A cheaper counterfactual may exist: not every row was tried."
    if explanation.improvement_odds:
        tenth, quarter, half = (f"{chance:.0%}" for chance in explanation.improvement_odds)
        odds = (
            f"The estimated chance that the search could reach a counterfactual at least 10% cheaper is {tenth}; 25% "
            f"cheaper {quarter}; 50% cheaper {half}. The estimates were learned on simulated tasks."
        )
    return f"{STOPPED[explanation.stopped_by]} {trend} {odds}"


def _plausibility(explanation: Explanation) -> str:
    settings = explanation.settings
    n = settings.get("n_reference")
    among = "the known rows" if n is None else f"the {n} known rows"
    if is_reference_row(explanation):
        return f"It is one of {among}, unchanged."
    if "plausibility" in settings and settings["plausibility"] is None:
        return "Not checked: the plausibility filter was turned off."
    joint = (settings.get("plausibility") or {}).get("kind") == "joint"
    how = f"values that go together as in {among}" if joint else f"local outlier factor among {among}"
    affinity = (
        f"{explanation.affinities[0]:.2f}, where 1 is a typical row" if explanation.affinities else "not recorded"
    )
    proof = "This does not prove that such a person or thing exists."
    return f"It passed the plausibility filter ({how}): affinity {affinity}. {proof}"


def _robustness(explanation: Explanation) -> str:
    text = ""
    if explanation.probabilities:
        text = f"The model gives the changed row a probability of {explanation.probabilities[0]:.2f}. "
    if not explanation.robustness:
        return text + (
            "No margin was requested. The changed row may lie close to the decision boundary: the model, or a "
            "retrained one, may decide otherwise about a slightly different row."
        )
    margin = (explanation.settings.get("strategy") or {}).get("margin")
    requested = "No margin was requested." if is_missing(margin) else f"The requested margin was {margin:g}."
    share = f"{explanation.robustness[0]:.0%}"
    return f"{text}The search estimates that {share} of the rows close to it get the same answer. {requested}"


# -- the record ------------------------------------------------------------------------------------------------------


def _record(explanation: Explanation) -> Markup:
    settings = explanation.settings
    lines = [
        ("outcome", explanation.outcome.replace("_", " ")),
        ("stopped by", explanation.stopped_by),
        ("answer wanted" if _is_measured(explanation) else "label wanted", _wanted(explanation)),
    ]
    options = {d.name: d.name.replace("_", " ") for d in DECLARED if d.name not in ELSEWHERE}
    shown = FACTS | options | {"acex": "acex", "versions": "with"}
    lines += [(title, _setting(settings[name])) for name, title in shown.items() if settings.get(name) is not None]
    return section("How it was made", tag("dl", [(tag("dt", k), tag("dd", v)) for k, v in lines], class_="record"))


def _setting(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name} {_setting(v)}" for name, v in value.items() if v is not None)
        case float():
            return f"{value:g}"
    return str(value)


def _certificate(text: str) -> Markup:
    """The explanation for programs; readers see the checksum."""
    certificate = json.loads(text)["certificate"]
    signed = f"Signed with the key {certificate['public_key']}." if "signature" in certificate else "It is not signed."
    return section(
        "How to check it",
        tag("p", f"{CERTIFICATE} {signed}"),
        tag("p", "SHA-256 ", tag("code", certificate["sha256"]), class_="note"),
        tag("details", tag("summary", "The certificate"), tag("pre", text, data_certificate=""), class_="certificate"),
    )


def _is_measured(explanation: Explanation) -> bool:
    """Is the target a range of numbers, and not a label?"""
    return isinstance(explanation.plan.target, Measured)


def _wanted(explanation: Explanation) -> str:
    """The label or the range of numbers that is wanted."""
    return joined_words(explanation.plan.target.named(explanation.plan.class_names).words, "or")


def _has_scale(explanation: Explanation) -> bool:
    """Are standard deviations and limits recorded? Ledgers of 0.1 do not hold them."""
    return bool(explanation.plan.scale.deviations.any())


def _counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
