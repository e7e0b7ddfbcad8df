"""Signatures and redaction of the files that commands write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from acex.cli.tables import writable


@dataclass(frozen=True)
class Seal:
    """The flags about signatures and redaction."""

    sign: Annotated[
        Path | None, typer.Option(metavar="KEY.PEM", dir_okay=False, help="Sign what is written with an Ed25519 key.")
    ] = None
    redact: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Columns to leave out of what is written: age,sex.")
    ] = None

    @property
    def columns(self) -> list[str]:
        """The columns to leave out."""
        return [name.strip() for text in self.redact or () for name in text.split(",")]

    def check(self, features: Sequence[str]) -> None:
        """Check columns and key before anything is sent.

        Raises:
            ValueError: a column is not a feature, or the file does not contain a key.
        """
        from acex.engine.certificate import private_key
        from acex.engine.redaction import left_out

        left_out(self.columns, features)
        if self.sign is not None:
            private_key(self.sign)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `to_json` and `to_html`."""
        return {"sign": self.sign, "redact": self.columns}


LeftOut = Annotated[
    Path | None,
    typer.Option(dir_okay=False, callback=writable(), help="Write what --redact leaves out here, to keep it apart."),
]
