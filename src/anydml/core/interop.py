"""Arrays of any kind in, the same kind out, without a copy.

(A1) An operand is an array: NumPy's, a buffer, an object with ``__array_interface__``, DLPack in the CPU's memory or
     ``__array__``, which may copy, or nested lists of numbers, of which float ones become float32. What is written to
     is never copied: ``__array__`` alone does not do for it.
(A2) Its bytes are in the machine's order.
(A3) ``out`` is writable.
(A4) ``out`` has the result's data type and shape.
(A5) An axis is an integer, no truth value, from -ndim to ndim - 1, of an array that has at least one.
(A6) More than 8 dimensions fold into 8: neighbours that memory walks as one become one.
(A7) No two elements of ``out`` share memory.
(A8) Arrays to be joined are at least one, of one data type, and of one shape but along the axis; empty ones too.
(A9) A scale or a zero point is a number, or one for each channel, or for each place along an axis; an integer has to
     fit its type, as has one of int32 or int64 in the CPU's memory, the types of integers that nobody chose; any other
     typed zero point has to be of it already.
(A10) An option of a pooling is an integer, no truth value, or one for each spatial dimension; output sizes are at least
      1.
(A11) A flag is True or False, or 1 or 0.
(A12) A tensor lies on the device that computes, its elements at multiples of their size. What lies in NumPy's arrays,
      lists and buffers is brought there, and results go back.
(A13) Operands of an element-wise operator broadcast, as NumPy's do; one of them may be a number of Python's that the
      data type of the other holds. Where they have to be of one type, a NumPy scalar or an array of 0 dimensions
      becomes the other's, where that holds it; so does a list, beside an array of any operator. Lists of integers are
      int64 where the operator takes that and no list of floats stands beside them, or else float32.
(A14) Sizes of pieces add up to the size of the axis that they are cut from; a number of equal pieces divides it.
(A15) An argument is one that the function has, and what has no default is given. ``axis`` may stand for ``axes``, not
      beside it.
(A16) Members of enums may be given by their names, in small letters too, and activations by those of their functions,
      where their members have defaults.
(A17) A convolution's bias and the parameters of normalisations may have one dimension, a number for each channel; or
      for each element of the last axis, where MEAN_VARIANCE_NORMALIZATION is along that alone. Otherwise missing
      dimensions lead, as NumPy's do; those of a recurrent layer's operands too.
(A18) Operators that copy bits (joins, pieces, slices, gathered elements, identities without a scale) copy elements that
      are no data type of DirectML too: truth values, complex numbers, bfloat16 and floats of 8 bits. Comparisons,
      logic, choices and operators of bits take and give truth values, whose bytes are those of UINT8.
(A19) INT4 and UINT4 are a PackedArray, whose bytes are uint8, contiguous, and just as many as hold its elements; or an
      array of ml_dtypes' int4 or uint4, which is packed, and which a result is where one of the operands is, or where
      its type is asked for as ml_dtypes'. All other operators refuse both, as (S3) or (A1).
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from .errors import DMLError, kind_of, refuse
from .strided_layout import DATA_TYPES, Array

_DEVICES = {2: "cuda", 10: "cuda", 14: "xpu"}
"""Whose memory is not the CPU's: DLPack's numbers of them, and PyTorch's names."""


_NARROW = re.compile(r"torch\.u?int[1-7]")


def as_operand(operator: str, where: str, value: Any) -> Any:
    """What is read, and may be copied: a NumPy array where `value` has ``__array__`` alone, all else as it is."""
    if type(value) is np.ndarray or not hasattr(type(value), "__array__"):
        return value
    if any(hasattr(value, each) for each in ("__array_interface__", "__dlpack__")):
        return value
    if _is_lazy(value):
        remedy = "Use .compute(); functions take it as it is, and so do those of anydml.compile"
        found = f"a Dask array of {value.dtype}, shape {value.shape}, not computed yet"
        refuse(operator, "(A1)", where, found, "an array in memory", remedy, kind="type")
    try:
        return np.asarray(value)
    except Exception as problem:  # a foreign array raises what it likes
        return _no_array(operator, where, value, problem)


def _is_lazy(value: Any) -> bool:
    """Whether it is one of Dask's arrays, which ``__array__`` computes whole; functions have tasks for them."""
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(value, dask.Array)


def as_array(operator: str, where: str, value: Any) -> Array:
    """A NumPy array on the memory of `value`; a new one for lists only."""
    array = _import(operator, where, value)
    if not array.dtype.isnative:
        remedy = "Convert it with .astype(x.dtype.newbyteorder('='))"
        refuse(operator, "(A2)", where, f"byte-swapped {array.dtype.str}", "the machine's byte order", remedy)
    return array


def as_array_of(operator: str, where: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Lists of numbers, which have no data type, as an array of this one, where it holds them; all else as it is."""
    if not isinstance(value, (list, tuple)):
        return value
    with suppress(Exception), np.errstate(over="ignore"):  # `as_array` says what is wrong
        # NumPy makes floats of integers of which some are above 2^63.
        array = np.array(value) if dtype.kind == "f" else np.array(value, object)
        found: Array = array.astype(dtype)
        if dtype.kind == "f" and array.dtype.kind in "fiu":
            holds = bool((np.isfinite(found) | ~np.isfinite(array)).all())
        else:
            plain = all(isinstance(each, (int, np.integer)) and type(each) is not bool for each in array.flat)
            holds = plain and np.array_equal(found.astype(object), array)
        if holds:
            return found
    return as_array(operator, where, value)


def _import(operator: str, where: str, value: Any) -> Array:
    if type(value) is np.ndarray:
        return value
    try:
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError("a mask has no meaning here; use .filled()")
        if isinstance(value, (list, tuple)):
            array = np.array(value)
            if array.dtype != np.float64:
                return array
            if array.size and all(isinstance(each, int) for each in np.array(value, object).flat):
                raise ValueError("integers that no data type holds together")
            return _to_float32(array)
        if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array_interface__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            kind, number = value.__dlpack_device__()
            if kind in _DEVICES:
                device = f"{_DEVICES[kind]}:{number}"
                remedy = f"Copy it to the CPU, or pass device={device!r}"
                refuse(operator, "(A12)", where, f"{type(value).__name__} on {device}", "one on the CPU", remedy)
            # Of this DLPack tells nothing: PyTorch's views of conjugated numbers.
            if getattr(value, "is_neg", bool)():
                raise TypeError("a view negated when it is read; use .resolve_neg()")
            # Which DLPack calls 8 bits wide; PyTorch has such types by name, and computes nothing with them.
            if _NARROW.fullmatch(str(getattr(value, "dtype", ""))):
                raise TypeError("elements of fewer than 8 bits; a PackedArray holds those of 4")
            return np.from_dlpack(without_gradients(value))
        return np.asarray(_memory_of(value))
    except DMLError:
        raise
    except Exception as problem:  # what a foreign array raises is its own business; here it is one more wrong operand
        return _no_array(operator, where, value, problem)


def _no_array(operator: str, where: str, value: Any, problem: Exception) -> NoReturn:
    reason = " ".join(str(problem).split())
    is_out = where == "out"
    what = " that can be written to, or None for a new one" if is_out else ", or lists of numbers"
    expected = f"an array of numbers in the CPU's memory{what}"
    remedy = "" if is_out else remedy_of_float(value)
    if getattr(value, "requires_grad", False) is True:
        remedy = "Use .detach()"
    elif is_out and hasattr(type(value), "__array__"):
        remedy = "Leave it out, and assign the result, as out[:] = result"
    element = f" of {value.dtype}" if hasattr(value, "dtype") else ""
    found = f"{type(value).__name__}{element} ({reason})" if reason else kind_of(value)
    refuse(operator, "(A1)", where, found, expected, remedy, kind="type")


def _to_float32(array: Array) -> Array:
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    lost = np.isinf(single) & np.isfinite(array)
    if lost.any():
        raise ValueError(f"{array[lost][0]} is too large for float32")
    return single


def _memory_of(value: Any) -> memoryview:
    try:
        return memoryview(value)
    except TypeError:
        raise TypeError from None  # that it is no "bytes-like object" is no news for who meant an array


def like(value: Any, result: Array) -> Any:
    """`result` as an array of the kind that `value` is: NumPy's for lists and buffers, else by DLPack."""
    if not hasattr(value, "__dlpack__") or isinstance(value, (np.ndarray, np.generic)):
        return result
    if hasattr(value, "__array_namespace__"):
        return value.__array_namespace__().from_dlpack(result)
    library = _library_of(value)
    return result if library is None else of_subclass(value, library.from_dlpack(result))


def _library_of(value: Any) -> Any:
    """What makes arrays such as this from DLPack; a class of a user's own comes from a library's."""
    modules = [sys.modules.get(base.__module__.partition(".")[0]) for base in type(value).__mro__]
    return next((module for module in modules if hasattr(module, "from_dlpack")), None)


def _torch_of(value: Any) -> Any:
    """PyTorch, where `value` is a tensor of it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(value, torch.Tensor) else None


def without_gradients(value: Any) -> Any:
    """A tensor of PyTorch that requires gradients, where none are recorded, as one that does not; all else as it is."""
    torch = _torch_of(value)
    return value.detach() if torch is not None and value.requires_grad and not torch.is_grad_enabled() else value


def of_subclass(value: Any, result: Any) -> Any:
    """A tensor of PyTorch as one of the subclass that `value` is of, as PyTorch's own functions have it: not where the
    class asks for plain tensors, as parameters do, nor where it computes by itself."""
    torch = _torch_of(value)
    if torch is None or type(value) is torch.Tensor:
        return result
    kind, plain = type(value), torch.Tensor
    is_plain = kind.__torch_function__ is torch._C._disabled_torch_function_impl
    return result if is_plain or kind.__torch_dispatch__ is not plain.__torch_dispatch__ else result.as_subclass(kind)


def is_channels_last(value: Any) -> bool:
    """Whether a tensor of PyTorch has a memory format in which the channels lie last."""
    torch = _torch_of(value)
    formats = {} if torch is None else {4: torch.channels_last, 5: torch.channels_last_3d}
    format = formats.get(getattr(value, "ndim", 0))
    return format is not None and value.is_contiguous(memory_format=format) and not value.is_contiguous()


def converted(dtype: np.dtype[Any]) -> str:
    """The remedy for a wrong type of array, whatever its library."""
    return f"Convert it to {dtype}, as .astype(np.{dtype}) does"


def remedy_of_float(value: Any) -> str:
    """The remedy for a float of a type that neither DirectML nor NumPy has, such as bfloat16."""
    name = str(getattr(value, "dtype", "")).rpartition(".")[2]
    if "float" not in name or name in {dtype.name for dtype in DATA_TYPES}:
        return ""
    return "Convert it with .float() or .half()" if hasattr(value, "half") else converted(np.dtype(np.float32))


def has_data_type(array: Array) -> bool:
    """Whether DirectML has a data type for the array's elements."""
    return array.dtype in DATA_TYPES
