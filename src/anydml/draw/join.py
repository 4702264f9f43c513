"""The picture of JOIN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .boxes import ORDINAL, Box, ellipsis, stacked, tint, wrapped
from .parts import Operand, equations, from_to
from .tensors import DOTS, Look, Mark, Tensor, visible
from .text import number


def picture(desc: Any, inputs: list[Operand], outputs: list[Operand]) -> list[Box]:
    axis = desc.Axis
    across = (len(inputs[0].sizes) - axis) % 2 == 1  # whether the axis goes from left to right
    ends = tuple(int(end) for end in np.cumsum([x.sizes[axis] for x in inputs]))
    mark = Mark(ends=ends)

    def coloured(operand: Operand, k: int | None = None) -> Callable[[tuple[int, ...]], Look]:
        def at(index: tuple[int, ...]) -> Look:
            colour = ORDINAL[(mark.piece(index[axis]) if k is None else k) % len(ORDINAL)]
            return Look(number(operand.array[index]), tint(colour), colour)

        return at

    def piece(k: int | None) -> Box:
        if k is None:
            return Box(DOTS, DOTS, ellipsis(DOTS / 2, DOTS / 2, not across))
        x, colour = inputs[k], ORDINAL[k % len(ORDINAL)]
        return Tensor(caption=x.caption, sizes=x.sizes, look=coloured(x, k), axis=axis, colour=colour).box()

    (y,) = outputs
    written = Tensor(caption=y.caption, sizes=y.sizes, look=coloured(y), axis=axis, mark=mark)
    pieces = [piece(k) for k in visible(len(inputs), 8)]
    read = wrapped(pieces) if across else stacked(pieces)
    terms = [str(x.sizes[axis]) for x in inputs]
    if len(terms) > 8:
        terms = [*terms[:6], "…", terms[-1]]
    flow = from_to(read, ["join"], written.box(), down=across)
    sizes = [[f"{' + '.join(terms)} = {ends[-1]}"]]
    return [flow, equations((f"The sizes along axis {axis} add up", sizes), flow.width)]
