"""The function of ONE_HOT beside PyTorch's and NumPy's: indices that have no dimension of 1 get one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DMLError, Graph


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (4, 1, 3), (0,), (2, 0, 3)])
def test_as_numpy(shape: Any) -> None:
    indices = np.random.default_rng(0).integers(0, 7, shape)
    y = anydml.one_hot(indices, 7)
    np.testing.assert_array_equal(y, np.eye(7, dtype=np.float32)[indices])


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_along_any_axis(axis: int) -> None:
    indices = np.random.default_rng(0).integers(-4, 4, (2, 3))
    y = anydml.one_hot(indices, 4, axis=axis)
    np.testing.assert_array_equal(y, np.moveaxis(np.eye(4)[indices], -1, axis))


def test_a_dimension_of_1_becomes_the_vectors() -> None:
    indices = np.array([[2], [0]])
    assert anydml.one_hot(indices, 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert anydml.one_hot(indices.T, 3, axis=0).tolist() == [[0, 1], [0, 0], [1, 0]]
    assert anydml.one_hot(indices, 3, axis=-1).shape == (2, 3)
    assert anydml.one_hot(indices, 3, axis=2).shape == (2, 1, 3)
    assert anydml.one_hot(indices, 3, axis=0).shape == (3, 2, 1)


def test_as_pytorch() -> None:
    torch = pytest.importorskip("torch")
    indices = torch.tensor([[1, 4, 0], [2, 2, 3]])
    y = anydml.one_hot(indices, 5, np.array([0, 1]))
    assert isinstance(y, torch.Tensor)
    assert torch.equal(y, torch.nn.functional.one_hot(indices, 5))


def test_expressions() -> None:
    graph = Graph()
    x = np.array([3, 1], np.uint32)
    y = anydml.one_hot(graph.input(anydml.DML_BUFFER_TENSOR_DESC(DataType="UINT32", Sizes=(2,))), 4)
    out = np.empty(y.tensor.Sizes, np.float32)
    graph.compile([y]).dispatch([x], [out])
    assert out.tolist() == [[0, 0, 0, 1], [0, 1, 0, 0]]


@pytest.mark.parametrize("axis", [3, -4, "last", None, 0.5])
def test_an_axis_that_there_is_not(axis: Any) -> None:
    with pytest.raises(DMLError, match="axis"):
        anydml.one_hot(np.zeros((2, 3), np.int32), 4, axis=axis)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
@pytest.mark.parametrize("classes", [2, 15, 16, 1030, 5000])
@pytest.mark.parametrize("axis", [0, -1])
def test_many_vectors(classes: int, dtype: Any, axis: int) -> None:
    """More than are looked at together, of which some have no place."""
    count = 2_000_003 // classes if classes < 5000 else 9000 // np.dtype(dtype).itemsize
    indices = np.random.default_rng(3).integers(-classes - 2, classes + 2, count)
    values = np.array([3, 7]).astype(dtype)
    there = np.where(indices < 0, indices + classes, indices)
    expected = np.where(np.arange(classes) == there[:, None], values[1], values[0])
    found = anydml.one_hot(indices, classes, values, axis=axis)
    np.testing.assert_array_equal(found, expected if axis else expected.T)
