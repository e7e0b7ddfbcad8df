"""The model that a command asks: a file, Python code or an HTTP endpoint."""

from __future__ import annotations

import re
import tomllib
import warnings
from dataclasses import dataclass
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

import acex
from acex.cli.flags import Given
from acex.cli.program import say
from acex.values import did_you_mean, listed

# What of a --model-config is not looked at before a row is sent.
KINDS = {"labels": str, "input_name": str, "version": str, "classes": list, "headers_from_env": dict}


class Protocol(StrEnum):
    """How an HTTP endpoint wants to be asked."""

    V2 = "v2"
    MLFLOW = "mlflow"
    JSON = "json"
    CHAT = "chat"


@dataclass(frozen=True)
class ModelFlags:
    """What the flags say about where the model is."""

    model: Annotated[
        str,
        typer.Option(
            help="A file (.skops, .onnx, .json, .ubj, .txt, .cbm; .joblib, .pkl), module:name for Python code, or "
            "http(s)://..."
        ),
    ]
    protocol: Annotated[Protocol | None, typer.Option(help="How an http address is asked.")] = None
    model_config: Annotated[
        Path | None,
        typer.Option(help="TOML file with more of acex.HttpModel's arguments, such as request and labels."),
    ] = None
    header_from_env: Annotated[
        list[str] | None,
        typer.Option(metavar="HEADER=VARIABLE", help="A header whose value is in an environment variable."),
    ] = None
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Load .joblib and .pkl, which run any code inside.")
    ] = False

    def open(self, given: Given) -> Any:
        """The model, ready to be queried; an HTTP endpoint takes the timeout that was given.

        Raises:
            ValueError: the options do not lead to one.
        """
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always", UserWarning)
            try:
                model = self._remote(given.get("timeout")) if self._is_remote else self._local()
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
            raise ValueError(f"--model {self.model}: there is no such file.") from None
        except (ValueError, OSError, acex.AcexError):
            raise
        except Exception as error:  # whatever a user's own module or a pickle raises
            raise ValueError(f"--model {self.model}: {type(error).__name__}: {error}") from error

    def _remote(self, timeout: float | None) -> Any:
        if self.protocol is None:
            raise ValueError(f"--model {self.model} needs --protocol: v2, mlflow, json or chat.")
        # Also where a password with a slash makes it look like a host with a strange port.
        if re.match(r"https?://[^/:@]*:(?!\d*[/?#])\S*@", self.model):
            raise ValueError("--model: a password in the address would be stored; give it with --header-from-env.")
        more: dict[str, Any] = {}
        if self.model_config is not None:
            try:
                more = tomllib.loads(self.model_config.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"--model-config {self.model_config}: {error}") from None
            taken = [name for name in signature(acex.HttpModel).parameters if name not in ("url", "protocol")]
            if unknown := [name for name in more if name not in taken]:
                hint = did_you_mean(unknown[0], taken)
                known = listed(taken, most=len(taken))
                raise ValueError(
                    f"--model-config {self.model_config}: {listed(unknown)} is no argument of acex.HttpModel; "
                    f"there are {known}.{hint}"
                )
            for name, kind in KINDS.items():
                if not isinstance(more.get(name, kind()), kind):
                    what = {str: "a text", list: "a list", dict: "a table"}[kind]
                    raise ValueError(f"--model-config {self.model_config}: expected {what} for {name!r}.")
        if timeout is not None:
            more["timeout"] = timeout
        headers = {header: str(variable) for header, variable in more.pop("headers_from_env", {}).items()}
        for text in self.header_from_env or ():
            header, equals, variable = text.partition("=")
            if not (equals and header and variable):
                raise ValueError(f"--header-from-env: expected HEADER=VARIABLE, got {header!r} without a variable.")
            headers[header] = variable
        return acex.HttpModel(self.model, protocol=self.protocol.value, headers_from_env=headers, **more)


def with_timeout(model: Any, timeout: float | None) -> acex.Model:
    """The model with a limit for each request; an endpoint limits its requests itself."""
    return acex.Model(model, timeout=None if isinstance(model, acex.HttpModel) else timeout)
