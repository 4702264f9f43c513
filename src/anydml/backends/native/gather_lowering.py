"""Operators that copy elements by their indices, for the CPU's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.strided_layout import Layout
from ...operators.specs.gather import result_dimensions
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
