"""softmax(a Q K^T) V, what a graph makes of two products and a softmax where libraries do them at once.

It is no operator of DirectML's: scores are not rounded to the tensors' type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.strided_layout import Array
from .constraints import sizes_of
from .fused_spec import FusedSpec
from .schema import Independence, OperatorDesc, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductAttention(OperatorDesc):
    """Of {batch, heads, length, size} each; of keys {batch, heads, size, length} where `are_columns`.

    The first of each operand's heads, where it has more of them: those of others lie between.
    """

    QueryTensor: Tensor
    KeyTensor: Tensor
    ValueTensor: Tensor
    OutputTensor: Tensor
    scale: float
    are_columns: bool
    first_heads: tuple[int, int, int] = (0, 0, 0)

    def own_heads(self, *operands: Any) -> list[Any]:
        """The heads of queries, keys and values that are this operator's."""
        pairs = zip(operands, self.first_heads, strict=True)
        return [x[:, first : first + self.OutputTensor.Sizes[1]] for x, first in pairs]


def _reference(desc: ProductAttention, q: Array, k: Array, v: Array) -> Array:
    q, k, v = desc.own_heads(q, k, v)
    scores = np.matmul(q.astype(np.float64), (k if desc.are_columns else k.swapaxes(-1, -2)).astype(np.float64))
    weights = np.exp(desc.scale * (scores - scores.max(-1, keepdims=True)))
    found: Array = np.matmul(weights / weights.sum(-1, keepdims=True), v.astype(np.float64)).astype(q.dtype)
    return found


def _independent(desc: ProductAttention) -> Independence:
    return {"QueryTensor": (0, 1, 2, None), "KeyTensor": (0, 1, None, None), "ValueTensor": (0, 1, None, 3)}


PRODUCT_ATTENTION = FusedSpec(
    title="PRODUCT_ATTENTION",
    parts=lambda desc: ["GEMM", "ACTIVATION_SOFTMAX", "GEMM"],
    desc=ProductAttention,
    infer_sizes=lambda desc: {"OutputTensor": sizes_of(desc.OutputTensor)},
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        QueryTensor  | Input  | 4 | FLOAT32
        KeyTensor    | Input  | 4 | FLOAT32
        ValueTensor  | Input  | 4 | FLOAT32
        OutputTensor | Output | 4 | FLOAT32
    """),
)
