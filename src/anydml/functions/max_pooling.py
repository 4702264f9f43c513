"""Maxima in a sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.strided_layout import DATA_TYPES
from ..device import Device
from ._apply import apply_all
from ._arguments import as_dtype
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._types import DataTypeLike, Operand, Output, Result


@documented("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2")
def max_pooling(
    x: Operand,
    window_size: int | Sequence[int] = REQUIRED,
    *,
    strides: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    indices_dtype: DataTypeLike | None = None,
    output_sizes: int | Sequence[int] | None = None,
    out: Output | Sequence[Output] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result | list[Result]:
    """The maximum of the elements in a sliding window, and its index: DML_OPERATOR_MAX_POOLING.

    With indices it is DML_OPERATOR_MAX_POOLING1, with dilations DML_OPERATOR_MAX_POOLING2.

    Args:
        x: an array or an expression, float32, float16 or of an integer type, of shape (N, C, H, W) or (N, C, D, H, W).
        window_size: taps for each spatial dimension, or one number for all.
        strides: steps of the window; 1 where None.
        start_padding: padding before the input, which is never the maximum; 0 where None.
        end_padding: padding behind the input; 0 where None, whatever start_padding is.
        dilations: distance of taps; 1 where None.
        indices_dtype: the type of indices, uint32 or uint64; no indices where None.
        output_sizes: the spatial sizes of the result, rounded down (as where None) or up.
        out: where to write, of any strides, a list of two arrays where there are indices; no memory shared with x.
            Returned.

    Returns:
        An array like `x`, of its type; with indices two arrays. An index counts all elements of x, the first is 0.
        NaNs beside numbers are passed over.

    >>> max_pooling([[[[1.0, 5.0, 3.0, 4.0]]]], (1, 2))
    array([[[[5., 5., 4.]]]], dtype=float32)
    >>> max_pooling([[[[1.0, 5.0, 3.0, 4.0]]]], (1, 2), strides=2, indices_dtype="uint32")[1]
    array([[[[1, 3]]]], dtype=uint32)
    """
    if others or window_size is REQUIRED:
        refuse_unknown(max_pooling, "MAX_POOLING", others, window_size=window_size)
    revision = ""
    options: dict[str, Any] = {}
    if indices_dtype is not None:
        dtype = as_dtype("MAX_POOLING1", "indices_dtype", indices_dtype, "uint32 or uint64")
        revision, options = "1", {"OutputIndicesTensor": DATA_TYPES[dtype]}
    if dilations is not None:
        revision, options = "2", {**options, "Dilations": dilations}
    results = apply_all(
        f"MAX_POOLING{revision}",
        out if out is None or indices_dtype is not None else [out],
        device,
        output_sizes=output_sizes,
        InputTensor=x,
        Strides=strides,
        WindowSize=window_size,
        StartPadding=start_padding,
        EndPadding=end_padding,
        **options,
    )
    return results[0] if indices_dtype is None else results
