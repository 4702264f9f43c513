"""QUANTIZE and DEQUANTIZE, in single precision, in which all but quotients is exact, and products are rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec, Tensor
from ....operators.specs.quantize import limits_of
from . import Run, Tensors

_BEYOND = 1024.0
"""What is saturated whatever the zero point."""


def plan(spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Run:
    return _quantize(desc) if spec.name == "QUANTIZE" else _dequantize(desc)


def _quantize(desc: Any) -> Run:
    low, high = limits_of(desc.OutputTensor.DataType)

    def run(read: Tensors, written: Tensors) -> None:
        x, scale, *zero_point = read
        quotient = torch.nan_to_num(x.float() / _for_each(desc, 0, scale), nan=0.0, posinf=inf, neginf=-inf)
        whole = quotient.round_().clamp_(-_BEYOND, _BEYOND)
        if zero_point:
            whole += _for_each(desc, 1, zero_point[0])
        _store(desc.OutputTensor, whole.clamp_(low, high), written[0])

    return run


def _dequantize(desc: Any) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        x, scale, *zero_point = read
        codes = _numbers(desc.InputTensor, x)
        if zero_point:
            codes = codes - _for_each(desc, 1, zero_point[0])
        written[0].copy_(codes * _for_each(desc, 0, scale))

    return run


def _for_each(desc: Any, i: int, given: Any) -> Any:
    """A parameter in single precision, of sizes that broadcast to the input's."""
    tensor = desc.QuantizationTensors[i]
    y = _numbers(tensor, given)
    for dim, (size, blocks) in enumerate(zip(desc.InputTensor.Sizes, tensor.Sizes, strict=True)):
        if 1 < blocks < size:
            y = y.repeat_interleave(size // blocks, dim)
    return y


def _numbers(tensor: Tensor, x: Any) -> Any:
    """The elements of a tensor in single precision, those of 4 bits unpacked."""
    if tensor.DataType.bits != 4:
        return x.float()
    codes = torch.stack((x & 15, x >> 4), -1).reshape(-1)[: prod(tensor.Sizes)].reshape(tuple(tensor.Sizes))
    return codes.float() if tensor.DataType == TensorDataType.UINT4 else (codes ^ 8).float() - 8


def _store(tensor: Tensor, codes: Any, out: Any) -> None:
    """Writes integers, two of 4 bits to a byte."""
    if tensor.DataType.bits != 4:
        out.copy_(codes)
        return
    halves = codes.to(torch.int8).reshape(-1).view(torch.uint8) & 15
    out.copy_(halves[::2])
    out[: halves.numel() // 2] |= halves[1::2] << 4
