"""The functions that apply an operator to expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml import (
    DML_SIZE_2D,
    ConvolutionDirection,
    ConvolutionMode,
    InterpolationMode,
    MatrixTransform,
    PaddingMode,
    RecurrentNetworkDirection,
    TensorDataType,
)
from anydml.core.errors import kind_of
from anydml.frontends.directmlx import Expression as Built
from anydml.operators import spec

from ._expressions import Expression, FusedActivation, GRUOutputs, MaxPoolingOutputs, OutputOptions, Size2D, built_of
from ._models import GraphBuilder
from ._tensors import TensorDesc, wrong


def _apply(name: str, **members: Any) -> list[Expression]:
    """An operator on expressions. Those that are None, and activations that are none, are left out."""
    given = {member: _unwrapped(name, member, value) for member, value in members.items()}
    flat = [each for value in given.values() for each in (value if isinstance(value, list) else [value])]
    first = next((each for each in flat if isinstance(each, Built)), None)
    if first is None:
        member, value = next(iter(members.items()))
        raise wrong(name, kind_of(value), "an Expression", member)
    found = spec(name)
    absent = [m for m, value in given.items() if value is None and (m in found.tensors or m == "FusedActivation")]
    outputs = first.graph.operator(found.desc, **{m: value for m, value in given.items() if m not in absent})
    return [Expression(each) for each in outputs]


def _unwrapped(name: str, member: str, value: Any) -> Any:
    if isinstance(value, FusedActivation):
        return value._desc()
    if isinstance(value, Expression):
        return built_of(name, member, value)
    if isinstance(value, TensorDesc):
        return value._desc
    if isinstance(value, (list, tuple)):
        return [_unwrapped(name, member, each) for each in value]
    return value


def _spatial(input: Expression, values: Sequence[int], otherwise: int) -> list[int]:
    """For each spatial dimension; an empty list is the default's."""
    return list(values) or [otherwise] * (len(built_of("", "input", input).tensor.Sizes) - 2)


_NONE = FusedActivation()


def input_tensor(scope: GraphBuilder, input_index: int, tensor_desc: TensorDesc) -> Expression:
    """An input of the graph."""
    return Expression(scope._graph.input(tensor_desc._desc, input_index))


def convolution(
    input: Expression,
    filter: Expression,
    bias: Expression | None = None,
    mode: ConvolutionMode = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    group_count: int = 1,
    fused_activation: FusedActivation = _NONE,
    output_sizes: Sequence[int] = (),
) -> Expression:
    """DML_OPERATOR_CONVOLUTION. Strides and dilations are 1 and paddings 0 where they are left out."""
    output = None
    if output_sizes:
        output = TensorDesc(built_of("convolution", "input", input).tensor.DataType, list(output_sizes))
    return _apply(
        "CONVOLUTION",
        InputTensor=input,
        FilterTensor=filter,
        BiasTensor=bias,
        OutputTensor=output,
        Mode=mode,
        Direction=direction,
        Strides=_spatial(input, strides, 1),
        Dilations=_spatial(input, dilations, 1),
        StartPadding=_spatial(input, start_padding, 0),
        EndPadding=_spatial(input, end_padding, 0),
        OutputPadding=_spatial(input, output_padding, 0),
        GroupCount=group_count,
        FusedActivation=fused_activation,
    )[0]


def up_sample_2d(input: Expression, scale_size: Size2D, interpolation_mode: InterpolationMode) -> Expression:
    """DML_OPERATOR_UPSAMPLE_2D."""
    size = DML_SIZE_2D(Width=scale_size.width, Height=scale_size.height)
    return _apply("UPSAMPLE_2D", InputTensor=input, ScaleSize=size, InterpolationMode=interpolation_mode)[0]


def activation_relu(input: Expression) -> Expression:
    """DML_OPERATOR_ACTIVATION_RELU."""
    return _apply("ACTIVATION_RELU", InputTensor=input)[0]


def activation_sigmoid(input: Expression) -> Expression:
    """DML_OPERATOR_ACTIVATION_SIGMOID."""
    return _apply("ACTIVATION_SIGMOID", InputTensor=input)[0]


def activation_identity(input: Expression) -> Expression:
    """DML_OPERATOR_ACTIVATION_IDENTITY."""
    return _apply("ACTIVATION_IDENTITY", InputTensor=input)[0]


def activation_tanh(input: Expression) -> Expression:
    """DML_OPERATOR_ACTIVATION_TANH."""
    return _apply("ACTIVATION_TANH", InputTensor=input)[0]


def activation_linear(input: Expression, alpha: float, beta: float) -> Expression:
    """DML_OPERATOR_ACTIVATION_LINEAR."""
    return _apply("ACTIVATION_LINEAR", InputTensor=input, Alpha=alpha, Beta=beta)[0]


def activation_soft_max(input: Expression) -> Expression:
    """DML_OPERATOR_ACTIVATION_SOFTMAX."""
    return _apply("ACTIVATION_SOFTMAX", InputTensor=input)[0]


def add(a: Expression, b: Expression, fused_activation: FusedActivation = _NONE) -> Expression:
    """DML_OPERATOR_ELEMENT_WISE_ADD1."""
    return _apply("ELEMENT_WISE_ADD1", ATensor=a, BTensor=b, FusedActivation=fused_activation)[0]


def subtract(a: Expression, b: Expression) -> Expression:
    """DML_OPERATOR_ELEMENT_WISE_SUBTRACT."""
    return _apply("ELEMENT_WISE_SUBTRACT", ATensor=a, BTensor=b)[0]


def multiply(a: Expression, b: Expression) -> Expression:
    """DML_OPERATOR_ELEMENT_WISE_MULTIPLY."""
    return _apply("ELEMENT_WISE_MULTIPLY", ATensor=a, BTensor=b)[0]


def divide(a: Expression, b: Expression) -> Expression:
    """DML_OPERATOR_ELEMENT_WISE_DIVIDE."""
    return _apply("ELEMENT_WISE_DIVIDE", ATensor=a, BTensor=b)[0]


def padding(
    input: Expression,
    padding_mode: PaddingMode,
    padding_value: float,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """DML_OPERATOR_PADDING."""
    return _apply(
        "PADDING",
        InputTensor=input,
        PaddingMode=padding_mode,
        PaddingValue=padding_value,
        StartPadding=start_padding,
        EndPadding=end_padding,
    )[0]


def mean_variance_normalization(
    input: Expression,
    scale: Expression | None = None,
    bias: Expression | None = None,
    axes: Sequence[int] = (),
    normalize_variance: bool | None = None,
    epsilon: float | None = None,
    fused_activation: FusedActivation = _NONE,
) -> Expression:
    """DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1. normalize_variance and epsilon have to be given."""
    return _apply(
        "MEAN_VARIANCE_NORMALIZATION1",
        InputTensor=input,
        ScaleTensor=scale,
        BiasTensor=bias,
        Axes=axes,
        NormalizeVariance=normalize_variance,
        Epsilon=epsilon,
        FusedActivation=fused_activation,
    )[0]


def slice(
    input: Expression,
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """DML_OPERATOR_SLICE1."""
    return _apply(
        "SLICE1",
        InputTensor=input,
        InputWindowOffsets=input_window_offsets,
        InputWindowSizes=input_window_sizes,
        InputWindowStrides=input_window_strides,
    )[0]


def value_scale_2d(input: Expression, scale: float, bias: Sequence[float]) -> Expression:
    """DML_OPERATOR_VALUE_SCALE_2D."""
    return _apply("VALUE_SCALE_2D", InputTensor=input, Scale=scale, Bias=bias)[0]


def batch_normalization(
    input: Expression,
    mean: Expression,
    variance: Expression,
    scale: Expression,
    bias: Expression,
    spatial: bool,
    epsilon: float,
    fused_activation: FusedActivation = _NONE,
) -> Expression:
    """DML_OPERATOR_BATCH_NORMALIZATION."""
    return _apply(
        "BATCH_NORMALIZATION",
        InputTensor=input,
        MeanTensor=mean,
        VarianceTensor=variance,
        ScaleTensor=scale,
        BiasTensor=bias,
        Spatial=spatial,
        Epsilon=epsilon,
        FusedActivation=fused_activation,
    )[0]


def local_response_normalization(
    input: Expression, cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float
) -> Expression:
    """DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION."""
    return _apply(
        "LOCAL_RESPONSE_NORMALIZATION",
        InputTensor=input,
        CrossChannel=cross_channel,
        LocalSize=local_size,
        Alpha=alpha,
        Beta=beta,
        Bias=bias,
    )[0]


def gemm(
    a: Expression,
    b: Expression,
    c: Expression | None = None,
    trans_a: MatrixTransform = MatrixTransform.NONE,
    trans_b: MatrixTransform = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    fused_activation: FusedActivation = _NONE,
) -> Expression:
    """DML_OPERATOR_GEMM."""
    return _apply(
        "GEMM",
        ATensor=a,
        BTensor=b,
        CTensor=c,
        TransA=trans_a,
        TransB=trans_b,
        Alpha=alpha,
        Beta=beta,
        FusedActivation=fused_activation,
    )[0]


def average_pooling(
    input: Expression,
    strides: Sequence[int],
    window_sizes: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    include_padding: bool,
) -> Expression:
    """DML_OPERATOR_AVERAGE_POOLING."""
    return _apply(
        "AVERAGE_POOLING",
        InputTensor=input,
        Strides=strides,
        WindowSize=window_sizes,
        StartPadding=start_padding,
        EndPadding=end_padding,
        IncludePadding=include_padding,
    )[0]


def max_pooling(
    input: Expression,
    window_sizes: Sequence[int],
    strides: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    dilations: Sequence[int] = (),
    output_indices: bool = False,
) -> MaxPoolingOutputs:
    """DML_OPERATOR_MAX_POOLING2. Strides and dilations are 1 and paddings 0 where they are left out."""
    outputs = _apply(
        "MAX_POOLING2",
        InputTensor=input,
        OutputIndicesTensor=TensorDataType.UINT32 if output_indices else None,
        Strides=_spatial(input, strides, 1),
        WindowSize=window_sizes,
        StartPadding=_spatial(input, start_padding, 0),
        EndPadding=_spatial(input, end_padding, 0),
        Dilations=_spatial(input, dilations, 1),
    )
    return MaxPoolingOutputs(outputs[0], outputs[1] if output_indices else Expression())


def reinterpret(
    input: Expression, new_type: TensorDataType, new_size: Sequence[int], new_strides: Sequence[int] | None
) -> Expression:
    """The same bytes as another tensor."""
    return Expression(built_of("reinterpret", "input", input).reinterpret(new_type, new_size, new_strides))


def join(input: Sequence[Expression], axis: int) -> Expression:
    """DML_OPERATOR_JOIN."""
    return _apply("JOIN", InputTensors=list(input), Axis=axis)[0]


def gru(
    input: Expression,
    weight: Expression,
    recurrence: Expression,
    bias: Expression | None = None,
    hidden_init: Expression | None = None,
    sequence_lengths: Expression | None = None,
    activation_descs: Sequence[FusedActivation] = (),
    direction: RecurrentNetworkDirection = RecurrentNetworkDirection.FORWARD,
    linear_before_reset: bool = True,
    output_options: OutputOptions = OutputOptions.Both,
) -> GRUOutputs:
    """DML_OPERATOR_GRU. What is not asked for is an empty Expression."""
    kind = built_of("gru", "input", input).tensor.DataType
    has_sequence, has_single = output_options != OutputOptions.Single, output_options != OutputOptions.Sequence
    outputs = _apply(
        "GRU",
        InputTensor=input,
        WeightTensor=weight,
        RecurrenceTensor=recurrence,
        BiasTensor=bias,
        HiddenInitTensor=hidden_init,
        SequenceLengthsTensor=sequence_lengths,
        OutputSequenceTensor=kind if has_sequence else None,
        OutputSingleTensor=kind if has_single else None,
        ActivationDescs=list(activation_descs),
        Direction=direction,
        LinearBeforeReset=linear_before_reset,
    )
    return GRUOutputs(outputs[0] if has_sequence else Expression(), outputs[-1] if has_single else Expression())


def gather(input: Expression, indices: Expression, axis: int, index_dimensions: int) -> Expression:
    """DML_OPERATOR_GATHER."""
    return _apply("GATHER", InputTensor=input, IndicesTensor=indices, Axis=axis, IndexDimensions=index_dimensions)[0]
