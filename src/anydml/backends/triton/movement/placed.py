"""ONE_HOT, DIAGONAL_MATRIX and REVERSE_SUBSEQUENCES on a GPU, each in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import triton.language as tl

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.diagonal import band_of, value_of
from ...base import Declined
from ...torch.tensors import TYPES
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements, too_many
from . import kernels as placed_kernels
from .plan import POINTED

BLOCK = 1024
"""Elements of a program."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    (y,), given = outputs, [layout for layout in inputs if layout is not None]
    count, rank, item = prod(y.sizes), len(y.sizes), y.dtype.itemsize
    programs = -(-count // BLOCK)
    declined = between_elements((*given, y)) or too_many(programs)
    if declined is not None:
        return declined
    sizes, steps = y.sizes[::-1], _steps(y)
    bits, moved = POINTED[BITS[item]], BITS[item]
    common = {"RANK": rank, "BLOCK": BLOCK, "INDEX": _index_type([*given, y], programs * BLOCK)}
    if spec.name == "ONE_HOT":
        indices, values = given
        dimension = rank - 1 - d.Axis
        constants = {"DIMENSION": dimension, "SIGNED": indices.dtype.kind == "i", **common}
        step = next((step for step, size in zip(_steps(values), values.sizes[::-1], strict=True) if size > 1), 0)
        arguments: tuple[Any, ...] = (count, step, sizes, _steps(indices, dimension), steps)
        types: list[Any] = [TYPES[indices.type], moved, moved]
        launch = Launch(placed_kernels.one_hot, programs, arguments, constants, (None, bits, bits))
    elif spec.name == "REVERSE_SUBSEQUENCES":
        x, lengths = given
        dimension = rank - 1 - d.Axis
        of_x = _steps(x)
        strides = _steps(x, dimension), _steps(lengths, dimension), steps
        arguments = (count, of_x[dimension], sizes, *strides)
        types = [moved, TYPES[lengths.type], moved]
        constants = {"DIMENSION": dimension, **common}
        launch = Launch(placed_kernels.reverse_subsequences, programs, arguments, constants, (bits, None, bits))
    else:
        value = value_of(d)
        filled = int(value.view(np.dtype(f"i{item}")))
        x_steps = _steps(given[0]) if given else (0,) * rank
        arguments = (count, *band_of(d), sizes, x_steps, steps)
        constants = {"VALUE": filled, "HAS_INPUT": bool(given), **common}
        types = [moved, moved]
        launch = Launch(placed_kernels.fill_diagonals, programs, arguments, constants, (bits, bits))

    def run(inputs: Tensors, outputs: Tensors) -> None:
        read = [each for each in inputs if each is not None]
        launch(*(read or outputs), *outputs)

    return Planned(f"a thread for each of {count} elements", run, ((launch, types),))


def _steps(layout: Layout, without: int | None = None) -> tuple[int, ...]:
    """Strides in elements, the innermost dimension's first; 0 of a dimension that is counted apart."""
    item = layout.dtype.itemsize
    strides = [0 if size == 1 else step // item for size, step in zip(layout.sizes, layout.strides, strict=True)]
    return tuple([0 if i == without else step for i, step in enumerate(reversed(strides))])


def _index_type(layouts: Sequence[Layout], most: int) -> Any:
    reach = max((high - low) // layout.dtype.itemsize for layout in layouts for low, high in [layout.bounds()])
    return tl.int64 if max(reach, most) + BLOCK >= WIDE else tl.int32
