"""Elements and slices by tuples of indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..device import Device
from ._apply import apply, leading
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
    input_dimension_count: int | None = None,
    indices_dimension_count: int | None = None,
    batch_dimension_count: int = 0,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Copies an element, or a slice, for each tuple of indices, as x[i, j] does in NumPy: DML_OPERATOR_GATHER_ND1.

    Without batches it is DML_OPERATOR_GATHER_ND. With `input_dimension_count` or `indices_dimension_count` the result
    has as many dimensions as x, as the operator has it: with 1s before those that there are.

    Args:
        x: an array or an expression of any of DirectML's data types, of truth values, complex numbers or bfloat16.
        indices: likewise, int32, int64, uint32 or uint64; the last dimension is a tuple's coordinates, of x's first
            dimensions behind those of batches. Negative ones count from the end of their dimension.
        input_dimension_count: how many of the last dimensions of x there are, of which those before are 1; where None
            all.
        indices_dimension_count: likewise of the indices, with that of the coordinates.
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
    counts = {"input_dimension_count": input_dimension_count, "indices_dimension_count": indices_dimension_count}
    batch, options = batch_dimension_count, {"BatchDimensionCount": batch_dimension_count}
    name = "GATHER_ND1"
    if type(batch) is int and batch == 0:
        name, options = "GATHER_ND", {}

    def copy(values: list[Any], out: Any) -> Any:
        return gather_nd(values[0], indices, **counts, batch_dimension_count=batch, out=out, device=device)

    copied = by_bytes(name, [x], out, copy)
    if copied is not None:
        return copied
    side = adapter_for(name, [x, indices], out, device)
    shape, tuples = side.look("x", x).shape, side.look("indices", indices).shape
    coordinates = tuples[-1] if tuples else 1
    result = max(len(tuples) - 1 + len(shape) - (batch if type(batch) is int else 0) - coordinates, 0)
    operands = {"InputTensor": x, "IndicesTensor": indices}
    return _apply(name, out, device, operands, options, [len(shape), len(tuples)], counts, result)


@documented("SCATTER_ND")
def scatter_nd(
    x: Operand,
    indices: Operand,
    updates: Operand,
    *,
    input_dimension_count: int | None = None,
    indices_dimension_count: int | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """A copy of x in which an element, or a slice, is set for each tuple of indices: DML_OPERATOR_SCATTER_ND.

    It is what x[i, j] = updates does in NumPy. With `input_dimension_count` or `indices_dimension_count` all have as
    many dimensions as x, as the operator has it: with 1s before those that there are.

    Args:
        x: an array or an expression of any of DirectML's data types, of truth values, complex numbers or bfloat16.
        indices: likewise, int32, int64, uint32 or uint64; the last dimension is a tuple's coordinates, of x's first
            dimensions. Negative ones count from the end of their dimension. Where two tuples are the same, the last one
            counts.
        updates: what is set, of x's type, with the indices' dimensions but the last, and those of x that the tuples
            leave.
        input_dimension_count: how many of the last dimensions of x there are, of which those before are 1; where None
            all.
        indices_dimension_count: likewise of the indices, with that of the coordinates.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and shape; a copy of bits.

    >>> scatter_nd([1, 2, 3, 4, 5, 6, 7, 8], [[4], [3], [1], [7]], [9, 10, 11, 12])
    array([ 1, 11,  3, 10,  9,  6,  7, 12])
    """
    if others:
        refuse_unknown(scatter_nd, "SCATTER_ND", others)
    name = "SCATTER_ND"
    counts = {"input_dimension_count": input_dimension_count, "indices_dimension_count": indices_dimension_count}

    def copy(values: list[Any], out: Any) -> Any:
        return scatter_nd(values[0], indices, values[1], **counts, out=out, device=device)

    copied = by_bytes(name, [x, updates], out, copy)
    if copied is not None:
        return copied
    side = adapter_for(name, [x, indices, updates], out, device)
    ranks = [len(side.look(*each).shape) for each in (("x", x), ("indices", indices), ("updates", updates))]
    operands = {"InputTensor": x, "IndicesTensor": indices, "UpdatesTensor": updates}
    return _apply(name, out, device, operands, {}, ranks, counts, ranks[0])


def _apply(
    name: str,
    out: Any,
    device: Any,
    operands: Mapping[str, Any],
    options: Mapping[str, Any],
    ranks: Sequence[int],
    counts: Mapping[str, int | None],
    result: int,
) -> Any:
    """An operator whose operands are lent leading dimensions, so that all have as many. Those of the result are taken
    away where nobody says how many count."""
    own = [rank if count is None else count for rank, count in zip(ranks, counts.values(), strict=False)]
    is_plain = all(count is None for count in counts.values())
    rank = max(*ranks, result) if is_plain else max(ranks)

    def spread(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        return {label: leading(shape, rank) for label, shape in shapes.items()}

    members = {"InputDimensionCount": own[0], "IndicesDimensionCount": own[1], **options}
    lent = rank - result if is_plain else 0
    return apply(name, out, device, spread=spread, lent=lent, **operands, **members)
