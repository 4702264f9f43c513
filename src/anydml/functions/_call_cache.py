"""A cache of prepared calls before every function: a call like one before runs its kernel, without being resolved anew.

To check a small array's call costs more than to compute it. A call's key holds all that tells it from others but for
what is in its arrays and where they lie: the function, each argument's type and value, the types, shapes and strides of
arrays. What runs a call of that key is known from the first; the compiled module does the rest, and does nothing where
an output shares memory with another array, or a value is one that a rule refuses: the function says what is wrong then.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import WRAPPER_ASSIGNMENTS, partial, update_wrapper
from inspect import signature
from operator import methodcaller
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..backends.base import Kernel
from ..backends.torch.compiler import break_graphs_at
from ..core.memory import address
from ..core.strided_layout import Array, Layout
from ..core.tensor_desc import DML_SCALE_BIAS, DML_SIZE_2D
from ..core.truth_values import as_bytes
from ..device import Device
from ..operators.schema import OperatorDesc, OperatorSpec, no_value_checks, no_value_limits
from ..runtime.context import checks_values

if TYPE_CHECKING:
    from .._native import CachedFunction, CallCache

Function = TypeVar("Function", bound=Callable[..., Any])

_CAPACITY = 512


class Ran(NamedTuple):
    """What a function ran on arrays."""

    spec: OperatorSpec
    desc: OperatorDesc
    kernel: Kernel
    device: Device
    names: tuple[str, ...]
    """The arguments that the inputs come from, such as ``arrays[1]``."""
    inputs: Sequence[Array | None]
    outputs: Sequence[Array | None]


class _Recorder(local):
    """What runs on a thread while a function is called that is to be remembered."""

    runs: list[Ran] | None = None


_RECORDER = _Recorder()


def note(ran: Ran) -> None:
    """Told by what runs kernels for functions."""
    if _RECORDER.runs is not None:
        _RECORDER.runs.append(ran)


def record(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> tuple[Any, list[Ran]]:
    """Calls a function; what it gives, and what it ran for that."""
    before = _RECORDER.runs
    runs: list[Ran] = []
    _RECORDER.runs = runs
    try:
        return function(*args, **options), runs
    finally:
        _RECORDER.runs = before


def exact(value: Any) -> Any:
    """Tells values apart that are equal: 0.0 and -0.0, 1 and True."""
    if isinstance(value, tuple):
        return tuple(map(exact, value))
    if isinstance(value, _DESCS):
        return type(value), *[exact(getattr(value, each.name)) for each in fields(value)]
    return value.hex() if type(value) is float else (type(value), value)


_DESCS = (OperatorDesc, DML_SCALE_BIAS, DML_SIZE_2D)

# How an argument of a class stands in a key; the numbers are those of KeyKind in call_key.h.
_NOT, _IDENTITY, _VALUE, _BYTES, _TENSOR = range(5)


def _key_kind(cls: type) -> int:
    """How an argument of a class stands in a key."""
    if issubclass(cls, (np.dtype, Enum)) or cls is Device:
        return _IDENTITY
    if issubclass(cls, _DESCS):
        return _VALUE
    if issubclass(cls, (np.number, np.bool_)) and cls.__module__ == "numpy":
        return _BYTES
    torch = sys.modules.get("torch") if cls.__module__ == "torch" else None
    if torch is not None:
        return _IDENTITY if cls is torch.dtype else _TENSOR if cls is torch.Tensor else _NOT
    return _NOT


_FIRSTS: dict[Any, Any] = {}


def _canonical(value: Any) -> Any:
    """One object for all that are exactly equal, such as descs that are made anew for each call."""
    if len(_FIRSTS) >= _CAPACITY:
        _FIRSTS.clear()
    return _FIRSTS.setdefault(exact(value), value)


def _cache() -> CallCache | None:
    try:
        from .._native import CallCache
    except ImportError:
        return None  # anydml works where there is no compiled module for the platform
    return CallCache(_CAPACITY, _key_kind, _canonical)


CALL_CACHE = _cache()
"""The calls of all functions; None where there is no compiled module."""


def remembering(function: Function) -> Function:
    """The same function, with the cache before it."""
    if CALL_CACHE is None:
        return function
    from .. import _native

    cached = _native.CachedFunction(CALL_CACHE, list(signature(function).parameters))
    made: Any = _native.function(cached, partial(_call, cached, function))
    break_graphs_at(made)
    update_wrapper(made, function, (*WRAPPER_ASSIGNMENTS, "__annotations__"))
    return made  # type: ignore[no-any-return]


def _call(cached: CachedFunction, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A call that is not remembered, or that the function has to judge."""
    key = cached.key(args, options)
    if key is None:
        return record(function, args, options)[0]
    result, runs = record(function, args, options)
    # A list might have changed meanwhile.
    after = cached.key(args, options)
    if len(runs) == 1 and after is not None and after.equals(key):
        given = {
            parameter if place is None else f"{parameter}[{place}]": (number, array)
            for number, (parameter, place, array) in enumerate(cached.arrays(key))
        }
        prepared = (_OnHost if runs[0].device.memory.is_host else _OnDevice)(runs[0]).prepared(given, result)
        if prepared is not None:
            cached.keep(key, *prepared)
    return result


class _Preparation(ABC):
    """A call on its way to be remembered: what each tensor of its kernel is made of."""

    on_device: bool

    def __init__(self, ran: Ran) -> None:
        self._ran = ran

    @abstractmethod
    def array(self, given: Any) -> Any:
        """What a caller gave, or gets, as an array that kernels take; None where no call is prepared for such."""

    @abstractmethod
    def view(self, array: Any, wanted: Array) -> Callable[[Any], Any] | None:
        """What makes a view of an array such as another is; None where they lie alike."""

    @abstractmethod
    def made(self, wanted: Array) -> Any:
        """What :meth:`CachedFunction.keep` wants in order to make an array like this one, which is contiguous."""

    @abstractmethod
    def exported(self, result: Any) -> Callable[[Any], Any] | None:
        """What makes of such an array one like a function's result."""

    @property
    @abstractmethod
    def runs(self) -> tuple[Any, Any] | None:
        """The kernel in Python, and the native one; None where no call is prepared for it."""

    def prepared(self, given: Mapping[str, tuple[int, Any]], result: Any) -> tuple[Any, ...] | None:
        """What :meth:`CachedFunction.keep` wants of the call; None where it does not come down to one kernel on the
        very memory of its arrays.

        Args:
            given: the arrays of the call and their numbers, by the names that messages call them.
            result: what the function gave.
        """
        runs = self.runs
        arrays = {name: self.array(array) for name, (_, array) in given.items()}
        if runs is None or any(array is None for array in arrays.values()):
            return None
        spec, desc = self._ran.spec, self._ran.desc
        limits = {} if self.on_device else spec.value_limits(desc)
        labels = [label for label, _ in spec.inputs(desc)]
        inputs: list[Any] = []
        unused = set(given)
        for label, name, operand in zip(labels, self._ran.names, self._ran.inputs, strict=True):
            if operand is None:
                inputs.append(None)
            elif name not in given:  # of numbers, which are in the key
                inputs.append((None, getattr(operand, "tensor", operand), Layout.of_array(operand), None))
            elif address(operand) != address(arrays[name]):
                return None  # a copy
            else:
                unused.discard(name)
                view = self.view(arrays[name], operand)
                inputs.append((given[name][0], view, Layout.of_array(operand), limits.get(label)))
        returned = result if isinstance(result, list) else [result]
        places = [(each, self.array(each)) for each in returned]
        results: list[int | None] = [None] * len(returned)
        outputs: list[Any] = [None] * len(self._ran.outputs)
        present = [(i, written) for i, written in enumerate(self._ran.outputs) if written is not None]
        for number, (i, written) in enumerate(present):
            at = next((j for j, (_, each) in enumerate(places) if _are_at_one_place(each, written)), None)
            if at is not None:
                results[at] = i
            name = "out" if "out" in given else f"out[{number}]"
            layout = Layout.of_array(written)
            if name in given:
                if at is None or places[at][0] is not given[name][1]:
                    return None
                unused.discard(name)
                outputs[i] = given[name][0], None, self.view(arrays[name], written), None, layout
                continue
            array = written if at is None else places[at][1]
            if not array.flags.c_contiguous:
                return None
            exported = None if at is None else self.exported(places[at][0])
            outputs[i] = None, self.made(array), self.view(array, written), exported, layout
        if unused or None in results:
            return None
        return *runs, spec.in_place, self.on_device, inputs, outputs, results, isinstance(result, list)


def _are_at_one_place(array: Any, written: Array) -> bool:
    return array is not None and address(array) == address(written) and bool(as_bytes(array).dtype == written.dtype)


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any] | None, array: Any) -> Any:
    """The one behind the other, where there are two."""
    return first(array) if second is None else second(first(array))


class _OnHost(_Preparation):
    on_device = False

    def array(self, given: Any) -> Any:
        if type(given) is np.ndarray:
            return given
        return given.numpy() if _key_kind(type(given)) == _TENSOR else None

    def view(self, array: Array, wanted: Array) -> Callable[[Any], Any] | None:
        # Truth values have the very bytes that the kernel reads.
        if (array.shape, array.strides) == (wanted.shape, wanted.strides):
            return None
        if array.dtype != wanted.dtype:
            return partial(_then, as_bytes, self.view(as_bytes(array), wanted))
        reshaped = array.reshape(wanted.shape) if array.size == wanted.size else array
        if (reshaped.shape, reshaped.strides, address(reshaped)) == (wanted.shape, wanted.strides, address(wanted)):
            return methodcaller("reshape", wanted.shape)
        return partial(np.lib.stride_tricks.as_strided, shape=wanted.shape, strides=wanted.strides)

    def made(self, wanted: Array) -> tuple[np.dtype[Any], tuple[int, ...]]:
        return wanted.dtype, wanted.shape

    def exported(self, result: Any) -> Callable[[Any], Any] | None:
        return None if type(result) is np.ndarray else sys.modules["torch"].from_numpy

    @property
    def runs(self) -> tuple[Any, Any] | None:
        spec, kernel = self._ran.spec, self._ran.kernel
        has_limits = spec.check_values is no_value_checks or spec.value_limits is not no_value_limits
        return (kernel.run, kernel.plan) if has_limits or kernel.checks_values else None


class _OnDevice(_Preparation):
    """On a GPU. What is made of numbers lies there from the first call on."""

    on_device = True

    def array(self, given: Any) -> Any:
        memory = self._ran.device.memory
        known = _key_kind(type(given)) == _TENSOR
        return memory.import_array(self._ran.spec.name, "", given) if known else None

    def view(self, array: Any, wanted: Any) -> Callable[[Any], Any] | None:
        if array.dtype != wanted.dtype:
            as_tensor_of_bytes = methodcaller("view", wanted.tensor.dtype)
            return partial(_then, as_tensor_of_bytes, self.view(as_bytes(array), wanted))
        if (array.shape, array.strides) == (wanted.shape, wanted.strides):
            return None
        return methodcaller("as_strided", wanted.shape, wanted.tensor.stride())

    def made(self, wanted: Any) -> Callable[[], Any]:
        tensor = wanted.tensor
        return partial(sys.modules["torch"].empty, wanted.shape, dtype=tensor.dtype, device=tensor.device)

    def exported(self, result: Any) -> Callable[[Any], Any] | None:
        return None

    @property
    def runs(self) -> tuple[Any, Any] | None:
        run, device = self._ran.kernel.run_at, self._ran.device
        return None if run is None or checks_values(device, self._ran.spec) else (run, None)
