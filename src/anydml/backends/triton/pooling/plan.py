"""Pooling on a GPU of any type and layout, with indices of maxima, and norms; whole planes are reduced."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, prod
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ....core.enums import ReduceFunction, TensorDataType
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.window_math import Window, pooling_windows
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import WIDE, Launch, Planned, Tensors, between_elements
from ..lines import Lines
from ..reduction.plan import FUNCTIONS, accumulator_of, reduction
from ..tiles import index_type, steps_of, tiles_of
from . import kernels

TILE = 256
"""Elements of a program."""
OUTPUTS = 4
"""Of a strip, whose windows overlap."""
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
    windows = pooling_windows(desc)
    declined = between_elements(layouts) or far_padding(windows)
    if declined is not None:
        return declined
    d: Any = desc
    if spec.name.startswith("LP_") and d.P not in (1, 2):
        return Declined("this kernel has norms of P = 1 and 2")
    if is_whole(windows, outputs):
        return _reduced(spec, desc, layouts[0], outputs[0], torch.device(device))
    if len(outputs) == 1:
        return _strips(spec, desc, layouts[0], outputs[0], windows, torch.device(device))
    launch = maxima(layouts[0], outputs, windows)
    if isinstance(launch, Declined):
        return launch

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0], outputs[-1])

    types = [TYPES[layouts[0].type], TYPES[outputs[0].type], TYPES[outputs[-1].type]]
    return Planned(f"maxima of windows of {taps_of(windows)}, and their indices", run, ((launch, types),))


def far_padding(windows: Sequence[Window]) -> Declined | None:
    """Of windows that reach too far."""
    if max(max(each.start, each.padded, each.extent) for each in windows) >= WIDE // 2:
        return Declined("this kernel counts padding in 32 bits")
    return None


def taps_of(windows: Sequence[Window]) -> str:
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


class _Numbered(NamedTuple):
    """The elements of a tensor of five dimensions in the order of memory."""

    loops: tuple[tuple[int, ...], ...]
    """Sizes, and what divides by them, the innermost first."""
    order: tuple[int, ...]
    """Of each dimension, which of the loops it is."""
    steps: tuple[int, ...]
    """Of each dimension, from a number to the next element's."""


def inner_first_of(layout: Layout) -> list[int]:
    """The five dimensions. What has one element lies outermost: it is divided by nothing."""
    sizes, steps = five(layout.sizes, 1), five(steps_of(layout), 0)
    return sorted(range(5), key=lambda i: (sizes[i] == 1, abs(steps[i]), -i))


def numbered_of(layout: Layout, at_once: Sequence[int] = (1,) * 5) -> _Numbered:
    """By runs of as many elements of each dimension."""
    sizes = [-(-size // count) for size, count in zip(five(layout.sizes, 1), at_once, strict=True)]
    inner_first = inner_first_of(layout)
    within = [sizes[i] for i in inner_first]
    order = tuple([inner_first.index(i) for i in range(5)])
    return _Numbered((tuple(within), *divisors(within)), order, tuple([prod(within[:place]) for place in order]))


def five(numbers: Sequence[int], none: int) -> tuple[int, ...]:
    """Batch, channels, and three dimensions, of which the first may not be there."""
    return (*numbers[:2], *[none] * (5 - len(numbers)), *numbers[2:])


def every_window(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Of three dimensions."""
    return (*[_NO_WINDOW] * (3 - len(windows)), *windows)


def constants_of(windows: Sequence[Window], with_ends: bool = True) -> dict[str, Any]:
    _, taps, strides, starts, ends, dilations = zip(*every_window(windows), strict=True)
    of_ends = {"ENDS": ends} if with_ends else {}
    return {"TAPS": taps, "STRIDES": strides, "STARTS": starts, **of_ends, "DILATIONS": dilations}


def tap_steps_of(windows: Sequence[Window]) -> tuple[int, int, int]:
    """Of each dimension, from a tap's number to the next one's, in row-major order."""
    _, height, width = [each.taps for each in every_window(windows)]
    return height * width, width, 1


def maxima(x: Layout, outputs: Sequence[Layout], windows: Sequence[Window], of_taps: bool = False) -> Launch | Declined:
    """From x to values and indices; or to the numbers of their taps alone, in the order of an output."""
    y, indices = outputs[0], outputs[-1]
    along, at_once = _strip_of(y, windows, in_order=True)
    numbered = numbered_of(y, [at_once if i == along + 2 else 1 for i in range(5)])
    columns = numbered.loops[0][0]
    rows = prod(numbered.loops[0]) // columns
    tiles = tiles_of(rows, columns, TILE)
    if isinstance(tiles, Declined):
        return tiles
    is_float, taps_in_all = x.dtype.kind == "f", prod(window.taps for window in windows)
    most = max(rows * columns * at_once, prod(x.sizes), taps_in_all, _reach_of(x, windows))
    constants = {
        "LOWEST": _lowest(x),
        "NONE": nan if is_float else _lowest(x),
        "OF_TAPS": of_taps,
        "IS_FLOAT": is_float,
        "WIDE": _wide(x),
        "UNROLLED": taps_in_all <= UNROLLED,
        **{"ALONG": along, "OUTPUTS": at_once, "ORDER": numbered.order},
        **constants_of(windows, with_ends=False),
        "TAP_STEPS": tap_steps_of(windows),
        **tiles.shape,
        "INDEX": index_type((x, *outputs), most),
    }
    steps = [five(steps_of(each), 0) for each in (x, y)]
    steps.append(numbered_of(y).steps if of_taps else five(steps_of(indices), 0))
    sizes = five(x.sizes, 1)[2:], five(y.sizes, 1)[2 + along]
    arguments = (rows, columns, tiles.blocks, x.sizes[1], *sizes, *numbered.loops, *steps)
    return Launch(kernels.find_maxima, tiles.programs, arguments, constants)


def _reach_of(x: Layout, windows: Sequence[Window]) -> int:
    """Along a dimension, the farthest from where a window begins, which may be in padding, to an element."""
    return max((each.start + each.size) * abs(step) for each, step in zip(windows, steps_of(x)[2:], strict=True))


def _wide(x: Layout) -> Any:
    """As what elements are compared."""
    if x.dtype.kind == "f":
        return tl.float32
    return tl.int32 if x.dtype.itemsize < 4 else getattr(tl, str(TYPES[x.type]).removeprefix("torch."))


def _lowest(x: Layout) -> float | int:
    return -inf if x.dtype.kind == "f" else int(torch.iinfo(TYPES[x.type]).min)


def _strip_of(y: Layout, windows: Sequence[Window], in_order: bool = False) -> tuple[int, int]:
    """The spatial dimension of strips, of three, and the outputs of one: where windows overlap, without dilation, but
    not along what lies innermost, which threads have side by side. `in_order`: whether windows may have but one tap
    along the dimensions before it."""
    innermost = inner_first_of(y)[0] - 2
    sizes, every = five(y.sizes, 1)[2:], every_window(windows)
    fit = [i for i in range(3) if i != innermost and every[i].taps > every[i].stride and every[i].dilation == 1]
    if in_order:
        fit = [i for i in fit if all(each.taps == 1 for each in every[:i])]
    if not fit or prod(window.taps for window in windows) > UNROLLED:
        return 0 if in_order else 1, 1
    along = max(fit, key=lambda i: (every[i].taps / every[i].stride, i == 1))
    return along, min(OUTPUTS, sizes[along])


def _strips(
    spec: OperatorSpec, desc: Any, x: Layout, y: Layout, windows: Sequence[Window], device: torch.device
) -> Planned | Declined:
    along, outputs = _strip_of(y, windows)
    numbered = numbered_of(y, [outputs if i == along + 2 else 1 for i in range(5)])
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
            *(rows, columns, tiles.blocks, five(x.sizes, 1)[2:], five(y.sizes, 1)[2 + along]),
            *numbered.loops,
            *[five(steps_of(each), 0) for each in (x, y)],
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
            **constants_of(windows),
            **tiles.shape,
            "INDEX": index_type((x, y), max(rows * columns * outputs, prod(x.sizes), _reach_of(x, windows))),
        },
    )
    shares = shares_of(taps_in_all if has_shares else 0, device).to(kind)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0], shares)

    of_thread = f"{outputs} outputs" if outputs > 1 else "each output"
    words = f"windows of {taps_of(windows)}, a thread for {of_thread} of any layout"
    return Planned(words, run, ((launch, [TYPES[x.type], TYPES[y.type], kind]),))


def shares_of(most: int, device: torch.device) -> torch.Tensor:
    """1 / n of the numbers of taps, as a division takes longer than all else; and 1 for none."""
    return (1 / torch.arange(most + 1, dtype=torch.float64).clamp(min=1)).to(device)
