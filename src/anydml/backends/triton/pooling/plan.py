"""Pooling on a GPU of any type and layout, with indices of maxima, norms, and gradients; whole planes are reduced."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, prod
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ....core.enums import ReduceFunction, TensorDataType
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.window_math import Window, pooling_windows, windows_over
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import WIDE, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..lines import Lines
from ..reduction.plan import FUNCTIONS, accumulator_of, reduction
from ..tiles import folded_loops, index_type, inner_first, steps_of, tiles_of
from . import kernels

TILE, GRADIENTS_TILE, STRIDES_TILE = 256, 512, 512
"""Elements of a program; of one that has gradients; and strides of one that has averages'."""
MOST_STRIDE, MOST_COVERS = 4, 9
"""Of averages whose gradients are computed by strides, the elements of one, and windows over an element."""
OUTPUTS = 4
"""Of a strip, whose windows overlap."""
PLANES = 2048
"""Elements of a program where planes have one window each, and of the largest of these."""
UNROLLED = 27
"""Taps of a window, and windows over an element, whose loops are unrolled."""
MOST_SHARES = 1 << 16
"""Taps of a window, of whose numbers there is a table of what divides by them."""
_NO_WINDOW = Window(1, 1, 1, 0, 0, 1)
"""Along the depth of planes."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    layouts = [layout for layout in (*inputs, *outputs) if layout is not None]
    declined = between_elements(layouts)
    if declined is not None:
        return declined
    if spec.name == "AVERAGE_POOLING_GRAD":
        windows = windows_over(desc, "OutputGradientTensor", "WindowSize")
    else:
        windows = pooling_windows(desc)
    if max(max(each.start, each.padded, each.extent) for each in windows) >= WIDE // 2:
        return Declined("this kernel counts padding in 32 bits")
    if spec.name.endswith("_GRAD"):
        gradient, y = layouts[-2:]
        if is_whole(windows, [gradient]) and prod(y.sizes[2:]) <= PLANES:
            return _plane_gradients(layouts)
        return _gradients(spec, desc, layouts, windows, torch.device(device))
    d: Any = desc
    if spec.name.startswith("LP_") and d.P not in (1, 2):
        return Declined("this kernel has norms of P = 1 and 2")
    if is_whole(windows, outputs):
        return _reduced(spec, desc, layouts[0], outputs[0], torch.device(device))
    if len(outputs) == 1:
        return _strips(spec, desc, layouts[0], outputs[0], windows, torch.device(device))
    launch = _maxima(layouts[0], outputs, windows)
    if isinstance(launch, Declined):
        return launch

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0], outputs[-1])

    types = [TYPES[layouts[0].type], TYPES[outputs[0].type], TYPES[outputs[-1].type]]
    return Planned(f"maxima of windows of {_taps(windows)}, and their indices", run, ((launch, types),))


def _taps(windows: Sequence[Window]) -> str:
    return " x ".join(str(window.taps) for window in windows)


def is_whole(windows: Sequence[Window], outputs: Sequence[Layout]) -> bool:
    """Whether each plane has one window, which is the plane, and no index is asked for."""
    are_planes = all(each.start == 0 and each.taps == each.size and each.dilation == 1 for each in windows)
    return are_planes and len(outputs) == 1 and prod(outputs[0].sizes[2:]) == 1


def _reduced(spec: OperatorSpec, desc: Any, x: Layout, y: Layout, device: torch.device) -> Planned | Declined:
    kind = ReduceFunction.MAX if "MAX" in spec.name else ReduceFunction.AVERAGE
    if spec.name.startswith("LP_"):
        kind = ReduceFunction.L1 if desc.P == 1 else ReduceFunction.L2
    lines = Lines.of(x, y, range(2, len(x.sizes)), any_order=True)
    found = reduction(lines, accumulator_of(FUNCTIONS[kind], x, lines.n), TYPES[x.type], TYPES[y.type], device)
    if isinstance(found, Declined):
        return found

    def run(inputs: Tensors, outputs: Tensors) -> None:
        found.run(inputs[0], outputs[0], outputs[0])

    return Planned(f"whole planes: {found.words}", run, found.launches)


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


class _Numbered(NamedTuple):
    """The elements of a tensor of five dimensions in the order of memory."""

    loops: tuple[tuple[int, ...], ...]
    """Sizes, and what divides by them, the innermost first."""
    order: tuple[int, ...]
    """Of each dimension, which of the loops it is."""
    steps: tuple[int, ...]
    """Of each dimension, from a number to the next element's."""


def _inner_first(layout: Layout) -> list[int]:
    """The five dimensions. What has one element lies outermost: it is divided by nothing."""
    sizes, steps = _five(layout.sizes, 1), _five(steps_of(layout), 0)
    return sorted(range(5), key=lambda i: (sizes[i] == 1, abs(steps[i]), -i))


def _numbered(layout: Layout, at_once: Sequence[int] = (1,) * 5) -> _Numbered:
    """By runs of as many elements of each dimension."""
    sizes = [-(-size // count) for size, count in zip(_five(layout.sizes, 1), at_once, strict=True)]
    inner_first = _inner_first(layout)
    within = [sizes[i] for i in inner_first]
    order = tuple([inner_first.index(i) for i in range(5)])
    return _Numbered((tuple(within), *divisors(within)), order, tuple([prod(within[:place]) for place in order]))


def _five(numbers: Sequence[int], none: int) -> tuple[int, ...]:
    """Batch, channels, and three dimensions, of which the first may not be there."""
    return (*numbers[:2], *[none] * (5 - len(numbers)), *numbers[2:])


def _constants(windows: Sequence[Window]) -> dict[str, Any]:
    every = (*[_NO_WINDOW] * (3 - len(windows)), *windows)
    _, taps, strides, starts, ends, dilations = zip(*every, strict=True)
    return {"TAPS": taps, "STRIDES": strides, "STARTS": starts, "ENDS": ends, "DILATIONS": dilations}


def _maxima(
    x: Layout, outputs: Sequence[Layout], windows: Sequence[Window], of_planes: bool = False
) -> Launch | Declined:
    """From x to values and indices; or to indices alone in the planes, in the order of an output."""
    y, indices = outputs[0], outputs[-1]
    numbered = _numbered(y)
    columns = numbered.loops[0][0]
    rows = prod(y.sizes) // columns
    tiles = tiles_of(rows, columns, TILE)
    if isinstance(tiles, Declined):
        return tiles
    constants = {
        "LOWEST": _lowest(x),
        "OF_PLANES": of_planes,
        "IS_FLOAT": x.dtype.kind == "f",
        "WIDE": _wide(x),
        "UNROLLED": prod(window.taps for window in windows) <= UNROLLED,
        "ORDER": numbered.order,
        **_constants(windows),
        **tiles.shape,
        "INDEX": index_type((x, *outputs), max(prod(y.sizes), prod(x.sizes))),
    }
    steps = [_five(steps_of(each), 0) for each in (x, y, indices)]
    arguments = (rows, columns, tiles.blocks, x.sizes[1], _five(x.sizes, 1)[2:], *numbered.loops, *steps)
    return Launch(kernels.find_maxima, tiles.programs, arguments, constants)


def _wide(x: Layout) -> Any:
    """As what elements are compared."""
    if x.dtype.kind == "f":
        return tl.float32
    return tl.int32 if x.dtype.itemsize < 4 else getattr(tl, str(TYPES[x.type]).removeprefix("torch."))


def _lowest(x: Layout) -> float | int:
    return -inf if x.dtype.kind == "f" else int(torch.iinfo(TYPES[x.type]).min)


def _strip_of(y: Layout, windows: Sequence[Window]) -> tuple[int, int]:
    """The spatial dimension of strips, of three, and the outputs of one: where windows overlap, without dilation, but
    not along what lies innermost, which threads have side by side."""
    innermost = _inner_first(y)[0] - 2
    sizes, every = _five(y.sizes, 1)[2:], (*[_NO_WINDOW] * (3 - len(windows)), *windows)
    fit = [i for i in range(3) if i != innermost and every[i].taps > every[i].stride and every[i].dilation == 1]
    if not fit or prod(window.taps for window in windows) > UNROLLED:
        return 1, 1
    along = max(fit, key=lambda i: (every[i].taps / every[i].stride, i == 1))
    return along, min(OUTPUTS, sizes[along])


def _strips(
    spec: OperatorSpec, desc: Any, x: Layout, y: Layout, windows: Sequence[Window], device: torch.device
) -> Planned | Declined:
    along, outputs = _strip_of(y, windows)
    numbered = _numbered(y, [outputs if i == along + 2 else 1 for i in range(5)])
    columns = numbered.loops[0][0]
    rows = prod(numbered.loops[0]) // columns
    tiles = tiles_of(rows, columns, TILE)
    if isinstance(tiles, Declined):
        return tiles
    is_maximum, is_float = "MAX" in spec.name, x.dtype.kind == "f"
    is_double = not is_maximum and x.type == TensorDataType.FLOAT32
    ends = [(count - 1) * each.stride + each.extent for count, each in zip(y.sizes[2:], windows, strict=True)]
    taps_in_all = prod(window.taps for window in windows)
    has_shares = spec.name.startswith("AVERAGE_") and taps_in_all <= MOST_SHARES
    kind = torch.float64 if is_double else torch.float32
    launch = Launch(
        kernels.pool_strips,
        tiles.programs,
        (
            *(rows, columns, tiles.blocks, _five(x.sizes, 1)[2:], _five(y.sizes, 1)[2 + along]),
            *numbered.loops,
            *[_five(steps_of(each), 0) for each in (x, y)],
        ),
        {
            "KIND": "MAXIMUM" if is_maximum else "NORM" if spec.name.startswith("LP_") else "AVERAGE",
            "P": getattr(desc, "P", 0),
            "WITH_PADDING": bool(getattr(desc, "IncludePadding", False)),
            "IS_INSIDE": all(each.start == 0 and end <= each.size for each, end in zip(windows, ends, strict=True)),
            "NONE": 0 if not is_maximum else nan if is_float else _lowest(x),
            "IS_FLOAT": is_float,
            "HAS_SHARES": has_shares,
            "WIDE": tl.float64 if is_double else _wide(x),
            "UNROLLED": taps_in_all <= UNROLLED,
            **{"ALONG": along, "OUTPUTS": outputs, "ORDER": numbered.order},
            **_constants(windows),
            **tiles.shape,
            "INDEX": index_type((x, y), max(rows * columns * outputs, prod(x.sizes))),
        },
    )
    shares = _shares(taps_in_all if has_shares else 0, device).to(kind)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0], shares)

    of_thread = f"{outputs} outputs" if outputs > 1 else "each output"
    words = f"windows of {_taps(windows)}, a thread for {of_thread} of any layout"
    return Planned(words, run, ((launch, [TYPES[x.type], TYPES[y.type], kind]),))


def _shares(most: int, device: torch.device) -> torch.Tensor:
    """1 / n of the numbers of taps, as a division takes longer than all else; and 1 for none."""
    return (1 / torch.arange(most + 1, dtype=torch.float64).clamp(min=1)).to(device)


def _by_strides(
    desc: Any, gradient: Layout, y: Layout, windows: Sequence[Window], covers: tuple[int, ...]
) -> Launch | None:
    """Of averages in planes of which rows lie innermost; None of others."""
    of_y = steps_of(y)
    _, taps, strides, starts, ends, dilations = zip(*windows, strict=True)
    is_fit = max(strides) <= MOST_STRIDE and prod(covers) <= MOST_COVERS and max(dilations) == 1
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


def _gradients(
    spec: OperatorSpec, desc: Any, layouts: Sequence[Layout], windows: Sequence[Window], device: torch.device
) -> Planned | Declined:
    *before, gradient, y = layouts
    windows_in_all = prod(gradient.sizes)
    numbered, of_windows = _numbered(y), _numbered(gradient)
    columns = numbered.loops[0][0]
    rows = prod(y.sizes) // columns
    tiles = tiles_of(rows, columns, GRADIENTS_TILE)
    if isinstance(tiles, Declined):
        return tiles
    if prod(y.sizes[2:]) >= WIDE:
        return Declined("this kernel counts a plane's elements in 32 bits")
    is_maximum = spec.name == "MAX_POOLING_GRAD"
    constants = _constants(windows)
    taps_in_all = prod(window.taps for window in windows)
    has_shares = not is_maximum and taps_in_all <= MOST_SHARES
    covers = tuple([-(-window.extent // window.stride) for window in windows])
    covers = (1,) * (3 - len(covers)) + covers
    steps = _five(steps_of(gradient), 0), of_windows.steps, _five(steps_of(y), 0)
    spread = Launch(
        kernels.pool_gradients,
        tiles.programs,
        (rows, columns, tiles.blocks, *_five(y.sizes, 1)[2:], *_five(gradient.sizes, 1)[2:], *numbered.loops, *steps),
        {
            "KIND": "MAXIMUM" if is_maximum else "AVERAGE",
            "HAS_SHARES": has_shares,
            "WITH_PADDING": bool(getattr(desc, "IncludePadding", False)),
            "UNROLLED": prod(covers) <= UNROLLED,
            "ORDER": numbered.order,
            "COVERS": covers,
            **constants,
            **tiles.shape,
            "INDEX": index_type(layouts, max(prod(y.sizes), windows_in_all)),
        },
    )
    kind = TYPES[y.type]
    words = f"gradients of windows of {_taps(windows)}, a thread for each element"
    if has_shares and len(windows) == 2:
        by_strides = _by_strides(desc, gradient, y, windows, covers[1:])
        if by_strides is not None:
            spread, words = by_strides, f"gradients of windows of {_taps(windows)}, a thread for each stride"
    if not is_maximum:
        shares = _shares(taps_in_all if has_shares else 0, device)

        def run(inputs: Tensors, outputs: Tensors) -> None:
            spread(inputs[0], shares, outputs[0])

        return Planned(words, run, ((spread, [kind, torch.float64, kind]),))

    find = _maxima(before[0], [gradient], windows, of_planes=True)
    if isinstance(find, Declined):
        return find

    def run_maxima(inputs: Tensors, outputs: Tensors) -> None:
        x, gradient = inputs
        places = torch.empty(windows_in_all, dtype=torch.int32, device=device)
        find(x, x, places)
        spread(gradient, places, outputs[0])

    launches = (find, [kind, kind, torch.int32]), (spread, [kind, torch.int32, kind])
    return Planned(f"{words}, after their maxima", run_maxima, launches)
