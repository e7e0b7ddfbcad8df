"""What is left out of files that are written, and who signs them: options that commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from acex.cli.tables import writable


@dataclass(frozen=True)
class Seal:
    """How a file is sealed."""

    sign: Annotated[
        Path | None, typer.Option(metavar="KEY.PEM", dir_okay=False, help="Sign what is written, with an Ed25519 key.")
    ] = None
    redact: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Leave columns out of what is written: age,sex.")
    ] = None

    @property
    def columns(self) -> list[str]:
        """The columns to leave out."""
        return [name.strip() for text in self.redact or () for name in text.split(",")]

    def check(self, features: Sequence[str]) -> None:
        """Refuse, before anything is asked and paid for, what could not be written afterwards.

        Raises:
            ValueError: a column is none of the features, or the key is none.
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
    typer.Option(dir_okay=False, callback=writable, help="Write here what --redact leaves out, to be kept apart."),
]
