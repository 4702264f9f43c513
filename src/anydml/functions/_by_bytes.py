"""Type punning: elements that are no data type of DirectML are copied as unsigned integers of their size.

Truth values, complex numbers, bfloat16 and floats of 8 bits; complex128 in two passes, real and imaginary parts. The
rule is (A18) of ``core/interop.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..core.errors import kind_of, refuse
from ..core.interop import as_operand, without_gradients
from ._operand_adapter import brings_adapter

_SIZES = {"bool": 1, "bfloat16": 2, "complex32": 4, "complex64": 8, "complex128": 16}
"""Bytes of an element, by what all libraries call it."""


def by_bytes(name: str, values: Sequence[Any], out: Any, copy: Callable[[list[Any], Any], Any]) -> Any:
    """What an operator that copies bits makes of elements that are no data type of DirectML.

    Args:
        name: the operator.
        values: what it copies.
        out: what to write to, or None; a list of them of an operator with several outputs.
        copy: the operator, given the same elements, and out, as unsigned integers.

    Returns:
        What `copy` returned, as the elements that they are; None where the operator has their data type, where they
        are not of one type, or take part in automatic differentiation, which is refused elsewhere.
    """
    elements = _element(values[0])
    if not elements:
        return None
    arrays = [_array(name, value) for value in values]
    if {_element(array) for array in arrays} != {elements} or any(map(_differentiates, arrays)):
        return None
    for each in out if isinstance(out, (list, tuple)) else [out]:
        if each is not None and _element(each) != elements:
            refuse(name, "(A18)", "out", kind_of(each), f"elements of {elements}, as those that are copied")
    size = _SIZES.get(elements, 1)
    if size <= 8:
        view = _viewed_as(f"uint{8 * size}")
        result = copy([view(array) for array in arrays], _each(view, out))
        return out if out is not None else _each(lambda each: each.view(arrays[0].dtype), result)
    if out is None:
        parts = [copy([_part(array, which) for array in arrays], None) for which in ("real", "imag")]
        return _each(_joined, parts[0], parts[1])
    for which in ("real", "imag"):
        copy([_part(array, which) for array in arrays], _each(lambda each, which=which: _part(each, which), out))
    return out


def _element(value: Any) -> str:
    """The name of elements that DirectML has no type for; "" of all others."""
    if isinstance(value, (list, tuple)):
        with suppress(Exception):  # what is no array is named where it is taken
            return _element(np.array(value))
        return ""
    dtype = getattr(value, "dtype", None)
    if (isinstance(dtype, np.dtype) and dtype.kind in "fiu") or hasattr(type(value), "__anydml_adapter__"):
        return ""
    name = str(dtype).rpartition(".")[2]
    return name if name in _SIZES or name.startswith("float8_") else ""


def _array(name: str, value: Any) -> Any:
    """What can be looked at as other elements: no lazily conjugated tensor. What is lazy altogether stays it."""
    if brings_adapter(value):
        return value
    if isinstance(value, (list, tuple, np.generic)):
        return np.array(value)
    value = without_gradients(as_operand(name, "x", value))
    return value.resolve_conj() if hasattr(value, "resolve_conj") else value


def _differentiates(value: Any) -> bool:
    return getattr(value, "requires_grad", False) is True


def _viewed_as(name: str) -> Callable[[Any], Any]:
    def view(value: Any) -> Any:
        library = sys.modules.get("torch") if type(value).__module__.startswith("torch") else None
        return value.view(np.dtype(name) if library is None else getattr(library, name))

    return view


def _part(value: Any, which: str) -> Any:
    return _viewed_as("uint64")(getattr(value, which))


def _joined(real: Any, imag: Any) -> Any:
    """Two arrays of 8 bytes as one of complex128."""
    if isinstance(real, np.ndarray):
        joined: Any = np.stack([real, imag], -1).view(np.complex128)[..., 0]
        return joined
    if brings_adapter(real):
        return real.map_blocks(_joined, imag, dtype=np.complex128)
    torch = sys.modules["torch"]
    return torch.view_as_complex(torch.stack([real.view(torch.float64), imag.view(torch.float64)], -1))


def _each(function: Callable[..., Any], *values: Any) -> Any:
    """Applied to what one output has, or to what each of several has."""
    if isinstance(values[0], (list, tuple)):
        return [function(*each) for each in zip(*values, strict=True)]
    return None if values[0] is None else function(*values)
