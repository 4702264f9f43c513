"""Maxima, back at their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ._apply import apply
from ._arguments import as_shape
from ._call import data_type_of
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result


@documented("MAX_UNPOOLING")
def max_unpooling(
    x: Operand,
    indices: Operand,
    output_sizes: int | Sequence[int] = REQUIRED,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Zeros, in which each element of x is put at the place that its index says: DML_OPERATOR_MAX_UNPOOLING.

    Args:
        x: an array or an expression, float32, float16 or of an integer type, of shape (N, C, H, W): what
            :func:`max_pooling` returned first.
        indices: uint32 or uint64, of x's shape: what it returned second. An index counts all elements of the result,
            the first is 0; what has one that the result does not have is left out. Of equal ones the last one counts.
        output_sizes: the sizes of the result, all four of them, or the two spatial ones.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type; a copy of bits.

    >>> import numpy as np
    >>> max_unpooling([[[[5.0, 4.0]]]], np.array([[[[1, 3]]]], np.uint32), (1, 5))
    array([[[[0., 5., 0., 4., 0.]]]], dtype=float32)
    """
    name = "MAX_UNPOOLING"
    if others or output_sizes is REQUIRED:
        refuse_unknown(max_unpooling, name, others, output_sizes=output_sizes)
    sizes = as_shape(name, output_sizes, "output_sizes")
    seen = adapter_for(name, [x, indices], out, device).look("x", x)
    leading = seen.shape[:2] if len(sizes) == 2 else ()
    output = DML_BUFFER_TENSOR_DESC(DataType=data_type_of(name, "x", seen), Sizes=(*leading, *sizes))
    return apply(name, out, device, InputTensor=x, IndicesTensor=indices, OutputTensor=output)
