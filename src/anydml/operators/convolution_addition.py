"""A convolution, a tensor that is added to it, and RELU: what a graph makes of three operators where kernels do so.

It is no operator of DirectML's: libraries of GPUs round the sum once, behind RELU; the CPU's kernel rounds as the
operators do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.strided_layout import Array
from .constraints import sizes_of
from .fused_spec import FusedSpec, names_of
from .registry import spec_of
from .schema import Independence, OperatorDesc, OptionalTensor, Tensor, support_table
from .specs.convolution import DML_CONVOLUTION_OPERATOR_DESC


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionAddition(OperatorDesc):
    """max(convolution + Added, 0), or the sum alone; the tensors but Added are those of `convolution`."""

    InputTensor: Tensor
    FilterTensor: Tensor
    BiasTensor: OptionalTensor = None
    AddedTensor: Tensor
    OutputTensor: Tensor
    convolution: DML_CONVOLUTION_OPERATOR_DESC
    is_rectified: bool = True


def _reference(desc: ConvolutionAddition, x: Array, w: Array, bias: Array | None, added: Array) -> Array:
    spec = spec_of(desc.convolution)
    assert spec is not None
    y = spec.reference(desc.convolution, x, w, bias)
    assert not isinstance(y, tuple)
    total = y + added
    found: Array = (np.maximum(total, 0) if desc.is_rectified else total).astype(y.dtype)
    return found


def _independent(desc: ConvolutionAddition) -> Independence:
    spec = spec_of(desc.convolution)
    assert spec is not None
    own = spec.independent(desc.convolution)
    return {**own, "AddedTensor": tuple(range(len(desc.OutputTensor.Sizes)))}


CONVOLUTION_ADDITION = FusedSpec(
    title="CONVOLUTION_ADD_RELU",
    parts=lambda desc: [*names_of(desc.convolution), "ELEMENT_WISE_ADD", *["ACTIVATION_RELU"] * desc.is_rectified],
    desc=ConvolutionAddition,
    infer_sizes=lambda desc: {"OutputTensor": sizes_of(desc.OutputTensor)},
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input          | 4 to 5 | FLOAT32
        FilterTensor | Input          | 4 to 5 | FLOAT32
        BiasTensor   | Optional input | 4 to 5 | FLOAT32
        AddedTensor  | Input          | 4 to 5 | FLOAT32
        OutputTensor | Output         | 4 to 5 | FLOAT32
    """),
)
