"""Batch normalisation in training and its gradients on a GPU: each tensor is read twice, and nothing else is held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators import spec_of
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.batch_training import summed_axes
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..lines import Lines
from . import kernels as training_kernels

FEW_LINES = 8
"""Adjacent lines, below which threads go along the axis."""
ACROSS = 32
"""Lines of a tile where lines lie side by side."""
TILE, WARPS = {0: 1024, 1: 2048}, {0: 4, 1: 8}
"""Elements of a tile, and the warps that share it: where lines lie side by side, and where they do not."""
PROGRAMS, SPAN = 1024, 8192
"""Programs that sums are cut into at most, and the least elements of one."""
BLOCK, PARTS = 8, 128
"""Lines that one program finishes, and their parts that it takes at once."""
KINDS = {
    "BATCH_NORMALIZATION_TRAINING": "TRAINING",
    "BATCH_NORMALIZATION_TRAINING_GRAD": "TRAINING_GRADIENT",
    "BATCH_NORMALIZATION_GRAD": "GRADIENT",
}


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    declined = between_elements([layout for layout in (*inputs, *outputs) if layout is not None])
    if declined is not None:
        return declined
    kind, x, (y, *results) = KINDS[spec.name], inputs[0], outputs
    assert x is not None
    activation = spec_of(d.FusedActivation) if kind == "TRAINING" else None
    if activation is not None and activation.name != "ACTIVATION_RELU":
        return Declined("this kernel fuses no activation but ACTIVATION_RELU")
    # By what the kernels call them: what is added or given, then the parameters.
    if kind == "TRAINING":
        _, scale, bias, other = inputs
        mean = variance = scale
    else:
        _, other, mean, variance, scale = inputs
        bias = scale
    others = [each or x for each in (other, mean, variance, scale, bias, *results)]
    lines = Lines.of(x, y, summed_axes(d), others)
    names = ("other", "mean", "variance", "scale", "bias", "first", "second")
    every = lines.arguments()
    half = len(every) // 2
    of_lines = dict(zip(("sizes", "x", "y", *names), every[:half], strict=True))
    along = dict(zip(("sizes", "x", "y", *names), every[half:], strict=True))
    divided = divisors(along["sizes"])
    count, n = lines.count, lines.n
    is_across = lines.adjacent >= FEW_LINES
    at_once = min(ACROSS, next_power_of_2(count)) if is_across else 1
    dim = 0 if is_across else 1
    depth = min(TILE[dim] // at_once, next_power_of_2(n))
    if not is_across:
        # Short lines are several of a tile.
        at_once = min(TILE[dim] // depth, next_power_of_2(count))
    blocks = -(-count // at_once)
    parts, span = _cut(blocks, n, depth, at_once * n)
    programs = blocks * -(-n // depth)
    declined = too_many(programs)
    if declined is not None:
        return declined
    common: dict[str, Any] = {"LOOPS": len(lines.loops), "INDEX": lines.index}
    shape = {
        "AXES": len(lines.axis),
        "SIDE_BY_SIDE": lines.is_side_by_side and lines.loops[0].others[0] == 1,
        "DIM": dim,
        "LINES": at_once,
        "DEPTH": depth,
    }
    sums = Launch(
        training_kernels.sum_lines,
        blocks * parts,
        (
            *(n, span, count, blocks, of_lines["sizes"], of_lines["x"], of_lines["other"], of_lines["mean"]),
            *(along["sizes"], *divided, along["x"], along["other"]),
        ),
        {"IS_TRAINING": kind == "TRAINING", **common, **shape},
        num_warps=WARPS[dim],
    )
    finish = Launch(
        training_kernels.finish_lines,
        -(-count // BLOCK),
        (
            *(n, count, parts, of_lines["sizes"], of_lines["x"], of_lines["mean"], of_lines["variance"]),
            *(of_lines["scale"], of_lines["bias"], of_lines["first"], of_lines["second"]),
        ),
        {"KIND": kind, "EPSILON": d.Epsilon, **common, "BLOCK": BLOCK, "PARTS": PARTS},
    )
    compute = Launch(
        training_kernels.compute_lines,
        programs,
        (
            *(n, count, blocks, of_lines["sizes"], of_lines["x"], of_lines["other"], of_lines["y"]),
            *(along["sizes"], *divided, along["x"], along["other"], along["y"]),
        ),
        {"KIND": kind, "HAS_OTHER": other is not None, "HAS_RELU": activation is not None, **common, **shape},
        num_warps=WARPS[dim],
    )
    where = torch.device(device)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, (y, first, second) = inputs[0], outputs
        if kind == "TRAINING":
            _, scale, bias, other = inputs
            mean = variance = scale
        else:
            _, other, mean, variance, scale = inputs
            bias = scale
        other = x if other is None else other
        held = torch.empty((2 * parts + 4, count), dtype=torch.float64, device=where)
        a, b, coefficients = held[:parts], held[parts : 2 * parts], held[2 * parts :]
        sums(x, other, mean, a, b)
        finish(x, mean, variance, scale, bias, a, b, coefficients, first, second)
        compute(x, other, y, coefficients)

    of, double = TYPES[x.type], torch.float64
    launches = (
        (sums, [of, of, of, double, double]),
        (finish, [*[of] * 5, *[double] * 3, of, of]),
        (compute, [of, of, of, double]),
    )
    words = f"{count} lines of {n}, read twice, {at_once} x {depth} at once, in {parts} parts"
    return Planned(words, run, launches)


def _cut(blocks: int, n: int, depth: int, elements: int) -> tuple[int, int]:
    """How many parts there are of a line, and how many elements each has."""
    parts = max(1, min(PROGRAMS // blocks, elements // SPAN))
    span = -(-n // (parts * depth)) * depth
    return -(-n // span), span
