"""Scans on a GPU: their promise in any order of combining."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, Device
from cases import tensor
from exact import check_last, check_tally
from gpu_calls import on_gpu
from harness import GPU

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["as planned", "small tiles", "chain", "wide indices"])
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kernels' ways for large tensors, on small ones."""
    from anydml.functions._call import _compile

    scan = "anydml.backends.triton.scan.plan"
    if request.param == "wide indices":
        from triton import language

        monkeypatch.setattr(f"{scan}.Geometry.index", property(lambda self: language.int64))
    elif request.param != "as planned":
        small: dict[str, Any] = {"TILE": 32, "LONG": 16, "DEEP": 4, "PIECE": 32, "GROUPS": (2, 4, 4)}
        small["TILES"], small["SCALED_TILES"] = dict.fromkeys((2, 4, 8), 2), 2
        small["HELD"] = dict.fromkeys((2, 4, 8), (256, 2))
        small["SEGMENT"] = 128
        small["ROW_TILES"] = {2: (64, 32, 16), 4: (32, 16, 8), 8: (16, 8)}
        small["WIDE_TILES"] = {2: 64, 4: 32, 8: 32}
        small["MANY_ROWS"] = 6
        small["WIDE_PIECES"] = dict.fromkeys((2, 4, 8), 1 << 10)
        small["LINES"], small["SHALLOW"] = {2: 8, 4: 4, 8: 4}, 2
        small["CHAINED"] = dict.fromkeys((2, 4, 8), (4, 2))
        small["MANY_LINES"], small["MANY_STEPS"] = 16, 4
        small["PIECES"] = {size: 512 * size for size in (2, 4, 8)}
        small["FACTORS"] = 512
        small["FEW_PROGRAMS"] = 10**6 if request.param == "chain" else 0
        for name, value in small.items():
            monkeypatch.setattr(f"{scan}.{name}", value)
    _compile.cache_clear()
    yield request.param
    _compile.cache_clear()


SHAPES = [
    ((90,), 0),
    ((2, 70), 1),
    ((40, 5), 0),
    ((2, 21, 9), 1),
    ((2, 21, 18), 1),
    ((2, 1, 3), 1),
    ((2, 3, 1, 9, 2), 3),
]
OPERATIONS = [("sum", np.float32), ("sum", np.uint64), ("product", np.float16), ("product", np.float32)]


@on_gpu
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize(("operation", "dtype"), OPERATIONS)
def test_scans(operation: str, dtype: type, shape: tuple[int, ...], axis: int, tiles: str) -> None:
    """In every mode, also of transposed input."""
    random = np.random.default_rng(0)
    x = (random.uniform(-3, 3, shape) if dtype != np.uint64 else random.integers(0, 9, shape)).astype(dtype)
    call = anydml.cumulative_summation if operation == "sum" else anydml.cumulative_product
    for i in range(4):
        mode = {"reverse": bool(i & 1), "exclusive": bool(i & 2)}
        given = np.asfortranarray(x) if i == 3 else x
        check_tally(operation, x, call(given, axis, **mode, device=GPU), axis, **mode)


ANYWHERE = [
    # rows, elements before x and y, those between rows of x, in place
    ((3, 70), (0, 0), 0, False, "float32", "sum"),
    ((2, 71), (3, 3), 0, True, "float16", "sum"),
    ((3, 131), (1, 1), 3, False, "float32", "product"),
    ((2, 45), (5, 2), 0, False, "int64", "sum"),
    ((9, 13), (1, 1), 0, True, "float32", "sum"),
    ((5, 7), (7, 7), 0, False, "float16", "product"),
    ((1, 3), (2, 2), 0, False, "float32", "sum"),
]


@on_gpu
@pytest.mark.parametrize(("shape", "before", "between", "in_place", "dtype", "operation"), ANYWHERE)
def test_rows_begin_anywhere(
    torch: Any,
    place: Any,
    shape: tuple[int, int],
    before: tuple[int, int],
    between: int,
    in_place: bool,
    dtype: str,
    operation: str,
    tiles: str,
) -> None:
    """Of any length too; nothing else is written."""
    random = np.random.default_rng(shape[1])
    x = (random.uniform(-3, 3, shape) if dtype != "int64" else random.integers(-9, 9, shape)).astype(dtype)
    given = strided(torch, place, dtype, shape, before[0], between)
    given.copy_(torch.from_numpy(x))
    out = given if in_place else strided(torch, place, dtype, shape, before[1], 0)
    memory = torch.as_strided(out, (out.untyped_storage().nbytes() // out.element_size(),), (1,), 0)
    is_ours = torch.zeros(memory.shape, dtype=torch.bool, device=place)
    torch.as_strided(is_ours, out.shape, out.stride(), out.storage_offset()).fill_(True)
    untouched = memory.clone()
    call = anydml.cumulative_summation if operation == "sum" else anydml.cumulative_product
    mode = {"reverse": bool(shape[0] & 1), "exclusive": between > 0}
    call(given, 1, **mode, out=out, device=GPU)
    check_tally(operation, x, out.cpu().numpy(), 1, **mode)
    assert torch.equal(memory[~is_ours], untouched[~is_ours])


@on_gpu
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("shape", [(45, 67), (45, 66), (2, 45, 65)])
def test_columns_of_any_number(torch: Any, place: Any, shape: tuple[int, ...], dtype: str, tiles: str) -> None:
    """Sums that are exact in any order; beside other memory, in place too."""
    x = np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(dtype)
    rows, before = (prod(shape[:-1]), shape[-1]), len(shape) - 1
    given = strided(torch, place, dtype, rows, before, 0).view(shape)
    given.copy_(torch.from_numpy(x))
    expected = np.cumsum(x, -2, dtype=x.dtype)
    np.testing.assert_array_equal(anydml.cumulative_summation(given, before - 1, device=GPU).cpu().numpy(), expected)
    anydml.cumulative_summation(given, before - 1, out=given, device=GPU)
    np.testing.assert_array_equal(given.cpu().numpy(), expected)
    memory = torch.as_strided(given, (before + x.size + 20,), (1,), 0)
    assert memory[:before].tolist() == [77] * before
    assert memory[before + x.size :].tolist() == [77] * 20


def strided(torch: Any, place: Any, dtype: str, shape: tuple[int, int], before: int, gap: int) -> Any:
    """A tensor of rows with elements before, behind and between them, all of the same value."""
    rows, n = shape
    memory = torch.full((before + rows * (n + gap) + 20,), 77, dtype=getattr(torch, dtype), device=place)
    return torch.as_strided(memory, shape, (n + gap, 1), before)


@on_gpu
def test_a_scan_runs_again_and_again(torch: Any, place: Any, tiles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain uses its words again: beyond their last epoch, beside another stream, and after a launch that failed."""
    from anydml.backends.triton.launch import Launch

    monkeypatch.setattr("anydml.backends.triton.scan.plan.LAST_EPOCH", 2)
    device, t = Device(GPU), tensor((2, 70))
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=t, OutputTensor=t, Axis=1)
    operator = device.compile_operator(device.create_operator(desc))
    x, y = torch.ones((2, 70), device=place), torch.empty((2, 70), device=place)

    def check(value: int) -> None:
        x.fill_(value)
        operator.dispatch([x], [y])
        assert y.tolist() == [[value * (i + 1) for i in range(70)]] * 2

    for value in (1, 2, 3, 4):
        check(value)
    if place.type == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            check(5)
    with monkeypatch.context() as patch:
        patch.setattr(Launch, "__call__", None)
        with pytest.raises(TypeError):
            operator.dispatch([x], [y])
    check(6)


SPECIAL = [0.0, -0.0, 1.0, -2.0, 1e30, -1e30, 1e-30, 3e38, 1e-45, np.inf, -np.inf, np.nan]


@on_gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", ["sum", "product"])
def test_special_values_in_any_place(operation: str, dtype: type, tiles: str) -> None:
    random = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        x = random.choice(np.array(SPECIAL, np.float32), (6, 40), p=[0.04, 0.03, 0.2, 0.2] + [0.1] * 5 + [0.01] * 3)
        x = x.astype(dtype)
    call = anydml.cumulative_summation if operation == "sum" else anydml.cumulative_product
    check_tally(operation, x, call(x, 1, device=GPU), 1)
    check_tally(operation, x.T, call(np.ascontiguousarray(x.T), 0, device=GPU), 0)


def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As the kernels have it, in NumPy."""
    mantissa, exponent = np.frexp(x)
    is_small = np.abs(mantissa) < np.sqrt(0.5)
    mantissa, exponent = np.where(is_small, mantissa * 2, mantissa), exponent - is_small
    is_ordinary = np.isfinite(x) & (x != 0)
    return np.where(is_ordinary, mantissa, x), np.where(is_ordinary, exponent, 0)


def in_any_order(random: np.random.Generator, parts: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Neighbours combined in a random order, as the scan of some GPU, or of another one, might."""
    while len(parts) > 1:
        i = int(random.integers(len(parts) - 1))
        parts[i : i + 2] = [combine(parts[i], parts[i + 1])]
    return parts[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", ["sum", "product"])
def test_promises_hold_in_any_order_of_combining(operation: str, dtype: type) -> None:
    """The interpreter combines one element after the other; what a device does may differ from it, and from another."""
    random = np.random.default_rng(2)
    for _ in range(150):
        with np.errstate(all="ignore"):
            kind = random.integers(3)
            n = int(random.integers(1, 60))
            x = random.choice(np.array(SPECIAL[: 9 if kind == 0 else 12], np.float32), n)
            x = (x if kind < 2 else random.uniform(-3, 3, n)).astype(dtype)
            if operation == "sum":
                wide = np.float64 if dtype == np.float32 else np.float32
                total = in_any_order(random, list(x.astype(wide)), lambda a, b: a + b)
            else:
                # Some of what comes together is split anew, as at the end of a part, a tile or a piece.
                def multiply(a: Any, b: Any) -> Any:
                    mantissa, more = split(a[0] * b[0]) if random.integers(2) else (a[0] * b[0], 0)
                    return mantissa, a[1] + b[1] + more

                factors = list(zip(*split(x.astype(np.float64)), strict=True))
                mantissa, exponent = in_any_order(random, factors, multiply)
                total = mantissa * np.ldexp(1.0, np.clip(exponent, -1022, 1023))
            y = np.asarray(total).astype(dtype)
        check_last(operation, x[None], y.reshape(1))


@on_gpu
def test_the_model_splits_as_the_kernels_do(torch: Any, place: Any) -> None:
    import triton

    from gpu_kernels import take_apart

    x = np.random.default_rng(3).choice(np.array([*SPECIAL, 1e300, 3.1, 0.7, 0.708], np.float64), 256)
    mantissa, exponent = split(x)
    found = [torch.empty(256, dtype=each, device=place) for each in (torch.float64, torch.int32, torch.float64)]
    take_apart[(1,)](torch.from_numpy(x).to(place), *found, N=triton.language.constexpr(256))
    for got, expected in zip(found, (mantissa, exponent, x), strict=True):
        np.testing.assert_array_equal(got.cpu().numpy(), expected)


@on_gpu
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("values", [(2.0**100, 2.0**-100), (1e-40, 1e38, 100.0), (1.41, 0.7092), (-1.3, 0.769)])
def test_no_part_of_a_product_leaves_the_range(values: tuple[float, ...], axis: int, tiles: str) -> None:
    """Elements as a tree may bring them together: all large ones, or all small ones, or all mantissas on one side."""
    count = 240 if tiles in ("small tiles", "chain") else 2400
    x = np.tile(np.array(values, np.float32), count // len(values))
    wide = np.cumprod(x.astype(np.float64))
    x, wide = (each.reshape(1, -1) if axis else each.reshape(-1, 1) for each in (x, wide))
    y = anydml.cumulative_product(x, axis, device=GPU)
    np.testing.assert_allclose(y, wide.astype(np.float32), rtol=2e-7, atol=1e-45)


@on_gpu
def test_a_product_that_is_far_beyond_the_range_stays_there() -> None:
    x = np.repeat(np.array([[1e-40, 1e38]], np.float32).T, 3000, 1)
    y = anydml.cumulative_product(x, 1, device=GPU)
    assert (y[0, 2:] == 0).all()
    assert np.isposinf(y[1, 1:]).all()
