"""One request over HTTP, and what became of it: a reply, a door that stayed shut, or a loss."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from types import ModuleType
from typing import TypeAlias

from acex.errors import MissingExtra
from acex.models.secrets import Secrets, keeping_logs_clean

PIECE = 2**16  # bytes that are unpacked at once
GZIP = zlib.MAX_WBITS | 16  # as zlib wants to be told
# Python knows them as encodings of text; a server that claims one means something else, or no good.
NO_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"}


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    status: int
    content: bytes
    charset: str | None  # as its content-type says
    retry_after: float | None = None  # seconds

    @property
    def text(self) -> str:
        """The answer as text, by the charset that it names, else strictly UTF-8.

        Raises:
            ValueError: its bytes are something else.
        """
        charset = "utf-8" if self.charset is None else self.charset
        try:
            if codecs.lookup(charset).name in NO_CHARSETS:
                raise LookupError
            return self.content.decode(charset).removeprefix("\ufeff")  # a mark that JSON does not know
        except LookupError:
            raise ValueError(f"its charset is {self.charset!r}, which is none that is known") from None
        except UnicodeError:  # its words would show a part of the bytes
            says = "and its content-type names no other charset" if self.charset is None else "as its content-type says"
            raise ValueError(f"its bytes are not {self.charset or 'UTF-8'}, {says}") from None

    @property
    def words(self) -> str:
        """The answer as far as it can be read."""
        try:
            return self.text
        except ValueError:
            return self.content.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class NotReached:
    """No connection: nothing was sent."""

    why: str


@dataclass(frozen=True)
class Lost:
    """It was sent, or may have been."""

    why: str


Outcome: TypeAlias = Reply | NotReached | Lost


def exchange(
    url: str, content: bytes, headers: Mapping[str, str], *, secrets: Secrets, timeout: float, limit: int
) -> Outcome:
    """What became of one request, after `timeout` seconds at most; an answer has at most `limit` bytes.

    Each has a connection of its own: on a kept one that the server has just dropped, a request fails in a
    way that cannot be told from one that was charged.
    """
    return _within(timeout, lambda: _exchange(url, content, headers, secrets, timeout, limit))


def _exchange(
    url: str, content: bytes, headers: Mapping[str, str], secrets: Secrets, timeout: float, limit: int
) -> Outcome:
    httpx2 = client_library()
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "gzip",
        **headers,
    }
    deadline = monotonic() + timeout
    # Connecting ends first: what fails there is known to have cost nothing.
    limits = httpx2.Timeout(timeout, connect=timeout / 2)
    try:
        with (
            keeping_logs_clean(secrets),
            httpx2.stream("POST", url, content=content, headers=headers, timeout=limits) as response,
        ):
            received = bytearray()
            try:
                for piece in _unpacked(response.iter_raw(), response.headers.get("content-encoding", ""), limit):
                    received += piece
                    if len(received) > limit:
                        raise ValueError(_too_long(limit))
                    if monotonic() > deadline:
                        return Lost("out of time")  # nobody waits for it any more: see `_within`
            except (ValueError, httpx2.TransportError) as error:
                if response.is_success:  # whoever says no has said it with the status, whatever comes after
                    return Lost(str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}")
            retry_after = _seconds(response.headers.get("retry-after"))
            return Reply(response.status_code, bytes(received[:limit]), response.charset_encoding, retry_after)
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        return NotReached(str(error) or type(error).__name__)
    except Exception as error:  # whatever it was, the request may have arrived
        return Lost(f"{type(error).__name__}: {error}")


def client_library() -> ModuleType:
    """httpx2, where it is installed."""
    try:
        import httpx2
    except ImportError:
        raise MissingExtra("acex.HttpModel", "http") from None
    return httpx2


def _unpacked(chunks: Iterable[bytes], encoding: str, limit: int) -> Iterator[bytes]:
    """The body in small pieces. Neither what arrives nor what is held at once grows beyond the limit.

    Raises:
        ValueError: there is more, or it is not packed as it says, or in a way that was not asked for.
    """
    chunks = _counted(chunks, limit)
    match encoding.strip().lower():
        case "" | "identity":
            yield from chunks
        case "gzip" | "x-gzip":
            try:
                yield from _unzipped(chunks)
            except zlib.error as error:
                raise ValueError(f"its body cannot be unpacked: {error}") from None
        case _:
            raise ValueError(f"its body is packed as {encoding!r}, and gzip was asked for")


def _counted(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > limit:
            raise ValueError(_too_long(limit))
        yield chunk


def _unzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    unzip = zlib.decompressobj(GZIP)
    for chunk in chunks:
        while chunk:
            if unzip.eof:  # one more member
                unzip = zlib.decompressobj(GZIP)
            yield unzip.decompress(chunk, PIECE)
            chunk = unzip.unused_data if unzip.eof else unzip.unconsumed_tail
    yield unzip.flush()
    if not unzip.eof:
        raise ValueError("its packed body breaks off")


def _too_long(limit: int) -> str:
    return f"its body has more than {limit:,} bytes (answer_limit)"


def _seconds(retry_after: str | None) -> float | None:
    """How long to wait, from the header's number of seconds or date; None if it says neither."""
    if retry_after is None:
        return None
    try:
        if retry_after.isdecimal():
            return float(retry_after)
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _within(seconds: float, work: Callable[[], Outcome]) -> Outcome:
    """What the work gave; when it takes longer it is left behind, and its request is lost.

    A timeout of a socket starts anew with each byte, so a server that drips would hold us for ever.
    """
    done: SimpleQueue[Outcome] = SimpleQueue()
    Thread(target=lambda: done.put(work()), daemon=True).start()
    try:
        return done.get(timeout=seconds)
    except Empty:
        return Lost(f"out of time after {seconds:g} seconds")
