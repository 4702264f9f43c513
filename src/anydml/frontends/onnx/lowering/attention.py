"""Attention, and rotary embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .empty import may_be_empty
from .shapes import broadcast


@dataclass
class Heads:
    """Queries, keys and values of attention.

    Attributes:
        q: {batch, queries, heads * size}.
        k: {batch, keys, heads of keys * size}.
        v: {batch, keys, heads of keys * size of values}.
        count: heads of queries.
        of_keys: heads of keys and values, each of which as many queries' share.
        past: keys and values before these, {batch, heads of keys, keys, size}; None where there are none.
        scale: the factor of products of queries and keys.
    """

    q: Expression
    k: Expression
    v: Expression
    count: int
    of_keys: int
    past: tuple[Expression, Expression] | None
    scale: float

    @property
    def past_length(self) -> int:
        return 0 if self.past is None else self.past[0].shape[2]

    @property
    def total(self) -> int:
        """The number of keys."""
        return self.past_length + self.k.shape[1]

    @property
    def queries(self) -> int:
        return self.q.shape[1]


def split_heads(node: NodeContext, x: Expression, count: int) -> Expression:
    """{batch, length, count * size} as {batch, count, length, size}."""
    batch, length, hidden = x.shape
    apart = x.reshape(batch, length, count, hidden // count).transpose(0, 2, 1, 3)
    found: Expression = node.call("identity", apart)
    return found


def joined_heads(node: NodeContext, x: Expression) -> Expression:
    """{batch, count, length, size} as {batch, length, count * size}."""
    batch, count, length, size = x.shape
    found: Expression = node.call("identity", x.transpose(0, 2, 1, 3))
    return found.reshape(batch, length, count * size)


class Mask:
    """What queries may see: truth values that must hold, and numbers that are added to the scores.

    Attributes:
        truths: of shapes that broadcast to {batch, heads, queries, keys}; arrays where they are known.
        added: likewise, None for nothing.
    """

    def __init__(self, node: NodeContext, heads: Heads) -> None:
        self.node = node
        self.heads = heads
        self.truths: list[Any] = []
        self.added: Expression | None = None

    def add(self, x: Expression) -> None:
        """A mask of truth values or of numbers, of 2 to 4 dimensions, which may be of fewer keys than there are."""
        x = x.reshape((1,) * (4 - x.ndim) + x.shape)
        missing = self.heads.total - x.shape[3]
        if missing > 0:
            value = 0 if x.dtype == np.bool_ else -inf
            filler = np.full((*x.shape[:3], missing), value, bool if x.dtype == np.bool_ else x.dtype)
            x = self.node.call("join", [x, self.node.constant(filler)], 3)
        if x.dtype == np.bool_:
            self.truths.append(x)
        else:
            self.added = x if self.added is None else self.added + x

    def within(self, offset: Any, left: int, right: int) -> None:
        """Keys at j for a query at i, with offset + i - left <= j <= offset + i + right; -1 is no limit.

        Args:
            offset: a number, or an expression of {batch} of INT32.
            left: how many keys before its own place a query sees.
            right: how many behind it.
        """
        i = np.arange(self.heads.queries, dtype=np.int32)[:, None]
        j = np.arange(self.heads.total, dtype=np.int32)
        if isinstance(offset, int):
            allowed = np.ones((len(i), len(j)), bool)
            if left >= 0:
                allowed &= j >= offset + i - left
            if right >= 0:
                allowed &= j <= offset + i + right
            self.truths.append(allowed[None, None])
            return
        apart, of_batch = self.node.constant((j - i)[None, None]), offset.reshape(-1, 1, 1, 1)
        if left >= 0:
            self.truths.append(apart >= of_batch - np.int32(left))
        if right >= 0:
            self.truths.append(apart <= of_batch + np.int32(right))

    def keys_below(self, lengths: Expression) -> None:
        """The first keys of each sequence, INT32 of {batch}."""
        j = np.arange(self.heads.total, dtype=np.int32)[None, None, None]
        self.truths.append(self.node.constant(j) < lengths.reshape(-1, 1, 1, 1))

    def bias(self, dtype: np.dtype[Any]) -> tuple[Expression | None, Expression | None]:
        """What is added to the scores, -inf where a query does not see; and which queries see nothing."""
        known = [each for each in self.truths if isinstance(each, np.ndarray)]
        truths = [each for each in self.truths if not isinstance(each, np.ndarray)]
        if known:
            allowed = known[0]
            for each in known[1:]:
                allowed = allowed & each
            if not allowed.all():
                truths.append(self.node.constant(allowed))
        is_safe = not truths or (len(truths) == 1 and bool(known) and bool(allowed.any(axis=-1).all()))
        if not truths and self.added is None:
            return None, None
        zero = self.node.constant(np.zeros((1, 1, 1, 1), dtype))
        bias = zero if self.added is None else self.added.astype(dtype)
        if truths:
            seen = truths[0]
            for one in truths[1:]:
                seen = seen & one
            bias = self.node.call("if_", seen, bias, self.node.constant(np.full((1, 1, 1, 1), -inf, dtype)))
        if self.added is None and is_safe:
            return bias, None
        dead = self.node.call("reduce", bias, "max", axes=[3]) == self.node.constant(np.full((1,) * 4, -inf, dtype))
        return bias, dead


def attended(
    node: NodeContext,
    heads: Heads,
    seen: Mask,
    is_causal: bool = False,
    present: bool = False,
    lengths: Expression | None = None,
    **options: Any,
) -> list[Any]:
    """softmax(scale * q k^T + mask) v by one operator.

    Args:
        node: the node.
        heads: what attends to what.
        seen: what is seen.
        is_causal: whether queries, which stand behind all past keys, see none behind their own place, too.
        present: whether all keys and values are results.
        lengths: how many past keys each sequence has, INT32 of {batch}, where `is_causal`; all where None.
        options: what else the function takes.

    Returns:
        {batch, queries, heads * size of values}; then keys and values. Queries that see nothing give zeros.
    """
    batch = heads.q.shape[0]
    if is_causal and seen.truths and lengths is None:
        seen.within(heads.past_length, -1, 0)
        is_causal = False
    bias, dead = seen.bias(heads.q.dtype)
    if is_causal and lengths is None:
        lengths = node.constant(np.full(batch, heads.past_length, np.int32))
    past_key, past_value = heads.past or (None, None)
    if bias is not None and bias.shape[2:] != (heads.queries, heads.total):
        bias = broadcast(bias, (*bias.shape[:2], heads.queries, heads.total))
    found = node.call(
        "multihead_attention",
        heads.q,
        heads.k,
        heads.v,
        relative_position_bias=bias,
        past_key=past_key,
        past_value=past_value,
        past_sequence_lengths=lengths,
        head_count=heads.count,
        key_value_head_count=heads.of_keys if is_causal or heads.of_keys != heads.count else None,
        scale=heads.scale,
        present=present,
        **options,
    )
    y, *others = found if present else [found]
    if dead is not None:
        size = y.shape[2] // heads.count
        apart = y.reshape(batch, heads.queries, heads.count, size)
        dead = broadcast(dead, (batch, heads.count, heads.queries, 1)).transpose(0, 2, 1, 3)
        zero = node.constant(np.zeros((1, 1, 1, 1), y.dtype))
        y = node.call("if_", node.call("identity", dead), zero, apart).reshape(y.shape)
    return [y, *others]


def scored(
    node: NodeContext,
    heads: Heads,
    mask: Mask,
    softcap: float,
    wanted: int | None = None,
    precision: np.dtype[Any] | None = None,
    sink: Expression | None = None,
) -> list[Any]:
    """The same step by step, which gives the scores, too.

    s = scale * q k^T; s = c * tanh(s / c); s = s + mask; p = softmax(s); y = p v

    Args:
        node: the node.
        heads: what attends to what.
        mask: what is seen.
        softcap: c; none where 0.
        wanted: which scores are a result: 0 those that are scaled, 1 capped, 2 masked, 3 probabilities.
        precision: of the softmax, where it is not the queries'.
        sink: a score for each head that belongs to no key, of any shape; none where None.

    Returns:
        {batch, heads, queries, size of values}, all keys and values, {batch, heads of keys, keys, size}, and scores.
    """
    q, k, v = (split_heads(node, x, n) for x, n in ((heads.q, heads.count), *((x, heads.of_keys) for x in _kv(heads))))
    if heads.past is not None:
        k, v = (node.call("join", [old, new], 2) for old, new in zip(heads.past, (k, v), strict=True))
    batch, count, queries, size = q.shape
    # Queries that share a head of keys are rows of one matrix.
    shared = (batch, heads.of_keys, count // heads.of_keys * queries, size)
    shape = (batch, count, queries, heads.total)
    scores = node.call("gemm", q.reshape(shared), k, trans_b=True, alpha=heads.scale).reshape(shape)
    stages = [scores]
    if softcap:
        scores = node.call("tanh", scores * (1 / softcap)) * softcap
    stages.append(scores)
    bias, dead = mask.bias(q.dtype)
    scores = scores if bias is None else scores + bias
    stages.append(scores)
    high = scores if precision is None or precision == scores.dtype else scores.astype(precision)
    if sink is not None:
        beside = broadcast(sink.astype(high.dtype).reshape(1, count, 1, 1), (*shape[:3], 1))
        high = node.call("join", [high, beside], 3)
    p = node.call("softmax", high, axis=-1)[..., : heads.total]
    if dead is not None:
        p = node.call("if_", dead, node.constant(np.zeros((1, 1, 1, 1), p.dtype)), p)
    p = p if p.dtype == q.dtype else p.astype(q.dtype)
    stages.append(p)
    y = node.call("gemm", p.reshape(*shared[:3], heads.total), v).reshape(batch, count, queries, v.shape[3])
    return [y, k, v, None if wanted is None else stages[wanted]]


def _kv(heads: Heads) -> tuple[Expression, Expression]:
    return heads.k, heads.v


def attention(node: NodeContext) -> list[Any]:
    """ONNX's own."""
    q, k, v = (node.x(i) for i in range(3))
    is_4d = q.ndim == 4
    counts = (q.shape[1], k.shape[1]) if is_4d else (node.required("q_num_heads"), node.required("kv_num_heads"))
    size = q.shape[3] if is_4d else q.shape[2] // counts[0]
    if is_4d:
        q, k, v = (joined_heads(node, x) for x in (q, k, v))
    past = (node.x(4), node.x(5)) if node.has(4) and node.has(5) else None
    heads = Heads(q, k, v, counts[0], counts[1], past, node.get("scale") or 1 / sqrt(size))
    mask = Mask(node, heads)
    if node.has(3):
        mask.add(node.x(3))
    lengths = node.narrowed(node.x(6), np.int32) if node.has(6) else None
    offset = heads.past_length if lengths is None else lengths - np.int32(heads.queries)
    left, right = node.get("left_window_size", -1), node.get("right_window_size", -1)
    is_causal = bool(node.get("is_causal", 0))
    if is_causal and (lengths is not None or left >= 0):
        right, is_causal = 0 if right < 0 else min(right, 0), False
    if left >= 0 or right >= 0:
        mask.within(offset, left, right)
    if lengths is not None:
        mask.keys_below(lengths)
    precision = _PRECISIONS.get(node.get("softmax_precision", 0), np.dtype(np.float64))
    if precision == np.float64:
        raise NotLowered("a softmax of a precision that DirectML has not")
    cap = node.get("softcap", 0.0)
    if cap or node.wants(3):
        if is_causal:
            mask.within(offset, -1, 0)
        wanted = node.get("qk_matmul_output_mode", 0) if node.wants(3) else None
        y, *others = scored(node, heads, mask, cap, wanted, precision)
        return [y if is_4d else joined_heads(node, y), *others]
    present = node.wants(1) or node.wants(2)
    y, *others = attended(node, heads, mask, is_causal, present and past is not None)
    if present and past is None:
        others = [node.x(i) if is_4d else split_heads(node, node.x(i), counts[1]) for i in (1, 2)]
    return [split_heads(node, y, counts[0]) if is_4d else y, *others]


_PRECISIONS = {0: None, 1: np.dtype(np.float32), 10: np.dtype(np.float16)}
"""By ONNX's number of a type; 0 is that of the queries."""


def rotary_embedding(node: NodeContext) -> Any:
    """ONNX's own: of {batch, heads, length, size} or {batch, length, heads * size}."""
    x = node.x(0)
    is_4d = x.ndim == 4
    count = x.shape[1] if is_4d else node.required("num_heads")
    apart = x if is_4d else split_heads(node, x, count)
    tables = [node.x(i) for i in (1, 2)]
    if node.has(3):
        tables = [node.call("gather", table, node.x(3), axis=0) for table in tables]
    y = rotated(
        node, apart, tables[0], tables[1], node.get("rotary_embedding_dim", 0), bool(node.get("interleaved", 0))
    )
    return y if is_4d else joined_heads(node, y)


def rotated(
    node: NodeContext, x: Expression, cosines: Expression, sines: Expression, size: int, interleaved: bool
) -> Expression:
    """Pairs of elements turned by an angle: (a cos - b sin, a sin + b cos).

    Args:
        node: the node.
        x: {batch, heads, length, size}.
        cosines: {batch, length, pairs}.
        sines: likewise.
        size: how many elements are turned; all where 0.
        interleaved: whether a pair is two neighbours, or one element of each half.
    """
    size = size or x.shape[3]
    batch, count, length, whole = x.shape
    turned = x[..., :size]
    cosines, sines = (each[..., : size // 2].reshape(each.shape[0], 1, length, size // 2) for each in (cosines, sines))
    if interleaved:
        pairs = turned.reshape(batch, count, length, size // 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
    else:
        a, b = turned[..., : size // 2], turned[..., size // 2 :]
    each = [a * cosines - b * sines, a * sines + b * cosines]
    if interleaved:
        each = [one.reshape(*one.shape, 1) for one in each]
        y = node.call("join", each, 4).reshape(batch, count, length, size)
    else:
        y = node.call("join", each, 3)
    found: Expression = y if size == whole else node.call("join", [y, x[..., size:]], 3)
    return found


LOWERINGS: dict[str, Lowering] = may_be_empty(
    {
        "Attention": attention,
        "RotaryEmbedding": rotary_embedding,
    }
)
