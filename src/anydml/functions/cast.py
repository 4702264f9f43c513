"""Elements converted to another data type."""

from __future__ import annotations

from typing import Any

from ..core.strided_layout import DATA_TYPES
from ..device import Device
from ._apply import apply
from ._arguments import as_dtype
from ._documentation import documented
from ._names import refuse_unknown
from ._types import DataTypeLike, Operand, Output, Result


@documented("CAST")
def cast(
    x: Operand, dtype: DataTypeLike, *, out: Output | None = None, device: Device | str | None = None, **others: Any
) -> Result:
    """Each element as a value of another type: DML_OPERATOR_CAST.

    Args:
        x: an array or an expression of any of DirectML's data types.
        dtype: the type, NumPy's, another library's or DirectML's, or its name, such as "uint8" or "UINT8".
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of that type. A float becomes an integer by truncation, saturated, an integer another by
        wrapping.

    >>> cast([-1.5, 300.0], "uint8")
    array([  0, 255], dtype=uint8)
    """
    if others:
        refuse_unknown(cast, "CAST", others)
    data_type = DATA_TYPES[as_dtype("CAST", "dtype", dtype)]
    return apply("CAST", out, device, InputTensor=x, OutputTensor=data_type)
