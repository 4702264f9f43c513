"""The pictures of CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..core.enums import AxisDirection
from ..core.strided_layout import Array
from ..operators.schema import OperatorDesc
from ..operators.specs.scan import DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, DML_CUMULATIVE_SUMMATION_OPERATOR_DESC
from .boxes import IDENTITY_FILL, TRACED_FILL, WHITE, Box
from .parts import Calculation, Operand, equations, from_to
from .tensors import Look, Mark, Tensor
from .text import factor, number


class _Scan(NamedTuple):
    words: str
    sign: str
    between: str
    identity: int
    exclusive_member: str
    operation: Callable[[Iterable[int]], int]


_SCANS: Mapping[type[OperatorDesc], _Scan] = {
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC: _Scan("running sum", "Σ", " + ", 0, "HasExclusiveSum", sum),
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC: _Scan("running product", "Π", "·", 1, "HasExclusiveProduct", math.prod),
}


def picture(desc: Any, inputs: list[Operand], outputs: list[Operand]) -> list[Box]:
    scan = _SCANS[type(desc)]
    (x,), (y,) = inputs, outputs
    backward = desc.AxisDirection == AxisDirection.DECREASING
    first = x.sizes[desc.Axis] - 1 if backward else 0
    exclusive = getattr(desc, scan.exclusive_member)

    def look(array: Array, identities: bool) -> Callable[[tuple[int, ...]], Look]:
        def at(index: tuple[int, ...]) -> Look:
            traced = not any(index[: desc.Axis] + index[desc.Axis + 1 :])
            identity = identities and index[desc.Axis] == first
            fill = IDENTITY_FILL if identity else TRACED_FILL if traced else WHITE
            return Look(number(array[index]), fill, traced=traced)

        return at

    mark = Mark(backward, traversed=True)
    read = Tensor(caption=x.caption, sizes=x.sizes, look=look(x.array, False), axis=desc.Axis, mark=mark)
    written = Tensor(caption=y.caption, sizes=y.sizes, look=look(y.array, exclusive), axis=desc.Axis, mark=mark)
    words = [scan.words, "exclusive"] if exclusive else [scan.words]
    flow = from_to(read.box(), words, written.box(), scan.sign)
    return [flow, equations(_traced_line(desc, x, y), flow.width)]


def _traced_line(desc: Any, x: Operand, y: Operand) -> Calculation:
    """The scan of the first line, element by element, in the order visited."""
    scan = _SCANS[type(desc)]
    exclusive = getattr(desc, scan.exclusive_member)
    line = tuple(slice(None) if dim == desc.Axis else 0 for dim in range(len(x.sizes)))
    indices = [":" if dim == desc.Axis else "0" for dim in range(len(x.sizes))]
    read, written = x.array[line], y.array[line]
    size = len(read)
    order = range(size)[::-1] if desc.AxisDirection == AxisDirection.DECREASING else range(size)
    rows = []
    for n, i in enumerate(order[:6]):
        seen = [read[k] for k in order[: n if exclusive else n + 1]]
        terms = scan.between.join([number(seen[0]), *map(factor, seen[1:])]) if seen else number(scan.identity)
        note = "the identity: nothing visited yet" if not seen else ""
        if len(seen) > 1:
            wrapped = read.dtype.kind in "iu" and scan.operation(map(int, seen)) != int(written[i])
            modulus = f" (mod 2^{8 * read.dtype.itemsize})" if wrapped else ""
            note = f"= {number(written[i])}{modulus}"
        rows.append((f"y[{i}]", f"= {terms}", note))
    if size > 6:
        rows.append(("…", "", ""))
    return f"y = {y.label}[{', '.join(indices)}], in the order visited", rows
