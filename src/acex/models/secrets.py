"""Secrets that a server repeats are blotted out of its words, in whatever writing they come back.

A server may echo a key as it is, in part, or written otherwise: in base64 or hexadecimal digits, escaped for a URL,
JSON or HTML, in another charset. What is found as it is becomes `***`. For the rest the words are read in every such
writing, two deep; if a secret shows up in one of these readings, none of the words are shown.
"""

from __future__ import annotations

import base64
import binascii
import html
import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local

BLOT = "***"
HIDDEN = f"{BLOT} (not shown: a secret is repeated there in another writing)"
WORD = 6  # a shorter piece is no secret by itself: "Bearer", "yes"
PART = 8  # so many characters of a secret in a row are not shown either
LONG_PART = 12  # so many are no coincidence, even where an innocent word was found: in a label
LOOKED_AT = 20_000  # characters of a server's words; what is shown of them is much less
DEPTH = 2  # writings inside one another, such as base64 escaped for a URL


@dataclass(frozen=True)
class Secrets:
    """What must not be shown: the values of headers, and the pieces that are secret by themselves."""

    pieces: frozenset[str] = field(repr=False)

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Secrets:
        """The values of these headers, and their parts: the token without "Bearer", the password inside "Basic"."""
        whole = set(headers.values())
        for value in headers.values():
            if value.lower().startswith("basic "):
                whole |= {(login := _from_base64(value[6:])[0]), login.partition(":")[2]}
        words = {word for value in whole for word in re.split(r"[\s,;:=]+", value) if len(word) > WORD}
        return cls(frozenset(whole | words) - {""})

    def blotted(self, words: str) -> str:
        """The words without the secrets; nothing of them where a secret is in there in another writing."""
        words = words[:LOOKED_AT]
        if not self.pieces:
            return words
        for piece in sorted(self.pieces, key=len, reverse=True):
            words = words.replace(piece, BLOT)
        words = _without_parts(words, {part for piece in self.pieces for part in _parts(piece)})
        needles = {part for piece in self.pieces for part in _parts(_bare(piece))}
        return HIDDEN if any(_holds(_bare(reading), needles) for reading in _readings(words)) else words

    def repeated_in(self, value: str) -> bool:
        """Is a secret in there, or most of one, in whatever writing?"""
        needles = {part for piece in self.pieces for part in _parts(_bare(piece), LONG_PART)}
        if len(value) <= WORD or not needles:
            return False
        return any(_holds(_bare(reading), needles) for reading in _readings(value))


def _parts(piece: str, size: int = PART) -> Iterator[str]:
    """Every stretch of so many characters; a piece shorter than that, but longer than a word, is one itself."""
    if WORD < len(piece) < size:
        yield piece
    yield from (piece[i : i + size] for i in range(len(piece) - size + 1))


def _holds(words: str, parts: set[str]) -> bool:
    return any(part in words for part in parts)


def _without_parts(words: str, parts: set[str]) -> str:
    """The words with each stretch that is made of these parts blotted out."""
    if not _holds(words, parts):
        return words
    hidden = [False] * len(words)
    for part in parts:
        for found in re.finditer(f"(?={re.escape(part)})", words):
            hidden[found.start() : found.start() + len(part)] = [True] * len(part)
    shown = "".join("\0" if hide else letter for letter, hide in zip(words, hidden, strict=True))
    return re.sub("\0+", BLOT, shown)


def _bare(words: str) -> str:
    """Letters and digits alone, as small letters: what is between them, and their width, says nothing."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", words)).casefold()


# -- readings --------------------------------------------------------------------------------------------


def _readings(words: str) -> set[str]:
    """The words as they are and in every other writing that they may be in."""
    found = {words}
    newest = found
    for _ in range(DEPTH):
        newest = {reading for known in newest for reading in _read_otherwise(known) if reading} - found
        found |= newest
    return found


ESCAPE = re.compile(r"(?:\\u00|%u00|\\U000000|\\u\{|&#x|\\x|%|=)([0-9a-fA-F]{2})[;}]?")
OCTAL = re.compile(r"\\([0-3]?[0-7]{2})")
NUMBER = re.compile(r"\b\d{2,3}\b")


def _read_otherwise(words: str) -> Iterable[str]:
    yield html.unescape(ESCAPE.sub(lambda found: chr(int(found[1], 16)), words))
    yield OCTAL.sub(lambda found: chr(int(found[1], 8)), words)
    yield "".join(chr(int(n)) for n in NUMBER.findall(words) if int(n) < 256)
    yield from _from_base64(words)
    yield from _from_hexadecimal(words)


def _from_base64(words: str) -> list[str]:
    """What every stretch of base64 says, read from its first to fourth letter on."""
    letters = re.sub(r"\s+|\\+[nrt]", "", words).replace("-", "+").replace("_", "/")
    runs = re.findall(r"[A-Za-z0-9+/]{8,}", letters)
    read = []
    for start in range(4):
        whole = (run[start:] for run in runs)
        padded = (run + "=" * (-len(run) % 4) if len(run) % 4 != 1 else run[:-1] for run in whole)
        read.append(" ".join(base64.b64decode(run).decode("latin-1") for run in padded))
    return read


def _from_hexadecimal(words: str) -> list[str]:
    digits = re.sub(r"\\x|0x|[\s:,-]+", "", words)
    runs = re.findall(r"[0-9a-fA-F]{8,}", digits)
    return [
        " ".join(binascii.unhexlify(run[start : len(run) - (len(run) - start) % 2]).decode("latin-1") for run in runs)
        for start in range(2)
    ]


# -- logs ------------------------------------------------------------------------------------------------

_here = local()
# Whoever turns on the logs of the HTTP client reads the server's status line and headers there.
LOGGERS = ("httpx2", *(f"httpcore2.{name}" for name in ("connection", "http11", "http2", "proxy", "socks")))


class _CleanLog(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        secrets: Secrets | None = getattr(_here, "secrets", None)
        if secrets is not None:
            record.msg, record.args = secrets.blotted(record.getMessage()), ()
        return True


_clean = _CleanLog()


@contextmanager
def keeping_logs_clean(secrets: Secrets) -> Iterator[None]:
    """In this thread, what the HTTP client logs is blotted."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_clean)  # once: a filter that is there is not added again
    _here.secrets = secrets
    try:
        yield
    finally:
        _here.secrets = None
