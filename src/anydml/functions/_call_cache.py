"""A cache of calls: a call that was right before runs its kernel again, without being resolved anew.

To check a small array's call costs more than to compute it. A key holds all that tells calls apart but for the memory
of their arrays; of that the kernel's `try_run` sees by itself whether it fits, and does nothing where it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from ..backends.base import Kernel, TryRun
from ..core.strided_layout import Array
from ..device import Device
from ..operators.schema import OperatorSpec, no_value_checks

_CAPACITY = 512

CALL_CACHE: dict[Any, tuple[TryRun, np.dtype[Any], tuple[int, ...]]] = {}
"""What runs a call of sums, products and joins, and the type and shape of what comes out."""


def keep(key: Any, kernel: Kernel | None, result: Array) -> None:
    if key is None or kernel is None or kernel.try_run is None:
        return
    if len(CALL_CACHE) >= _CAPACITY:
        CALL_CACHE.clear()
    CALL_CACHE[key] = kernel.try_run, result.dtype, result.shape


class CachedCall(NamedTuple):
    """A call of an operator with one output, compiled for its arrays' types, shapes and strides."""

    try_run: TryRun
    in_place: bool
    inputs: tuple[str, ...]
    """The members that are inputs, in header order."""
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def run(self, members: Mapping[str, Any], out: Array | None) -> Array | None:
        """The output; None, and nothing written, where the arrays do not plainly fit."""
        try:
            place = np.empty(self.shape, self.dtype) if out is None else out
        except MemoryError:
            return None
        inputs = [members.get(member) for member in self.inputs]
        return place if self.try_run(inputs, [place], self.in_place) else None


_CALLS: dict[Any, CachedCall] = {}

_PLAIN = frozenset((bool, int, str, type(None)))


def call_key(name: str, out: Any, device: Any, output_sizes: Any, members: Mapping[str, Any]) -> Any:
    """What tells calls apart that are alike but for the memory of their arrays; None where a call is not cached."""
    if device is not None and type(device) is not str and type(device) is not Device:
        return None
    parts: list[Any] = [name, device, *members]
    for value in (out, output_sizes, *members.values()):
        kind = type(value)
        if kind is np.ndarray:
            parts += (value.dtype, value.shape, value.strides)
        elif kind in _PLAIN:
            parts += (kind, value)
        elif kind is float:
            # Equal floats are the same but for the sign of zero, and NaN is not equal to itself.
            if value == 0 or value != value:
                return None
            parts += (kind, value)
        elif kind is tuple or kind is list:
            if not all(type(each) is int for each in value):
                return None
            parts += (kind, *value, None)
        elif isinstance(value, IntEnum):
            parts += (kind, value)
        else:
            return None
    return tuple(parts)


def cached_call(key: Any) -> CachedCall | None:
    """The call of a key, where there was one."""
    return None if key is None else _CALLS.get(key)


def keep_call(
    key: Any,
    spec: OperatorSpec,
    kernel: Kernel | None,
    given: Mapping[str, Any],
    operands: Mapping[str, Any],
    results: list[Array],
) -> None:
    """Remembers a call, where its kernel took the very arrays that were given, and no value had to be checked."""
    if key is None or kernel is None or kernel.try_run is None or spec.check_values is not no_value_checks:
        return
    unchanged = all(operands[label] is value and "[" not in label for label, value in given.items())
    if not unchanged or len(results) != 1 or len(spec.tensors) != len(given) + 1:
        return
    if len(_CALLS) >= _CAPACITY:
        _CALLS.clear()
    _CALLS[key] = CachedCall(kernel.try_run, spec.in_place, tuple(given), results[0].dtype, results[0].shape)
