"""A language model's endpoint, as a stub: it speaks the form of chat completions exactly, and may answer with noise."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from servers import Deed, Handler

KNOWN = {"model", "messages", "response_format", "temperature", "seed"}
KNOWN |= {"max_completion_tokens", "max_tokens"}
TOKENS = re.compile(r'\{"|":"|","|"\}|\w{1,4}|.', re.DOTALL)


class BadRequest(Exception):
    """What a real endpoint would answer with 400."""


def chat(chance: Callable[[Any], Mapping[str, float]], *, noise: float = 0.0, seed: int = 0, **changes: Any) -> Deed:
    """Answers with the likeliest label by `chance`, from a record (or the prompt) to the probability of each label.

    Args:
        noise: how often the answer is another label instead.
        changes: parts of the whole answer that are put in the place of the true ones, such as usage=None.
    """
    rng = random.Random(seed)

    def answer(handler: Handler) -> None:
        try:
            rows = asked(handler.body)
        except BadRequest as error:
            problem = {"message": str(error), "type": "invalid_request_error", "param": None, "code": None}
            handler.reply(400, json.dumps({"error": problem}), content_type="application/json")
            return
        shares = {key: chance(row) for key, row in rows.items()}
        labels = {key: max(share, key=lambda label: share[label]) for key, share in shares.items()}
        with handler.server.lock:
            for key, label in labels.items():
                if rng.random() < noise:
                    labels[key] = rng.choice([other for other in shares[key] if other != label])
        whole = {**completion(handler.body, labels), **changes}
        handler.reply(200, json.dumps(whole), content_type="application/json")

    return answer


def asked(body: Any) -> dict[str, Any]:
    """The rows of a request by their key, or the prompt where it holds no JSON; every part of the form is checked."""
    if not isinstance(body, dict) or set(body) - KNOWN or not isinstance(body.get("model"), str):
        raise BadRequest(f"unknown fields: {set(body) - KNOWN}")
    for message in body["messages"]:
        if set(message) != {"role", "content"} or message["role"] not in ("system", "user", "assistant"):
            raise BadRequest(f"bad message: {message}")
    form = body["response_format"]
    if form["type"] != "json_schema" or set(form["json_schema"]) != {"name", "strict", "schema"}:
        raise BadRequest(f"bad response_format: {form}")
    schema = form["json_schema"]["schema"]
    if schema["type"] != "object" or schema["additionalProperties"] is not False or not form["json_schema"]["strict"]:
        raise BadRequest("a strict schema is an object without additional properties")
    keys = list(schema["properties"])
    if schema["required"] != keys or any(set(one) != {"type", "enum"} for one in schema["properties"].values()):
        raise BadRequest("in a strict schema all properties are required, here enumerations of texts")
    prompt = body["messages"][-1]["content"]
    found = re.search(r"\{.*\}", prompt, re.DOTALL) if isinstance(prompt, str) else None
    held = prompt if found is None else json.loads(found[0])
    return {"label": held} if keys == ["label"] else {key: held[key] for key in keys}


def completion(body: Any, labels: Mapping[str, str]) -> dict[str, Any]:
    """The whole answer."""
    content = json.dumps(labels, separators=(",", ":"))
    tokens = TOKENS.findall(content)
    assert "".join(tokens) == content
    read = len(json.dumps(body["messages"]).encode()) // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": read, "completion_tokens": len(tokens), "total_tokens": read + len(tokens)},
    }
