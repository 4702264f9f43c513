"""Attention."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from ..core.enums import MultiheadAttentionMaskType
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ..operators import spec
from ._apply import apply_all
from ._arguments import as_flag, as_index
from ._call import data_type_of
from ._documentation import documented
from ._messages import argument_of
from ._names import REQUIRED, as_member, refuse_unknown
from ._operand_adapter import OperandAdapter, adapter_for
from ._types import Operand, Output, Result
from ._weak_operands import as_listed, is_list


@documented("MULTIHEAD_ATTENTION", "MULTIHEAD_ATTENTION1")
def multihead_attention(
    query: Operand | None = None,
    key: Operand | None = None,
    value: Operand | None = None,
    bias: Operand | None = None,
    mask: Operand | None = None,
    relative_position_bias: Operand | None = None,
    past_key: Operand | None = None,
    past_value: Operand | None = None,
    past_sequence_lengths: Operand | None = None,
    *,
    head_count: int = REQUIRED,
    key_value_head_count: int | None = None,
    scale: float | None = None,
    mask_filter_value: float = -10000.0,
    mask_type: MultiheadAttentionMaskType | str | None = None,
    stacked_query_key: Operand | None = None,
    stacked_key_value: Operand | None = None,
    stacked_query_key_value: Operand | None = None,
    present: bool = False,
    out: Output | Sequence[Output] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result | list[Result]:
    """Attention, softmax(query * key^T * scale) * value in each of several heads: DML_OPERATOR_MULTIHEAD_ATTENTION.

    With fewer heads of keys and values than of queries, or with past_sequence_lengths, it is
    DML_OPERATOR_MULTIHEAD_ATTENTION1.

    Args:
        query: an array or an expression, float32 or float16 of shape (batch, queries, head_count * head size).
        key: likewise, (batch, keys, heads * head size), with heads of keys and values.
        value: likewise, (batch, keys, heads * value head size).
        bias: likewise, what is added to query, key and value, one behind the other in one dimension; 0 where None.
        mask: int32, what mask_type says; nothing is masked where None.
        relative_position_bias: like query, what is added to the scores, of a shape that broadcasts to (batch,
            head_count, queries, past keys + keys); 0 where None.
        past_key: likewise, keys before those of `key`, (batch, heads, past keys, head size); none where None.
        past_value: likewise, values, (batch, heads, past keys, value head size).
        past_sequence_lengths: int32, how many past keys each sequence has, of shape (batch,). Queries then see no key
            behind their own place. All, and all keys are seen, where None.
        head_count: how many heads queries have.
        key_value_head_count: how many keys and values have, each of which several heads of queries share; head_count
            where None.
        scale: the factor of products of queries and keys; 1 / sqrt(head size) where None.
        mask_filter_value: what is added to the scores that are masked.
        mask_type: a MultiheadAttentionMaskType or its name. BOOLEAN, where None: 0 in a mask that broadcasts to (batch,
            head_count, queries, past keys + keys) masks. KEY_SEQUENCE_LENGTH: how many keys each sequence has,
            (batch,). KEY_SEQUENCE_END_START: where they end, and where they start, (2, batch).
        stacked_query_key: in place of query and key, (batch, queries, heads, 2, head size).
        stacked_key_value: in place of key and value, (batch, keys, heads, 2, head size).
        stacked_query_key_value: in place of all three, (batch, queries, heads, 3, head size).
        present: gives all keys and values, too.
        out: where to write, of any strides, a list of three where `present` is True; no memory shared with an input.
            Returned.

    Returns:
        An array like `query`, of shape (batch, queries, head_count * value head size). Where `present` is True a list:
        that, all keys and all values, (batch, heads, past keys + keys, their size).

    >>> multihead_attention([[[1.0, 0.0]]], [[[1.0, 0.0], [1.0, 0.0]]], [[[2.0, 4.0], [4.0, 8.0]]], head_count=1)
    array([[[3., 6.]]], dtype=float32)
    """
    if others or head_count is REQUIRED:
        refuse_unknown(multihead_attention, "MULTIHEAD_ATTENTION", others, head_count=head_count)
    revised = key_value_head_count is not None or past_sequence_lengths is not None
    name = "MULTIHEAD_ATTENTION1" if revised else "MULTIHEAD_ATTENTION"
    members: dict[str, Any] = {
        "QueryTensor": query,
        "KeyTensor": key,
        "ValueTensor": value,
        "StackedQueryKeyTensor": stacked_query_key,
        "StackedKeyValueTensor": stacked_key_value,
        "StackedQueryKeyValueTensor": stacked_query_key_value,
        "BiasTensor": bias,
        "MaskTensor": mask,
        "RelativePositionBiasTensor": relative_position_bias,
        "PastKeyTensor": past_key,
        "PastValueTensor": past_value,
        **({"PastSequenceLengthsTensor": past_sequence_lengths} if revised else {}),
    }
    side = adapter_for(name, members.values(), None, device)
    for member in ("MaskTensor", "PastSequenceLengthsTensor"):
        if is_list(members.get(member)):
            members[member] = _integers(side, name, member, members[member])
    heads = head_count if key_value_head_count is None else key_value_head_count
    outputs, size = _outputs(side, name, members, head_count, heads)
    if mask_type is None:
        mask_type = "NONE" if mask is None else "BOOLEAN"
    with_all = as_flag(name, "present", present)
    counts: dict[str, Any] = (
        {"QueryHeadCount": head_count, "KeyValueHeadCount": heads} if revised else {"HeadCount": head_count}
    )
    results = apply_all(
        name,
        out if out is None or with_all else [out],
        device,
        **members,
        **{member: each for member, each in outputs.items() if with_all or member == "OutputTensor"},
        Scale=1 / sqrt(max(size, 1)) if scale is None else scale,
        MaskFilterValue=mask_filter_value,
        **counts,
        MaskType=as_member(name, "mask_type", mask_type, "MultiheadAttentionMaskType"),
    )
    return results if with_all else results[0]


def _integers(side: OperandAdapter, name: str, member: str, value: Any) -> Any:
    """A list as what the operator takes; lists of anything but integers it says what is wrong with."""
    array = side.memory.import_array(name, argument_of(member), value)
    return array.astype(np.int32) if array.dtype.kind == "i" else array


def _outputs(
    side: OperandAdapter, name: str, members: dict[str, Any], head_count: Any, heads: Any
) -> tuple[dict[str, Any], int]:
    """What outputs are, and the size of a head; of stacked ones, from which less can be inferred, with their sizes."""
    stacked = ("StackedQueryKeyTensor", "StackedQueryKeyValueTensor")
    first = next((each for each in ("QueryTensor", *stacked) if members[each] is not None), "QueryTensor")
    members[first] = as_listed(side, spec(name), first, members[first])
    seen = side.look(argument_of(first), members[first])
    data_type = data_type_of(name, argument_of(first), seen)
    kinds: dict[str, Any] = dict.fromkeys(
        ("OutputTensor", "OutputPresentKeyTensor", "OutputPresentValueTensor"), data_type
    )
    try:
        count, of_keys = as_index(head_count), as_index(heads)
    except TypeError:
        return kinds, 1  # the operator's own rules say what is wrong
    if first == "QueryTensor" or len(seen.shape) != 5 or count < 1 or of_keys < 1:
        return kinds, seen.shape[-1] // max(count, 1) if seen.shape else 1
    batch, length, _, _, size = seen.shape
    of_values = size
    if first == "StackedQueryKeyTensor" and members["ValueTensor"] is not None:
        shape = side.look("value", members["ValueTensor"]).shape
        of_values = max(shape[-1] // of_keys, 1) if shape else 1
    past = () if members["PastKeyTensor"] is None else side.look("past_key", members["PastKeyTensor"]).shape
    total = length + (past[-2] if len(past) > 3 else 0)
    sizes = (
        (batch, length, count * of_values),
        (batch, of_keys, total, size),
        (batch, of_keys, total, of_values),
    )
    described = zip(kinds, sizes, strict=True)
    return {member: DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=each) for member, each in described}, size
