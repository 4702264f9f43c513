"""How the CPU's libraries compute the rows of `computation.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.strided_layout import Array
from .cases import Work
from .computation import node_inputs
from .peer import Absent, Peer

NOTHING = "no function of one call in the table"


def function_peer(module: Any, name: str, work: Work, ours: Array) -> Peer:
    """By the function that the row has."""
    built, arrays, outputs = work.computation
    is_last = next(iter(built.outputs.values())).is_last
    maker = getattr(built, name, None)
    if maker is None:
        raise Absent(NOTHING)
    tensors = [*arrays.values(), *outputs.values()]
    if name == "torch":
        tensors = [module.from_numpy(array) for array in tensors]
    compute, last = maker(module, *tensors), [None]

    def run() -> None:
        last[0] = None
        last[0] = compute()

    def result() -> Any:
        if last[0] is None:
            return work.output
        found = np.asarray(last[0])
        return (np.moveaxis(found, 1, -1) if is_last else found).reshape(ours.shape)

    return Peer(run, result, ours)


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
