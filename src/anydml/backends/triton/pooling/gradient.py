"""Gradients of pooling on a GPU, of any type and layout: those of maxima after these, whole planes at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.window_math import Window, pooling_windows, windows_over
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import WIDE, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..tiles import folded_loops, index_type, inner_first, steps_of, tiles_of
from . import gradient_kernels as kernels
from .plan import (
    MOST_SHARES,
    UNROLLED,
    constants_of,
    every_window,
    far_padding,
    five,
    inner_first_of,
    is_whole,
    maxima,
    numbered_of,
    shares_of,
    tap_steps_of,
    taps_of,
)

TILE, STRIPS_TILE, STRIDES_TILE = 512, 256, 512
"""Elements of a program, or strips of them; and strides of one that has averages' gradients by these."""
ELEMENTS = 4
"""Of a strip."""
MOST_STRIDE, MOST_COVERS = 4, 9
"""Of averages whose gradients are computed by strides, the elements of one, and windows over an element."""
PLANES = 2048
"""Elements of a program where planes have one window each, and of the largest of these."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    layouts = [layout for layout in (*inputs, *outputs) if layout is not None]
    if spec.name == "AVERAGE_POOLING_GRAD":
        windows = windows_over(desc, "OutputGradientTensor", "WindowSize")
    else:
        windows = pooling_windows(desc)
    declined = between_elements(layouts) or far_padding(windows)
    if declined is not None:
        return declined
    gradient, y = layouts[-2:]
    if is_whole(windows, [gradient]) and prod(y.sizes[2:]) <= PLANES:
        return _plane_gradients(layouts)
    return _gradients(spec, desc, layouts, windows, torch.device(device))


def _plane_gradients(layouts: Sequence[Layout]) -> Planned | Declined:
    """Of planes that have one window each: in one pass, as a plane is in one program."""
    *before, gradient, y = layouts
    x = before[0] if before else y
    planes, n = prod(y.sizes[:2]), prod(y.sizes[2:])
    of_x, of_gradient, of_y = map(steps_of, (x, gradient, y))
    rows, _ = folded_loops(y.sizes[:2], [each[:2] for each in (of_x, of_gradient, of_y)])
    columns, _ = folded_loops(y.sizes[2:], [each[2:] for each in (of_x, of_y)])
    wide = next_power_of_2(n)
    high = max(1, PLANES // wide)
    programs = -(-planes // high)
    declined = too_many(programs)
    if declined is not None:
        return declined
    launch = Launch(
        kernels.plane_gradients,
        programs,
        (planes, n, *inner_first(rows, 3), *inner_first(columns, 2)),
        {
            "KIND": "MAXIMUM" if before else "AVERAGE",
            **{"LOOPS": max(len(rows), 1), "PLANE_LOOPS": max(len(columns), 1)},
            **{"ROWS": high, "COLUMNS": wide},
            "INDEX": index_type(layouts, programs * high),
        },
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], inputs[-1], outputs[0])

    words = f"gradients of {planes} whole planes of {n} elements"
    return Planned(words, run, ((launch, [TYPES[y.type]] * 3),))


def _by_strides(desc: Any, gradient: Layout, y: Layout, windows: Sequence[Window]) -> Launch | None:
    """Of averages in planes of which rows lie innermost; None of others, and of windows that move by one element, which
    strips share more of."""
    of_y = steps_of(y)
    _, taps, strides, starts, ends, dilations = zip(*windows, strict=True)
    covers = tuple([-(-each.extent // each.stride) for each in windows])
    is_fit = 1 < max(strides) <= MOST_STRIDE and prod(covers) <= MOST_COVERS and max(dilations) == 1
    if not is_fit or of_y[3] != 1 or min(step for size, step in zip(y.sizes, of_y, strict=True) if size > 1) < 1:
        return None
    # From the stride that has the first element to the one that has the last.
    numbers = [(each.size - 1 + each.start) // each.stride - each.start // each.stride + 1 for each in windows]
    rows = prod(y.sizes[:2]) * numbers[0]
    tiles = tiles_of(rows, numbers[1], STRIDES_TILE)
    if isinstance(tiles, Declined):
        return None
    sizes = numbers[0], y.sizes[1]
    constants = {
        "WITH_PADDING": bool(getattr(desc, "IncludePadding", False)),
        **{"COVERS": covers, "TAPS": taps, "STRIDES": strides, "STARTS": starts, "ENDS": ends},
        **tiles.shape,
        "INDEX": index_type((gradient, y), rows * numbers[1]),
    }
    loops = (sizes, *divisors(sizes), steps_of(gradient), of_y)
    arguments = (rows, numbers[1], tiles.blocks, *y.sizes[2:], *gradient.sizes[2:], *map(tuple, loops))
    return Launch(kernels.average_gradients, tiles.programs, arguments, constants)


def _strip_of(y: Layout, windows: Sequence[Window], covers: Sequence[int]) -> tuple[int, int] | None:
    """The spatial dimension of strips, of three, and the elements of one: whole strides, without dilation, but not
    along what lies innermost, which threads have side by side. None where windows over an element are too many."""
    innermost = inner_first_of(y)[0] - 2
    every = every_window(windows)
    fit = [i for i in range(3) if i != innermost and every[i].stride <= ELEMENTS and every[i].dilation == 1]
    if not fit or prod(covers) > UNROLLED:
        return None
    along = max(fit, key=lambda i: (covers[i], i == 1))
    return along, every[along].stride * (ELEMENTS // every[along].stride)


def _each_or_strips(
    spec: OperatorSpec, desc: Any, layouts: Sequence[Layout], windows: Sequence[Window]
) -> tuple[Launch, str] | Declined:
    """Of any layout, and what a thread has."""
    gradient, y = layouts[-2:]
    covers = [-(-each.extent // each.stride) for each in every_window(windows)]
    strip = _strip_of(y, windows, covers) if prod(each.taps for each in windows) <= MOST_SHARES else None
    numbered = numbered_of(y, [strip[1] if strip and i == strip[0] + 2 else 1 for i in range(5)])
    columns = numbered.loops[0][0]
    rows = prod(numbered.loops[0]) // columns
    tiles = tiles_of(rows, columns, TILE if strip is None else STRIPS_TILE)
    if isinstance(tiles, Declined):
        return tiles
    is_maximum = spec.name == "MAX_POOLING_GRAD"
    steps = five(steps_of(gradient), 0), numbered_of(gradient).steps, five(steps_of(y), 0)
    places = five(gradient.sizes, 1)[2:]
    # Along a dimension, from the first window over an element, which may lie before all others, to the last one.
    reach = [
        (size + cover) * abs(step)
        for each in steps[:2]
        for size, cover, step in zip(places, covers, each[2:], strict=True)
    ]
    constants: dict[str, Any] = {
        "KIND": "MAXIMUM" if is_maximum else "AVERAGE",
        "WITH_PADDING": bool(getattr(desc, "IncludePadding", False)),
        "ORDER": numbered.order,
        **constants_of(windows),
        "TAP_STEPS": tap_steps_of(windows),
        **tiles.shape,
        "INDEX": index_type(layouts, max(prod(y.sizes), prod(gradient.sizes), *reach)),
    }
    sizes = five(y.sizes, 1)[2:], places
    if strip is None:
        has_shares = not is_maximum and prod(window.taps for window in windows) <= MOST_SHARES
        constants |= {"HAS_SHARES": has_shares, "COVERS": tuple(covers)}
        arguments: tuple[Any, ...] = (rows, columns, tiles.blocks, *sizes[0], *sizes[1], *numbered.loops, *steps)
        return Launch(kernels.pool_gradients, tiles.programs, arguments, constants), "each element"
    along, elements = strip
    each = every_window(windows)[along]
    # Windows over a strip, whose first element lies `behind` in its window.
    behind = each.start % each.stride
    covers[along] = (elements - 1 + behind) // each.stride + (each.taps - 1 - behind) // each.stride + 1
    constants |= {"ALONG": along, "ELEMENTS": elements, "COVERS": tuple(covers)}
    arguments = (rows, columns, tiles.blocks, *sizes, *numbered.loops, *steps)
    return Launch(kernels.gradient_strips, tiles.programs, arguments, constants), f"{elements} elements"


def _gradients(
    spec: OperatorSpec, desc: Any, layouts: Sequence[Layout], windows: Sequence[Window], device: torch.device
) -> Planned | Declined:
    *before, gradient, y = layouts
    windows_in_all = prod(gradient.sizes)
    kind = TYPES[y.type]
    taps_in_all = prod(window.taps for window in windows)
    if before and taps_in_all >= WIDE:
        return Declined("this kernel counts a window's taps in 32 bits")
    has_shares = not before and taps_in_all <= MOST_SHARES
    spread = None
    if has_shares and len(windows) == 2:
        spread, of_thread = _by_strides(desc, gradient, y, windows), "each stride"
    if spread is None:
        found = _each_or_strips(spec, desc, layouts, windows)
        if isinstance(found, Declined):
            return found
        spread, of_thread = found
    words = f"gradients of windows of {taps_of(windows)}, a thread for {of_thread}"
    if not before:
        shares = shares_of(taps_in_all if has_shares else 0, device)

        def run(inputs: Tensors, outputs: Tensors) -> None:
            spread(inputs[0], shares, outputs[0])

        return Planned(words, run, ((spread, [kind, torch.float64, kind]),))

    find = maxima(before[0], [gradient], windows, of_taps=True)
    if isinstance(find, Declined):
        return find

    # Of as few bytes as hold each tap, and what says that there is none.
    number = torch.uint8 if taps_in_all < 256 else torch.int32

    def run_maxima(inputs: Tensors, outputs: Tensors) -> None:
        x, gradient = inputs
        taps = torch.empty(windows_in_all, dtype=number, device=device)
        find(x, x, taps)
        spread(gradient, taps, outputs[0])

    launches = (find, [kind, kind, number]), (spread, [kind, number, kind])
    return Planned(f"{words}, after their maxima", run_maxima, launches)
