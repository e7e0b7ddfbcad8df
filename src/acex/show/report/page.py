"""The page about one explanation."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acex.engine.certificate import canonical_form, certified, parsed
from acex.engine.explanation import Explanation, asked_rows, labels_as_text, labels_of, single
from acex.options import DECLARED
from acex.show.plots import Change, changes_record, trace_record
from acex.show.report import drawing, words
from acex.show.report.document import document
from acex.show.report.markup import Child, Markup, joined, table, tag
from acex.show.sentences import one_sentence
from acex.space.feature import Feature
from acex.values import answer_text

MOST_OPEN = 12  # lines of a table that stand open; longer ones are folded on a screen, and printed in full
MOST_SHOWN = 12  # changes of a query that are listed

FACTS = {
    "id": "row",
    "explanation": "explanation",
    "model_id": "model",
    "started_at": "started",
    "finished_at": "ended",
    "n_reference": "known rows",
}
ELSEWHERE = ("target", "ranges", "values", "rules", "class_names")  # shown in other parts of the page


def explanation_page(
    explanation: Explanation, *, price_per_row: float | None = None, sign: str | Path | None = None
) -> str:
    """The whole page, as text. It carries a certificate: all that it says, as JSON with a sum (see `acex verify`).

    Args:
        price_per_row: what a query costs, if that is known.
        sign: a file with an Ed25519 private key (PEM) that signs the certificate.
    """
    return page_of(certified({**explanation.to_dict(), "page": {"price_per_row": price_per_row}}, sign))


def page_of(certificate: str) -> str:
    """The page that a certificate tells of: the same for the same certificate."""
    certificate = canonical_form(parsed(certificate))
    explanation = Explanation.from_json(certificate)
    price_per_row = json.loads(certificate)["page"]["price_per_row"]
    sentence = one_sentence(explanation)
    if not explanation.steps:  # it failed before anything was asked
        return document(sentence, _head(explanation, sentence), _record(explanation), _certificate(certificate))
    sections = (
        _changes(explanation),
        _alternatives(explanation),
        _queries(explanation, price_per_row),
        _held_fixed(explanation),
        _certainty(explanation),
        _record(explanation),
        _certificate(certificate),
    )
    return document(sentence, _head(explanation, sentence), *sections)


# -- the parts -----------------------------------------------------------------------------------------------------


def _head(explanation: Explanation, sentence: str) -> Markup:
    model, name = (explanation.settings.get(what) for what in ("model_id", "id"))
    of_row = None if name is None else f" for row {name}"
    before, after = labels_as_text(explanation)
    becomes = [tag("span", " becomes ", class_="becomes"), tag("b", after)] if explanation.outcome == "found" else None
    n = len(explanation.changes)
    facts: list[Child] = [joined(tag("b", before), becomes)] if explanation.steps else []
    if explanation.outcome == "found":
        facts += [f"{n} of {len(explanation.plan.space)} features changed", f"cost {explanation.costs[0]:.3g}"]
    facts.append(f"{explanation.n_queries} {'query' if explanation.n_queries == 1 else 'queries'} paid")
    return tag(
        "header",
        tag("p", "Counterfactual explanation", of_row, f" of a decision by {model}" if model else None, class_="kind"),
        tag("h1", sentence),
        tag("ul", *(tag("li", fact) for fact in facts), class_="facts"),
        *(
            tag("p", tag("b", "Warning: " if remark.is_warning else "Note: "), str(remark), class_="warning")
            for remark in explanation.remarks
        ),
    )


def _changes(explanation: Explanation) -> Markup | None:
    if explanation.outcome != "found":
        return None
    return _section("What would have to change", _changes_table(explanation, 0), _key())


def _key() -> Markup:
    return tag(
        "p",
        "The line is the range of the feature; the ring is where it is, the diamond where it would have to be. A step "
        "is counted in standard deviations (sd) of the known rows; a category changes or does not. Needed (asked): "
        "without this change the model gave another label. Needed (rules, plausibility, margin, alternatives): without "
        "it the row is not allowed, does not look real, is not as steady as was wished, or too much like another way. "
        "Not checked: perhaps the other changes would do.",
        class_="note",
    )


def _changes_table(explanation: Explanation, i: int) -> Markup:
    """The changes of counterfactual number i; where there are many, the smaller ones folded."""
    changes = changes_record(_led_by(explanation, i), most=len(explanation.plan.space)).shown
    names = [_with_unit(explanation, c.feature) for c in changes]
    cells = [(c.before, tag("b", c.after), drawing.range_bar(c), _step(c), c.needed) for c in changes]
    lines = [(name, *others) for name, others in zip(names, cells, strict=True)]
    header = ("feature", "now", "instead", "within its range", "step", "needed")
    first, rest = lines[:MOST_OPEN], lines[MOST_OPEN:]
    shown = scrolling(table(header, first, class_="changes"), "Changes")
    title = f"{len(rest)} smaller changes"
    more = tag("details", tag("summary", title), scrolling(table(header, rest, class_="changes"), title))
    return joined(shown, more if rest else None)


def _with_unit(explanation: Explanation, name: str) -> Child:
    """The feature's name, and in what it is counted."""
    unit = explanation.plan.space.feature(name).unit
    return [name, tag("span", f" in {unit}", class_="note")] if unit else name


def _led_by(explanation: Explanation, i: int) -> Explanation:
    """The explanation with counterfactual number i as its best."""
    return explanation if i == 0 else single(explanation, i)


def _step(change: Change) -> str:
    if change.step == 0:
        return "not known"  # what a record of an older acex lacks
    return change.far


def _alternatives(explanation: Explanation) -> Markup | None:
    if len(explanation.costs) < 2:
        return None
    labels = _labels(explanation)
    blocks = []
    for i, cost in enumerate(explanation.costs[1:], start=1):
        title = f"{labels[i]}, at a cost of {cost:.3g}"
        blocks += [tag("h3", title), _changes_table(explanation, i)]
    intro = "Each of these rests on at least one feature that the others leave alone."
    return _section("Other ways", tag("p", intro), *blocks)


def _labels(explanation: Explanation) -> list[str]:
    """The label of each counterfactual, from the queries that asked for it."""
    return [answer_text(labels_of(explanation)[place]) for place in explanation.ending.counterfactuals]


def _queries(explanation: Explanation, price_per_row: float | None) -> Markup:
    trace = trace_record(explanation)
    numbers = words.is_about_numbers(explanation)
    key = tag(
        "p",
        tag("span", "●", class_="sign hit"),
        f" a hit: {'a number as it' if numbers else 'the label that'} was wanted. ",
        tag("span", "×", class_="sign miss"),
        " a miss. The line is the cost of the best so far. Cost is the distance from the row, in standard deviations, "
        "with a price on every feature that changes.",
        class_="note",
    )
    picture = tag("figure", drawing.costs(trace)) if len(trace.query) > 1 else None
    asked = _queries_table(explanation)
    n = len(explanation.steps)
    title = f"Every row that was asked ({n})" if n > 1 else "The row that was asked"
    full = "Listed is what differs from the row itself; the rows in full are in the explanation's JSON and its ledger."
    folded = tag("details", tag("summary", title), tag("p", full, class_="note"), scrolling(asked, title))
    return _section(
        "What was asked, and what it cost",
        tag("p", words.price(explanation, price_per_row)),
        picture,
        key if picture else None,
        folded,
    )


def _queries_table(explanation: Explanation) -> Markup:
    space = explanation.plan.space
    X = space.encode(asked_rows(explanation))
    sizes = np.abs(explanation.plan.scale.differences(X, X[0]))
    columns = [asked_rows(explanation)[c].tolist() for c in asked_rows(explanation).columns]
    lines = []
    for i, (step, label) in enumerate(zip(explanation.steps, labels_of(explanation), strict=True)):
        changed = np.flatnonzero(X[i] != X[0])
        changed = changed[np.argsort(-sizes[i, changed], kind="stable")]
        differences = _differences(space.features, columns, changed.tolist(), i)
        kind = "hit" if step.hit else "miss"
        lines.append((i + 1, step.purpose, differences, answer_text(label), kind, f"{step.cost:.3g}"))
    answer = "answer" if words.is_about_numbers(explanation) else "label"
    return table(("query", "why", "what was different", answer, "", "cost"), lines, class_="lines queries")


def _differences(features: Sequence[Feature], columns: list[list[Any]], changed: list[int], i: int) -> Child:
    """What is different in row i, the largest step first."""
    shown = [(features[j], columns[j][0], columns[j][i]) for j in changed[:MOST_SHOWN]]
    parts = [joined(feature.name, " ", tag("b", feature.texts(before, after)[1])) for feature, before, after in shown]
    more = [Markup(f"and {len(changed) - MOST_SHOWN} more")] if len(changed) > MOST_SHOWN else []
    return Markup(", ".join([*parts, *more])) if parts else "nothing"


def _held_fixed(explanation: Explanation) -> Markup:
    space = explanation.plan.space
    row = explanation.factual.tolist()
    best = explanation.counterfactuals.iloc[0].tolist() if explanation.outcome == "found" else None
    changed = set(explanation.changes["feature"])
    lines: list[tuple[Child, ...]] = []
    for j, feature in enumerate(space.features):
        name, now = feature.name, feature.text(row[j])
        if best is None:
            lines.append((name, now, words.may_become(explanation, j)))
            continue
        before, after = feature.texts(row[j], best[j]) if name in changed else (now, "")
        lines.append((name, before, tag("b", after) if after else "same", words.may_become(explanation, j)))
    header = ("feature", "now", "could become") if best is None else ("feature", "now", "instead", "could become")
    drawn = scrolling(table(header, lines, class_="lines"), "The whole row")
    return _section(
        "What was held fixed",
        tag("ul", *(tag("li", sentence) for sentence in words.held_fixed(explanation))),
        _folded(drawn, len(lines), f"The whole row ({len(lines)} features)"),
    )


def _certainty(explanation: Explanation) -> Markup:
    parts = [(tag("dt", title), tag("dd", text)) for title, text in words.certainty(explanation)]
    return _section("How sure we are", tag("dl", parts))


def _record(explanation: Explanation) -> Markup:
    settings = explanation.settings
    lines: list[tuple[str, str]] = [
        ("outcome", explanation.outcome.replace("_", " ")),
        ("stopped by", explanation.stopped_by),
        ("answer wanted" if words.is_about_numbers(explanation) else "label wanted", words.wanted(explanation)),
    ]
    options = {d.name: d.name.replace("_", " ") for d in DECLARED if d.name not in ELSEWHERE}
    shown = FACTS | options | {"acex": "acex", "versions": "with"}
    lines += [(title, _setting(settings[name])) for name, title in shown.items() if settings.get(name) is not None]
    return _section("How it was made", tag("dl", [(tag("dt", k), tag("dd", v)) for k, v in lines], class_="record"))


def _certificate(text: str) -> Markup:
    """All that the page says, for machines; a reader sees the sum."""
    certificate = json.loads(text)["certificate"]
    signed = f"Signed with the key {certificate['public_key']}." if "signature" in certificate else "It is not signed."
    words = (
        "The checksum detects accidental changes. Only a signature protects against deliberate ones, and only if you "
        f"know the signer's key from elsewhere. acex verify checks both, and can query the model again. {signed}"
    )
    return _section(
        "How to check it",
        tag("p", words),
        tag("p", "SHA-256 ", tag("code", certificate["sha256"]), class_="note"),
        tag("details", tag("summary", "The certificate"), tag("pre", text, data_certificate=""), class_="certificate"),
    )


def certificate_in(page: str) -> str:
    """The certificate that a page carries.

    Raises:
        ValueError: there is none.
    """
    found = re.search(r"<pre data-certificate>(.*?)</pre>", page, flags=re.DOTALL)
    if found is None:
        raise ValueError("there is no certificate in it: it is an index, or no page of acex, or one from before 0.2.0.")
    return html.unescape(found[1])


def _setting(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name} {_setting(v)}" for name, v in value.items() if v is not None)
        case float():
            return f"{value:g}"
    return str(value)


# -- building blocks -----------------------------------------------------------------------------------------------


def _section(title: str, *children: Child) -> Markup:
    return tag("section", tag("h2", title), *children)


def _folded(content: Markup, n: int, title: str) -> Markup:
    """The content, folded where it has many lines."""
    return content if n <= MOST_OPEN else tag("details", tag("summary", title), content)


def scrolling(content: Markup, title: str) -> Markup:
    """A wide table that scrolls by itself, so that the page does not; the keyboard reaches it."""
    return tag("div", content, class_="wide", tabindex="0", role="region", aria_label=title)
