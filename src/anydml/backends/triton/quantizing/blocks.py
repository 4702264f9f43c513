"""QUANTIZE and DEQUANTIZE on a GPU: each element with the scale and zero point of its block, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....core.tensor_desc import packed_strides
from ....operators.schema import OperatorDesc, OperatorSpec, Tensor
from ....operators.specs.quantize import limits_of, quantised_tensor
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import Launch, Planned, Tensors, between_elements, too_many
from ..tiles import folded_loops, index_type, inner_first, steps_of, tiles_of
from . import kernels

BLOCK = 2048
"""Elements of a program; of 4 bits twice as many are written."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    layouts = [layout for layout in (*inputs, *outputs) if layout is not None]
    declined = between_elements(layouts)
    if declined is not None:
        return declined
    is_quantize = spec.name == "QUANTIZE"
    scale, *zeros = d.QuantizationTensors
    tensors = (d.InputTensor, scale, zeros[0] if zeros else scale, d.OutputTensor)
    blocks = [scale.Sizes, tensors[2].Sizes]
    n, bits = prod(d.InputTensor.Sizes), _BITS.get(quantised_tensor(d).DataType, 8)
    programs = -(-n // (BLOCK if bits == 8 or not is_quantize else 2 * BLOCK))
    declined = too_many(programs)
    if declined is not None:
        return declined
    given = (layouts[0], layouts[1], layouts[2] if zeros else layouts[1], layouts[-1])
    steps = [_steps(tensor, layout) for tensor, layout in zip(tensors, given, strict=True)]
    pieces: list[int] = []
    of_pieces: list[list[int]] = [[], [], [], []]
    for i, size in enumerate(d.InputTensor.Sizes):
        counts = sorted({1, size, *[each[i] for each in blocks]})
        for count, more in zip(counts, [*counts[1:], size], strict=True):
            if more % count:
                return Declined("blocks of scales and of zero points are not within each other")
            if more == count:
                continue
            pieces.append(more // count)
            for each, tensor, step in zip(of_pieces, tensors, steps, strict=True):
                each.append(tensor.Sizes[i] // more * step[i])
    # Elements are numbered in row-major order, in which those of 4 bits lie.
    sizes, *inner = inner_first(folded_loops(pieces, of_pieces)[0], 4)
    packed = tuple([prod(sizes[:i]) for i in range(len(sizes))])
    constants: dict[str, Any] = {"HAS_ZERO": bool(zeros), "BITS": bits}
    if is_quantize:
        low, high = limits_of(d.OutputTensor.DataType)
        is_flat = inner[0] == inner[3] == packed
        constants.update(LOW=float(low), HIGH=float(high), LOOPS=len(sizes), IS_FLAT=is_flat, BLOCK=BLOCK)
        constants.update(INDEX=index_type(layouts, 2 * programs * BLOCK))
        launch = Launch(kernels.quantize_blocks, programs, (n, sizes, *divisors(sizes), *inner), constants)
    else:
        found = _by_tiles(n, sizes, inner, constants, index_type(layouts, n))
        if isinstance(found, Declined):
            return found
        launch = found

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], inputs[1], inputs[2] if zeros else None, outputs[0])

    x, of_scale, *of_zero, y = [TYPES[layout.type] for layout in layouts]
    types: list[torch.dtype | None] = [x, of_scale, of_zero[0] if zeros else None, y]
    what = "quantise" if is_quantize else "dequantise"
    return Planned(f"{what} {n} elements, each by its block's scale", run, ((launch, types),))


def _by_tiles(
    n: int, sizes: Sequence[int], steps: Sequence[Sequence[int]], constants: dict[str, Any], index: Any
) -> Launch | Declined:
    """Of the input, scale, zero point and output: the innermost loop has the columns of a tile."""
    columns = sizes[0]
    tiles = tiles_of(n // columns, columns, BLOCK)
    if isinstance(tiles, Declined):
        return tiles
    outer = tuple(sizes[1:]) or (1,)
    of_rows = [tuple(each[1:]) or (0,) for each in steps]
    along = tuple([each[0] != 0 for each in steps[1:3]])
    return Launch(
        kernels.dequantize_blocks,
        tiles.programs,
        (n // columns, columns, tiles.blocks, outer, *divisors(outer), *of_rows, *[each[0] for each in steps]),
        {**constants, "LOOPS": len(outer), "ALONG": along, **tiles.shape, "INDEX": index},
    )


_BITS = {TensorDataType.UINT4: 4, TensorDataType.INT4: -4}


def _steps(tensor: Tensor, layout: Layout) -> Sequence[int]:
    """In elements; those of 4 bits are packed."""
    return packed_strides(tensor.Sizes) if tensor.DataType in _BITS else steps_of(layout)
