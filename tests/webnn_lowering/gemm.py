"""Products of matrices."""

from __future__ import annotations

import numpy as np

from anydml.core.enums import MatrixTransform
from anydml.frontends.directmlx import Expression

from .layouts import broadcast
from .node import Adapter, Node


def gemm(node: Node) -> Expression:
    a, b = node.operands("a", "b")
    transforms = [MatrixTransform(node.get(name, False)) for name in ("aTranspose", "bTranspose")]
    rows, columns = a.shape[transforms[0]], b.shape[1 - transforms[1]]
    c = node.optional("c")
    return node(
        "GEMM",
        ATensor=a,
        BTensor=b,
        CTensor=None if c is None else broadcast(c, (rows, columns)),
        TransA=transforms[0],
        TransB=transforms[1],
        Alpha=node.number("alpha", 1),
        Beta=node.number("beta", 1),
    )


def matmul(node: Node) -> Expression:
    a, b = node.operands("a", "b")
    outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if len(outer) <= 2:
        return a @ b
    # GEMM has 4 dimensions at most: those before the matrices become one.
    a, b = (broadcast(x, (*outer, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in (a, b))
    y = a @ b
    return y.reshape(*outer, *y.shape[-2:])


ADAPTERS: dict[str, Adapter] = {
    "gemm": gemm,
    "matmul": matmul,
}
