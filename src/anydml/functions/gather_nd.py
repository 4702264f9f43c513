"""Elements and slices by tuples of indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..device import Device
from ._apply import Spread, apply, leading
from ._by_bytes import by_bytes
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._types import Operand, Output, Result


@documented("GATHER_ND", "GATHER_ND1")
def gather_nd(
    x: Operand,
    indices: Operand,
    *,
    batch_dimension_count: int = 0,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Copies an element, or a slice, for each tuple of indices, as x[i, j] does in NumPy: DML_OPERATOR_GATHER_ND1.

    Without batches it is DML_OPERATOR_GATHER_ND.

    Args:
        x: an array or an expression of any of DirectML's data types, of truth values, complex numbers or bfloat16.
        indices: likewise, int32, int64, uint32 or uint64; the last dimension is a tuple's coordinates, of x's first
            dimensions behind those of batches. Negative ones count from the end of their dimension.
        batch_dimension_count: how many of the first dimensions x and the indices share, whose tuples take of their own
            part of x.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type, with the indices' dimensions but the last, and those of x that the tuples leave;
        a copy of bits.

    >>> gather_nd([[1, 2, 3], [4, 5, 6]], [[0, 2], [-1, 0]])
    array([3, 4])
    >>> gather_nd([[1, 2, 3], [4, 5, 6]], [[1], [0]])
    array([[4, 5, 6],
           [1, 2, 3]])
    """
    if others:
        refuse_unknown(gather_nd, "GATHER_ND1", others)
    name = "GATHER_ND1" if batch_dimension_count else "GATHER_ND"

    def copy(values: list[Any], out: Any) -> Any:
        return gather_nd(values[0], indices, batch_dimension_count=batch_dimension_count, out=out, device=device)

    copied = by_bytes(name, [x], out, copy)
    if copied is not None:
        return copied
    side = adapter_for(name, [x, indices], out, device)
    shape, tuples = side.look("x", x).shape, side.look("indices", indices).shape
    coordinates = tuples[-1] if tuples else 1
    result = max(len(tuples) - 1 + len(shape) - _count(batch_dimension_count) - coordinates, 0)
    rank = max(len(shape), len(tuples), result)
    members = {"InputDimensionCount": len(shape), "IndicesDimensionCount": len(tuples)}
    if batch_dimension_count:
        members["BatchDimensionCount"] = batch_dimension_count
    operands = {"InputTensor": x, "IndicesTensor": indices}
    return apply(name, out, device, spread=_of_rank(rank), lent=rank - result, **operands, **members)


@documented("SCATTER_ND")
def scatter_nd(
    x: Operand,
    indices: Operand,
    updates: Operand,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """A copy of x in which an element, or a slice, is set for each tuple of indices: DML_OPERATOR_SCATTER_ND.

    It is what x[i, j] = updates does in NumPy.

    Args:
        x: an array or an expression of any of DirectML's data types, of truth values, complex numbers or bfloat16.
        indices: likewise, int32, int64, uint32 or uint64; the last dimension is a tuple's coordinates, of x's first
            dimensions. Negative ones count from the end of their dimension. Where two tuples are the same, the last one
            counts.
        updates: what is set, of x's type, with the indices' dimensions but the last, and those of x that the tuples
            leave.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and shape; a copy of bits.

    >>> scatter_nd([1, 2, 3, 4, 5, 6, 7, 8], [[4], [3], [1], [7]], [9, 10, 11, 12])
    array([ 1, 11,  3, 10,  9,  6,  7, 12])
    """
    if others:
        refuse_unknown(scatter_nd, "SCATTER_ND", others)
    name = "SCATTER_ND"
    copied = by_bytes(
        name, [x, updates], out, lambda values, out: scatter_nd(values[0], indices, values[1], out=out, device=device)
    )
    if copied is not None:
        return copied
    side = adapter_for(name, [x, indices, updates], out, device)
    ranks = [len(side.look(*each).shape) for each in (("x", x), ("indices", indices), ("updates", updates))]
    rank = max(ranks)
    operands = {"InputTensor": x, "IndicesTensor": indices, "UpdatesTensor": updates}
    members = {"InputDimensionCount": ranks[0], "IndicesDimensionCount": ranks[1]}
    return apply(name, out, device, spread=_of_rank(rank), lent=rank - ranks[0], **operands, **members)


def _count(value: Any) -> int:
    """A number of dimensions; what is none is refused by the operator's rules."""
    return value if type(value) is int and value > 0 else 0


def _of_rank(rank: int) -> Spread:
    """Lends operands leading dimensions, so that all have so many."""

    def spread(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        return {label: leading(shape, rank) for label, shape in shapes.items()}

    return spread
