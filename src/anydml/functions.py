"""The operators as functions on arrays, for those who come from NumPy and PyTorch.

Any array in (NumPy, a buffer, ``__array_interface__``, DLPack; lists too, where float lists become float32), the same
kind of array out. What descs refuse works here: negative axes and strides, empty arrays, more than 8 dimensions where
they fold, unaligned memory. Rules on operands are in ``arrays.py``, all others are the operators' own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import index
from typing import Any, Literal, NamedTuple

import numpy as np

from .arrays import as_array, as_output, has_data_type, like, refuse
from .binding import Bound, Slot, address, check_sharing
from .device import Device, Served
from .engines import Kernel
from .enums import DML_TENSOR_DIMENSION_COUNT_MAX1, AxisDirection, TensorDataType
from .errors import Violation, error, listing
from .layout import DATA_TYPES, DTYPES, Array, Layout, fold, overlaps_itself
from .operators import spec, spec_of
from .schema import OperatorDesc
from .tensor import DML_BUFFER_TENSOR_DESC
from .validate import check_values, kind_of, validate


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
    if not isinstance(arrays, (list, tuple)) or not arrays:
        remedy = "Write join([a, b])" if hasattr(arrays, "shape") else ""
        refuse(name, "(A8)", "arrays", kind_of(arrays), "a list of at least one array", remedy, kind="type")
    pieces = [as_array(name, f"arrays[{i}]", each) for i, each in enumerate(arrays)]
    axis = _axis(name, axis, pieces[0].ndim)
    _check_pieces(name, pieces, axis)
    shape = list(pieces[0].shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    result = _result(name, out, pieces[0].dtype, tuple(shape))
    # Numbered before empty ones are skipped.
    kept = {f"arrays[{i}]": piece for i, piece in enumerate(pieces) if piece.shape[axis]} or {"arrays[0]": pieces[0]}
    inputs, (output,), axis = _fold(name, list(kept.values()), [result], axis)
    _run(name, dict(zip(kept, inputs, strict=True)), output, _device(device), {"Axis": axis})
    return out if out is not None else like(arrays[0], result)


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
    array = as_array(name, "x", x)
    dtype = _output_dtype(name, array, output_zero_point, output_dtype, out)
    spatial = max(array.ndim - 2, 0)
    channels = array.shape[1] if array.ndim > 1 else 1
    scale_dtype = np.dtype(np.float32)
    quantisation = {
        where: _per_channel(name, where, value, kind, channels, array.ndim)
        for where, value, kind in (
            ("input_scale", input_scale, scale_dtype),
            ("input_zero_point", input_zero_point, array.dtype),
            ("output_scale", output_scale, scale_dtype),
            ("output_zero_point", output_zero_point, dtype),
        )
    }
    attributes: dict[str, Any] = {
        "Strides": _per_dimension(name, "strides", 1 if strides is None else strides, spatial),
        "WindowSize": _per_dimension(name, "window_size", window_size, spatial),
        "StartPadding": _per_dimension(name, "start_padding", 0 if start_padding is None else start_padding, spatial),
        "EndPadding": _per_dimension(name, "end_padding", 0 if end_padding is None else end_padding, spatial),
        "Dilations": _per_dimension(name, "dilations", 1 if dilations is None else dilations, spatial),
        "IncludePadding": _flag(name, "include_padding", include_padding),
    }
    place = _device(device)
    sizes = _pooled_sizes(name, array, out, output_sizes, attributes, place)
    result = _result(name, out, dtype, (*array.shape[:2], *sizes))
    _run(name, {"x": array, **quantisation}, result, place, attributes)
    return out if out is not None else like(x, result)


def _tally(
    name: str, exclusive_member: str, x: Any, axis: int, exclusive: bool, reverse: bool, out: Any, device: Any
) -> Any:
    key = _key_of(name, x, axis, exclusive, reverse, out, device)
    again = _AGAIN.get(key)
    if again is not None:
        place = np.empty(x.shape, x.dtype) if out is None else out
        if again([x], [place], True):
            return place
    array = as_array(name, "x", x)
    axis = _axis(name, axis, array.ndim)
    result = _result(name, out, array.dtype, array.shape)
    (folded,), (output,), axis = _fold(name, [array], [result], axis)
    direction = AxisDirection.DECREASING if _flag(name, "reverse", reverse) else AxisDirection.INCREASING
    attributes = {"Axis": axis, "AxisDirection": direction, exclusive_member: _flag(name, "exclusive", exclusive)}
    kernel = _run(name, {"x": folded}, output, _device(device), attributes)
    if key is not None and kernel is not None and kernel.try_run is not None and folded is array:
        if len(_AGAIN) >= _MOST_KEPT:
            _AGAIN.clear()
        _AGAIN[key] = kernel.try_run
    return out if out is not None else like(x, result)


_MOST_KEPT = 512
_AGAIN: dict[Any, Callable[[Sequence[Any], Sequence[Any], bool], bool]] = {}
"""How to run once more what was right before: a small array costs more to check than to tally."""


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


# Operands


def _check_pieces(name: str, pieces: Sequence[Array], axis: int) -> None:
    """Rule (A8), for empty pieces too, which are not joined."""
    first = pieces[0]
    rest = (*first.shape[:axis], *first.shape[axis + 1 :])
    for i, piece in enumerate(pieces):
        if piece.dtype != first.dtype:
            refuse(name, "(A8)", f"arrays[{i}]", str(piece.dtype), f"{first.dtype}, the type of arrays[0]")
        if piece.ndim != first.ndim or (*piece.shape[:axis], *piece.shape[axis + 1 :]) != rest:
            expected = f"{first.shape}, the shape of arrays[0], but along axis {axis}"
            refuse(name, "(A8)", f"arrays[{i}]", f"shape {piece.shape}", expected)


def _axis(name: str, axis: Any, ndim: int) -> int:
    try:
        found = index(axis)
    except TypeError:
        return refuse(name, "(A5)", "axis", kind_of(axis), "an integer", kind="type")  # type: ignore[no-any-return]
    if not -ndim <= found < ndim:
        expected = (
            f"{-ndim} to {ndim - 1}, for an array of {ndim} dimensions" if ndim else "an array of 1 or more dimensions"
        )
        refuse(name, "(A5)", "axis", kind_of(found), expected)
    return found % ndim


def _flag(name: str, where: str, value: Any) -> bool:
    if isinstance(value, (int, np.integer, np.bool_)) and value in (0, 1):
        return bool(value)
    return refuse(name, "(A11)", where, kind_of(value), "True or False", kind="type")  # type: ignore[no-any-return]


def _result(name: str, out: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The array to write to: out's memory, or new."""
    if out is None:
        try:
            return np.empty(shape, dtype)
        except (MemoryError, ValueError) as problem:
            expected = "a result that fits in memory"
            return refuse(name, "(A4)", "out", f"{dtype} of shape {shape}: {problem}", expected, kind="memory")  # type: ignore[no-any-return]
    array = as_output(name, out, dtype, shape)
    if array.size and overlaps_itself(array.shape, array.strides, array.itemsize):
        found = f"strides {array.strides} bytes for shape {array.shape}"
        refuse(name, "(A7)", "out", found, "strides that prove that no two elements overlap")
    return array


def _fold(name: str, inputs: list[Array], outputs: list[Array], axis: int) -> tuple[list[Array], list[Array], int]:
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
        folded.append(np.lib.stride_tricks.as_strided(array, shape, [array.strides[i] for i in last]))
    return folded[: len(inputs)], folded[len(inputs) :], new_axis


def _output_dtype(name: str, x: Array, zero_point: Any, output_dtype: Any, out: Any) -> np.dtype[Any]:
    if output_dtype is not None:
        try:
            # The name of another library's type ends in NumPy's: torch.uint8.
            foreign = not isinstance(output_dtype, (str, type, np.dtype))
            dtype = np.dtype(str(output_dtype).rpartition(".")[2] if foreign else output_dtype)
        except Exception:  # str() and NumPy's parser may raise anything, which all means: no type
            dtype = np.dtype(object)
        if dtype not in DATA_TYPES:
            refuse(name, "(S3)", "output_dtype", kind_of(output_dtype), "int8 or uint8", kind="type")
        return dtype
    if out is not None:
        return as_array(name, "out", out).dtype
    if zero_point is not None and not isinstance(zero_point, (int, list, tuple)):
        return as_array(name, "output_zero_point", zero_point).dtype
    return x.dtype


def _per_channel(name: str, where: str, value: Any, dtype: np.dtype[Any], channels: int, rank: int) -> Array | None:
    """A scale or a zero point as a tensor {1, 1, 1, 1} or {1, C, 1, 1}; rule (A9)."""
    if value is None and where.endswith("zero_point"):
        return None
    if value is None:
        refuse(name, "(A9)", where, "None", "a number, or one for each channel", kind="type")
    plain = isinstance(value, (int, float, list, tuple)) and not isinstance(value, (bool, np.generic))
    array = np.array(value) if plain and not isinstance(value, (list, tuple)) else as_array(name, where, value)
    is_scale = dtype.kind == "f"
    if array.dtype.kind not in ("fiu" if is_scale else "iu"):
        expected = f"{'a number' if is_scale else 'an integer'} for {dtype}, or one for each channel"
        refuse(name, "(A9)", where, kind_of(value), expected, kind="type")
    if not is_scale and not plain and array.dtype != dtype:
        refuse(name, "(A9)", where, str(array.dtype), f"{dtype}, the type of the tensor that it belongs to")
    if not is_scale and plain:
        limits = np.iinfo(dtype) if dtype.kind in "iu" else np.iinfo(np.int8)
        if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            refuse(name, "(A9)", where, kind_of(value), f"{limits.min} to {limits.max}, which {dtype} holds")
    if array.shape not in ((), (1,), (channels,), (1, channels) + (1,) * (rank - 2)):
        found = f"shape {array.shape}"
        refuse(name, "(A9)", where, found, f"a number, or {channels} of them, one for each channel")
    with np.errstate(over="ignore"):
        return array.astype(dtype).reshape((1, -1) + (1,) * max(rank - 2, 0))


def _per_dimension(name: str, where: str, value: Any, spatial: int) -> tuple[int, ...]:
    """An option as a number for each spatial dimension; rule (A10)."""
    try:
        values = (index(value),) * spatial if not hasattr(value, "__len__") else tuple(map(index, value))
    except TypeError:
        expected = f"an integer, or {spatial} of them"
        return refuse(name, "(A10)", where, kind_of(value), expected, kind="type")  # type: ignore[no-any-return]
    if len(values) != spatial or any(abs(each) >= 2**63 for each in values):
        refuse(name, "(A10)", where, kind_of(value), f"an integer, or {spatial} of them")
    return values


def _pooled_sizes(
    name: str, x: Array, out: Any, output_sizes: Any, attributes: dict[str, Any], device: Device
) -> tuple[int, ...]:
    """The spatial sizes of the result: those asked for, or else the window's places, rounded down."""
    spatial = max(x.ndim - 2, 0)
    if output_sizes is not None:
        sizes = _per_dimension(name, "output_sizes", output_sizes, spatial)
        if any(size < 1 for size in sizes):
            refuse(name, "(A10)", "output_sizes", kind_of(sizes), "at least 1 in each dimension")
        return sizes
    if out is not None and as_array(name, "out", out).ndim == x.ndim:
        return as_array(name, "out", out).shape[2:]
    one = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1,) * x.ndim)
    sizes = tuple(size or 1 for size in x.shape[:2]) + x.shape[2:]
    tensor = DML_BUFFER_TENSOR_DESC(DataType=_data_type(name, "x", x), Sizes=sizes)
    anything = {"InputTensor": tensor, "InputScaleTensor": one, "OutputScaleTensor": one, "OutputTensor": tensor}
    desc = spec(name).desc(**anything, **attributes)
    names = {"InputTensor": "x"}
    _raise(v for v in _violations(desc, device, names) if v.rule != spec(name).sizes_rule)
    return tuple(choices[0] for choices in spec(name).infer_sizes(desc)["OutputTensor"][2:])


# Compiling and running


class _Compiled(NamedTuple):
    served: Served
    desc: OperatorDesc
    inputs: list[Slot]
    output: Slot
    names: Mapping[str, str]
    """Of the operands, by the header's labels."""


def _run(
    name: str, operands: Mapping[str, Array | None], output: Array, device: Device, attributes: Mapping[str, Any]
) -> Kernel | None:
    """Validates, compiles and runs an operator on arrays; compiled operators are kept.

    Returns what served, or None where there was nothing to compute.
    """
    named = tuple([(where, x if x is None else _layout(name, where, x)) for where, x in operands.items()])
    compiled = _compile(device, name, named, _layout(name, "out", output), tuple(attributes.items()))
    if compiled is None:
        return None
    inputs = list(operands.values())
    bound = [_bound(slot, array) for slot, array in zip(compiled.inputs, inputs, strict=True) if array is not None]
    place = _bound(compiled.output, output)
    shared = check_sharing(name, spec(name).in_place, bound, [place])
    if shared:
        raise error(shared)
    _raise(_renamed(check_values(spec(name), compiled.desc, inputs), compiled.names))
    compiled.served.kernel.run(inputs, [output])
    return compiled.served.kernel


def _bound(slot: Slot, array: Array) -> Bound:
    start = address(array)
    low, high = Layout.of_array(array).bounds()
    return Bound(slot, array, start + low, start + high)


@lru_cache(maxsize=512)
def _compile(
    device: Device,
    name: str,
    operands: tuple[tuple[str, Layout | None], ...],
    output: Layout,
    attributes: tuple[tuple[str, Any], ...],
) -> _Compiled | None:
    """None where there is nothing to compute, though it is right."""
    operator = spec(name)
    is_empty = 0 in output.sizes

    def tensor(layout: Layout | None) -> DML_BUFFER_TENSOR_DESC | None:
        # Descs have no empty tensors; the rules on everything else are looked at as if there were one element.
        sizes = () if layout is None else tuple(max(size, 1) for size in layout.sizes) if is_empty else layout.sizes
        return None if layout is None else DML_BUFFER_TENSOR_DESC(DataType=layout.type, Sizes=sizes)

    inputs = [layout for _, layout in operands]
    rest = [tensor(layout) for layout in inputs]
    members: dict[str, Any] = dict(attributes)
    for member, row in operator.tensors.items():
        if "output" in row.kind.lower():
            members[member] = tensor(output)
        else:
            members[member] = rest if "array" in row.kind else rest.pop(0)
    desc = operator.desc(**members)
    labels = [label for label, _ in operator.inputs(desc)]
    names = dict(zip(labels, [where for where, _ in operands], strict=True))
    _raise(_violations(desc, device, names))
    if is_empty:
        return None
    aligned = operator.align(desc, inputs)
    seen = zip(names.values(), inputs, aligned, strict=True)
    slots = [Slot(where, None, layout, sees) for where, layout, sees in seen]
    result = Slot("out", None, output, output, True)
    return _Compiled(device.compile(operator, desc, slots, [result]), desc, slots, result, names)


@lru_cache
def _device_named(name: str) -> Device:
    return Device(name)


def _device(device: Any) -> Device:
    if isinstance(device, Device):
        return device
    return _device_named("cpu" if device is None else device if isinstance(device, str) else kind_of(device))


def _layout(name: str, where: str, array: Array) -> Layout:
    _data_type(name, where, array)
    return Layout.of_array(array)


def _data_type(name: str, where: str, array: Array) -> TensorDataType:
    if not has_data_type(array):
        row = next(iter(spec(name).tensors.values()))
        expected = listing(DTYPES[data_type].name for data_type in row.data_types)
        refuse(name, "(S3)", where, str(array.dtype), expected, _conversion(array.dtype, row.data_types), "type")
    return DATA_TYPES[array.dtype]


def _conversion(found: np.dtype[Any], data_types: Sequence[TensorDataType]) -> str:
    """How to come to a data type that an operator takes."""
    floats = [d for d in (np.float32, np.float64) if DATA_TYPES[np.dtype(d)] in data_types]
    integers = [d for d in (np.int32, np.int64, np.uint32, np.uint64) if DATA_TYPES[np.dtype(d)] in data_types]
    fitting = floats if found.kind == "f" else [d for d in integers if np.can_cast(found, d)]
    return f"Convert it with .astype(np.{fitting[0].__name__})" if fitting else ""


def _violations(desc: OperatorDesc, device: Device, names: Mapping[str, str]) -> Iterator[Violation]:
    """What the validator says, in the function's words, with the remedies that an array has and a desc has not."""
    row = next(iter(spec_of(desc).tensors.values()))  # type: ignore[union-attr]
    said = set()
    for violation in _renamed(validate(desc, device.feature_level, device.strict), names):
        # The result is like the operands: what is wrong with both is said once.
        if violation.where.startswith("out.") and (violation.rule, violation.found) in said:
            continue
        said.add((violation.rule, violation.found))
        remedy = violation.remedy
        if violation.rule == "(S3)" and not remedy:
            remedy = _conversion(DTYPES[TensorDataType[violation.found]], row.data_types)
        elif violation.rule == "(S2)" and not remedy and int(violation.found) < min(row.dimension_counts):
            remedy = "x[np.newaxis] adds a dimension"
        # NumPy and PyTorch raise TypeError for a data type that they don't take.
        kind: Literal["value", "type"] = "type" if violation.rule == "(S3)" else "value"
        yield replace(violation, remedy=remedy, kind=kind)


def _renamed(violations: Iterable[Violation], names: Mapping[str, str]) -> Iterator[Violation]:
    """Violations by the function's names: ``x`` for InputTensor, ``window_size[0]`` for WindowSize[0]."""
    for violation in violations:
        member, dot, rest = violation.where.partition(".")
        if member == "OutputTensor":
            member = "out"
        elif member in names:
            member = names[member]
        else:
            member = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", member).lower()
        yield replace(violation, where=f"{member}{dot}{rest}")


def _raise(violations: Iterable[Violation]) -> None:
    found = list(violations)
    if found:
        raise error(found)
