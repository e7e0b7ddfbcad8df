"""A fingerprint of a function among the rules, the same in every process: part of an explanation's identity.

It covers the code, and the values that the code uses: defaults, closure and globals. Plain values and functions are
identified by their content, callable objects by their methods and attributes, and names of installed libraries by the
name alone. Anything else has no fingerprint, and the explanation cannot be resumed. A fingerprint need not be perfect:
the session calls the function before it sends a row.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from acex.values import fingerprint

LIBRARIES = {*sys.stdlib_module_names, "numpy", "pandas", "scipy", "sklearn", "acex"}  # a name is enough for these


def fingerprint_of(function: Any) -> tuple[str, bool]:
    """A fingerprint of a callable, and whether it covers everything that the callable uses."""
    unknown: list[Any] = []
    try:
        return fingerprint(_described(function, [], unknown)), not unknown
    except RecursionError:  # an object that refers to itself
        return fingerprint(["unknown", type(function).__name__]), False


def _described(value: Any, seen: list[Any], unknown: list[Any]) -> Any:
    """A JSON-compatible description of the value; a value that has none is added to `unknown`.

    Args:
        seen: functions that are already described; functions may use each other.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    kind = type(value).__name__
    if _is_in_library(value):
        return [kind, value.__name__ if isinstance(value, ModuleType) else [value.__module__, value.__qualname__]]
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype != object:
        return [kind, str(value.dtype), list(value.shape), np.ascontiguousarray(value).tobytes().hex()]
    if isinstance(value, FunctionType):
        if value in seen:
            return [kind, seen.index(value)]
        seen.append(value)
    if type(value) in (set, frozenset):
        return [kind, *sorted(fingerprint(_described(item, seen, unknown)) for item in value)]
    parts = _parts(value)
    if parts is None:
        unknown.append(value)
        return ["unknown", kind]
    return [kind, *(_described(part, seen, unknown) for part in parts)]


def _parts(value: Any) -> list[Any] | None:
    """The parts of a container, a partial, a function, a code object or a callable object; None for anything else."""
    if type(value) in (tuple, list):
        return list(value)
    if type(value) is dict:
        return [part for item in value.items() for part in item]
    if type(value) is bytes:
        return [value.hex()]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, CodeType):
        return [value.co_code, *value.co_names, *value.co_consts]
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        used = [
            (name, value.__globals__[name]) for name in sorted({*_globals_in(value.__code__)} & {*value.__globals__})
        ]
        return [value.__code__, value.__defaults__, value.__kwdefaults__, cells, used]
    methods = {name: m for name, m in vars(type(value)).items() if isinstance(m, FunctionType)}
    if "__call__" in methods and hasattr(value, "__dict__"):
        return [*(m for name, m in methods.items() if name == "__call__" or name[:2] != "__"), vars(value)]
    return None


def _globals_in(code: CodeType) -> Iterator[str]:
    """The global names that a function and the functions inside it look up."""
    yield from (i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_in(inner)


def _is_in_library(value: Any) -> bool:
    """Whether the value is a module, a class or a function of a library, which its name identifies."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] not in LIBRARIES:
        return False
    name = getattr(value, "__qualname__", None)
    return isinstance(value, ModuleType) or (name is not None and getattr(sys.modules.get(module), name, None) is value)
