"""PyTorch's data types and streams, as engines and memories of its devices need them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
import triton

from ...core.enums import TensorDataType

TYPES: dict[TensorDataType, torch.dtype] = {
    TensorDataType.FLOAT32: torch.float32,
    TensorDataType.FLOAT16: torch.float16,
    TensorDataType.FLOAT64: torch.float64,
    TensorDataType.UINT8: torch.uint8,
    TensorDataType.UINT16: torch.uint16,
    TensorDataType.UINT32: torch.uint32,
    TensorDataType.UINT64: torch.uint64,
    TensorDataType.INT8: torch.int8,
    TensorDataType.INT16: torch.int16,
    TensorDataType.INT32: torch.int32,
    TensorDataType.INT64: torch.int64,
}
"""PyTorch's type for each data type."""

DEFAULT_STREAM = 0
"""The number of the stream that is there from the beginning, to the end, and never captured."""


def stream_key_of(device: torch.device) -> int | None:
    """The number of PyTorch's current stream; None where what is launched on it is not run but becomes part of a
    graph."""
    if device.type == "cpu":
        return DEFAULT_STREAM
    stream = _stream_on()(device.index)
    return None if stream != DEFAULT_STREAM and _is_capturing(device) else stream


@cache
def _stream_on() -> Callable[[int], int]:
    stream_on: Callable[[int], int] = triton.runtime.driver.active.get_current_stream
    return stream_on


def _is_capturing(device: torch.device) -> bool:
    asked = getattr(getattr(torch, device.type), "is_current_stream_capturing", None)
    return asked is not None and asked()
