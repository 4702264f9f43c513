"""Just-in-time compilation: a function, traced with expressions, becomes a graph for each signature of its calls."""

from __future__ import annotations

import sys
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from inspect import signature
from threading import Lock
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from ..core.enums import ExecutionFlags
from ..core.errors import kind_of, refuse
from ..core.interop import as_operand
from ..device import Device
from ..functions._call import as_device
from ..functions._call_cache import exact
from ..functions._operand_adapter import are_arrays
from ..graph.compile import CompiledGraph
from ..runtime.call import OPTIONS_OF_CALLS
from ..runtime.compiled import check_flags
from .chunked import batches_for
from .directmlx import Expression, Graph

_MOST_KEPT = 64
"""Signatures of which a function keeps what it has compiled, those called last."""


class Traced(NamedTuple):
    """A function, compiled for a signature."""

    graph: CompiledGraph
    returned: Any
    """What it returns, with the numbers of the graph's outputs in place of them."""


def compile(
    function: Callable[..., Any] | None = None,
    *,
    device: Device | str | None = None,
    flags: ExecutionFlags = ExecutionFlags.NONE,
) -> Any:
    """A function of arrays that compiles what it computes, as a graph, for each signature that it is called with.

    It calls `function` with expressions in place of arrays when it meets their types and shapes for the first time, or
    other options beside them; what is compiled then serves all further calls that are alike. Of 64 signatures, those
    called last, it is kept. Called with expressions, it is the function itself.

    Args:
        function: takes arrays, also in lists, tuples and dictionaries, and options, which are all else, lists of
            numbers among them; returns expressions, also in lists, tuples and dictionaries. None makes a decorator that
            has the other arguments.
        device: where to run, a Device or its name; "cpu" where None.
        flags: as for :meth:`anydml.Device.compile_operator`.

    Returns:
        A function of the same arguments, which returns arrays like its first one. Its method ``graph`` gives the
        CompiledGraph of a call, to be explained or drawn.

    >>> import anydml
    >>> @anydml.compile
    ... def scaled(x, weights, factor=2):
    ...     return anydml.relu(x @ weights) * factor
    >>> scaled(np.ones((1, 2), np.float32), np.array([[1], [2]], np.float32))
    array([[6.]], dtype=float32)
    >>> scaled(np.ones((3, 1), np.float32), np.ones((1, 1), np.float32), factor=5).shape
    (3, 1)
    """
    if function is None:
        return partial(compile, device=device, flags=flags)
    if not callable(function):
        refuse("compile", "(G9)", "function", kind_of(function), "a function of arrays", kind="type")
    check_flags("compile", flags)
    return CompiledFunction(function, as_device(device), flags)


class CompiledFunction:
    """What :func:`anydml.compile` returns. Several threads may call it at once."""

    def __init__(self, function: Callable[..., Any], device: Device, flags: ExecutionFlags) -> None:
        update_wrapper(self, function)
        self.device = device
        self._function = function
        self._name: str = getattr(function, "__name__", "function")
        self._flags = flags
        self._kept: OrderedDict[Hashable, Traced] = OrderedDict()
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<compiled {self._function!r} on {self.device}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By its name, where that is what the name says, as of a function that is decorated."""
        name = getattr(self._function, "__qualname__", "")
        named: Any = sys.modules.get(getattr(self._function, "__module__", ""))
        for part in name.split("."):
            named = getattr(named, part, None)
        return name if named is self else (CompiledFunction, (self._function, self.device, self._flags))

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """A method, where a class has it."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        given: list[Any] = []
        mapped((arguments, options), given.append)
        if not are_arrays(given):
            batches = batches_for(given)
            over_rows = batches and batches.run_function(self, arguments, options)
            return over_rows[0] if over_rows else self._function(*arguments, **options)
        traced, arrays = self._traced(arguments, options)
        found = traced.graph(*arrays)
        results = found if isinstance(found, list) else [found]
        return mapped(traced.returned, results.__getitem__)

    def graph(self, *arguments: Any, **options: Any) -> CompiledGraph:
        """What serves a call with these arguments, compiled where it was not yet."""
        return self._traced(arguments, options)[0].graph

    def _traced(self, arguments: Any, options: Any) -> tuple[Traced, list[Any]]:
        """What serves a call, and its arrays."""
        name = self._name
        arrays: list[Any] = []

        def as_leaf(value: Any) -> _Operand | _Option:
            if not _is_array(value):
                return _Option(value)
            where = f"arrays[{len(arrays)}]"
            arrays.append(as_operand(name, where, value))
            found = self.device.memory.import_array(name, where, arrays[-1])
            return _Operand(len(arrays) - 1, found.dtype, tuple(found.shape))

        call = mapped((arguments, options), as_leaf)
        key = _key(call)
        try:
            with self._lock:
                known = self._kept.get(key)
                if known is not None:
                    self._kept.move_to_end(key)
        except TypeError as problem:
            expected = "arrays, and options that have a hash"
            refuse(name, "(G12)", "", f"an option without ({problem})", expected, kind="type")
        if known is None:
            known = self._compiled(call, arrays)
            with self._lock:
                self._kept[key] = known
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        return known, arrays

    def _compiled(self, call: Any, arrays: Sequence[Any]) -> Traced:
        graph, names = Graph(self.device), _names(self._function, call)
        inputs = [graph.input(each, name=names.get(i, "")) for i, each in enumerate(arrays)]
        arguments, options = mapped(
            call, lambda leaf: inputs[leaf.number] if isinstance(leaf, _Operand) else leaf.value
        )
        outputs: list[Expression] = []

        def number_of(value: Any) -> int:
            if not isinstance(value, Expression):
                expected = "an Expression, or expressions in a list, a tuple or a dictionary"
                refuse(self._name, "(G12)", "return", kind_of(value), expected, kind="type")
            outputs.append(value)
            return len(outputs) - 1

        returned = mapped(self._function(*arguments, **options), number_of)
        return Traced(graph.compile(outputs, self._flags), returned)


@dataclass(frozen=True, slots=True)
class _Operand:
    """An array of a call."""

    number: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Option:
    """What of a call is no array."""

    value: Any


def _is_array(value: Any) -> bool:
    """Whether it is one whose type says so; NumPy's scalars are numbers, and lists structures."""
    if isinstance(value, (type, np.generic)):
        return False
    marks = ("__array_interface__", "__dlpack__", "__array__")
    return isinstance(value, (bytearray, memoryview, array)) or any(hasattr(value, mark) for mark in marks)


def mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """A structure of lists, tuples and dictionaries, with something else in place of each leaf."""
    if type(value) in (list, tuple):
        return type(value)([mapped(each, leaf) for each in value])
    if type(value) is dict:
        return {key: mapped(each, leaf) for key, each in value.items()}
    return leaf(value)


def _key(value: Any) -> Hashable:
    """What tells calls apart that are compiled each for itself."""
    if isinstance(value, (list, tuple)):
        return type(value), *map(_key, value)
    if isinstance(value, dict):
        return dict, *[(key, _key(each)) for key, each in value.items()]
    return (value.dtype, value.shape) if isinstance(value, _Operand) else (_Option, exact(value.value))


def _names(function: Callable[..., Any], call: Any) -> dict[int, str]:
    """The parameters that arrays are given for, by their numbers."""
    arguments, options = call
    try:
        given = signature(function).bind(*arguments, **options).arguments
    except (TypeError, ValueError):
        return {}  # without a signature, or a call that the function itself refuses
    return {
        each.number: name for name, each in given.items() if isinstance(each, _Operand) and name not in OPTIONS_OF_CALLS
    }
