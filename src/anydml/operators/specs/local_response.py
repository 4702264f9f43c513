"""Normalisations by what lies around an element.

Decisions where the pages are silent: all is computed in double precision and rounded once. A local region is ONNX's:
LocalSize elements, of which (LocalSize - 1) / 2, rounded down, lie before; what lies outside of the tensor counts as 0.
With CrossChannel it runs along the channels alone, as ONNX's does, though the page's words could mean the rest as well;
without, it is a square in one channel. The divisor is LocalSize, as printed, of a square too.

Decisions on LOCAL_RESPONSE_NORMALIZATION_GRAD, whose page has no formula:

1. It is the derivative of what LOCAL_RESPONSE_NORMALIZATION computes here.
2. CrossChannel is the forward operator's, though this page has its two meanings the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import rounded, same, sizes_of
from ..independence import all_but
from ..schema import (
    BOOL,
    FLOAT,
    UINT,
    Choices,
    ConstraintFailure,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC(OperatorDesc):
    """Input / (Bias + Alpha / LocalSize * sum of squares around the element) ^ Beta.

    Around an element are LocalSize elements, (LocalSize - 1) / 2 of them, rounded down, before it, and 0 outside of the
    tensor: along the channels, or in a square of one channel, of LocalSize in height and in width. Not in-place.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}.
        OutputTensor: the results, of the same type and sizes.
        CrossChannel: whether squares are summed across channels, or in one channel.
        LocalSize: elements that are summed, along each dimension concerned.
        Alpha: the factor of the sum; 0.0001 by default, as is recommended.
        Beta: the exponent; 0.75 by default, as is recommended.
        Bias: added to the sum; 1 by default, as is recommended.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) LocalSize is at least 1.

    Source: the page of DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    CrossChannel: BOOL
    LocalSize: UINT
    Alpha: FLOAT = 1e-4
    Beta: FLOAT = 0.75
    Bias: FLOAT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC(OperatorDesc):
    """The gradients of LOCAL_RESPONSE_NORMALIZATION. Not in-place.

    With s = Bias + Alpha / LocalSize * sum of squares around the element, OutputGradient = InputGradient / s ^ Beta - 2 *
    Alpha * Beta / LocalSize * Input * sum of InputGradient * Input / s ^ (Beta + 1), over the elements around which this
    one lies.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, the forward operator's.
        InputGradientTensor: the gradients of its results.
        OutputGradientTensor: the gradients of its elements.
        CrossChannel: whether squares are summed across channels, or in one channel.
        LocalSize: elements that are summed, along each dimension concerned.
        Alpha: the factor of the sum; 0.0001 by default, as is recommended.
        Beta: the exponent; 0.75 by default, as is recommended.
        Bias: added to the sum; 1 by default, as is recommended.

    Constraints:
        (C1) All tensors have the same DataType.
        (C2) All tensors have the same DimensionCount and Sizes.
        (C3) LocalSize is at least 1.

    Source: the page of DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC; since feature level 3.1.
    """

    InputTensor: Tensor
    InputGradientTensor: Tensor
    OutputGradientTensor: Tensor
    CrossChannel: BOOL
    LocalSize: UINT
    Alpha: FLOAT = 1e-4
    Beta: FLOAT = 0.75
    Bias: FLOAT = 1.0


def _constraints(desc: DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    if desc.LocalSize < 1:
        yield ConstraintFailure("(C3)", "LocalSize", str(desc.LocalSize), "at least 1")


def _constraints_of_gradients(desc: DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    gradients = ("InputGradientTensor", "OutputGradientTensor")
    yield from same(desc, "(C1)", "DataType", "InputTensor", *gradients)
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", *gradients)
    yield from same(desc, "(C2)", "Sizes", "InputTensor", "InputGradientTensor")
    if desc.LocalSize < 1:
        yield ConstraintFailure("(C3)", "LocalSize", str(desc.LocalSize), "at least 1")


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _sums_around(x: Array, axis: int, before: int, after: int) -> Array:
    """s[i] = x[i - before] + ... + x[i + after], 0 outside, put together from sums of 1, 2, 4... elements.

    Sums of sums, not differences of running ones: what is small survives beside what is large, and NaN stays where it is.
    """
    x = np.moveaxis(x, axis, -1)
    size = x.shape[-1]
    before, after = min(before, size - 1), min(after, size - 1)
    sums = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)])
    total, done, length = np.zeros_like(x), 0, 1
    while done < before + 1 + after:
        if (before + 1 + after) & length:
            total = total + sums[..., done : done + size]
            done += length
        sums = sums[..., :-length] + sums[..., length:]
        length *= 2
    return np.moveaxis(total, -1, axis)


def _axes(desc: Any) -> tuple[int, ...]:
    return (1,) if desc.CrossChannel else (2, 3)


def _summed(desc: Any, x: Array, before: int, after: int) -> Array:
    for axis in _axes(desc):
        x = _sums_around(x, axis, before, after)
    return x


def _local_response(desc: DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC, x: Array) -> Array:
    wide, count = x.astype(np.float64), desc.LocalSize
    with np.errstate(all="ignore"):
        sums = _summed(desc, wide * wide, (count - 1) // 2, count // 2)
        return rounded(wide / (desc.Bias + desc.Alpha / count * sums) ** desc.Beta, x.dtype)


def _gradients(desc: DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC, x: Array, gradient: Array) -> Array:
    wide, dy, count = x.astype(np.float64), gradient.astype(np.float64), desc.LocalSize
    before, after = (count - 1) // 2, count // 2
    with np.errstate(all="ignore"):
        s = desc.Bias + desc.Alpha / count * _summed(desc, wide * wide, before, after)
        around = _summed(desc, dy * wide / s ** (desc.Beta + 1), after, before)
        return rounded(dy / s**desc.Beta - 2 * desc.Alpha * desc.Beta / count * wide * around, x.dtype)


LOCAL_RESPONSE_NORMALIZATION = OperatorSpec(
    operator_type=OperatorType.LOCAL_RESPONSE_NORMALIZATION,
    desc=DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_local_response,
    independent=lambda desc: all_but(desc, _axes(desc)),
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)

LOCAL_RESPONSE_NORMALIZATION_GRAD = OperatorSpec(
    operator_type=OperatorType.LOCAL_RESPONSE_NORMALIZATION_GRAD,
    desc=DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC,
    constraints=_constraints_of_gradients,
    infer_sizes=lambda desc: {"OutputGradientTensor": sizes_of(desc.InputTensor)},
    sizes_rule="(C2)",
    reference=_gradients,
    independent=lambda desc: all_but(desc, _axes(desc)),
    support=support_table("""
        DML_FEATURE_LEVEL_3_1 and above
        InputTensor          | Input  | 4 | FLOAT32, FLOAT16
        InputGradientTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputGradientTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)
