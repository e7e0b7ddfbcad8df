"""A notice: a page in plain words for the person about whom a model decided.

What the library cannot know, such as who decided and how to request a human review, comes from *fields*; every sentence
comes from a *template*, a TOML file. Reasons are given in the decider's own words or left out: a counterfactual shows
what would have changed the decision, not why it was made.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from acex.engine.explanation import Explanation, single
from acex.show.html import render
from acex.show.sentences import Templates, answer, check_places, sentences
from acex.values import did_you_mean, is_missing, listed

BUILT_IN = ("english", "german")
LISTS = ("sources", "reasons")
COMPUTED = ("before", "after")  # placeholders that acex fills, in addition to the fields


@dataclass(frozen=True)
class Fields:
    """The parts of a notice that the explanation does not provide, in the language of the notice.

    Attributes:
        organisation: who decided. date: when. subject: what was decided, as in "your request for a loan".
        reference: the number of the case.
        system: what the system is, as a sentence. role: what it does and who decides in the end.
        sources: where the data came from, a list.
        correct: how to have wrong data corrected. human: how to request a review by a person.
        keep_until: until when the data are kept. contact: whom to contact, and how.
        recipient: the name of the person concerned, as in "Dear Ms Miller"; by default the salutation is general.
        reasons: the main reasons of the decision in the decider's own words, a list; by default left out.
        words: the names of features, categories, units and labels in that language.
    """

    organisation: str
    date: str
    subject: str
    reference: str
    system: str
    role: str
    sources: tuple[str, ...]
    correct: str
    human: str
    keep_until: str
    contact: str
    recipient: str = ""
    reasons: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any] | str | Path) -> Fields:
        """The fields in a mapping or a TOML file.

        Raises:
            ValueError: a field is missing, unknown or of the wrong type; the message names it.
        """
        where, values = ("fields", given) if isinstance(given, Mapping) else (str(given), _toml(Path(given)))
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(f"{where}: unknown field {name!r}; known: {listed(known)}.{did_you_mean(name, known)}")
        if missing := [name for name in known if name not in values and name not in ("recipient", "reasons", "words")]:
            raise ValueError(f"{where}: a notice also needs {listed(missing)}; see docs/audit.md.")
        return cls(**{name: _field(name, value, where) for name, value in values.items()})


def _field(name: str, value: Any, where: str) -> Any:
    """The checked value of a field, with lists as tuples and all else but `words` as text."""
    if name == "words":
        kind, valid = "a table of texts", isinstance(value, Mapping) and all(isinstance(v, str) for v in value.values())
    elif name in LISTS:
        kind, valid = "a list of texts", isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)
        valid = valid and all(v.strip() for v in value) and (bool(value) or name == "reasons")
    else:  # TOML has a date type
        kind, valid = "a text", not isinstance(value, (list, Mapping))
        valid = valid and (bool(str(value).strip()) or name == "recipient")
    if not valid:
        raise ValueError(f"{where}: {name!r}: expected {kind}, got {value!r}.")
    return value if name == "words" else tuple(value) if name in LISTS else str(value)


def read_template(template: str | Path = "english") -> dict[str, Any]:
    """Every sentence of a notice by section and name: a built-in template, or a TOML file with the same sections.

    Raises:
        ValueError: a sentence is missing or unknown, or has an unknown placeholder.
    """
    built_in = {name: files("acex.show") / "notices" / f"{name}.toml" for name in BUILT_IN}
    if str(template) in built_in:
        return tomllib.loads(built_in[str(template)].read_text(encoding="utf-8"))
    if not Path(template).is_file():
        raise ValueError(f"{template}: expected a file, or one of {listed(BUILT_IN)}.")
    sections = _toml(Path(template))
    _check_template(sections, read_template(), str(template))
    return sections


def _check_template(given: Any, expected: Mapping[str, Any], where: str) -> None:
    """Raise unless the sections, or the sentences of a section, match those of the built-in template."""
    if not isinstance(given, dict):
        raise ValueError(f"{where}: expected a section, got {given!r}.")
    if wrong := [name for name in {**expected, **given} if name not in given or name not in expected]:
        raise ValueError(f"{where}: {wrong[0]!r} is {'unknown' if wrong[0] in given else 'missing'}.")
    places = [f.name for f in fields(Fields) if f.name not in (*LISTS, "words")] + [*COMPUTED]
    for name, text in given.items():
        if isinstance(expected[name], dict):
            _check_template(text, expected[name], f"{where}: [{name}]")
        elif not isinstance(text, str):
            raise ValueError(f"{where}: {name!r}: expected a text, got {text!r}.")
        elif not where.endswith("[sentences]"):  # `Templates` checks these
            check_places(f"{where}: {name!r}", text, places)


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"{path}: file not found.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None


def notice_page(e: Explanation, given: Mapping[str, Any] | str | Path, template: str | Path = "english") -> str:
    """The notice about an explanation, as HTML.

    Args:
        given: the fields (see `Fields`), or a TOML file with them.
        template: "english", "german" or a TOML file.
    """
    own, parts = Fields.of(given), read_template(template)
    if not e.steps:
        raise ValueError(f"there is no decision to explain: {e.error}")
    if any(e.settings.get("redacted_changes", ())):
        raise ValueError(
            f"the counterfactual changes a redacted column, of {listed(e.settings['redacted'])}: no notice."
        )
    language = Templates(**parts["sentences"], words={**parts["words"], **own.words})
    values = {f.name: str(getattr(own, f.name)) for f in fields(own)}
    values["before"] = answer(e, language, 0)
    values["after"] = "" if e.label_after is None else answer(e, language, 1)

    text: dict[str, Any] = {
        name: {part: str(sentence).format(**values) for part, sentence in section.items()}
        for name, section in parts.items()
        if isinstance(section, dict) and name not in ("sentences", "words")
    }
    return render(
        "notice.html",
        language=str(parts["language"]),
        title=str(parts["title"]).format(**values),
        text=text,
        own=own,
        ways=[sentences(single(e, i), language) for i in range(len(e.costs))],
        unchanged="already" if e.outcome == "already_target" else "nothing",
        frozen=[language.word(f.name) for f in e.plan.space.features if f.frozen],
        rules=[language.word(rule) for rule in e.settings.get("rules") or ()],
        has_more_fixed=any(e.settings.get(name) for name in ("redacted_frozen", "redacted_rules", "functions")),
        is_redacted="redacted" in e.plan.settings,
        data=[(language.word(f.name), _value(e, j, language)) for j, f in enumerate(e.plan.space.features)],
    )


def _value(e: Explanation, j: int, language: Templates) -> str:
    """The factual's value of feature j, in this language."""
    feature, value = e.plan.space.features[j], e.factual.iloc[j]
    if is_missing(value) or not feature.is_number:
        return language.word(feature.text(value))
    unit = f" {language.word(feature.unit)}" if feature.unit else ""
    return f"{language.number(feature.text(value))}{unit}"
