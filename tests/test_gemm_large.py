"""Larger products of matrices on the CPU: sizes that are no multiples of anything against double precision, and the
same bits in every layout, for parts of the rows, of a matrix that stays, on each instruction set and on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from anydml import DML_GEMM_OPERATOR_DESC, _native
from anydml.backends.base import Kernel
from anydml.backends.native.engine import CpuEngine
from anydml.core.enums import MatrixTransform
from anydml.core.strided_layout import Layout
from anydml.operators import spec
from anydml.operators.fused_activation import FUSIBLE, fused_since
from cases import tensor_of
from fusing import activation, unfused
from harness import assert_same

pytestmark = [pytest.mark.native, pytest.mark.slow]

FLOATS = [np.float32, np.float16]
NONE, TRANSPOSE = MatrixTransform.NONE, MatrixTransform.TRANSPOSE


def described(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, **members: Any) -> DML_GEMM_OPERATOR_DESC:
    y = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype)
    options = {"TransA": NONE, "TransB": NONE, "Alpha": 1, "Beta": 1, **members}
    return DML_GEMM_OPERATOR_DESC(
        ATensor=tensor_of(a),
        BTensor=tensor_of(b),
        CTensor=None if c is None else tensor_of(c),
        OutputTensor=tensor_of(y),
        **options,
    )


def computed(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    y: np.ndarray | None = None,
    is_prepared: bool = False,
    **members: Any,
) -> np.ndarray:
    """By the native kernel, from arrays that lie as they do."""
    desc = described(a, b, c, **members)
    if y is None:
        y = np.full(desc.OutputTensor.Sizes, np.nan, a.dtype)
    inputs = [a, b, c]
    layouts = [None if each is None else Layout.of_array(each) for each in inputs]
    kernel = CpuEngine().compile(spec("GEMM"), desc, layouts, [Layout.of_array(y)])
    assert isinstance(kernel, Kernel), kernel
    run: Any = kernel.run
    if is_prepared:
        assert kernel.prepare is not None
        run = kernel.prepare([None, b, c])
        assert run is not None
        assert run.size >= b.nbytes
        # Nothing is read of them any more.
        inputs = [a, *[None if each is None else lying_as(each, np.nan) for each in (b, c)]]
    run(inputs, [y])
    return y


def drawn(rng: np.random.Generator, *shape: int, dtype: Any) -> np.ndarray:
    return rng.uniform(-1, 1, shape).astype(dtype)


def lying_as(x: np.ndarray, value: float) -> np.ndarray:
    """An array of x's strides with that value throughout."""
    low, high = Layout.of_array(x).bounds()
    memory = np.full((high - low) // x.itemsize, value, x.dtype)
    return Layout.of_array(x).view(memory.view(np.uint8), -low)


def lying_otherwise(x: np.ndarray) -> list[np.ndarray]:
    """The same numbers by columns, backward, and with gaps."""
    by_columns = np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    backward = np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1]
    gaps = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    gaps[..., ::2] = x
    return [by_columns, backward, gaps[..., ::2]]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [
        (1, 1100, 2087),
        (1, 15, 70),
        (1, 700, 31),
        (3, 530, 79),
        (4, 1027, 65),
        (9, 600, 133),
        (29, 70, 17),
        (61, 1029, 301),
        (400, 530, 45),
        (1000, 3, 5),
        (130, 64, 290),
    ],
)
def test_odd_sizes_in_every_layout(rows: int, depth: int, columns: int, dtype: Any) -> None:
    """Within what single precision loses in any order, and the same bits wherever the matrices lie."""
    rng = np.random.default_rng(rows)
    a, b = drawn(rng, rows, depth, dtype=dtype), drawn(rng, depth, columns, dtype=dtype)
    y = computed(a, b)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = wide_a @ wide_b
    bound = (depth + 2) * 2.0**-24 * (abs(wide_a) @ abs(wide_b)) + abs(exact) * 2.0**-50
    assert (y >= (exact - bound).astype(dtype)).all()
    assert (y <= (exact + bound).astype(dtype)).all()
    for other in lying_otherwise(a):
        assert_same(computed(other, b), y)
    for other in lying_otherwise(b):
        assert_same(computed(a, other), y)
    for other in lying_otherwise(np.zeros_like(y)):
        assert_same(computed(a, b, y=other), y)
    # The product of the transposed matrices is the transposed one, of the same sums.
    transposed = computed(np.ascontiguousarray(b.T), np.ascontiguousarray(a.T))
    assert_same(transposed.T, y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_parts_of_rows_and_columns_are_those_of_the_whole(dtype: Any) -> None:
    """So that a batch may be divided: each number of rows has its own way."""
    rng = np.random.default_rng(3)
    a, b = drawn(rng, 150, 1030, dtype=dtype), drawn(rng, 1030, 270, dtype=dtype)
    c = drawn(rng, 150, 270, dtype=dtype)
    y = computed(a, b, c, Alpha=0.75, Beta=-2)
    for rows in (1, 2, 3, 4, 5, 13, 15, 28, 29, 57):
        for each in (b, np.asfortranarray(b)):
            assert_same(computed(a[:rows], each, c[:rows], Alpha=0.75, Beta=-2), y[:rows])
    for columns in (1, 2, 16, 17, 31, 33, 65, 257):
        assert_same(computed(a, b[:, :columns], c[:, :columns], Alpha=0.75, Beta=-2), y[:, :columns])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rows", "depth", "columns"), [(70, 1100, 333), (8, 530, 48), (40, 20, 33)])
def test_prepared_products(rows: int, depth: int, columns: int, dtype: Any) -> None:
    """Of a right matrix that stays, with what is added or without, in each layout that is packed."""
    rng = np.random.default_rng(5)
    a, b = drawn(rng, rows, depth, dtype=dtype), np.asfortranarray(drawn(rng, depth, columns, dtype=dtype))
    if rows < 17:
        b = lying_otherwise(b)[2]  # neither rows nor columns lie side by side
    full, row = drawn(rng, rows, columns, dtype=dtype), drawn(rng, 1, columns, dtype=dtype)
    for c in (None, full, np.broadcast_to(row, (rows, columns)), np.broadcast_to(row[:, :1], (rows, columns))):
        y = computed(a, b, c, Beta=3)
        assert_same(computed(a, b, c, Beta=3, is_prepared=True), y)
        with threadpool_limits(1, "openmp"):
            assert_same(computed(a, b, c, Beta=3), y)
        for instruction_set in _native.build_info()["instruction_sets"]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("ANYDML_CPU", instruction_set)
                assert_same(computed(a, b, c, Beta=3), y)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", [1, 7, 30])
def test_a_batch_with_one_right_matrix(rows: int, dtype: Any) -> None:
    rng = np.random.default_rng(rows)
    a, b = drawn(rng, 2, 3, rows, 70, dtype=dtype), drawn(rng, 70, 90, dtype=dtype)
    c = drawn(rng, 90, dtype=dtype)
    shape = (2, 3, rows, 90)
    y = computed(a, np.broadcast_to(b, (2, 3, 70, 90)), np.broadcast_to(c, shape))
    apart = np.zeros((2, 3, rows + 1, 70), dtype)
    apart[:, :, :rows] = a
    assert_same(computed(apart[:, :, :rows], np.broadcast_to(b, (2, 3, 70, 90)), np.broadcast_to(c, shape)), y)
    for i, j in np.ndindex(2, 3):
        assert_same(computed(a[i, j], b, np.broadcast_to(c, shape[2:])), y[i, j])


@pytest.mark.parametrize("name", [name for name in FUSIBLE if fused_since(name, "GEMM")])
@pytest.mark.parametrize("dtype", FLOATS)
def test_activations_of_tiles(name: str, dtype: Any) -> None:
    """Every activation has a native kernel, which is applied to all of each tile and rounded once: of halves from what
    single precision has, within a unit in the last place of the function of the product that was rounded before."""
    rng = np.random.default_rng(11)
    for rows, depth, columns in ((1, 9, 70), (40, 5, 45), (3, 600, 33)):
        a, b = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((rows, depth), (depth, columns)))
        a[:, 9:] = 0
        y = computed(a, b, FusedActivation=activation(name))
        expected = unfused(name, computed(a, b))
        np.testing.assert_array_max_ulp(y, expected, maxulp=2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_finite_stays_in_its_row_and_column(dtype: Any) -> None:
    """Nothing that fills a vector or a tile is read from elsewhere."""
    rng = np.random.default_rng(1)
    for rows, depth, columns in ((1, 600, 45), (3, 40, 77), (20, 65, 33), (50, 30, 19)):
        a, b = drawn(rng, rows, depth, dtype=dtype), drawn(rng, depth, columns, dtype=dtype)
        for each in (b, np.asfortranarray(b)):
            b_padded = np.full((depth + 2, columns + 2), np.nan, dtype, order="F" if each is not b else "C")
            b_padded[1:-1, 1:-1] = each
            a_padded = np.full((rows + 2, depth + 2), np.nan, dtype)
            a_padded[1:-1, 1:-1] = a
            y = np.full((rows + 2, columns + 2), 7, dtype)
            computed(a_padded[1:-1, 1:-1], b_padded[1:-1, 1:-1], y=y[1:-1, 1:-1])
            assert_same(y[1:-1, 1:-1], computed(a, b))
            y[1:-1, 1:-1] = 7
            assert (y == 7).all()


def test_a_matrix_is_prepared_for_packed_products_alone() -> None:
    """One row reads it where it lies, as fast; and of a batch with several there is nothing to pack once."""
    rng = np.random.default_rng(2)
    for a_shape, b_shape in (((1, 64), (64, 64)), ((2, 40, 8), (2, 8, 64))):
        a, b = drawn(rng, *a_shape, dtype=np.float32), drawn(rng, *b_shape, dtype=np.float32)
        desc = described(a, b, None)
        kernel = CpuEngine().compile(
            spec("GEMM"),
            desc,
            [Layout.of_array(a), Layout.of_array(b), None],
            [Layout.of_desc(desc.OutputTensor)],
        )
        assert isinstance(kernel, Kernel)
        assert kernel.prepare is None
