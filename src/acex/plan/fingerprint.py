"""A fingerprint of a callable, the same in every process: its code, and everything that the code depends on.

A function among the rules is part of an explanation's identity. Where something that it uses has no fingerprint, the
explanation cannot be resumed. A fingerprint need not be perfect: the session calls the function before it sends a row.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from acex.values import fingerprint

DEEPEST = 24  # levels of what uses what; anything deeper has no fingerprint
LIBRARIES = {*sys.stdlib_module_names, "numpy", "pandas", "scipy", "sklearn", "acex"}  # where a name says enough
WRAPPED = (staticmethod, classmethod, property, cached_property)


def fingerprint_of(function: Any) -> tuple[str, bool]:
    """A fingerprint of a callable, and whether it covers all that the callable depends on."""
    traits = _Traits()
    written = traits.of(function, 0)
    return fingerprint(written), traits.complete


class _Traits:
    """Collects what a value is made of; `complete` becomes False at the first value without a fingerprint."""

    def __init__(self) -> None:
        self.complete = True
        self._open: set[int] = set()  # what is being looked at: functions may use each other
        self._written: dict[Any, str] = {}  # functions and classes, which are looked at once

    def of(self, value: Any, depth: int) -> Any:
        """The value in plain terms that JSON can hold."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if not isinstance(value, (FunctionType, type)):
            return self._made_of(value, depth)
        if value not in self._written:
            self._written[value] = "again " + value.__qualname__  # while it is being looked at
            self._written[value] = fingerprint(self._made_of(value, depth))
        return self._written[value]

    def _made_of(self, value: Any, depth: int) -> Any:
        if id(value) in self._open:
            return ["again", type(value).__qualname__]
        if depth > DEEPEST:
            return self._unknown(value)
        self._open.add(id(value))
        try:
            kind = type(value)
            name = kind.__name__ if _is_library(kind.__module__) else self.of(kind, depth + 1)
            return [name, *self._parts(value, depth + 1)]
        finally:
            self._open.discard(id(value))

    def _parts(self, value: Any, depth: int) -> Iterator[Any]:
        match value:
            case str() | int() | float():  # with a class of its own, such as an enumeration
                yield repr(value)
            case bytes():
                yield value.hex()
            case np.generic() | np.ndarray() if value.dtype != object:
                yield [str(value.dtype), list(value.shape), np.ascontiguousarray(value).tobytes().hex()]
            case tuple() | list():
                yield from (self.of(v, depth) for v in value)
                yield self.of(getattr(value, "__dict__", None), depth)
            case Set():
                yield from sorted(fingerprint(self.of(v, depth)) for v in value)
            case Mapping():
                yield from ([self.of(k, depth), self.of(v, depth)] for k, v in value.items())
                yield self.of(getattr(value, "__dict__", None), depth)
            case ModuleType():
                yield value.__name__
            case BuiltinFunctionType() if isinstance(value.__self__, (ModuleType, type)):  # no object's
                yield [self.of(value.__self__, depth), value.__name__]
            case FunctionType() | type() if _is_library(value.__module__):
                yield [value.__module__, value.__qualname__]
                if isinstance(value, FunctionType):  # made there, but perhaps of what is the caller's
                    yield self._bound(value, depth)
            case type():
                yield self.of(value.__bases__, depth)
                yield [[name, self.of(member, depth)] for name, member in _members(value)]
            case FunctionType():
                yield self.of(value.__code__, depth)
                yield self._bound(value, depth)
                attributes, names = _names_in(value.__code__)
                yield list(self._used(value.__globals__, names - set(dir(builtins)), attributes, depth))
            case CodeType():
                yield [value.co_code.hex(), list(value.co_names), list(value.co_freevars)]
                yield from (self.of(c, depth) for c in value.co_consts)
            case MethodType():
                yield self.of([value.__func__, value.__self__], depth)
            case partial():
                yield self.of([value.func, value.args, value.keywords], depth)
            case staticmethod() | classmethod():
                yield self.of(value.__func__, depth)
            case property() | cached_property():
                yield self.of(value.fget if isinstance(value, property) else value.func, depth)
            case _ if is_dataclass(value):
                # The fields, without what was worked out from them since.
                yield self.of([[f.name, getattr(value, f.name)] for f in fields(value)], depth)
            case _ if _is_plain_object(value):
                yield self.of(vars(value), depth)
            case _:
                yield self._unknown(value)

    def _bound(self, function: FunctionType, depth: int) -> Any:
        """What a function has been given when it was made."""
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        return self.of([function.__defaults__, function.__kwdefaults__, cells, function.__dict__], depth)

    def _used(self, known: Mapping[str, Any], wanted: Set[str], attributes: Set[str], depth: int) -> Iterator[Any]:
        """The names that a function looks up, as far as they are known, with what they stand for now."""
        for name in sorted(wanted & known.keys()):
            value = known[name]
            yield [name, self.of(value, depth)]
            if isinstance(value, ModuleType) and not _is_library(value.__name__):
                yield list(self._used(vars(value), attributes - {name}, attributes - {name}, depth + 1))

    def _unknown(self, value: Any) -> Any:
        self.complete = False
        return ["unknown", type(value).__qualname__]


def _names_in(code: CodeType) -> tuple[set[str], set[str]]:
    """All names in a function and the functions inside it, and those of them that are global."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more, further = _names_in(inner)
            names, found = names | more, found | further
    return names, found


def _members(kind: type) -> list[tuple[str, Any]]:
    """What a class of the caller's holds: its methods and constants, not what Python itself has put there."""
    own = ("__call__",) if is_dataclass(kind) else ("__call__", "__init__")
    return [
        (name, member)
        for name, member in sorted(vars(kind).items())
        if (name in own or not name.startswith(("__", "_abc_")))
        and (isinstance(member, (FunctionType, type, *WRAPPED)) or not hasattr(type(member), "__get__"))
    ]


def _is_library(module: str | None) -> bool:
    return module is None or module.partition(".")[0] in LIBRARIES


def _is_plain_object(value: Any) -> bool:
    """Is the object of classes written in Python, with all that it knows in its attributes?"""
    written_elsewhere = {"__reduce__", "__reduce_cython__", "__setstate_cython__", "__slots__"}
    kinds = [kind for kind in type(value).__mro__ if kind is not object]
    in_python = isinstance(getattr(type(value), "__init__", None), FunctionType) or callable(value)
    return in_python and hasattr(value, "__dict__") and not any(written_elsewhere & vars(kind).keys() for kind in kinds)
