"""A notice: a page in plain words for the person about whom a model decided.

What the library cannot know, such as who decided and how to ask for a human, comes from *fields*; each sentence comes
from a *template*, one TOML file, of which there are an English and a German one. Reasons and changes are kept apart: a
counterfactual says what would have mattered, not why somebody decided, so reasons are the decider's own words or are
left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

from acex.engine.certificate import parsed, sum_of
from acex.engine.explanation import Explanation, labels_as_text, single
from acex.plan.target import Measured
from acex.show.report.document import document
from acex.show.report.markup import Child, Markup, table, tag
from acex.show.sentences import Templates, sentences
from acex.values import did_you_mean, is_missing, listed

BUILT_IN = ("english", "german")
WORKED_OUT = ("before", "after", "sum")  # by acex, beside the fields


@dataclass(frozen=True)
class Fields:
    """What a notice needs, each text in its language.

    Attributes:
        organisation: who decided. date: when. subject: about what, as in "your request for a loan".
        reference: the number of the case.
        system: what the system is, as a sentence. role: what it does and who decides in the end.
        sources: where the data came from, a list.
        correct: how to have wrong data corrected. human: how to ask for a person to look at it.
        keep_until: until when the data are kept. contact: whom to reach, and how.
        reasons: the main reasons of the decision in the decider's own words, a list; left out where there are none.
        words: what features, categories, units and labels are called.
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
    reasons: tuple[str, ...] = ()
    words: Mapping[str, str] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "fields") -> Fields:
        """The fields of a mapping.

        Raises:
            ValueError: one is missing, unknown, or not what it should be; the message names it.
        """
        known = [f.name for f in fields(cls)]
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known)
                raise ValueError(f"{where}: {name!r} is not a field of a notice; there are {listed(known)}.{hint}")
        missing = [name for name in known if name not in given and name not in ("reasons", "words")]
        if missing:
            raise ValueError(f"{where}: {listed(missing)} is missing: a notice needs it; see docs/audit.md.")
        lists = {"sources", "reasons"}
        held: dict[str, Any] = {}
        for name, value in given.items():
            if name == "words":
                good = isinstance(value, Mapping) and all(isinstance(word, str) for word in value.values())
                held[name] = value
            elif name in lists:
                good = isinstance(value, (list, tuple)) and all(isinstance(v, str) and v.strip() for v in value)
                held[name] = tuple(value) if good else ()
            else:
                held[name] = value if isinstance(value, str) else str(value)  # TOML has days of its own
                good = bool(held[name].strip()) and not isinstance(value, (list, Mapping))
            if not good or (name == "sources" and not value):
                kind = "a table of texts" if name == "words" else "a list of texts" if name in lists else "a text"
                raise ValueError(f"{where}: {name!r}: expected {kind}, got {value!r}.")
        return cls(**held)

    @classmethod
    def read(cls, path: str | Path) -> Fields:
        """The fields in a TOML file."""
        return cls.of(_toml(Path(path)), str(path))


@dataclass(frozen=True)
class Template:
    """Every sentence of a notice, by section and name."""

    parts: Mapping[str, Any]

    @classmethod
    def read(cls, where: str | Path = "english") -> Template:
        """A template that is built in, by its name, or one in a TOML file with the same sections.

        Raises:
            ValueError: a sentence is missing or unknown, or has a place that nothing fills.
        """
        built_in = {name: files("acex.show.notices") / f"{name}.toml" for name in BUILT_IN}
        english: Mapping[str, Any] = tomllib.loads(built_in["english"].read_text(encoding="utf-8"))
        if str(where) in built_in:
            return cls(tomllib.loads(built_in[str(where)].read_text(encoding="utf-8")))
        path = Path(where)
        if not path.is_file():
            raise ValueError(f"{where}: expected a file, or one of {listed(BUILT_IN)}.")
        parts = _toml(path)
        _refuse_other(parts, english, str(path))
        return cls(parts)

    def fill(self, section: str, name: str = "text", **values: str) -> str:
        """A sentence with its places filled."""
        return str(self.parts[section][name]).format(**values)


def notice_page(
    explanation: Explanation,
    given: Fields | Mapping[str, Any] | str | Path,
    template: Template | str | Path = "english",
) -> str:
    """The notice about an explanation, as text.

    Args:
        given: the fields, or a TOML file with them.
        template: every sentence: "english", "german" or a TOML file.
    """
    fields_ = (
        given if isinstance(given, Fields) else Fields.of(given) if isinstance(given, Mapping) else Fields.read(given)
    )
    words = template if isinstance(template, Template) else Template.read(template)
    if not explanation.steps:
        raise ValueError(f"there is no decision to explain: {explanation.error}")
    return _page(explanation, fields_, words)


def _page(e: Explanation, given: Fields, template: Template) -> str:
    speech = Templates(**template.parts["sentences"], words={**template.parts["words"], **(given.words or {})})
    values = {f.name: str(getattr(given, f.name)) for f in fields(given)}
    values["before"] = _answer(e, 0, speech)
    values["after"] = "" if e.label_after is None else _answer(e, 1, speech)
    values["sum"] = sum_of(parsed(e.to_json()))

    def section(name: str, *children: Child, text: str = "text") -> Markup:
        heading, sentence = (template.fill(name, part, **values) for part in ("heading", text))
        return tag("section", tag("h2", heading), tag("p", sentence), *children)

    def say(name: str, part: str) -> Markup:
        return tag("p", template.fill(name, part, **values))

    title = str(template.parts["title"]).format(**values)
    fixed = [speech.word(f.name) for f in e.plan.space.features if f.frozen]
    data = [(speech.word(f.name), _value(e, j, speech)) for j, f in enumerate(e.plan.space.features)]
    header = [str(template.parts["data"][part]) for part in ("name", "value")]
    return document(
        title,
        tag("header", tag("h1", title)),
        section("decision"),
        section("reasons", _list(given.reasons)) if given.reasons else None,
        _changes(e, speech, section, say),
        section("fixed", _list(fixed)) if fixed else section("fixed", text="none"),
        section("role"),
        section("data", table(header, data, class_="lines"), say("data", "sources"), _list(given.sources)),
        section("correct"),
        section("human"),
        section("keep"),
        section("contact"),
        tag("footer", tag("p", template.fill("foot", **values), class_="note")),
        language=str(template.parts["language"]),
    )


def _changes(
    e: Explanation, speech: Templates, section: Callable[..., Markup], say: Callable[[str, str], Markup]
) -> Markup:
    if e.outcome != "found":
        return section("changes", text="already" if e.outcome == "already_target" else "nothing")
    ways: list[Child] = [_list(sentences(e, speech))]
    for i in range(1, len(e.costs)):
        ways += [say("changes", "other"), _list(sentences(single(e, i), speech))]
    return section("changes", *ways, say("changes", "note"))


def _answer(e: Explanation, which: int, speech: Templates) -> str:
    """What the system answered before (0) or after (1), as this language writes it."""
    if isinstance(e.plan.target, Measured):
        return speech.number(labels_as_text(e)[which])
    return speech.labelled((e.label_before, e.label_after)[which])


def _value(e: Explanation, j: int, speech: Templates) -> str:
    """A value of the row as this language writes it."""
    feature, value = e.plan.space.features[j], e.factual.iloc[j]
    text = feature.text(value)
    if is_missing(value):
        return speech.word(text)
    unit = f" {speech.word(feature.unit)}" if feature.unit else ""
    return f"{speech.number(text)}{unit}" if feature.is_number else speech.word(text)


def _list(items: Iterable[str]) -> Markup:
    return tag("ul", *(tag("li", item) for item in items))


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None


def _refuse_other(parts: Mapping[str, Any], like: Mapping[str, Any], where: str, section: str = "") -> None:
    """Raise where a template has not the sentences of another, or a place that nothing fills."""
    at = f"{where}: [{section}]" if section else where
    for name in {**like, **parts}:
        if name not in parts:
            raise ValueError(f"{at}: {name!r} is missing; the built-in template has {listed(like)}.")
        if name not in like:
            raise ValueError(f"{at}: {name!r} is no sentence of a notice; there are {listed(like)}.")
        if isinstance(like[name], dict):
            if not isinstance(parts[name], dict):
                raise ValueError(f"{at}: {name!r}: expected a section, got {parts[name]!r}.")
            _refuse_other(parts[name], like[name], where, name)
        elif not isinstance(parts[name], str):
            raise ValueError(f"{at}: {name!r}: expected a text, got {parts[name]!r}.")
        elif section != "sentences":  # these are looked at by `Templates`
            _refuse_strange_places(parts[name], f"{at}: {name!r}")


def _refuse_strange_places(text: str, at: str) -> None:
    known = {f.name for f in fields(Fields)} - {"words", "sources", "reasons"} | set(WORKED_OUT)
    try:
        places = {place for _, place, _, _ in Formatter().parse(text) if place is not None}
    except ValueError as error:
        raise ValueError(f"{at}: {text!r}: {error}.") from None
    if places - known:
        raise ValueError(f"{at}: nothing fills {listed(sorted(places - known))}; there are {listed(sorted(known))}.")
