"""All tables of `computation.py`: of tensors of any size, and of layers."""

from __future__ import annotations

from collections.abc import Iterator

from .attention import attention
from .computation import Computation
from .dense import dense
from .integers import integers, quantisation
from .normalising import normalising
from .pooled import pooled
from .recurrent import recurrent
from .regions import regions


def of_any_size() -> Iterator[Computation]:
    yield from quantisation()
    yield from normalising()
    yield from pooled()
    yield from regions()


def layers() -> Iterator[Computation]:
    yield from dense()
    yield from integers()
    yield from attention()
    yield from recurrent()


def one_of_each_cell(rows: Iterator[Computation]) -> list[Computation]:
    return [*{(row.operator, row.cell): row for row in reversed([*rows])}.values()]
