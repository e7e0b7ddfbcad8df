"""The model that a command queries: a file, Python code or an HTTP endpoint."""

from __future__ import annotations

import re
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

import acex
from acex.cli.program import say
from acex.options import MODEL, suggests_names

# Types in a --model-config that `HttpModel` does not check before a row is sent.
KINDS = {"labels": str, "input_name": str, "version": str, "classes": list, "headers_from_env": dict}


@dataclass(frozen=True)
class ModelFlags:
    """The flags that say where the model is."""

    panel: ClassVar[str] = MODEL
    model: Annotated[
        str,
        typer.Option(
            help="A file (.skops, .onnx, .json, .ubj, .txt, .cbm; .joblib, .pkl), module:name for Python code, or "
            "http(s)://..."
        ),
    ]
    protocol: Annotated[
        str | None,
        typer.Option(metavar="v2|mlflow|json|chat", help="Protocol of an http address."),
    ] = None
    model_config: Annotated[Path | None, typer.Option(help="TOML file with more arguments of acex.HttpModel.")] = None
    header_from_env: Annotated[
        list[str] | None,
        typer.Option(metavar="HEADER=VARIABLE", help="Header from an environment variable."),
    ] = None
    allow_pickle: Annotated[bool, typer.Option("--allow-pickle", help="Load .joblib and .pkl, which may run code.")] = (
        False
    )

    def open(self, timeout: float | None = None) -> Any:
        """The model, ready to be queried; `timeout` is for an HTTP endpoint.

        Raises:
            ValueError: the flags do not lead to one.
        """
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always", UserWarning)
            try:
                model = self._remote(timeout) if self._is_remote else self._local()
            except TypeError as error:
                raise ValueError(f"--model {self.model}: {error}") from error
        for warning in raised:
            say(f"warning: {warning.message}")
        return model

    @property
    def _is_remote(self) -> bool:
        return self.model.startswith(("http://", "https://"))

    def _local(self) -> Any:
        for option, value in (("protocol", self.protocol), ("model-config", self.model_config)):
            if value is not None:
                raise ValueError(f"--{option} is for an http address, not for --model {self.model}.")
        try:
            return acex.load_model(self.model, allow_pickle=self.allow_pickle)
        except FileNotFoundError:
            raise ValueError(f"--model {self.model}: no such file.") from None
        except (ValueError, OSError, acex.AcexError):
            raise
        except Exception as error:  # a user's own module or a pickle may raise anything
            raise ValueError(f"--model {self.model}: {type(error).__name__}: {error}") from error

    def _remote(self, timeout: float | None) -> Any:
        if self.protocol is None:
            raise ValueError(f"--model {self.model} needs --protocol: v2, mlflow, json or chat.")
        # Also if a password that contains a slash looks like a host with an odd port.
        if re.match(r"https?://[^/:@]*:(?!\d*[/?#])\S*@", self.model):
            raise ValueError("--model: a password in the address would be stored; give it with --header-from-env.")
        more: dict[str, Any] = {}
        if self.model_config is not None:
            try:
                more = tomllib.loads(self.model_config.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"--model-config {self.model_config}: {error}") from None
            for name, kind in KINDS.items():
                if not isinstance(more.get(name, kind()), kind):
                    expected = f"expected {kind.__name__}, got {more[name]!r}"
                    raise ValueError(f"--model-config {self.model_config}: {name}: {expected}.")
        headers = {header: str(variable) for header, variable in more.pop("headers_from_env", {}).items()}
        for text in self.header_from_env or ():
            header, _, variable = text.partition("=")
            if not (header and variable):
                raise ValueError(f"--header-from-env: expected HEADER=VARIABLE, got {header!r} without a variable.")
            headers[header] = variable
        more |= {} if timeout is None else {"timeout": timeout}
        make = suggests_names(acex.HttpModel)
        return make(self.model, protocol=self.protocol, headers_from_env=headers, **more)


@dataclass(frozen=True)
class OptionalModelFlags(ModelFlags):
    """The same flags for commands that can do without a model."""

    model: Annotated[
        str,
        typer.Option(show_default=False, help="A file, module:name for Python code, or http(s)://..."),
    ] = ""
