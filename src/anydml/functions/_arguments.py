"""What the arguments of functions become: axes, flags, arrays to write to, numbers per channel and per dimension.

The rules are those of ``core/interop.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import index
from typing import Any

import numpy as np

from ..core.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, TensorDataType
from ..core.errors import kind_of, refuse
from ..core.interop import as_operand, converted
from ..core.memory import Memory, restride
from ..core.strided_layout import DATA_TYPES, DTYPES, Array, fold


def check_pieces(name: str, pieces: Sequence[Array], axis: int) -> None:
    """Rule (A8), for empty pieces too, which are not joined."""
    first = pieces[0]
    rest = (*first.shape[:axis], *first.shape[axis + 1 :])
    for i, piece in enumerate(pieces):
        if piece.dtype != first.dtype:
            expected = f"{first.dtype}, the type of arrays[0]"
            refuse(name, "(A8)", f"arrays[{i}]", str(piece.dtype), expected, converted(first.dtype))
        if piece.ndim != first.ndim:
            expected = f"ndim {first.ndim}, that of arrays[0], of shape {first.shape}"
            refuse(name, "(A8)", f"arrays[{i}]", f"ndim {piece.ndim}, shape {piece.shape}", expected)
        if (*piece.shape[:axis], *piece.shape[axis + 1 :]) != rest:
            expected = f"{first.shape}, the shape of arrays[0], but along axis {axis}"
            refuse(name, "(A8)", f"arrays[{i}]", f"shape {piece.shape}", expected)


def as_index(value: Any) -> int:
    """An integer of any library; TypeError for all else, truth values among it, which Python counts to its integers."""
    if isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool"):
        raise TypeError
    return index(value)


def is_several(value: Any) -> bool:
    """Whether an option is a number for each dimension: a list, or an array that is no scalar."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) != 0


def as_shape(name: str, shape: Any, where: str = "shape") -> tuple[int, ...]:
    """Of what is made of no operand; rule (A10)."""
    try:
        sizes = tuple(map(as_index, shape if is_several(shape) else [shape]))
    except TypeError:
        expected = "a list of integers, or an integer"
        return refuse(name, "(A10)", where, kind_of(shape), expected, kind="type")
    if where == "shape" and any(size < 0 for size in sizes):
        refuse(name, "(A10)", where, kind_of(shape), "sizes of at least 0")
    return sizes


def as_axis(name: str, axis: Any, ndim: int, where: str = "axis") -> int:
    try:
        found = as_index(axis)
    except TypeError:
        return refuse(name, "(A5)", where, kind_of(axis), "an integer", kind="type")
    if ndim == 0:
        refuse(name, "(A5)", where, "an array of 0 dimensions", "1 or more dimensions", "Reshape it, x.reshape(1)")
    if not -ndim <= found < ndim:
        refuse(name, "(A5)", where, kind_of(found), f"{-ndim} to {ndim - 1}, for an array of {ndim} dimensions")
    return found % ndim


def as_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """All where None."""
    if axes is None:
        return tuple(range(ndim))
    return tuple([as_axis(name, axis, ndim, "axes") for axis in (axes if is_several(axes) else [axes])])


def as_number(name: str, where: str, value: float, dtype: np.dtype[Any]) -> Array:
    """One of Python's numbers beside an array, of its type; rule (A13)."""
    if dtype.kind == "f":
        with suppress(OverflowError), np.errstate(over="ignore"):
            # NumPy has no integers of more than 64 bits.
            known = value if type(value) is int and value.bit_length() <= 64 else float(value)
            number: Array = np.array(known).astype(dtype)
            if np.isfinite(number) or not np.isfinite(known):
                return number
    elif dtype.kind in "iu" and type(value) is int and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        return np.array(value, dtype)
    expected = f"a number that {dtype}, the type of the array beside it, holds"
    return refuse(name, "(A13)", where, kind_of(value), expected, "Convert the array, or pass a typed number")


def as_dtype(name: str, where: str, value: Any, expected: str = "a data type, such as np.float32") -> np.dtype[Any]:
    """A data type of any library, or of DirectML."""
    if isinstance(value, str):
        value = TensorDataType.__members__.get(value, value)
    if isinstance(value, TensorDataType) and value in DTYPES:
        return DTYPES[value]
    try:
        # The name of another library's type ends in NumPy's: torch.uint8.
        foreign = not isinstance(value, (str, type, np.dtype))
        dtype = np.dtype(str(value).rpartition(".")[2] if foreign else value)
    except Exception:  # str() and NumPy's parser may raise anything, which all means: no type
        dtype = np.dtype(object)
    if value is None or dtype not in DATA_TYPES:
        refuse(name, "(S3)", where, kind_of(value), expected, kind="type")
    return dtype


def as_flag(name: str, where: str, value: Any) -> bool:
    if isinstance(value, (int, np.integer, np.bool_)) and value in (0, 1):
        return bool(value)
    return refuse(name, "(A11)", where, kind_of(value), "True or False", kind="type")


def fold_to_8(name: str, inputs: list[Array], outputs: list[Array], axis: int) -> tuple[list[Array], list[Array], int]:
    """The same elements in at most 8 dimensions; `axis` stays one of them."""
    every = [*inputs, *outputs]
    if outputs[0].ndim <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        return inputs, outputs, axis
    sizes, new_axis, last = fold(outputs[0].shape, [array.strides for array in every], axis)
    if len(sizes) > DML_TENSOR_DIMENSION_COUNT_MAX1:
        found = f"{outputs[0].ndim} dimensions that fold into {len(sizes)}"
        remedy = "A contiguous copy folds further: np.ascontiguousarray"
        refuse(name, "(A6)", "x", found, f"at most {DML_TENSOR_DIMENSION_COUNT_MAX1}", remedy)
    folded = []
    for array in every:
        shape = tuple(array.shape[axis] if i == new_axis else size for i, size in enumerate(sizes))
        folded.append(restride(array, shape, [array.strides[i] for i in last]))
    return folded[: len(inputs)], folded[len(inputs) :], new_axis


def as_parameter(memory: Memory, name: str, where: str, value: Any, dtype: np.dtype[Any]) -> Array:
    """A scale or a zero point, one or more, in its type; rule (A9)."""
    if value is None:
        refuse(name, "(A9)", where, "None", "a number, or one for each channel", kind="type")
    plain = isinstance(value, (int, float, list, tuple)) and not isinstance(value, (bool, np.generic))
    is_number = plain and not isinstance(value, (list, tuple))
    array = np.array(value) if is_number else memory.import_array(name, where, as_operand(name, where, value))
    is_scale = dtype.kind == "f"
    if array.dtype.kind not in ("fiu" if is_scale else "iu"):
        expected = f"{'a number' if is_scale else 'an integer'} for {dtype}, or one for each channel"
        refuse(name, "(A9)", where, kind_of(value), expected, kind="type")
    is_untyped = plain or (array.dtype in (np.int64, np.int32) and isinstance(array, np.ndarray))
    if not is_scale and not is_untyped and array.dtype != dtype:
        expected = f"{dtype}, the type of the tensor that it belongs to"
        refuse(name, "(A9)", where, str(array.dtype), expected, converted(dtype))
    if not is_scale and is_untyped:
        limits = np.iinfo(dtype) if dtype.kind in "iu" else np.iinfo(np.int8)
        if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            refuse(name, "(A9)", where, kind_of(value), f"{limits.min} to {limits.max}, which {dtype} holds")
    with np.errstate(over="ignore"):
        return array if array.dtype == dtype else array.astype(dtype)


def per_channel(
    memory: Memory, name: str, where: str, value: Any, dtype: np.dtype[Any], channels: int, rank: int
) -> Array | None:
    """A scale or a zero point as a tensor {1, 1, 1, 1} or {1, C, 1, 1}; rule (A9)."""
    if value is None and where.endswith("zero_point"):
        return None
    array = as_parameter(memory, name, where, value, dtype)
    shapes = (channels,), (1, channels, 1, 1), (1, channels) + (1,) * (rank - 2)
    if array.size != 1 and array.shape not in shapes:
        found = f"shape {array.shape}"
        refuse(name, "(A9)", where, found, f"a number, or {channels} of them, one for each channel")
    return memory.to_device(array.reshape((1, -1) + (1,) * max(rank - 2, 0)))


def per_dimension(name: str, where: str, value: Any, spatial: int) -> tuple[int, ...]:
    """An option as a number for each spatial dimension; rule (A10). Of an operand that has none any option will do: the
    operator's own rule (S2) says what is wrong."""
    if spatial == 0:
        return ()
    try:
        values = tuple(map(as_index, value)) if is_several(value) else (as_index(value),) * spatial
    except TypeError:
        expected = f"an integer, or {spatial} of them"
        return refuse(name, "(A10)", where, kind_of(value), expected, kind="type")
    if len(values) != spatial or any(abs(each) >= 2**63 for each in values):
        refuse(name, "(A10)", where, kind_of(value), f"an integer, or {spatial} of them")
    return values
