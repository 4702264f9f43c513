"""PyDirectML, Microsoft's Python binding of DirectML, on any machine: its names, defaults and positional orders.

Programs written for it run unmodified: ``import pydirectml as dml``. It is a thin layer over :mod:`anydml`'s graphs. It
differs where PyDirectML is poor: data keep the type of their tensor (there all are float32), errors name the rule, what
is OWNED_BY_DML is initialised once and not at every ``compute``. ``ANYDML_DEVICE`` names the device that
``Device(True)`` is, such as ``cuda:1`` or ``cpu``; without it, that is a GPU that PyTorch and Triton reach, or else the
CPU.

Source: Python/src/module.cpp in microsoft/DirectML, the state of 2021-10-18.
"""

from __future__ import annotations

from anydml import (
    ConvolutionDirection,
    ConvolutionMode,
    ExecutionFlags,
    InterpolationMode,
    MatrixTransform,
    OperatorType,
    PaddingMode,
    RecurrentNetworkDirection,
    TensorDataType,
    TensorFlags,
)

from ._expressions import (
    Binding,
    Expression,
    FusedActivation,
    GRUOutputs,
    MaxPoolingOutputs,
    OutputOptions,
    Size2D,
    TensorData,
)
from ._models import Device, Dimensions, GraphBuilder, Model
from ._operators import (
    activation_identity,
    activation_linear,
    activation_relu,
    activation_sigmoid,
    activation_soft_max,
    activation_tanh,
    add,
    average_pooling,
    batch_normalization,
    convolution,
    divide,
    gather,
    gemm,
    gru,
    input_tensor,
    join,
    local_response_normalization,
    max_pooling,
    mean_variance_normalization,
    multiply,
    padding,
    reinterpret,
    slice,
    subtract,
    up_sample_2d,
    value_scale_2d,
)
from ._tensors import TensorDesc, TensorPolicy

__all__ = [
    "Binding",
    "ConvolutionDirection",
    "ConvolutionMode",
    "Device",
    "Dimensions",
    "ExecutionFlags",
    "Expression",
    "FusedActivation",
    "GRUOutputs",
    "GraphBuilder",
    "InterpolationMode",
    "MatrixTransform",
    "MaxPoolingOutputs",
    "Model",
    "OperatorType",
    "OutputOptions",
    "PaddingMode",
    "RecurrentNetworkDirection",
    "Size2D",
    "TensorData",
    "TensorDataType",
    "TensorDesc",
    "TensorFlags",
    "TensorPolicy",
    "activation_identity",
    "activation_linear",
    "activation_relu",
    "activation_sigmoid",
    "activation_soft_max",
    "activation_tanh",
    "add",
    "average_pooling",
    "batch_normalization",
    "convolution",
    "divide",
    "gather",
    "gemm",
    "gru",
    "input_tensor",
    "join",
    "local_response_normalization",
    "max_pooling",
    "mean_variance_normalization",
    "multiply",
    "padding",
    "reinterpret",
    "slice",
    "subtract",
    "up_sample_2d",
    "value_scale_2d",
]

# The members of the enums are names of the module too, all but OutputOptions'; of equal ones the later enum's stays, in
# the order in which the original defines them.
for _enum in (
    TensorDataType,
    TensorFlags,
    MatrixTransform,
    RecurrentNetworkDirection,
    ConvolutionMode,
    ConvolutionDirection,
    InterpolationMode,
    PaddingMode,
    ExecutionFlags,
    OperatorType,
):
    globals().update(_enum.__members__)
    __all__ += _enum.__members__
