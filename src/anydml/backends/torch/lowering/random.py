"""RANDOM_GENERATOR, in integers of 64 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.random import MULTIPLIERS, ROUNDS, WEYL, WORD
from ...base import Declined
from . import Run, Tensors
from .values import bits, store


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    def run(read: Tensors, written: Tensors) -> None:
        numbers, new_state = written
        words = (bits(read[0]).reshape(-1).to(torch.int64) & WORD).unbind()
        blocks = -(-numbers.numel() // 4)
        i = torch.arange(blocks, dtype=torch.int64, device=numbers.device)
        y = torch.stack(_philox(_added(words[:4], i), words[4:]), dim=-1).reshape(-1)[: numbers.numel()]
        if new_state is not None:
            end = torch.full((), blocks, dtype=torch.int64, device=numbers.device)
            store(torch.stack([*_added(words[:4], end), *words[4:]]).reshape(new_state.shape), new_state)
        store(y.reshape(numbers.shape), numbers)

    return run


def _added(counter: Sequence[Any], i: Any) -> list[Any]:
    """The words of a counter plus a number."""
    found = []
    carry = torch.zeros_like(i)
    for word, added in zip(counter, (i & WORD, i >> 32, 0, 0), strict=True):
        total = word + added + carry
        found.append(total & WORD)
        carry = total >> 32
    return found


def _philox(counter: Sequence[Any], key: Sequence[Any]) -> list[Any]:
    """The words of blocks, as ``operators/specs/random.py`` has them; products wrap, and their bits are right."""
    c0, c1, c2, c3 = counter
    for i in range(ROUNDS):
        k0, k1 = ((word + i * step) & WORD for word, step in zip(key, WEYL, strict=True))
        p0, p1 = (c * m for c, m in zip((c0, c2), MULTIPLIERS, strict=True))
        c0, c1, c2, c3 = (p1 >> 32 & WORD) ^ c1 ^ k0, p1 & WORD, (p0 >> 32 & WORD) ^ c3 ^ k1, p0 & WORD
    return [c0, c1, c2, c3]
