"""ROI_ALIGN_GRAD on a GPU: the gradients of images, of averages, in three kernels; all else is calls of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.enums import InterpolationMode, ReduceFunction
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..launch import MOST, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..tiles import index_type, steps_of
from . import gradient_kernels

BLOCK, LINES = 256, 1024
"""Elements of a dimension that a program weighs, and rows of regions that a program looks at at once."""
WIDEST, ELEMENTS = 32, 512
"""Columns of a program at most, and its elements."""
MOST_WEIGHTS = 1 << 27
"""Those that are kept at most."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    if d.ReductionFunction == ReduceFunction.MAX:
        return Declined("gradients of a maximum are calls of PyTorch")
    if d.OutputROIGradientTensor is not None:
        return Declined("gradients of regions are calls of PyTorch")
    _, dy, rois, indices = inputs
    (y,) = outputs
    assert dy is not None and rois is not None and indices is not None
    declined = between_elements((dy, rois, indices, y))
    if declined is not None:
        return declined
    (images, channels, height, width), (regions, _, out_height, out_width) = y.sizes, dy.sizes
    lines = regions * out_height
    if max(images, lines, out_width) >= MOST // 2 or max(height, width) >= MOST // 4:
        return Declined("more regions, or elements of images, than 32 bits count")
    if regions * (out_height * height + out_width * width) > MOST_WEIGHTS:
        return Declined(f"more than {MOST_WEIGHTS} weights of rows and columns")
    wide = min(WIDEST, next_power_of_2(width))
    deep = min(next_power_of_2(channels), ELEMENTS // wide)
    blocks = -(-channels // deep), -(-width // wide)
    programs = images * height * blocks[0] * blocks[1]
    declined = too_many(programs)
    if declined is not None:
        return declined
    most = d.MaximumSamplesPerOutput
    # Samples are half an element apart or more, but for the least number of them.
    inside = [min(most, max(d.MinimumSamplesPerOutput, 2 * size + 5)) for size in (height, width)]
    if max(inside) >= MOST:
        return Declined("more samples of an element than 32 bits count")
    of_rois, of_index = steps_of(rois)[-2:], steps_of(indices)[-1]

    def weigh(first: int, size: int, outputs: int, scale: float, steps: tuple[int, int, int]) -> Launch:
        block = min(BLOCK, next_power_of_2(size))
        parts = -(-size // block)
        samples = inside[1 - first]
        return Launch(
            gradient_kernels.weigh_samples,
            regions * outputs * parts,
            (images, size, outputs, parts, *of_rois, of_index, *steps),
            {
                "FIRST": first,
                "SCALE": float(scale),
                "IN_OFFSET": float(d.InputPixelOffset),
                "OUT_OFFSET": float(d.OutputPixelOffset),
                "IS_LINEAR": d.InterpolationMode == InterpolationMode.LINEAR,
                "IS_CORNER": bool(d.AlignRegionsToCorners),
                "LEAST": float(max(d.MinimumSamplesPerOutput, 1)),
                "MOST": float(most),
                "INSIDE": float(samples),
                "STEPS": most.bit_length() + 1 if most > samples else 0,
                "BLOCK": block,
            },
        )

    by_rows = weigh(1, height, out_height, d.SpatialScaleY, (out_height, 1, lines))
    by_columns = weigh(0, width, out_width, d.SpatialScaleX, (out_width * width, width, 1))
    gather = Launch(
        gradient_kernels.gather_gradients,
        programs,
        (
            *(lines, channels, height, width, out_height, out_width, *blocks, of_index),
            *(*steps_of(dy), *steps_of(y)),
        ),
        {
            "CHANNELS": deep,
            "COLUMNS": wide,
            "BLOCK": min(LINES, next_power_of_2(lines)),
            "INDEX": index_type((dy, indices, y)),
        },
    )
    place = torch.device(device)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        _, dy, rois, indices = inputs
        row_weights, column_weights, rows, columns = (
            torch.empty(count, dtype=torch.float64, device=place)
            for count in (lines * height, regions * out_width * width, regions, regions)
        )
        by_rows(rois, indices, row_weights, rows)
        by_columns(rois, indices, column_weights, columns)
        gather(dy, indices, row_weights, column_weights, rows, columns, outputs[0])

    kinds = [TYPES[layout.type] for layout in (rois, indices)] + [torch.float64] * 2
    launches = (
        (by_rows, kinds),
        (by_columns, kinds),
        (gather, [TYPES[dy.type], TYPES[indices.type], *[torch.float64] * 4, TYPES[y.type]]),
    )
    return Planned(f"{regions} regions gathered by rows of images, {deep} x {wide} elements at once", run, launches)
