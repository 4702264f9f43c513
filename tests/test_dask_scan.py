"""Running sums and products along chunked_anyhow axes, in two passes, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest

import anydml
from dask_chunks import chunked_anyhow, cut, da, dask, values
from exact import FLOATS, check_tally

FUNCTIONS = {"sum": anydml.cumulative_summation, "product": anydml.cumulative_product}
DEVICES = ["cpu", "reference"]
TYPES = ["float32", "float16", "int32", "uint32", "int64", "uint64"]


@pytest.fixture(autouse=True)
def _threads() -> Any:
    with dask.config.set(scheduler="threads", num_workers=3):
        yield


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operation", FUNCTIONS)
def test_random_chunks(operation: str, dtype: str, device: str) -> None:
    rng = np.random.default_rng(len(operation) + TYPES.index(dtype))
    for shape in [(40,), (4, 13), (13, 9), (2, 11, 3), (3, 1, 5)]:
        x = values(rng, shape, dtype)
        x = np.asfortranarray(x) if rng.integers(2) else x
        axis = int(np.argmax(shape)) if rng.integers(3) else int(rng.integers(len(shape)))
        reverse, exclusive = bool(rng.integers(2)), bool(rng.integers(2))
        operand = chunked_anyhow(rng, x)
        y = FUNCTIONS[operation](operand, axis, reverse=reverse, exclusive=exclusive, device=device)
        assert y.chunks == operand.chunks
        check_tally(operation, x, y.compute(), axis, reverse, exclusive)


@pytest.mark.parametrize("shape", [(3000,), (2, 2500), (2500, 3), (300, 37), (40, 600), (5, 130, 40)])
@pytest.mark.parametrize("operation", FUNCTIONS)
def test_is_what_memory_gives(operation: str, shape: tuple[int, ...]) -> None:
    """Integers to the bit; floats to the last place, whose errors in the wide type hardly ever show."""
    rng = np.random.default_rng(len(shape) + sum(shape))
    axis = int(np.argmax(shape))
    for i, dtype in enumerate(("int32", "uint64", "float32", "float16")):
        reverse, exclusive = bool(i % 2), bool(rng.integers(2))
        x = values(rng, shape, dtype)
        if x.dtype.kind == "f" and operation == "product":
            x = (2 ** (x / 16) * np.sign(x)).astype(dtype)
        function = FUNCTIONS[operation]
        y = function(chunked_anyhow(rng, x, 9), axis, reverse=reverse, exclusive=exclusive).compute()
        whole = function(x, axis, reverse=reverse, exclusive=exclusive)
        if x.dtype.kind != "f":
            np.testing.assert_array_equal(y, whole)
            continue
        # Of FLOAT16 accumulators are single: n u of all magnitudes comes on top of a unit in the last place.
        limits, magnitudes = np.finfo(x.dtype), np.abs(whole.astype(float))
        of_terms = np.abs(x).astype(float).sum() if operation == "sum" else magnitudes
        slack = x.shape[axis] * float(np.finfo(FLOATS[x.dtype].wide).eps) * of_terms
        slack = slack + np.maximum(magnitudes, limits.tiny) * float(limits.eps)
        finite = np.isfinite(whole)
        np.testing.assert_array_equal(y[~finite], whole[~finite])
        assert (np.abs(y[finite].astype(float) - whole[finite]) <= slack[finite]).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("columns", [1, 9, 300])
def test_products_come_back(columns: int, dtype: str, device: str) -> None:
    """Beyond the range of doubles on the way, too large or too small, within a chunk and from chunk to chunk."""
    rng = np.random.default_rng(columns)
    columns = min(columns, 5) if device == "reference" else columns
    step = {"float32": 2.0**90, "float16": 2.0**13}[dtype]
    line = np.array([step] * 40 + [1 / step] * 80 + [step] * 60 + [1.25] * 3 + [-1 / step] * 20)
    x = np.stack([line, line[::-1], 1 / line, *[line] * columns][:columns], axis=-1).astype(dtype)
    x *= rng.choice([1, -1], x.shape).astype(dtype)
    for chunks in ((9, *cut(rng, len(x) - 9)), (37, 0, 1, len(x) - 38), (64, 64, len(x) - 128)):
        for reverse in (False, True):
            y = anydml.cumulative_product(da.from_array(x, (chunks, -1)), 0, reverse=reverse, device=device).compute()
            rows = anydml.cumulative_product(da.from_array(x.T, (-1, chunks)), 1, reverse=reverse, device=device)
            np.testing.assert_array_equal(y, rows.compute().T)
            for j in range(min(columns, 3)):
                _check_products(x[:: -1 if reverse else 1, j], y[:: -1 if reverse else 1, j])


def _check_products(x: np.ndarray, y: np.ndarray) -> None:
    """Each within a unit in the last place: factors are few, and most are powers of 2."""
    exact = FLOATS[x.dtype]
    for i in range(0, len(x), 17):
        wanted = exact.rounded(prod([Fraction(float(each)) for each in x[: i + 1]], start=Fraction(1)))
        if np.isinf(wanted):
            assert y[i] == wanted
        else:
            assert abs(Fraction(float(y[i])) - Fraction(float(wanted))) <= exact.ulp(wanted)


def test_carries_are_wide() -> None:
    """A large sum that goes leaves what is small as it was."""
    x = np.array([2.0**60, 1.5, 2.0**-20, -(2.0**60), 0.25], np.float32)
    y = anydml.cumulative_summation(da.from_array(x, 1), 0).compute()
    assert y[-1] == np.float32(1.5 + 2.0**-20 + 0.25)
    check_tally("sum", x, y, 0)


@pytest.mark.parametrize("operation", FUNCTIONS)
def test_what_is_not_finite(operation: str) -> None:
    for special in (np.inf, -np.inf, np.nan):
        x = np.array([1.5, 2, special, 0.5, -3, 2, special, 1, -special], np.float32)
        for chunks in (1, 2, 4):
            y = FUNCTIONS[operation](da.from_array(x, chunks), 0).compute()
            np.testing.assert_array_equal(y, FUNCTIONS[operation](x, 0))
    zeros = np.array([-0.0, 0.0, -1.0, 0.0, -0.0], np.float32)
    y = FUNCTIONS[operation](da.from_array(zeros, 2), 0).compute()
    assert y.tobytes() == FUNCTIONS[operation](zeros, 0).tobytes()


def test_bits_do_not_depend_on_workers() -> None:
    x = values(np.random.default_rng(5), (20_000, 3), "float32")
    results = []
    for scheduler, workers in (("sync", 1), ("threads", 2), ("threads", 5)):
        with dask.config.set(scheduler=scheduler, num_workers=workers):
            results.append(anydml.cumulative_summation(da.from_array(x, (1111, 2)), 0).compute().tobytes())
    assert len(set(results)) == 1


def test_long_lines_that_threads_share() -> None:
    """Chunks of rows and of columns large enough for several threads of the kernel."""
    rng = np.random.default_rng(6)
    for shape, axis in (((1, 400_000), 1), ((100_000, 4), 0), ((2000, 210), 0)):
        x = rng.standard_normal(shape).astype(np.float32)
        exact = np.cumsum(x.astype(np.longdouble), axis)
        for reverse in (False, True):
            chunks = [size if i != axis else (size // 2 - 7, size - size // 2 + 7) for i, size in enumerate(shape)]
            y = anydml.cumulative_summation(
                da.from_array(np.flip(x, axis) if reverse else x, chunks), axis, reverse=reverse
            )
            found = np.flip(y.compute(), axis) if reverse else y.compute()
            # Half a unit, and a little of doubles.
            np.testing.assert_allclose(found, exact.astype(float), rtol=6.1e-8, atol=1e-8)


def test_tasks_for_each_chunk() -> None:
    """At most 4, with no chain from chunk to chunk."""
    x = da.zeros((10_000, 4), dtype=np.float32, chunks=(10, 4))
    y = anydml.cumulative_summation(x, 0)
    graph = dict(y.__dask_graph__())
    own = [key for key in graph if not str(key[0]).startswith("zeros")]
    assert len(own) <= 4 * x.npartitions
    depths: dict[Any, int] = {}

    def depth(key: Any) -> int:
        if key not in depths:
            depths[key] = 1 + max([depth(each) for each in graph[key].dependencies], default=0)
        return depths[key]

    assert max(map(depth, graph)) <= 6


class _Store:
    """Something that chunks are read from."""

    dtype = np.dtype(np.float32)
    ndim = 1
    shape = (60,)

    def __init__(self) -> None:
        self.reads: list[int] = []

    def __getitem__(self, place: Any) -> np.ndarray:
        self.reads.append(place[0].start)
        return np.arange(60, dtype=np.float32)[place]


def test_stores_are_read_again() -> None:
    """So that no chunk stays in memory until all have been read; what was computed between chunks is not repeated."""
    store = _Store()
    x = da.from_array(store, 10, asarray=False, name=False)
    store.reads.clear()  # of what it looks like
    y = anydml.cumulative_summation(x + 1, 0).compute()
    np.testing.assert_array_equal(y, np.cumsum(np.arange(60) + 1))
    assert sorted(store.reads) == sorted(2 * [0, 10, 20, 30, 40, 50])
    store.reads.clear()
    y = anydml.cumulative_summation((x + 1).rechunk(15), 0).compute()
    np.testing.assert_array_equal(y, np.cumsum(np.arange(60) + 1))
    assert sorted(store.reads) == [0, 10, 20, 30, 40, 50]
    persisted = x.persist()
    store.reads.clear()
    anydml.cumulative_summation(persisted, 0).compute()
    assert store.reads == []


def test_names_are_deterministic() -> None:
    x = da.from_array(np.arange(12, dtype=np.int32), 5)
    names = [anydml.cumulative_summation(x, 0, reverse=reverse).name for reverse in (False, False, True)]
    assert names[0] == names[1] != names[2]
