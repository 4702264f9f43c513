"""Descs: good ones, and what becomes of them when members are exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from random import Random
from typing import Any

import numpy as np

from anydml import (
    DML_ACTIVATION_SOFTMAX_OPERATOR_DESC,
    DML_BUFFER_TENSOR_DESC,
    DML_CAST_OPERATOR_DESC,
    DML_CONVOLUTION_OPERATOR_DESC,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_GATHER_OPERATOR_DESC,
    DML_GEMM_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_PADDING_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    DML_REDUCE_OPERATOR_DESC,
    DML_SCALE_BIAS,
    DML_SIZE_2D,
    DML_SLICE1_OPERATOR_DESC,
    DML_SLICE_OPERATOR_DESC,
    DML_SPLIT_OPERATOR_DESC,
    DML_UPSAMPLE_2D_OPERATOR_DESC,
    DML_VALUE_SCALE_2D_OPERATOR_DESC,
    AxisDirection,
    CompiledOperator,
    Device,
    FeatureLevel,
    InterpolationMode,
    PaddingMode,
    ReduceFunction,
    TensorDataType,
    validate,
)
from anydml.core.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform, RecurrentNetworkDirection
from anydml.core.strided_layout import DTYPES, Layout
from anydml.operators import OPERATORS, spec, spec_of
from anydml.operators.fused_activation import FUSIBLE, fused_since
from anydml.operators.schema import OperatorDesc
from fuzzing.common import ENGINES, check_violation, expect, junk, note, number, outcome, small_sizes, tensor_of
from harness import units_of, within

TALLIED = [TensorDataType[name] for name in ("FLOAT32", "FLOAT16", "INT32", "UINT32", "INT64", "UINT64")]
JOINED = list(DTYPES)
REALS = [TensorDataType.FLOAT32, TensorDataType.FLOAT16]
BYTES = [TensorDataType.INT8, TensorDataType.UINT8]


def good_tally(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random), random.choice(TALLIED)
    members: dict[str, Any] = {
        "InputTensor": tensor_of(random, data_type, sizes),
        "OutputTensor": tensor_of(random, data_type, sizes, True),
        "Axis": random.randrange(len(sizes)),
        "AxisDirection": random.choice(list(AxisDirection)),
    }
    exclusive = random.choice([True, False])
    if random.random() < 0.5:
        return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**members, HasExclusiveSum=exclusive)
    return DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(**members, HasExclusiveProduct=exclusive)


def good_join(random: Random) -> OperatorDesc:
    sizes, data_type = list(small_sizes(random, most=64)), random.choice(JOINED)
    axis = random.randrange(len(sizes))
    pieces = []
    for _ in range(random.choice([1, 2, 3, 9])):
        sizes[axis] = random.randint(1, 4)
        pieces.append(tensor_of(random, data_type, sizes))
    sizes[axis] = sum(piece.Sizes[axis] for piece in pieces)
    return DML_JOIN_OPERATOR_DESC(
        InputTensors=pieces, OutputTensor=tensor_of(random, data_type, sizes, True), Axis=axis
    )


def pooling_numbers(
    random: Random, sizes: Sequence[int], dilated: bool = True, ceiling: bool = True
) -> tuple[dict[str, list[int]], list[int]]:
    """Options that fit, and the output sizes that they give."""
    options: dict[str, list[int]] = {
        name: [] for name in ("Strides", "WindowSize", "StartPadding", "EndPadding", "Dilations")
    }
    places = []
    for size in sizes:
        start, end = random.choice([0, 0, 1, 2]), random.choice([0, 0, 1, 3])
        dilation, stride = random.choice([1, 1, 2, 3] if dilated else [1]), random.choice([1, 1, 2, 5])
        window = random.randint(1, (size + start + end - 1) // dilation + 1)
        rest = size + start + end - ((window - 1) * dilation + 1)
        places.append(rest // stride + 1 + (ceiling and rest % stride > 0 and random.random() < 0.3))
        for name, value in zip(options, (stride, window, start, end, dilation), strict=True):
            options[name].append(value)
    return options, places


def good_pooling(random: Random) -> OperatorDesc:
    sizes = (random.randint(1, 2), random.randint(1, 3), *small_sizes(random, random.choice([2, 3]), 64))
    options, places = pooling_numbers(random, sizes[2:])
    types = random.choice(BYTES), random.choice(BYTES)

    def quantisation(data_type: TensorDataType) -> DML_BUFFER_TENSOR_DESC:
        channels = random.choice([1, sizes[1]])
        return tensor_of(random, data_type, (1, channels, 1, 1))

    real = TensorDataType.FLOAT32
    return DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=tensor_of(random, types[0], sizes),
        InputScaleTensor=quantisation(real),
        InputZeroPointTensor=random.choice([None, quantisation(types[0])]),
        OutputScaleTensor=quantisation(real),
        OutputZeroPointTensor=random.choice([None, quantisation(types[1])]),
        OutputTensor=tensor_of(random, types[1], (*sizes[:2], *places), True),
        **options,
        IncludePadding=random.choice([True, False]),
    )


def good_float_pooling(random: Random) -> OperatorDesc:
    found = spec(random.choice(["AVERAGE_POOLING", "LP_POOLING", "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"]))
    sizes = (random.randint(1, 2), random.randint(1, 3), *small_sizes(random, random.choice([2, 3]), 64))
    options, places = pooling_numbers(random, sizes[2:], "Dilations" in found.members)
    data_type, output = random.choice(found.tensors["InputTensor"].data_types), (*sizes[:2], *places)
    more = {
        "IncludePadding": random.choice([True, False]),
        "P": random.choice([1, 2, 3, 2**32 - 1]),
        "OutputIndicesTensor": random.choice(
            [None, tensor_of(random, random.choice([TensorDataType.UINT32, TensorDataType.UINT64]), output, True)]
        ),
    }
    members: dict[str, Any] = {
        "InputTensor": tensor_of(random, data_type, sizes),
        "OutputTensor": tensor_of(random, data_type, output, True),
        **{name: value for name, value in {**options, **more}.items() if name in found.members},
    }
    return found.desc(**members)


def good_gemm(random: Random) -> OperatorDesc:
    activation = random.choice([None, fused(random, "GEMM")])
    # SOFTMAX is of matrices only.
    most = 1 if isinstance(activation, DML_ACTIVATION_SOFTMAX_OPERATOR_DESC) else 2
    batch = [random.randint(1, most) for _ in range(random.randint(0, 2))]
    m, k, n = (random.choice([1, 1, 2, 3, 7]) for _ in range(3))
    data_type = random.choice(REALS)
    transforms = [random.choice(list(MatrixTransform)) for _ in range(2)]
    (a, b) = ([*batch, *shape[:: 1 - 2 * turn]] for shape, turn in zip(((m, k), (k, n)), transforms, strict=True))
    output = [*batch, m, n]
    return DML_GEMM_OPERATOR_DESC(
        ATensor=tensor_of(random, data_type, a),
        BTensor=tensor_of(random, data_type, b),
        CTensor=random.choice([None, tensor_of(random, data_type, output)]),
        OutputTensor=tensor_of(random, data_type, output, True),
        TransA=transforms[0],
        TransB=transforms[1],
        Alpha=random.choice([0, 1, -0.5]),
        Beta=random.choice([0, 1, 2]),
        FusedActivation=activation,
    )


def good_convolution(random: Random) -> OperatorDesc:
    large = small_sizes(random, random.choice([1, 2, 3]), 64)
    options, small = pooling_numbers(random, large, ceiling=False)
    forward, data_type = random.random() < 0.5, random.choice(REALS)
    groups, batch = random.choice([1, 1, 2, 3]), random.randint(1, 2)
    inputs, outputs = groups * random.randint(1, 2), groups * random.randint(1, 2)
    padding = [random.choice([0, 0, 1]) for _ in large]
    read, written = (large, small) if forward else (small, large)
    sizes = [place + more for place, more in zip(written, padding, strict=True)]
    channels = (outputs, inputs // groups) if forward else (inputs, outputs // groups)
    bias = (1, outputs, *[1] * len(large))
    return DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, (batch, inputs, *read)),
        FilterTensor=tensor_of(random, data_type, (*channels, *options.pop("WindowSize"))),
        BiasTensor=random.choice([None, tensor_of(random, data_type, bias)]),
        OutputTensor=tensor_of(random, data_type, (batch, outputs, *sizes), True),
        Mode=random.choice(list(ConvolutionMode)),
        Direction=ConvolutionDirection.FORWARD if forward else ConvolutionDirection.BACKWARD,
        **options,
        OutputPadding=padding,
        GroupCount=groups,
        FusedActivation=random.choice([None, fused(random, "CONVOLUTION")]),
    )


def good_element_wise(random: Random) -> OperatorDesc:
    found = spec(random.choice([name for name in OPERATORS if name.startswith("ELEMENT_WISE_")]))
    sizes, data_type = small_sizes(random), random.choice(found.tensors["OutputTensor"].data_types)
    members: dict[str, Any] = {
        name: tensor_of(random, data_type, sizes, name == "OutputTensor") for name in found.tensors
    }
    if "ExponentTensor" in members:
        kind = random.choice(found.tensors["ExponentTensor"].data_types)
        members["ExponentTensor"] = tensor_of(random, kind, sizes)
    for name, kind in found.members.items():
        if kind in ("FLOAT", "SCALAR"):
            members[name] = random.choice([0, 1, 2, 100])
        elif kind == "OptionalScaleBias" and random.random() < 0.5:
            members[name] = DML_SCALE_BIAS(Scale=random.choice([0, 1, -0.5, 1e30]), Bias=random.choice([0, 3]))
        elif kind == "OptionalActivation" and random.random() < 0.8:
            members[name] = fused(random)
        elif kind == "enums.TensorDataType":
            members[name] = data_type
    return found.desc(**members)


def good_split(random: Random) -> OperatorDesc:
    desc: Any = good_join(random)
    pieces = [tensor_of(random, piece.DataType, piece.Sizes, True) for piece in desc.InputTensors]
    whole = tensor_of(random, desc.OutputTensor.DataType, desc.OutputTensor.Sizes)
    return DML_SPLIT_OPERATOR_DESC(InputTensor=whole, OutputTensors=pieces, Axis=desc.Axis)


def good_slice(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random), random.choice(JOINED)
    offsets = [random.randrange(size) for size in sizes]
    windows = [random.randint(1, size - offset) for size, offset in zip(sizes, offsets, strict=True)]
    strides = [random.choice([1, 1, 2, 7]) for _ in sizes]
    taken = [random.randint(1, (window - 1) // stride + 1) for window, stride in zip(windows, strides, strict=True)]
    tensors = {
        "InputTensor": tensor_of(random, data_type, sizes),
        "OutputTensor": tensor_of(random, data_type, taken, True),
    }
    if random.random() < 0.5:
        return DML_SLICE_OPERATOR_DESC(**tensors, Offsets=offsets, Sizes=taken, Strides=strides)
    return DML_SLICE1_OPERATOR_DESC(
        **tensors,
        InputWindowOffsets=offsets,
        InputWindowSizes=windows,
        InputWindowStrides=[stride * random.choice([1, -1]) for stride in strides],
    )


def good_padding(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random, most=64), random.choice(JOINED)
    start, end = ([random.choice([0, 0, 0, 1, 2, 9]) for _ in sizes] for _ in range(2))
    start, end = ([n if size < 4 else 0 for n, size in zip(each, sizes, strict=True)] for each in (start, end))
    padded = [sum(each) for each in zip(sizes, start, end, strict=True)]
    if np.prod(padded) > 4096:
        padded, start, end = list(sizes), [0] * len(sizes), [0] * len(sizes)
    return DML_PADDING_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, sizes),
        OutputTensor=tensor_of(random, data_type, padded, True),
        PaddingMode=random.choice(list(PaddingMode)),
        PaddingValue=random.choice([0, 1.5, -3, 1e30, float("nan")]),
        StartPadding=start,
        EndPadding=end,
    )


def good_gather(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random, most=64), random.choice(JOINED)
    axis, rank = random.randrange(len(sizes)), len(sizes)
    indices = small_sizes(random, random.choice([0, 1, 1, min(2, rank)]), 32)
    result = [*sizes[:axis], *indices, *sizes[axis + 1 :]]
    while len(result) > rank and result[0] == 1:
        del result[0]
    if len(result) > rank:
        indices, result = (3,), [*sizes[:axis], 3, *sizes[axis + 1 :]]
    kind = random.choice([TensorDataType[name] for name in ("INT64", "INT32", "UINT64", "UINT32")])
    return DML_GATHER_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, sizes),
        IndicesTensor=tensor_of(random, kind, (*(1,) * (rank - len(indices)), *indices)),
        OutputTensor=tensor_of(random, data_type, (*(1,) * (rank - len(result)), *result), True),
        Axis=axis,
        IndexDimensions=len(indices),
    )


def good_cast(random: Random) -> OperatorDesc:
    sizes = small_sizes(random)
    return DML_CAST_OPERATOR_DESC(
        InputTensor=tensor_of(random, random.choice(JOINED), sizes),
        OutputTensor=tensor_of(random, random.choice(JOINED), sizes, True),
    )


def good_image(random: Random) -> OperatorDesc:
    data_type = random.choice([TensorDataType.FLOAT32, TensorDataType.FLOAT16])
    if random.random() < 0.5:
        sizes: tuple[int, ...] = (random.randint(1, 2), random.choice([1, 3]), *small_sizes(random, 2, 64))
        return DML_VALUE_SCALE_2D_OPERATOR_DESC(
            InputTensor=tensor_of(random, data_type, sizes),
            OutputTensor=tensor_of(random, data_type, sizes, True),
            Scale=random.choice([1, 0.5, -2, float("inf")]),
            Bias=[random.choice([0, 1, -0.5, 1e30]) for _ in range(sizes[1])],
        )
    sizes = small_sizes(random, random.choice([4, 5]), 64)
    height, width = random.choice([1, 2, 3]), random.choice([1, 2, 5])
    return DML_UPSAMPLE_2D_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, sizes),
        OutputTensor=tensor_of(random, data_type, (*sizes[:-2], sizes[-2] * height, sizes[-1] * width), True),
        ScaleSize=DML_SIZE_2D(Width=width, Height=height),
        InterpolationMode=random.choice(list(InterpolationMode)),
    )


def good_fill(random: Random) -> OperatorDesc:
    is_constant = random.random() < 0.5
    name = "FILL_VALUE_CONSTANT" if is_constant else "FILL_VALUE_SEQUENCE"
    data_type = random.choice(spec(name).tensors["OutputTensor"].data_types)
    number = random.choice([0, 1, 7, 100])
    members = {"Value": number} if is_constant else {"ValueStart": number, "ValueDelta": random.choice([0, 1, -1])}
    output = tensor_of(random, data_type, small_sizes(random), True)
    return spec(name).desc(OutputTensor=output, ValueDataType=data_type, **members)


FLOATS = [0.0, 1.0, -1.0, 0.25, 100.0, 1e30, float("inf"), float("-inf"), float("nan")]


def good_activation(random: Random) -> OperatorDesc:
    found = spec(random.choice([name for name in OPERATORS if name.startswith("ACTIVATION_")]))
    sizes, data_type = small_sizes(random), random.choice(found.tensors["OutputTensor"].data_types)
    if "Axes" not in found.members and "MAX" in found.name:
        sizes = (*[1] * len(sizes[:-2]), *sizes[-2:])
    members: dict[str, Any] = {
        name: tensor_of(random, data_type, sizes, name == "OutputTensor") for name in found.tensors
    }
    for name, kind in found.members.items():
        if kind == "FLOAT":
            members[name] = random.choice(FLOATS)
        elif kind == "UINTs":
            members[name] = random.sample(range(len(sizes)), random.randint(1, len(sizes)))
    return found.desc(**members)


def fused(random: Random, operator: str = "") -> OperatorDesc:
    """An activation that may be fused into an operator; where none is named, into some."""
    found = spec(random.choice([name for name in FUSIBLE if not operator or fused_since(name, operator) is not None]))
    members: dict[str, Any] = dict.fromkeys(found.tensors)
    for name, kind in found.members.items():
        if kind == "FLOAT":
            members[name] = random.choice(FLOATS)
        elif kind == "UINTs":
            members[name] = [random.randrange(2 if operator else 4)]
    return found.desc(**members)


def good_recurrent(random: Random) -> OperatorDesc:
    operator, gates, activations = random.choice([("RNN", 1, 1), ("LSTM", 4, 3), ("GRU", 3, 2)])
    found, data_type = spec(operator), random.choice([TensorDataType.FLOAT32, TensorDataType.FLOAT16])
    steps, batch, read, hidden = (random.randint(1, 3) for _ in range(4))
    direction = random.choice(list(RecurrentNetworkDirection))
    directions = 2 if direction == RecurrentNetworkDirection.BIDIRECTIONAL else 1
    state = (1, directions, batch, hidden)
    sizes = {
        "InputTensor": (1, steps, batch, read),
        "WeightTensor": (1, directions, gates * hidden, read),
        "RecurrenceTensor": (1, directions, gates * hidden, hidden),
        "BiasTensor": (1, 1, directions, 2 * gates * hidden),
        "SequenceLengthsTensor": (1, 1, 1, batch),
        "PeepholeTensor": (1, 1, directions, 3 * hidden),
        "OutputSequenceTensor": (steps, directions, batch, hidden),
    }
    kept = random.choice([name for name in found.tensors if name.startswith("Output")])
    members: dict[str, Any] = {}
    for name, row in found.tensors.items():
        if name == kept or "Optional" not in row.kind or random.random() < 0.6:
            kind = TensorDataType.UINT32 if "Lengths" in name else data_type
            members[name] = tensor_of(random, kind, sizes.get(name, state), name.startswith("Output"))
    for name, kind in found.members.items():
        if kind == "BOOL":
            members[name] = random.choice([True, False])
        elif kind == "FLOAT":
            members[name] = random.choice([0, 1, 2.5])
    descs = [fused(random, operator) for _ in range(activations * directions)]
    return found.desc(**members, ActivationDescs=descs, Direction=direction)


def good_reduce(random: Random) -> OperatorDesc:
    function, sizes = random.choice(list(ReduceFunction)), small_sizes(random)
    rows = spec("REDUCE").support_by[1][function].newest  # type: ignore[index]
    data_type = random.choice(rows["InputTensor"].data_types)
    of_output = data_type
    if function in (ReduceFunction.ARGMAX, ReduceFunction.ARGMIN):
        of_output = random.choice(rows["OutputTensor"].data_types)
    axes = random.sample(range(len(sizes)), random.randint(1, len(sizes)))
    return DML_REDUCE_OPERATOR_DESC(
        Function=function,
        InputTensor=tensor_of(random, data_type, sizes),
        OutputTensor=tensor_of(random, of_output, [1 if i in axes else n for i, n in enumerate(sizes)], True),
        Axes=axes,
    )


NORMALIZATIONS = [name for name in OPERATORS if "_NORMALIZATION" in name]
FUSED = [name for name in FUSIBLE if fused_since(name, "BATCH_NORMALIZATION")]


def good_normalization(random: Random) -> OperatorDesc:
    found = spec(random.choice(NORMALIZATIONS))
    row = found.tensors["InputTensor"]
    sizes, data_type = small_sizes(random, random.choice(row.dimension_counts)), random.choice(row.data_types)
    members: dict[str, Any] = {}
    for name, kind in found.members.items():
        if name in ("InputTensor", "OutputTensor"):
            members[name] = tensor_of(random, data_type, sizes, name == "OutputTensor")
        elif kind == "Tensor" or (kind == "OptionalTensor" and random.random() < 0.7):
            members[name] = tensor_of(random, data_type, [random.choice([1, size]) for size in sizes])
        elif kind == "BOOL":
            members[name] = random.choice([True, False])
        elif kind == "FLOAT":
            members[name] = random.choice([0, 0.5, 1, 1e-5, -1])
        elif kind == "OptionalActivation" and random.random() < 0.4:
            fused = spec(random.choice(FUSED))
            numbers = {each: random.choice([0, 0.5, 2]) for each, kind in fused.members.items() if kind == "FLOAT"}
            members[name] = fused.desc(**numbers)
    if "Axes" in found.members:
        members["Axes"] = random.sample(range(len(sizes)), random.randint(1, len(sizes)))
    if "LocalSize" in found.members:
        members["LocalSize"] = random.choice([1, 2, 3, 5, 2**32 - 1])
    return found.desc(**members)


GOOD = [
    good_tally,
    good_tally,
    good_join,
    good_pooling,
    good_element_wise,
    good_activation,
    good_recurrent,
    good_reduce,
    good_normalization,
    good_split,
    good_slice,
    good_padding,
    good_gather,
    good_cast,
    good_image,
    good_fill,
    good_float_pooling,
    good_gemm,
    good_convolution,
]


def good_desc(random: Random) -> OperatorDesc:
    return random.choice(GOOD)(random)


def members_of(desc: Any) -> dict[str, Any]:
    return {field.name: getattr(desc, field.name) for field in fields(desc)}


DERIVED = (
    "TotalTensorSizeInBytes",
    "DimensionCount",
    "InputCount",
    "OutputCount",
    "AxisCount",
    "ChannelCount",
    "ActivationDescCount",
)


def mutated_number(random: Random, value: Any) -> Any:
    if type(value) is int and random.random() < 0.5:
        return value + random.choice([-1, 1, 2, 2**32])
    return number(random) if random.random() < 0.7 else junk(random)


def mutated(random: Random, value: Any) -> Any:
    """The value with something else in one place, or another value."""
    if isinstance(value, (DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, DML_SIZE_2D, OperatorDesc)) and random.random() < 0.9:
        members = members_of(value)
        name = random.choice(list(members))
        members[name] = mutated(random, members[name])
        for derived in DERIVED:
            if derived in members and derived != name and random.random() < 0.7:
                members[derived] = None
        return type(value)(**members)
    if isinstance(value, tuple) and value and random.random() < 0.8:
        items = list(value)
        i = random.randrange(len(items))
        if random.random() < 0.2:
            del items[i]
        elif random.random() < 0.2:
            items.insert(i, items[i])
        else:
            items[i] = mutated(random, items[i])
        return items
    if isinstance(value, int):
        return mutated_number(random, value)
    return junk(random)


def elements(desc: OperatorDesc) -> int:
    found = spec_of(desc)
    assert found is not None
    tensors = [tensor for _, tensor in [*found.inputs(desc), *found.outputs(desc)] if tensor is not None]
    return sum(int(np.prod([float(size) for size in each.Sizes])) for each in tensors) + sum(
        (each.TotalTensorSizeInBytes or 0) for each in tensors
    )


def fill(random: Random, layout: Layout, label: str) -> np.ndarray:
    """Values whose sums and products are exact, so that engines have to agree; of indices most that are right."""
    choices: list[float]
    if "Indices" in label:
        choices = [0] if random.random() < 0.9 else [0, 1, 2, np.iinfo(layout.dtype).max]
        choices += [-1] if layout.dtype.kind == "i" else []
    elif "Scale" in label:
        choices = [1, 1, 0.5, 0.1, 3, 1e-3] + [0, -1, float("nan")] * (random.random() < 0.05)
    elif label == "SequenceLengthsTensor":
        choices = [0, 1, 1] + [2, 3, 2**32 - 1] * (random.random() < 0.5)
    elif layout.dtype.kind == "f":
        choices = [0, 1, 1, -1, 2, 0.5]
        choices += [float("inf"), float("nan")] if random.random() < 0.1 else []
    else:
        limits = np.iinfo(layout.dtype)
        choices = [0, 1, 2, 3, limits.min, limits.max, limits.max // 3]
    size = int(np.prod(layout.sizes))
    return np.array(random.choices(choices, k=size), layout.dtype).reshape(layout.sizes)


def run_desc(random: Random, desc: OperatorDesc) -> None:
    """Both engines do the same with a desc that the validator has accepted."""
    found = spec_of(desc)
    assert found is not None
    memories: list[np.ndarray | None] = []
    for label, tensor in found.inputs(desc):
        memory = None
        if tensor is not None:
            layout = Layout.of_desc(tensor)
            memory = np.full(layout.bounds()[1], 0xA5, np.uint8)
            layout.view(memory)[...] = fill(random, layout, label)
        memories.append(memory)
    outputs = [None if tensor is None else Layout.of_desc(tensor) for _, tensor in found.outputs(desc)]
    owned = [tensor is not None and bool(tensor.Flags) for _, tensor in found.inputs(desc)]
    seen = []
    for engine in ENGINES:
        device = Device(engine)
        operator = device.compile_operator(device.create_operator(desc))
        written = [None if each is None else np.full(each.bounds()[1] + 16, 0x5A, np.uint8) for each in outputs]

        def dispatch(operator: CompiledOperator = operator, written: Sequence[Any] = written) -> None:
            persistent = None
            if any(owned):
                bound = [given if own else None for given, own in zip(memories, owned, strict=True)]
                persistent = operator.initialise(bound)
            inputs = [None if own else given for given, own in zip(memories, owned, strict=True)]
            operator.dispatch(inputs, written, persistent=persistent)

        before = [None if given is None else given.copy() for given in memories]
        result = outcome(dispatch)
        for given, kept in zip(memories, before, strict=True):
            expect(given is None or bytes(given) == bytes(kept), engine, "wrote to an input")  # type: ignore[arg-type]
        values = []
        for layout, memory in zip(outputs, written, strict=True):
            if layout is None or memory is None:
                continue
            values.append(layout.view(memory).copy())
            expected = np.full_like(memory, 0x5A)
            if result.rules is None:
                layout.view(expected)[...] = values[-1]
            expect(bytes(expected) == bytes(memory), engine, "wrote into gaps, or refused and wrote:", result.rules)
        expect(all(rule[1] == "V" for rule, _ in result.rules or ()), engine, "refused", result.rules)
        seen.append((result.rules, values))
    (rules, first), (other_rules, second) = seen
    for one, other in zip(first, second, strict=True):
        same_results(desc, rules, one, other_rules, other, units_of(desc))


def same_results(
    what: object, rules: Any, values: np.ndarray, other_rules: Any, other_values: np.ndarray, units: int = 0
) -> None:
    expect(rules == other_rules, "engines refuse differently:", rules, other_rules, what)
    same = np.array_equal(within(units, other_values, values), values, equal_nan=values.dtype.kind == "f")
    expect(same, "engines differ:", values.tolist(), other_values.tolist(), what)


def any_level(random: Random) -> FeatureLevel:
    return FeatureLevel.LEVEL_6_4 if random.random() < 0.7 else random.choice(list(FeatureLevel))


def validator(random: Random) -> None:
    desc: Any = good_desc(random)
    for _ in range(random.choice([0, 0, 1, 1, 1, 2])):
        desc = mutated(random, desc)
    note(desc)
    level = any_level(random)
    strict = random.random() < 0.3
    violations = validate(desc, level, strict)
    for violation in violations:
        check_violation(violation)
    refusal = outcome(lambda: Device("reference", level, strict).create_operator(desc))
    expect((refusal.rules is None) == (not violations), "validate and create_operator differ:", refusal.rules)
    if not violations and level == FeatureLevel.LEVEL_6_4 and elements(desc) < 20_000:
        run_desc(random, desc)
