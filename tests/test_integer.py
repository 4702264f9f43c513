"""Products and convolutions of integers against exact arithmetic, of Python's integers and fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DML_BUFFER_TENSOR_DESC
from anydml.functions._call import _compile
from anydml.functions._call_cache import CALL_CACHE
from harness import ENGINE, GPU

ENGINES = ["cpu", *([GPU] if GPU else [])]
CPUS = ["", "amx", "amx,vnni"]
"""What the processor is to do without, so that each way to multiply bytes is tested where it has all of them."""
BYTES = (np.uint8, np.int8)
INTEGERS = (*BYTES, np.uint16, np.int16, np.uint32, np.int32)


def drawn(random: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def exact_product(a: np.ndarray, a_zero: Any, b: np.ndarray, b_zero: Any) -> np.ndarray:
    """In Python's integers."""
    left, right = (x.astype(object) - np.asarray(zero).astype(object) for x, zero in ((a, a_zero), (b, b_zero)))
    return left @ right


def wrapped(total: np.ndarray, bits: int) -> np.ndarray:
    half = 1 << (bits - 1)
    return (total + half) % (2 * half) - half


def rounded(total: int, factor: Fraction, zero_point: int, dtype: Any) -> int:
    """Python rounds fractions to the even integer at halves."""
    limits = np.iinfo(dtype)
    return int(min(max(round(total * factor) + zero_point, limits.min), limits.max))


@pytest.fixture(params=CPUS)
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def forget() -> None:
        if CALL_CACHE is not None:
            CALL_CACHE.clear()
        _compile.cache_clear()

    monkeypatch.setenv("ANYDML_CPU_WITHOUT", request.param)
    forget()
    yield
    forget()


# Around the sizes of tiles, and beyond blocks of columns, rows and products.
SHAPES = [(1, 1, 1), (1, 7, 33), (5, 3, 2), (12, 16, 32), (13, 17, 65), (97, 31, 40), (7, 1030, 9), (3, 5, 300)]


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("engine", ENGINES)
def test_matrices(shape: tuple[int, int, int], engine: str) -> None:
    m, k, n = shape
    random = np.random.default_rng(sum(shape))
    for left, right in product(BYTES, BYTES):
        a, b = drawn(random, (m, k), left), drawn(random, (k, n), right)
        a_zero, b_zero = drawn(random, (m,), left), drawn(random, (n,), right)
        y = anydml.matrix_multiply_integer(a, b, a_zero, b_zero, device=engine)
        assert (y == wrapped(exact_product(a, a_zero[:, None], b, b_zero), 32)).all()


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("shape", [(300, 3, 5, 7), (70, 17, 33, 50), (2, 40, 1100, 270)])
@pytest.mark.parametrize("engine", ENGINES)
def test_batches_of_matrices(shape: tuple[int, int, int, int], engine: str) -> None:
    """Small ones share calls of the loop over threads, in which each has its own sums and zero points."""
    batch, m, k, n = shape
    random = np.random.default_rng(sum(shape))
    for left, right in product(BYTES, BYTES):
        a, b = drawn(random, (batch, m, k), left), drawn(random, (batch, k, n), right)
        a_zero, b_zero = drawn(random, (1, m, 1), left), drawn(random, (1, 1, n), right)
        wide = a.astype(np.int64), b.astype(np.int64)
        for zeros in ((int(a_zero[0, 0, 0]), int(b_zero[0, 0, 0])), (a_zero, b_zero)):
            y = anydml.matrix_multiply_integer(a, b, *zeros, device=engine)
            np.testing.assert_array_equal(y, (wide[0] - zeros[0]) @ (wide[1] - zeros[1]))
        turned = np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)
        y = anydml.matrix_multiply_integer(a[..., ::-1], turned[:, ::-1], device=engine)
        np.testing.assert_array_equal(y, wide[0] @ wide[1])


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("engine", ENGINES)
def test_matrices_of_every_layout(engine: str) -> None:
    random = np.random.default_rng(1)
    a, b = drawn(random, (3, 34, 70), np.uint8), drawn(random, (2, 50, 70), np.int8)
    a, b = a[:, ::-2, ::2], b[::-1].swapaxes(1, 2)[:, ::2, ::3]
    for left, right in product((a[:2], a[:2].copy()), (b, b.copy())):
        expected = exact_product(left, 3, right, -5)
        out = np.zeros((2, 17, 40), np.int32)[:, :, ::-2][:, :, : b.shape[2]]
        y = anydml.matrix_multiply_integer(left, right, 3, -5, out=out, device=engine)
        assert y is out
        assert (y == expected).all()


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("rows", [1, 3, 4, 5])
@pytest.mark.parametrize("engine", ENGINES)
def test_few_rows_by_a_transposed_matrix(rows: int, engine: str) -> None:
    random = np.random.default_rng(rows)
    for left, right in ((np.uint8, np.int8), (np.int8, np.uint8)):
        a, b = drawn(random, (rows, 1031), left), drawn(random, (70, 1031), right).T
        zero = drawn(random, (rows,), left), drawn(random, (70,), right)
        expected = exact_product(a, zero[0][:, None], b, zero[1])
        np.testing.assert_array_equal(anydml.matrix_multiply_integer(a, b, *zero, device=engine), expected)
        y = anydml.matrix_multiply_integer_to_float(
            a.astype(np.int32), 1.0, b.astype(np.int16), 1.0, a_zero_point=zero[0].astype(np.int32), device=engine
        )
        total = exact_product(a, zero[0][:, None], b, 0)
        np.testing.assert_array_equal(y, total.astype(np.float64).astype(np.float32))


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("engine", ENGINES)
def test_sums_that_leave_32_bits(engine: str) -> None:
    """Products of the largest bytes, one more than fit, and many more."""
    for k in (33025, 33026, 40000, 100_000):
        a, b = np.full((2, k), 255, np.uint8), np.full((k, 2), 255, np.uint8)
        total = 255 * 255 * k
        assert (
            anydml.matrix_multiply_integer(a, b.T.copy().T, device=engine) == wrapped(np.array(total, object), 32)
        ).all()
        y = anydml.matrix_multiply_integer(a, b, device=engine)
        assert (y == wrapped(np.array(total, object), 32)).all()
        real = anydml.matrix_multiply_integer_to_float(a, 1.0, b, 1.0, device=engine)
        assert (real == np.float32(total)).all()
        scale = np.float32(2.0**30)
        q = anydml.quantized_linear_matrix_multiply(a, 1.0, b, 64.0, output_scale=scale, device=engine)
        assert (q == rounded(total, Fraction(64, 2**30), 0, np.uint8)).all()


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("engine", ENGINES)
def test_quotients_at_halves_and_next_to_them(engine: str) -> None:
    """Sums that are a bias alone, (2 k + 1) * step by 2 * step, where products by a rounded slope are not halves."""
    halves = 2 * np.arange(-120, 120) + 1
    x, w = np.zeros((1, 1, 1, 1), np.uint8), np.zeros((len(halves), 1, 1, 1), np.int8)
    missed = 0
    for step in (1, 3, 49, 98, 103, 107, 161, 187, 197, 207, 4001, 99_991, 2**23 - 1):
        for scale in (np.float32(2 * step), np.nextafter(np.float32(2 * step), np.float32(0)), np.float32(-2 * step)):
            for more in (0, -1, 1):
                bias = (halves * step + more).astype(np.int32)
                factor = 1 / Fraction(float(scale))
                expected = [rounded(int(total), factor, 5, np.int8) for total in bias]
                y = anydml.quantized_linear_convolution(
                    x, 1.0, w, 1.0, bias, output_scale=scale, output_zero_point=np.int8(5), device=engine
                )
                np.testing.assert_array_equal(y.ravel(), expected)
                by_slope = np.clip(np.rint(bias * (1 / float(scale))) + 5, -128, 127)
                missed += np.count_nonzero(by_slope != expected)
    assert missed > 100


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("engine", ENGINES)
def test_scales_for_each(engine: str) -> None:
    random = np.random.default_rng(3)
    a, b = drawn(random, (5, 9), np.uint8), drawn(random, (9, 70), np.int8)
    sa, sb, sy = (random.uniform(1e-3, 1, n).astype(np.float32) for n in (5, 70, 5))
    zero = drawn(random, (5,), np.int8)
    y = anydml.quantized_linear_matrix_multiply(
        a, sa, b, sb, output_scale=sy * 4, a_zero_point=7, output_zero_point=zero, device=engine
    )
    total = exact_product(a, 7, b, 0)
    for (i, j), found in np.ndenumerate(y):
        factor = Fraction(float(sa[i])) * Fraction(float(sb[j])) / Fraction(float(sy[i] * 4))
        assert found == rounded(int(total[i, j]), factor, int(zero[i]), np.int8)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("real", [np.float32, np.float16])
@pytest.mark.parametrize("engine", ENGINES)
def test_matrices_to_floats(real: Any, engine: str) -> None:
    random = np.random.default_rng(4)
    for left, right in product(INTEGERS, INTEGERS):
        a, b = drawn(random, (5, 37), left), drawn(random, (37, 21), right)
        a_zero, b_zero = drawn(random, (5,), left), drawn(random, (21,), right)
        scales = real(2.0**-9), random.uniform(0.5, 1, 21).astype(real)
        bias = random.uniform(-9, 9, (5, 21)).astype(real)
        y = anydml.matrix_multiply_integer_to_float(
            a, scales[0], b, scales[1], bias, a_zero_point=a_zero, b_zero_point=b_zero, device=engine
        )
        total = wrapped(exact_product(a, a_zero[:, None], b, b_zero), 64)
        factor = scales[0].astype(np.float64) * scales[1].astype(np.float64)
        with np.errstate(over="ignore"):
            expected = (total.astype(np.float64) * factor + bias.astype(np.float64)).astype(real)
        assert y.dtype == real
        np.testing.assert_array_equal(y, expected)


GEOMETRIES: list[dict[str, Any]] = [
    {},
    {"start_padding": (1, 2), "end_padding": (2, 0)},
    {"strides": (2, 3), "start_padding": 1, "end_padding": 1},
    {"dilations": (2, 1), "start_padding": (0, 3), "end_padding": (1, 3)},
    {"strides": (1, 2), "dilations": (3, 2), "start_padding": 4, "end_padding": 4},
]


def exact_convolution(x: Any, x_zero: int, w: Any, w_zero: Any, groups: int, numbers: dict[str, Any]) -> np.ndarray:
    """Of the padded difference, element by element."""

    def each(name: str, usual: int) -> tuple[int, int]:
        value = numbers.get(name, usual)
        return value if isinstance(value, tuple) else (value, value)

    (top, left), (bottom, right) = each("start_padding", 0), each("end_padding", 0)
    (sy, sx), (dy, dx) = each("strides", 1), each("dilations", 1)
    x = np.pad(x.astype(np.int64) - x_zero, ((0, 0), (0, 0), (top, bottom), (left, right)))
    w = w.astype(np.int64) - np.asarray(w_zero, np.int64).reshape(-1, 1, 1, 1)
    count, channels, height, width = w.shape
    rows, columns = (x.shape[2] - (height - 1) * dy - 1) // sy + 1, (x.shape[3] - (width - 1) * dx - 1) // sx + 1
    y = np.zeros((x.shape[0], count, rows, columns), np.int64)
    for o in range(count):
        first = o // (count // groups) * channels
        for i, k, q in product(range(channels), range(height), range(width)):
            taken = x[:, first + i, k * dy :: sy, q * dx :: sx][:, :rows, :columns]
            y[:, o] += w[o, i, k, q] * taken
    return y


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("numbers", GEOMETRIES)
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("engine", ENGINES)
def test_convolutions(numbers: dict[str, Any], groups: int, engine: str) -> None:
    random = np.random.default_rng(groups)
    for left, right in product(BYTES, BYTES):
        x, w = drawn(random, (2, 6, 9, 31), left), drawn(random, (12, 6 // groups, 2, 3), right)
        w_zero = drawn(random, (12,), right)
        total = exact_convolution(x, 9, w, w_zero, groups, numbers)
        layouts = (
            x,
            np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
            x[..., ::-1].copy()[..., ::-1],
        )
        for each in layouts:
            y = anydml.convolution_integer(each, w, 9, w_zero, group_count=groups, device=engine, **numbers)
            np.testing.assert_array_equal(y, total)
        bias, scales = drawn(random, (12,), np.int16), random.uniform(0.01, 0.02, 12).astype(np.float32)
        y = anydml.quantized_linear_convolution(
            x,
            0.5,
            w,
            scales,
            bias.astype(np.int32),
            output_scale=3,
            input_zero_point=9,
            filter_zero_point=w_zero,
            output_zero_point=np.int8(-3),
            group_count=groups,
            device=engine,
            **numbers,
        )
        for (n, o, i, j), found in np.ndenumerate(y[:1, :, :2, :3]):
            factor = Fraction(float(scales[o])) / 6
            assert found == rounded(int(total[n, o, i, j]) + int(bias[o]), factor, -3, np.int8)


@pytest.mark.parametrize(
    ("sizes", "numbers"),
    [
        ((1, 3, 70, 61), {"start_padding": 1, "end_padding": 1}),
        ((1, 3, 131, 70), {"strides": (2, 3), "dilations": (1, 2), "start_padding": (0, 2)}),
        ((2, 3, 4, 5003), {"strides": 1, "start_padding": (1, 0), "end_padding": (0, 3)}),
        ((1, 3, 900, 3), {"end_padding": 1}),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_each_channel_by_itself(sizes: tuple[int, ...], numbers: dict[str, Any], engine: str) -> None:
    """Planes of more places than a block, which begins and ends within rows; rows of more than one."""
    random = np.random.default_rng(sizes[3])
    for results in (1, 2):
        x, w = drawn(random, sizes, np.uint8), drawn(random, (3 * results, 1, 3, 3), np.int8)
        w_zero = drawn(random, (3 * results,), np.int8)
        total = exact_convolution(x, 77, w, w_zero, 3, numbers)
        y = anydml.convolution_integer(x, w, 77, w_zero, group_count=3, device=engine, **numbers)
        np.testing.assert_array_equal(y, total)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("engine", ENGINES)
def test_filters_of_any_strides(engine: str) -> None:
    random = np.random.default_rng(5)
    x, w = drawn(random, (1, 3, 8, 8), np.uint8), drawn(random, (5, 3, 3, 3), np.int8)
    total = exact_convolution(x, 0, w, 0, 1, {})
    for turned in (
        w.copy(order="F"),
        w[:, :, ::-1].copy()[:, :, ::-1],
        w.transpose(3, 2, 1, 0).copy().transpose(3, 2, 1, 0),
    ):
        np.testing.assert_array_equal(anydml.convolution_integer(x, turned, device=engine), total)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_filters_of_one_tap(groups: int, engine: str) -> None:
    """Places of images that follow each other are one dimension."""
    random = np.random.default_rng(7)
    x, w = drawn(random, (2, 6, 5, 67), np.uint8), drawn(random, (9, 6 // groups, 1, 1), np.int8)
    total = exact_convolution(x, 4, w, 0, groups, {})
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for each, out in (
        (x, np.zeros(total.shape, np.int32)),
        (last, np.zeros((2, 5, 67, 9), np.int32).transpose(0, 3, 1, 2)),
        (x[..., ::-1].copy()[..., ::-1], np.zeros(total.shape, np.int32)[:, :, ::-1, ::-1]),
    ):
        anydml.convolution_integer(each, w, 4, group_count=groups, out=out, device=engine)
        np.testing.assert_array_equal(out, total)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("padding", [(0, 0), (0, 1), (0, 70), (3, 0)])
@pytest.mark.parametrize("engine", ENGINES)
def test_filters_of_one_tap_on_lines_with_padding(padding: tuple[int, int], engine: str) -> None:
    """A line's places are columns of a matrix, but for those that lie past its end."""
    random = np.random.default_rng(11)
    x, w = drawn(random, (2, 6, 1, 67), np.uint8), drawn(random, (9, 6, 1, 1), np.int8)
    start, end = padding
    numbers = {"start_padding": (0, start), "end_padding": (0, end)}
    total = exact_convolution(x, 4, w, 0, 1, numbers)
    assert total.shape == (2, 9, 1, 67 + start + end)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for each in (x, last, x[..., ::-1].copy()[..., ::-1]):
        y = anydml.convolution_integer(each, w, 4, device=engine, **numbers)
        np.testing.assert_array_equal(y, total)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("real", [np.float32, np.float16])
@pytest.mark.parametrize("engine", ENGINES)
def test_quantised_to_the_range_of_the_elements(dtype: Any, real: Any, engine: str) -> None:
    """What comes back is within half a step of the elements, 0 is exact, and QUANTIZE_LINEAR does the same."""
    random = np.random.default_rng(6)
    for low, high, shape in ((-3, 5, (7,)), (2, 9, (40, 33)), (-9, -1, (3, 1000)), (-1e-3, 1e3, (100_000,))):
        x = random.uniform(low, high, shape).astype(real)
        y, scale, zero_point = anydml.dynamic_quantize_linear(x, output_dtype=dtype, device=engine)
        least, largest = min(0.0, float(x.min())), max(0.0, float(x.max()))
        assert scale.item() == np.float32((largest - least) / 255)
        limits = np.iinfo(dtype)
        assert limits.min <= zero_point.item() <= limits.max
        back = (y.astype(np.float64) - zero_point.item()) * scale.item()
        assert (np.abs(back - x) <= scale.item() * (1 + 1e-3)).all()
        again = anydml.quantize_linear(x.astype(np.float32), scale.item(), dtype(zero_point.item()), device=ENGINE)
        np.testing.assert_array_equal(y, again)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("shape", [(1, 4, 4), (3, 70, 36), (97, 1100, 300)])
def test_a_right_matrix_that_stays(shape: tuple[int, int, int]) -> None:
    """Packed once, with its scales and zero points; the same as one that comes with each call."""
    m, k, n = shape
    random = np.random.default_rng(n)
    a, b = drawn(random, (m, k), np.uint8), drawn(random, (k, n), np.int8)
    b_zero, b_scale = drawn(random, (n,), np.int8), random.uniform(0.01, 0.02, n).astype(np.float32)
    bias, biases = (random.standard_normal((rows, n)).astype(np.float32) for rows in (1, m))
    graph = anydml.Graph(anydml.Device("cpu"))
    kept = [
        graph.constant(DML_BUFFER_TENSOR_DESC(DataType=x.dtype.name.upper(), Sizes=x.shape), np.ascontiguousarray(x))
        for x in (b, b_scale[None], b_zero[None], bias, biases)
    ]
    given = graph.input(a)
    whole = graph.compile(
        [
            anydml.matrix_multiply_integer(given, kept[0], 5, kept[2]),
            anydml.matrix_multiply_integer_to_float(given, 0.5, kept[0], kept[1], b_zero_point=kept[2]),
            *(
                anydml.matrix_multiply_integer_to_float(given, 0.5, kept[0], kept[1], each, b_zero_point=kept[2])
                for each in kept[3:]
            ),
        ]
    )
    integers, floats, *with_biases = whole(a)
    np.testing.assert_array_equal(integers, anydml.matrix_multiply_integer(a, b, 5, b_zero))
    expected = anydml.matrix_multiply_integer_to_float(a, 0.5, b, b_scale, b_zero_point=b_zero)
    np.testing.assert_array_equal(floats, expected)
    for each, y in zip((bias, biases), with_biases, strict=True):
        expected = anydml.matrix_multiply_integer_to_float(a, 0.5, b, b_scale, each, b_zero_point=b_zero)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize(
    ("sizes", "filters", "groups", "numbers"),
    [
        ((1, 3, 40, 45), (12, 3, 7, 7), 1, {"strides": 2, "start_padding": 3, "end_padding": 3}),
        ((2, 68, 7, 7), (36, 68, 3, 3), 1, {"start_padding": 1, "end_padding": 1}),
        ((1, 60, 1, 9000), (8, 60, 1, 3), 1, {"end_padding": (0, 2)}),
        ((1, 8, 9, 9), (20, 8, 1, 1), 1, {"strides": (2, 3)}),
        ((1, 40, 14, 14), (40, 1, 3, 3), 40, {"start_padding": 1, "end_padding": 1}),
        ((2, 20, 30, 11), (20, 1, 5, 5), 20, {"strides": 2, "dilations": (1, 2), "start_padding": 2}),
        ((3, 10, 11, 13), (20, 2, 3, 3), 5, {"start_padding": 1, "end_padding": 1}),
    ],
)
def test_filters_that_stay(
    sizes: tuple[int, ...], filters: tuple[int, ...], groups: int, numbers: dict[str, Any]
) -> None:
    """Blocks of rows, or of parts of them; steps of four channels or of taps; filters packed once or with each call."""
    random = np.random.default_rng(sizes[1])
    x, w = drawn(random, sizes, np.uint8), drawn(random, filters, np.int8)
    w_zero = drawn(random, (filters[0],), np.int8)
    for zero in (w_zero, np.zeros_like(w_zero)):
        total = exact_convolution(x, 77, w, zero, groups, numbers)
        y = anydml.convolution_integer(x, w, 77, zero, group_count=groups, **numbers)
        np.testing.assert_array_equal(y, total)
    scales = random.uniform(1e-4, 2e-4, filters[0]).astype(np.float32)
    bias = drawn(random, (filters[0],), np.int16).astype(np.int32)
    graph = anydml.Graph(anydml.Device("cpu"))
    per = (1, filters[0], 1, 1)
    kept = [
        graph.constant(DML_BUFFER_TENSOR_DESC(DataType=each.dtype.name.upper(), Sizes=each.shape), each)
        for each in (w, scales.reshape(per), bias.reshape(per), w_zero.reshape(per))
    ]

    def quantised(x: Any, w: Any, scales: Any, bias: Any, zero: Any) -> Any:
        zeros = {"input_zero_point": 77, "filter_zero_point": zero, "output_zero_point": np.uint8(99)}
        return anydml.quantized_linear_convolution(
            x, 0.5, w, scales, bias, output_scale=0.25, group_count=groups, **zeros, **numbers
        )

    again = graph.compile([quantised(graph.input(x), *kept)])(x)
    np.testing.assert_array_equal(again, quantised(x, w, scales, bias, w_zero))
    total = exact_convolution(x, 77, w, w_zero, groups, numbers) + bias.reshape(per)
    exact = total * scales.reshape(per).astype(np.float64) * 2
    assert (np.abs(again - np.clip(exact + 99, 0, 255)) <= 0.5 + 1e-9).all()
