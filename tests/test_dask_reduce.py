"""Reductions, softmax and normalisations along chunked_anyhow axes, by partial results."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest

import anydml
from dask_chunks import chunked_anyhow, da, dask, values
from exact import FLOATS

DEVICES = ["cpu", "reference"]
ENDS = ["max", "min", "argmax", "argmin"]
TALLIES = ["average", "l1", "l2", "log_sum", "log_sum_exp", "multiply", "sum", "sum_square"]
NORMS = ["l1", "multiply", "sum", "sum_square"]
"""Those of integers, too."""


@pytest.fixture(autouse=True)
def _threads() -> Any:
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def _case(rng: np.random.Generator, dtype: str) -> tuple[np.ndarray, list[int]]:
    shape = tuple(map(int, rng.integers(1, 8, rng.integers(1, 4))))
    return values(rng, shape, dtype), [i for i in range(len(shape)) if rng.integers(2)] or [0]


def _within_units(y: np.ndarray, whole: np.ndarray, units: float = 1, magnitude: Any = 0.0) -> None:
    """Both were computed in double precision, of FLOAT16 in single, and rounded once."""
    assert (y.dtype, y.shape) == (whole.dtype, whole.shape)
    limits = np.finfo(y.dtype)
    wide = whole.astype(float)
    unit = np.maximum(np.maximum(np.abs(wide), limits.tiny), magnitude) * float(limits.eps)
    finite = np.isfinite(wide)
    np.testing.assert_array_equal(y[~finite], whole[~finite])
    assert (np.abs(y.astype(float)[finite] - wide[finite]) <= units * unit[finite]).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint64", "int8"])
@pytest.mark.parametrize("function", ENDS)
def test_ends(function: str, dtype: str, device: str) -> None:
    """Exactly what memory gives: numbers before NaNs, of equals the first."""
    rng = np.random.default_rng(ENDS.index(function))
    for _ in range(3):
        x, axes = _case(rng, dtype)
        x //= 100 if x.dtype.kind != "f" else 2
        if x.dtype.kind == "f":
            x[rng.random(x.shape) < 0.4] = np.nan
        y = anydml.reduce(chunked_anyhow(rng, x), function, axes, device=device)
        whole = anydml.reduce(x, function, axes, device=device)
        assert (y.dtype, y.shape) == (whole.dtype, whole.shape)
        np.testing.assert_array_equal(y.compute(), whole)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_indices(name: str, reverse: bool) -> None:
    rng = np.random.default_rng(7)
    for dtype in ("float32", "uint8", "int64"):
        for _ in range(3):
            x, axes = _case(rng, dtype)
            x = (x % 3).astype(dtype)
            if x.dtype.kind == "f":
                x[rng.random(x.shape) < 0.5] = np.nan
            function = getattr(anydml, name)
            y = function(chunked_anyhow(rng, x), axes, reverse=reverse)
            np.testing.assert_array_equal(y.compute(), function(x, axes, reverse=reverse))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        *((name, dtype) for name in TALLIES for dtype in ("float32", "float16")),
        *((name, dtype) for name in NORMS for dtype in ("int32", "uint64")),
    ],
)
def test_tallies(function: str, dtype: str, device: str) -> None:
    rng = np.random.default_rng(TALLIES.index(function) + 20)
    for _ in range(3):
        x, axes = _case(rng, dtype)
        x = np.abs(x) if function == "log_sum" else x
        y = anydml.reduce(chunked_anyhow(rng, x), function, axes, device=device).compute()
        whole = anydml.reduce(x, function, axes, device=device)
        if x.dtype.kind != "f":
            assert y.dtype == whole.dtype
            np.testing.assert_array_equal(y, whole)
            continue
        # What sums add up from may be larger than they are.
        magnitude = np.abs(x).max() if function in ("average", "sum", "log_sum", "log_sum_exp") else 0.0
        _within_units(y, whole, 1, magnitude)


@pytest.mark.parametrize("device", DEVICES)
def test_sums_are_exact(device: str) -> None:
    """To the last place of what exact arithmetic gives, however much cancels between chunks."""
    x = np.array([2.0**70, 3.0, 1.0, -(2.0**70), 2.0**-30, -1.0, 0.5], np.float32)
    exact = FLOATS[x.dtype]
    for chunks in (1, 2, 3):
        y = anydml.reduce(da.from_array(x[1:3], 1), "sum", [0], device=device).compute()
        assert y.item() == 4.0
        y = anydml.reduce(da.from_array(x[4:], chunks), "sum", [0], device=device).compute().item()
        assert y == exact.rounded(sum(Fraction(float(each)) for each in x[4:]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_products_come_back(dtype: str, device: str) -> None:
    step = {"float32": 2.0**100, "float16": 2.0**14}[dtype]
    x = np.array([step] * 200 + [1 / step] * 401 + [-step] * 201 + [1.5], dtype)
    wanted = FLOATS[x.dtype].rounded(prod([Fraction(float(each)) for each in x], start=Fraction(1)))
    for chunks in (100, 201, 7):
        y = anydml.reduce(da.from_array(x, chunks), "multiply", [0], device=device).compute()
        assert y.item() == wanted == -1.5
    far = anydml.reduce(da.from_array(x[:200], 50), "multiply", [0], device=device).compute()
    assert far.item() == np.inf
    assert anydml.reduce(da.from_array(1 / x[:200], 50), "multiply", [0], device=device).compute().item() == 0


@pytest.mark.parametrize("device", DEVICES)
def test_log_sum_exp_of_what_is_far_apart(device: str) -> None:
    inf = np.inf
    for line in (
        [3000.0, -3000.0, 3000.0, 2999.0, -50.0],
        [-3000.0, -3001.0, -3000.5, -4000.0],
        [-inf, -inf, -inf],
        [-inf, 1.0, -inf, 2.0],
        [1.0, inf, 3.0, -inf],
        [0.0, -20.0, -30.0],
        [1.0, np.nan, 2.0, inf],
    ):
        x = np.array(line, np.float32)
        whole = anydml.reduce(x, "log_sum_exp", [0], device="reference")
        for chunks in (1, 2):
            y = anydml.reduce(da.from_array(x, chunks), "log_sum_exp", [0], device=device).compute()
            _within_units(y, whole)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "hardmax"])
def test_softmax(name: str, dtype: str, device: str) -> None:
    rng = np.random.default_rng(11)
    function = getattr(anydml, name)
    for case in range(6):
        x, axes = _case(rng, dtype)
        if case == 0:
            x.flat[-1] = np.inf
        if case == 1:
            x.flat[0] = np.nan
        if case == 2:
            x *= 100
        y = function(chunked_anyhow(rng, x), axes, device=device)
        whole = function(x, axes, device="reference")
        if name == "hardmax":
            np.testing.assert_array_equal(y.compute(), whole)
        else:
            _within_units(y.compute(), whole)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_normalisations(dtype: str) -> None:
    """Within a unit of what the reference gives in double precision, next to 1, which is where results are."""
    rng = np.random.default_rng(12)
    for case in range(4):
        shape = tuple(map(int, rng.integers(1, 8, 4)))
        x = (rng.standard_normal(shape) + 20 * (case % 2)).astype(dtype)
        operand = chunked_anyhow(rng, x)
        axes = [i for i in range(4) if rng.integers(2)] or [1]
        scale = rng.standard_normal([size if rng.integers(2) else 1 for size in shape]).astype(dtype)
        bias = rng.standard_normal(scale.shape).astype(dtype)
        calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
            (anydml.lp_normalization, (), {"axis": axes[0]}),
            (anydml.mean_variance_normalization, (), {"axes": axes}),
            (anydml.mean_variance_normalization, (scale, bias), {"axes": axes}),
            (anydml.batch_normalization_training, (scale[:1, :, :1, :1], bias[:1, :, :1, :1]), {}),
            (anydml.batch_normalization_training, (scale[:1, :, :1, :1], bias[:1, :, :1, :1], x), {}),
        ]
        for function, others, options in calls:
            found = function(operand, *others, **options)
            whole = function(x, *others, **options, device="reference")
            several = isinstance(found, list | tuple)
            pairs = zip(found, whole, strict=True) if several else [(found, whole)]
            for y, wanted in pairs:
                _within_units(y.compute(), wanted, 1, 1.0)


def test_moments_far_from_zero() -> None:
    """Variances of elements whose mean is large, in chunks of other means."""
    rng = np.random.default_rng(13)
    x = (rng.standard_normal((1, 1, 60, 7)) + np.linspace(4e6, 4.001e6, 60)[:, None]).astype(np.float32)
    y = anydml.mean_variance_normalization(da.from_array(x, (1, 1, 13, 4)), axes=[2, 3])
    _within_units(y.compute(), anydml.mean_variance_normalization(x, axes=[2, 3], device="reference"), 1, 1.0)


def test_chunks_along_other_dimensions_alone() -> None:
    """Are the general rule's."""
    x = values(np.random.default_rng(14), (6, 5), "float32")
    operand = da.from_array(x, (2, 5))
    np.testing.assert_array_equal(anydml.reduce(operand, "sum", [1]).compute(), anydml.reduce(x, "sum", [1]))


def test_bits_do_not_depend_on_workers() -> None:
    x = values(np.random.default_rng(15), (6000, 3), "float32")
    for function in ("sum", "log_sum_exp", "multiply"):
        results = set()
        for scheduler, workers in (("sync", 1), ("threads", 2), ("threads", 5)):
            with dask.config.set(scheduler=scheduler, num_workers=workers):
                y = anydml.reduce(da.from_array(x, (177, 2)), function, [0])
                results.add(y.compute().tobytes())
        assert len(results) == 1


def test_large_chunks() -> None:
    """Partial results of what is cut for several threads, and of strided chunks."""
    x = np.random.default_rng(16).standard_normal((700, 1100)).astype(np.float32)
    exact = x.astype(np.longdouble)
    for given, wide in ((x, exact), (x.T, exact.T), (x[::-1, ::2], exact[::-1, ::2])):
        for axes in ([0], [1], [0, 1]):
            operand = da.from_array(given, (300, 600))
            y = anydml.reduce(operand, "sum_square", axes).compute()
            wanted = (wide**2).sum(axis=tuple(axes), keepdims=True).astype(float)
            np.testing.assert_allclose(y, wanted.reshape(y.shape), rtol=6.1e-8)
            y = anydml.reduce(operand, "log_sum_exp", axes).compute()
            wanted = np.log(np.exp(wide).sum(axis=tuple(axes), keepdims=True)).astype(float)
            np.testing.assert_allclose(y, wanted.reshape(y.shape), rtol=6.1e-8)
