"""Operators that copy elements by their indices, for the CPU's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.strided_layout import Layout
from ...operators.schema import AttributeValues
from ...operators.specs.gather import result_dimensions
from ...operators.specs.gather_nd import dimensions_of
from .movement_lowering import copied
from .request import Lowered


def gather(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered:
    """Loops over the dimensions before those of the indices, over those, and over those behind: of each its size and
    its steps in bytes, in the input or in the indices, and in the output."""
    x, indices = inputs
    (output,) = outputs
    assert x is not None and indices is not None and output is not None
    loops: dict[str, list[int]] = {"Before": [], "Indices": [], "After": []}
    dimensions = result_dimensions(desc)
    for (name, i), out_stride in zip(dimensions[::-1], output.strides[::-1], strict=False):
        of_input = name == "InputTensor"
        layout = x if of_input else indices
        part = "Indices" if not of_input else "Before" if i < desc.Axis else "After"
        loops[part][:0] = (layout.sizes[i], layout.strides[i], out_stride)
    axis = x.sizes[desc.Axis], x.strides[desc.Axis]
    return "GATHER", {"Axis": axis, **{name: tuple(numbers) for name, numbers in loops.items()}}


def by_points(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    """Points, which are tuples of indices. They point into the input, and are listed in the output; or, of a scatter,
    into the output, and are listed in the updates. What is not pointed to is then copied before."""
    (output,) = outputs
    x, indices, *updates = inputs
    assert x is not None and indices is not None and output is not None
    if not updates:
        return "GATHER_ND", _points(desc, x, indices, output, (x, output))
    (listed,) = updates
    copy = copied(x, output)
    if listed is None or copy is None:
        return None
    return "SCATTER_ND", {**copy[1], **_points(desc, output, indices, listed, (listed, output))}


def _points(
    desc: Any, pointed: Layout, indices: Layout, listed: Layout, copied: tuple[Layout, Layout]
) -> dict[str, AttributeValues]:
    """Loops over points: of each its size and its steps in bytes, in the indices, in the tensor that is pointed into
    and in the other; whether its points never meet; size and step of what each coordinate is of; and loops over a
    slice, with the steps of what is read and of what is written."""
    if hasattr(desc, "Axis"):
        rank = len(indices.sizes)
        steps = [0 if i == desc.Axis else pointed.strides[i] for i in range(rank)]
        tuples, free = range(rank), [int(i != desc.Axis) for i in range(rank)]
        indexed, slices = range(desc.Axis, desc.Axis + 1), range(0)
    else:
        batch, indexed, slices, tuples = dimensions_of(desc)
        steps = [pointed.strides[i] for i in batch] + [0] * (len(tuples) - len(batch))
        free = [0] * len(tuples)
    first = len(listed.sizes) - len(tuples) - len(slices)
    points = [
        (indices.sizes[i], indices.strides[i], step, listed.strides[first + number])
        for number, (i, step) in enumerate(zip(tuples, steps, strict=True))
    ]
    read, written = copied
    return {
        "Points": tuple([number for point in points for number in point]),
        "Free": tuple(free),
        "Axes": tuple([number for i in indexed for number in (pointed.sizes[i], pointed.strides[i])]),
        "CoordinateStep": (indices.strides[-1],),
        "Slice": tuple([number for i in slices for number in (read.sizes[i], read.strides[i], written.strides[i])]),
    }
