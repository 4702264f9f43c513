"""The enums and constants of directml.h, with the header's values.

Class names are PyDirectML's (``DML_TENSOR_DATA_TYPE`` is :class:`TensorDataType`), members are the header's
without their prefix. :func:`parse` reads either spelling.
"""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag
from typing import Final, TypeVar

DML_TENSOR_DIMENSION_COUNT_MAX: Final = 5
"""The most dimensions of a tensor before feature level 3.0."""
DML_TENSOR_DIMENSION_COUNT_MAX1: Final = 8
"""The most dimensions of a tensor from feature level 3.0 on."""
DML_TEMPORARY_BUFFER_ALIGNMENT: Final = 256
DML_PERSISTENT_BUFFER_ALIGNMENT: Final = 256
DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT: Final = 16
"""A binding's offset is a multiple of this, unless its tensor guarantees another alignment."""


class TensorDataType(IntEnum):
    """``DML_TENSOR_DATA_TYPE``. UINT4 and INT4 came with feature level 6.3."""

    UNKNOWN = 0
    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11
    UINT4 = 12
    INT4 = 13

    @property
    def bits(self) -> int:
        """The size of an element in bits; 0 for UNKNOWN."""
        return _BITS[self]


_BITS = (0, 32, 16, 32, 16, 8, 32, 16, 8, 64, 64, 64, 4, 4)


class TensorType(IntEnum):
    """``DML_TENSOR_TYPE``."""

    INVALID = 0
    BUFFER = 1


class TensorFlags(IntFlag):
    """``DML_TENSOR_FLAGS``. An OWNED_BY_DML input is bound when the operator is initialised, not when it runs."""

    NONE = 0
    OWNED_BY_DML = 1


class ExecutionFlags(IntFlag):
    """``DML_EXECUTION_FLAGS``.

    ALLOW_HALF_PRECISION_COMPUTATION lets a GPU round what CONVOLUTION multiplies to TF32, which has FLOAT16's bits
    behind the point and FLOAT32's range; and what GEMM multiplies, by one matrix for all of a batch, or by several
    where the process allows PyTorch as much. No engine here needs the others.
    """

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class BindingType(IntEnum):
    """``DML_BINDING_TYPE``."""

    NONE = 0
    BUFFER = 1
    BUFFER_ARRAY = 2


class AxisDirection(IntEnum):
    """``DML_AXIS_DIRECTION``: whether a scan visits an axis by rising or by falling index."""

    INCREASING = 0
    DECREASING = 1


class MatrixTransform(IntEnum):
    """``DML_MATRIX_TRANSFORM``."""

    NONE = 0
    TRANSPOSE = 1


class ConvolutionMode(IntEnum):
    """``DML_CONVOLUTION_MODE``: whether a forward convolution turns its filter round (CONVOLUTION) or not."""

    CONVOLUTION = 0
    CROSS_CORRELATION = 1


class ConvolutionDirection(IntEnum):
    """``DML_CONVOLUTION_DIRECTION``: BACKWARD is a transposed convolution."""

    FORWARD = 0
    BACKWARD = 1


class RoundingMode(IntEnum):
    """``DML_ROUNDING_MODE``: to the nearest integer, with halves to the even one (HALVES_TO_NEAREST_EVEN) or away from
    zero (TOWARD_INFINITY), or to the next one in the direction of zero."""

    HALVES_TO_NEAREST_EVEN = 0
    TOWARD_ZERO = 1
    TOWARD_INFINITY = 2


class IsInfinityMode(IntEnum):
    """``DML_IS_INFINITY_MODE``: which infinities are looked for."""

    EITHER = 0
    POSITIVE = 1
    NEGATIVE = 2


class PaddingMode(IntEnum):
    """``DML_PADDING_MODE``. SYMMETRIC came with feature level 3.0, WRAP with 6.4."""

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3
    WRAP = 4

    @property
    def since(self) -> FeatureLevel:
        """The first feature level that has it."""
        later = {PaddingMode.SYMMETRIC: FeatureLevel.LEVEL_3_0, PaddingMode.WRAP: FeatureLevel.LEVEL_6_4}
        return later.get(self, FeatureLevel.LEVEL_1_0)


class DepthSpaceOrder(IntEnum):
    """``DML_DEPTH_SPACE_ORDER``: which of the dimensions that the channels of depth are made of is the slowest."""

    DEPTH_COLUMN_ROW = 0
    COLUMN_ROW_DEPTH = 1


class InterpolationMode(IntEnum):
    """``DML_INTERPOLATION_MODE``."""

    NEAREST_NEIGHBOR = 0
    LINEAR = 1


class ReduceFunction(IntEnum):
    """``DML_REDUCE_FUNCTION``."""

    ARGMAX = 0
    ARGMIN = 1
    AVERAGE = 2
    L1 = 3
    L2 = 4
    LOG_SUM = 5
    LOG_SUM_EXP = 6
    MAX = 7
    MIN = 8
    MULTIPLY = 9
    SUM = 10
    SUM_SQUARE = 11


class RecurrentNetworkDirection(IntEnum):
    """``DML_RECURRENT_NETWORK_DIRECTION``."""

    FORWARD = 0
    BACKWARD = 1
    BIDIRECTIONAL = 2


class RandomGeneratorType(IntEnum):
    """``DML_RANDOM_GENERATOR_TYPE``."""

    PHILOX_4X32_10 = 0


class MultiheadAttentionMaskType(IntEnum):
    """``DML_MULTIHEAD_ATTENTION_MASK_TYPE``."""

    NONE = 0
    KEY_SEQUENCE_LENGTH = 1
    KEY_SEQUENCE_END_START = 2
    KEY_QUERY_SEQUENCE_LENGTH_START_END = 3
    BOOLEAN = 4


class QuantizationType(IntEnum):
    """``DML_QUANTIZATION_TYPE``: which tensors say how numbers are quantised, a scale or a scale and a zero point."""

    NONE = 0
    SCALE = 1
    SCALE_ZERO_POINT = 2


class Feature(IntEnum):
    """``DML_FEATURE``: what ``check_feature_support`` can be asked."""

    TENSOR_DATA_TYPE_SUPPORT = 0
    FEATURE_LEVELS = 1


class FeatureLevel(IntEnum):
    """``DML_FEATURE_LEVEL``: which operators, data types and dimension counts a device accepts."""

    LEVEL_1_0 = 0x1000
    LEVEL_2_0 = 0x2000
    LEVEL_2_1 = 0x2100
    LEVEL_3_0 = 0x3000
    LEVEL_3_1 = 0x3100
    LEVEL_4_0 = 0x4000
    LEVEL_4_1 = 0x4100
    LEVEL_5_0 = 0x5000
    LEVEL_5_1 = 0x5100
    LEVEL_5_2 = 0x5200
    LEVEL_6_0 = 0x6000
    LEVEL_6_1 = 0x6100
    LEVEL_6_2 = 0x6200
    LEVEL_6_3 = 0x6300
    LEVEL_6_4 = 0x6400

    @property
    def number(self) -> str:
        """The level as one says it: ``"6.4"``."""
        return f"{self >> 12}.{self >> 8 & 15}"


class HResult(IntEnum):
    """The codes that DirectML answers with; every error of this package carries one as ``hresult``."""

    E_INVALIDARG = 0x80070057
    E_OUTOFMEMORY = 0x8007000E
    DXGI_ERROR_UNSUPPORTED = 0x887A0004


class OperatorType(IntEnum):
    """``DML_OPERATOR_TYPE``: all 177 operators of feature level 6.4, those not yet in this package too."""

    INVALID = 0
    # Feature level 1.0
    ELEMENT_WISE_IDENTITY = 1
    ELEMENT_WISE_ABS = 2
    ELEMENT_WISE_ACOS = 3
    ELEMENT_WISE_ADD = 4
    ELEMENT_WISE_ASIN = 5
    ELEMENT_WISE_ATAN = 6
    ELEMENT_WISE_CEIL = 7
    ELEMENT_WISE_CLIP = 8
    ELEMENT_WISE_COS = 9
    ELEMENT_WISE_DIVIDE = 10
    ELEMENT_WISE_EXP = 11
    ELEMENT_WISE_FLOOR = 12
    ELEMENT_WISE_LOG = 13
    ELEMENT_WISE_LOGICAL_AND = 14
    ELEMENT_WISE_LOGICAL_EQUALS = 15
    ELEMENT_WISE_LOGICAL_GREATER_THAN = 16
    ELEMENT_WISE_LOGICAL_LESS_THAN = 17
    ELEMENT_WISE_LOGICAL_NOT = 18
    ELEMENT_WISE_LOGICAL_OR = 19
    ELEMENT_WISE_LOGICAL_XOR = 20
    ELEMENT_WISE_MAX = 21
    ELEMENT_WISE_MEAN = 22
    ELEMENT_WISE_MIN = 23
    ELEMENT_WISE_MULTIPLY = 24
    ELEMENT_WISE_POW = 25
    ELEMENT_WISE_CONSTANT_POW = 26
    ELEMENT_WISE_RECIP = 27
    ELEMENT_WISE_SIN = 28
    ELEMENT_WISE_SQRT = 29
    ELEMENT_WISE_SUBTRACT = 30
    ELEMENT_WISE_TAN = 31
    ELEMENT_WISE_THRESHOLD = 32
    ELEMENT_WISE_QUANTIZE_LINEAR = 33
    ELEMENT_WISE_DEQUANTIZE_LINEAR = 34
    ACTIVATION_ELU = 35
    ACTIVATION_HARDMAX = 36
    ACTIVATION_HARD_SIGMOID = 37
    ACTIVATION_IDENTITY = 38
    ACTIVATION_LEAKY_RELU = 39
    ACTIVATION_LINEAR = 40
    ACTIVATION_LOG_SOFTMAX = 41
    ACTIVATION_PARAMETERIZED_RELU = 42
    ACTIVATION_PARAMETRIC_SOFTPLUS = 43
    ACTIVATION_RELU = 44
    ACTIVATION_SCALED_ELU = 45
    ACTIVATION_SCALED_TANH = 46
    ACTIVATION_SIGMOID = 47
    ACTIVATION_SOFTMAX = 48
    ACTIVATION_SOFTPLUS = 49
    ACTIVATION_SOFTSIGN = 50
    ACTIVATION_TANH = 51
    ACTIVATION_THRESHOLDED_RELU = 52
    CONVOLUTION = 53
    GEMM = 54
    REDUCE = 55
    AVERAGE_POOLING = 56
    LP_POOLING = 57
    MAX_POOLING = 58
    ROI_POOLING = 59
    SLICE = 60
    CAST = 61
    SPLIT = 62
    JOIN = 63
    PADDING = 64
    VALUE_SCALE_2D = 65
    UPSAMPLE_2D = 66
    GATHER = 67
    SPACE_TO_DEPTH = 68
    DEPTH_TO_SPACE = 69
    TILE = 70
    TOP_K = 71
    BATCH_NORMALIZATION = 72
    MEAN_VARIANCE_NORMALIZATION = 73
    LOCAL_RESPONSE_NORMALIZATION = 74
    LP_NORMALIZATION = 75
    RNN = 76
    LSTM = 77
    GRU = 78
    # Feature level 2.0
    ELEMENT_WISE_SIGN = 79
    ELEMENT_WISE_IS_NAN = 80
    ELEMENT_WISE_ERF = 81
    ELEMENT_WISE_SINH = 82
    ELEMENT_WISE_COSH = 83
    ELEMENT_WISE_TANH = 84
    ELEMENT_WISE_ASINH = 85
    ELEMENT_WISE_ACOSH = 86
    ELEMENT_WISE_ATANH = 87
    ELEMENT_WISE_IF = 88
    ELEMENT_WISE_ADD1 = 89
    ACTIVATION_SHRINK = 90
    MAX_POOLING1 = 91
    MAX_UNPOOLING = 92
    DIAGONAL_MATRIX = 93
    SCATTER_ELEMENTS = 94
    SCATTER = 94  # what the first headers with it call it
    ONE_HOT = 95
    RESAMPLE = 96
    # Feature level 2.1
    ELEMENT_WISE_BIT_SHIFT_LEFT = 97
    ELEMENT_WISE_BIT_SHIFT_RIGHT = 98
    ELEMENT_WISE_ROUND = 99
    ELEMENT_WISE_IS_INFINITY = 100
    ELEMENT_WISE_MODULUS_TRUNCATE = 101
    ELEMENT_WISE_MODULUS_FLOOR = 102
    FILL_VALUE_CONSTANT = 103
    FILL_VALUE_SEQUENCE = 104
    CUMULATIVE_SUMMATION = 105
    REVERSE_SUBSEQUENCES = 106
    GATHER_ELEMENTS = 107
    GATHER_ND = 108
    SCATTER_ND = 109
    MAX_POOLING2 = 110
    SLICE1 = 111
    TOP_K1 = 112
    DEPTH_TO_SPACE1 = 113
    SPACE_TO_DEPTH1 = 114
    MEAN_VARIANCE_NORMALIZATION1 = 115
    RESAMPLE1 = 116
    MATRIX_MULTIPLY_INTEGER = 117
    QUANTIZED_LINEAR_MATRIX_MULTIPLY = 118
    CONVOLUTION_INTEGER = 119
    QUANTIZED_LINEAR_CONVOLUTION = 120
    # Feature level 3.0
    ELEMENT_WISE_BIT_AND = 121
    ELEMENT_WISE_BIT_OR = 122
    ELEMENT_WISE_BIT_XOR = 123
    ELEMENT_WISE_BIT_NOT = 124
    ELEMENT_WISE_BIT_COUNT = 125
    ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL = 126
    ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL = 127
    ACTIVATION_CELU = 128
    ACTIVATION_RELU_GRAD = 129
    AVERAGE_POOLING_GRAD = 130
    MAX_POOLING_GRAD = 131
    RANDOM_GENERATOR = 132
    NONZERO_COORDINATES = 133
    RESAMPLE_GRAD = 134
    SLICE_GRAD = 135
    ADAM_OPTIMIZER = 136
    ARGMIN = 137
    ARGMAX = 138
    ROI_ALIGN = 139
    GATHER_ND1 = 140
    # Feature level 3.1
    ELEMENT_WISE_ATAN_YX = 141
    ELEMENT_WISE_CLIP_GRAD = 142
    ELEMENT_WISE_DIFFERENCE_SQUARE = 143
    LOCAL_RESPONSE_NORMALIZATION_GRAD = 144
    CUMULATIVE_PRODUCT = 145
    BATCH_NORMALIZATION_GRAD = 146
    # Feature level 4.0
    ELEMENT_WISE_QUANTIZED_LINEAR_ADD = 147
    DYNAMIC_QUANTIZE_LINEAR = 148
    ROI_ALIGN1 = 149
    # Feature level 4.1
    ROI_ALIGN_GRAD = 150
    BATCH_NORMALIZATION_TRAINING = 151
    BATCH_NORMALIZATION_TRAINING_GRAD = 152
    # Feature level 5.0
    ELEMENT_WISE_CLIP1 = 153
    ELEMENT_WISE_CLIP_GRAD1 = 154
    PADDING1 = 155
    ELEMENT_WISE_NEGATE = 156
    # Feature level 5.1
    ACTIVATION_GELU = 157
    ACTIVATION_SOFTMAX1 = 158
    ACTIVATION_LOG_SOFTMAX1 = 159
    ACTIVATION_HARDMAX1 = 160
    RESAMPLE2 = 161
    RESAMPLE_GRAD1 = 162
    DIAGONAL_MATRIX1 = 163
    # Feature level 6.1
    MULTIHEAD_ATTENTION = 164
    # Feature level 6.2
    LP_POOLING1 = 165
    AVERAGE_POOLING1 = 166
    ACTIVATION_SWISH = 167
    ACTIVATION_HARD_SWISH = 168
    QUANTIZED_LINEAR_AVERAGE_POOLING = 169
    MATRIX_MULTIPLY_INTEGER_TO_FLOAT = 170
    # Feature level 6.3
    MEAN_VARIANCE_NORMALIZATION2 = 171
    MULTIHEAD_ATTENTION1 = 172
    QUANTIZE = 173
    DEQUANTIZE = 174
    # Feature level 6.4
    RESAMPLE3 = 175
    FOLD = 176
    UNFOLD = 177


_Member = TypeVar("_Member", bound=Enum)

PREFIXES: Final[dict[type[Enum], str]] = {
    TensorDataType: "DML_TENSOR_DATA_TYPE_",
    TensorType: "DML_TENSOR_TYPE_",
    TensorFlags: "DML_TENSOR_FLAG_",
    ExecutionFlags: "DML_EXECUTION_FLAG_",
    BindingType: "DML_BINDING_TYPE_",
    AxisDirection: "DML_AXIS_DIRECTION_",
    MatrixTransform: "DML_MATRIX_TRANSFORM_",
    ConvolutionMode: "DML_CONVOLUTION_MODE_",
    ConvolutionDirection: "DML_CONVOLUTION_DIRECTION_",
    RoundingMode: "DML_ROUNDING_MODE_",
    IsInfinityMode: "DML_IS_INFINITY_MODE_",
    PaddingMode: "DML_PADDING_MODE_",
    InterpolationMode: "DML_INTERPOLATION_MODE_",
    DepthSpaceOrder: "DML_DEPTH_SPACE_ORDER_",
    ReduceFunction: "DML_REDUCE_FUNCTION_",
    RecurrentNetworkDirection: "DML_RECURRENT_NETWORK_DIRECTION_",
    RandomGeneratorType: "DML_RANDOM_GENERATOR_TYPE_",
    MultiheadAttentionMaskType: "DML_MULTIHEAD_ATTENTION_MASK_TYPE_",
    QuantizationType: "DML_QUANTIZATION_TYPE_",
    Feature: "DML_FEATURE_",
    FeatureLevel: "DML_FEATURE_",
    OperatorType: "DML_OPERATOR_",
}
"""What the header writes before a member's name."""


TYPE_NAMES: Final[dict[str, type[Enum]]] = {
    "DML_TENSOR_DATA_TYPE": TensorDataType,
    "DML_TENSOR_TYPE": TensorType,
    "DML_TENSOR_FLAGS": TensorFlags,
    "DML_EXECUTION_FLAGS": ExecutionFlags,
    "DML_BINDING_TYPE": BindingType,
    "DML_AXIS_DIRECTION": AxisDirection,
    "DML_MATRIX_TRANSFORM": MatrixTransform,
    "DML_CONVOLUTION_MODE": ConvolutionMode,
    "DML_CONVOLUTION_DIRECTION": ConvolutionDirection,
    "DML_ROUNDING_MODE": RoundingMode,
    "DML_IS_INFINITY_MODE": IsInfinityMode,
    "DML_PADDING_MODE": PaddingMode,
    "DML_INTERPOLATION_MODE": InterpolationMode,
    "DML_DEPTH_SPACE_ORDER": DepthSpaceOrder,
    "DML_REDUCE_FUNCTION": ReduceFunction,
    "DML_RECURRENT_NETWORK_DIRECTION": RecurrentNetworkDirection,
    "DML_RANDOM_GENERATOR_TYPE": RandomGeneratorType,
    "DML_MULTIHEAD_ATTENTION_MASK_TYPE": MultiheadAttentionMaskType,
    "DML_QUANTIZATION_TYPE": QuantizationType,
    "DML_FEATURE": Feature,
    "DML_FEATURE_LEVEL": FeatureLevel,
    "DML_OPERATOR_TYPE": OperatorType,
}
"""The classes by the header's names."""


def named(name: str) -> type[Enum] | Enum | None:
    """The enum, or the member of one, that a name of the header's is; None where it is neither.

    >>> named("DML_TENSOR_FLAGS"), named("DML_TENSOR_FLAG_OWNED_BY_DML")
    (<flag 'TensorFlags'>, <TensorFlags.OWNED_BY_DML: 1>)
    """
    if name in TYPE_NAMES:
        return TYPE_NAMES[name]
    members = (parse(enum, name) for enum, prefix in PREFIXES.items() if name.startswith(prefix))
    return next((member for member in members if member is not None), None)


def parse(enum: type[_Member], name: str) -> _Member | None:
    """The member that `name` spells, in full (``DML_AXIS_DIRECTION_INCREASING``) or short; None where none does."""
    return enum.__members__.get(name.removeprefix(PREFIXES[enum]))


def member_spelt(enum: type[_Member], value: object) -> object:
    """The member that a name spells, be it in small letters; any other value as it is."""
    if not isinstance(value, str):
        return value
    name = value.rpartition(".")[2]
    exact = parse(enum, name)
    found = parse(enum, name.upper()) if exact is None else exact
    return value if found is None else found
