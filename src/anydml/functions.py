"""The operators as functions on arrays, for those who come from NumPy and PyTorch.

Any array in (NumPy, a buffer, ``__array_interface__``, DLPack; lists too, where float lists become float32), the same
kind of array out. What descs refuse works here: negative axes and strides, empty arrays, more than 8 dimensions where
they fold, unaligned memory. Rules on operands are in ``arrays.py``, all others are the operators' own; ``operands.py``
has what arguments become, ``calling.py`` how an operator is compiled and run for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arrays import refuse
from .calling import as_device, data_type_of, raise_any, run, violations_of
from .device import Device
from .engines import Kernel
from .enums import AxisDirection, TensorDataType
from .layout import Array
from .memory import HOST
from .operands import (
    as_axis,
    as_flag,
    check_pieces,
    fold_to_8,
    output_dtype_of,
    per_channel,
    per_dimension,
    result_array,
)
from .operators import spec
from .tensor import DML_BUFFER_TENSOR_DESC
from .validate import kind_of


def cumulative_summation(
    x: Any,
    axis: int = -1,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """Running sums along an axis: DML_OPERATOR_CUMULATIVE_SUMMATION.

    Args:
        x: float32, float16, int32, int64, uint32 or uint64 (DirectML has no float64 here), of any shape with at
            least one dimension; lists of floats become float32.
        axis: the dimension along which is added; negative counts from the last.
        exclusive: leaves the current element out of its sum, so that the first sum is 0.
        reverse: starts at the end of the axis.
        out: where to write, of x's type and shape and of any strides; may be x itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape. Integers wrap; floats are summed in the next wider type and rounded
        once.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, feature level 2.1.

    >>> cumulative_summation([2, 1, 3, 5])
    array([ 2,  3,  6, 11])
    >>> cumulative_summation([[1.0, 2.0], [3.0, 4.0]], axis=0, reverse=True)
    array([[4., 6.],
           [3., 4.]], dtype=float32)
    """
    return _tally("CUMULATIVE_SUMMATION", "HasExclusiveSum", x, axis, exclusive, reverse, out, device)


def cumulative_product(
    x: Any,
    axis: int = -1,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """Running products along an axis: DML_OPERATOR_CUMULATIVE_PRODUCT.

    Args:
        x: float32, float16, int32, int64, uint32 or uint64 (DirectML has no float64 here), of any shape with at
            least one dimension; lists of floats become float32.
        axis: the dimension along which is multiplied; negative counts from the last.
        exclusive: leaves the current element out of its product, so that the first product is 1.
        reverse: starts at the end of the axis.
        out: where to write, of x's type and shape and of any strides; may be x itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape. Integers wrap; floats are multiplied in the next wider type and
        rounded once.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, feature level 3.1.

    >>> cumulative_product([2, 4, 8, 3])
    array([  2,   8,  64, 192])
    """
    return _tally("CUMULATIVE_PRODUCT", "HasExclusiveProduct", x, axis, exclusive, reverse, out, device)


def join(arrays: Sequence[Any], axis: int = 0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """Joins arrays along an axis: DML_OPERATOR_JOIN.

    Args:
        arrays: one or more, of one data type, and of one shape but along the axis. Empty pieces are skipped, lists of
            floats become float32.
        axis: the dimension along which they are joined; negative counts from the last.
        out: where to write, of the joined type and shape and of any strides; no memory shared with an input. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like the first of `arrays`; a copy of bits.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_JOIN_OPERATOR_DESC, feature level 1.0.

    >>> join([[[1, 2]], [[3, 4]]], axis=1)
    array([[1, 2, 3, 4]])
    """
    name = "JOIN"
    key = _key_of_join(arrays, axis, out, device)
    again = _AGAIN.get(key)
    if again is not None:
        quick, dtype, joined = again
        place = result_array(HOST, name, None, dtype, joined) if out is None else out
        if quick(arrays if type(arrays) is list else list(arrays), [place], False):
            return place
    if not isinstance(arrays, (list, tuple)) or not arrays:
        remedy = "Write join([a, b])" if hasattr(arrays, "shape") else ""
        refuse(name, "(A8)", "arrays", kind_of(arrays), "a list of at least one array", remedy, kind="type")
    place = as_device(device)
    memory = place.memory
    pieces = [memory.bring(memory.peek(name, f"arrays[{i}]", each)) for i, each in enumerate(arrays)]
    axis = as_axis(name, axis, pieces[0].ndim)
    check_pieces(name, pieces, axis)
    shape = list(pieces[0].shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    result = result_array(memory, name, out, pieces[0].dtype, tuple(shape))
    # Numbered before empty ones are skipped.
    kept = {f"arrays[{i}]": piece for i, piece in enumerate(pieces) if piece.shape[axis]} or {"arrays[0]": pieces[0]}
    inputs, (output,), axis = fold_to_8(name, list(kept.values()), [result], axis)
    kernel = run(name, dict(zip(kept, inputs, strict=True)), output, place, {"Axis": axis})
    if memory.is_host and output is result and len(inputs) == len(pieces):
        _keep(key, kernel, result)
    return memory.give(arrays[0], out, result)


def quantized_linear_average_pooling(
    x: Any,
    input_scale: Any,
    input_zero_point: Any = None,
    *,
    output_scale: Any,
    output_zero_point: Any = None,
    window_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    include_padding: bool = False,
    output_sizes: Sequence[int] | None = None,
    output_dtype: Any = None,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """Averages of quantised values in a sliding window: DML_OPERATOR_QUANTIZED_LINEAR_AVERAGE_POOLING.

    Args:
        x: int8 or uint8 of shape (N, C, H, W) or (N, C, D, H, W).
        input_scale: a number, or one for each channel; greater than 0.
        input_zero_point: an integer, or one for each channel; 0 where None.
        output_scale: as input_scale.
        output_zero_point: as input_zero_point.
        window_size: taps for each spatial dimension, or one number for all.
        strides: steps of the window; 1 where None.
        start_padding: padding before the input; 0 where None.
        end_padding: padding behind the input; 0 where None, whatever start_padding is.
        dilations: distance of taps; 1 where None.
        include_padding: whether padding counts in the divisor.
        output_sizes: the spatial sizes of the result, rounded down (as where None) or up.
        output_dtype: int8 or uint8; where None that of `out`, else of a typed output_zero_point, else of x.
        out: where to write, of any strides; no memory shared with an input. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of output_dtype: round_half_even((S * input_scale) / (count * output_scale)) +
        output_zero_point, saturated, S being the sum of (x - input_zero_point) over the taps counted.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC, feature level 6.2.

    >>> import numpy as np
    >>> x = np.array([[[[1, 3], [5, 7]]]], np.uint8)
    >>> quantized_linear_average_pooling(x, 0.5, output_scale=0.25, window_size=2)
    array([[[[8]]]], dtype=uint8)
    """
    name = "QUANTIZED_LINEAR_AVERAGE_POOLING"
    place = as_device(device)
    memory = place.memory
    array = memory.bring(memory.peek(name, "x", x))
    dtype = output_dtype_of(memory, name, array, output_zero_point, output_dtype, out)
    spatial = max(array.ndim - 2, 0)
    channels = array.shape[1] if array.ndim > 1 else 1
    scale_dtype = np.dtype(np.float32)
    quantisation = {
        where: per_channel(memory, name, where, value, kind, channels, array.ndim)
        for where, value, kind in (
            ("input_scale", input_scale, scale_dtype),
            ("input_zero_point", input_zero_point, array.dtype),
            ("output_scale", output_scale, scale_dtype),
            ("output_zero_point", output_zero_point, dtype),
        )
    }
    attributes: dict[str, Any] = {
        "Strides": per_dimension(name, "strides", 1 if strides is None else strides, spatial),
        "WindowSize": per_dimension(name, "window_size", window_size, spatial),
        "StartPadding": per_dimension(name, "start_padding", 0 if start_padding is None else start_padding, spatial),
        "EndPadding": per_dimension(name, "end_padding", 0 if end_padding is None else end_padding, spatial),
        "Dilations": per_dimension(name, "dilations", 1 if dilations is None else dilations, spatial),
        "IncludePadding": as_flag(name, "include_padding", include_padding),
    }
    sizes = _pooled_sizes(name, array, out, output_sizes, attributes, place)
    result = result_array(memory, name, out, dtype, (*array.shape[:2], *sizes))
    run(name, {"x": array, **quantisation}, result, place, attributes)
    return memory.give(x, out, result)


def _tally(
    name: str, exclusive_member: str, x: Any, axis: int, exclusive: bool, reverse: bool, out: Any, device: Any
) -> Any:
    key = _key_of(name, x, axis, exclusive, reverse, out, device)
    again = _AGAIN.get(key)
    if again is not None:
        quick, dtype, shape = again
        place = result_array(HOST, name, None, dtype, shape) if out is None else out
        if quick([x], [place], True):
            return place
    device = as_device(device)
    memory = device.memory
    array = memory.bring(memory.peek(name, "x", x))
    axis = as_axis(name, axis, array.ndim)
    result = result_array(memory, name, out, array.dtype, array.shape)
    (folded,), (output,), axis = fold_to_8(name, [array], [result], axis)
    direction = AxisDirection.DECREASING if as_flag(name, "reverse", reverse) else AxisDirection.INCREASING
    attributes = {"Axis": axis, "AxisDirection": direction, exclusive_member: as_flag(name, "exclusive", exclusive)}
    kernel = run(name, {"x": folded}, output, device, attributes)
    if memory.is_host and folded is array:
        _keep(key, kernel, result)
    return memory.give(x, out, result)


_MOST_KEPT = 512
_AGAIN: dict[Any, tuple[Callable[[Sequence[Any], Sequence[Any], bool], bool], np.dtype[Any], tuple[int, ...]]] = {}
"""How to run once more what was right before, and what comes out: a small array costs more to check than to compute."""


def _keep(key: Any, kernel: Kernel | None, result: Array) -> None:
    if key is None or kernel is None or kernel.try_run is None:
        return
    if len(_AGAIN) >= _MOST_KEPT:
        _AGAIN.clear()
    _AGAIN[key] = kernel.try_run, result.dtype, result.shape


def _key_of_join(arrays: Any, axis: Any, out: Any, device: Any) -> Any:
    """What tells joins apart that might be alike; whether they are, the buffers tell, all but those of subclasses."""
    if type(arrays) not in (list, tuple) or {*map(type, arrays)} != _PLAIN or type(axis) is not int:
        return None
    if type(device) not in (type(None), str, Device):
        return None
    first = arrays[0]
    shapes = tuple([each.shape for each in arrays])
    if out is None:
        return "JOIN", axis, device, first.dtype, first.strides, shapes
    if type(out) is not np.ndarray:
        return None
    return "JOIN", axis, device, first.dtype, first.strides, shapes, out.dtype, out.shape, out.strides


_PLAIN = {np.ndarray}


def _key_of(name: str, x: Any, axis: Any, exclusive: Any, reverse: Any, out: Any, device: Any) -> Any:
    """What makes two calls alike but for the memory of their arrays; None where it would take longer to see."""
    if type(x) is not np.ndarray or type(axis) is not int or type(exclusive) is not bool or type(reverse) is not bool:
        return None
    if type(device) not in (type(None), str, Device):
        return None
    if out is None:
        return name, axis, exclusive, reverse, device, x.dtype, x.shape, x.strides
    if type(out) is not np.ndarray:
        return None
    return name, axis, exclusive, reverse, device, x.dtype, x.shape, x.strides, out.dtype, out.shape, out.strides


def _pooled_sizes(
    name: str, x: Array, out: Any, output_sizes: Any, attributes: dict[str, Any], device: Device
) -> tuple[int, ...]:
    """The spatial sizes of the result: those asked for, or else the window's places, rounded down."""
    spatial = max(x.ndim - 2, 0)
    if output_sizes is not None:
        sizes = per_dimension(name, "output_sizes", output_sizes, spatial)
        if any(size < 1 for size in sizes):
            refuse(name, "(A10)", "output_sizes", kind_of(sizes), "at least 1 in each dimension")
        return sizes
    if out is not None:
        shape = device.memory.peek(name, "out", out).shape
        if len(shape) == x.ndim:
            return shape[2:]
    one = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1,) * x.ndim)
    sizes = tuple(size or 1 for size in x.shape[:2]) + x.shape[2:]
    tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type_of(name, "x", x), Sizes=sizes)
    anything = {"InputTensor": tensor, "InputScaleTensor": one, "OutputScaleTensor": one, "OutputTensor": tensor}
    desc = spec(name).desc(**anything, **attributes)
    names = {"InputTensor": "x"}
    raise_any(v for v in violations_of(desc, device, names) if v.rule != spec(name).sizes_rule)
    return tuple(choices[0] for choices in spec(name).infer_sizes(desc)["OutputTensor"][2:])
