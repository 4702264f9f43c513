"""The table of operators. A line names the file that specifies the operator; it is loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from .schema import OperatorSpec

if TYPE_CHECKING:
    from .specs.activation import DML_ACTIVATION_ELU_OPERATOR_DESC as DML_ACTIVATION_ELU_OPERATOR_DESC
    from .specs.activation import (
        DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC as DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC,
    )
    from .specs.activation import DML_ACTIVATION_IDENTITY_OPERATOR_DESC as DML_ACTIVATION_IDENTITY_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC as DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_LINEAR_OPERATOR_DESC as DML_ACTIVATION_LINEAR_OPERATOR_DESC
    from .specs.activation import (
        DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC as DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC,
    )
    from .specs.activation import DML_ACTIVATION_RELU_OPERATOR_DESC as DML_ACTIVATION_RELU_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC as DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC as DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_SHRINK_OPERATOR_DESC as DML_ACTIVATION_SHRINK_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_SIGMOID_OPERATOR_DESC as DML_ACTIVATION_SIGMOID_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC as DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC as DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC
    from .specs.activation import DML_ACTIVATION_TANH_OPERATOR_DESC as DML_ACTIVATION_TANH_OPERATOR_DESC
    from .specs.activation import (
        DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC as DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC,
    )
    from .specs.activation_prelu import (
        DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC as DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC,
    )
    from .specs.activation_softmax import (
        DML_ACTIVATION_HARDMAX1_OPERATOR_DESC as DML_ACTIVATION_HARDMAX1_OPERATOR_DESC,
    )
    from .specs.activation_softmax import DML_ACTIVATION_HARDMAX_OPERATOR_DESC as DML_ACTIVATION_HARDMAX_OPERATOR_DESC
    from .specs.activation_softmax import (
        DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC as DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC,
    )
    from .specs.activation_softmax import (
        DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC as DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC,
    )
    from .specs.activation_softmax import (
        DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC as DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC,
    )
    from .specs.activation_softmax import DML_ACTIVATION_SOFTMAX_OPERATOR_DESC as DML_ACTIVATION_SOFTMAX_OPERATOR_DESC
    from .specs.cast import DML_CAST_OPERATOR_DESC as DML_CAST_OPERATOR_DESC
    from .specs.convolution import DML_CONVOLUTION_OPERATOR_DESC as DML_CONVOLUTION_OPERATOR_DESC
    from .specs.cumulative import DML_CUMULATIVE_PRODUCT_OPERATOR_DESC as DML_CUMULATIVE_PRODUCT_OPERATOR_DESC
    from .specs.cumulative import DML_CUMULATIVE_SUMMATION_OPERATOR_DESC as DML_CUMULATIVE_SUMMATION_OPERATOR_DESC
    from .specs.element_wise_binary import DML_ELEMENT_WISE_ADD1_OPERATOR_DESC as DML_ELEMENT_WISE_ADD1_OPERATOR_DESC
    from .specs.element_wise_binary import DML_ELEMENT_WISE_ADD_OPERATOR_DESC as DML_ELEMENT_WISE_ADD_OPERATOR_DESC
    from .specs.element_wise_binary import (
        DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC as DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC,
    )
    from .specs.element_wise_binary import DML_ELEMENT_WISE_MAX_OPERATOR_DESC as DML_ELEMENT_WISE_MAX_OPERATOR_DESC
    from .specs.element_wise_binary import DML_ELEMENT_WISE_MEAN_OPERATOR_DESC as DML_ELEMENT_WISE_MEAN_OPERATOR_DESC
    from .specs.element_wise_binary import DML_ELEMENT_WISE_MIN_OPERATOR_DESC as DML_ELEMENT_WISE_MIN_OPERATOR_DESC
    from .specs.element_wise_binary import (
        DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC as DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC,
    )
    from .specs.element_wise_binary import (
        DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC as DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC,
    )
    from .specs.element_wise_binary import DML_ELEMENT_WISE_POW_OPERATOR_DESC as DML_ELEMENT_WISE_POW_OPERATOR_DESC
    from .specs.element_wise_binary import (
        DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC as DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC,
    )
    from .specs.element_wise_unary import DML_ELEMENT_WISE_ABS_OPERATOR_DESC as DML_ELEMENT_WISE_ABS_OPERATOR_DESC
    from .specs.element_wise_unary import DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC as DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC
    from .specs.element_wise_unary import DML_ELEMENT_WISE_CLIP_OPERATOR_DESC as DML_ELEMENT_WISE_CLIP_OPERATOR_DESC
    from .specs.element_wise_unary import DML_ELEMENT_WISE_EXP_OPERATOR_DESC as DML_ELEMENT_WISE_EXP_OPERATOR_DESC
    from .specs.element_wise_unary import (
        DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC as DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC,
    )
    from .specs.element_wise_unary import DML_ELEMENT_WISE_LOG_OPERATOR_DESC as DML_ELEMENT_WISE_LOG_OPERATOR_DESC
    from .specs.element_wise_unary import (
        DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC as DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC,
    )
    from .specs.element_wise_unary import DML_ELEMENT_WISE_RECIP_OPERATOR_DESC as DML_ELEMENT_WISE_RECIP_OPERATOR_DESC
    from .specs.element_wise_unary import DML_ELEMENT_WISE_SQRT_OPERATOR_DESC as DML_ELEMENT_WISE_SQRT_OPERATOR_DESC
    from .specs.element_wise_unary import (
        DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC as DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC,
    )
    from .specs.fill import DML_FILL_VALUE_CONSTANT_OPERATOR_DESC as DML_FILL_VALUE_CONSTANT_OPERATOR_DESC
    from .specs.fill import DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC as DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC
    from .specs.gather import DML_GATHER_OPERATOR_DESC as DML_GATHER_OPERATOR_DESC
    from .specs.gemm import DML_GEMM_OPERATOR_DESC as DML_GEMM_OPERATOR_DESC
    from .specs.image import DML_UPSAMPLE_2D_OPERATOR_DESC as DML_UPSAMPLE_2D_OPERATOR_DESC
    from .specs.image import DML_VALUE_SCALE_2D_OPERATOR_DESC as DML_VALUE_SCALE_2D_OPERATOR_DESC
    from .specs.join import DML_JOIN_OPERATOR_DESC as DML_JOIN_OPERATOR_DESC
    from .specs.join import DML_SPLIT_OPERATOR_DESC as DML_SPLIT_OPERATOR_DESC
    from .specs.max_pooling import DML_MAX_POOLING1_OPERATOR_DESC as DML_MAX_POOLING1_OPERATOR_DESC
    from .specs.max_pooling import DML_MAX_POOLING2_OPERATOR_DESC as DML_MAX_POOLING2_OPERATOR_DESC
    from .specs.max_pooling import DML_MAX_POOLING_OPERATOR_DESC as DML_MAX_POOLING_OPERATOR_DESC
    from .specs.normalization import DML_BATCH_NORMALIZATION_OPERATOR_DESC as DML_BATCH_NORMALIZATION_OPERATOR_DESC
    from .specs.normalization import (
        DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC as DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC,
    )
    from .specs.normalization import (
        DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC as DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC,
    )
    from .specs.normalization import (
        DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC as DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC,
    )
    from .specs.padding import DML_PADDING_OPERATOR_DESC as DML_PADDING_OPERATOR_DESC
    from .specs.pooling import DML_AVERAGE_POOLING_OPERATOR_DESC as DML_AVERAGE_POOLING_OPERATOR_DESC
    from .specs.pooling import DML_LP_POOLING_OPERATOR_DESC as DML_LP_POOLING_OPERATOR_DESC
    from .specs.pooling import (
        DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC as DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    )
    from .specs.recurrent import DML_GRU_OPERATOR_DESC as DML_GRU_OPERATOR_DESC
    from .specs.recurrent import DML_LSTM_OPERATOR_DESC as DML_LSTM_OPERATOR_DESC
    from .specs.recurrent import DML_RNN_OPERATOR_DESC as DML_RNN_OPERATOR_DESC
    from .specs.reduce import DML_REDUCE_OPERATOR_DESC as DML_REDUCE_OPERATOR_DESC
    from .specs.slice import DML_SLICE1_OPERATOR_DESC as DML_SLICE1_OPERATOR_DESC
    from .specs.slice import DML_SLICE_OPERATOR_DESC as DML_SLICE_OPERATOR_DESC

OPERATORS = {
    "ELEMENT_WISE_IDENTITY": "element_wise_unary",
    "ELEMENT_WISE_ABS": "element_wise_unary",
    "ELEMENT_WISE_ADD": "element_wise_binary",
    "ELEMENT_WISE_CLIP": "element_wise_unary",
    "ELEMENT_WISE_DIVIDE": "element_wise_binary",
    "ELEMENT_WISE_EXP": "element_wise_unary",
    "ELEMENT_WISE_LOG": "element_wise_unary",
    "ELEMENT_WISE_MAX": "element_wise_binary",
    "ELEMENT_WISE_MEAN": "element_wise_binary",
    "ELEMENT_WISE_MIN": "element_wise_binary",
    "ELEMENT_WISE_MULTIPLY": "element_wise_binary",
    "ELEMENT_WISE_POW": "element_wise_binary",
    "ELEMENT_WISE_RECIP": "element_wise_unary",
    "ELEMENT_WISE_SQRT": "element_wise_unary",
    "ELEMENT_WISE_SUBTRACT": "element_wise_binary",
    "ELEMENT_WISE_THRESHOLD": "element_wise_unary",
    "ACTIVATION_ELU": "activation",
    "ACTIVATION_HARDMAX": "activation_softmax",
    "ACTIVATION_HARD_SIGMOID": "activation",
    "ACTIVATION_IDENTITY": "activation",
    "ACTIVATION_LEAKY_RELU": "activation",
    "ACTIVATION_LINEAR": "activation",
    "ACTIVATION_LOG_SOFTMAX": "activation_softmax",
    "ACTIVATION_PARAMETERIZED_RELU": "activation_prelu",
    "ACTIVATION_PARAMETRIC_SOFTPLUS": "activation",
    "ACTIVATION_RELU": "activation",
    "ACTIVATION_SCALED_ELU": "activation",
    "ACTIVATION_SCALED_TANH": "activation",
    "ACTIVATION_SIGMOID": "activation",
    "ACTIVATION_SOFTMAX": "activation_softmax",
    "ACTIVATION_SOFTPLUS": "activation",
    "ACTIVATION_SOFTSIGN": "activation",
    "ACTIVATION_TANH": "activation",
    "ACTIVATION_THRESHOLDED_RELU": "activation",
    "CONVOLUTION": "convolution",
    "GEMM": "gemm",
    "REDUCE": "reduce",
    "AVERAGE_POOLING": "pooling",
    "LP_POOLING": "pooling",
    "MAX_POOLING": "max_pooling",
    "SLICE": "slice",
    "CAST": "cast",
    "SPLIT": "join",
    "JOIN": "join",
    "PADDING": "padding",
    "VALUE_SCALE_2D": "image",
    "UPSAMPLE_2D": "image",
    "GATHER": "gather",
    "BATCH_NORMALIZATION": "normalization",
    "MEAN_VARIANCE_NORMALIZATION": "normalization",
    "LOCAL_RESPONSE_NORMALIZATION": "normalization",
    "RNN": "recurrent",
    "LSTM": "recurrent",
    "GRU": "recurrent",
    "ELEMENT_WISE_ADD1": "element_wise_binary",
    "ACTIVATION_SHRINK": "activation",
    "MAX_POOLING1": "max_pooling",
    "ELEMENT_WISE_MODULUS_TRUNCATE": "element_wise_binary",
    "FILL_VALUE_CONSTANT": "fill",
    "FILL_VALUE_SEQUENCE": "fill",
    "CUMULATIVE_SUMMATION": "cumulative",
    "MAX_POOLING2": "max_pooling",
    "SLICE1": "slice",
    "MEAN_VARIANCE_NORMALIZATION1": "normalization",
    "CUMULATIVE_PRODUCT": "cumulative",
    "ELEMENT_WISE_CLIP1": "element_wise_unary",
    "ELEMENT_WISE_NEGATE": "element_wise_unary",
    "ACTIVATION_SOFTMAX1": "activation_softmax",
    "ACTIVATION_LOG_SOFTMAX1": "activation_softmax",
    "ACTIVATION_HARDMAX1": "activation_softmax",
    "QUANTIZED_LINEAR_AVERAGE_POOLING": "pooling",
}
"""Operator to family file, in the order of DML_OPERATOR_TYPE."""

ANY = f"one of the {len(OPERATORS)} operators that `anydml ops` lists"
"""What a message expects; all their names would bury it."""


@cache
def spec(name: str) -> OperatorSpec:
    """The specification of an operator in the table, loading its family where need be."""
    found: OperatorSpec = getattr(import_module(f".specs.{OPERATORS[name]}", __name__), name)
    return found


def spec_of(desc: object) -> OperatorSpec | None:
    """The specification that a desc is of; None where it is no operator's desc."""
    name = type(desc).__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    if name not in OPERATORS:
        return None
    found = spec(name)
    return found if type(desc) is found.desc else None
