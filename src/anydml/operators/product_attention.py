"""softmax(a Q K^T) V, what a graph makes of two products and a softmax where libraries do them at once.

It is no operator of DirectML's: scores are not rounded to the tensors' type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..core.enums import OperatorType
from ..core.strided_layout import Array
from .constraints import sizes_of
from .schema import ConstraintFailure, Independence, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductAttention(OperatorDesc):
    """Of {batch, heads, length, size} each; of keys {batch, heads, size, length} where `are_columns`."""

    QueryTensor: Tensor
    KeyTensor: Tensor
    ValueTensor: Tensor
    OutputTensor: Tensor
    scale: float
    are_columns: bool


class _ProductAttentionSpec(OperatorSpec):
    @property
    def name(self) -> str:
        return "PRODUCT_ATTENTION"


def _no_constraints(desc: ProductAttention) -> Iterator[ConstraintFailure]:
    return iter(())


def _reference(desc: ProductAttention, q: Array, k: Array, v: Array) -> Array:
    scores = np.matmul(q.astype(np.float64), (k if desc.are_columns else k.swapaxes(-1, -2)).astype(np.float64))
    weights = np.exp(desc.scale * (scores - scores.max(-1, keepdims=True)))
    found: Array = np.matmul(weights / weights.sum(-1, keepdims=True), v.astype(np.float64)).astype(q.dtype)
    return found


def _independent(desc: ProductAttention) -> Independence:
    return {"QueryTensor": (0, 1, 2, None), "KeyTensor": (0, 1, None, None), "ValueTensor": (0, 1, None, 3)}


PRODUCT_ATTENTION = _ProductAttentionSpec(
    operator_type=OperatorType.INVALID,
    desc=ProductAttention,
    constraints=_no_constraints,
    infer_sizes=lambda desc: {"OutputTensor": sizes_of(desc.OutputTensor)},
    sizes_rule="",
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
"""`support` says which members are tensors, and no more: the operators' own have been checked."""
