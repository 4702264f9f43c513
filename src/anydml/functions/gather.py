"""Elements gathered along an axis, by indices."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import DMLError, Violation, error
from ..device import Device
from ._apply import apply, leading
from ._arguments import as_axis
from ._by_bytes import by_bytes
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._types import Operand, Output, Result


@documented("GATHER")
def gather(
    x: Operand,
    indices: Operand,
    axis: int = 0,
    *,
    index_dimensions: int | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Copies the elements that indices along an axis name, as numpy.take does: DML_OPERATOR_GATHER.

    The dimensions of the indices stand where the axis stood, however many there are. With `index_dimensions` the result
    has as many dimensions as x, as the operator has it: with 1s before those that there are, and without leading 1s
    that would be too many.

    Args:
        x: an array or an expression of any of DirectML's data types, of truth values, complex numbers or bfloat16.
        indices: likewise, int32, int64, uint32 or uint64, or an integer; negative ones count from the end of the axis.
        axis: the dimension that the indices are of; negative counts from the last.
        index_dimensions: how many of the last dimensions of the indices there are, of which those before are 1; where
            None all, as numpy.take has it.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type; a copy of bits.

    >>> gather([[1, 2, 3], [4, 5, 6]], [2, -3], axis=1)
    array([[3, 1],
           [6, 4]])
    """
    if others:
        refuse_unknown(gather, "GATHER", others)
    name = "GATHER"
    copied = by_bytes(
        name,
        [x],
        out,
        lambda values, out: gather(values[0], indices, axis, index_dimensions=index_dimensions, out=out, device=device),
    )
    if copied is not None:
        return copied
    indices = np.int64(indices) if type(indices) is int and abs(indices) < 2**63 else indices
    if index_dimensions is not None:
        operands = {"InputTensor": x, "IndicesTensor": indices}
        return apply(name, out, device, spread=_of_one_rank, **operands, Axis=axis, IndexDimensions=index_dimensions)
    side = adapter_for(name, [x, indices], out, device)
    rank, ndim = len(side.look("x", x).shape), len(side.look("indices", indices).shape)
    axis = as_axis(name, axis, rank)
    # A tensor of so many dimensions, with 1s before its own, has a result of as many.
    result = rank - 1 + ndim
    needed = max(rank, ndim, result)

    def spread(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        return {label: leading(shape, needed) for label, shape in shapes.items()}

    moved = axis + needed - rank
    operands = {"InputTensor": x, "IndicesTensor": indices}
    try:
        return apply(
            name, out, device, spread=spread, lent=needed - result, **operands, Axis=moved, IndexDimensions=ndim
        )
    except DMLError as problem:
        raise error([_as_given(each, moved, axis, needed - ndim) for each in problem.violations]) from None


def _as_given(violation: Violation, moved: int, axis: int, lent: int) -> Violation:
    """What is wrong of operands as they were given: with their own axis, and the place of an index without the
    dimensions that its tensor was lent."""
    expected = violation.expected.replace(f"axis {moved} of x", f"axis {axis} of x")
    found = violation.found
    if violation.rule == "(V1)":
        index, _, place = found.partition(" at ")
        own = literal_eval(place)[lent:]
        found = f"{index} at {own}" if own else index
    return replace(violation, found=found, expected=expected)


def _of_one_rank(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    return {"IndicesTensor": leading(shapes["IndicesTensor"], len(shapes["InputTensor"]))}
