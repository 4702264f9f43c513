"""Elements copied to other places, and as values of other types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.enums import PaddingMode
from ..core.strided_layout import DATA_TYPES
from ..runtime.device import Device
from ._apply import Shape, adapter_for, apply
from ._arguments import as_dtype, per_dimension


def cast(x: Any, dtype: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """Each element as a value of another type: DML_OPERATOR_CAST.

    Args:
        x: an array or an expression of any of DirectML's data types.
        dtype: the type, NumPy's, another library's or DirectML's, or its name, such as "uint8" or "UINT8".
        out: where to write, of any strides; no memory shared with x. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of that type. A float becomes an integer by truncation, saturated, an integer another by
        wrapping.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_CAST_OPERATOR_DESC, feature level 1.0.

    >>> cast([-1.5, 300.0], "uint8")
    array([  0, 255], dtype=uint8)
    """
    data_type = DATA_TYPES[as_dtype("CAST", "dtype", dtype)]
    return apply("CAST", out, device, InputTensor=x, OutputTensor=data_type)


def gather(
    x: Any,
    indices: Any,
    axis: int = 0,
    *,
    index_dimensions: int | None = None,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """Copies the elements that indices along an axis name, as numpy.take does: DML_OPERATOR_GATHER.

    The dimensions of the indices stand where the axis stood. The result has as many dimensions as x, with 1s before
    those that there are, and without leading 1s that would be too many.

    Args:
        x: an array or an expression of any of DirectML's data types.
        indices: likewise, int32, int64, uint32 or uint64; negative ones count from the end of the axis.
        axis: the dimension that the indices are of; negative counts from the last.
        index_dimensions: how many of the last dimensions of the indices there are, of which those before are 1; all
            where None, 0 for one index that takes the axis away.
        out: where to write, of any strides; no memory shared with an input. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type; a copy of bits.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_GATHER_OPERATOR_DESC, feature level 1.0.

    >>> gather([[1, 2, 3], [4, 5, 6]], [2, -3], axis=1)
    array([[3, 1],
           [6, 4]])
    """
    name = "GATHER"
    if index_dimensions is None:
        side = adapter_for(name, [x, indices], out, device)
        index_dimensions = len(side.look("indices", indices).shape)
    operands = {"InputTensor": x, "IndicesTensor": indices}
    return apply(name, out, device, spread=_of_one_rank, **operands, Axis=axis, IndexDimensions=index_dimensions)


def _of_one_rank(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    missing = len(shapes["InputTensor"]) - len(shapes["IndicesTensor"])
    return {"IndicesTensor": (1,) * missing + shapes["IndicesTensor"]}


def padding(
    x: Any,
    start_padding: int | Sequence[int],
    end_padding: int | Sequence[int],
    *,
    mode: PaddingMode = PaddingMode.CONSTANT,
    value: float = 0.0,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """Puts elements before and behind those of an array: DML_OPERATOR_PADDING.

    Args:
        x: an array or an expression of any of DirectML's data types.
        start_padding: elements before x's, for each dimension or one number for all.
        end_padding: likewise behind them.
        mode: a constant, or what x holds itself: EDGE, REFLECTION, SYMMETRIC, WRAP.
        value: what CONSTANT pads with.
        out: where to write, of any strides; no memory shared with x. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_PADDING_OPERATOR_DESC, feature level 1.0.

    >>> padding([1, 2, 3], 2, 1, mode=PaddingMode.REFLECTION)
    array([3, 2, 1, 2, 3, 2])
    """
    ends = {"StartPadding": start_padding, "EndPadding": end_padding}
    return apply("PADDING", out, device, InputTensor=x, PaddingMode=mode, PaddingValue=value, **ends)


def slice(
    x: Any,
    offsets: int | Sequence[int],
    sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    *,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """Copies every so many elements of a window, backward where a stride is negative: DML_OPERATOR_SLICE1.

    Where all strides are 1 it is DML_OPERATOR_SLICE.

    Args:
        x: an array or an expression of any of DirectML's data types.
        offsets: the first element of the window, for each dimension or one number for all.
        sizes: the elements of the window.
        strides: the distance of neighbours in x; of a negative one the first is the window's last.
        out: where to write, of any strides; no memory shared with x. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type; a copy of bits.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_SLICE_OPERATOR_DESC, feature level 1.0, and that of DML_SLICE1_OPERATOR_DESC, 2.1.

    >>> slice([0, 1, 2, 3, 4, 5], 1, 5, -2)
    array([5, 3, 1])
    """
    side = adapter_for("SLICE1", [x], out, device)
    steps = per_dimension("SLICE1", "strides", strides, len(side.look("x", x).shape))
    if all(step == 1 for step in steps):
        return apply("SLICE", out, device, InputTensor=x, Offsets=offsets, Sizes=sizes, Strides=steps)
    window = {"InputWindowOffsets": offsets, "InputWindowSizes": sizes, "InputWindowStrides": steps}
    return apply("SLICE1", out, device, InputTensor=x, **window)
