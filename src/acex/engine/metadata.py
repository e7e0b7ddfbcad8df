"""The versions that an explanation ran with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version


@cache
def versions() -> dict[str, str]:
    """Of what the numbers depend on, beside acex itself."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
