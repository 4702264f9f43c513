"""Multi-head attention."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml import MultiheadAttentionMaskType as MaskType
from anydml import TensorDataType
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import tensor_of


def good_attention(random: Random) -> OperatorDesc:
    operator = random.choice(["MULTIHEAD_ATTENTION", "MULTIHEAD_ATTENTION1"])
    data_type = random.choice([TensorDataType.FLOAT32, TensorDataType.FLOAT16])
    batch, queries, keys, past, heads, size, value_size = (random.randint(1, 3) for _ in range(7))
    shared = random.randint(1, 3) if operator.endswith("1") else 1
    alone = {
        "QueryTensor": (batch, queries, shared * heads * size),
        "KeyTensor": (batch, keys, heads * size),
        "ValueTensor": (batch, keys, heads * value_size),
    }
    stacked = random.choice(["", "StackedKeyValueTensor", "StackedQueryKeyTensor", "StackedQueryKeyValueTensor"])
    if stacked:
        shared = shared if stacked == "StackedKeyValueTensor" else 1
        keys = keys if stacked == "StackedKeyValueTensor" else queries
        value_size = value_size if stacked == "StackedQueryKeyTensor" else size
        alone = {
            "StackedKeyValueTensor": {"QueryTensor": (batch, queries, shared * heads * size)},
            "StackedQueryKeyTensor": {"ValueTensor": (batch, keys, heads * value_size)},
        }.get(stacked, {})
        count = 3 if stacked == "StackedQueryKeyValueTensor" else 2
        alone[stacked] = (batch, keys, heads, count, size)
    scores = tuple(each if random.random() < 0.7 else 1 for each in (batch, shared * heads, queries, keys))
    optional: dict[str, tuple[int, ...]] = {}
    if random.random() < 0.5:
        scores = (*scores[:3], random.choice([1, keys + past]))
        optional |= {"PastKeyTensor": (batch, heads, past, size), "PastValueTensor": (batch, heads, past, value_size)}
    else:
        past = 0
    if operator.endswith("1") and random.random() < 0.5:
        optional["PastSequenceLengthsTensor"] = (batch,)
    masks = {
        MaskType.BOOLEAN: scores[random.randint(0, 3) :],
        MaskType.KEY_SEQUENCE_LENGTH: (batch,),
        MaskType.KEY_SEQUENCE_END_START: (2, batch),
        MaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END: (3 * batch + 2,),
    }
    mask_type = random.choice(list(MaskType))
    biases = shared * heads * size + heads * (size + value_size)
    maybe = {"BiasTensor": (biases,), "RelativePositionBiasTensor": scores}
    maybe |= {"MaskTensor": masks[mask_type]} if mask_type in masks else {}
    maybe |= {
        "OutputPresentKeyTensor": (batch, heads, past + keys, size),
        "OutputPresentValueTensor": (batch, heads, past + keys, value_size),
    }
    optional |= {name: sizes for name, sizes in maybe.items() if random.random() < 0.5}
    sizes = {**alone, **optional, "OutputTensor": (batch, queries, shared * heads * value_size)}
    kinds = dict.fromkeys(("MaskTensor", "PastSequenceLengthsTensor"), TensorDataType.INT32)
    tensors: dict[str, Any] = {
        name: tensor_of(random, kinds.get(name, data_type), each, name.startswith("Output"))
        for name, each in sizes.items()
    }
    counts = {"QueryHeadCount": shared * heads, "KeyValueHeadCount": heads}
    return spec(operator).desc(
        **tensors,
        **(counts if operator.endswith("1") else {"HeadCount": heads}),
        Scale=random.choice([0, 1, 0.5, -2]),
        MaskFilterValue=random.choice([0, -10000, 1.5]),
        MaskType=mask_type,
    )


DRAWN = [good_attention]
