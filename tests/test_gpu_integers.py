"""Products of bytes on a GPU by its integer products, of sizes from which on they are not taken otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anydml import spec
from cases import tensor_of
from gpu_calls import on_gpu
from harness import GPU, assert_same, run

pytestmark = pytest.mark.gpu

INTEGER = "anydml.backends.torch.lowering.integer"


@pytest.fixture(params=[True, False], ids=["taken", "not taken"])
def library(request: pytest.FixtureRequest, torch: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Integer products of small matrices too; the calls that were made of a library, which may refuse them."""
    calls: list[int] = []
    multiply = torch._int_mm

    def counted(a: Any, b: Any) -> Any:
        calls.append(1)
        if not request.param:
            raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")
        return multiply(a, b)

    monkeypatch.setattr(f"{INTEGER}._MANY", 0)
    monkeypatch.setattr(torch, "_int_mm", counted)
    return calls


@on_gpu
@pytest.mark.parametrize(("a_type", "b_type"), [(np.uint8, np.int8), (np.int8, np.uint8), (np.uint8, np.uint8)])
@pytest.mark.parametrize("sizes", [(2, 33, 40, 24), (1, 1, 7, 3), (3, 19, 129, 65)])
@pytest.mark.parametrize("zeros", ["none", "one", "lines"])
def test_products_of_bytes(library: list[int], a_type: Any, b_type: Any, sizes: tuple[int, ...], zeros: str) -> None:
    batch, m, k, n = sizes
    random = np.random.default_rng(sizes)

    def drawn(dtype: Any, *shape: int) -> Any:
        ends = np.iinfo(dtype)
        return random.integers(ends.min, ends.max, shape, dtype, endpoint=True)

    a, b = drawn(a_type, 1, batch, m, k), np.broadcast_to(drawn(b_type, 1, 1, k, n), (1, batch, k, n))
    shapes = {"one": ((1,) * 4, (1,) * 4), "lines": ((1, 1, m, 1), (1, 1, 1, n))}
    points: list[Any] = [None, None]
    if zeros != "none":
        points = [drawn(dtype, *shape) for dtype, shape in zip((a_type, b_type), shapes[zeros], strict=True)]
    y = np.zeros((1, batch, m, n), np.int32)
    given = [a, points[0], b, points[1]]
    names = ("ATensor", "AZeroPointTensor", "BTensor", "BZeroPointTensor")
    tensors = {name: None if x is None else tensor_of(x) for name, x in zip(names, given, strict=True)}
    tensors["BTensor"] = tensor_of(b, (0, 0, n, 1))
    desc = spec("MATRIX_MULTIPLY_INTEGER").desc(**tensors, OutputTensor=tensor_of(y))
    (found,) = run(GPU, desc, given)
    assert found is not None
    wide = [0 if x is None else x.astype(np.int64) for x in given]
    assert_same(found, np.matmul(wide[0] - wide[1], wide[2] - wide[3]).astype(np.int32))
    assert library
