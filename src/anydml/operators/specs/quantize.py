"""QUANTIZE and DEQUANTIZE: linear quantisation by blocks, to 8 bits and to 4: real = (quantised - zero point) * scale.

Decisions where the pages say "TBD", or nothing:

1. QuantizationTensors are the scale, with SCALE; the scale and then the zero point, with SCALE_ZERO_POINT. NONE, for which
   there would be nothing to compute with, is refused. Without a zero point it is 0.
2. Each size of InputTensor is a multiple of that of the scale, and of the zero point's: element i of a dimension of N
   belongs to block i * S // N of S. So a size of 1 is one block for the whole dimension, and the input's own size one for
   each element. The two may have different sizes, as no page says that they have the same.
3. The scale has the data type of the real numbers, the zero point that of the quantised ones, as with
   QUANTIZE_LINEAR.
4. Values are those of QUANTIZE_LINEAR and DEQUANTIZE_LINEAR: quotients are rounded to FLOAT32 first, and halves then to the
   even integer, the zero point is added to that, and the sum is saturated; NaN counts as 0. Differences are exact, and
   products with the scale are rounded once.
5. A tensor of 4 bits lies two elements in a byte, the first in the low half, as ONNX has it, in row-major order without
   gaps: with strides other than the packed ones it is refused, as (T11), because none of them has an address of its own.
   What broadcasts does so by its sizes instead.
6. TotalTensorSizeInBytes is half the number of elements, rounded up to a multiple of 4, as of all types. Of an odd number
   of elements the high half of the last byte is written as 0, and read as nothing; bytes behind it are not touched.
7. INT4 is a two's complement: -8 to 7.
8. Results have another type than elements: nothing runs in-place, as no page says that it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core import enums
from ...core.enums import OperatorType, QuantizationType, TensorDataType
from ...core.packed_array import LIMITS, pack_codes, unpack_codes
from ...core.strided_layout import DTYPES, Array
from ..constraints import rounded, sizes_of
from ..schema import (
    Choices,
    ConstraintFailure,
    Count,
    Independence,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    Tensors,
    labelled,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_QUANTIZE_OPERATOR_DESC(OperatorDesc):
    """Quantises real numbers by blocks: clamp(round(x / scale) + zero point) for each element x.

    Halves are rounded to the even integer, and a NaN counts as 0. Not in-place.

    Args:
        InputTensor: the real numbers x.
        QuantizationType: whether there is a zero point beside the scale.
        QuantizationTensorCount: how many tensors that are; derived from QuantizationTensors.
        QuantizationTensors: the scale, of the input's data type; then the zero point, of the output's, where there is
            one. Each has as many elements along a dimension as the input has blocks there.
        OutputTensor: the quantised numbers.

    Constraints:
        (C1) Every tensor has the same DimensionCount.
        (C2) QuantizationType is SCALE or SCALE_ZERO_POINT, and there are as many QuantizationTensors.
        (C3) The scale has the DataType of InputTensor.
        (C4) The zero point has the DataType of OutputTensor.
        (C5) Each size of InputTensor is a multiple of that of each of QuantizationTensors.
        (C6) OutputTensor has the sizes of InputTensor.

    Source: the page of DML_QUANTIZE_OPERATOR_DESC; since feature level 6.3.
    """

    InputTensor: Tensor
    QuantizationType: enums.QuantizationType
    QuantizationTensorCount: Count = None
    QuantizationTensors: Tensors
    OutputTensor: Tensor

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"QuantizationTensorCount": ("QuantizationTensors",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_DEQUANTIZE_OPERATOR_DESC(OperatorDesc):
    """Makes quantised numbers real ones, by blocks: (x - zero point) * scale for each element x. Not in-place.

    Args:
        InputTensor: the quantised numbers x.
        QuantizationType: whether there is a zero point beside the scale.
        QuantizationTensorCount: how many tensors that are; derived from QuantizationTensors.
        QuantizationTensors: the scale, of the output's data type; then the zero point, of the input's, where there is
            one. Each has as many elements along a dimension as the input has blocks there.
        OutputTensor: the real numbers.

    Constraints:
        (C1) Every tensor has the same DimensionCount.
        (C2) QuantizationType is SCALE or SCALE_ZERO_POINT, and there are as many QuantizationTensors.
        (C3) The scale has the DataType of OutputTensor.
        (C4) The zero point has the DataType of InputTensor.
        (C5) Each size of InputTensor is a multiple of that of each of QuantizationTensors.
        (C6) OutputTensor has the sizes of InputTensor.

    Source: the page of DML_DEQUANTIZE_OPERATOR_DESC; since feature level 6.3.
    """

    InputTensor: Tensor
    QuantizationType: enums.QuantizationType
    QuantizationTensorCount: Count = None
    QuantizationTensors: Tensors
    OutputTensor: Tensor

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"QuantizationTensorCount": ("QuantizationTensors",)}


_COUNTS = {QuantizationType.SCALE: 1, QuantizationType.SCALE_ZERO_POINT: 2}


def quantised_tensor(desc: Any) -> Tensor:
    """The tensor of integers."""
    tensor: Tensor = desc.OutputTensor if isinstance(desc, DML_QUANTIZE_OPERATOR_DESC) else desc.InputTensor
    return tensor


def _constraints(desc: Any) -> Iterator[ConstraintFailure]:
    sizes = desc.InputTensor.Sizes
    parameters = labelled(desc, ["QuantizationTensors"])
    for label, tensor in [*parameters, ("OutputTensor", desc.OutputTensor)]:
        if len(tensor.Sizes) != len(sizes):
            expected = f"{len(sizes)}, that of InputTensor"
            yield ConstraintFailure("(C1)", f"{label}.DimensionCount", str(len(tensor.Sizes)), expected)
    kind = desc.QuantizationType
    if kind not in _COUNTS:
        yield ConstraintFailure("(C2)", "QuantizationType", kind.name, "SCALE or SCALE_ZERO_POINT")
    elif len(parameters) != _COUNTS[kind]:
        what = "1, a scale" if kind == QuantizationType.SCALE else "2, a scale and a zero point"
        expected = f"{what}, with QuantizationType {kind.name}"
        yield ConstraintFailure("(C2)", "QuantizationTensorCount", str(len(parameters)), expected)
    is_quantize = isinstance(desc, DML_QUANTIZE_OPERATOR_DESC)
    mates = ("InputTensor", "OutputTensor") if is_quantize else ("OutputTensor", "InputTensor")
    for rule, (label, tensor), mate in zip(("(C3)", "(C4)"), parameters, mates, strict=False):
        wanted = getattr(desc, mate).DataType
        if tensor.DataType != wanted:
            expected = f"{wanted.name}, that of {mate}"
            yield ConstraintFailure(rule, f"{label}.DataType", tensor.DataType.name, expected)
    for label, tensor in parameters:
        if len(tensor.Sizes) != len(sizes):
            continue
        for i, (size, blocks) in enumerate(zip(sizes, tensor.Sizes, strict=True)):
            if blocks > 0 and size % blocks:
                expected = f"a number that divides {size}, the size of InputTensor"
                yield ConstraintFailure("(C5)", f"{label}.Sizes[{i}]", str(blocks), expected)


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _independent(desc: Any) -> Independence:
    """All dimensions are, along which a parameter has a number for each element or one for all."""
    sizes = desc.InputTensor.Sizes
    parameters = labelled(desc, ["QuantizationTensors"])
    places = [
        i if all(tensor.Sizes[i] in (1, size) for _, tensor in parameters) else None for i, size in enumerate(sizes)
    ]
    found: dict[str, list[int | None]] = {"InputTensor": places}
    for label, tensor in parameters:
        found[label] = [place if tensor.Sizes[i] == sizes[i] else None for i, place in enumerate(places)]
    return {**found, "OutputTensor": places}


def _unpacked(tensor: Tensor, x: Array) -> Array:
    return unpack_codes(x, tensor.DataType, tensor.Sizes) if tensor.DataType in LIMITS else x


def _for_each(desc: Any, i: int, given: Array) -> Array:
    """A parameter for each element of the input."""
    tensor = desc.QuantizationTensors[i]
    y = _unpacked(tensor, given)
    for axis, (size, blocks) in enumerate(zip(desc.InputTensor.Sizes, tensor.Sizes, strict=True)):
        y = y.repeat(size // blocks, axis)
    return y


def _zero_point(desc: Any, parameters: tuple[Array, ...]) -> Any:
    return _for_each(desc, 1, parameters[0]).astype(np.float64) if parameters else 0


def limits_of(data_type: TensorDataType) -> tuple[int, int]:
    """The least and the largest integer of a type."""
    if data_type in LIMITS:
        return LIMITS[data_type]
    limits = np.iinfo(DTYPES[data_type])
    return int(limits.min), int(limits.max)


def _quantize(desc: DML_QUANTIZE_OPERATOR_DESC, x: Array, scale: Array, *zero_point: Array) -> Array:
    data_type = desc.OutputTensor.DataType
    with np.errstate(all="ignore"):
        quotient = x.astype(np.float32) / _for_each(desc, 0, scale).astype(np.float32)
        whole = np.where(np.isnan(quotient), 0, np.rint(quotient)).astype(np.float64)
        codes = np.clip(whole + _zero_point(desc, zero_point), *limits_of(data_type)).astype(np.int16)
    return pack_codes(codes) if data_type in LIMITS else codes.astype(DTYPES[data_type])


def _dequantize(desc: DML_DEQUANTIZE_OPERATOR_DESC, x: Array, scale: Array, *zero_point: Array) -> Array:
    codes = _unpacked(desc.InputTensor, x).astype(np.float64)
    with np.errstate(all="ignore"):
        y = (codes - _zero_point(desc, zero_point)) * _for_each(desc, 0, scale).astype(np.float64)
        return rounded(y, scale.dtype)


QUANTIZE = OperatorSpec(
    operator_type=OperatorType.QUANTIZE,
    desc=DML_QUANTIZE_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_quantize,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_6_3 and above
        InputTensor         | Input       | 1 to 8 | FLOAT32, FLOAT16
        QuantizationTensors | Input array | 1 to 8 | FLOAT32, FLOAT16, INT8, INT4, UINT8, UINT4
        OutputTensor        | Output      | 1 to 8 | INT8, INT4, UINT8, UINT4
    """),
)

DEQUANTIZE = OperatorSpec(
    operator_type=OperatorType.DEQUANTIZE,
    desc=DML_DEQUANTIZE_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_dequantize,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_6_3 and above
        InputTensor         | Input       | 1 to 8 | INT8, INT4, UINT8, UINT4
        QuantizationTensors | Input array | 1 to 8 | FLOAT32, FLOAT16, INT8, INT4, UINT8, UINT4
        OutputTensor        | Output      | 1 to 8 | FLOAT32, FLOAT16
    """),
)
