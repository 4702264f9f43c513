"""Regions of images, resampled to one size, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.enums import InterpolationMode, ReduceFunction
from ..core.errors import refuse
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, plain
from ..device import Device
from ._apply import apply, apply_all
from ._arguments import as_flag, per_dimension
from ._call import data_type_of
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result

_UINT_MAX = 2**32 - 1


@documented("ROI_ALIGN", "ROI_ALIGN1")
def roi_align(
    x: Operand,
    roi: Operand,
    batch_indices: Operand,
    output_sizes: int | Sequence[int] | None = None,
    *,
    reduction_function: ReduceFunction | str = ReduceFunction.AVERAGE,
    interpolation_mode: InterpolationMode | str = InterpolationMode.LINEAR,
    spatial_scale_x: float = 1.0,
    spatial_scale_y: float = 1.0,
    input_pixel_offset: float = 0.5,
    output_pixel_offset: float = -0.5,
    out_of_bounds_input_value: float = 0.0,
    minimum_samples_per_output: int = 1,
    maximum_samples_per_output: int = _UINT_MAX,
    align_regions_to_corners: bool = False,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Resamples regions of images to one size: DML_OPERATOR_ROI_ALIGN.

    As ONNX's RoiAlign has it with half_pixel, and torchvision's roi_align with aligned=True; their sampling_ratio is
    both the least and the largest number of samples here. With an input_pixel_offset of 0 it is output_half_pixel, and
    aligned=False, but for regions of less than an element, which those enlarge.

    Args:
        x: an array or an expression, float32 or float16 of shape (N, C, H, W).
        roi: likewise, of x's type: the corners x1, y1, x2, y2 of each region, (regions, 4), with up to two leading
            dimensions of 1. A region may be empty, or turned round, which mirrors it.
        batch_indices: likewise, uint32: which of the N images each region is of, (regions,), with up to three leading
            dimensions of 1.
        output_sizes: the height and width of what comes out, or one number for both; where None those of `out`.
        reduction_function: AVERAGE or MAX of the samples of an element.
        interpolation_mode: an InterpolationMode or its name: LINEAR between four elements, or the nearest one.
        spatial_scale_x: the factor of x1 and x2, which makes them places in x.
        spatial_scale_y: the factor of y1 and y2.
        input_pixel_offset: subtracted from places in x.
        output_pixel_offset: subtracted from those of samples.
        out_of_bounds_input_value: what a sample is that is outside of x.
        minimum_samples_per_output: the least number of samples of an element in each dimension.
        maximum_samples_per_output: the largest number; between them one for each element of x, rounded up.
        align_regions_to_corners: whether the first and the last sample are on the corners of a region.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and of shape (regions, C, height, width).

    >>> import numpy as np
    >>> roi_align([[[[0.0, 4.0], [8.0, 16.0]]]], [[0.0, 0.0, 2.0, 2.0]], np.array([0], np.uint32), 1)
    array([[[[7.]]]], dtype=float32)
    """
    if others:
        refuse_unknown(roi_align, "ROI_ALIGN", others)
    name = "ROI_ALIGN"
    if output_sizes is None and out is None:
        refuse(name, "(A10)", "output_sizes", "None", "two integers, or one, where there is no out", kind="type")
    offsets: dict[str, Any] = {"InputPixelOffset": input_pixel_offset, "OutputPixelOffset": output_pixel_offset}
    aligned = as_flag("ROI_ALIGN1", "align_regions_to_corners", align_regions_to_corners)
    # Of what is no number, the operator that has these members says what is wrong.
    numbers = [plain(each) for each in offsets.values()]
    revised = aligned or any(not isinstance(each, (int, float)) for each in numbers) or numbers != [0.5, -0.5]
    return apply(
        "ROI_ALIGN1" if revised else name,
        out,
        device,
        output_sizes=output_sizes,
        InputTensor=x,
        ROITensor=roi,
        BatchIndicesTensor=batch_indices,
        ReductionFunction=reduction_function,
        InterpolationMode=interpolation_mode,
        SpatialScaleX=spatial_scale_x,
        SpatialScaleY=spatial_scale_y,
        OutOfBoundsInputValue=out_of_bounds_input_value,
        MinimumSamplesPerOutput=minimum_samples_per_output,
        MaximumSamplesPerOutput=maximum_samples_per_output,
        **({**offsets, "AlignRegionsToCorners": aligned} if revised else {}),
    )


@documented("ROI_ALIGN_GRAD")
def roi_align_grad(
    input_gradient: Operand,
    roi: Operand,
    batch_indices: Operand,
    x: Operand | None = None,
    *,
    reduction_function: ReduceFunction | str = ReduceFunction.AVERAGE,
    interpolation_mode: InterpolationMode | str = InterpolationMode.LINEAR,
    spatial_scale_x: float = 1.0,
    spatial_scale_y: float = 1.0,
    input_pixel_offset: float = 0.5,
    output_pixel_offset: float = -0.5,
    minimum_samples_per_output: int = 1,
    maximum_samples_per_output: int = _UINT_MAX,
    align_regions_to_corners: bool = False,
    of_x: bool = True,
    of_roi: bool = False,
    output_sizes: Sequence[int] | None = None,
    out: Sequence[Output] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """The gradients of :func:`roi_align`: DML_OPERATOR_ROI_ALIGN_GRAD.

    Args:
        input_gradient: an array or an expression, float32 or float16 of shape (regions, C, height, width): of what came
            out.
        roi: that of `roi_align`, as all that follows.
        batch_indices: uint32, of shape (regions,).
        x: of shape (N, C, H, W); needed for the gradients of regions, and for MAX.
        reduction_function: AVERAGE or MAX of the samples of an element.
        interpolation_mode: an InterpolationMode or its name.
        spatial_scale_x: the factor of x1 and x2.
        spatial_scale_y: the factor of y1 and y2.
        input_pixel_offset: subtracted from places in x.
        output_pixel_offset: subtracted from those of samples.
        minimum_samples_per_output: the least number of samples of an element in each dimension.
        maximum_samples_per_output: the largest number.
        align_regions_to_corners: whether the first and the last sample are on the corners of a region.
        of_x: whether the gradients of x are wanted.
        of_roi: whether those of regions are.
        output_sizes: the shape of x, where it is not there; where None that of `out`.
        out: a list of what to write to, of any strides; no memory shared with an input. Returned.

    Returns:
        Arrays like `input_gradient`, of its type: the gradients of x and those of regions, of these what is wanted.

    >>> import numpy as np
    >>> index = np.array([0], np.uint32)
    >>> roi_align_grad([[[[8.0]]]], [[0.0, 0.0, 2.0, 1.0]], index, output_sizes=(1, 1, 1, 2))
    [array([[[[4., 4.]]]], dtype=float32)]
    """
    if others:
        refuse_unknown(roi_align_grad, "ROI_ALIGN_GRAD", others)
    name = "ROI_ALIGN_GRAD"
    wants_x, wants_roi = as_flag(name, "of_x", of_x), as_flag(name, "of_roi", of_roi)
    side = adapter_for(name, [input_gradient, roi, batch_indices, x], None, device)
    seen = side.look("input_gradient", input_gradient)
    kind = data_type_of(name, "input_gradient", seen)
    wanted: dict[str, Any] = {"OutputROIGradientTensor": kind} if wants_roi else {}
    if wants_x:
        wanted["OutputGradientTensor"] = kind
        if x is None:
            if output_sizes is None and out is not None and len(out) > 0:
                output_sizes = side.look("out", out[0]).shape
            if output_sizes is None:
                refuse(name, "(A10)", "output_sizes", "None", "the shape of x, where there is no x", kind="type")
            sizes = per_dimension(name, "output_sizes", output_sizes, 4)
            wanted["OutputGradientTensor"] = DML_BUFFER_TENSOR_DESC(DataType=kind, Sizes=sizes)
    return apply_all(
        name,
        out,
        device,
        InputTensor=x,
        InputGradientTensor=input_gradient,
        ROITensor=roi,
        BatchIndicesTensor=batch_indices,
        **wanted,
        ReductionFunction=reduction_function,
        InterpolationMode=interpolation_mode,
        SpatialScaleX=spatial_scale_x,
        SpatialScaleY=spatial_scale_y,
        InputPixelOffset=input_pixel_offset,
        OutputPixelOffset=output_pixel_offset,
        MinimumSamplesPerOutput=minimum_samples_per_output,
        MaximumSamplesPerOutput=maximum_samples_per_output,
        AlignRegionsToCorners=align_regions_to_corners,
    )
