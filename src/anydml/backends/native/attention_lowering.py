"""MULTIHEAD_ATTENTION and its revision for the CPU's kernel: where the elements of all tensors lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.enums import MultiheadAttentionMaskType as MaskType
from ...core.strided_layout import Layout
from ...operators.attention_sizes import INPUTS, OUTPUTS, heads_of
from .request import Lowered, bits_of

Place = tuple[int, ...]
"""The number of a tensor, an offset, and the strides of four dimensions, in bytes."""


def attention(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered:
    n = heads_of(desc)
    named = dict(zip([name for name in INPUTS if hasattr(desc, name)], enumerate(inputs), strict=True))
    named |= dict(zip(OUTPUTS, enumerate(outputs), strict=True))
    read = {name: (number, layout) for name, (number, layout) in named.items() if layout is not None}
    places = {
        "Query": _heads(read, "QueryTensor", n.size, StackedQueryKeyTensor=0, StackedQueryKeyValueTensor=0),
        "Key": _heads(
            read, "KeyTensor", n.size, StackedQueryKeyTensor=1, StackedKeyValueTensor=0, StackedQueryKeyValueTensor=1
        ),
        "Value": _heads(read, "ValueTensor", n.value_size, StackedKeyValueTensor=1, StackedQueryKeyValueTensor=2),
        "Output": _heads(read, "OutputTensor", n.value_size),
    }
    for name in ("PastKey", "PastValue", "OutputPresentKey", "OutputPresentValue"):
        if f"{name}Tensor" in read:
            places[name.removeprefix("Output")] = _broadcast(*read[f"{name}Tensor"])
    if "BiasTensor" in read:
        places["Bias"] = _broadcast(*read["BiasTensor"])
    if "RelativePositionBiasTensor" in read:
        places["RelativePositionBias"] = _broadcast(*read["RelativePositionBiasTensor"])
    if "PastSequenceLengthsTensor" in read:
        number, layout = read["PastSequenceLengthsTensor"]
        places["Lengths"] = (number, 0, layout.strides[-1], 0, 0, 0)
    if "MaskTensor" in read:
        number, layout = read["MaskTensor"]
        step = layout.strides[-1]
        if desc.MaskType == MaskType.BOOLEAN:
            places["Mask"] = _broadcast(number, layout)
        else:
            places["Ends"] = (number, 0, step, 0, 0, 0)
        if desc.MaskType == MaskType.KEY_SEQUENCE_END_START:
            places["Starts"] = (number, layout.strides[-2], step, 0, 0, 0)
    lengths = [read[name][1].sizes[-2] if name in read else 0 for name in OUTPUTS[1:]]
    numbers = {name: (bits_of(np.array(getattr(desc, name), np.float64)),) for name in ("Scale", "MaskFilterValue")}
    return "ATTENTION", {"Sizes": tuple(n), "PresentLengths": tuple(lengths), **numbers, **places}


def _heads(tensors: Mapping[str, tuple[int, Layout]], alone: str, size: int, **stacked: int) -> Place:
    """By sequence, head, position and element: in a tensor of its own, or as a part of one."""
    for name, part in stacked.items():
        if name in tensors:
            number, layout = tensors[name]
            batch, length, head, place, element = layout.strides
            return (number, part * place, batch, head, length, element)
    number, layout = tensors[alone]
    batch, length, element = layout.strides[-3:]
    return (number, 0, batch, size * element, length, element)


def _broadcast(number: int, layout: Layout) -> Place:
    """By the last four dimensions, with strides of 0 where a size is 1, or there is none."""
    pairs = list(zip(layout.sizes, layout.strides, strict=True))[-4:]
    strides = [stride if size > 1 else 0 for size, stride in pairs]
    return (number, 0, *[0] * (4 - len(strides)), *strides)
