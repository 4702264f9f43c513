"""Products of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.enums import MatrixTransform
from ..device import Device
from ..operators.schema import OperatorDesc
from ._apply import Spread, apply
from ._documentation import documented
from ._names import as_member, refuse_unknown
from ._operand_adapter import Shape
from ._types import Operand, Output, Result


@documented("GEMM")
def gemm(
    a: Operand,
    b: Operand,
    c: Operand | float | None = None,
    *,
    trans_a: MatrixTransform | bool | str = MatrixTransform.NONE,
    trans_b: MatrixTransform | bool | str = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    activation: OperatorDesc | str | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """alpha * a x b + beta * c, one product of matrices for each place of a batch: DML_OPERATOR_GEMM.

    Args:
        a: an array or an expression, float32 or float16 of shape (..., M, K); (..., K, M) where it is transposed.
        b: likewise, of shape (..., K, N); (..., N, K) where it is transposed. The dimensions before these two
            broadcast, as NumPy's do.
        c: likewise, what broadcasts to the result; a number for all; none where None.
        trans_a: whether the matrices of a are transposed: a MatrixTransform, its name, or True or False.
        trans_b: whether those of b are.
        alpha: the factor of the product.
        beta: the factor of c.
        activation: the desc of an activation, without tensors, or its name, that is applied to the result; none where
            None.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `a`, of shape (..., M, N).

    >>> gemm([[1.0, 2.0], [3.0, 4.0]], [[1.0], [10.0]], [[0.5]])
    array([[21.5],
           [43.5]], dtype=float32)
    """
    if others:
        refuse_unknown(gemm, "GEMM", others)
    trans_a = as_member("GEMM", "trans_a", trans_a, "MatrixTransform")
    trans_b = as_member("GEMM", "trans_b", trans_b, "MatrixTransform")
    return apply(
        "GEMM",
        out,
        device,
        spread=_matrices(trans_a, trans_b),
        ATensor=a,
        BTensor=b,
        CTensor=c,
        TransA=trans_a,
        TransB=trans_b,
        Alpha=alpha,
        Beta=beta,
        FusedActivation=activation,
    )


def _matrices(trans_a: Any, trans_b: Any) -> Spread:
    def spread(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        a, b = shapes["ATensor"], shapes["BTensor"]
        try:
            batch = np.broadcast_shapes(a[:-2], b[:-2])
            rows = a[-1 if trans_a == MatrixTransform.TRANSPOSE else -2]
            columns = b[-2 if trans_b == MatrixTransform.TRANSPOSE else -1]
            wanted = {"ATensor": (*batch, *a[-2:]), "BTensor": (*batch, *b[-2:])}
            result = (*batch, rows, columns)
            if "CTensor" in shapes and np.broadcast_shapes(shapes["CTensor"], result) == result:
                wanted["CTensor"] = result
            return wanted
        except (ValueError, IndexError):
            return {}  # the operator's own rules say what is wrong

    return spread
