"""The largest or smallest elements."""

from __future__ import annotations

from typing import Any

from ..core.enums import AxisDirection
from ..core.strided_layout import DATA_TYPES
from ..device import Device
from ._apply import apply_all
from ._arguments import as_dtype, as_flag
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._types import DataTypeLike, Operand, Output, Result


@documented("TOP_K", "TOP_K1")
def top_k(
    x: Operand,
    k: int = REQUIRED,
    axis: int = -1,
    *,
    largest: bool = True,
    indices_dtype: DataTypeLike = "uint32",
    out: list[Output] | tuple[Output, ...] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """Finds the largest or smallest elements along an axis, in order, and their indices: DML_OPERATOR_TOP_K1.

    Args:
        x: an array or an expression, float32, float16 or of an integer type.
        k: how many elements are found.
        axis: the dimension along which is looked; negative counts from the last.
        largest: finds the largest, the largest first; the smallest, the smallest first, where False.
        indices_dtype: the type of indices, uint32 or uint64.
        out: a list of two arrays to write to, of any strides; no memory shared with x. Returned.

    Returns:
        The elements, an array like `x`, and their indices. Of equal elements those of lower indices come first; NaN is
        larger than every number.

    >>> top_k([3.0, 1.0, 4.0, 1.0], 2)
    [array([4., 3.], dtype=float32), array([2, 0], dtype=uint32)]
    >>> top_k([3, 1, 4, 1], 2, largest=False)[1]
    array([1, 3], dtype=uint32)
    """
    if others or k is REQUIRED:
        refuse_unknown(top_k, "TOP_K1", others, k=k)
    name = "TOP_K1"
    dtype = as_dtype(name, "indices_dtype", indices_dtype, "uint32 or uint64")
    return apply_all(
        name,
        out,
        device,
        InputTensor=x,
        OutputIndexTensor=DATA_TYPES[dtype],
        Axis=axis,
        K=k,
        AxisDirection=AxisDirection(as_flag(name, "largest", largest)),
    )
