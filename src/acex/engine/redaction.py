"""Redaction: columns are left out of the document of an explanation, and a salted hash replaces each of them.

The hash is covered by the certificate. Whoever keeps the redacted columns with their salts can later prove what they
were; someone who has only the document cannot test guesses, because the salt is 32 random bytes. What depends on all
columns together is kept: the labels, and the cost of each row. Someone who knows the person's other values may be able
to infer from these how far a redacted column was moved.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from acex.engine.certificate import canonical_form
from acex.values import Remark, did_you_mean, joined_words, listed

LEFT_OUT = "the message is redacted."


def left_out(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """The distinct columns to leave out; `names` are those of all features.

    Raises:
        ValueError: there is no such column, or no column would remain.
    """
    gone = list(dict.fromkeys(columns))
    unknown = [name for name in gone if name not in names]
    if unknown:
        hint = did_you_mean(unknown[0], names)
        raise ValueError(
            f"redact: {listed(unknown)} is not a feature; there are {listed(names)}.{hint} Columns that the model does "
            "not see are in no file."
        )
    if len(gone) == len(names):
        raise ValueError("redact: every column would be left out; at least one has to stay.")
    return gone


def redacted(document: Mapping[str, Any], columns: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document of an explanation without some columns, and the salt and content of each of these columns.

    Raises:
        ValueError: there is no such column, or no column would remain.
    """
    names = [feature["name"] for feature in document["space"]["features"]]
    gone = left_out(columns, names)
    if not gone:
        return dict(document), {}
    private = {name: {"salt": secrets.token_hex(32), "column": _column(document, names.index(name))} for name in gone}
    kept = [j for j, name in enumerate(names) if name not in gone]
    space, settings = document["space"], document["settings"]
    # The identity of an explanation is an unsalted hash of its plan, against which guesses could be tested.
    settings = {name: value for name, value in settings.items() if name != "explanation"}
    hashes = {name: hash_of(str(left["salt"]), left["column"]) for name, left in private.items()}
    words = f"Redacted in this copy, also in changes and remarks: {joined_words(gone)}."
    note = Remark("redacted", words).to_dict()
    rules = [rule for rule in settings.get("rules") or () if not any(_names(rule, name) for name in gone)]
    n_frozen = sum(feature["name"] in gone and bool(feature.get("frozen")) for feature in space["features"])
    n_rules = len(settings.get("rules") or ()) - len(rules)
    rows, factual = document["counterfactuals"], document["factual"]
    before = settings.get("redacted_changes") or [0] * len(rows)  # of columns that were redacted earlier
    n_changes = [n + sum(row[name] != factual[name] for name in gone) for n, row in zip(before, rows, strict=True)]
    cut = [rule for rule in space.get("relations", ()) if any(_names(rule, name) for name in gone)]
    features = _at(space["features"], kept)
    for j, feature in enumerate(features):
        if any(_names(rule, feature["name"]) for rule in cut):  # computed from a redacted column, so maybe off its grid
            features[j] = _without(feature, ["grid", "digits", "values"])
    out = {
        **document,
        "error": redacted_error(document["error"], gone),
        "factual": _without(document["factual"], gone),
        "counterfactuals": [_without(row, gone) for row in document["counterfactuals"]],
        "changes": [change for change in document["changes"] if change["feature"] not in gone],
        "needed": [_without(marks, gone) for marks in document["needed"]],
        "remarks": [note, *(remark for remark in document["remarks"] if _may_stay(remark, gone))],
        "asked": [_at(row, kept) for row in document["asked"]],
        "settings": {
            **settings,
            "ranges": _without(settings.get("ranges") or {}, gone),
            "values": _without(settings.get("values") or {}, gone),
            "rules": rules,
            **({"redacted_rules": n_rules} if n_rules else {}),
            **({"redacted_frozen": n_frozen} if n_frozen else {}),
            "redacted_changes": n_changes,
            "redacted": {**settings.get("redacted", {}), **hashes},
        },
        "space": {**space, "features": features},
        "deviations": _at(document["deviations"], kept),
    }
    for part in ("columns", "dtypes"):
        if space[part] is not None:
            out["space"][part] = _at(space[part], kept)
    if "relations" in space:
        out["space"]["relations"] = [rule for rule in space["relations"] if rule not in cut]
    return out, private


def redacted_error(error: str | None, gone: Collection[str]) -> str | None:
    """The error, or a placeholder if columns are redacted: many models quote the row that caused the error."""
    return LEFT_OUT if error and gone else error


def saved(
    text: str, path: str | Path | None, private: Mapping[str, Any] | None = None, left_out: str | Path | None = None
) -> str:
    """The text, also written to `path` if given; what was left out of it is written to `left_out` if given."""
    for file, content in ((path, text), (left_out, json.dumps(private, ensure_ascii=False))):
        if file is not None:
            Path(file).write_text(content, encoding="utf-8")
    return text


def hash_of(salt: str, column: Any) -> str:
    """The hash that replaces a column that was left out."""
    return hashlib.sha256(f"{salt}\n{canonical_form(column)}".encode("ascii")).hexdigest()


def _column(document: Mapping[str, Any], j: int) -> dict[str, Any]:
    """Everything in a document about one feature."""
    feature = document["space"]["features"][j]
    rules = [*(document["settings"].get("rules") or ()), *document["space"].get("relations", ())]
    return {
        "feature": feature,
        "deviation": document["deviations"][j],
        "range": (document["settings"].get("ranges") or {}).get(feature["name"]),
        "allowed": (document["settings"].get("values") or {}).get(feature["name"]),
        "factual": document["factual"].get(feature["name"]),
        "values": [row[j] for row in document["asked"]],
        "rules": [rule for rule in rules if _names(rule, feature["name"])],
    }


def _names(rule: str, column: str) -> bool:
    """Whether the text of a rule contains the name of this column."""
    return re.search(rf"(?<![\w.]){re.escape(column)}(?![\w.])", rule) is not None


def _may_stay(remark: Mapping[str, Any], gone: Sequence[str]) -> bool:
    """Whether a remark mentions none of these columns; one from acex 0.2 does not say, so it may mention any."""
    return not (set(remark["columns"]) & set(gone) or remark["code"] == "unspecified")


def _without(row: Mapping[str, Any], gone: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in gone}


def _at(items: Sequence[Any], kept: Sequence[int]) -> list[Any]:
    return [items[j] for j in kept]
