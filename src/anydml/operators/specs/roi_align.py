"""ROI_ALIGN, ROI_ALIGN1 and ROI_ALIGN_GRAD: crops of images, resampled to one size, and their gradients.

Decisions, where the pages are silent or contradict themselves:

1. A region is begin = x1 * SpatialScaleX long to end = x2 * SpatialScaleX, likewise in y. In each dimension an output
   element has n samples, |end - begin| / output size rounded up, and brought into the limits; and at least one. So a
   region that is turned round, end < begin, has what it has otherwise, mirrored.
2. Sample s of the N = n * output size of a region is at (s - OutputPixelOffset) * (end - begin) / N + begin -
   InputPixelOffset, in elements of the input, each of which is at its index. The page takes the factor of y from x in one
   line, and counts one sample too many; neither is meant. ROI_ALIGN has the offsets 1/2 and -1/2.
3. AlignRegionsToCorners puts the first sample on begin and the last one on end, s * (end - begin) / (N - 1) + begin -
   InputPixelOffset, whatever OutputPixelOffset is. A single one is in the middle.
4. A sample is outside the input where it is below -1 or above the size in a dimension, or no number; it is then
   OutOfBoundsInputValue. All others are brought into 0 to the last element first. ONNX and PyTorch have the same limits.
5. Of two elements as near the first is the nearest, as in the page's example of a gradient. A neighbour at a distance of
   1 counts for nothing in LINEAR, be it infinite or NaN.
6. Where a coordinate of a region is infinite or NaN, all its samples are outside.
7. The behaviour of batch indices that are not less than BatchCount is undefined on the pages. They are an error, and
   nothing is written; where nobody looks, as on a GPU, all samples of such a region are outside.
8. Places and sums are in double precision, and results are rounded once. An average is the sum over columns, in
   ascending order, of their weights times the sums over rows of theirs times the elements; then OutOfBoundsInputValue as
   often as it was read; divided by the number of samples. Weights are those of all samples of an output element.
9. Of NaNs and numbers the maximum is a number, as in MAX_POOLING; of those that are equal the first one, row-major in the
   samples, what is outside the last.
10. A gradient is divided among what an average was made of, and goes to what the maximum was. ROI_ALIGN_GRAD is not told
   OutOfBoundsInputValue: samples that are outside get nothing, and are no maximum.
11. The gradients of regions are the derivatives of 2 and 3; the page's code is a sketch of them without their factors.
   Those of NEAREST_NEIGHBOR are 0, as are those of a sample on a whole element in that dimension, where the page's floor
   and ceil are one, and of one that is brought into the input.
12. InputTensor and OutputGradientTensor have the same sizes. No operator is in-place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ...core import enums
from ...core.enums import OperatorType, ReduceFunction
from ...core.strided_layout import Array
from ..constraints import not_indices, same
from ..roi_sampling import align, align_grad
from ..schema import (
    BOOL,
    FLOAT,
    UINT,
    Choices,
    ConstraintFailure,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ROI_ALIGN_OPERATOR_DESC(OperatorDesc):
    """Resamples regions of images to one size, by their pixels' centres.

    Args:
        InputTensor: {BatchCount, ChannelCount, InputHeight, InputWidth}.
        ROITensor: the corners x1, y1, x2, y2 of each region, {NumROIs, 4}, with any leading sizes of 1.
        BatchIndicesTensor: which image each region is of, {NumROIs}, likewise.
        OutputTensor: {NumROIs, ChannelCount, OutputHeight, OutputWidth}.
        ReductionFunction: AVERAGE or MAX of an output element's samples.
        InterpolationMode: what a sample is: the nearest element, or LINEAR between four.
        SpatialScaleX: the factor of x1 and x2, which makes them places in the input.
        SpatialScaleY: the factor of y1 and y2.
        OutOfBoundsInputValue: what a sample is that is outside the input.
        MinimumSamplesPerOutput: the least number of an output element's samples in each dimension.
        MaximumSamplesPerOutput: the largest number.

    Constraints:
        (C1) InputTensor, ROITensor and OutputTensor have the same DataType.
        (C2) The last size of ROITensor is 4; all before its last two are 1.
        (C3) The last size of BatchIndicesTensor is NumROIs; all before it are 1.
        (C4) ReductionFunction is AVERAGE or MAX.
        (C5) SpatialScaleX and SpatialScaleY are finite.
        (C6) MaximumSamplesPerOutput is at least 1, and MinimumSamplesPerOutput at most that.
        (C7) OutputTensor has the sizes NumROIs and ChannelCount, and any height and width.
        (V1) A batch index is less than BatchCount.

    Source: the page of DML_ROI_ALIGN_OPERATOR_DESC; since feature level 3.0.
    """

    InputTensor: Tensor
    ROITensor: Tensor
    BatchIndicesTensor: Tensor
    OutputTensor: Tensor
    ReductionFunction: enums.ReduceFunction
    InterpolationMode: enums.InterpolationMode
    SpatialScaleX: FLOAT
    SpatialScaleY: FLOAT
    OutOfBoundsInputValue: FLOAT
    MinimumSamplesPerOutput: UINT
    MaximumSamplesPerOutput: UINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ROI_ALIGN1_OPERATOR_DESC(OperatorDesc):
    """Resamples regions of images to one size, with offsets of its own.

    Args:
        InputTensor: {BatchCount, ChannelCount, InputHeight, InputWidth}.
        ROITensor: the corners x1, y1, x2, y2 of each region, {NumROIs, 4}, with any leading sizes of 1.
        BatchIndicesTensor: which image each region is of, {NumROIs}, likewise.
        OutputTensor: {NumROIs, ChannelCount, OutputHeight, OutputWidth}.
        ReductionFunction: AVERAGE or MAX of an output element's samples.
        InterpolationMode: what a sample is: the nearest element, or LINEAR between four.
        SpatialScaleX: the factor of x1 and x2, which makes them places in the input.
        SpatialScaleY: the factor of y1 and y2.
        InputPixelOffset: subtracted from places in the input; 0.5 for the centres of pixels.
        OutputPixelOffset: subtracted from those of samples; -0.5 for the centres of pixels.
        OutOfBoundsInputValue: what a sample is that is outside the input.
        MinimumSamplesPerOutput: the least number of an output element's samples in each dimension.
        MaximumSamplesPerOutput: the largest number.
        AlignRegionsToCorners: whether the first and the last sample are on the corners of a region.

    Constraints:
        (C1) InputTensor, ROITensor and OutputTensor have the same DataType.
        (C2) The last size of ROITensor is 4; all before its last two are 1.
        (C3) The last size of BatchIndicesTensor is NumROIs; all before it are 1.
        (C4) ReductionFunction is AVERAGE or MAX.
        (C5) SpatialScaleX, SpatialScaleY, InputPixelOffset and OutputPixelOffset are finite.
        (C6) MaximumSamplesPerOutput is at least 1, and MinimumSamplesPerOutput at most that.
        (C7) OutputTensor has the sizes NumROIs and ChannelCount, and any height and width.
        (V1) A batch index is less than BatchCount.

    Source: the page of DML_ROI_ALIGN1_OPERATOR_DESC; since feature level 4.0.
    """

    InputTensor: Tensor
    ROITensor: Tensor
    BatchIndicesTensor: Tensor
    OutputTensor: Tensor
    ReductionFunction: enums.ReduceFunction
    InterpolationMode: enums.InterpolationMode
    SpatialScaleX: FLOAT
    SpatialScaleY: FLOAT
    InputPixelOffset: FLOAT
    OutputPixelOffset: FLOAT
    OutOfBoundsInputValue: FLOAT
    MinimumSamplesPerOutput: UINT
    MaximumSamplesPerOutput: UINT
    AlignRegionsToCorners: BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ROI_ALIGN_GRAD_OPERATOR_DESC(OperatorDesc):
    """The gradients of ROI_ALIGN and ROI_ALIGN1.

    Args:
        InputTensor: what they had as theirs; needed for the gradients of regions, and for MAX.
        InputGradientTensor: the gradients of their outputs, {NumROIs, ChannelCount, OutputHeight, OutputWidth}.
        ROITensor: their regions, {NumROIs, 4}, with any leading sizes of 1.
        BatchIndicesTensor: which image each region is of, {NumROIs}, likewise.
        OutputGradientTensor: the gradients of InputTensor; one output at least is there.
        OutputROIGradientTensor: those of ROITensor.
        ReductionFunction: AVERAGE or MAX of an output element's samples.
        InterpolationMode: what a sample is: the nearest element, or LINEAR between four.
        SpatialScaleX: the factor of x1 and x2, which makes them places in the input.
        SpatialScaleY: the factor of y1 and y2.
        InputPixelOffset: subtracted from places in the input; 0.5 for the centres of pixels.
        OutputPixelOffset: subtracted from those of samples; -0.5 for the centres of pixels.
        MinimumSamplesPerOutput: the least number of an output element's samples in each dimension.
        MaximumSamplesPerOutput: the largest number.
        AlignRegionsToCorners: whether the first and the last sample are on the corners of a region.

    Constraints:
        (C1) All tensors but BatchIndicesTensor have the same DataType.
        (C2) The last size of ROITensor is 4; all before its last two are 1.
        (C3) The last size of BatchIndicesTensor is NumROIs; all before it are 1.
        (C4) ReductionFunction is AVERAGE or MAX.
        (C5) SpatialScaleX, SpatialScaleY, InputPixelOffset and OutputPixelOffset are finite.
        (C6) MaximumSamplesPerOutput is at least 1, and MinimumSamplesPerOutput at most that.
        (C7) InputGradientTensor has the sizes NumROIs and ChannelCount, and any height and width.
        (C8) OutputGradientTensor or OutputROIGradientTensor is there.
        (C9) InputTensor is there where OutputROIGradientTensor is, and where ReductionFunction is MAX.
        (C10) OutputGradientTensor has the sizes of InputTensor, or where that is absent ChannelCount and any others;
            OutputROIGradientTensor has those of ROITensor.
        (V1) A batch index is less than BatchCount.

    Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC; since feature level 4.1.
    """

    InputTensor: OptionalTensor = None
    InputGradientTensor: Tensor
    ROITensor: Tensor
    BatchIndicesTensor: Tensor
    OutputGradientTensor: OptionalTensor = None
    OutputROIGradientTensor: OptionalTensor = None
    ReductionFunction: enums.ReduceFunction
    InterpolationMode: enums.InterpolationMode
    SpatialScaleX: FLOAT
    SpatialScaleY: FLOAT
    InputPixelOffset: FLOAT
    OutputPixelOffset: FLOAT
    MinimumSamplesPerOutput: UINT
    MaximumSamplesPerOutput: UINT
    AlignRegionsToCorners: BOOL


_ANY = range(1, 2**32)


def _constraints(desc: Any) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "ROITensor", "OutputTensor")
    yield from _of_regions(desc, "(C2)", "(C3)")
    yield from _of_samples(desc, "(C4)", "(C5)", "(C6)")


def _of_regions(desc: Any, of_corners: str, of_indices: str) -> Iterator[ConstraintFailure]:
    *leading, last = desc.ROITensor.Sizes or (4,)
    count = leading[-1] if leading else None
    if last != 4:
        yield ConstraintFailure(of_corners, f"ROITensor.Sizes[{len(leading)}]", str(last), "4, the corners of a region")
    for i, size in enumerate(leading[:-1]):
        if size != 1:
            yield ConstraintFailure(of_corners, f"ROITensor.Sizes[{i}]", str(size), "1, before the last two")
    *leading, last = desc.BatchIndicesTensor.Sizes or (count,)
    if count is not None and last != count:
        expected = f"{count}, the regions of ROITensor"
        yield ConstraintFailure(of_indices, f"BatchIndicesTensor.Sizes[{len(leading)}]", str(last), expected)
    for i, size in enumerate(leading):
        if size != 1:
            yield ConstraintFailure(of_indices, f"BatchIndicesTensor.Sizes[{i}]", str(size), "1, before the last")


def _of_samples(desc: Any, of_function: str, of_numbers: str, of_limits: str) -> Iterator[ConstraintFailure]:
    if desc.ReductionFunction not in (ReduceFunction.AVERAGE, ReduceFunction.MAX):
        yield ConstraintFailure(of_function, "ReductionFunction", desc.ReductionFunction.name, "AVERAGE or MAX")
    for name in ("SpatialScaleX", "SpatialScaleY", "InputPixelOffset", "OutputPixelOffset"):
        if not isfinite(getattr(desc, name, 0.0)):
            yield ConstraintFailure(of_numbers, name, str(getattr(desc, name)), "a finite number")
    least, most = desc.MinimumSamplesPerOutput, desc.MaximumSamplesPerOutput
    if most < 1:
        yield ConstraintFailure(of_limits, "MaximumSamplesPerOutput", str(most), "at least 1")
    elif least > most:
        expected = f"at most {most}, MaximumSamplesPerOutput"
        yield ConstraintFailure(of_limits, "MinimumSamplesPerOutput", str(least), expected)


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    if len(desc.ROITensor.Sizes) < 2 or len(desc.InputTensor.Sizes) != 4:
        return {}
    return {"OutputTensor": ((desc.ROITensor.Sizes[-2],), (desc.InputTensor.Sizes[1],), _ANY, _ANY)}


def _constraints_of_grad(desc: DML_ROI_ALIGN_GRAD_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    optional = ("InputTensor", "OutputGradientTensor", "OutputROIGradientTensor")
    there = [name for name in optional if getattr(desc, name) is not None]
    yield from same(desc, "(C1)", "DataType", "InputGradientTensor", "ROITensor", *there)
    yield from _of_regions(desc, "(C2)", "(C3)")
    yield from _of_samples(desc, "(C4)", "(C5)", "(C6)")
    sizes = desc.InputGradientTensor.Sizes
    if len(sizes) == 4 and len(desc.ROITensor.Sizes) > 1 and sizes[0] != desc.ROITensor.Sizes[-2]:
        expected = f"{desc.ROITensor.Sizes[-2]}, the regions of ROITensor"
        yield ConstraintFailure("(C7)", "InputGradientTensor.Sizes[0]", str(sizes[0]), expected)
    if desc.InputTensor is not None and len(sizes) == len(desc.InputTensor.Sizes) == 4:
        channels = desc.InputTensor.Sizes[1]
        if sizes[1] != channels:
            expected = f"{channels}, the channels of InputTensor"
            yield ConstraintFailure("(C7)", "InputGradientTensor.Sizes[1]", str(sizes[1]), expected)
    if desc.OutputGradientTensor is None and desc.OutputROIGradientTensor is None:
        expected = "it, or OutputROIGradientTensor"
        yield ConstraintFailure("(C8)", "OutputGradientTensor", "None", expected)
    if desc.InputTensor is None:
        if desc.OutputROIGradientTensor is not None:
            yield ConstraintFailure("(C9)", "InputTensor", "None", "a tensor, as OutputROIGradientTensor is wanted")
        elif desc.ReductionFunction == ReduceFunction.MAX:
            yield ConstraintFailure("(C9)", "InputTensor", "None", "a tensor, as ReductionFunction is MAX")


def _infer_sizes_of_grad(desc: DML_ROI_ALIGN_GRAD_OPERATOR_DESC) -> dict[str, Choices]:
    sizes: dict[str, Choices] = {}
    if desc.OutputGradientTensor is not None:
        if desc.InputTensor is not None:
            sizes["OutputGradientTensor"] = tuple((size,) for size in desc.InputTensor.Sizes)
        elif len(desc.InputGradientTensor.Sizes) == 4:
            sizes["OutputGradientTensor"] = (_ANY, (desc.InputGradientTensor.Sizes[1],), _ANY, _ANY)
    if desc.OutputROIGradientTensor is not None:
        sizes["OutputROIGradientTensor"] = tuple((size,) for size in desc.ROITensor.Sizes)
    return sizes


def image_of(desc: Any) -> Tensor:
    """The tensor that has the sizes of the images."""
    image: Tensor = desc.OutputGradientTensor if desc.InputTensor is None else desc.InputTensor
    return image


def _value_limits(desc: Any) -> dict[str, tuple[int, int]]:
    return {"BatchIndicesTensor": (0, image_of(desc).Sizes[0] - 1)}


def _check_values(desc: Any, inputs: Sequence[Array | None]) -> Iterator[ConstraintFailure]:
    limits = _value_limits(desc)["BatchIndicesTensor"]
    for failure in not_indices("(V1)", inputs[-1], limits, "the images of the batch"):
        yield ConstraintFailure(failure.rule, "BatchIndicesTensor", failure.found, failure.expected)


def _independent(desc: Any) -> Independence:
    """Regions and channels."""
    regions, indices = (len(each.Sizes) for each in (desc.ROITensor, desc.BatchIndicesTensor))
    return {
        "InputTensor": (None, 1, None, None),
        "ROITensor": (*(None,) * (regions - 2), 0, None),
        "BatchIndicesTensor": (*(None,) * (indices - 1), 0),
        "OutputTensor": (0, 1, None, None),
    }


def _independent_of_grad(desc: DML_ROI_ALIGN_GRAD_OPERATOR_DESC) -> Independence:
    """Channels, of which regions add up the gradients; regions, of which images do."""
    regions, indices = len(desc.ROITensor.Sizes), len(desc.BatchIndicesTensor.Sizes)
    channel = 1 if desc.OutputROIGradientTensor is None else None
    region = regions - 2 if desc.OutputGradientTensor is None else None
    found = {
        "InputTensor": (None, channel, None, None),
        "InputGradientTensor": (region, channel, None, None),
        "ROITensor": (*(None,) * (regions - 2), region, None),
        "BatchIndicesTensor": (*(None,) * (indices - 1), region),
        "OutputGradientTensor": (None, channel, None, None),
        "OutputROIGradientTensor": (*(None,) * (regions - 2), region, None),
    }
    return {name: lines for name, lines in found.items() if getattr(desc, name) is not None}


_TABLE = """
        InputTensor        | Input  | 4      | FLOAT32, FLOAT16
        ROITensor          | Input  | 2 to 4 | FLOAT32, FLOAT16
        BatchIndicesTensor | Input  | 1 to 4 | UINT32
        OutputTensor       | Output | 4      | FLOAT32, FLOAT16
"""


def _specification(operator_type: OperatorType, desc: type[OperatorDesc], level: str) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=_constraints,
        infer_sizes=_infer_sizes,
        sizes_rule="(C7)",
        reference=align,
        independent=_independent,
        check_values=_check_values,
        value_limits=_value_limits,
        support=support_table(f"\n        DML_FEATURE_LEVEL_{level} and above{_TABLE}"),
    )


ROI_ALIGN = _specification(OperatorType.ROI_ALIGN, DML_ROI_ALIGN_OPERATOR_DESC, "3_0")
ROI_ALIGN1 = _specification(OperatorType.ROI_ALIGN1, DML_ROI_ALIGN1_OPERATOR_DESC, "4_0")

ROI_ALIGN_GRAD = OperatorSpec(
    operator_type=OperatorType.ROI_ALIGN_GRAD,
    desc=DML_ROI_ALIGN_GRAD_OPERATOR_DESC,
    constraints=_constraints_of_grad,
    infer_sizes=_infer_sizes_of_grad,
    sizes_rule="(C10)",
    reference=align_grad,
    independent=_independent_of_grad,
    check_values=_check_values,
    value_limits=_value_limits,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor             | Optional input  | 4      | FLOAT32, FLOAT16
        InputGradientTensor     | Input           | 4      | FLOAT32, FLOAT16
        ROITensor               | Input           | 2 to 4 | FLOAT32, FLOAT16
        BatchIndicesTensor      | Input           | 1 to 4 | UINT32
        OutputGradientTensor    | Optional output | 4      | FLOAT32, FLOAT16
        OutputROIGradientTensor | Optional output | 2 to 4 | FLOAT32, FLOAT16
    """),
)
