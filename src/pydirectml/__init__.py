"""PyDirectML, Microsoft's Python binding of DirectML, on any machine: its names, defaults and positional orders.

Programs written for it run unmodified: ``import pydirectml as dml``. It is a thin layer over :mod:`anydml`'s graphs. It
differs where PyDirectML is poor: data keep the type of their tensor (there all are float32), errors name the rule, what
is OWNED_BY_DML is initialised once and not at every ``compute``. ``ANYDML_DEVICE`` names the device that
``Device(True)`` is, such as ``cuda:1`` or ``cpu``; without it, that is a GPU that PyTorch and Triton reach, or else the
CPU.

Source: Python/src/module.cpp in microsoft/DirectML, the state of 2021-10-18.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

import anydml
from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_SIZE_2D,
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
from anydml.backends.torch.devices import gpus
from anydml.core.errors import error, kind_of, listing, violation
from anydml.core.memory import Memory
from anydml.core.strided_layout import DTYPES, Array, Layout
from anydml.draw import draw_graph
from anydml.frontends.directmlx import Expression as _Built
from anydml.graph.compile import CompiledGraph
from anydml.operators import spec
from anydml.operators.fused_activation import FUSIBLE
from anydml.operators.schema import FUSED


class OutputOptions(IntEnum):
    """Which outputs gru() gives."""

    Both = 0
    Sequence = 1
    Single = 2


class TensorPolicy:
    """How the strides of tensors follow from their sizes."""

    default: TensorPolicy
    interleaved_channel: TensorPolicy

    def __init__(self, order: str) -> None:
        self._order = order

    def __repr__(self) -> str:
        return f"dml.TensorPolicy.{self._order}"

    def _strides(self, sizes: Sequence[int]) -> list[int] | None:
        """None for packed ones. Interleaved, channels, the second dimension, are next to each other."""
        if self._order == "default" or len(sizes) < 3:
            return None
        strides = [1] * len(sizes)
        step = sizes[1]
        for i in reversed(range(2, len(sizes))):
            strides[i] = step
            step *= sizes[i]
        strides[0] = step
        return strides


TensorPolicy.default = TensorPolicy("default")
TensorPolicy.interleaved_channel = TensorPolicy("interleaved_channel")


class TensorDesc:
    """A tensor in a buffer.

    Args:
        data_type: type of its elements.
        flags: TensorFlags; may be left out.
        sizes: elements along each dimension.
        strides: in elements, or None; or a TensorPolicy, or nothing.
        total_tensor_size_in_bytes, guaranteed_base_offset_alignment: with flags and strides alone.
    """

    def __init__(self, data_type: TensorDataType, *rest: Any, **named: Any) -> None:
        if "flags" in named:
            rest = (named.pop("flags"), *rest)
        flags = rest[0] if rest and isinstance(rest[0], TensorFlags) else TensorFlags.NONE
        rest = rest[1:] if rest and isinstance(rest[0], TensorFlags) else rest
        names = ("sizes", "strides", "total_tensor_size_in_bytes", "guaranteed_base_offset_alignment")
        given = {**dict(zip(names, rest, strict=False)), **named}
        policy = given.pop("tensor_policy", TensorPolicy.default)
        if isinstance(given.get("strides"), TensorPolicy):
            policy = given.pop("strides")
        if len(rest) > len(names) or "sizes" not in given or set(given) - set(names):
            expected = "(data_type, [flags], sizes, [policy or strides], [total size, alignment])"
            found = listing([kind_of(each) for each in (data_type, *rest)], "and")
            raise _wrong("TensorDesc", found, expected)
        sizes = list(given["sizes"])
        strides = given["strides"] if "strides" in given else policy._strides(sizes)
        self._desc = DML_BUFFER_TENSOR_DESC(
            DataType=data_type,
            Sizes=sizes,
            Strides=strides,
            Flags=flags,
            TotalTensorSizeInBytes=given.get("total_tensor_size_in_bytes"),
            GuaranteedBaseOffsetAlignment=given.get("guaranteed_base_offset_alignment", 0),
        )

    @classmethod
    def _of(cls, desc: DML_BUFFER_TENSOR_DESC) -> TensorDesc:
        found = cls.__new__(cls)
        found._desc = desc
        return found

    def __repr__(self) -> str:
        shape = ",".join(map(str, self.sizes))
        return f"dml.TensorDesc of type {int(self.data_type)} and shape [{shape}] with flags {int(self.flags)}"

    @property
    def data_type(self) -> TensorDataType:
        return self._desc.DataType

    @property
    def flags(self) -> TensorFlags:
        return self._desc.Flags

    @property
    def sizes(self) -> list[int]:
        return list(self._desc.Sizes)

    @property
    def strides(self) -> list[int] | None:
        return None if self._desc.Strides is None else list(self._desc.Strides)

    @property
    def total_tensor_size_in_bytes(self) -> int:
        return self._desc.TotalTensorSizeInBytes or 0

    @property
    def guaranteed_base_offset_alignment(self) -> int:
        return self._desc.GuaranteedBaseOffsetAlignment


def _own(value: Any) -> Any:
    """An expression as anydml has it; a number as it is."""
    return _built("", "", value) if isinstance(value, Expression) else value


def _built(function: str, where: str, value: Any) -> _Built:
    if isinstance(value, Expression) and value._built is not None:
        return value._built
    raise _wrong(
        function,
        "an Expression of nothing" if isinstance(value, Expression) else kind_of(value),
        "an Expression",
        where,
    )


def _wrong(function: str, found: str, expected: str, where: str = "") -> Exception:
    return error([violation(function, "(G9)", where, found, expected, kind="type")])


class Expression:
    """A tensor of a graph that is being built. ``+ - * / %`` take another one, a number or an array, a constant."""

    # NumPy leaves an operator with a number or an array of its own to this class.
    __array_ufunc__ = None

    def __init__(self, built: _Built | None = None) -> None:
        self._built = built

    def get_output_desc(self) -> TensorDesc:
        return TensorDesc._of(_built("get_output_desc", "self", self).tensor)

    def __add__(self, other: Expression | float) -> Expression:
        return Expression(_own(self) + _own(other))

    def __sub__(self, other: Expression | float) -> Expression:
        return Expression(_own(self) - _own(other))

    def __mul__(self, other: Expression | float) -> Expression:
        return Expression(_own(self) * _own(other))

    def __truediv__(self, other: Expression | float) -> Expression:
        return Expression(_own(self) / _own(other))

    def __mod__(self, other: Expression | float) -> Expression:
        # DirectMLX's, which is C's; that of anydml's expressions is Python's.
        return Expression(anydml.modulus_truncate(_own(self), _own(other)))

    def __radd__(self, other: float) -> Expression:
        return Expression(other + _own(self))

    def __rsub__(self, other: float) -> Expression:
        return Expression(other - _own(self))

    def __rmul__(self, other: float) -> Expression:
        return Expression(other * _own(self))

    def __rtruediv__(self, other: float) -> Expression:
        return Expression(other / _own(self))

    def __neg__(self) -> Expression:
        return Expression(-_own(self))


class Binding:
    """An input's expression with its data, which are copied."""

    def __init__(self, expr: Expression, data: Any) -> None:
        self._expr = _built("Binding", "expr", expr)
        data_type = self._expr.tensor.DataType
        if data_type not in DTYPES:
            raise _wrong("Binding", f"an expression of {data_type.name}", "one of elements of whole bytes", "expr")
        dtype = DTYPES[data_type]
        self._data: Array = np.array(data, dtype, order="C").reshape(-1)
        layout = Layout.of_desc(self._expr.tensor)
        # As the desc has it, where that can be, it is bound at a glance.
        is_enough = layout.bounds()[1] <= self._data.nbytes
        self._shaped: Array = layout.view(self._data.view(np.uint8)) if is_enough else self._data


class TensorData:
    """A result: ``numpy.array(x)`` reads it."""

    def __init__(self, array: Any) -> None:
        self._array = np.asarray(array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype, copy=copy)


class Size2D:
    """A size in two dimensions."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height


class FusedActivation:
    """An activation that an operator applies to its result.

    Args:
        activation: its operator; INVALID for none.
        param_1: Alpha; SHRINK's Bias, SOFTPLUS's Steepness.
        param_2: Beta; SCALED_ELU's Gamma, SHRINK's Threshold.
    """

    def __init__(
        self, activation: OperatorType = OperatorType.INVALID, param_1: float = 0.0, param_2: float = 0.0
    ) -> None:
        self.activation = activation
        self.param_1 = param_1
        self.param_2 = param_2

    def _desc(self) -> Any:
        if self.activation == OperatorType.INVALID:
            return None
        name = self.activation.name if isinstance(self.activation, OperatorType) else ""
        if name not in FUSIBLE:
            raise _wrong(
                "FusedActivation", kind_of(self.activation), listing(f"OperatorType.{each}" for each in FUSIBLE)
            )
        found = spec(name)
        numbers = [member for member in found.members if member not in found.tensors]
        values = dict(zip(numbers, (self.param_1, self.param_2), strict=False))
        return found.desc(**dict.fromkeys(found.tensors, FUSED), **values)


class MaxPoolingOutputs:
    """What max_pooling() gives."""

    def __init__(self, values: Expression, indices: Expression) -> None:
        self.values = values
        self.indices = indices


class GRUOutputs:
    """What gru() gives."""

    def __init__(self, sequence: Expression, single: Expression) -> None:
        self.sequence = sequence
        self.single = single


class Model:
    """A compiled graph; GraphBuilder.build makes it."""

    _graph: CompiledGraph
    _outputs: list[_Built]
    _owned: list[Array | None]
    """What the persistent resource was filled from."""
    _persistent: Array | None

    def __init__(self) -> None:
        raise TypeError("GraphBuilder.build makes a Model")

    @classmethod
    def _of(cls, graph: CompiledGraph, outputs: list[_Built]) -> Model:
        model = cls.__new__(cls)
        model._graph, model._outputs, model._owned, model._persistent = graph, outputs, [], None
        return model

    def explain(self) -> str:
        """What was folded and fused, and which engine serves each operator."""
        return self._graph.explain()

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Writes a picture of it, an SVG."""
        Path(path).write_text(draw_graph(self._graph))

    def _is_initialised(self, owned: list[Array | None]) -> bool:
        """With these very data: a Binding never changes its."""
        return len(owned) == len(self._owned) and all(a is b for a, b in zip(owned, self._owned, strict=True))

    def _array(self, output: Expression, results: Sequence[Any]) -> Array:
        built = _built("compute", "outputs", output)
        for each, result in zip(self._outputs, results, strict=True):
            if each is built:
                flat: Array = result if isinstance(result, np.ndarray) else result.numpy()
                return Layout.of_desc(each.tensor).view(flat)
        raise _wrong(
            "compute", "an expression that the model was not built with", "one that it was built with", "outputs"
        )


class Dimensions(list[int]):
    """Sizes; wherever one is wanted, any list of integers does."""


class Device:
    """A device.

    Args:
        use_gpu: whether to run on a GPU, where there is one.
        use_debug_layer: whether to look at values that break a rule also where that means to wait.
    """

    def __init__(self, use_gpu: bool = True, use_debug_layer: bool = False) -> None:
        usable = (name for name, answer in gpus() if answer.startswith("yes"))
        name = os.environ.get("ANYDML_DEVICE") or next(usable, "cpu") if use_gpu else "cpu"
        self._device = anydml.Device(name, debug=bool(use_debug_layer))

    def __repr__(self) -> str:
        return f"dml.Device on {'CPU' if self._device.name in ('cpu', 'reference') else 'GPU'}"

    def compute(
        self, model: Model, inputs: Sequence[Binding | None], outputs: Sequence[Expression], /
    ) -> list[TensorData]:
        """Runs a model.

        Args:
            model: what GraphBuilder.build gave.
            inputs: bindings; None is skipped.
            outputs: of those that the model was built with.

        Returns:
            The outputs' data.
        """
        if not isinstance(model, Model):
            raise _wrong("compute", kind_of(model), "a Model", "model")
        memory = self._device.memory
        tensors = model._graph.inputs
        bound: list[Array | None] = [None] * len(tensors)
        for binding in inputs:
            # What no output needs is no input of the graph.
            if binding is not None and tensors[binding._expr.port.number] is not None:
                bound[binding._expr.port.number] = binding._shaped if memory.is_host else binding._data
        is_owned = [tensor is not None and bool(tensor.Flags) for tensor in tensors]

        def there(wanted: bool) -> list[Any]:
            sides = zip(bound, is_owned, strict=True)
            return [_on(memory, each) if each is not None and own == wanted else None for each, own in sides]

        owned = [each for each, own in zip(bound, is_owned, strict=True) if own]
        if owned and not model._is_initialised(owned):
            model._persistent = model._graph.initialise(there(True))
            model._owned = owned
        sizes = [tensor.TotalTensorSizeInBytes or 0 for tensor in model._graph.outputs if tensor]
        results = [memory.empty((size,), np.dtype(np.uint8)) for size in sizes]
        model._graph.dispatch(there(False), [_on(memory, each) for each in results], persistent=model._persistent)
        return [TensorData(model._array(each, results)) for each in outputs]


def _on(memory: Memory, array: Array) -> Any:
    """An array on a device, as a dispatch takes it."""
    brought: Any = memory.to_device(array)
    return brought if memory.is_host else brought.tensor


class GraphBuilder:
    """Builds a graph of expressions."""

    def __init__(self, device: Device) -> None:
        self._graph = anydml.Graph(device._device)

    def build(self, flags: ExecutionFlags, outputs: Sequence[Expression], /) -> Model:
        """Compiles what the outputs need."""
        built = [_built("build", f"outputs[{i}]", each) for i, each in enumerate(outputs)]
        return Model._of(self._graph.compile(built, flags), built)


def _apply(name: str, **members: Any) -> list[Expression]:
    """An operator on expressions. Those that are None, and activations that are none, are left out."""
    given = {member: _unwrapped(name, member, value) for member, value in members.items()}
    flat = [each for value in given.values() for each in (value if isinstance(value, list) else [value])]
    first = next((each for each in flat if isinstance(each, _Built)), None)
    if first is None:
        member, value = next(iter(members.items()))
        raise _wrong(name, kind_of(value), "an Expression", member)
    found = spec(name)
    absent = [m for m, value in given.items() if value is None and (m in found.tensors or m == "FusedActivation")]
    outputs = first.graph.operator(found.desc, **{m: value for m, value in given.items() if m not in absent})
    return [Expression(each) for each in outputs]


def _unwrapped(name: str, member: str, value: Any) -> Any:
    if isinstance(value, FusedActivation):
        return value._desc()
    if isinstance(value, Expression):
        return _built(name, member, value)
    if isinstance(value, TensorDesc):
        return value._desc
    if isinstance(value, (list, tuple)):
        return [_unwrapped(name, member, each) for each in value]
    return value


def _spatial(input: Expression, values: Sequence[int], otherwise: int) -> list[int]:
    """For each spatial dimension; an empty list is the default's."""
    return list(values) or [otherwise] * (len(_built("", "input", input).tensor.Sizes) - 2)


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
        output = TensorDesc(_built("convolution", "input", input).tensor.DataType, list(output_sizes))
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
    return Expression(_built("reinterpret", "input", input).reinterpret(new_type, new_size, new_strides))


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
    kind = _built("gru", "input", input).tensor.DataType
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
