"""A single HTTP request: its headers and its outcome.

After a failure the caller must know whether the request may have been charged. The outcome is therefore a `Reply`,
`NotReached` (nothing was sent) or `Unanswered` (it may have arrived).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, TypeAlias

from acex.errors import optional
from acex.values import listed

ANSWER_LIMIT = 16_000_000  # largest accepted response body, in bytes after decompression
EXCERPT = 300  # maximum number of characters of a response that an error message quotes
KEY_HEADER = re.compile(r"auth|key|token|secret|password|cookie|credential|signature|session|jwt", re.IGNORECASE)


# -- headers and secrets ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Headers:
    """Headers whose values come from environment variables.

    A header that is in neither list and whose name does not look like a key causes a warning: if it selects the model,
    two models would share their answers in a ledger.

    Args:
        variables: maps headers to environment variables.
        identity: headers that select the model.
        keys: headers that are keys although their names do not suggest it.
    """

    variables: Mapping[str, str]
    identity: Sequence[str] = ()
    keys: Sequence[str] = ()

    def __post_init__(self) -> None:
        for header, variable in self.variables.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", variable):  # not quoted: it may be the secret itself
                raise ValueError(f"headers_from_env[{header!r}] must be the name of an environment variable.")
        for name, headers in (("identity_headers", self.identity), ("key_headers", self.keys)):
            for header in headers:
                if header not in self.variables:
                    known = listed(self.variables) or "it is empty"
                    raise ValueError(f"{name}: {header!r} is not in headers_from_env ({known}).")
        for header in self.variables:
            is_key = header in self.keys or KEY_HEADER.search(header) is not None
            if header in self.identity and is_key:
                raise ValueError(
                    f"identity_headers: {header!r} is a key; as part of the model's identity, a new key would make all "
                    f"stored answers unusable."
                )
            if header not in self.identity and not is_key:
                warnings.warn(
                    f"headers_from_env: does {header!r} select the model? If so, add it to identity_headers; otherwise "
                    f"two models share their answers in a ledger. If it is a key, add it to key_headers.",
                    stacklevel=5,  # the line that creates the HttpModel
                )

    def read(self) -> dict[str, str]:
        """The headers with the current values of their environment variables.

        Raises:
            ValueError: a variable is not set, or its value cannot be sent.
        """
        return {header: self._value(header) for header in self.variables}

    def secrets(self, values: Mapping[str, str]) -> list[str]:
        """The values that must not be shown, with and without a scheme such as "Bearer", longest first."""
        private = [value for header, value in values.items() if header not in self.identity]
        tokens = [value.partition(" ")[2].strip() for value in private]
        return sorted({*private, *tokens} - {""}, key=len, reverse=True)

    def identity_hash(self) -> str | None:
        """A hash of the current values of the headers that select the model; None if there are none."""
        if not self.identity:
            return None
        return short_hash(sorted((header.lower(), self._value(header)) for header in self.identity))

    def _value(self, header: str) -> str:
        variable = self.variables[header]
        value = os.environ.get(variable, "").strip()
        if not value or not (value.isascii() and value.isprintable()):
            how = "is not set" if not value else "holds characters that a header cannot have"
            raise ValueError(f"The environment variable {variable} for {header!r} {how}.")
        return value


def short_hash(value: Any) -> str:
    """A hash of a JSON-serializable value: twelve hexadecimal digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def excerpt(text: str, secrets: Iterable[str]) -> str:
    """The beginning of a response, with every secret replaced by `***`."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:EXCERPT]


# -- the exchange ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reply:
    """The server's response."""

    status: int
    content: bytes
    retry_after: float | None = None  # seconds

    @property
    def readable_text(self) -> str:
        """The body as text; invalid UTF-8 becomes replacement characters."""
        return self.content.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class NotReached:
    """No connection: nothing was sent."""

    why: str


@dataclass(frozen=True)
class Unanswered:
    """The request may have arrived, but no complete response was received."""

    why: str


Outcome: TypeAlias = Reply | NotReached | Unanswered


def exchange(url: str, content: bytes, headers: Mapping[str, str], *, timeout: float) -> Outcome:
    """Post one request and wait at most `timeout` seconds; a response may have at most `ANSWER_LIMIT` bytes.

    Each request has its own connection: if the server had just closed a reused one, the error would look the same as
    that of a charged request. Each request runs in its own thread, which may outlive the timeout: a socket's timeout
    restarts with each byte, so a server that sends slowly would block forever.
    """
    done: SimpleQueue[Outcome] = SimpleQueue()
    late = Unanswered(f"out of time after {timeout:g} seconds")
    Thread(target=lambda: done.put(_exchange(url, content, headers, timeout, late)), daemon=True).start()
    try:
        return done.get(timeout=timeout)
    except Empty:
        return late


def _exchange(url: str, content: bytes, headers: Mapping[str, str], timeout: float, late: Unanswered) -> Outcome:
    httpx2 = optional("httpx2", "acex.HttpModel", "http")
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "gzip",
        **headers,
    }
    deadline = monotonic() + timeout
    # Connecting times out first, since a request that fails while connecting was not charged.
    limits = httpx2.Timeout(timeout, connect=timeout / 2)
    try:
        with httpx2.stream("POST", url, content=content, headers=headers, timeout=limits) as response:
            received = bytearray()
            try:
                for piece in response.iter_bytes():
                    received += piece
                    if len(received) > ANSWER_LIMIT:
                        raise ValueError(f"its body has more than {ANSWER_LIMIT:,} bytes")
                    if monotonic() > deadline:
                        return late  # the caller may have given up
            except (ValueError, httpx2.TransportError, httpx2.DecodingError) as error:
                if response.is_success:  # for an error response the status is enough
                    why = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
                    return Unanswered(why)
            retry_after = response.headers.get("retry-after", "")  # a date is ignored
            return Reply(response.status_code, bytes(received), float(retry_after) if retry_after.isdecimal() else None)
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        return NotReached(str(error) or type(error).__name__)
    except Exception as error:  # after any other error the request may have arrived
        return Unanswered(f"{type(error).__name__}: {error}")
