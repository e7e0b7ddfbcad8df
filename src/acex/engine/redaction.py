"""Columns left out of a document about an explanation, with a salted hash of each in their place.

The hash goes into the document's sum. Who keeps what was left out, with the salts, can show later that it was this; who
has the document alone cannot try out values, for the salt is 32 random bytes. What follows from the columns together
stays: labels, and the cost of each row asked, from which one who knows all other columns may reckon how far a column
that was left out has moved.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from acex.engine.certificate import canonical_form, parsed
from acex.values import did_you_mean, joined_words, listed

LEFT_OUT = "the message is left out."


def left_out(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """The columns to leave out, each once, of the features of these names.

    Raises:
        ValueError: there is no such column, or none would be left.
    """
    gone = list(dict.fromkeys(columns))
    unknown = [name for name in gone if name not in names]
    if unknown:
        hint = did_you_mean(unknown[0], names)
        raise ValueError(f"redact: {listed(unknown)} is not a feature; there are {listed(names)}.{hint}")
    if len(gone) == len(names):
        raise ValueError("redact: every column would be left out; at least one has to stay.")
    return gone


def redacted(document: Mapping[str, Any], columns: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document of an explanation without some columns, and what was left out: salt and content of each.

    Raises:
        ValueError: there is no such column, or none would be left.
    """
    names = [feature["name"] for feature in document["space"]["features"]]
    gone = left_out(columns, names)
    if not gone:
        return dict(document), {}
    private = {name: {"salt": secrets.token_hex(32), "column": _column(document, names.index(name))} for name in gone}
    kept = [j for j, name in enumerate(names) if name not in gone]
    space, settings = document["space"], document["settings"]
    # The name of an explanation is a hash of all that was asked for, without a salt.
    about = {name: value for name, value in settings.items() if name != "explanation"}
    hashes = {name: hash_of(str(left["salt"]), left["column"]) for name, left in private.items()}
    words = f"left out of this copy: {joined_words(gone)}. What it says of changes leaves them out too."
    warnings = [w for w in document["warnings"] if not any(name in w for name in gone)]  # they may tell values
    rules = [rule for rule in about.get("rules") or () if not any(_names(rule, name) for name in gone)]
    n_rules = len(about.get("rules") or ()) - len(rules)
    out = {
        **document,
        "error": message(document["error"], gone),
        "factual": _without(document["factual"], gone),
        "counterfactuals": [_without(row, gone) for row in document["counterfactuals"]],
        "changes": [change for change in document["changes"] if change["feature"] not in gone],
        "least_usual": ["" if any(name in w for name in gone) else w for w in document["least_usual"]],
        "needed": [_without(marks, gone) for marks in document["needed"]],
        "warnings": [words, *warnings],
        "asked": [_at(row, kept) for row in document["asked"]],
        "settings": {
            **about,
            "ranges": _without(about.get("ranges") or {}, gone),
            "rules": rules,
            **({"redacted_rules": n_rules} if n_rules else {}),
            "redacted": hashes,
        },
        "space": {**space, "features": _at(space["features"], kept)},
        "deviations": _at(document["deviations"], kept),
    }
    for part in ("columns", "dtypes"):
        if space[part] is not None:
            out["space"][part] = _at(space[part], kept)
    return out, private


def message(error: str | None, gone: Sequence[str]) -> str | None:
    """What may be said of an error where columns are left out: models like to quote the row that they stumbled over."""
    return LEFT_OUT if error and gone else error


def saved(text: str, path: str | Path | None, private: Mapping[str, Any], left_out: str | Path | None) -> str:
    """The text, also written to `path` if given, and what was left out of it to `left_out`."""
    for file, content in ((path, text), (left_out, json.dumps(private, ensure_ascii=False))):
        if file is not None:
            Path(file).write_text(content, encoding="utf-8")
    return text


def hash_of(salt: str, column: Any) -> str:
    """What stands for a column that was left out."""
    form = canonical_form(parsed(json.dumps(column)))
    return hashlib.sha256(f"{salt}\n{form}".encode("ascii")).hexdigest()


def _column(document: Mapping[str, Any], j: int) -> dict[str, Any]:
    """All that a document says of a feature."""
    feature = document["space"]["features"][j]
    return {
        "feature": feature,
        "deviation": document["deviations"][j],
        "range": (document["settings"].get("ranges") or {}).get(feature["name"]),
        "factual": document["factual"].get(feature["name"]),
        "values": [row[j] for row in document["asked"]],
        "rules": [rule for rule in document["settings"].get("rules") or () if _names(rule, feature["name"])],
    }


def _names(rule: str, column: str) -> bool:
    """Does the text of a rule speak of this column?"""
    return re.search(rf"(?<![\w.]){re.escape(column)}(?![\w.])", rule) is not None


def _without(row: Mapping[str, Any], gone: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in gone}


def _at(items: Sequence[Any], kept: Sequence[int]) -> list[Any]:
    return [items[j] for j in kept]
