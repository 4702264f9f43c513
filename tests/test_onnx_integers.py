"""ONNX's convolutions and products of integers, and of quantised numbers, beside ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_peers import assert_alike, weights_of


def integers(seed: int, dtype: Any, *shape: int) -> Any:
    ends = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(ends.min, ends.max + 1, shape).astype(dtype)


def scales(seed: int, *shape: int) -> Any:
    return np.asarray(np.random.default_rng(seed).uniform(0.01, 0.05, shape), np.float32)


OFF_BY_ONE = {"rtol": 0.0, "atol": 1.0}
"""ONNX Runtime rounds a product in single precision, DirectML's operators here the exact one."""

WINDOWS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 6, 7), (5, 3, 3, 2), {"pads": [1, 0, 1, 1], "strides": [2, 1]}),
    ((2, 4, 6, 6), (4, 2, 3, 3), {"group": 2, "dilations": [2, 1]}),
    ((1, 4, 9), (6, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2]}),
    ((1, 4, 6, 6), (4, 1, 3, 3), {"group": 4, "auto_pad": "SAME_LOWER"}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), WINDOWS)
def test_convolutions_of_integers(x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    inputs = [integers(0, np.uint8, *x), integers(1, np.uint8, *w), np.array(120, np.uint8), np.array(100, np.uint8)]
    assert_alike("ConvInteger", inputs, attributes)
    assert_alike("ConvInteger", inputs[:3], attributes, constants=(1,))


@pytest.mark.parametrize(("x", "w", "attributes"), WINDOWS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("has_bias", [False, True])
def test_quantised_convolutions(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], dtype: Any, has_bias: bool
) -> None:
    inputs = [integers(0, dtype, *x), scales(1), np.array(7, dtype)]
    inputs += [
        weights_of(integers(2, np.int8, *w)),
        scales(3, w[0]),
        np.zeros(w[0], np.int8),
        scales(4) * 100,
        np.array(3, dtype),
    ]
    inputs += [integers(5, np.int16, w[0]).astype(np.int32)] if has_bias else []
    constants = tuple(range(1, len(inputs)))
    assert_alike("QLinearConv", inputs, attributes, constants=constants, **OFF_BY_ONE)


PRODUCTS = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4, 5)), ((3, 4), (4,))]


@pytest.mark.parametrize(("a", "b"), PRODUCTS)
def test_products_of_integers(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = integers(0, np.uint8, *a), weights_of(integers(1, np.int8, *b))
    assert_alike("MatMulInteger", [left, right, np.array(9, np.uint8), np.array(-3, np.int8)])
    assert_alike("MatMulInteger", [left, right], constants=(1,))


def test_products_of_columns() -> None:
    a, b = integers(0, np.uint8, 2, 3, 4), integers(1, np.int8, 4, 5)
    assert_alike("MatMulInteger", [a, b, np.array(9, np.uint8), integers(2, np.int8, 5)], constants=(1, 3))


@pytest.mark.parametrize(("a", "b"), PRODUCTS[:3])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantised_products(a: tuple[int, ...], b: tuple[int, ...], dtype: Any) -> None:
    left = [integers(0, dtype, *a), scales(1), np.array(7, dtype)]
    right = [integers(2, dtype, *b), scales(3), np.array(2, dtype)]
    inputs = [*left, *right, scales(4) * 50, np.array(3, dtype)]
    assert_alike("QLinearMatMul", inputs, constants=(4, 5, 6, 7), **OFF_BY_ONE)
