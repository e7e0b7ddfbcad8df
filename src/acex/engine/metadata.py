"""The versions that an explanation ran with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from typing import Any


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


@cache
def versions() -> dict[str, str]:
    """Of what the numbers depend on, beside acex itself."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
