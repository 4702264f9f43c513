"""Running sums and products."""

from __future__ import annotations

from typing import Any

from ..core.enums import AxisDirection
from ..core.interop import as_operand
from ..core.memory import result_array
from ..device import Device
from ._apply import apply
from ._arguments import as_axis, as_flag, fold_to_8
from ._call import as_device, resolve, run
from ._documentation import documented
from ._messages import in_words_of
from ._names import refuse_unknown
from ._operand_adapter import are_arrays
from ._types import Operand, Output, Result


@documented("CUMULATIVE_SUMMATION")
def cumulative_summation(
    x: Operand,
    axis: int = -1,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Running sums along an axis: DML_OPERATOR_CUMULATIVE_SUMMATION.

    Args:
        x: an array or an expression, float32, float16, int32, int64, uint32 or uint64 (DirectML has no float64 here),
            of any shape with at least one dimension; lists of floats become float32.
        axis: the dimension along which is added; negative counts from the last.
        exclusive: leaves the current element out of its sum, so that the first sum is 0.
        reverse: starts at the end of the axis.
        out: where to write, of x's type and shape and of any strides; may be x itself. Returned.

    Returns:
        An array like `x`, of its type and shape. Integers wrap; floats are summed in the next wider type and rounded
        once.

    >>> cumulative_summation([2, 1, 3, 5])
    array([ 2,  3,  6, 11])
    >>> cumulative_summation([[1.0, 2.0], [3.0, 4.0]], axis=0, reverse=True)
    array([[4., 6.],
           [3., 4.]], dtype=float32)
    """
    if others:
        refuse_unknown(cumulative_summation, "CUMULATIVE_SUMMATION", others)
    return _scan("CUMULATIVE_SUMMATION", "HasExclusiveSum", x, axis, exclusive, reverse, out, device)


@documented("CUMULATIVE_PRODUCT")
def cumulative_product(
    x: Operand,
    axis: int = -1,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Running products along an axis: DML_OPERATOR_CUMULATIVE_PRODUCT.

    Args:
        x: an array or an expression, float32, float16, int32, int64, uint32 or uint64 (DirectML has no float64 here),
            of any shape with at least one dimension; lists of floats become float32.
        axis: the dimension along which is multiplied; negative counts from the last.
        exclusive: leaves the current element out of its product, so that the first product is 1.
        reverse: starts at the end of the axis.
        out: where to write, of x's type and shape and of any strides; may be x itself. Returned.

    Returns:
        An array like `x`, of its type and shape. Integers wrap; floats are multiplied in the next wider type and
        rounded once.

    >>> cumulative_product([2, 4, 8, 3])
    array([  2,   8,  64, 192])
    """
    if others:
        refuse_unknown(cumulative_product, "CUMULATIVE_PRODUCT", others)
    return _scan("CUMULATIVE_PRODUCT", "HasExclusiveProduct", x, axis, exclusive, reverse, out, device)


def _scan(
    name: str, exclusive_member: str, x: Any, axis: int, exclusive: bool, reverse: bool, out: Any, device: Any
) -> Any:
    if not are_arrays([x]):
        options = {"Axis": axis, "AxisDirection": _direction(name, reverse), exclusive_member: exclusive}
        return apply(name, out, device, InputTensor=x, **options)
    device = as_device(device)
    memory = device.memory
    with in_words_of({"x": x}):
        array = memory.to_device(memory.import_array(name, "x", as_operand(name, "x", x)))
        axis = as_axis(name, axis, array.ndim)
        result = result_array(memory, name, out, array.dtype, array.shape, x)
        (folded,), (output,), axis = fold_to_8(name, [array], [result], axis)
        flag = as_flag(name, "exclusive", exclusive)
        options = {"Axis": axis, "AxisDirection": _direction(name, reverse), exclusive_member: flag}
        run(resolve(name, {"x": folded}, device, options), [folded], [output], device)
    return memory.export(x, out, result)


def _direction(name: str, reverse: Any) -> AxisDirection:
    return AxisDirection.DECREASING if as_flag(name, "reverse", reverse) else AxisDirection.INCREASING
