"""ROI_ALIGN, ROI_ALIGN1 and ROI_POOLING on a GPU, each in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.enums import InterpolationMode, ReduceFunction
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.roi_pooling import FARTHEST
from ...base import Declined
from ...torch.tensors import TYPES
from ..launch import MOST, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..tiles import index_type, steps_of
from . import kernels as region_kernels

WIDEST, ELEMENTS, ELEMENTS_OF_BINS = 32, 128, 1024
"""Columns of a program at most, and its elements; of ROI_POOLING."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    read = [layout for layout in inputs if layout is not None]
    (x, rois, *indices), (y,) = read, outputs
    declined = between_elements((*read, y))
    if declined is not None:
        return declined
    (images, channels, height, width), (regions, _, out_height, out_width) = x.sizes, y.sizes
    columns = min(WIDEST, next_power_of_2(out_width))
    elements = ELEMENTS_OF_BINS if spec.name == "ROI_POOLING" else ELEMENTS
    deep = min(next_power_of_2(channels), max(1, elements // columns))
    blocks = -(-channels // deep), -(-out_width // columns)
    programs = regions * out_height * blocks[0] * blocks[1]
    declined = too_many(programs)
    if declined is not None:
        return declined
    if max(height, width) >= MOST // 4:
        return Declined("images that are so large have numbers of samples that 32 bits do not hold")
    steps = [step for layout in (x,) for step in steps_of(layout)]
    of_rois, of_y = steps_of(rois), steps_of(y)
    shape = {"CHANNELS": deep, "COLUMNS": columns, "INDEX": index_type((*read, y))}
    sizes = (images, channels, height, width, out_height, out_width, *blocks)
    types = [TYPES[layout.type] for layout in (*read, y)]
    if spec.name == "ROI_POOLING":
        launch = Launch(
            region_kernels.roi_pooling,
            programs,
            (*sizes, *steps, of_rois[-2], of_rois[-1], *of_y),
            {"SCALE": float(d.SpatialScale), "FARTHEST": FARTHEST, **shape},
        )
    else:
        most = d.MaximumSamplesPerOutput
        # Samples are half an element apart or more, but for the least number of them.
        inside = [min(most, max(d.MinimumSamplesPerOutput, 2 * size + 5)) for size in (height, width)]
        if max(inside) >= MOST:
            return Declined("more samples of an element than 32 bits count")
        constants = {
            "IS_LARGEST": d.ReductionFunction == ReduceFunction.MAX,
            "IS_LINEAR": d.InterpolationMode == InterpolationMode.LINEAR,
            "IS_CORNER": bool(getattr(d, "AlignRegionsToCorners", False)),
            "SCALE_X": float(d.SpatialScaleX),
            "SCALE_Y": float(d.SpatialScaleY),
            "IN_OFFSET": float(getattr(d, "InputPixelOffset", 0.5)),
            "OUT_OFFSET": float(getattr(d, "OutputPixelOffset", -0.5)),
            "OUTSIDE": float(d.OutOfBoundsInputValue),
            "LEAST": float(max(d.MinimumSamplesPerOutput, 1)),
            "MOST": float(most),
            "INSIDE_Y": float(inside[0]),
            "INSIDE_X": float(inside[1]),
            "STEPS": most.bit_length() + 1 if most > min(inside) else 0,
        }
        launch = Launch(
            region_kernels.roi_align,
            programs,
            (*sizes, *steps, of_rois[-2], of_rois[-1], steps_of(indices[0])[-1], *of_y),
            {**constants, **shape},
        )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(*inputs, outputs[0])

    words = f"{regions} regions of {channels} channels, {deep} x {columns} elements at once"
    return Planned(words, run, ((launch, types),))
