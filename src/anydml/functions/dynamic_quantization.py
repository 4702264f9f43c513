"""Quantisation by what the elements themselves ask for."""

from __future__ import annotations

from typing import Any

from ..core.enums import TensorDataType
from ..core.strided_layout import DATA_TYPES
from ..device import Device
from ._apply import apply_all
from ._arguments import as_dtype
from ._documentation import documented
from ._names import refuse_unknown
from ._types import DataTypeLike, Operand, Output, Result


@documented("DYNAMIC_QUANTIZE_LINEAR")
def dynamic_quantize_linear(
    x: Operand,
    *,
    output_dtype: DataTypeLike = "uint8",
    out: list[Output] | tuple[Output, ...] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """Quantises an array to the range of its elements, and finds the scale: DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR.

    Args:
        x: an array or an expression, float32 or float16.
        output_dtype: int8 or uint8.
        out: a list of three arrays to write to, of any strides; no memory shared with x. Returned.

    Returns:
        The quantised numbers, an array like `x` of output_dtype; the scale, (max - min) / 255 with 0 in the range; and
        the zero point. The last two have one element, in as many dimensions as x. A NaN takes no part in the range, and
        becomes the zero point.

    >>> dynamic_quantize_linear([0.0, 2.0, -3.0, 12.75])
    [array([ 49,  81,   0, 255], dtype=uint8), array([0.06176471], dtype=float32), array([49], dtype=uint8)]
    """
    if others:
        refuse_unknown(dynamic_quantize_linear, "DYNAMIC_QUANTIZE_LINEAR", others)
    name = "DYNAMIC_QUANTIZE_LINEAR"
    kind = DATA_TYPES[as_dtype(name, "output_dtype", output_dtype, "int8 or uint8")]
    return apply_all(
        name,
        out,
        device,
        InputTensor=x,
        OutputTensor=kind,
        OutputScaleTensor=TensorDataType.FLOAT32,
        OutputZeroPointTensor=kind,
    )
