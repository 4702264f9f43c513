"""DYNAMIC_QUANTIZE_LINEAR on a GPU: two passes, one for the range and one for the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..tiles import folded_loops, index_type, inner_first, steps_of
from . import kernels as quantizing_kernels

BLOCK = 2048
"""Elements that a program has at once."""
PROGRAMS = 1024
"""Parts of which the range is found, at most."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], name: str
) -> Planned | Declined:
    (x,) = [layout for layout in inputs if layout is not None]
    y, device = outputs[0], torch.device(name)
    declined = between_elements((x, y))
    if declined is not None:
        return declined
    n = prod(x.sizes)
    programs = -(-n // BLOCK)
    declined = too_many(programs)
    if declined is not None:
        return declined
    span = -(-programs // PROGRAMS) * BLOCK
    parts = -(-n // span)
    sizes, *steps = inner_first(folded_loops(x.sizes, [steps_of(x), steps_of(y)])[0], 2)
    loops = (sizes, *divisors(sizes))
    constants = {"LOOPS": len(sizes), "BLOCK": BLOCK, "INDEX": index_type((x, y), parts * span)}
    lowest = {"LOWEST": torch.iinfo(TYPES[y.type]).min}
    look = Launch(quantizing_kernels.find_range, parts, (n, span, *loops, steps[0]), constants)
    choose = Launch(quantizing_kernels.choose_scale, 1, (parts,), {**lowest, "PARTS": next_power_of_2(parts)})
    write = Launch(quantizing_kernels.quantize, programs, (n, *loops, *steps), {**lowest, **constants})

    def run(inputs: Tensors, outputs: Tensors) -> None:
        y, scale, zero = outputs
        lows, highs = torch.empty((2, parts), dtype=torch.float32, device=device).unbind()
        look(inputs[0], lows, highs)
        choose(lows, highs, scale, zero)
        write(inputs[0], scale, zero, y)

    given, taken, single = TYPES[x.type], TYPES[y.type], torch.float32
    launches = (
        (look, [given, single, single]),
        (choose, [single, single, single, taken]),
        (write, [given, single, taken, taken]),
    )
    return Planned(f"quantize {n} elements, after their range in {parts} parts", run, launches)
