"""The operators that move, convert and make elements, against NumPy, exact arithmetic and PyTorch."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anydml import (
    DML_CAST_OPERATOR_DESC,
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC,
    DML_GATHER_OPERATOR_DESC,
    DML_PADDING_OPERATOR_DESC,
    DML_SIZE_2D,
    DML_SLICE1_OPERATOR_DESC,
    DML_SLICE_OPERATOR_DESC,
    DML_SPLIT_OPERATOR_DESC,
    DML_UPSAMPLE_2D_OPERATOR_DESC,
    DML_VALUE_SCALE_2D_OPERATOR_DESC,
    Device,
    DMLValueError,
    InterpolationMode,
    PaddingMode,
    TensorDataType,
    validate,
)
from anydml.core.strided_layout import DATA_TYPES, DTYPES, Array
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from cases import tensor, tensor_of
from exact import FLOATS
from harness import ENGINES, GPU, bits, engines_of, run

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

property_test = settings(max_examples=40, deadline=None)
SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def random_bits(sizes: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    """NaNs with payloads among them."""
    dtype = np.dtype(dtype)
    count = int(np.prod(sizes)) * dtype.itemsize
    return np.frombuffer(np.random.default_rng(seed).bytes(count), dtype).reshape(sizes)


def same_bits(actual: Array | None, expected: Array) -> None:
    assert actual is not None
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    expected = np.ascontiguousarray(expected)
    np.testing.assert_array_equal(actual.view(bits(actual)), expected.view(bits(expected)))


def computed(desc: OperatorDesc, *inputs: Array) -> Array:
    """The same on the CPU's kernels as on the reference; or on a GPU."""
    first, *others = [run(engine, desc, inputs)[0] for engine in ([GPU] if GPU else engines_of(desc))]
    assert first is not None
    for each in others:
        same_bits(each, first)
    return first


# What is copied, by bits


@property_test
@given(SIZES, st.data())
def test_slices_are_those_of_numpy(sizes: tuple[int, ...], data: st.DataObject) -> None:
    x = random_bits(sizes)
    slices = [slice(*data.draw(st.slices(size)).indices(size)) for size in sizes]
    expected = x[tuple(slices)]
    if not expected.size:
        return
    lengths = [len(range(*each.indices(size))) for each, size in zip(slices, sizes, strict=True)]
    # The window from the first element that a slice takes to its last.
    windows = [
        (each.start, each.start + (length - 1) * each.step) for each, length in zip(slices, lengths, strict=True)
    ]
    desc: OperatorDesc = DML_SLICE1_OPERATOR_DESC(
        InputTensor=tensor_of(x),
        OutputTensor=tensor_of(expected),
        InputWindowOffsets=[min(window) for window in windows],
        InputWindowSizes=[max(window) - min(window) + 1 for window in windows],
        InputWindowStrides=[each.step for each in slices],
    )
    same_bits(computed(desc, x), expected)
    if all(each.step > 0 for each in slices):
        desc = DML_SLICE_OPERATOR_DESC(
            InputTensor=tensor_of(x),
            OutputTensor=tensor_of(expected),
            Offsets=[each.start for each in slices],
            Sizes=lengths,
            Strides=[each.step for each in slices],
        )
        same_bits(computed(desc, x), expected)


def test_any_part_of_a_window_is_right_but_the_whole_is_inferred() -> None:
    for size in range(1, 6):
        desc = DML_SLICE1_OPERATOR_DESC(
            InputTensor=tensor((9,)),
            OutputTensor=tensor((size,)),
            InputWindowOffsets=[1],
            InputWindowSizes=[8],
            InputWindowStrides=[-2],
        )
        assert [v.rule for v in validate(desc, strict=True)] == ["(C7)"] * (size > 4)
        assert spec("SLICE1").infer_sizes(desc) == {"OutputTensor": ((4,),)}


@property_test
@given(SIZES, st.data())
def test_pieces_are_those_of_numpy(sizes: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(sizes) - 1))
    cuts = sorted(data.draw(st.sets(st.integers(1, 4))) & set(range(1, sizes[axis])))
    x = random_bits(sizes, np.float16)
    expected = np.split(x, cuts, axis)
    desc = DML_SPLIT_OPERATOR_DESC(
        InputTensor=tensor_of(x), OutputTensors=[tensor_of(piece) for piece in expected], Axis=axis
    )
    for engine in engines_of(desc):
        for actual, piece in zip(run(engine, desc, [x]), expected, strict=True):
            same_bits(actual, piece)


NUMPY_MODES = {
    PaddingMode.CONSTANT: "constant",
    PaddingMode.EDGE: "edge",
    PaddingMode.REFLECTION: "reflect",
    PaddingMode.SYMMETRIC: "symmetric",
    PaddingMode.WRAP: "wrap",
}


@pytest.mark.parametrize("mode", PaddingMode)
@property_test
@given(SIZES, st.data())
def test_paddings_are_those_of_numpy(mode: PaddingMode, sizes: tuple[int, ...], data: st.DataObject) -> None:
    x = random_bits(sizes)
    ends = [data.draw(st.tuples(st.integers(0, 12), st.integers(0, 12))) for _ in sizes]
    ends = [each if i < 2 else (0, 0) for i, each in enumerate(ends)]
    expected = np.pad(x, ends, NUMPY_MODES[mode], **({"constant_values": 2.5} if mode == PaddingMode.CONSTANT else {}))
    desc = DML_PADDING_OPERATOR_DESC(
        InputTensor=tensor_of(x),
        OutputTensor=tensor_of(expected),
        PaddingMode=mode,
        PaddingValue=2.5,
        StartPadding=[start for start, _ in ends],
        EndPadding=[end for _, end in ends],
    )
    same_bits(computed(desc, x), expected)


@pytest.mark.parametrize("kind", ["int64", "int32", "uint64", "uint32"])
@property_test
@given(SIZES, st.data())
def test_gathered_is_what_numpy_takes(kind: str, sizes: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(sizes) - 1))
    shape = data.draw(st.lists(st.integers(1, 3), max_size=3).map(tuple))
    lowest = -sizes[axis] if kind[0] == "i" else 0
    indices = np.random.default_rng(data.draw(st.integers(0, 99))).integers(lowest, sizes[axis], shape).astype(kind)
    x = random_bits(sizes)
    expected = np.take(x, indices.astype(np.int64), axis)
    # Of as many dimensions as have room for all, with 1s before those that there are.
    rank = max(expected.ndim, x.ndim, indices.ndim, 1)
    x, which, expected = (each.reshape((1,) * (rank - each.ndim) + each.shape) for each in (x, indices, expected))
    desc = DML_GATHER_OPERATOR_DESC(
        InputTensor=tensor_of(x),
        IndicesTensor=tensor_of(which),
        OutputTensor=tensor_of(expected),
        Axis=axis + rank - len(sizes),
        IndexDimensions=len(shape),
    )
    same_bits(computed(desc, x, which), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@property_test
@given(SIZES.filter(lambda sizes: len(sizes) >= 2), st.integers(1, 4), st.integers(1, 4))
def test_the_nearest_is_repeated(dtype: str, sizes: tuple[int, ...], height: int, width: int) -> None:
    x = random_bits((1,) * (4 - len(sizes)) + sizes, dtype)
    same_bits(upsampled(x, height, width, InterpolationMode.NEAREST_NEIGHBOR), np.kron(x.view(bits(x)),
        np.ones((height, width), bits(x))).view(x.dtype))  # fmt: skip


# What is computed


def upsampled(x: Array, height: int, width: int, mode: InterpolationMode = InterpolationMode.LINEAR) -> Array:
    sizes = (*x.shape[:-2], x.shape[-2] * height, x.shape[-1] * width)
    desc = DML_UPSAMPLE_2D_OPERATOR_DESC(
        InputTensor=tensor_of(x),
        OutputTensor=tensor(sizes, DATA_TYPES[x.dtype].name),
        ScaleSize=DML_SIZE_2D(Width=width, Height=height),
        InterpolationMode=mode,
    )
    return computed(desc, x)


def between(row: list[Fraction], o: int, scale: int) -> Fraction:
    place = min(max((Fraction(o) + Fraction(1, 2)) / scale - Fraction(1, 2), Fraction(0)), Fraction(len(row) - 1))
    i = min(int(place), len(row) - 2) if len(row) > 1 else 0
    return row[i] if len(row) == 1 else row[i] + (row[i + 1] - row[i]) * (place - i)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 2), (3, 1), (5, 4), (1, 7)])
def test_linear_is_the_nearest_to_the_exact(dtype: np.dtype[Any], height: int, width: int) -> None:
    x = np.random.default_rng(1).uniform(-8, 8, (3, 4)).astype(dtype)
    rows = [[Fraction(value) for value in row] for row in x.tolist()]
    wide = [[between(row, o, width) for o in range(4 * width)] for row in rows]
    exact = [[between([row[j] for row in wide], o, height) for j in range(4 * width)] for o in range(3 * height)]
    expected = np.array([[FLOATS[dtype].rounded(value) for value in row] for row in exact])
    np.testing.assert_array_equal(upsampled(x[None, None], height, width)[0, 0], expected)


@property_test
@given(sizes=st.tuples(*[st.integers(1, 4)] * 4), height=st.integers(1, 5), width=st.integers(1, 5))
def upsampling_is_torchs(torch: Any, sizes: tuple[int, ...], height: int, width: int) -> None:
    x = np.random.default_rng(2).uniform(-8, 8, sizes).astype(np.float32)
    options = {"scale_factor": (height, width), "mode": "bilinear", "align_corners": False}
    expected = torch.nn.functional.interpolate(torch.from_numpy(x), **options).numpy()
    np.testing.assert_allclose(upsampled(x, height, width), expected, rtol=0, atol=4e-6)
    expected = torch.nn.functional.interpolate(torch.from_numpy(x), scale_factor=(height, width)).numpy()
    same_bits(upsampled(x, height, width, InterpolationMode.NEAREST_NEIGHBOR), expected)


def test_upsampling_is_pytorchs(torch: Any) -> None:
    upsampling_is_torchs(torch)


def test_linear_in_5_d_is_that_of_each_image() -> None:
    x = np.random.default_rng(3).uniform(-8, 8, (2, 1, 3, 2, 4)).astype(np.float32)
    each = np.stack([upsampled(x[:, :, i], 2, 3) for i in range(3)], axis=2)
    same_bits(upsampled(x, 2, 3), each)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_scaled_values_are_the_nearest_to_the_exact(dtype: np.dtype[Any]) -> None:
    x = np.random.default_rng(4).uniform(-8, 8, (2, 3, 4, 5)).astype(dtype)
    desc = DML_VALUE_SCALE_2D_OPERATOR_DESC(
        InputTensor=tensor_of(x), OutputTensor=tensor_of(x), Scale=0.3, Bias=(0.1, -7, 2.5)
    )
    exact = [
        Fraction(value) * Fraction(desc.Scale) + Fraction(desc.Bias[i // 20 % 3])
        for i, value in enumerate(x.ravel().tolist())
    ]
    expected = np.array([FLOATS[dtype].rounded(value) for value in exact]).reshape(x.shape)
    np.testing.assert_array_equal(computed(desc, x), expected)


TYPES = list(DTYPES.values())


def some(dtype: np.dtype[Any]) -> Array:
    """Values of every size, the ends and those next to them."""
    rng = np.random.default_rng(5)
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        with np.errstate(over="ignore"):
            ends = [n + d for n in (0, 127, 255, 2**15, 2**31, 2**63) for d in (-1, -0.5, 0, 0.5, 1)]
            ordinary = np.array([*ends, *np.negative(ends), *rng.uniform(-300, 300, 100)]).astype(dtype)
        any_bits = random_bits((200,), dtype)
        return np.concatenate([ordinary, any_bits[np.isfinite(any_bits)], [limits.max, limits.min, limits.tiny]])
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.min + 1, limits.max - 1, limits.max]
    x = rng.integers(limits.min, limits.max, 200, dtype, True) >> rng.integers(0, limits.bits, 200, dtype)
    return np.concatenate([np.array(ends, dtype), x])


@pytest.mark.parametrize("wanted", TYPES, ids=str)
@pytest.mark.parametrize("given_type", TYPES, ids=str)
def test_casts_are_exact(given_type: np.dtype[Any], wanted: np.dtype[Any]) -> None:
    x = some(given_type)
    x = x[np.isfinite(x)] if x.dtype.kind == "f" else x
    desc = DML_CAST_OPERATOR_DESC(InputTensor=tensor_of(x), OutputTensor=tensor(x.shape, DATA_TYPES[wanted].name))
    if wanted.kind == "f":
        if wanted in FLOATS:
            expected = [FLOATS[wanted].rounded(Fraction(value)) for value in x.tolist()]
        else:
            expected = [float(value) for value in x.tolist()]  # Python rounds its integers to doubles once
    else:
        low, high = int(np.iinfo(wanted).min), int(np.iinfo(wanted).max)
        if given_type.kind == "f":
            expected = [min(max(int(value), low), high) for value in x.tolist()]
        else:
            expected = [(value - low) % (high - low + 1) + low for value in x.tolist()]
    np.testing.assert_array_equal(computed(desc, x), np.array(expected, wanted))


@pytest.mark.parametrize("given_type", [np.dtype(np.float64), np.dtype(np.float32)], ids=str)
def test_halves_are_rounded_once(given_type: np.dtype[Any]) -> None:
    """Between all halves, and beside it by so little that single precision does not see it."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    between = (halves[1:] + halves[:-1]) / 2
    beside = (
        np.nextafter(between, -np.inf),
        between,
        np.nextafter(between, np.inf),
        [65504, 65519.99, 65520, 1e9, 1e-99],
    )
    x = np.concatenate([sign * np.array(each) for each in beside for sign in (1, -1)]).astype(given_type)
    desc = DML_CAST_OPERATOR_DESC(InputTensor=tensor_of(x), OutputTensor=tensor(x.shape, "FLOAT16"))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(computed(desc, x), x.astype(np.float16))


def sequence(data_type: TensorDataType, count: int, start: float, delta: float) -> Array:
    desc = DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC(
        OutputTensor=tensor((count,), data_type.name), ValueDataType=data_type, ValueStart=start, ValueDelta=delta
    )
    return computed(desc)


@pytest.mark.parametrize("dtype", [dtype for dtype in TYPES if dtype.kind in "iu"], ids=str)
@property_test
@given(data=st.data())
def test_sequences_of_integers_wrap(dtype: np.dtype[Any], data: st.DataObject) -> None:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    start = data.draw(st.integers(low, high))
    delta = data.draw(st.integers(low or -(high + 1) // 2, high))
    expected = [(start + i * delta - low) % (high - low + 1) + low for i in range(20)]
    np.testing.assert_array_equal(sequence(DATA_TYPES[dtype], 20, start, delta), np.array(expected, dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@property_test
@given(st.floats(-1000, 1000), st.floats(-10, 10))
def test_sequences_of_floats_are_rounded_once(dtype: np.dtype[Any], start: float, delta: float) -> None:
    first, step = (Fraction(float(dtype.type(each))) for each in (start, delta))
    y = sequence(DATA_TYPES[dtype], 1000, start, delta)
    for i in range(0, 1000, 37):
        exact = first + i * step
        # One rounding to double precision before the last may turn a tie.
        assert y[i] in (FLOATS[dtype].rounded(exact), FLOATS[dtype].rounded(Fraction(float(exact))))


# Indices


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != GPU])
@pytest.mark.parametrize(
    ("kind", "index", "lowest"),
    [("int32", 3, -3), ("int32", -4, -3), ("int64", 2**40, -3), ("uint32", 3, 0), ("uint64", 2**64 - 1, 0)],
)
def test_an_index_that_the_axis_lacks_is_refused_and_nothing_written(
    engine: str, kind: str, index: int, lowest: int
) -> None:
    x, indices = np.zeros((2, 3), np.float32), np.zeros((1, 4), kind)
    indices[0, 2] = index
    y = np.full((2, 4), 9, np.float32)
    desc = DML_GATHER_OPERATOR_DESC(
        InputTensor=tensor_of(x), IndicesTensor=tensor_of(indices), OutputTensor=tensor_of(y), Axis=1, IndexDimensions=1
    )
    device = Device(engine)
    operator = device.compile_operator(device.create_operator(desc))
    with pytest.raises(DMLValueError) as raised:
        operator.dispatch([x, indices], [y])
    (violation,) = raised.value.violations
    assert (violation.rule, violation.where) == ("(V1)", "IndicesTensor")
    assert violation.found == f"{index} at (0, 2)"
    assert violation.expected.startswith(f"from {lowest} to 2, the indices of axis 1")
    assert (y == 9).all()


def test_all_that_is_wrong_with_several_outputs_is_named() -> None:
    desc = DML_SPLIT_OPERATOR_DESC(
        InputTensor=tensor((6, 2)), OutputTensors=[tensor((4, 3)), tensor((1, 2), "INT4")], Axis=0
    )
    assert sorted((v.rule, v.where) for v in validate(desc)) == [
        ("(C2)", "OutputTensors[1].DataType"),
        ("(C5)", "OutputTensors[0].Sizes[1]"),
        ("(C6)", "OutputTensors"),
        ("(S3)", "OutputTensors[1].DataType"),
    ]
