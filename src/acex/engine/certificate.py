"""A checksum of a document, and a signature of the checksum.

The checksum is the SHA-256 of the document's canonical form: JSON with sorted keys, without spaces, texts in ASCII,
numbers as Python writes them. Another program may indent and reorder the document. The checksum detects accidental and
careless changes. Someone who changes a document on purpose can recompute it: only the signature protects against that,
and only for a reader who knows the signer's public key from another source.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from acex.errors import optional
from acex.values import unique_names

VERSION = 1
SIGNED = b"acex certificate 1\n"  # signed in front of the checksum: no signature made for another purpose is valid


def parsed(text: str) -> Any:
    """The document in a JSON text.

    Raises:
        ValueError: it is not JSON, or an object has a duplicate name, whose value differs between programs.
    """
    return json.loads(text, parse_constant=_refused, object_pairs_hook=unique_names)


def canonical_form(document: Any) -> str:
    """The canonical form of a document from `parsed`."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def sum_of(document: Mapping[str, Any]) -> str:
    """The checksum of a document from `parsed`, without its certificate."""
    rest = {name: value for name, value in document.items() if name != "certificate"}
    if "rows" in rest:  # a batch: its checksum covers the certificate of each explanation
        rest["rows"] = [row | {"explanation": _represented(row.get("explanation"))} for row in rest["rows"]]
    return hashlib.sha256(canonical_form(rest).encode("ascii")).hexdigest()


def certified(document: Mapping[str, Any], sign: str | Path | None = None, *, indent: int | None = 1) -> str:
    """The document, of JSON-compatible values, as JSON text with its certificate.

    Args:
        sign: a file with the Ed25519 private key (PEM) to sign with.
    """
    text = _text(document, indent)
    total = sum_of(parsed(text))
    certificate: dict[str, Any] = {"version": VERSION, "sha256": total}
    if sign is not None:
        certificate |= _signature(total, sign)
    return _text({**document, "certificate": certificate}, indent)


def faults(document: Mapping[str, Any], key: str | Path | None = None) -> list[str]:
    """The problems of the checksum and the signature of a document from `parsed`, a sentence each.

    Args:
        key: a file with the public key (PEM) of the expected signer.
    """
    certificate = document.get("certificate")
    if not isinstance(certificate, dict):
        return ["no certificate: acex before 0.2.0 wrote it, or the certificate was removed."]
    if repr(certificate.get("version")) != repr(VERSION):  # neither True nor 1.0
        return [f"certificate of version {certificate.get('version')}; this acex reads version {VERSION}."]
    unknown = sorted(certificate.keys() - {"version", "sha256", "signature", "public_key"})
    found = [f"unknown field {unknown[0]!r} in the certificate."] if unknown else []
    if certificate.get("sha256") != sum_of(document):
        found.append("checksum mismatch: it was changed after it was written.")
    if "signature" in certificate:
        found += _signature_faults(certificate, key)
    elif key is not None:
        found.append("it is not signed.")
    return found


def signer(document: Mapping[str, Any]) -> str | None:
    """The public key in the certificate of a document, in base64; None if the document is not signed."""
    certificate = document.get("certificate")
    key = certificate.get("public_key") if isinstance(certificate, dict) and "signature" in certificate else None
    return None if key is None else str(key)


def _text(document: Mapping[str, Any], indent: int | None) -> str:
    return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)


def _represented(explanation: Any) -> Any:
    certificate = explanation.get("certificate") if isinstance(explanation, dict) else None
    return explanation if certificate is None else certificate


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number of JSON")


# -- signatures ------------------------------------------------------------------------------------------------


def read_key(path: str | Path, kind: Literal["private", "public"]) -> Any:
    """The Ed25519 key of this kind in a PEM file.

    Raises:
        ValueError: the file holds no such key.
    """
    serialization, ed25519, _ = _cryptography()
    content, load = Path(path).read_bytes(), getattr(serialization, f"load_pem_{kind}_key")
    try:
        key = load(content, password=None) if kind == "private" else load(content)
    except (ValueError, TypeError) as error:
        is_secret = kind == "public" and b"PRIVATE KEY" in content
        why = "this is the private key, which only the signer has" if is_secret else error
        raise ValueError(f"{path}: expected an Ed25519 {kind} key in PEM: {why}") from None
    if not isinstance(key, getattr(ed25519, f"Ed25519{kind.title()}Key")):
        raise ValueError(f"{path}: expected an Ed25519 {kind} key, got {type(key).__name__}.")
    return key


def _signature(total: str, path: str | Path) -> dict[str, str]:
    key = read_key(path, "private")
    return {
        "signature": _base64(key.sign(SIGNED + total.encode())),
        "public_key": _base64(key.public_key().public_bytes_raw()),
    }


def _signature_faults(certificate: Mapping[str, Any], key: str | Path | None) -> list[str]:
    _, ed25519, exceptions = _cryptography()
    try:
        raw, signature = (base64.b64decode(certificate[name], validate=True) for name in ("public_key", "signature"))
        # Base64 ignores some bits of its last letter: without this check, that letter could be changed unnoticed.
        if [_base64(raw), _base64(signature)] != [certificate["public_key"], certificate["signature"]]:
            raise ValueError("spare bits")
        public = ed25519.Ed25519PublicKey.from_public_bytes(raw)
    except (LookupError, ValueError, TypeError):
        return ["the signature cannot be read."]
    try:
        public.verify(signature, SIGNED + str(certificate.get("sha256")).encode())
    except exceptions.InvalidSignature:
        return ["signature mismatch: it was changed, or someone else signed it."]
    if key is None or read_key(key, "public").public_bytes_raw() == raw:
        return []
    theirs = f"the signature is valid, but made with the key {certificate['public_key']}, not with the one in {key}"
    return [f"{theirs}: this is not the signer's key, or somebody else signed it."]


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _cryptography() -> list[Any]:
    names = ("hazmat.primitives.serialization", "hazmat.primitives.asymmetric.ed25519", "exceptions")
    return [optional(f"cryptography.{name}", "Signing a file, or checking a signature,", "sign") for name in names]
