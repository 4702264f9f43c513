"""MULTIHEAD_ATTENTION and its revision, by products of matrices and a softmax in single precision; on a GPU those of
FLOAT16 without masks and biases by flash attention, whose scores are in single precision, and whose weights are halves.

PyTorch's scaled_dot_product_attention serves where nothing but finite numbers is added to the scores: for a row of
minus infinities it gives zeros, where softmax is NaN. That is without a RelativePositionBiasTensor, with a finite
MaskFilterValue, and without lengths of the past, which leave out what is behind a query's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import torch
from torch.nn import functional

from ....core.enums import MultiheadAttentionMaskType as MaskType
from ....core.strided_layout import Layout
from ....operators.attention_sizes import Heads, heads_of
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .dense import are_halves
from .precision import precision
from .values import store

LARGEST_HEAD, FLASH_CAPABILITY = 256, (8, 0)
"""Elements of a head that flash attention takes, and the capability from which on a GPU has it."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    return _attention(desc)


def _attention(desc: Any) -> Run:
    n = heads_of(desc)
    is_plain = desc.RelativePositionBiasTensor is None and (desc.MaskTensor is None or isfinite(desc.MaskFilterValue))

    def run(read: Tensors, written: Tensors) -> None:
        query, key, value, query_key, key_value, of_all, bias, mask, relative, past_key, past_value, *more = read
        lengths = more[0].reshape(-1).to(torch.int64) if more and more[0] is not None else None
        biases = [None] * 3 if bias is None else _biases(n, bias.float().reshape(-1))
        q = _heads([(query, ...), (query_key, 0), (of_all, 0)], (n.batch, -1, n.query_heads, n.size))
        k = _heads([(key, ...), (query_key, 1), (key_value, 0), (of_all, 1)], (n.batch, -1, n.heads, n.size))
        v = _heads([(value, ...), (key_value, 1), (of_all, 2)], (n.batch, -1, n.heads, n.value_size))
        keeps_halves = is_plain and mask is None and lengths is None and bias is None
        keeps_halves = keeps_halves and are_halves(q, k, v, past_key, past_value)
        if not keeps_halves:
            q, k, v = (x.float() if b is None else x.float() + b for x, b in zip((q, k, v), biases, strict=True))
        k, v = (_joined(n, past, new, lengths) for past, new in ((past_key, k), (past_value, v)))
        for each, out in zip((k, v), written[1:], strict=True):
            if out is not None:
                store(each[:, :, : out.shape[-2]].reshape(out.shape), out)
        shared = n.query_heads // n.heads
        # Query heads that share keys are rows of one product.
        q = q.reshape(n.batch, n.heads, shared, n.queries, n.size)
        k, v = k.unsqueeze(2), v.unsqueeze(2)
        added = None if mask is None else _added(desc, n, mask)
        with precision(False):
            if is_plain and lengths is None:
                k, v = (each.expand(-1, -1, shared, -1, -1).flatten(1, 2) for each in (k, v))
                y = by_call(q.flatten(1, 2), k, v, None if added is None else added.flatten(1, 2), desc.Scale)
            else:
                if relative is not None:
                    of_scores = _grouped(n, relative.float().reshape(relative.shape[-4:]))
                    added = of_scores if added is None else of_scores + added
                y = _by_products(desc, n, q, k, v, added, lengths)
        y = y.reshape(n.batch, n.query_heads, n.queries, n.value_size).transpose(1, 2)
        store(y.reshape(written[0].shape), written[0])

    return run


def _biases(n: Heads, bias: Any) -> list[Any]:
    """{heads, 1, size} of query, key and value."""
    heads, sizes = (n.query_heads, n.heads, n.heads), (n.size, n.size, n.value_size)
    counts = [count * size for count, size in zip(heads, sizes, strict=True)]
    parts = zip(bias.split(counts), heads, sizes, strict=True)
    return [part.reshape(count, 1, size) for part, count, size in parts]


def _heads(sources: Sequence[tuple[Any, Any]], sizes: Sequence[int]) -> Any:
    """{batch, heads, length, size}, of {batch, length, heads, size}: the tensor that is there, or its part of the
    fourth dimension."""
    found = next(x if place is ... else x[..., place, :] for x, place in sources if x is not None)
    return found.reshape(sizes).transpose(1, 2)


def _joined(n: Heads, past: Any, new: Any, lengths: Any) -> Any:
    """{batch, heads, total, size}: what is past, and behind it what is new; zeros where lengths leave room."""
    if past is None:
        return new
    past = past.to(new.dtype).reshape(n.batch, n.heads, n.past, -1)
    if lengths is None:
        return torch.cat([past, new], dim=2)
    places = torch.arange(n.total, device=new.device)
    of_new = places - lengths.reshape(-1, 1)
    every = torch.cat([past, torch.zeros_like(new)], dim=2)
    source = of_new.clamp(0, n.keys - 1).reshape(n.batch, 1, -1, 1).expand_as(every)
    is_new = ((of_new >= 0) & (of_new < n.keys)).reshape(n.batch, 1, -1, 1)
    is_past = (of_new < 0).reshape(n.batch, 1, -1, 1)
    return torch.where(is_new, new.gather(2, source), torch.where(is_past, every, 0.0))


def _grouped(n: Heads, of_scores: Any) -> Any:
    """What broadcasts to {batch, query heads, queries, total}, by heads of keys: {batch, heads, shared, ...}."""
    heads = (n.heads, n.query_heads // n.heads) if of_scores.shape[1] > 1 else (1, 1)
    return of_scores.unflatten(1, heads)


def _added(desc: Any, n: Heads, mask: Any) -> Any:
    """MaskFilterValue where scores are masked, and 0 elsewhere, likewise."""
    if desc.MaskType == MaskType.BOOLEAN:
        sizes = (1,) * (4 - mask.ndim) + tuple(mask.shape[-4:])
        is_masked = _grouped(n, mask.reshape(sizes)) == 0
    else:
        bounds, keys = mask.reshape(-1), torch.arange(n.total, device=mask.device)
        is_masked = keys >= bounds[: n.batch].reshape(-1, 1, 1, 1, 1)
        if desc.MaskType == MaskType.KEY_SEQUENCE_END_START:
            is_masked = is_masked | (keys < bounds[n.batch :].reshape(-1, 1, 1, 1, 1))
    zero = torch.zeros((), device=mask.device)
    return torch.where(is_masked, desc.MaskFilterValue, zero)


def by_call(q: Any, k: Any, v: Any, added: Any, scale: float) -> Any:
    """By PyTorch's function; of halves where it has a kernel without scores in memory, as without it sums these in
    halves."""
    if q.dtype != torch.float16:
        return functional.scaled_dot_product_attention(q, k, v, added, scale=scale)
    if not _is_for_flash(q, v):
        return by_call(q.float(), k.float(), v.float(), added, scale)
    # Flash attention takes the score of the largest product for the largest one.
    q, scale = (q, scale) if scale >= 0 else (-q, -scale)
    return functional.scaled_dot_product_attention(q, k, v, scale=scale)


def _is_for_flash(q: Any, v: Any) -> bool:
    """Whether heads have sizes that PyTorch's kernel takes, on a GPU that has it."""
    size = q.shape[-1]
    has_kernel = torch.backends.cuda.is_flash_attention_available() and torch.version.hip is None
    is_fit = size == v.shape[-1] and size % 8 == 0 and size <= LARGEST_HEAD and q.numel() > 0
    return bool(is_fit and has_kernel and torch.cuda.get_device_capability(q.device) >= FLASH_CAPABILITY)


def _by_products(desc: Any, n: Heads, q: Any, k: Any, v: Any, added: Any, lengths: Any) -> Any:
    """softmax(q * k^T * scale + added) * v, of the keys and values that a query sees."""
    scores = torch.matmul(q, k.mT) * desc.Scale
    scores = scores if added is None else scores + added
    if lengths is None:
        return torch.matmul(scores.softmax(-1), v)
    last = lengths.reshape(-1, 1, 1) + torch.arange(n.queries, device=q.device).clamp(max=n.keys - 1).reshape(-1, 1)
    is_seen = (torch.arange(n.total, device=q.device) <= last).reshape(n.batch, 1, 1, n.queries, n.total)
    # A score that is not seen is no number that another could be subtracted from, nor is a value there.
    largest = torch.where(is_seen, scores, -torch.inf).amax(-1, keepdim=True)
    weights = torch.where(is_seen, (scores - largest).exp(), 0.0)
    sums = weights.sum(-1, keepdim=True)
    is_finite = v.isfinite()
    y = torch.matmul(weights, torch.where(is_finite, v, 0.0))
    # Infinities and NaNs reach the queries that see them: with a weight of 0 as NaN, as a product has it.
    seen = is_seen.float()
    for sign in (1.0, -1.0):
        infinite = (v == sign * torch.inf).float()
        reached = torch.matmul(seen * (weights > 0), infinite) > 0
        lost = torch.matmul(seen * ~(weights > 0), infinite) > 0
        y = torch.where(reached, y + sign * torch.inf, torch.where(lost, torch.nan, y))
    is_lost = torch.matmul(seen, v.isnan().float()) > 0
    return torch.where(is_lost, torch.nan, y / sums)
