"""Attention."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from anydml import MultiheadAttentionMaskType as MaskType
from anydml import PaddingMode, TensorDataType
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, packed, permuted, reshaped, sizes_of


def attention(node: Node) -> list[Expression]:
    if node.get("softcap", 0) or any(node.get(f"{side}_window_size", -1) != -1 for side in ("left", "right")):
        raise NotSaid("scores that are capped, or left out by their distance")
    if len(node.outputs) > 3:
        raise NotSaid("scores as an output")
    q, k, v = (node.input(i) for i in range(3))
    is_4d = len(sizes_of(q)) == 4
    heads = (sizes_of(q)[1], sizes_of(k)[1]) if is_4d else (node.get("q_num_heads"), node.get("kv_num_heads"))
    if is_4d:
        q, k, v = (_side_by_side(node, x) for x in (q, k, v))
    past_key, past_value = (node.input(i) if node.has(i) else None for i in (4, 5))
    past = sizes_of(past_key)[2] if past_key is not None else 0
    batch, queries, hidden = sizes_of(q)
    total = past + sizes_of(k)[1]
    members: dict[str, Any] = {
        "QueryTensor": q,
        "KeyTensor": k,
        "ValueTensor": v,
        "PastKeyTensor": past_key,
        "PastValueTensor": past_value,
        "OutputTensor": packed(q.tensor.DataType, (batch, queries, heads[0] * sizes_of(v)[2] // heads[1])),
        "MaskType": MaskType.NONE,
    }
    if past_key is not None and past_value is not None and len(node.outputs) > 1:
        for name, x in (("Key", past_key), ("Value", past_value)):
            sizes = (batch, heads[1], total, sizes_of(x)[3])
            members[f"OutputPresent{name}Tensor"] = packed(q.tensor.DataType, sizes)
    if node.has(3):
        members |= _masked(node, total)
    if node.has(6):
        if node.get("is_causal") or "MaskTensor" in members:
            raise NotSaid("two masks, or queries that end where keys do")
        lengths = node("CAST", InputTensor=node.input(6), OutputTensor=TensorDataType.INT32)
        members |= {"MaskTensor": lengths, "MaskType": MaskType.KEY_SEQUENCE_LENGTH}
    if node.get("is_causal"):
        members["PastSequenceLengthsTensor"] = node.constant(np.full(batch, past, np.int32))
    y, *present = node.apply(
        "MULTIHEAD_ATTENTION1",
        **members,
        Scale=node.get("scale", 1 / sqrt(hidden // heads[0])),
        MaskFilterValue=-inf,
        QueryHeadCount=heads[0],
        KeyValueHeadCount=heads[1],
    )
    if not is_4d:
        return [y, *present]
    apart = permuted(reshaped(y, (batch, queries, heads[0], sizes_of(y)[2] // heads[0])), (0, 2, 1, 3))
    return [node("ELEMENT_WISE_IDENTITY", InputTensor=apart), *present]


def _side_by_side(node: Node, x: Expression) -> Expression:
    """Of {batch, heads, length, size} the heads behind each other."""
    batch, heads, length, size = sizes_of(x)
    return reshaped(node("ELEMENT_WISE_IDENTITY", InputTensor=permuted(x, (0, 2, 1, 3))), (batch, length, heads * size))


def _masked(node: Node, total: int) -> dict[str, Any]:
    """Truth values mask, numbers are added."""
    mask = node.values[3]
    is_bool = mask.dtype == np.bool_
    if is_bool and not mask.any(axis=-1).all():
        raise NotSaid("a row that is masked whole, which is NaN")
    node.values[3] = mask.view(np.uint8) if is_bool else mask
    x = node.input(3)
    x = reshaped(x, (1,) * (4 - len(sizes_of(x))) + sizes_of(x))
    if is_bool:
        return {
            "MaskTensor": node("CAST", InputTensor=x, OutputTensor=TensorDataType.INT32),
            "MaskType": MaskType.BOOLEAN,
        }
    missing = total - sizes_of(x)[3]
    if missing:
        x = node(
            "PADDING",
            InputTensor=x,
            PaddingMode=PaddingMode.CONSTANT,
            PaddingValue=-inf,
            StartPadding=(0,) * 4,
            EndPadding=(0, 0, 0, missing),
        )
    return {"RelativePositionBiasTensor": x}


ADAPTERS: dict[str, Adapter] = {"Attention": attention}
