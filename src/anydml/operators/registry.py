"""The table of operators: one row for each, with its family, its function and its traits.

A family is a file of ``operators/specs`` and of ``functions``; both are loaded on first use. Everything that must know
which operators there are, or of what kind one is, reads it here.
"""

from __future__ import annotations

from enum import Flag, auto
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from .schema import OperatorSpec


class Trait(Flag):
    """What engines, graphs and functions need to know of an operator before its family is loaded."""

    NONE = 0
    POINTWISE = auto()
    """Each element of the output depends on the elements at its place alone; all tensors have the same sizes."""
    FUSIBLE = auto()
    """It may be the FusedActivation of some operators, from the feature level on that its specification gives."""
    MOVEMENT = auto()
    """It copies elements, and computes nothing of their values."""
    IN_PLACE = auto()
    """DirectML promises that the output may be the memory of an input."""


POINTWISE, FUSIBLE, MOVEMENT, IN_PLACE = Trait.POINTWISE, Trait.FUSIBLE, Trait.MOVEMENT, Trait.IN_PLACE


class Op(NamedTuple):
    """A row of the table."""

    family: str
    """The file in ``operators/specs`` and in ``functions``."""
    function: str
    """An operator and its later revisions are one function."""
    traits: Trait = Trait.NONE


OPERATORS = {
    "ELEMENT_WISE_IDENTITY": Op("element_wise", "identity", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ABS": Op("element_wise", "abs", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ACOS": Op("trigonometric", "acos", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ADD": Op("arithmetic", "add", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ASIN": Op("trigonometric", "asin", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ATAN": Op("trigonometric", "atan", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_CEIL": Op("element_wise", "ceil", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_CLIP": Op("clip", "clip", POINTWISE | FUSIBLE | IN_PLACE),
    "ELEMENT_WISE_COS": Op("trigonometric", "cos", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_DIVIDE": Op("arithmetic", "divide", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_EXP": Op("element_wise", "exp", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_FLOOR": Op("element_wise", "floor", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_LOG": Op("element_wise", "log", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_LOGICAL_AND": Op("logical", "logical_and", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_LOGICAL_EQUALS": Op("logical", "equals", POINTWISE),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": Op("logical", "greater_than", POINTWISE),
    "ELEMENT_WISE_LOGICAL_LESS_THAN": Op("logical", "less_than", POINTWISE),
    "ELEMENT_WISE_LOGICAL_NOT": Op("logical", "logical_not", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_LOGICAL_OR": Op("logical", "logical_or", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_LOGICAL_XOR": Op("logical", "logical_xor", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_MAX": Op("arithmetic", "max", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_MEAN": Op("arithmetic", "mean", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_MIN": Op("arithmetic", "min", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_MULTIPLY": Op("arithmetic", "multiply", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_POW": Op("element_wise", "pow", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_CONSTANT_POW": Op("element_wise", "pow", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_RECIP": Op("element_wise", "recip", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_SIN": Op("trigonometric", "sin", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_SQRT": Op("element_wise", "sqrt", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_SUBTRACT": Op("arithmetic", "subtract", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_TAN": Op("trigonometric", "tan", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_THRESHOLD": Op("clip", "threshold", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_QUANTIZE_LINEAR": Op("quantization", "quantize_linear", POINTWISE),
    "ELEMENT_WISE_DEQUANTIZE_LINEAR": Op("quantization", "dequantize_linear", POINTWISE),
    "ACTIVATION_ELU": Op("activation", "elu", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_HARDMAX": Op("softmax", "hardmax"),
    "ACTIVATION_HARD_SIGMOID": Op("activation", "hard_sigmoid", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_IDENTITY": Op("activation", "identity", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_LEAKY_RELU": Op("activation", "leaky_relu", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_LINEAR": Op("activation", "linear", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_LOG_SOFTMAX": Op("softmax", "log_softmax"),
    "ACTIVATION_PARAMETERIZED_RELU": Op("activation", "parameterized_relu", POINTWISE | IN_PLACE),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": Op("activation", "parametric_softplus", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_RELU": Op("activation", "relu", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_SCALED_ELU": Op("activation", "scaled_elu", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_SCALED_TANH": Op("activation", "scaled_tanh", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_SIGMOID": Op("activation", "sigmoid", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_SOFTMAX": Op("softmax", "softmax", FUSIBLE),
    "ACTIVATION_SOFTPLUS": Op("activation", "softplus", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_SOFTSIGN": Op("activation", "softsign", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_TANH": Op("activation", "tanh", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_THRESHOLDED_RELU": Op("activation", "thresholded_relu", POINTWISE | FUSIBLE | IN_PLACE),
    "CONVOLUTION": Op("convolution", "convolution"),
    "GEMM": Op("gemm", "gemm"),
    "REDUCE": Op("reduce", "reduce"),
    "AVERAGE_POOLING": Op("pooling", "average_pooling"),
    "LP_POOLING": Op("pooling", "lp_pooling"),
    "MAX_POOLING": Op("max_pooling", "max_pooling"),
    "ROI_POOLING": Op("roi_pooling", "roi_pooling"),
    "SLICE": Op("slice", "slice", MOVEMENT),
    "CAST": Op("cast", "cast"),
    "SPLIT": Op("join", "split", MOVEMENT),
    "JOIN": Op("join", "join", MOVEMENT),
    "PADDING": Op("padding", "padding", MOVEMENT),
    "VALUE_SCALE_2D": Op("image", "value_scale_2d"),
    "UPSAMPLE_2D": Op("image", "upsample_2d", MOVEMENT),
    "GATHER": Op("gather", "gather", MOVEMENT),
    "SPACE_TO_DEPTH": Op("depth_space", "space_to_depth", MOVEMENT),
    "DEPTH_TO_SPACE": Op("depth_space", "depth_to_space", MOVEMENT),
    "TILE": Op("tile", "tile", MOVEMENT),
    "TOP_K": Op("top_k", "top_k"),
    "BATCH_NORMALIZATION": Op("normalization", "batch_normalization"),
    "MEAN_VARIANCE_NORMALIZATION": Op("normalization", "mean_variance_normalization"),
    "LOCAL_RESPONSE_NORMALIZATION": Op("local_response", "local_response_normalization"),
    "LP_NORMALIZATION": Op("lp_normalization", "lp_normalization"),
    "RNN": Op("recurrent", "rnn"),
    "LSTM": Op("recurrent", "lstm"),
    "GRU": Op("recurrent", "gru"),
    "ELEMENT_WISE_SIGN": Op("element_wise", "sign", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_IS_NAN": Op("logical", "is_nan", POINTWISE),
    "ELEMENT_WISE_ERF": Op("element_wise", "erf", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_SINH": Op("trigonometric", "sinh", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_COSH": Op("trigonometric", "cosh", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_TANH": Op("trigonometric", "tanh", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ASINH": Op("trigonometric", "asinh", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ACOSH": Op("trigonometric", "acosh", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ATANH": Op("trigonometric", "atanh", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_IF": Op("logical", "if_", POINTWISE),
    "ELEMENT_WISE_ADD1": Op("arithmetic", "add", POINTWISE | IN_PLACE),
    "ACTIVATION_SHRINK": Op("activation", "shrink", POINTWISE | FUSIBLE | IN_PLACE),
    "MAX_POOLING1": Op("max_pooling", "max_pooling"),
    "MAX_UNPOOLING": Op("max_unpooling", "max_unpooling"),
    "DIAGONAL_MATRIX": Op("diagonal", "diagonal_matrix"),
    "SCATTER_ELEMENTS": Op("gather_elements", "scatter_elements", MOVEMENT),
    "ONE_HOT": Op("one_hot", "one_hot"),
    "RESAMPLE": Op("resample", "resample"),
    "ELEMENT_WISE_BIT_SHIFT_LEFT": Op("bits", "bit_shift_left", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_BIT_SHIFT_RIGHT": Op("bits", "bit_shift_right", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_ROUND": Op("element_wise", "round", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_IS_INFINITY": Op("logical", "is_infinity", POINTWISE),
    "ELEMENT_WISE_MODULUS_TRUNCATE": Op("arithmetic", "modulus_truncate", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_MODULUS_FLOOR": Op("arithmetic", "modulus_floor", POINTWISE | IN_PLACE),
    "FILL_VALUE_CONSTANT": Op("fill", "fill_value_constant"),
    "FILL_VALUE_SEQUENCE": Op("fill", "fill_value_sequence"),
    "CUMULATIVE_SUMMATION": Op("scan", "cumulative_summation", IN_PLACE),
    "REVERSE_SUBSEQUENCES": Op("reverse", "reverse_subsequences", MOVEMENT),
    "GATHER_ELEMENTS": Op("gather_elements", "gather_elements", MOVEMENT),
    "GATHER_ND": Op("gather_nd", "gather_nd", MOVEMENT),
    "SCATTER_ND": Op("gather_nd", "scatter_nd", MOVEMENT),
    "MAX_POOLING2": Op("max_pooling", "max_pooling"),
    "SLICE1": Op("slice", "slice", MOVEMENT),
    "TOP_K1": Op("top_k", "top_k"),
    "DEPTH_TO_SPACE1": Op("depth_space", "depth_to_space", MOVEMENT),
    "SPACE_TO_DEPTH1": Op("depth_space", "space_to_depth", MOVEMENT),
    "MEAN_VARIANCE_NORMALIZATION1": Op("normalization", "mean_variance_normalization"),
    "RESAMPLE1": Op("resample", "resample"),
    "MATRIX_MULTIPLY_INTEGER": Op("integer_gemm", "matrix_multiply_integer"),
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": Op("integer_gemm", "quantized_linear_matrix_multiply"),
    "CONVOLUTION_INTEGER": Op("integer_convolution", "convolution_integer"),
    "QUANTIZED_LINEAR_CONVOLUTION": Op("integer_convolution", "quantized_linear_convolution"),
    "ELEMENT_WISE_BIT_AND": Op("bits", "bit_and", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_BIT_OR": Op("bits", "bit_or", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_BIT_XOR": Op("bits", "bit_xor", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_BIT_NOT": Op("bits", "bit_not", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_BIT_COUNT": Op("bits", "bit_count", POINTWISE),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": Op("logical", "greater_than_or_equal", POINTWISE),
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": Op("logical", "less_than_or_equal", POINTWISE),
    "ACTIVATION_CELU": Op("activation", "celu", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_RELU_GRAD": Op("activation", "relu_grad", POINTWISE),
    "AVERAGE_POOLING_GRAD": Op("pooling_grad", "average_pooling_grad"),
    "MAX_POOLING_GRAD": Op("pooling_grad", "max_pooling_grad"),
    "RANDOM_GENERATOR": Op("random", "random_generator"),
    "NONZERO_COORDINATES": Op("nonzero", "nonzero_coordinates"),
    "RESAMPLE_GRAD": Op("resample", "resample_grad"),
    "SLICE_GRAD": Op("slice", "slice_grad", MOVEMENT),
    "ADAM_OPTIMIZER": Op("adam", "adam_optimizer", IN_PLACE),
    "ARGMIN": Op("reduce", "argmin"),
    "ARGMAX": Op("reduce", "argmax"),
    "ROI_ALIGN": Op("roi_align", "roi_align"),
    "GATHER_ND1": Op("gather_nd", "gather_nd", MOVEMENT),
    "ELEMENT_WISE_ATAN_YX": Op("trigonometric", "atan_yx", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_CLIP_GRAD": Op("clip", "clip_grad", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_DIFFERENCE_SQUARE": Op("arithmetic", "difference_square", POINTWISE | IN_PLACE),
    "LOCAL_RESPONSE_NORMALIZATION_GRAD": Op("local_response", "local_response_normalization_grad"),
    "CUMULATIVE_PRODUCT": Op("scan", "cumulative_product", IN_PLACE),
    "BATCH_NORMALIZATION_GRAD": Op("batch_training", "batch_normalization_grad"),
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD": Op("quantization", "quantized_linear_add", POINTWISE),
    "DYNAMIC_QUANTIZE_LINEAR": Op("dynamic_quantization", "dynamic_quantize_linear"),
    "ROI_ALIGN1": Op("roi_align", "roi_align"),
    "ROI_ALIGN_GRAD": Op("roi_align", "roi_align_grad"),
    "BATCH_NORMALIZATION_TRAINING": Op("batch_training", "batch_normalization_training"),
    "BATCH_NORMALIZATION_TRAINING_GRAD": Op("batch_training", "batch_normalization_training_grad"),
    "ELEMENT_WISE_CLIP1": Op("clip", "clip", POINTWISE | IN_PLACE),
    "ELEMENT_WISE_CLIP_GRAD1": Op("clip", "clip_grad", POINTWISE | IN_PLACE),
    "PADDING1": Op("padding", "padding", MOVEMENT),
    "ELEMENT_WISE_NEGATE": Op("element_wise", "negate", POINTWISE | IN_PLACE),
    "ACTIVATION_GELU": Op("activation", "gelu", POINTWISE | FUSIBLE | IN_PLACE),
    "ACTIVATION_SOFTMAX1": Op("softmax", "softmax", FUSIBLE),
    "ACTIVATION_LOG_SOFTMAX1": Op("softmax", "log_softmax"),
    "ACTIVATION_HARDMAX1": Op("softmax", "hardmax"),
    "RESAMPLE2": Op("resample", "resample"),
    "RESAMPLE_GRAD1": Op("resample", "resample_grad"),
    "DIAGONAL_MATRIX1": Op("diagonal", "diagonal_matrix"),
    "MULTIHEAD_ATTENTION": Op("attention", "multihead_attention"),
    "LP_POOLING1": Op("pooling", "lp_pooling"),
    "AVERAGE_POOLING1": Op("pooling", "average_pooling"),
    "ACTIVATION_SWISH": Op("activation", "swish", POINTWISE | IN_PLACE),
    "ACTIVATION_HARD_SWISH": Op("activation", "hard_swish", POINTWISE | IN_PLACE),
    "QUANTIZED_LINEAR_AVERAGE_POOLING": Op("pooling", "quantized_linear_average_pooling"),
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": Op("integer_gemm", "matrix_multiply_integer_to_float"),
    "MEAN_VARIANCE_NORMALIZATION2": Op("normalization", "mean_variance_normalization"),
    "MULTIHEAD_ATTENTION1": Op("attention", "multihead_attention"),
    "QUANTIZE": Op("quantize", "quantize"),
    "DEQUANTIZE": Op("quantize", "dequantize"),
    "RESAMPLE3": Op("resample", "resample"),
    "FOLD": Op("fold", "fold"),
    "UNFOLD": Op("unfold", "unfold", MOVEMENT),
}
"""The operators by the header's names without their prefix, in the order of DML_OPERATOR_TYPE."""

ANY_OPERATOR = f"one of the {len(OPERATORS)} operators that `anydml ops` lists"
"""What a message expects; all their names would bury it."""


@cache
def spec(name: str) -> OperatorSpec:
    """The specification of an operator in the table, loading its family where need be."""
    from .schema import OperatorSpec

    found = getattr(import_module(f".specs.{OPERATORS[name].family}", __package__), name)
    # A pointwise operator is a row, whose desc class is made now.
    return found if isinstance(found, OperatorSpec) else cast("OperatorSpec", found.specification(name))


def spec_of(desc: object) -> OperatorSpec | None:
    """The specification that a desc belongs to; None where it is no operator's desc."""
    name = type(desc).__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    if name not in OPERATORS:
        return None
    found = spec(name)
    return found if type(desc) is found.desc else None


def with_trait(trait: Trait) -> tuple[str, ...]:
    """The names of the operators that have a trait."""
    return tuple(name for name, op in OPERATORS.items() if trait in op.traits)
