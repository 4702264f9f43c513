"""Products of matrices."""

from __future__ import annotations

import numpy as np

from anydml.core.enums import (
    MatrixTransform,
)
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, broadcast, reshaped, sizes_of


def gemm(node: Node) -> Expression:
    a, b, *c = node.all
    transforms = [MatrixTransform(node.get(name, 0)) for name in ("transA", "transB")]
    rows, columns = sizes_of(a)[transforms[0]], sizes_of(b)[1 - transforms[1]]
    return node(
        "GEMM",
        ATensor=a,
        BTensor=b,
        CTensor=broadcast(c[0], (rows, columns)) if c else None,
        TransA=transforms[0],
        TransB=transforms[1],
        Alpha=node.get("alpha", 1),
        Beta=node.get("beta", 1),
    )


def mat_mul(node: Node) -> Expression:
    a, b = node.all
    if len(sizes_of(a)) == 1:
        a = reshaped(a, (1, *sizes_of(a)))
    if len(sizes_of(b)) == 1:
        b = reshaped(b, (*sizes_of(b), 1))
    outer = np.broadcast_shapes(sizes_of(a)[:-2], sizes_of(b)[:-2])
    a, b = (broadcast(x, (*outer, *sizes_of(x)[-2:])) for x in (a, b))
    none = MatrixTransform.NONE
    return node("GEMM", ATensor=a, BTensor=b, TransA=none, TransB=none, Alpha=1, Beta=0)


ADAPTERS: dict[str, Adapter] = {
    "Gemm": gemm,
    "MatMul": mat_mul,
}
