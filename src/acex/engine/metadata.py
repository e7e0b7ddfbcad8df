"""The versions that an explanation ran with."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from acex.ledger import Ledger


def named(model: Any, model_id: str | None, is_shared: bool) -> str:
    """The model's name in the ledger."""
    model_id = model_id or getattr(model, "model_id", None)
    if model_id is None and is_shared:
        raise ValueError(
            f"A ledger that outlives this explainer needs model_id: a name for this {type(model).__name__}, and "
            f"another one whenever it is trained anew, such as model_id='loans-2026-11'."
        )
    if not (model_id is None or isinstance(model_id, str)):
        raise TypeError(f"model_id must be text, got {model_id!r}.")
    return model_id or "model"


def name_in_memory(model: Any, model_id: str | None, features: Sequence[str]) -> str | None:
    """What the explainer's own ledger goes by for the next process; None without a name of the model: it may be any."""
    model_id = model_id or getattr(model, "model_id", None)
    return None if model_id is None else json.dumps([model_id, *map(str, features)])


def taken_over(ledger: Ledger) -> tuple[str, ...]:
    """A remark on answers of a process that did not come to its end, where there were some."""
    if not (ledger.is_memory and ledger.found):
        return ()
    return (
        f"answers of an earlier process, which did not come to its end, were found and cost nothing ({ledger.found})",
    )


@cache
def versions() -> dict[str, str]:
    """Of what the numbers depend on, beside acex itself."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
