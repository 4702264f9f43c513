"""QUANTIZE and DEQUANTIZE for the CPU's kernels, which see tensors of 4 bits as their bytes."""

from __future__ import annotations

from typing import Any

from ...operators.specs.quantize import quantised_tensor
from .request import Lowered


def quantized(desc: Any, *_: object) -> Lowered:
    """The data type of quantised numbers, and the sizes that bytes of zero points do not tell."""
    name = "QUANTIZE" if quantised_tensor(desc) is desc.OutputTensor else "DEQUANTIZE"
    attributes = {"QuantizedDataType": (int(quantised_tensor(desc).DataType),)}
    for zero_point in desc.QuantizationTensors[1:]:
        attributes["ZeroPointSizes"] = tuple(zero_point.Sizes)
    return name, dict(attributes)
