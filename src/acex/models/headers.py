"""Headers whose values are in the environment: keys, which nobody keeps, and what selects a model."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acex.models.secrets import Secrets
from acex.values import listed

KEYS = re.compile(r"auth|key|token|secret|password|cookie|credential|signature|session|jwt", re.IGNORECASE)


@dataclass(frozen=True)
class Headers:
    """Header to environment variable; those in `identity` select the model, those in `keys` are keys.

    A header in neither whose name does not say that it is a key gets a remark: if it selects the model after all, two
    models would share their answers in a ledger.
    """

    variables: Mapping[str, str]
    identity: Sequence[str] = ()
    keys: Sequence[str] = ()

    def __post_init__(self) -> None:
        for header, variable in self.variables.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", variable):  # not shown: it may be the secret itself
                raise ValueError(f"headers_from_env[{header!r}] must be the name of an environment variable.")
        for name, headers in (("identity_headers", self.identity), ("key_headers", self.keys)):
            for header in headers:
                if header not in self.variables:
                    known = listed(self.variables)
                    raise ValueError(f"{name}: {header!r} is not among headers_from_env: {known or 'there are none'}.")
        for header in self.variables:
            is_key = header in self.keys or KEYS.search(header) is not None
            if header in self.identity and is_key:
                raise ValueError(f"identity_headers: {header!r} is a key: with a new one all would be paid for again.")
            if header not in self.identity and not is_key:
                warnings.warn(
                    f"headers_from_env: does {header!r} select the model? Then name it in identity_headers, or two "
                    f"models share their answers in a ledger. If it is a key, name it in key_headers.",
                    stacklevel=5,  # whoever makes an HttpModel
                )

    def read(self) -> dict[str, str]:
        """The headers with the values that the environment has for them now.

        Raises:
            ValueError: it has none, or one that cannot be sent.
        """
        return {header: self._value(header) for header in self.variables}

    def secrets(self, values: Mapping[str, str]) -> Secrets:
        """Those of these values that must not be shown: all but what selects the model."""
        return Secrets.of({header: value for header, value in values.items() if header not in self.identity})

    def mark(self) -> str | None:
        """A mark of what selects the model now; None where nothing does."""
        if not self.identity:
            return None
        return mark(sorted((header.lower(), self._value(header)) for header in self.identity))

    def _value(self, header: str) -> str:
        variable = self.variables[header]
        value = os.environ.get(variable, "").strip()
        if not value or not (value.isascii() and value.isprintable()):
            how = "is not set" if not value else "holds characters that a header cannot"
            raise ValueError(f"The environment variable {variable} for {header!r} {how}.")
        return value


def mark(value: Any) -> str:
    """A short mark of a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
