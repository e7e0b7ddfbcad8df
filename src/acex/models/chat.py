"""A language model as a classifier, in the widespread form of chat completions.

The request is that form itself, with a prompt that has places for the columns. The answer is held to an enumeration of
the labels by a JSON schema; whatever does not keep to it is no label. Nothing is sent here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Any

import pandas as pd

from acex.arrays import Rows
from acex.models.protocols import told
from acex.values import Label, as_json, is_count, listed

LIMITS = ("max_completion_tokens", "max_tokens")


class Prompt(Template):
    """Text with places: $income, ${years at work}, $record (the row as JSON), $records (numbered rows); $$ is a $."""

    braceidpattern = r"[^{}]+"


@dataclass(frozen=True)
class Chat:
    """A request with a prompt, and the labels that an answer may have.

    Args:
        request: the body of a request, such as {"model": "...", "temperature": 0, "messages": [...]}.
        classes: the labels; the model sees them as texts.
    """

    request: Any
    classes: Sequence[Label]
    _texts: dict[str, Label] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.request, Mapping):
            raise ValueError(
                "protocol 'chat' needs request={'model': '...', 'messages': [...]}, as the server wants it."
            )
        if "response_format" in self.request:
            raise ValueError("request has a response_format: leave it out, it is made from classes.")
        if self.request.get("stream") or self.request.get("n", 1) != 1:
            raise ValueError("request asks for a stream or for n answers: a row has one, which is taken whole.")
        messages = self.request.get("messages")
        if not (isinstance(messages, (list, tuple)) and messages and all(map(_is_message, messages))):
            raise ValueError(
                f"request['messages'] must be a list of {{'role': ..., 'content': ...}}, got {messages!r}."
            )
        texts = {_shown(label): label for label in self.classes or ()}
        if len(texts) < 2 or len(texts) < len(self.classes):
            raise ValueError(f"protocol 'chat' needs classes, two or more different labels; got {self.classes!r}.")
        object.__setattr__(self, "_texts", texts)
        for prompt in _prompts(messages):
            if not Prompt(prompt).is_valid():
                raise ValueError(f"request: a place is $column or ${{a column}}, and a dollar is $$; got {prompt!r}.")
        places = self._places()
        if not places or ("records" in places and len(places) > 1):
            raise ValueError(
                "request has no place for the row: write $record, or columns by name ($income, ${years at work}), in a "
                "message; or $records alone, for several rows a request."
            )
        for name in LIMITS:
            if self.request.get(name) is not None and not is_count(self.request[name]):
                raise ValueError(f"request[{name!r}] must be 1 or more, got {self.request[name]!r}.")
        json.dumps(self.request)  # what JSON cannot hold is told now, not at the first row

    def _places(self) -> set[str]:
        return {place for prompt in _prompts(self.request["messages"]) for place in Prompt(prompt).get_identifiers()}

    @property
    def one_by_one(self) -> bool:
        return "records" not in self._places()

    @property
    def most_tokens(self) -> int | None:
        """How long an answer may be; None where the request does not say so."""
        limits = [self.request[name] for name in LIMITS if self.request.get(name) is not None]
        return max(limits) if limits else None

    @property
    def gives_scores(self) -> bool:
        """Does the request want log probabilities?"""
        return bool(self.request.get("logprobs"))

    def body(self, rows: Rows) -> Any:
        if not isinstance(rows, pd.DataFrame):
            raise ValueError("protocol 'chat' needs names: data must be a DataFrame.")
        records = [{str(name): told(value) for name, value in row.items()} for row in rows.to_dict("records")]
        numbered = {str(i): record for i, record in enumerate(records, 1)}
        values = {name: _shown(value) for name, value in records[0].items()}
        values |= {"record": _as_text(records[0]), "records": _as_text(numbered)}
        if unknown := self._places() - values.keys():
            raise ValueError(f"the prompt has places for {listed(sorted(unknown))}, which are no columns of the rows")
        keys = ["label"] if self.one_by_one else list(numbered)
        one = {"type": "string", "enum": list(self._texts)}
        schema = {
            "type": "object",
            "properties": dict.fromkeys(keys, one),
            "required": keys,
            "additionalProperties": False,
        }
        return {
            **self.request,
            "messages": [_filled(message, values) for message in self.request["messages"]],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            },
        }

    def labels(self, answer: Any) -> Any:
        said = self._said(answer)
        if foreign := [text for text in said.values() if not (isinstance(text, str) and text in self._texts)]:
            raise ValueError(f"it says {foreign[0]!r}, which is none of {listed(self._texts)}")
        return [self._texts[text] for text in said.values()]

    def _said(self, answer: Any) -> dict[str, Any]:
        """What the answer says of each row, in their order."""
        said = json.loads(_content(answer), object_pairs_hook=_once)
        if not isinstance(said, dict):
            raise ValueError(f"expected an object with labels, got {said!r}")
        keys = ["label"] if self.one_by_one else [str(i) for i in range(1, len(said) + 1)]
        if set(said) != set(keys):
            raise ValueError(f"expected {listed(keys)} in the answer, got {listed(said)}")
        return {key: said[key] for key in keys}

    def probabilities(self, answer: Any) -> list[list[float]] | None:
        """The probability of each label for each row, by the log probabilities of its tokens; None without them."""
        try:
            content = _content(answer)
            tokens = [_Token.of(token) for token in answer["choices"][0]["logprobs"]["content"]]
            starts = [re.search(rf'"{key}"\s*:\s*"', content) for key in self._said(answer)]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
        if "".join(token.text for token in tokens) != content:
            return None
        forms = [_as_text(text)[1:-1] for text in self._texts]
        tables = [None if start is None else _shares(tokens, start.end(), forms) for start in starts]
        return None if None in tables else [table for table in tables if table is not None]

    def tokens(self, answer: Any) -> tuple[int, int] | None:
        """How many tokens were read and written, as the answer tells."""
        try:
            read, written = answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]
        except (KeyError, TypeError):
            return None
        counts = [n for n in (read, written) if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
        return (counts[0], counts[1]) if len(counts) == 2 else None


# -- the request -----------------------------------------------------------------------------------------


def _is_message(message: Any) -> bool:
    return isinstance(message, Mapping) and "role" in message and "content" in message


def _prompts(messages: Iterable[Any]) -> list[str]:
    """Every text in the messages: contents, and the texts of contents in parts."""
    contents = [message["content"] for message in messages]
    parts = [part["text"] for content in contents if isinstance(content, list) for part in content if "text" in part]
    return [content for content in contents if isinstance(content, str)] + parts


def _filled(message: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": Prompt(content).substitute(values)}
    parts = [{**part, "text": Prompt(part["text"]).substitute(values)} if "text" in part else part for part in content]
    return {**message, "content": parts}


def _shown(value: Any) -> str:
    """A value as a prompt shows it: a text without quotation marks."""
    return value if isinstance(value, str) else _as_text(as_json(value))


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# -- the answer ------------------------------------------------------------------------------------------


def _content(answer: Any) -> str:
    """What the model said.

    Raises:
        ValueError: it refused, was cut off, or said nothing.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        content = message["content"]
    except (KeyError, IndexError, TypeError):
        raise ValueError("there is no choices[0].message.content") from None
    if message.get("refusal"):
        raise ValueError(f"the model refused: {message['refusal']!r}")
    match choice.get("finish_reason"):
        case "length":
            raise ValueError("the answer was cut off: raise max_completion_tokens in request")
        case "content_filter":
            raise ValueError("the answer was withheld by a filter of the server's")
    if not isinstance(content, str):
        raise ValueError(f"its content is {content!r}, not a text")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key that comes twice has no value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the same key twice in {pairs!r}")
    return found


@dataclass(frozen=True)
class _Token:
    """A token that was written, and the log probabilities of those that could have been in its place."""

    text: str
    log_p: float
    others: dict[str, float]

    @classmethod
    def of(cls, token: Any) -> _Token:
        others = {other["token"]: float(other["logprob"]) for other in token.get("top_logprobs") or ()}
        others.pop(token["token"], None)
        return cls(token["token"], float(token["logprob"]), others)


def _shares(tokens: Sequence[_Token], start: int, labels: Sequence[str]) -> list[float] | None:
    """The probability of each label as the text that begins at this place; they sum to 1.

    Along the tokens that were written, each token that could have been there gives its probability to the labels that
    it would have led to, until only one label is left. A label that no token led to has none.
    """
    i, at = 0, 0
    while i < len(tokens) and at + len(tokens[i].text) <= start:
        at += len(tokens[i].text)
        i += 1
    skipped = start - at  # what stands before the label in its first token, such as a quotation mark
    shares = dict.fromkeys(labels, 0.0)
    said, log_p = "", 0.0
    fitting = list(labels)
    for token in tokens[i:]:
        before = token.text[:skipped]
        for other, other_log_p in token.others.items():
            if other.startswith(before):
                led_to = _fitting(said + other[skipped:], labels)
                for label in led_to:
                    shares[label] += math.exp(log_p + other_log_p) / len(led_to)
        said, log_p, skipped = said + token.text[skipped:], log_p + token.log_p, 0
        fitting = _fitting(said, labels)
        if len(fitting) <= 1:
            break
    if len(fitting) != 1:
        return None
    shares[fitting[0]] += math.exp(log_p)
    total = sum(shares.values())
    return [share / total for share in shares.values()] if 0 < total < math.inf else None


def _fitting(said: str, labels: Sequence[str]) -> list[str]:
    """The labels that a text may be the beginning of, or that it holds whole."""
    return [label for label in labels if label.startswith(said) or said.startswith(f'{label}"')]
