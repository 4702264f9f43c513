"""Softmax, and normalisations by means, variances and norms, on a GPU: whole lines at once, or in two passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ....core.strided_layout import Layout
from ....operators import OPERATORS, spec_of
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..launch import Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..lines import Lines
from ..reduction.plan import Accumulator, Function, accumulator_of, reduction
from . import line_kernels

WHOLE = 16384
"""Elements of a program that holds its lines in registers."""
THREAD = 32
"""Elements of a thread, at most, and so how many warps there are."""
SMALL = 2048
"""Elements of a program of short lines."""
SHORT, SHORT_WARP, SHORT_WARP_OF_TWO = 256, 512, 1024
"""Elements of a line that one warp holds, with others, so that no warps wait for each other; and of such a warp, also
where softmax has two tiles of a long one, of which the second is then no larger than it need be."""
MOMENTS_SHORT = 1024
"""Likewise of a line for means, variances and norms."""
CACHED = 192 << 10
"""Bytes of a program's lines that are read twice in one kernel: those of all programs at a time fit in a cache."""
PER_THREAD = 4
"""Elements of a thread in a tile then."""
REREAD_WARPS, LONG_WARPS, LONG_LINE = {0: 8, 1: 4}, 16, 8192
"""Warps that share it, where lines lie side by side and where they do not, and there of lines of more elements."""
MOMENTS_PER_THREAD, MOMENTS_WARPS, HELD_MOMENTS = 8, 8, 1024
"""Likewise of means, variances and norms, and the most warps; and the elements of a line, up to which it is held in
registers for these."""
WIDEST_ACROSS = 64
"""Lines of a tile that go along the axis where lines lie side by side, then."""
AHEAD = 8
"""Elements of a thread whose exponentials are added at once."""
BUSY = 264
"""Programs that keep a GPU busy, of so many warps."""
LEAST, LEAST_OF_SHORT, LEAST_OF_TWO = 128, 32, 8
"""Elements of the last of a line's tiles, for a thread each; where a warp has a line; and where it has several of two
tiles each."""
ACROSS = 32
"""Lines of a tile where lines lie side by side."""
FEW_LINES = 8
"""Adjacent lines, below which threads go along the axis all the same."""
TILE = 2048
"""Elements of a program of the second pass."""

_SUMS = {
    "MOMENTS": Function("MOMENTS"),
    "SOFTMAX": Function("LOG_SUM"),
    "LOG_SOFTMAX": Function("LOG_SUM"),
    "HARDMAX": Function("ARG"),
    "NORM1": Function("SUM", "ABS"),
    "NORM2": Function("MOMENTS"),
}
"""What lines are reduced to in the first of two passes."""


class _What(NamedTuple):
    function: str
    axes: Sequence[int]
    epsilon: float = 0.0
    has_mean: bool = False
    has_variance: bool = True
    has_relu: bool = False

    @property
    def constants(self) -> dict[str, Any]:
        return {
            "FUNCTION": self.function,
            "EPSILON": self.epsilon,
            "HAS_MEAN": self.has_mean,
            "HAS_VARIANCE": self.has_variance,
        }


def _what(spec: OperatorSpec, desc: Any, rank: int) -> _What | Declined:
    if spec.name == "LP_NORMALIZATION":
        return _What(f"NORM{desc.P}", (desc.Axis,), desc.Epsilon)
    if not spec.name.startswith("MEAN_VARIANCE"):
        return _What(OPERATORS[spec.name].function.upper(), getattr(desc, "Axes", (rank - 1,)))
    activation = spec_of(desc.FusedActivation)
    if activation is not None and activation.name != "ACTIVATION_RELU":
        return Declined("this kernel fuses no activation but ACTIVATION_RELU")
    axes = getattr(desc, "Axes", (1, 2, 3) if getattr(desc, "CrossChannel", False) else (2, 3))
    has_variance = getattr(desc, "UseVariance", False) or getattr(desc, "NormalizeVariance", False)
    has_mean = bool(getattr(desc, "UseMean", True))
    return _What("MOMENTS", axes, desc.Epsilon, has_mean, bool(has_variance), activation is not None)


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    x, y = inputs[0], outputs[0]
    assert x is not None
    layouts = [layout for layout in (*inputs, y) if layout is not None]
    declined = between_elements(layouts)
    if declined is not None:
        return declined
    what = _what(spec, desc, len(x.sizes))
    if isinstance(what, Declined):
        return what
    scale, bias = inputs[1:] if len(inputs) > 1 else (None, None)
    others = [each or _nothing(x) for each in (scale, bias)]
    # But for the first of equal maxima it does not matter which element comes first.
    lines = Lines.of(x, y, what.axes, others, any_order=what.function != "HARDMAX")
    constants = {
        **what.constants,
        "HAS_SCALE": scale is not None,
        "HAS_BIAS": bias is not None,
        "HAS_RELU": what.has_relu,
        "WIDE": tl.float64 if x.dtype.itemsize > 2 else tl.float32,
        "LOOPS": len(lines.loops),
        "AXES": len(lines.axis),
        "SIDE_BY_SIDE": lines.is_side_by_side,
        "DIM": 0 if lines.adjacent >= FEW_LINES else 1,
    }
    loops = lines.arguments()
    # Several tiles go along the last dimension.
    tiles = _tiles(lines.n) if constants["DIM"] == 1 else _tiles_across(lines.n, what.function)
    types = [each and TYPES[each.type] for each in (x, scale, bias, y)]
    at_once = _at_once(lines, x.dtype.itemsize, constants["DIM"])
    most = WHOLE if constants["DIM"] == 1 else WHOLE // (2 * ACROSS)
    has_moments = _SUMS[what.function].kind != "LOG_SUM" and what.function != "HARDMAX"
    if has_moments and at_once and constants["DIM"] == 1:
        # In fewer registers when they are read again.
        most = min(most, HELD_MOMENTS)
    if sum(tiles) <= most:
        return _whole(lines, constants, tiles, loops, types)
    sums = Function("MOMENTS", "CENTRE" if what.has_mean else "") if what.function == "MOMENTS" else None
    # In double precision whatever the elements are.
    accumulator = accumulator_of(sums or _SUMS[what.function], x, lines.n)
    if at_once:
        return _reread(lines, constants, accumulator, at_once, loops, types)
    # Scale and bias, which are not reduced, may cut what x walks as one.
    alone = Lines.of(x, y, what.axes, any_order=what.function != "HARDMAX")
    are_same = [loop[:3] for loop in alone.loops] == [loop[:3] for loop in lines.loops]
    return _twice(lines, alone if are_same else lines, accumulator, constants, loops, types, torch.device(device))


def _nothing(x: Layout) -> Layout:
    return Layout(x.type, (1,) * len(x.sizes), (0,) * len(x.sizes))


def _tiles(n: int) -> tuple[int, ...]:
    """Up to three powers of 2 that add up to n or little more."""
    least = LEAST_OF_SHORT if n <= SMALL // 2 else LEAST
    tiles: list[int] = []
    while n > 0:
        size = next_power_of_2(n)
        if len(tiles) < 2 and size - n >= max(least, size // 8):
            size //= 2
        tiles.append(max(size, least) if tiles else size)
        n -= size
    return tuple(tiles)


def _tiles_across(n: int, function: str) -> tuple[int, ...]:
    """Likewise of lines that lie side by side: two of them where the second one is small, and little is computed."""
    size = next_power_of_2(n)
    rest = n - size // 2
    is_little = function in ("MOMENTS", "NORM1", "NORM2") and 0 < rest <= size // 4
    return (size // 2, next_power_of_2(max(rest, 2))) if is_little else (size,)


def _whole(
    lines: Lines, constants: dict[str, Any], tiles: Sequence[int], loops: Sequence[Any], types: Sequence[Any]
) -> Planned | Declined:
    size, count = sum(tiles), lines.count
    has_moments = constants["FUNCTION"] in ("MOMENTS", "NORM1", "NORM2")
    is_short = constants["DIM"] == 1 and size <= (MOMENTS_SHORT if has_moments else SHORT)
    of_program = SHORT_WARP if is_short else SMALL
    if is_short and not has_moments and len(tiles) == 2 and next_power_of_2(size) == SHORT:
        tiles = (tiles[0], max(next_power_of_2(lines.n - tiles[0]), LEAST_OF_TWO))
        size, of_program = sum(tiles), SHORT_WARP_OF_TWO
    at_once = ACROSS if constants["DIM"] == 0 else max(1, of_program // next_power_of_2(size))
    at_once = min(at_once, next_power_of_2(count))
    programs = -(-count // at_once)
    declined = too_many(programs)
    if declined is not None:
        return declined
    warps = min(max(next_power_of_2(size * at_once) // (32 * THREAD), 1 if is_short else 4), 16)
    shape = dict(zip("ABC", (*tiles, 1, 1), strict=False))
    launch = Launch(
        line_kernels.normalize_lines,
        programs,
        (lines.n, count, *loops),
        {**constants, "LINES": at_once, **shape, "INDEX": lines.index},
        num_warps=warps,
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, scale, bias = (*inputs, None, None)[:3]
        launch(x, scale, bias, outputs[0])

    return Planned(f"{count} lines of {lines.n}, each read once", run, ((launch, types),))


def _at_once(lines: Lines, item: int, dim: int) -> int:
    """Lines of a program that are read again from a cache; 0 where they are too long, or too few."""
    if dim == 1:
        return 1 if lines.n * item <= CACHED and lines.count >= BUSY // 2 else 0
    for at_once in (WIDEST_ACROSS, WIDEST_ACROSS // 2):
        if lines.n * item * at_once <= CACHED and lines.count >= at_once * BUSY:
            return at_once
    return 0


def _reread(
    lines: Lines,
    constants: dict[str, Any],
    accumulator: Accumulator,
    at_once: int,
    loops: Sequence[Any],
    types: Sequence[Any],
) -> Planned | Declined:
    dim, count = constants["DIM"], lines.count
    programs = -(-count // at_once)
    declined = too_many(programs)
    if declined is not None:
        return declined
    sums = {name: accumulator.constants[name] for name in ("KIND", "MAP", "VALUE", "SECOND", "NONE", "NOWHERE")}
    has_exponentials = accumulator.constants["KIND"] == "LOG_SUM"
    warps = LONG_WARPS if dim == 1 and lines.n > LONG_LINE else REREAD_WARPS[dim]
    warps = warps if has_exponentials else min(warps, MOMENTS_WARPS)
    per_thread = PER_THREAD if has_exponentials else MOMENTS_PER_THREAD
    depth = max(32 * warps * per_thread // at_once, per_thread)
    shape = {"LINES": at_once, "DEPTH": depth, "PER_THREAD": per_thread, "AHEAD": AHEAD, "INDEX": lines.index}
    launch = Launch(
        line_kernels.reread_lines,
        programs,
        (lines.n, count, *loops),
        {**constants, **shape, **sums},
        num_warps=warps,
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, scale, bias = (*inputs, None, None)[:3]
        launch(x, scale, bias, outputs[0])

    return Planned(f"{count} lines of {lines.n}, each read again from a cache", run, ((launch, types),))


def _twice(
    lines: Lines,
    summed: Lines,
    accumulator: Accumulator,
    constants: dict[str, Any],
    loops: Sequence[Any],
    types: Sequence[Any],
    device: torch.device,
) -> Planned | Declined:
    reduced = reduction(summed, accumulator, types[0], None, device)
    if isinstance(reduced, Declined):
        return reduced
    is_across = constants["DIM"] == 0
    at_once = min(ACROSS, next_power_of_2(lines.count)) if is_across else 1
    depth = TILE // at_once
    blocks = -(-lines.count // at_once)
    programs = blocks * -(-lines.n // depth)
    declined = too_many(programs)
    if declined is not None:
        return declined
    launch = Launch(
        line_kernels.apply_lines,
        programs,
        (lines.n, lines.count, blocks, *loops),
        {**constants, "LINES": at_once, "DEPTH": depth, "INDEX": lines.index},
    )
    first, second = accumulator.first, accumulator.second

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, scale, bias = (*inputs, None, None)[:3]
        a = torch.empty(lines.count, dtype=first, device=device)
        b = torch.empty(lines.count, dtype=second, device=device) if second else a
        reduced.run(x, a, b)
        launch(x, scale, bias, outputs[0], a, b)

    words = f"{lines.count} lines of {lines.n} in two passes: {reduced.words}"
    return Planned(words, run, (*reduced.launches, (launch, [*types, first, second or first])))
