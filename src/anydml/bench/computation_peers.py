"""How the CPU's libraries compute the rows of `computation.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.strided_layout import Array
from .cases import Work
from .computation import node_inputs
from .peer import Absent, Peer, calling

NOTHING = "no function of one call in the table"


def function_of(module: Any, name: str, work: Work, of: Callable[[Array], Any]) -> Callable[[], Any]:
    """What the row has a library compute it by, on its arrays as `of` gives them to that library.

    Raises:
        Absent: it has nothing for that library.
    """
    built, arrays, outputs = work.computation
    maker = getattr(built, name, None)
    if maker is None:
        raise Absent(NOTHING)
    function: Callable[[], Any] = maker(module, *map(of, (*arrays.values(), *outputs.values())))
    return function


def function_peer(compute: Callable[[], Any], work: Work, ours: Any, array_of: Callable[[Any], Any]) -> Peer:
    """By a function, whose result `array_of` gives as an array of the row's place; None where that is in its output."""
    is_last = next(iter(work.computation[0].outputs.values())).is_last

    def as_it_lies(result: Any) -> Any:
        found = array_of(result)
        order = (0, *range(2, found.ndim), 1) if is_last else range(found.ndim)
        return (found.transpose(order) if isinstance(found, np.ndarray) else found.permute(*order)).reshape(ours.shape)

    return calling(compute, work.output, ours, as_it_lies)


def node_peer(session: Callable[..., Peer], work: Work, ours: Array) -> Peer:
    """As a model of one node."""
    built, arrays, written = work.computation
    output = next(iter(written.values()))
    if built.node is None:
        raise Absent(NOTHING)
    views = [*node_inputs(built.node, built, arrays)]
    if not all(array is None or array.flags.c_contiguous for array in (*(each[1] for each in views), output)):
        raise Absent("takes packed arrays only")
    given: list[Array] = []
    constants: dict[str, Array] = {}
    order: list[str] = []
    for name, array, stays in views:
        if array is None:
            order.append("")
        elif stays:
            constants[name] = array
            order.append(name)
        else:
            order.append(f"x{len(given)}")
            given.append(array)
    domain, _, operator = built.node.operator.rpartition(".")
    outputs = built.node.outputs
    return session(operator, given, output, ours, constants, built.node.attributes, domain, order, outputs)
