"""One value from the elements along some axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.enums import AxisDirection, ReduceFunction, TensorDataType
from ..core.strided_layout import DATA_TYPES
from ..device import Device
from ._apply import apply
from ._arguments import as_dtype, as_flag
from ._documentation import documented
from ._names import NOT_GIVEN, as_member, axes_of, refuse_unknown
from ._types import DataTypeLike, Operand, Output, Result


@documented("REDUCE")
def reduce(
    x: Operand,
    function: ReduceFunction | str,
    axes: int | Sequence[int] | None = NOT_GIVEN,
    *,
    axis: int | None = None,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Reduces the elements along axes to one value, which keeps their dimensions at a size of 1: DML_OPERATOR_REDUCE.

    Args:
        x: an array or an expression, float32 or float16; ARGMAX, ARGMIN, MAX and MIN take all integers too, L1,
            MULTIPLY, SUM and SUM_SQUARE those of 32 and 64 bits.
        function: what is computed, a ReduceFunction or its name, such as "sum".
        axes: an axis, or several; negative ones count from the last. All where None, or not given.
        axis: one axis, in place of `axes`.
        output_dtype: the type of indices, of ARGMAX and ARGMIN, an integer one of 32 or 64 bits; where None that of
            `out`, or else uint32.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type, or of output_dtype. Integers wrap; an index along several axes is row-major.
        MAX, MIN, ARGMAX and ARGMIN pass over NaNs beside numbers, as np.fmax does; the others give NaN.

    >>> reduce([[1.0, 5.0], [4.0, 2.0]], "sum", axis=-1)
    array([[6.],
           [6.]], dtype=float32)
    >>> reduce([[1.0, 5.0], [4.0, 2.0]], ReduceFunction.ARGMAX, axes=0)
    array([[1, 0]], dtype=uint32)
    """
    if others:
        refuse_unknown(reduce, "REDUCE", others)
    axes = axes_of("REDUCE", axes, axis, None)
    function = as_member("REDUCE", "function", function, "ReduceFunction")
    options: dict[str, Any] = {}
    if isinstance(function, ReduceFunction) and function in (ReduceFunction.ARGMAX, ReduceFunction.ARGMIN):
        options["OutputTensor"] = _index_type("REDUCE", output_dtype, out)
    elif output_dtype is not None:
        options["OutputTensor"] = DATA_TYPES[as_dtype("REDUCE", "output_dtype", output_dtype)]
    return apply("REDUCE", out, device, Function=function, InputTensor=x, Axes=axes, **options)


@documented("ARGMIN")
def argmin(
    x: Operand,
    axes: int | Sequence[int] | None = NOT_GIVEN,
    *,
    axis: int | None = None,
    reverse: bool = False,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Finds the smallest element along axes, which keep their dimensions at a size of 1: DML_OPERATOR_ARGMIN.

    Args:
        x: an array or an expression, float32, float16 or integers.
        axes: an axis, or several; negative ones count from the last. All where None, or not given.
        axis: one axis, in place of `axes`.
        reverse: finds the last of equal elements, and not the first.
        output_dtype: an integer type of 32 or 64 bits; where None that of `out`, or else uint32.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        The index, an array like `x`, of output_dtype; along several axes it is row-major. NaNs are passed over beside
        numbers, where NumPy would find the first.

    >>> argmin([[1.0, 5.0], [4.0, 2.0]], axis=-1)
    array([[0],
           [1]], dtype=uint32)
    >>> argmin([1.0, 2.0, 1.0], reverse=True)
    array([2], dtype=uint32)
    """
    if others:
        refuse_unknown(argmin, "ARGMIN", others)
    return _index("ARGMIN", x, axes, axis, reverse, output_dtype, out, device)


@documented("ARGMAX")
def argmax(
    x: Operand,
    axes: int | Sequence[int] | None = NOT_GIVEN,
    *,
    axis: int | None = None,
    reverse: bool = False,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Finds the largest element along axes, which keep their dimensions at a size of 1: DML_OPERATOR_ARGMAX.

    Args:
        x: an array or an expression, float32, float16 or integers.
        axes: an axis, or several; negative ones count from the last. All where None, or not given.
        axis: one axis, in place of `axes`.
        reverse: finds the last of equal elements, and not the first.
        output_dtype: an integer type of 32 or 64 bits; where None that of `out`, or else uint32.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        The index, an array like `x`, of output_dtype; along several axes it is row-major. NaNs are passed over beside
        numbers, where NumPy would find the first.

    >>> argmax([[1.0, 5.0], [4.0, 2.0]], axis=-1)
    array([[1],
           [0]], dtype=uint32)
    >>> argmax([2.0, 1.0, 2.0], reverse=True)
    array([2], dtype=uint32)
    """
    if others:
        refuse_unknown(argmax, "ARGMAX", others)
    return _index("ARGMAX", x, axes, axis, reverse, output_dtype, out, device)


def _index(
    name: str, x: Any, axes: Any, axis: Any, reverse: Any, output_dtype: Any, out: Any, device: Device | str | None
) -> Any:
    return apply(
        name,
        out,
        device,
        InputTensor=x,
        OutputTensor=_index_type(name, output_dtype, out),
        Axes=axes_of(name, axes, axis, None),
        AxisDirection=AxisDirection(as_flag(name, "reverse", reverse)),
    )


def _index_type(name: str, output_dtype: Any, out: Any) -> TensorDataType:
    dtype = getattr(out, "dtype", np.uint32) if output_dtype is None else output_dtype
    return DATA_TYPES[as_dtype(name, "output_dtype", dtype, "an integer type of 32 or 64 bits")]
