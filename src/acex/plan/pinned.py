"""What can be told of a callable, the same in every process: its code, and all that the code depends on.

A rule that decides what may be asked is part of an explanation's identity. Two rules with equal traits decide alike, as
far as everything they use could be pinned down; what could not is said, and nobody goes on from such an explanation.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from acex.values import fingerprint

DEEPEST = 12  # levels of what uses what; beyond, nothing is pinned down


def pinned(rule: Any) -> tuple[str, bool]:
    """A fingerprint of a callable, and whether it covers all that the callable depends on."""
    traits = _Traits()
    written = traits.of(rule, 0)
    return fingerprint(written), traits.complete


class _Traits:
    """Collects what a value is made of; `complete` turns False at the first thing that cannot be told."""

    def __init__(self) -> None:
        self.complete = True
        self._open: list[int] = []  # what is being looked at: functions may use each other

    def of(self, value: Any, depth: int) -> Any:
        """The value in plain terms that JSON can hold."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if id(value) in self._open:
            return ["again", self._open.index(id(value))]
        if depth > DEEPEST:
            return self._unknown(value)
        self._open.append(id(value))
        try:
            return [type(value).__name__, *self._parts(value, depth + 1)]
        finally:
            self._open.pop()

    def _parts(self, value: Any, depth: int) -> Iterator[Any]:
        match value:
            case bytes():
                yield value.hex()
            case np.generic() | np.ndarray() if value.dtype != object:
                yield [str(value.dtype), list(value.shape), np.ascontiguousarray(value).tobytes().hex()]
            case tuple() | list():
                yield from (self.of(v, depth) for v in value)
            case Set():
                yield from sorted(fingerprint(self.of(v, depth)) for v in value)
            case Mapping():
                yield from ([self.of(k, depth), self.of(v, depth)] for k, v in value.items())
            case ModuleType() | BuiltinFunctionType() | type() if _is_named(value):
                yield [getattr(value, "__module__", ""), value.__name__]
            case CodeType():
                yield [value.co_code.hex(), list(value.co_names), list(value.co_freevars)]
                yield from (self.of(c, depth) for c in value.co_consts)
            case FunctionType():
                yield self.of(value.__code__, depth)
                yield self.of([value.__defaults__, value.__kwdefaults__], depth)
                yield [self.of(cell.cell_contents, depth) for cell in value.__closure__ or ()]
                yield [[name, self.of(used, depth)] for name, used in _globals_of(value)]
            case MethodType():
                yield self.of([value.__func__, value.__self__], depth)
            case partial():
                yield self.of([value.func, value.args, value.keywords], depth)
            case _ if is_dataclass(value) and not isinstance(value, type):
                yield self.of([type(value).__call__ if callable(value) else None, _fields(value)], depth)
            case _ if _is_plain_object(value):
                yield self.of([type(value).__call__ if callable(value) else None, vars(value)], depth)
            case _:
                yield self._unknown(value)

    def _unknown(self, value: Any) -> Any:
        self.complete = False
        return ["unknown", type(value).__qualname__]


def _globals_of(function: FunctionType) -> list[tuple[str, Any]]:
    """The global names that a function, and the functions inside it, may use, with what they stand for now."""
    names: set[str] = set()
    waiting = [function.__code__]
    while waiting:
        code = waiting.pop()
        names.update(code.co_names)
        waiting += [c for c in code.co_consts if isinstance(c, CodeType)]
    known = function.__globals__
    return [(name, known[name]) for name in sorted(names) if name in known and not hasattr(builtins, name)]


def _is_named(value: Any) -> bool:
    """Does a name say which module, built-in function or class this is?"""
    if isinstance(value, BuiltinFunctionType):
        return isinstance(value.__self__, ModuleType)  # and not the method of some object
    return not isinstance(value, type) or value.__module__ != "__main__"


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, without what was worked out from them since."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _is_plain_object(value: Any) -> bool:
    """Is the object of a class written in Python, with all that it knows in its attributes?"""
    written_in_python = isinstance(getattr(type(value), "__init__", None), FunctionType) or callable(value)
    return written_in_python and hasattr(value, "__dict__") and "__reduce__" not in vars(type(value))
