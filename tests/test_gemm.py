"""GEMM against exact integers, against its bound on rounding, and with every activation that may be fused into it."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import DML_GEMM_OPERATOR_DESC, FeatureLevel, validate
from anydml.core.enums import MatrixTransform
from anydml.operators import spec
from anydml.operators.fused_activation import FUSIBLE, fused_since
from anydml.operators.schema import OperatorDesc
from cases import tensor, tensor_of
from fusing import activation, unfused
from harness import ENGINE, assert_same, run
from test_properties import property_test

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

TRANSFORMS = list(MatrixTransform)


def product(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    transforms: tuple[MatrixTransform, MatrixTransform] = (MatrixTransform.NONE, MatrixTransform.NONE),
    alpha: float = 1,
    beta: float = 1,
    fused: OperatorDesc | None = None,
    engine: str = ENGINE,
) -> np.ndarray:
    m, n = a.shape[-2:][transforms[0]], b.shape[-2:][1 - transforms[1]]
    desc = DML_GEMM_OPERATOR_DESC(
        ATensor=tensor_of(a),
        BTensor=tensor_of(b),
        CTensor=None if c is None else tensor_of(c),
        OutputTensor=tensor_of(np.empty((*a.shape[:-2], m, n), a.dtype)),
        TransA=transforms[0],
        TransB=transforms[1],
        Alpha=alpha,
        Beta=beta,
        FusedActivation=fused,
    )
    (y,) = run(engine, desc, [a, b, c])
    assert y is not None
    return y


def turned(x: np.ndarray, transform: MatrixTransform) -> np.ndarray:
    return x.swapaxes(-1, -2) if transform == MatrixTransform.TRANSPOSE else x


@property_test
@given(
    batch=st.sampled_from([(), (1,), (3,), (2, 3)]),
    sizes=st.tuples(*[st.integers(1, 20)] * 3),
    transforms=st.tuples(*[st.sampled_from(TRANSFORMS)] * 2),
    dtype=st.sampled_from([np.float32, np.float16]),
    factors=st.tuples(*[st.sampled_from([-2, -1, 0, 0.5, 1, 3])] * 2),
    has_c=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_integers_are_exact(
    batch: Any, sizes: Any, transforms: Any, dtype: Any, factors: Any, has_c: bool, seed: int
) -> None:
    (m, k, n), (alpha, beta) = sizes, factors
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(-8, 9, (*batch, *shape)) for shape in ((m, k), (k, n), (m, n)))
    exact = alpha * (a @ b) + (beta * c if has_c else 0)
    given = [turned(x, transform).astype(dtype) for x, transform in zip((a, b), transforms, strict=True)]
    y = product(*given, c.astype(dtype) if has_c else None, transforms=transforms, alpha=alpha, beta=beta)
    assert_same(y, exact.astype(dtype))


@property_test
@given(k=st.integers(1, 400), dtype=st.sampled_from([np.float32, np.float16]), seed=st.integers(0, 2**32 - 1))
def test_a_product_is_rounded_once(k: int, dtype: Any, seed: int) -> None:
    """But for what single precision loses, in any order: at most k * u * sum of |a * b|."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((2, k), (k, 3)))
    y = product(a, b)
    u = 2.0**-24
    for i, j in np.ndindex(y.shape):
        terms = a[i].astype(np.float64) * b[:, j].astype(np.float64)  # exact
        exact = fsum(terms)
        bound = k * u * fsum(abs(terms))
        assert dtype(exact - bound) <= y[i, j] <= dtype(exact + bound)


def test_the_reference_sums_in_double() -> None:
    a, b = np.float32([[3e38, 3e38]]), np.float32([[3e38, 3e38], [-3e38, 3e38]])
    assert_same(product(a, b, engine="reference"), np.float32([[0, np.inf]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("rows", [1, 5, 16, 17, 40, 300])
@pytest.mark.parametrize("transforms", [(a, b) for a in TRANSFORMS for b in TRANSFORMS])
def test_blocks_of_any_size(rows: int, dtype: Any, transforms: Any) -> None:
    """Of integers, which are exact in any order: panels that are packed or read in place, rows that are packed, and a
    depth of several panels."""
    rng = np.random.default_rng(rows)
    for depth, columns in ((1, 33), (513, 31), (1100, 70), (65, 600)):
        a, b = rng.integers(-1, 2, (2, rows, depth)), rng.integers(-1, 2, (2, depth, columns))
        given = [turned(x, transform).astype(dtype) for x, transform in zip((a, b), transforms, strict=True)]
        c = rng.integers(-8, 9, (2, 1, columns)).astype(dtype)
        c = np.broadcast_to(c, (2, rows, columns))
        assert_same(product(*given, c, transforms=transforms, beta=2), (a @ b + 2 * c.astype(int)).astype(dtype))


@pytest.mark.parametrize("name", [name for name in FUSIBLE if fused_since(name, "GEMM")])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("batch", [(1,), (2,)])
def test_a_fused_activation_is_the_unfused_one(name: str, dtype: Any, batch: tuple[int, ...]) -> None:
    """Of integers, which the product gives exactly."""
    rng = np.random.default_rng(7)
    batch = () if name == "ACTIVATION_SOFTMAX" else batch
    a, b = (rng.integers(-2, 3, (*batch, *shape)).astype(dtype) for shape in ((3, 5), (5, 4)))
    assert_same(product(a, b, fused=activation(name)), unfused(name, product(a, b)))


def square(sizes: tuple[int, ...], fused: OperatorDesc) -> DML_GEMM_OPERATOR_DESC:
    x = tensor(sizes)
    members = {"TransA": MatrixTransform.NONE, "TransB": MatrixTransform.NONE, "Alpha": 1, "Beta": 0}
    return DML_GEMM_OPERATOR_DESC(ATensor=x, BTensor=x, OutputTensor=x, **members, FusedActivation=fused)


@pytest.mark.parametrize(
    ("name", "options", "where", "found"),
    [
        ("ACTIVATION_SOFTMAX", {}, "InputTensor.Sizes[0]", "3"),
        ("ACTIVATION_SOFTMAX1", {"Axes": ()}, "AxisCount", "0"),
        ("ACTIVATION_SOFTMAX1", {"Axes": (3,)}, "Axes[0]", "3"),
        ("ACTIVATION_SOFTMAX1", {"Axes": (1, 1)}, "Axes[1]", "1 again"),
    ],
)
def test_a_fused_activation_keeps_its_own_constraints(name: str, options: Any, where: str, found: str) -> None:
    desc = square((3, 2, 2), spec(name).desc(**options))
    (violation,) = validate(desc)
    assert (violation.rule, violation.where, violation.found) == ("(F11)", f"FusedActivation.{where}", found)


def test_softmax_may_be_fused_from_6_1_on() -> None:
    desc = square((2, 2), activation("ACTIVATION_SOFTMAX"))
    assert validate(desc, FeatureLevel.LEVEL_6_1) == []
    (violation,) = validate(desc, FeatureLevel.LEVEL_6_0)
    assert (violation.rule, violation.where) == ("(S4)", "FusedActivation")
    assert violation.remedy == "ACTIVATION_SOFTMAX needs feature level 6.1"
