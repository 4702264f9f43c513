"""Arrays at other places of their dimensions, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.enums import AxisDirection, InterpolationMode
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ._apply import apply
from ._arguments import as_flag, is_several, per_dimension
from ._call import data_type_of
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result


@documented("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3")
def resample(
    x: Operand,
    scales: float | Sequence[float],
    interpolation_mode: InterpolationMode | str = InterpolationMode.LINEAR,
    *,
    input_pixel_offsets: float | Sequence[float] = 0.5,
    output_pixel_offsets: float | Sequence[float] = -0.5,
    rounding_direction: AxisDirection | str | None = None,
    antialiased: bool = False,
    output_sizes: int | Sequence[int] | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Enlarges or reduces an array along its dimensions: DML_OPERATOR_RESAMPLE.

    Output element o is at (o - output_pixel_offset) / scale - input_pixel_offset of x, as PyTorch's align_corners=False
    and ONNX's half_pixel have it with the offsets 0.5 and -0.5.

    Args:
        x: an array or an expression of float32, float16, int8 or uint8, of 1 to 4 dimensions.
        scales: how many elements one of x becomes, for each dimension or one number for all.
        interpolation_mode: an InterpolationMode or its name: LINEAR between two elements, or the nearest one.
        input_pixel_offsets: added to places in x before they are scaled, likewise.
        output_pixel_offsets: added behind.
        rounding_direction: an AxisDirection or its name, where a place between two elements is rounded up or down, in
            place of to the nearest.
        antialiased: whether LINEAR takes all elements that one of the output stands for.
        output_sizes: those of the output; where None those of `out`, or floor(size * scale).
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type.

    >>> resample([0.0, 4.0], 2)
    array([0., 1., 3., 4.], dtype=float32)
    """
    if others:
        refuse_unknown(resample, "RESAMPLE", others)
    offsets = {"InputPixelOffsets": input_pixel_offsets, "OutputPixelOffsets": output_pixel_offsets}
    members: dict[str, Any] = {}
    name = "RESAMPLE"
    if as_flag("RESAMPLE3", "antialiased", antialiased):
        direction = AxisDirection.DECREASING if rounding_direction is None else rounding_direction
        name, members = "RESAMPLE3", {"RoundingDirection": direction, **offsets, "Antialiased": antialiased}
    elif rounding_direction is not None:
        name, members = "RESAMPLE2", {"RoundingDirection": rounding_direction, **offsets}
    elif any(is_several(each) or each != half for each, half in zip(offsets.values(), (0.5, -0.5), strict=True)):
        name, members = "RESAMPLE1", {**offsets}
    return _applied(name, x, output_sizes, out, device, interpolation_mode, {"Scales": scales, **members})


@documented("RESAMPLE_GRAD", "RESAMPLE_GRAD1")
def resample_grad(
    input_gradient: Operand,
    scales: float | Sequence[float],
    interpolation_mode: InterpolationMode | str = InterpolationMode.LINEAR,
    *,
    input_pixel_offsets: float | Sequence[float] = 0.5,
    output_pixel_offsets: float | Sequence[float] = -0.5,
    rounding_direction: AxisDirection | str | None = None,
    output_sizes: int | Sequence[int] | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The gradients of :func:`resample`: DML_OPERATOR_RESAMPLE_GRAD.

    Args:
        input_gradient: an array or an expression of float32 or float16, of 1 to 4 dimensions: of what came out.
        scales: those of `resample`, as all that follows.
        interpolation_mode: an InterpolationMode or its name.
        input_pixel_offsets: added to places before they are scaled.
        output_pixel_offsets: added behind.
        rounding_direction: an AxisDirection or its name; to the nearest where None.
        output_sizes: those of the gradients of what went in; where None those of `out`, or floor(size / scale).
        out: where to write, of any strides; no memory shared with input_gradient. Returned.

    Returns:
        An array like `input_gradient`, of its type.

    >>> resample_grad([1.0, 2.0, 3.0, 4.0], 2)
    array([3.25, 6.75], dtype=float32)
    """
    if others:
        refuse_unknown(resample_grad, "RESAMPLE_GRAD", others)
    members: dict[str, Any] = {"InputPixelOffsets": input_pixel_offsets, "OutputPixelOffsets": output_pixel_offsets}
    name = "RESAMPLE_GRAD"
    if rounding_direction is not None:
        name, members = "RESAMPLE_GRAD1", {"RoundingDirection": rounding_direction, **members}
    return _applied(name, input_gradient, output_sizes, out, device, interpolation_mode, {"Scales": scales, **members})


def _applied(name: str, x: Any, output_sizes: Any, out: Any, device: Any, mode: Any, members: dict[str, Any]) -> Any:
    """With numbers for all dimensions as the desc has them."""
    given = ("InputGradientTensor", "input_gradient") if "GRAD" in name else ("InputTensor", "x")
    side = adapter_for(name, [x], out, device)
    seen = side.look(given[1], x)
    rank = len(seen.shape)
    for member in ("Scales", "InputPixelOffsets", "OutputPixelOffsets"):
        if member in members and not is_several(members[member]):
            members[member] = [members[member]] * rank
    if output_sizes is None and out is not None:
        output_sizes = side.look("out", out).shape
    if output_sizes is not None:
        members[given[0].replace("Input", "Output")] = DML_BUFFER_TENSOR_DESC(
            DataType=data_type_of(name, given[1], seen), Sizes=per_dimension(name, "output_sizes", output_sizes, rank)
        )
    return apply(name, out, device, **{given[0]: x}, InterpolationMode=mode, **members)
