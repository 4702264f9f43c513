"""Sequences reversed within their lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..device import Device
from ._apply import apply
from ._arguments import as_axis
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._types import Operand, Output, Result


@documented("REVERSE_SUBSEQUENCES")
def reverse_subsequences(
    x: Operand,
    sequence_lengths: Operand | int | Sequence[int],
    axis: int = -1,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Reverses the first elements along an axis, as many as each sequence is long: DML_OPERATOR_REVERSE_SUBSEQUENCES.

    Args:
        x: an array or an expression of any of DirectML's data types.
        sequence_lengths: the lengths, integers or an array or an expression of uint32 or uint64, 1 along the axis; it
            broadcasts to x's other dimensions. A length that the axis does not have is the axis' own.
        axis: the dimension that sequences lie along; negative counts from the last.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type; a copy of bits.

    >>> reverse_subsequences([[1, 2, 3, 4], [5, 6, 7, 8]], [[2], [4]])
    array([[2, 1, 3, 4],
           [8, 7, 6, 5]])
    """
    name = "REVERSE_SUBSEQUENCES"
    if others:
        refuse_unknown(reverse_subsequences, name, others)
    shape = adapter_for(name, [x], out, device).look("x", x).shape
    along = as_axis(name, axis, len(shape))
    lengths = [sequence_lengths] if type(sequence_lengths) is int else sequence_lengths

    def spread(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        wanted = (*shape[:along], 1, *shape[along + 1 :])
        found = shapes["SequenceLengthsTensor"]
        broadcasts = all(size in (1, of_x) for size, of_x in zip(found[::-1], wanted[::-1], strict=False))
        return {"SequenceLengthsTensor": wanted} if broadcasts and len(found) <= len(wanted) else {}

    return apply(name, out, device, spread=spread, InputTensor=x, SequenceLengthsTensor=lengths, Axis=along)
