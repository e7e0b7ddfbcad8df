"""A language model as a classifier, with the request format of chat completions.

The request contains a prompt with placeholders for the columns. A JSON schema restricts the answer to the labels; any
other answer is rejected. Nothing is sent here; see `acex.models.http`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Any

import pandas as pd

from acex.arrays import Rows
from acex.values import Label, as_json, check_count, is_count, json_value, listed, unique_names

TOKEN_LIMITS = ("max_completion_tokens", "max_tokens")


class Prompt(Template):
    """Text with placeholders.

    $income or ${years at work} is replaced by the value of that column, $record by the row as JSON, $records by
    several numbered rows as JSON, and $$ by a dollar sign.
    """

    braceidpattern = r"[^{}]+"


@dataclass(frozen=True)
class Chat:
    """A request with a prompt, and the labels that an answer may contain.

    Args:
        request: the request body, such as {"model": "...", "temperature": 0, "messages": [...]}.
        classes: the labels; they are sent to the model as text.
    """

    request: Any
    classes: Sequence[Label]
    _placeholders: frozenset[str] = field(init=False, repr=False)
    _by_text: dict[str, Label] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.request, Mapping):
            raise ValueError("protocol 'chat' needs request={'model': '...', 'messages': [...]}.")
        if "response_format" in self.request:
            raise ValueError("request['response_format'] is set from classes; remove it.")
        if self.request.get("stream") or self.request.get("n", 1) != 1:
            raise ValueError("request['stream'] and request['n'] above 1 are not supported: a row has one answer.")
        for name in TOKEN_LIMITS:
            check_count(f"request[{name!r}]", self.request.get(name), optional=True)
        json.dumps(self.request)  # fail now rather than on the first row if JSON cannot represent it
        object.__setattr__(self, "_placeholders", _placeholders(self.request.get("messages")))
        by_text = {_as_text(label): label for label in self.classes}
        if len(by_text) < 2 or len(by_text) < len(self.classes):
            raise ValueError(f"protocol 'chat' needs classes, two or more different labels; got {self.classes!r}.")
        object.__setattr__(self, "_by_text", by_text)

    @property
    def one_by_one(self) -> bool:
        return "records" not in self._placeholders

    @property
    def most_tokens(self) -> int | None:
        """The maximum length of an answer in tokens; None if the request sets no limit."""
        limits = [self.request[name] for name in TOKEN_LIMITS if self.request.get(name) is not None]
        return max(limits) if limits else None

    def body(self, rows: Rows) -> Any:
        if not isinstance(rows, pd.DataFrame):
            raise ValueError("protocol 'chat' needs column names: data must be a DataFrame.")
        records = [{str(name): json_value(value) for name, value in row.items()} for row in rows.to_dict("records")]
        numbered = {str(i): record for i, record in enumerate(records, 1)}
        values = {name: _as_text(value) for name, value in records[0].items()}
        values |= {"record": _as_json_text(records[0]), "records": _as_json_text(numbered)}
        if unknown := self._placeholders - values.keys():
            raise ValueError(f"the prompt has placeholders for {listed(sorted(unknown))}, which are not columns")
        keys = ["label"] if self.one_by_one else list(numbered)
        schema = {
            "type": "object",
            "properties": {key: {"type": "string", "enum": list(self._by_text)} for key in keys},
            "required": keys,
            "additionalProperties": False,
        }
        return {
            **self.request,
            "messages": [
                {**message, "content": Prompt(message["content"]).substitute(values)}
                for message in self.request["messages"]
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            },
        }

    def labels(self, answer: Any) -> Any:
        texts = json.loads(_content(answer), object_pairs_hook=unique_names)
        if not isinstance(texts, dict):
            raise ValueError(f"expected an object with labels, got {texts!r}")
        keys = ["label"] if self.one_by_one else [str(i) for i in range(1, len(texts) + 1)]
        if set(texts) != set(keys):
            raise ValueError(f"expected the keys {listed(keys)} in the answer, got {listed(texts)}")
        for text in texts.values():
            if not (isinstance(text, str) and text in self._by_text):
                raise ValueError(f"the label is {text!r}, expected one of {listed(self._by_text)}")
        return [self._by_text[texts[key]] for key in keys]

    def tokens(self, answer: Any) -> tuple[int, int] | None:
        """Token counts of prompt and completion; None if the response does not contain them."""
        usage = answer.get("usage") if isinstance(answer, dict) else None
        if not isinstance(usage, dict):
            return None
        counts: list[Any] = [n for n in (usage.get("prompt_tokens"), usage.get("completion_tokens")) if is_count(n, 0)]
        return (counts[0], counts[1]) if len(counts) == 2 else None


# -- the request -----------------------------------------------------------------------------------------


def _placeholders(messages: Any) -> frozenset[str]:
    """The names of the placeholders in the prompts of all messages.

    Raises:
        ValueError: these are not messages, a prompt is malformed, or there is no placeholder for the row.
    """
    is_list = isinstance(messages, (list, tuple)) and bool(messages)
    if not (is_list and all(isinstance(m, Mapping) and {"role", "content"} <= m.keys() for m in messages)):
        raise ValueError(f"request['messages'] must be a list of {{'role': ..., 'content': ...}}, got {messages!r}.")
    found: set[str] = set()
    for message in messages:
        content = message["content"]
        if not isinstance(content, str) or not Prompt(content).is_valid():
            raise ValueError(
                f"request['messages']: content must be text in which a placeholder is $column or ${{a column}} and a "
                f"dollar sign is $$; got {content!r}."
            )
        found.update(Prompt(content).get_identifiers())
    if not found or ("records" in found and len(found) > 1):
        raise ValueError(
            "request['messages'] has no placeholder for the row: write $record or columns ($income, ${years at work}); "
            "or $records alone, for several rows per request."
        )
    return frozenset(found)


def _as_text(value: Any) -> str:
    """A value as text for a prompt; strings without quotation marks."""
    return value if isinstance(value, str) else _as_json_text(as_json(value))


def _as_json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# -- the answer ------------------------------------------------------------------------------------------


def _content(answer: Any) -> str:
    """The text of the model's answer.

    Raises:
        ValueError: the model refused, or the answer is incomplete or empty.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        content = message["content"]
    except (KeyError, IndexError, TypeError):
        raise ValueError("the answer has no choices[0].message.content") from None
    if message.get("refusal"):
        raise ValueError(f"the model refused: {message['refusal']!r}")
    match choice.get("finish_reason"):
        case "length":
            raise ValueError("the answer was cut off: raise max_completion_tokens in request")
        case "content_filter":
            raise ValueError("the server's content filter withheld the answer")
    if not isinstance(content, str):
        raise ValueError(f"choices[0].message.content is {content!r}, not text")
    return content
