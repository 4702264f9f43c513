"""MULTIHEAD_ATTENTION, MULTIHEAD_ATTENTION1: scaled dot-product attention in several heads.

Decisions where the pages are silent, or say two things:

1. MaskFilterValue is added to the scores of what is masked, as one half of the text has it; the other half has it set.
   A row that is masked whole is thus a softmax as any other.
2. In a mask of BOOLEAN every value but 0 leaves a score alone. Masks and RelativePositionBiasTensor broadcast along
   dimensions of size 1, as well as by strides of 0.
3. Lengths, ends and starts count all keys, those of PastKeyTensor first; they may lie beyond either end.
4. KEY_QUERY_SEQUENCE_LENGTH_START_END masks by the key lengths alone. The starts that follow them say where sequences
   begin in tensors without padding; with a dimension for the batch they begin where that has them, so that they are not
   read.
5. PastKeyTensor and PastValueTensor come together, and already have the bias; PastValueTensor has heads of the size
   that ValueTensor has. Each output of keys or values may be left out. What they hold is rounded; the scores are
   computed of what is not.
6. In each group of QueryHeadCount / KeyValueHeadCount query heads that follow each other, all use the same key and
   value head, as in ONNX Runtime's GroupQueryAttention.
7. PastSequenceLengthsTensor has how many keys of each sequence PastKeyTensor holds, 0 where that is missing. The new
   keys follow them directly, and a query sees none behind the key of its own place, nor any value there: it is causal,
   as GroupQueryAttention. Behind the last key OutputPresentKeyTensor and OutputPresentValueTensor hold zeros, whatever
   they held before; they may be as long as PastKeyTensor where that has room. The lengths are of INT32, which ONNX
   Runtime gives, or, as the page has it, of the type of the other tensors; a fraction is cut off.
8. A largest score that is infinite, or a NaN among a row's scores, gives NaN, as in ACTIVATION_SOFTMAX.
9. Native code computes all of FLOAT32 and FLOAT16 in single precision: products and sums by fused multiply-adds,
   exponentials within one unit in the last place. Of a masked score, the row's largest score is taken from the filter's
   value before that is added, so that -10000 costs the other terms no bit. PyTorch computes in single precision, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...core import enums
from ...core.enums import MultiheadAttentionMaskType as MaskType
from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..attention_sizes import (
    Heads,
    both_of_past,
    can_be_sized,
    heads_of,
    inputs,
    meaning_of_mask,
    of_one_type,
    one_of_each,
    outputs,
    sizes_of,
    sizes_of_inputs,
    whole_heads,
)
from ..constraints import rounded
from ..schema import (
    FLOAT,
    UINT,
    Choices,
    ConstraintFailure,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attention(OperatorDesc):
    QueryTensor: OptionalTensor = None
    KeyTensor: OptionalTensor = None
    ValueTensor: OptionalTensor = None
    StackedQueryKeyTensor: OptionalTensor = None
    StackedKeyValueTensor: OptionalTensor = None
    StackedQueryKeyValueTensor: OptionalTensor = None
    BiasTensor: OptionalTensor = None
    MaskTensor: OptionalTensor = None
    RelativePositionBiasTensor: OptionalTensor = None
    PastKeyTensor: OptionalTensor = None
    PastValueTensor: OptionalTensor = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MULTIHEAD_ATTENTION_OPERATOR_DESC(_Attention):
    """Scaled dot-product attention: for each head Softmax(Q * K^T * Scale + R + M) * V, the heads side by side.

    Q, K and V are the query, the keys and the values, to which BiasTensor is added; before the keys and the values
    stand those of PastKeyTensor and PastValueTensor. R is RelativePositionBiasTensor, and M is MaskFilterValue where a
    score is masked. The softmax is over all keys. total_length is past_length + key_length. Not in-place.

    Args:
        QueryTensor: {batch_size, query_length, head_count * head_size}; None where it is stacked. Here and below
            dimensions of 1 may lead.
        KeyTensor: {batch_size, key_length, head_count * head_size}; None where it is stacked.
        ValueTensor: {batch_size, key_length, head_count * value_head_size}; None where it is stacked.
        StackedQueryKeyTensor: query and key, {batch_size, query_length, head_count, 2, head_size}.
        StackedKeyValueTensor: key and value, {batch_size, key_length, head_count, 2, head_size}.
        StackedQueryKeyValueTensor: query, key and value, {batch_size, query_length, head_count, 3, head_size}.
        BiasTensor: what is added to query, key and value, one behind the other, {head_count * (2 * head_size +
            value_head_size)}; None for 0.
        MaskTensor: what MaskType says; None for no mask.
        RelativePositionBiasTensor: what is added to the scores, {batch_size, head_count, query_length, total_length};
            None for 0.
        PastKeyTensor: {batch_size, head_count, past_length, head_size}; None where past_length is 0.
        PastValueTensor: {batch_size, head_count, past_length, value_head_size}; None where past_length is 0.
        OutputTensor: {batch_size, query_length, head_count * value_head_size}.
        OutputPresentKeyTensor: all keys, {batch_size, head_count, total_length, head_size}; None where they are not
            wanted.
        OutputPresentValueTensor: all values, {batch_size, head_count, total_length, value_head_size}; likewise.
        Scale: the factor of the products of queries and keys, mostly 1 / sqrt(head_size).
        MaskFilterValue: what is added to masked scores, mostly -10000.
        HeadCount: head_count.
        MaskType: BOOLEAN: MaskTensor is {batch_size, head_count, query_length, total_length}, and masks where it is 0.
            KEY_SEQUENCE_LENGTH: it is {batch_size}, and masks the keys from there on. KEY_SEQUENCE_END_START: it is {2,
            batch_size}, and masks the keys from the end on, and before the start. KEY_QUERY_SEQUENCE_LENGTH_START_END:
            it is {3 * batch_size + 2}, and masks the keys from the lengths on, with which it begins. Of no effect where
            there is no MaskTensor.

    Constraints:
        (C1) All tensors but MaskTensor have the same DataType.
        (C2) There is one query, one key and one value, stacked or not.
        (C3) There is a PastKeyTensor where there is a PastValueTensor, and the other way round.
        (C4) HeadCount is at least 1, and the last sizes of QueryTensor, KeyTensor and ValueTensor are multiples of it.
        (C5) Inputs have the sizes above.
        (C6) Outputs have the sizes above, too.
        (C7) MaskType is not NONE where there is a MaskTensor.

    Source: the page of DML_MULTIHEAD_ATTENTION_OPERATOR_DESC; since feature level 6.1.
    """

    OutputTensor: Tensor
    OutputPresentKeyTensor: OptionalTensor = None
    OutputPresentValueTensor: OptionalTensor = None
    Scale: FLOAT
    MaskFilterValue: FLOAT
    HeadCount: UINT
    MaskType: enums.MultiheadAttentionMaskType


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC(_Attention):
    """Scaled dot-product attention: for each head Softmax(Q * K^T * Scale + R + M) * V, the heads side by side.

    Q, K and V are the query, the keys and the values, to which BiasTensor is added; before the keys and the values
    stand those of PastKeyTensor and PastValueTensor. R is RelativePositionBiasTensor, and M is MaskFilterValue where a
    score is masked. The softmax is over all keys, or with PastSequenceLengthsTensor over those up to the query's own.
    total_length is past_length + key_length. Several query heads may share a head of keys and values. Not in-place.

    Args:
        QueryTensor: {batch_size, query_length, query_head_count * head_size}; None where it is stacked. Here and below
            dimensions of 1 may lead.
        KeyTensor: {batch_size, key_length, head_count * head_size}, with head_count KeyValueHeadCount here and below;
            None where it is stacked.
        ValueTensor: {batch_size, key_length, head_count * value_head_size}; None where it is stacked.
        StackedQueryKeyTensor: query and key, {batch_size, query_length, head_count, 2, head_size}.
        StackedKeyValueTensor: key and value, {batch_size, key_length, head_count, 2, head_size}.
        StackedQueryKeyValueTensor: query, key and value, {batch_size, query_length, head_count, 3, head_size}.
        BiasTensor: what is added to query, key and value, one behind the other, {query_head_count * head_size +
            head_count * (head_size + value_head_size)}; None for 0.
        MaskTensor: what MaskType says; None for no mask.
        RelativePositionBiasTensor: what is added to the scores, {batch_size, query_head_count, query_length,
            total_length}; None for 0.
        PastKeyTensor: {batch_size, head_count, past_length, head_size}; None where past_length is 0.
        PastValueTensor: {batch_size, head_count, past_length, value_head_size}; None where past_length is 0.
        PastSequenceLengthsTensor: how many of the past keys each sequence has, {batch_size}; None for all, and for
            queries that see all keys.
        OutputTensor: {batch_size, query_length, query_head_count * value_head_size}.
        OutputPresentKeyTensor: all keys, {batch_size, head_count, total_length, head_size}, with
            PastSequenceLengthsTensor also past_length of them; None where they are not wanted.
        OutputPresentValueTensor: all values, {batch_size, head_count, total_length, value_head_size}; likewise.
        Scale: the factor of the products of queries and keys, mostly 1 / sqrt(head_size).
        MaskFilterValue: what is added to masked scores, mostly -10000.
        QueryHeadCount: query_head_count, of QueryTensor and OutputTensor.
        KeyValueHeadCount: head_count, of all other tensors.
        MaskType: BOOLEAN: MaskTensor is {batch_size, query_head_count, query_length, total_length}, and masks where it
            is 0. KEY_SEQUENCE_LENGTH: it is {batch_size}, and masks the keys from there on. KEY_SEQUENCE_END_START: it
            is {2, batch_size}, and masks the keys from the end on, and before the start.
            KEY_QUERY_SEQUENCE_LENGTH_START_END: it is {3 * batch_size + 2}, and masks the keys from the lengths on,
            with which it begins. Of no effect where there is no MaskTensor.

    Constraints:
        (C1) All tensors but MaskTensor have the same DataType; PastSequenceLengthsTensor may have INT32, too.
        (C2) There is one query, one key and one value, stacked or not.
        (C3) There is a PastKeyTensor where there is a PastValueTensor, and the other way round.
        (C4) QueryHeadCount is at least 1, and the last size of QueryTensor is a multiple of it; so are those of
            KeyTensor and ValueTensor of KeyValueHeadCount.
        (C5) Inputs have the sizes above.
        (C6) Outputs have the sizes above, too.
        (C7) MaskType is not NONE where there is a MaskTensor.
        (C8) QueryHeadCount is a multiple of KeyValueHeadCount.
        (V1) Past lengths are at least 0, and leave room for the new keys.

    Source: the page of DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC; since feature level 6.3.
    """

    PastSequenceLengthsTensor: OptionalTensor = None
    OutputTensor: Tensor
    OutputPresentKeyTensor: OptionalTensor = None
    OutputPresentValueTensor: OptionalTensor = None
    Scale: FLOAT
    MaskFilterValue: FLOAT
    QueryHeadCount: UINT
    KeyValueHeadCount: UINT
    MaskType: enums.MultiheadAttentionMaskType


def _constraints(desc: DML_MULTIHEAD_ATTENTION_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from of_one_type(desc, "(C1)")
    yield from one_of_each(desc, "(C2)")
    yield from both_of_past(desc, "(C3)")
    yield from whole_heads(desc, "(C4)")
    yield from sizes_of_inputs(desc, "(C5)")
    yield from meaning_of_mask(desc, "(C7)")


def _constraints_of_groups(desc: DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from of_one_type(desc, "(C1)")
    yield from one_of_each(desc, "(C2)")
    yield from both_of_past(desc, "(C3)")
    yield from whole_heads(desc, "(C4)")
    yield from sizes_of_inputs(desc, "(C5)")
    yield from meaning_of_mask(desc, "(C7)")
    if desc.KeyValueHeadCount and desc.QueryHeadCount % desc.KeyValueHeadCount:
        expected = f"a multiple of {desc.KeyValueHeadCount}, which KeyValueHeadCount is"
        yield ConstraintFailure("(C8)", "QueryHeadCount", str(desc.QueryHeadCount), expected)


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    if not can_be_sized(desc):
        return {}
    sizes: dict[str, Choices] = {}
    for name, tensor in outputs(desc).items():
        words: list[tuple[int, ...]] = [(size,) for _, size in sizes_of(desc, name)]
        n = heads_of(desc)
        if name != "OutputTensor" and getattr(desc, "PastSequenceLengthsTensor", None) is not None and n.past:
            words[2] = (n.total, n.past)
        # Of tensors of more dimensions the first ones are 1.
        sizes[name] = ((1,),) * min(len(tensor.Sizes) - len(words), 5 - len(words)) + tuple(words)
    return sizes


def _value_limits(desc: Any) -> dict[str, tuple[int, int]]:
    if getattr(desc, "PastSequenceLengthsTensor", None) is None:
        return {}
    n = heads_of(desc)
    present = [tensor.Sizes[-2] for name, tensor in outputs(desc).items() if name != "OutputTensor"]
    return {"PastSequenceLengthsTensor": (0, min([n.total, *present]) - n.keys)}


def _check_values(desc: Any, values: Sequence[Array | None]) -> Iterator[ConstraintFailure]:
    for lowest, highest in _value_limits(desc).values():
        given = values[-1]
        assert given is not None
        lengths = given.ravel()
        for i in np.flatnonzero(~((lengths >= lowest) & (lengths <= highest)))[:1]:
            found, expected = f"{lengths[i]} for sequence {i}", f"from {lowest} to {highest}, where keys have room"
            yield ConstraintFailure("(V1)", "PastSequenceLengthsTensor", found, expected)


_Maybe: TypeAlias = Array | None


def _masked(desc: Any, n: Heads, mask: Array) -> Array:
    """Which scores are, as what broadcasts to {batch_size, query_head_count, query_length, total_length}."""
    if desc.MaskType == MaskType.BOOLEAN:
        is_masked: Array = mask.reshape(mask.shape[-4:]) == 0
        return is_masked
    keys = np.arange(n.total)
    bounds = mask.reshape(-1)
    ends = bounds[: n.batch].reshape(-1, 1, 1, 1)
    if desc.MaskType != MaskType.KEY_SEQUENCE_END_START:
        return keys >= ends
    return (keys >= ends) | (keys < bounds[n.batch :].reshape(-1, 1, 1, 1))


def _attend(q: Array, k: Array, v: Array, added: Array, scale: float) -> Array:
    """Softmax(q * k^T * scale + added) * v, of one query."""
    scores = (k * q).sum(axis=-1) * scale + added
    weights = np.exp(scores - scores.max())
    result: Array = (weights[:, None] * v).sum(axis=0) / weights.sum()
    return result


@np.errstate(all="ignore")
def _reference(
    desc: Any,
    query: _Maybe,
    key: _Maybe,
    value: _Maybe,
    query_key: _Maybe,
    key_value: _Maybe,
    query_key_value: _Maybe,
    bias: _Maybe,
    mask: _Maybe,
    relative: _Maybe,
    past_key: _Maybe,
    past_value: _Maybe,
    past_lengths: _Maybe = None,
) -> tuple[Array, Array, Array]:
    n = heads_of(desc)

    def part(alone: _Maybe, stacked: Sequence[tuple[_Maybe, int]], heads: int, size: int, begin: int) -> Array:
        """{batch_size, length, heads, size} in double precision, with its bias."""
        found = alone
        for each, place in stacked:
            found = each[..., place, :] if each is not None else found
        assert found is not None
        wide = found.astype(np.float64).reshape(n.batch, -1, heads, size)
        return wide if bias is None else wide + bias.reshape(-1)[begin:][: heads * size].reshape(heads, size)

    of_query, of_key = n.query_heads * n.size, n.heads * n.size
    q = part(query, [(query_key, 0), (query_key_value, 0)], n.query_heads, n.size, 0)
    k = part(key, [(query_key, 1), (key_value, 0), (query_key_value, 1)], n.heads, n.size, of_query)
    v = part(value, [(key_value, 1), (query_key_value, 2)], n.heads, n.value_size, of_query + of_key)
    added = np.zeros((n.batch, n.query_heads, n.queries, n.total))
    if relative is not None:
        added += relative.reshape(relative.shape[-4:])
    if mask is not None:
        added += np.where(_masked(desc, n, mask), desc.MaskFilterValue, 0.0)
    lengths = np.full(n.batch, n.past) if past_lengths is None else past_lengths.reshape(-1).astype(np.int64)

    def present(past: _Maybe, new: Array, name: str) -> Array:
        """{batch_size, heads, length, size}"""
        tensor = getattr(desc, name)
        length = n.total if tensor is None else tensor.Sizes[-2]
        every = np.zeros((n.batch, n.heads, length, new.shape[-1]))
        for b, begin in enumerate(lengths):
            if past is not None:
                every[b, :, :begin] = past.reshape(n.batch, n.heads, n.past, -1)[b, :, :begin]
            every[b, :, begin : begin + n.keys] = new[b].swapaxes(0, 1)
        return every

    keys = present(past_key, k, "OutputPresentKeyTensor")
    values = present(past_value, v, "OutputPresentValueTensor")
    y = np.empty((n.batch, n.queries, n.query_heads, n.value_size))
    for b, h, i in np.ndindex(n.batch, n.query_heads, n.queries):
        seen = n.total if past_lengths is None else min(lengths[b] + i + 1, lengths[b] + n.keys)
        shared = h // (n.query_heads // n.heads)
        y[b, i, h] = _attend(
            q[b, i, h], keys[b, shared, :seen], values[b, shared, :seen], added[b, h, i, :seen], desc.Scale
        )
    dtype = next(each.dtype for each in (query, query_key, query_key_value) if each is not None)
    every = ((y, "OutputTensor"), (keys, "OutputPresentKeyTensor"), (values, "OutputPresentValueTensor"))
    first, second, third = (rounded(each, dtype).reshape(_shape(desc, name, each)) for each, name in every)
    return first, second, third


def _shape(desc: Any, name: str, computed: Array) -> tuple[int, ...]:
    tensor = getattr(desc, name)
    return computed.shape if tensor is None else tensor.Sizes


def _independent(desc: Any) -> Independence:
    """The batch, where all outputs have it at one place and MaskTensor has not three of them behind each other; of the
    queries of OutputTensor alone, which see all keys, each."""
    packed = desc.MaskTensor is not None and desc.MaskType == MaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END
    stacked_with_key = desc.StackedQueryKeyTensor is not None or desc.StackedQueryKeyValueTensor is not None
    causal = getattr(desc, "PastSequenceLengthsTensor", None) is not None
    rank = len(desc.OutputTensor.Sizes)
    places = {len(tensor.Sizes) - len(sizes_of(desc, name)) for name, tensor in outputs(desc).items()}
    lines = {} if packed or len(places) > 1 else {"batch_size": rank - 3}
    if not (stacked_with_key or causal or len(outputs(desc)) > 1):
        lines["query_length"] = rank - 2
    found = {}
    for name, tensor in (inputs(desc) | outputs(desc)).items():
        words = sizes_of(desc, name)
        words = (("", 1),) * (len(tensor.Sizes) - len(words)) + words[-len(tensor.Sizes) :]
        found[name] = tuple(
            [
                None if size != whole and size == 1 else lines.get(word)
                for size, (word, whole) in zip(tensor.Sizes, words, strict=True)
            ]
        )
    return found


def _support(level: str, *lengths: str) -> Any:
    return support_table(
        "\n".join(
            [
                f"DML_FEATURE_LEVEL_{level} and above",
                "QueryTensor                | Optional input  | 3 to 5 | FLOAT32, FLOAT16",
                "KeyTensor                  | Optional input  | 3 to 5 | FLOAT32, FLOAT16",
                "ValueTensor                | Optional input  | 3 to 5 | FLOAT32, FLOAT16",
                "StackedQueryKeyTensor      | Optional input  | 5      | FLOAT32, FLOAT16",
                "StackedKeyValueTensor      | Optional input  | 5      | FLOAT32, FLOAT16",
                "StackedQueryKeyValueTensor | Optional input  | 5      | FLOAT32, FLOAT16",
                "BiasTensor                 | Optional input  | 1 to 5 | FLOAT32, FLOAT16",
                "MaskTensor                 | Optional input  | 1 to 5 | INT32",
                "RelativePositionBiasTensor | Optional input  | 4 to 5 | FLOAT32, FLOAT16",
                "PastKeyTensor              | Optional input  | 4 to 5 | FLOAT32, FLOAT16",
                "PastValueTensor            | Optional input  | 4 to 5 | FLOAT32, FLOAT16",
                *lengths,
                "OutputTensor               | Output          | 3 to 5 | FLOAT32, FLOAT16",
                "OutputPresentKeyTensor     | Optional output | 4 to 5 | FLOAT32, FLOAT16",
                "OutputPresentValueTensor   | Optional output | 4 to 5 | FLOAT32, FLOAT16",
            ]
        )
    )


def _spec(
    operator_type: OperatorType, desc: type[OperatorDesc], constraints: Any, table: Any, **more: Any
) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=constraints,
        infer_sizes=_infer_sizes,
        sizes_rule="(C6)",
        reference=_reference,
        independent=_independent,
        support=table,
        **more,
    )


MULTIHEAD_ATTENTION = _spec(
    OperatorType.MULTIHEAD_ATTENTION, DML_MULTIHEAD_ATTENTION_OPERATOR_DESC, _constraints, _support("6_1")
)

MULTIHEAD_ATTENTION1 = _spec(
    OperatorType.MULTIHEAD_ATTENTION1,
    DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC,
    _constraints_of_groups,
    _support("6_3", "PastSequenceLengthsTensor | Optional input | 1 to 5 | INT32, FLOAT32, FLOAT16"),
    check_values=_check_values,
    value_limits=_value_limits,
)
