"""Attention of com.microsoft, in its several forms."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .attention import Heads, Mask, attended, joined_heads, rotated, scored, split_heads
from .normalization import normalized
from .shapes import broadcast


def masked(node: NodeContext, i: int, heads: Heads) -> dict[str, Any]:
    """A mask of INT32, in the words of the operator: truth values, lengths, or ends and starts.

    Its shape says which: {batch, keys}, {batch, queries, keys} or {batch, 1, most, most}; {batch}; {2 * batch}.
    """
    if not node.has(i):
        return {"mask_filter_value": _filter(node)}
    batch, shape, x = heads.q.shape[0], node.shape(i), node.x(i)
    x = x if x.dtype == np.int32 else x.astype(np.int32)
    if len(shape) == 1 and shape[0] == batch:
        kind = "KEY_SEQUENCE_LENGTH"
    elif len(shape) == 1 and shape[0] == 2 * batch:
        kind, x = "KEY_SEQUENCE_END_START", x.reshape(2, batch)
    elif len(shape) == 2 and shape[1] == heads.total:
        kind, x = "BOOLEAN", x.reshape(shape[0], 1, 1, shape[1])
    elif len(shape) == 3 and shape[1:] == (heads.queries, heads.total):
        kind, x = "BOOLEAN", x.reshape(shape[0], 1, *shape[1:])
    elif len(shape) == 4 and shape[3] >= heads.total:
        kind, x = "BOOLEAN", x[:, :, heads.past_length : heads.total, : heads.total]
    else:
        raise NotLowered(f"a mask of shape {shape} for {heads.queries} queries and {heads.total} keys")
    if kind == "BOOLEAN":
        x = broadcast(x, (batch, heads.count, heads.queries, heads.total))
    return {"mask": x, "mask_type": kind, "mask_filter_value": _filter(node)}


def _filter(node: NodeContext) -> float:
    return float(node.get("mask_filter_value", -10000.0))


def _refuse(node: NodeContext, **reasons: str) -> None:
    """Attributes that are set, and that nothing here follows."""
    for name, reason in reasons.items():
        if node.get(name, 0):
            raise NotLowered(reason)


def _past_of(node: NodeContext, i: int) -> tuple[Expression, Expression] | None:
    """Keys and values in one tensor, {2, batch, heads, keys, size}."""
    if not node.has(i) or 0 in node.shape(i):
        return None
    past = node.x(i)
    return past[0], past[1]


def _present_of(node: NodeContext, keys: Expression, values: Expression) -> Expression:
    both = [each.reshape(1, *each.shape) for each in (keys, values)]
    found: Expression = node.call("join", both, 0)
    return found


def _self_attention(
    node: NodeContext, q: Expression, k: Expression, v: Expression, mask_at: int, past_at: int, bias_at: int
) -> list[Any]:
    """What Attention and QAttention do once inputs are projected."""
    count = node.required("num_heads")
    scale = node.get("scale") or 1 / sqrt(q.shape[2] // count)
    heads = Heads(q, k, v, count, count, _past_of(node, past_at), scale)
    mask = Mask(node, heads)
    if node.has(bias_at):
        mask.add(node.x(bias_at))
    options = masked(node, mask_at, heads)
    present = node.wants(1)
    y, *others = attended(node, heads, mask, bool(node.get("unidirectional", 0)), present, **options)
    return [y, _present_of(node, *others)] if present else [y]


_UNSAID = {
    "do_rotary": "embeddings within Attention",
    "past_present_share_buffer": "a buffer that past and present keys share",
}


def attention(node: NodeContext) -> list[Any]:
    """Self-attention, whose inputs are x w + b in three parts."""
    _refuse(node, **_UNSAID)
    x, w = node.x(0), node.x(1)
    sizes = node.get("qkv_hidden_sizes") or [w.shape[1] // 3] * 3
    parts, start = [], 0
    for size in sizes:
        part = slice(start, start + size)
        bias = node.x(2)[part] if node.has(2) else None
        rows = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
        parts.append(node.call("gemm", rows, w[:, part], bias).reshape(*x.shape[:2], size))
        start += size
    q, k, v = parts
    return _self_attention(node, q, k, v, 3, 4, 5)


def q_attention(node: NodeContext) -> list[Any]:
    """The same of quantised numbers."""
    _refuse(node, **_UNSAID)
    x, w = node.x(0), node.x(1)
    rows = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
    scales = [node.x(i) for i in (3, 4)]
    points = [node.x(i) if node.has(i) else None for i in (6, 7)]
    whole = node.call(
        "matrix_multiply_integer_to_float",
        rows,
        scales[0],
        w,
        scales[1],
        node.x(2).reshape(1, w.shape[1]),
        a_zero_point=points[0],
        b_zero_point=points[1],
    ).reshape(*x.shape[:2], w.shape[1])
    size = w.shape[1] // 3
    q, k, v = (whole[..., i * size : (i + 1) * size] for i in range(3))
    return _self_attention(node, q, k, v, 5, 8, len(node))


def multi_head_attention(node: NodeContext) -> list[Any]:
    """Of inputs that are projected already; several of them may be in one tensor."""
    if node.has(8) or node.has(9):
        raise NotLowered("keys in a buffer that is shared, or chosen by beams")
    if node.wants(3):
        raise NotLowered("scores as an output")
    count = node.required("num_heads")
    q, k, v = _apart(node, count)
    past = (node.x(6), node.x(7)) if node.has(6) and node.has(7) and 0 not in node.shape(6) else None
    heads = Heads(q, k, v, count, count, past, node.get("scale") or 1 / sqrt(q.shape[2] // count))
    mask = Mask(node, heads)
    if node.has(5):
        mask.add(node.x(5))
    options = masked(node, 4, heads)
    options["bias"] = node.x(3) if node.has(3) else None
    present = node.wants(1) or node.wants(2)
    return attended(node, heads, mask, bool(node.get("unidirectional", 0)), present, **options)


def _apart(node: NodeContext, count: int) -> list[Expression]:
    q = node.x(0)
    if q.ndim == 5:
        return [_part(q, i) for i in range(3)]
    if not node.has(1):
        raise NotLowered("queries alone")
    k = node.x(1)
    if k.ndim == 5:
        return [q, _part(k, 0), _part(k, 1)]
    if k.ndim == 4:
        if node.has(3):
            raise NotLowered("a bias beside keys that are projected already")
        return [q, joined_heads(node, k), joined_heads(node, node.x(2))]
    return [q, k, node.x(2)]


def _part(x: Expression, i: int) -> Expression:
    """Of {batch, length, heads, parts, size}."""
    return x[:, :, :, i].reshape(*x.shape[:2], x.shape[2] * x.shape[4])


def group_query_attention(node: NodeContext) -> list[Any]:
    """Causal attention with keys that are kept, of which several heads of queries share one.

    Lengths say how many keys each sequence has with the new ones; rows of queries are at the end of these.
    """
    _refuse(node, qk_output="scores as an output", sliding_window_cache="keys in a window that moves")
    if any(node.has(i) for i in (12, 13, 16)) or node.get("kv_cache_bit_width", 0):
        raise NotLowered("keys that are quantised, or chunks of several lengths")
    count, of_keys = node.required("num_heads"), node.required("kv_num_heads")
    total = node.number(6)
    q, k, v = _grouped(node, count, of_keys)
    batch, length = q.shape[:2]
    size = q.shape[2] // count
    is_first = length == total
    past = (node.x(3), node.x(4)) if node.has(3) and node.has(4) and 0 not in node.shape(3) else None
    room = past[0].shape[2] if past is not None else 0
    if max(total, room) not in (room, room + length):
        raise NotLowered(f"{total} keys, of which {length} are new and {room} are given")
    lengths = node.x(5).reshape(batch)
    lengths = lengths if lengths.dtype == np.int32 else lengths.astype(np.int32)
    before = node.constant(np.zeros(batch, np.int32)) if is_first else lengths + np.int32(1 - length)
    if node.has(14):
        q, k = (_normalized(node, x, i, n) for x, i, n in ((q, 14, count), (k, 15, of_keys)))
    if node.get("do_rotary", 0):
        q, k = _turned(node, q, k, count, of_keys, None if is_first else before)
    heads = Heads(q, k, v, count, of_keys, past, node.get("scale") or 1 / sqrt(size))
    mask = Mask(node, heads)
    if node.has(10):
        _add_bias(node, mask, heads)
    window = node.get("local_window_size", -1)
    is_causal = bool(node.get("causal", 1))
    if window >= 0:
        mask.within(before, window - 1, -1)
    if not is_causal:
        raise NotLowered("keys behind the queries' own places")
    cap, sink = node.get("softcap", 0.0), _sink(node, count)
    if cap or sink is not None:
        if past is not None and room != total - length:
            raise NotLowered("scores that are capped, in a buffer of keys with room behind them")
        if not is_first:
            expected = f"{total} of each sequence, as scores are capped or have a sink"
            node.demand(lengths == node.constant(np.full(1, total - 1, np.int32)), "another number of keys", expected)
        mask.within(before, -1, 0)
        y, keys, values, _ = scored(node, heads, mask, cap, sink=sink)
        found = [joined_heads(node, y), keys, values]
    else:
        found = attended(node, heads, mask, True, True, before)
        found[1:] = [_fitting(node, each, max(total, room)) for each in found[1:]]
    return found


def _sink(node: NodeContext, count: int) -> Expression | None:
    if node.has(11):
        return node.x(11)
    if node.get("smooth_softmax", -1) == 1:
        return node.constant(np.zeros(count, node.dtype(0)))
    return None


def _fitting(node: NodeContext, x: Expression, length: int) -> Expression:
    """As many keys as the result has; behind the last one of each sequence there are zeros."""
    return x if x.shape[2] == length else x[:, :, :length]


def _add_bias(node: NodeContext, mask: Mask, heads: Heads) -> None:
    """What is added to scores; of keys that there are not yet it says nothing."""
    x = node.x(10)
    missing = heads.total - x.shape[3]
    if missing > 0:
        x = node.call("padding", x, [0] * 4, [0, 0, 0, missing])
    mask.add(x)


def _grouped(node: NodeContext, count: int, of_keys: int) -> list[Expression]:
    q = node.x(0)
    if node.has(1):
        return [q, node.x(1), node.x(2)]
    size = q.shape[2] // (count + 2 * of_keys)
    ends = [0, count * size, (count + of_keys) * size, q.shape[2]]
    return [q[..., start:end] for start, end in pairwise(ends)]


def _normalized(node: NodeContext, x: Expression, i: int, count: int) -> Expression:
    """Each head divided by the root of its mean square."""
    apart = x.reshape(*x.shape[:2], count, x.shape[2] // count)
    return normalized(node, apart, [3], node.get("qk_norm_epsilon", 1e-6), False, node.x(i)).reshape(x.shape)


def _turned(
    node: NodeContext, q: Expression, k: Expression, count: int, of_keys: int, before: Expression | None
) -> tuple[Expression, Expression]:
    """Queries and keys turned by the angles of their places, which follow those before."""
    length, tables = q.shape[1], [node.x(i) for i in (7, 8)]
    if node.has(9):
        places = node.x(9)
        tables = [node.call("gather", table, places, axis=0) for table in tables]
    elif before is None:
        tables = [table[:length].reshape(1, length, table.shape[1]) for table in tables]
    else:
        places = before.reshape(-1, 1) + node.constant(np.arange(length, dtype=np.int32)[None])
        tables = [node.call("gather", table, places, axis=0) for table in tables]
    size, interleaved = 2 * tables[0].shape[2], bool(node.get("rotary_interleaved", 0))
    found = []
    for x, heads in ((q, count), (k, of_keys)):
        y = rotated(node, split_heads(node, x, heads), tables[0], tables[1], size, interleaved)
        found.append(joined_heads(node, y))
    return found[0], found[1]


def rotary_embedding(node: NodeContext) -> Any:
    """Of {batch, heads, length, size} or {batch, length, heads * size}; one place is that of the first element."""
    x = node.x(0)
    tables = [node.x(i) for i in (2, 3)]
    size = node.get("rotary_embedding_dim", 0)
    _refuse(node, is_packed_batching="sequences of several lengths in one tensor")
    is_4d = x.ndim == 4
    whole = 2 * tables[0].shape[1]
    count = x.shape[1] if is_4d else node.get("num_heads", 0) or (x.shape[2] // whole if not size else 0)
    if not count:
        raise NotLowered("heads of which num_heads does not say how many there are")
    apart = x if is_4d else split_heads(node, x, count)
    places = node.x(1)
    if len(node.shape(1)) < 2:
        steps = node.constant(np.arange(apart.shape[2], dtype=node.dtype(1))[None])
        places = places.reshape(1, 1) + steps
    tables = [node.call("gather", table, places, axis=0) for table in tables]
    scale = node.get("scale", 1.0)
    y = rotated(node, apart, tables[0], tables[1], size, bool(node.get("interleaved", 0)))
    y = y if scale == 1 else y * scale
    return y if is_4d else joined_heads(node, y)


LOWERINGS: dict[str, Lowering] = {
    "com.microsoft.Attention": attention,
    "com.microsoft.GroupQueryAttention": group_query_attention,
    "com.microsoft.MultiHeadAttention": multi_head_attention,
    "com.microsoft.QAttention": q_attention,
    "com.microsoft.RotaryEmbedding": rotary_embedding,
}
