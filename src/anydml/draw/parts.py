"""What pictures of operators are put together from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.strided_layout import Array
from .boxes import MUTED, PANEL, WIDEST, Box, beside, placed, stacked, step_between, text_line, wrapped
from .tensors import Look, Tensor
from .text import number


class Operand(NamedTuple):
    """A tensor of the desc, with its values."""

    label: str
    sizes: tuple[int, ...]
    array: Array
    caption: tuple[str, ...]


def _values(operand: Operand) -> Tensor:
    """An operand as it is."""
    return Tensor(caption=operand.caption, sizes=operand.sizes, look=lambda i: Look(number(operand.array[i])))


Picture = Callable[[Any, list[Operand], list[Operand]], list[Box]]
"""From a desc, its inputs and its outputs: boxes, to stand below each other."""


def from_to(read: Box, words: Sequence[str], written: Box, sign: str = "", down: bool = False) -> Box:
    """What is read, an arrow, what is written: side by side where there is room."""
    step = step_between(words, sign)
    if down or read.width + step.width + written.width > WIDEST:
        return stacked([read, step_between(words, sign, down=True), written], 16, centred=True)
    return beside([read, step, written])


Calculation = tuple[str, Sequence[Sequence[str]]]
"""A title, and lines in columns."""


def equations(calculation: Calculation, width: float) -> Box:
    """A calculation on a panel at least so wide, its columns aligned."""
    title, rows = calculation
    cells = [[row[i] if i < len(row) else "" for row in rows] for i in range(max(map(len, rows)))]
    columns = [stacked([text_line(cell) for cell in column], 3) for column in cells]
    inside = stacked([text_line(title, 13, MUTED), beside(columns, 12)], 8)
    width, height = max(width, inside.width + 32), inside.height + 24
    panel = f'<rect width="{width:.6g}" height="{height:.6g}" rx="8" fill="{PANEL}"/>'
    return Box(width, height, panel + placed(16, 12, inside.body))


def plain(desc: Any, inputs: list[Operand], outputs: list[Operand]) -> list[Box]:
    read, written = ([_values(each).box() for each in side] for side in (inputs, outputs))
    return [from_to(wrapped(read), [], wrapped(written)) if read else wrapped(written)]
