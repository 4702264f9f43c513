"""Activations along axes: softmax, its logarithm, and hardmax.

Decisions where the pages are silent: floats are computed in double precision and rounded once, softmax by the largest
element of its group, so that nothing overflows; a group whose largest is an infinity, or with a NaN in it, gives NaN
throughout, as in PyTorch. For hardmax, as for the ARGMAX that its page goes by, a NaN is not larger than any number;
where all are NaN the first is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import axes_within, rounded, same, sizes_of
from ..independence import all_but
from ..schema import (
    FUSED,
    Choices,
    ConstraintFailure,
    Count,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    UINTs,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AlongLast(OperatorDesc):
    InputTensor: Tensor = FUSED
    OutputTensor: Tensor = FUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class _AlongAxes(OperatorDesc):
    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"AxisCount": ("Axes",)}

    InputTensor: Tensor = FUSED
    OutputTensor: Tensor = FUSED
    AxisCount: Count = None
    Axes: UINTs


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_HARDMAX_OPERATOR_DESC(_AlongLast):
    """1 for the first of the largest elements of each row, 0 for all others. Not in-place.

    Args:
        InputTensor: rows, one or a batch of them, along the last dimension.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) All dimensions before the last two are of size 1.

    Source: the page of DML_ACTIVATION_HARDMAX_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC(_AlongLast):
    """The logarithm of softmax: f(x) = ln(e^x / sum(e^x)) for each element x, with the sum over its row. Not in-place.

    Args:
        InputTensor: rows, one or a batch of them, along the last dimension.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) All dimensions before the last two are of size 1.

    Source: the page of DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_SOFTMAX_OPERATOR_DESC(_AlongLast):
    """f(x) = e^x / sum(e^x) for each element x, with the sum over its row. Not in-place.

    Args:
        InputTensor: rows, one or a batch of them, along the last dimension.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) All dimensions before the last two are of size 1.

    Source: the page of DML_ACTIVATION_SOFTMAX_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC(_AlongAxes):
    """f(x) = e^x / sum(e^x) for each element x, with the sum along axes, which together make a group. Not in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        AxisCount: how many axes there are; derived from Axes.
        Axes: the axes of the sum.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) AxisCount is at least 1.
        (C4) Axes are less than the DimensionCount of InputTensor.
        (C5) No axis comes twice.

    Source: the page of DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC; since feature level 5.1.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC(_AlongAxes):
    """The logarithm of softmax: f(x) = ln(e^x / sum(e^x)) for each element x, with the sum along axes, which together
    make a group. Not in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        AxisCount: how many axes there are; derived from Axes.
        Axes: the axes of the sum.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) AxisCount is at least 1.
        (C4) Axes are less than the DimensionCount of InputTensor.
        (C5) No axis comes twice.

    Source: the page of DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC; since feature level 5.1.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_HARDMAX1_OPERATOR_DESC(_AlongAxes):
    """1 for the first of the largest elements along axes, which together make a group, 0 for all others. Not in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        AxisCount: how many axes there are; derived from Axes.
        Axes: the axes of a group, walked in the order of the dimensions, the last one fastest.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) AxisCount is at least 1.
        (C4) Axes are less than the DimensionCount of InputTensor.
        (C5) No axis comes twice.

    Source: the page of DML_ACTIVATION_HARDMAX1_OPERATOR_DESC; since feature level 5.1.
    """


def _constraints_of_rows(desc: Any) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    sizes = desc.InputTensor.Sizes
    remedy = f"{type(desc).__name__.replace('_OPERATOR', '1_OPERATOR')} takes any axes"
    for i, size in enumerate(sizes[:-2]):
        if size > 1:
            yield ConstraintFailure(
                "(C3)", f"InputTensor.Sizes[{i}]", str(size), "1, before the last two dimensions", remedy
            )


def _constraints_of_axes(desc: Any) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    yield from axes_within(desc, "(C3)", "(C4)", "(C5)")


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _axes(desc: Any, rank: int) -> Sequence[int]:
    axes: Sequence[int] = desc.Axes if isinstance(desc, _AlongAxes) else (rank - 1,)
    return axes


def _softmax(x: Array, axes: Sequence[int]) -> Array:
    e = np.exp(x - x.max(axis=tuple(axes), keepdims=True))
    result: Array = e / e.sum(axis=tuple(axes), keepdims=True)
    return result


def _log_softmax(x: Array, axes: Sequence[int]) -> Array:
    """d - ln(1 + sum of e^d over all but the first of the largest), d = x - max: what is close to 0 stays exact."""
    d = x - x.max(axis=tuple(axes), keepdims=True)
    others = np.exp(d) * ~_hardmax(x, axes)
    result: Array = d - np.log1p(others.sum(axis=tuple(axes), keepdims=True))
    return result


def _hardmax(x: Array, axes: Sequence[int]) -> Array:
    last = range(-len(axes), 0)
    groups = np.moveaxis(x, sorted(axes), last)
    flat = groups.reshape(*groups.shape[: x.ndim - len(axes)], -1)
    first = (flat == np.fmax.reduce(flat, axis=-1, keepdims=True)).argmax(axis=-1, keepdims=True)
    largest = np.arange(flat.shape[-1]) == first
    return np.moveaxis(largest.reshape(groups.shape), last, sorted(axes))


def _spec(
    operator_type: OperatorType, desc: type[OperatorDesc], function: Callable[[Array, Sequence[int]], Array]
) -> OperatorSpec:
    is_along_axes = issubclass(desc, _AlongAxes)

    def reference(desc: Any, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(function(x.astype(np.float64), _axes(desc, x.ndim)), x.dtype)

    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=_constraints_of_axes if is_along_axes else _constraints_of_rows,
        infer_sizes=_infer_sizes,
        sizes_rule="(C2)",
        reference=reference,
        independent=lambda desc: all_but(desc, _axes(desc, len(desc.InputTensor.Sizes))),
        support=_SUPPORT_OF_AXES if is_along_axes else _SUPPORT_OF_ROWS,
    )


_SUPPORT_OF_ROWS = support_table("""
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
    DML_FEATURE_LEVEL_2_0 and above
    InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
    OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | FLOAT32, FLOAT16
""")

_SUPPORT_OF_AXES = support_table("""
    DML_FEATURE_LEVEL_5_1 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
""")

ACTIVATION_HARDMAX = _spec(OperatorType.ACTIVATION_HARDMAX, DML_ACTIVATION_HARDMAX_OPERATOR_DESC, _hardmax)

ACTIVATION_LOG_SOFTMAX = _spec(
    OperatorType.ACTIVATION_LOG_SOFTMAX, DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC, _log_softmax
)

ACTIVATION_SOFTMAX = _spec(OperatorType.ACTIVATION_SOFTMAX, DML_ACTIVATION_SOFTMAX_OPERATOR_DESC, _softmax)

ACTIVATION_SOFTMAX1 = _spec(OperatorType.ACTIVATION_SOFTMAX1, DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC, _softmax)

ACTIVATION_LOG_SOFTMAX1 = _spec(
    OperatorType.ACTIVATION_LOG_SOFTMAX1, DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC, _log_softmax
)

ACTIVATION_HARDMAX1 = _spec(OperatorType.ACTIVATION_HARDMAX1, DML_ACTIVATION_HARDMAX1_OPERATOR_DESC, _hardmax)
