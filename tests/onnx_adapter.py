"""ONNX's operators in DirectML's words: how a node becomes descs, for what DirectML says in a few of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

import anydml
from anydml import DML_BUFFER_TENSOR_DESC, DML_SIZE_2D, Device, DMLError, Graph, TensorDataType
from anydml.core.enums import (
    ConvolutionDirection,
    ConvolutionMode,
    InterpolationMode,
    MatrixTransform,
    PaddingMode,
    RecurrentNetworkDirection,
    ReduceFunction,
)
from anydml.core.strided_layout import DATA_TYPES, DTYPES
from anydml.core.tensor_desc import packed_strides
from anydml.frontends.directmlx import Expression


class NotSaid(Exception):
    """What no desc says, or none that is right."""


class Node:
    """An ONNX node, with what its inputs hold: where a desc has a member, an input has to be known."""

    def __init__(self, graph: Graph, op: str, outputs: Sequence[str], attributes: dict[str, Any], values: Any) -> None:
        self.graph = graph
        self.op = op
        self.outputs = outputs
        self.attributes = attributes
        self.values = values
        self.read: list[np.ndarray] = []
        """What the graph's inputs are bound to."""

    def __len__(self) -> int:
        return len(self.values)

    def has(self, i: int) -> bool:
        return i < len(self) and self.values[i] is not None

    def value(self, i: int, default: Any = None) -> Any:
        return self.values[i] if self.has(i) else default

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def input(self, i: int) -> Expression:
        x = self.values[i]
        if getattr(x, "dtype", None) not in DATA_TYPES:
            raise NotSaid(f"elements of {getattr(x, 'dtype', type(x).__name__)}")
        tensor = packed(DATA_TYPES[x.dtype], x.shape or (1,))
        # Bytes, which may be reinterpreted.
        bytes_ = np.zeros(tensor.TotalTensorSizeInBytes, np.uint8)
        bytes_[: x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        self.read.append(bytes_)
        return self.graph.input(tensor)

    @property
    def all(self) -> list[Expression]:
        return [self.input(i) for i in range(len(self))]

    def constant(self, array: np.ndarray) -> Expression:
        return self.graph.constant(packed(DATA_TYPES[array.dtype], array.shape), array)

    def apply(self, name: str, **members: Any) -> list[Expression]:
        return self.graph.operator(getattr(anydml, f"DML_{name}_OPERATOR_DESC"), **members)

    def __call__(self, name: str, **members: Any) -> Expression:
        return self.apply(name, **members)[0]


Adapter = Callable[[Node], Any]


def packed(data_type: TensorDataType, sizes: Sequence[int]) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=tuple(sizes))


def sizes_of(x: Expression) -> tuple[int, ...]:
    return tuple(x.tensor.Sizes)


def reshaped(x: Expression, sizes: Sequence[int]) -> Expression:
    return x.reinterpret(x.tensor.DataType, tuple(sizes))


def strided(x: Expression, sizes: Sequence[int], strides: Sequence[int]) -> Expression:
    return x.reinterpret(x.tensor.DataType, tuple(sizes), tuple(strides))


def permuted(x: Expression, order: Sequence[int]) -> Expression:
    sizes, strides = sizes_of(x), x.tensor.strides
    return strided(x, [sizes[i] for i in order], [strides[i] for i in order])


def broadcast(x: Expression, sizes: Sequence[int]) -> Expression:
    """By strides of 0."""
    own = (1,) * (len(sizes) - len(sizes_of(x))) + sizes_of(x)
    steps = zip(own, packed_strides(own), sizes, strict=True)
    return strided(x, sizes, [0 if size == 1 < wanted else step for size, step, wanted in steps])


def broadcast_all(*each: Expression) -> list[Expression]:
    sizes = np.broadcast_shapes(*map(sizes_of, each))
    return [broadcast(x, sizes) for x in each]


def per_channel(x: Expression, rank: int) -> Expression:
    return reshaped(x, (1, *sizes_of(x), *(1,) * (rank - 2)))


# Element by element


def unary(name: str, **members: tuple[str, float]) -> Adapter:
    """Members come from attributes, or are their defaults."""
    return lambda node: node(
        name, InputTensor=node.input(0), **{member: node.get(*each) for member, each in members.items()}
    )


def folded(name: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        def two(a: Expression, b: Expression) -> Expression:
            return node(f"ELEMENT_WISE_{name}", ATensor=a, BTensor=b)

        return reduce(two, broadcast_all(*node.all))

    return adapter


def mean(node: Node) -> Expression:
    if len(node) == 2:
        return folded("MEAN")(node)
    return folded("ADD")(node) / len(node)


def mod(node: Node) -> Expression:
    # Of what has no sign both remainders are one.
    if not node.get("fmod", 0) and node.values[0].dtype.kind != "u":
        raise NotSaid("the sign of the divisor")
    return folded("MODULUS_TRUNCATE")(node)


def power(node: Node) -> Expression:
    x, e = broadcast_all(*node.all)
    return node("ELEMENT_WISE_POW", InputTensor=x, ExponentTensor=e)


def prelu(node: Node) -> Expression:
    x, slope = broadcast_all(*node.all)
    return node("ACTIVATION_PARAMETERIZED_RELU", InputTensor=x, SlopeTensor=slope)


def clip(node: Node) -> Expression:
    low, high = (float(node.value(i, default)) for i, default in ((1, -math.inf), (2, math.inf)))
    return node("ELEMENT_WISE_CLIP", InputTensor=node.input(0), Min=low, Max=high)


def along_axis(name: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.input(0)
        return node(name, InputTensor=x, Axes=[node.get("axis", -1) % len(sizes_of(x))])

    return adapter


# Windows


def windowed(node: Node, n: int) -> dict[str, list[int]]:
    """How a window of n dimensions moves, and on which padding."""
    start, end = np.reshape(node.get("pads", [0] * 2 * n), (2, n)).tolist()
    strides, dilations = (list(node.get(name, [1] * n)) for name in ("strides", "dilations"))
    return {"Strides": strides, "Dilations": dilations, "StartPadding": start, "EndPadding": end}


def fitted(node: Node, sizes: Sequence[int], taps: Sequence[int]) -> dict[str, list[int]]:
    """With auto_pad the padding for one output per stride."""
    members = windowed(node, len(taps))
    if (auto := node.get("auto_pad", b"NOTSET")).startswith(b"SAME"):
        each = zip(sizes, taps, members["Strides"], members["Dilations"], strict=True)
        totals = [
            max((-(-size // stride) - 1) * stride + (tap - 1) * dilation + 1 - size, 0)
            for size, tap, stride, dilation in each
        ]
        members["StartPadding"], members["EndPadding"] = halves(totals, auto)
    return members


def halves(totals: Sequence[int], auto: bytes) -> tuple[list[int], list[int]]:
    less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (less, more) if auto == b"SAME_UPPER" else (more, less)


def convolution(node: Node, **members: Any) -> Expression:
    bias = per_channel(node.input(2), node.values[0].ndim) if node.has(2) else None
    n = node.values[0].ndim - 2
    return node(
        "CONVOLUTION",
        InputTensor=node.input(0),
        FilterTensor=node.input(1),
        BiasTensor=bias,
        Mode=ConvolutionMode.CROSS_CORRELATION,
        OutputPadding=[0] * n,
        GroupCount=node.get("group", 1),
        **members,
    )


def conv(node: Node) -> Expression:
    x, w = node.values[:2]
    return convolution(node, Direction=ConvolutionDirection.FORWARD, **fitted(node, x.shape[2:], w.shape[2:]))


def conv_transpose(node: Node) -> Expression:
    x, w = node.values[:2]
    n = x.ndim - 2
    members, auto = windowed(node, n), node.get("auto_pad", b"NOTSET")
    each = zip(x.shape[2:], w.shape[2:], members["Strides"], members["Dilations"], strict=True)
    whole = [(size - 1) * stride + (tap - 1) * dilation + 1 for size, tap, stride, dilation in each]
    whole = [size + more for size, more in zip(whole, node.get("output_padding", [0] * n), strict=True)]
    wanted = node.get("output_shape")
    if auto.startswith(b"SAME"):
        wanted = [size * stride for size, stride in zip(x.shape[2:], members["Strides"], strict=True)]
    if wanted:
        totals = [max(size - given, 0) for size, given in zip(whole, wanted, strict=True)]
        members["StartPadding"], members["EndPadding"] = halves(totals, auto)
    else:
        cut = zip(whole, members["StartPadding"], members["EndPadding"], strict=True)
        wanted = [size - start - end for size, start, end in cut]
    # OutputPadding would be zeros: of a larger output the elements are those that the taps reach.
    output = packed(DATA_TYPES[x.dtype], (x.shape[0], w.shape[1] * node.get("group", 1), *wanted))
    return convolution(node, Direction=ConvolutionDirection.BACKWARD, OutputTensor=output, **members)


def pooled(name: str, has_dilations: bool, **more: Any) -> Adapter:
    def adapter(node: Node) -> list[Expression]:
        x, taps = node.input(0), list(node.get("kernel_shape"))
        members = {"WindowSize": taps, **fitted(node, sizes_of(x)[2:], taps), **{k: f(node) for k, f in more.items()}}
        if len(taps) == 1:  # a window of one dimension is one of two, of height 1
            x = reshaped(x, (*sizes_of(x)[:2], 1, *sizes_of(x)[2:]))
            members |= {name: [int("Padding" not in name), *members[name]] for name in (*_WINDOW, "Dilations")}
        if node.get("ceil_mode", 0):
            places = zip(sizes_of(x)[2:], *(members[name] for name in (*_WINDOW, "Dilations")), strict=True)
            members["OutputTensor"] = packed(x.tensor.DataType, (*sizes_of(x)[:2], *(ceiled(*each) for each in places)))
        if not has_dilations and any(dilation > 1 for dilation in members.pop("Dilations")):
            raise NotSaid("dilations")
        return node.apply(name, InputTensor=x, **members)

    return adapter


_WINDOW = ("WindowSize", "Strides", "StartPadding", "EndPadding")


def ceiled(size: int, taps: int, stride: int, start: int, end: int, dilation: int) -> int:
    """A size rounded up, but for a window that would begin on the padding behind."""
    places = -(-(size + start + end - (taps - 1) * dilation - 1) // stride) + 1
    return places - ((places - 1) * stride >= size + start)


def max_pool(node: Node) -> list[Expression]:
    if node.get("storage_order", 0):
        raise NotSaid("indices by columns")
    if len(node.outputs) == 1:
        return pooled("MAX_POOLING2", True)(node)
    values, indices = pooled("MAX_POOLING2", True, OutputIndicesTensor=lambda node: TensorDataType.UINT64)(node)
    return [values, indices.reinterpret(TensorDataType.INT64, sizes_of(indices))]


def of_all(adapter: Adapter) -> Adapter:
    """Global pooling: by a window of the image's size."""

    def whole(node: Node) -> Any:
        node.attributes = {**node.attributes, "kernel_shape": node.values[0].shape[2:]}
        return adapter(node)

    return whole


# Products of matrices


def gemm(node: Node) -> Expression:
    a, b, *c = node.all
    transforms = [MatrixTransform(node.get(name, 0)) for name in ("transA", "transB")]
    rows, columns = sizes_of(a)[transforms[0]], sizes_of(b)[1 - transforms[1]]
    return node(
        "GEMM",
        ATensor=a,
        BTensor=b,
        CTensor=broadcast(c[0], (rows, columns)) if c else None,
        TransA=transforms[0],
        TransB=transforms[1],
        Alpha=node.get("alpha", 1),
        Beta=node.get("beta", 1),
    )


def mat_mul(node: Node) -> Expression:
    a, b = node.all
    if len(sizes_of(a)) == 1:
        a = reshaped(a, (1, *sizes_of(a)))
    if len(sizes_of(b)) == 1:
        b = reshaped(b, (*sizes_of(b), 1))
    outer = np.broadcast_shapes(sizes_of(a)[:-2], sizes_of(b)[:-2])
    a, b = (broadcast(x, (*outer, *sizes_of(x)[-2:])) for x in (a, b))
    none = MatrixTransform.NONE
    return node("GEMM", ATensor=a, BTensor=b, TransA=none, TransB=none, Alpha=1, Beta=0)


# Normalisation


def batch_normalization(node: Node) -> Expression:
    if node.get("training_mode", 0):
        raise NotSaid("training")
    x, *parameters = node.all
    names = ("ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    rank = len(sizes_of(x))
    each = {name: per_channel(one, rank) for name, one in zip(names, parameters, strict=True)}
    return node("BATCH_NORMALIZATION", InputTensor=x, Spatial=True, Epsilon=node.get("epsilon", 1e-5), **each)


def instance_normalization(node: Node) -> Expression:
    x, scale, bias = node.all
    rank = len(sizes_of(x))
    return node(
        "MEAN_VARIANCE_NORMALIZATION1",
        InputTensor=x,
        ScaleTensor=per_channel(scale, rank),
        BiasTensor=per_channel(bias, rank),
        Axes=list(range(2, rank)),
        NormalizeVariance=True,
        Epsilon=node.get("epsilon", 1e-5),
    )


def mean_variance_normalization(node: Node) -> Expression:
    x, axes = node.input(0), node.get("axes", [0, 2, 3])
    return node("MEAN_VARIANCE_NORMALIZATION1", InputTensor=x, Axes=axes, NormalizeVariance=True, Epsilon=0)


def lrn(node: Node) -> Expression:
    return node(
        "LOCAL_RESPONSE_NORMALIZATION",
        InputTensor=node.input(0),
        CrossChannel=True,
        LocalSize=node.get("size"),
        Alpha=node.get("alpha", 0.0001),
        Beta=node.get("beta", 0.75),
        Bias=node.get("bias", 1),
    )


# Movement


def sliced(node: Node) -> Expression:
    x, (starts, ends) = node.input(0), node.values[1:3]
    sizes = sizes_of(x)
    windows = [slice(0, size, 1) for size in sizes]
    axes, steps = node.value(3, range(len(starts))), node.value(4, [1] * len(starts))
    for axis, *each in zip(axes, starts, ends, steps, strict=True):
        windows[axis] = slice(*map(int, each))
    reached = [range(*window.indices(size)) for window, size in zip(windows, sizes, strict=True)]
    if not all(reached):
        raise NotSaid("a size of 0")
    return node(
        "SLICE1",
        InputTensor=x,
        InputWindowOffsets=[min(each) for each in reached],
        InputWindowSizes=[max(each) - min(each) + 1 for each in reached],
        InputWindowStrides=[each.step for each in reached],
    )


def split(node: Node) -> list[Expression]:
    x, axis, count = node.input(0), node.get("axis", 0), len(node.outputs)
    size = sizes_of(x)[axis]
    each = -(-size // count)
    parts = node.value(1, [min(each, size - i * each) for i in range(count)])
    sizes = [[part if i == axis % x.tensor.DimensionCount else n for i, n in enumerate(sizes_of(x))] for part in parts]
    pieces = [packed(x.tensor.DataType, piece) for piece in sizes]
    return node.apply("SPLIT", InputTensor=x, OutputTensors=pieces, Axis=axis % len(sizes_of(x)))


_PADDING = {b"constant": "CONSTANT", b"edge": "EDGE", b"reflect": "REFLECTION", b"wrap": "WRAP"}


def pad(node: Node) -> Expression:
    x = node.input(0)
    padding = np.zeros((2, len(sizes_of(x))), int)
    padding[:, node.value(3, slice(None))] = np.reshape(node.values[1], (2, -1))
    return node(
        "PADDING",
        InputTensor=x,
        PaddingMode=PaddingMode[_PADDING[node.get("mode", b"constant")]],
        PaddingValue=float(node.value(2, 0)),
        StartPadding=padding[0],
        EndPadding=padding[1],
    )


def gather(node: Node) -> Expression:
    x, indices = node.all
    axis, own, of_indices = node.get("axis", 0), len(sizes_of(x)), node.values[1].ndim
    rank = max(own, own - 1 + of_indices)
    x, indices = (reshaped(each, (1,) * (rank - len(sizes_of(each))) + sizes_of(each)) for each in (x, indices))
    axis = axis % own + rank - own
    return node("GATHER", InputTensor=x, IndicesTensor=indices, Axis=axis, IndexDimensions=of_indices)


def concat(node: Node) -> Expression:
    each = node.all
    return node("JOIN", InputTensors=each, Axis=node.get("axis") % len(sizes_of(each[0])))


def cast(node: Node) -> Expression:
    from onnx.helper import tensor_dtype_to_np_dtype

    to = tensor_dtype_to_np_dtype(node.get("to"))
    if to not in DATA_TYPES:
        raise NotSaid(f"elements of {to}")
    return node("CAST", InputTensor=node.input(0), OutputTensor=DATA_TYPES[to])


def constant_of_shape(node: Node) -> Expression:
    value = node.get("value", np.zeros(1, np.float32))
    data_type = DATA_TYPES[value.dtype]
    output = packed(data_type, node.values[0].tolist())
    return node("FILL_VALUE_CONSTANT", OutputTensor=output, ValueDataType=data_type, Value=value.item())


def sequence(node: Node) -> Expression:
    start, limit, delta = node.values
    if start.dtype not in DATA_TYPES:
        raise NotSaid(f"elements of {start.dtype}")
    data_type = DATA_TYPES[start.dtype]
    count = max(math.ceil((limit.item() - start.item()) / delta.item()), 0)
    output = packed(data_type, (count,))
    ends = {"ValueStart": start.item(), "ValueDelta": delta.item()}
    return node("FILL_VALUE_SEQUENCE", OutputTensor=output, ValueDataType=data_type, **ends)


def resized(node: Node, scales: Any, sizes: Any = None) -> Expression:
    """Enlarged by whole factors, where that takes the elements which UPSAMPLE_2D takes."""
    x = node.input(0)
    axes = list(node.get("axes", range(len(sizes_of(x)))))
    if sizes is not None:
        scales = [size / sizes_of(x)[axis] for axis, size in zip(axes, sizes, strict=True)]
        choose = {b"not_larger": min, b"not_smaller": max}.get(node.get("keep_aspect_ratio_policy"))
        scales = [choose(scales)] * len(scales) if choose else scales
    factors = [1.0] * len(sizes_of(x))
    for axis, scale in zip(axes, scales, strict=True):
        factors[axis] = float(scale)
    mode = node.get("mode", b"nearest")
    upsample = node.op == "Upsample"
    places = node.get("coordinate_transformation_mode", b"asymmetric" if upsample else b"half_pixel")
    nearest = node.get("nearest_mode", b"floor" if upsample else b"round_prefer_floor")
    centred = places in (b"half_pixel", b"half_pixel_symmetric", b"pytorch_half_pixel")
    if mode == b"nearest":
        is_said = (centred and nearest.startswith(b"round")) or (places, nearest) == (b"asymmetric", b"floor")
    else:
        is_said = centred and mode == b"linear"
    is_whole = all(factor == max(int(factor), 1) for factor in factors)
    if not is_said or not is_whole or any(factor != 1 for factor in factors[:-2]):
        raise NotSaid("that interpolation")
    return node(
        "UPSAMPLE_2D",
        InputTensor=x,
        ScaleSize=DML_SIZE_2D(Height=int(factors[-2]), Width=int(factors[-1])),
        InterpolationMode=InterpolationMode.NEAREST_NEIGHBOR if mode == b"nearest" else InterpolationMode.LINEAR,
    )


# Along axes


def running(name: str, exclusive: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.input(0)
        # AxisDirection counts as ONNX does: 1 is from the end.
        return node(
            name,
            InputTensor=x,
            Axis=int(node.values[1]) % len(sizes_of(x)),
            AxisDirection=anydml.AxisDirection(node.get("reverse", 0)),
            **{exclusive: bool(node.get("exclusive", 0))},
        )

    return adapter


def reduced(function: ReduceFunction) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.input(0)
        axes = node.value(1, node.get("axes", ()))
        if not len(axes):
            if node.get("noop_with_empty_axes", 0):
                return x
            axes = range(len(sizes_of(x)))
        return node("REDUCE", Function=function, InputTensor=x, Axes=[int(axis) % len(sizes_of(x)) for axis in axes])

    return adapter


def index(function: ReduceFunction) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.input(0)
        sizes, axis = sizes_of(x), node.get("axis", 0) % len(sizes_of(x))
        find = partial(node, "REDUCE", Function=function, OutputTensor=TensorDataType.INT64, Axes=[axis])
        if not node.get("select_last_index", 0):
            return find(InputTensor=x)
        # The last one is the first of the reversed axis.
        strides = [-1 if i == axis else 1 for i in range(len(sizes))]
        whole = {"InputWindowOffsets": [0] * len(sizes), "InputWindowSizes": sizes}
        first = find(InputTensor=node("SLICE1", InputTensor=x, InputWindowStrides=strides, **whole))
        return broadcast(node.constant(np.array([sizes[axis] - 1])), sizes_of(first)) - first

    return adapter


# Recurrent networks

_DIRECTIONS = {b"forward": "FORWARD", b"reverse": "BACKWARD", b"bidirectional": "BIDIRECTIONAL"}


def recurrent(name: str, activations: Sequence[str], members: Sequence[str], **more: Any) -> Adapter:
    """Members are those of the inputs behind SequenceLengthsTensor."""

    def adapter(node: Node) -> list[Expression]:
        if "activations" in node.attributes:
            raise NotSaid("activations of its own")
        direction = RecurrentNetworkDirection[_DIRECTIONS[node.get("direction", b"forward")]]
        names = ("InputTensor", "WeightTensor", "RecurrenceTensor", "BiasTensor", "SequenceLengthsTensor", *members)
        by_batch = node.get("layout", 0)
        tensors = {}
        for i, member in enumerate(names):
            if node.has(i):
                x = node.input(i)
                if by_batch and member in ("InputTensor", "HiddenInitTensor", "CellMemInitTensor"):
                    x = permuted(x, (1, 0, 2))
                ones = 4 - len(sizes_of(x))
                tensors[member] = strided(x, (1,) * ones + sizes_of(x), (0,) * ones + tuple(x.tensor.strides))
                if member == "SequenceLengthsTensor":
                    tensors[member] = tensors[member].reinterpret(TensorDataType.UINT32, sizes_of(tensors[member]))
        descs = [getattr(anydml, f"DML_ACTIVATION_{each}_OPERATOR_DESC")() for each in activations]
        wanted = zip(
            node.outputs, ("OutputSequenceTensor", "OutputSingleTensor", "OutputCellSingleTensor"), strict=False
        )
        outputs = {member: tensors["InputTensor"].tensor.DataType for output, member in wanted if output}
        ys = node.apply(
            name,
            ActivationDescs=descs * (2 if direction == RecurrentNetworkDirection.BIDIRECTIONAL else 1),
            Direction=direction,
            **tensors,
            **outputs,
            **{member: each(node) for member, each in more.items()},
        )
        # {seq_length, num_directions, batch_size, hidden_size}; by batch, its dimension is the first.
        return [node("ELEMENT_WISE_IDENTITY", InputTensor=permuted(y, (2, 0, 1, 3))) for y in ys] if by_batch else ys

    return adapter


ADAPTERS: dict[str, Adapter] = {
    "Abs": unary("ELEMENT_WISE_ABS"),
    "Add": folded("ADD"),
    "ArgMax": index(ReduceFunction.ARGMAX),
    "ArgMin": index(ReduceFunction.ARGMIN),
    "AveragePool": pooled("AVERAGE_POOLING", False, IncludePadding=lambda node: bool(node.get("count_include_pad", 0))),
    "BatchNormalization": batch_normalization,
    "Cast": cast,
    "Clip": clip,
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "CumProd": running("CUMULATIVE_PRODUCT", "HasExclusiveProduct"),
    "CumSum": running("CUMULATIVE_SUMMATION", "HasExclusiveSum"),
    "Div": folded("DIVIDE"),
    "Elu": unary("ACTIVATION_ELU", Alpha=("alpha", 1)),
    "Exp": unary("ELEMENT_WISE_EXP"),
    "GRU": recurrent(
        "GRU",
        ("SIGMOID", "TANH"),
        ("HiddenInitTensor",),
        LinearBeforeReset=lambda node: bool(node.get("linear_before_reset", 0)),
    ),
    "Gather": gather,
    "Gemm": gemm,
    "GlobalAveragePool": of_all(pooled("AVERAGE_POOLING", False)),
    "GlobalMaxPool": of_all(max_pool),
    "HardSigmoid": unary("ACTIVATION_HARD_SIGMOID", Alpha=("alpha", 0.2), Beta=("beta", 0.5)),
    "Hardmax": along_axis("ACTIVATION_HARDMAX1"),
    "Identity": unary("ELEMENT_WISE_IDENTITY"),
    "InstanceNormalization": instance_normalization,
    "LRN": lrn,
    "LSTM": recurrent(
        "LSTM",
        ("SIGMOID", "TANH", "TANH"),
        ("HiddenInitTensor", "CellMemInitTensor", "PeepholeTensor"),
        ClipThreshold=lambda node: node.get("clip", 0),
        UseClipThreshold=lambda node: "clip" in node.attributes,
        CoupleInputForget=lambda node: bool(node.get("input_forget", 0)),
    ),
    "LeakyRelu": unary("ACTIVATION_LEAKY_RELU", Alpha=("alpha", 0.01)),
    "Log": unary("ELEMENT_WISE_LOG"),
    "LogSoftmax": along_axis("ACTIVATION_LOG_SOFTMAX1"),
    "LpPool": pooled("LP_POOLING", False, P=lambda node: node.get("p", 2)),
    "MatMul": mat_mul,
    "Max": folded("MAX"),
    "MaxPool": max_pool,
    "Mean": mean,
    "MeanVarianceNormalization": mean_variance_normalization,
    "Min": folded("MIN"),
    "Mod": mod,
    "Mul": folded("MULTIPLY"),
    "Neg": unary("ELEMENT_WISE_NEGATE"),
    "PRelu": prelu,
    "Pad": pad,
    "Pow": power,
    "RNN": recurrent("RNN", ("TANH",), ("HiddenInitTensor",)),
    "Range": sequence,
    "Reciprocal": unary("ELEMENT_WISE_RECIP"),
    "ReduceL1": reduced(ReduceFunction.L1),
    "ReduceL2": reduced(ReduceFunction.L2),
    "ReduceLogSum": reduced(ReduceFunction.LOG_SUM),
    "ReduceLogSumExp": reduced(ReduceFunction.LOG_SUM_EXP),
    "ReduceMax": reduced(ReduceFunction.MAX),
    "ReduceMean": reduced(ReduceFunction.AVERAGE),
    "ReduceMin": reduced(ReduceFunction.MIN),
    "ReduceProd": reduced(ReduceFunction.MULTIPLY),
    "ReduceSum": reduced(ReduceFunction.SUM),
    "ReduceSumSquare": reduced(ReduceFunction.SUM_SQUARE),
    "Relu": unary("ACTIVATION_RELU"),
    "Resize": lambda node: resized(node, node.value(2), node.value(3)),
    "Selu": unary("ACTIVATION_SCALED_ELU", Alpha=("alpha", 1.6732632), Gamma=("gamma", 1.050701)),
    "Shrink": unary("ACTIVATION_SHRINK", Bias=("bias", 0), Threshold=("lambd", 0.5)),
    "Sigmoid": unary("ACTIVATION_SIGMOID"),
    "Slice": sliced,
    "Softmax": along_axis("ACTIVATION_SOFTMAX1"),
    "Softplus": unary("ACTIVATION_SOFTPLUS", Steepness=("", 1)),
    "Softsign": unary("ACTIVATION_SOFTSIGN"),
    "Split": split,
    "Sqrt": unary("ELEMENT_WISE_SQRT"),
    "Sub": folded("SUBTRACT"),
    "Sum": folded("ADD"),
    "Tanh": unary("ACTIVATION_TANH"),
    "ThresholdedRelu": unary("ACTIVATION_THRESHOLDED_RELU", Alpha=("alpha", 1)),
    "Upsample": lambda node: resized(node, node.value(1)),
}


def computed(
    device: Device, op: str, outputs: Sequence[str], attributes: dict[str, Any], values: Sequence[Any]
) -> list[np.ndarray]:
    """The outputs that there are of an ONNX node.

    Raises:
        NotSaid: no desc says this, or none that is right.
    """
    graph = Graph(device)
    node = Node(graph, op, outputs, attributes, values)
    try:
        found = ADAPTERS[op](node)
    except DMLError as refused:
        raise NotSaid(str(refused)) from refused
    found = found if isinstance(found, list) else [found]
    ys = [np.empty(sizes_of(each), DTYPES[each.tensor.DataType]) for each in found]
    graph.compile(found).dispatch(node.read, ys)
    return ys
