"""NONZERO_COORDINATES on inputs of any layout and size: what rows say is not 0, they ascend, and there are as many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DMLError, Graph
from anydml.core.strided_layout import DATA_TYPES, DTYPES

TYPES = [dtype.name for dtype in DATA_TYPES if dtype.itemsize < 8]


def values(dtype: str, shape: Any, share: float, seed: int = 0) -> np.ndarray:
    """Of which so large a share is not 0, also what is below the normal numbers, and -0 beside 0."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(shape) < share, rng.integers(1, 100, shape), 0).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[rng.random(shape) < 0.05 * share] = np.finfo(dtype).smallest_subnormal
        x[rng.random(shape) < 0.05 * share] = np.nan
        x[(rng.random(shape) < 0.5) & (x == 0)] = -0.0
    return x


def assert_found(x: np.ndarray, rows: Any) -> None:
    rows = np.asarray(rows)
    assert rows.dtype == np.uint32
    assert rows.shape == (np.count_nonzero(x), x.ndim)
    if len(rows):
        assert (x[tuple(rows.T.astype(np.int64))] != 0).all()
        places = np.ravel_multi_index(tuple(rows.T.astype(np.int64)), x.shape)
        assert (np.diff(places) > 0).all()


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_any_size(dtype: str, share: float) -> None:
    for shape in ((1,), (63,), (64,), (65,), (5000,), (3, 700), (700, 3), (9, 1, 128), (2, 3, 4, 5, 6), (2,) * 8):
        x = values(dtype, shape, share)
        assert_found(x, anydml.nonzero_coordinates(x))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_any_layout(dtype: str) -> None:
    x = values(dtype, (12, 20, 34), 0.3)
    for view in (
        x.T,
        x[::-1, :, ::-1],
        x[::2, 1::3, ::-2],
        x[:, :, :1],
        x[:, ::4],
        np.broadcast_to(x[:1], (5, 20, 34)),
        np.moveaxis(x, 0, 1),
    ):
        assert_found(view, anydml.nonzero_coordinates(view))
        size = view.size
        memory = np.full((3, 2 * size, 3), 7, np.uint32)
        out = [np.zeros(1, np.uint32), memory.transpose(1, 2, 0)[::2, ::-1, 1]]
        count, rows = anydml.nonzero_coordinates(view, out=out)
        assert_found(view, rows[: count[0]])
        # Nothing else is written.
        rows[: count[0]] = 7
        assert (memory == 7).all()


@pytest.mark.parametrize("share", [0.001, 0.9])
@pytest.mark.parametrize("shape", [(2_000_003,), (1001, 2003), (300_007, 7), (40, 50, 30, 40)])
def test_what_threads_share(shape: tuple[int, ...], share: float) -> None:
    x = values("float32", shape, share)
    assert_found(x, anydml.nonzero_coordinates(x))


def test_a_call_like_one_before_finds_its_own_number() -> None:
    for found in (3, 0, 5, 1):
        x = np.zeros(9, np.int32)
        x[:found] = 1
        assert len(anydml.nonzero_coordinates(x)) == found


def test_nothing_of_nothing() -> None:
    assert anydml.nonzero_coordinates(np.zeros((0, 3), np.float32)).shape == (0, 2)
    assert anydml.nonzero_coordinates(np.zeros((4, 0, 3), np.int8)).shape == (0, 3)


def test_numbers_and_what_no_type_has_are_refused() -> None:
    for wrong in (3.5, np.float64(1), np.zeros(3, np.int64), "no", None):
        with pytest.raises(DMLError):
            anydml.nonzero_coordinates(wrong)


def test_truth_values() -> None:
    x = np.array([[True, False], [False, True]])
    for each in (x, x.T, x.tolist()):
        assert anydml.nonzero_coordinates(each).tolist() == [[0, 0], [1, 1]]
    torch = pytest.importorskip("torch")
    rows = anydml.nonzero_coordinates(torch.from_numpy(x))
    assert isinstance(rows, torch.Tensor)
    assert rows.tolist() == [[0, 0], [1, 1]]


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[0, 1], [2, 0]], dtype=torch.int32)
    rows = anydml.nonzero_coordinates(x)
    assert isinstance(rows, torch.Tensor)
    assert rows.tolist() == torch.nonzero(x).tolist()


def test_of_an_expression_all_rows() -> None:
    graph = Graph()
    x = np.array([[0, 4, 0], [5, 0, 0]], np.int16)
    each = anydml.nonzero_coordinates(graph.input(anydml.DML_BUFFER_TENSOR_DESC(DataType="INT16", Sizes=x.shape)))
    count, rows = (np.full(one.tensor.Sizes, 9, DTYPES[one.tensor.DataType]) for one in each)
    graph.compile(each).dispatch([x], [count, rows])
    assert count.tolist() == [2]
    assert rows[:2].tolist() == [[0, 1], [1, 0]]
