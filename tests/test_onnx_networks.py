"""ONNX's convolutions, pools, products, normalisations and recurrent layers, beside ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_peers import assert_alike


def real(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


CONVOLUTIONS: list[tuple[str, tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]] = [
    ("Conv", (2, 4, 9), (6, 2, 3), True, {"group": 2, "strides": [2], "pads": [1, 2], "dilations": [2]}),
    ("Conv", (1, 3, 8, 7), (5, 3, 3, 2), False, {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    ("Conv", (1, 3, 8, 7), (5, 3, 4, 2), True, {"auto_pad": "SAME_LOWER", "strides": [3, 2]}),
    ("Conv", (1, 3, 8, 7), (5, 3, 2, 2), True, {"auto_pad": "VALID", "strides": [1, 2]}),
    ("Conv", (2, 4, 5, 6, 4), (4, 1, 3, 2, 3), True, {"group": 4, "pads": [1, 0, 2, 0, 1, 1]}),
    ("ConvTranspose", (2, 4, 6), (4, 3, 3), True, {"strides": [2], "pads": [1, 0], "output_padding": [1]}),
    ("ConvTranspose", (1, 4, 5, 4), (4, 3, 3, 4), True, {"group": 2, "strides": [2, 3], "dilations": [2, 1]}),
    ("ConvTranspose", (1, 2, 5, 4), (2, 3, 3, 3), True, {"strides": [3, 2], "output_shape": [14, 9]}),
    ("ConvTranspose", (1, 2, 5, 4), (2, 3, 3, 3), True, {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", (1, 2, 5, 4), (2, 3, 3, 3), True, {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ("ConvTranspose", (1, 2, 3, 4, 3), (2, 3, 2, 3, 2), True, {"strides": [2, 1, 2], "pads": [0, 1, 0, 1, 0, 0]}),
]


@pytest.mark.parametrize(("op", "x", "w", "has_bias", "attributes"), CONVOLUTIONS)
def test_convolutions(op: str, x: tuple[int, ...], w: tuple[int, ...], has_bias: bool, attributes: Any) -> None:
    channels = w[0] if op == "Conv" else w[1] * attributes.get("group", 1)
    inputs = [real(0, *x), real(1, *w), real(2, channels) if has_bias else None]
    inputs = inputs if has_bias else inputs[:2]
    assert_alike(op, inputs, attributes, constants=(1, 2) if has_bias else (1,))
    assert_alike(op, inputs, attributes, opset=8)


POOLS: list[tuple[str, tuple[int, ...], int, dict[str, Any]]] = [
    (op, shape, opset, attributes | more)
    for op, opset, more in (
        ("AveragePool", 17, {}),
        ("AveragePool", 19, {"count_include_pad": 1}),
        ("MaxPool", 17, {}),
        ("LpPool", 18, {"p": 3}),
    )
    for shape, attributes in (
        ((2, 3, 11), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
        ((1, 2, 9, 8), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]}),
        ((1, 2, 9, 8), {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ((1, 2, 9, 8), {"kernel_shape": [4, 3], "auto_pad": "SAME_LOWER", "strides": [2, 1]}),
        ((1, 2, 5, 6, 7), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 3], "pads": [0, 1, 0, 1, 1, 1]}),
    )
] + [
    (op, (1, 3, *size), 19, {"kernel_shape": [3] * len(size), "strides": [2] * len(size), "ceil_mode": 1, **more})
    for op, more in (("AveragePool", {}), ("MaxPool", {}), ("MaxPool", {"dilations": [2, 2]}))
    for size in ((7, 8), (10, 9))
]


@pytest.mark.parametrize(("op", "shape", "opset", "attributes"), POOLS)
def test_pools(op: str, shape: tuple[int, ...], opset: int, attributes: Any) -> None:
    assert_alike(op, [real(3, *shape)], attributes, opset=opset)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_pools_of_all(op: str, shape: tuple[int, ...]) -> None:
    assert_alike(op, [real(4, *shape)])


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 3, 6, 5), (1, 2, 4, 6, 5)])
def test_indices_of_maxima(shape: tuple[int, ...], storage_order: int) -> None:
    count = len(shape) - 2
    attributes = {"kernel_shape": [2] * count, "strides": [2] * count, "storage_order": storage_order}
    assert_alike("MaxPool", [real(5, *shape)], attributes, outputs=2)


def test_maxima_of_integers() -> None:
    x = np.random.default_rng(6).integers(-128, 127, (1, 2, 6, 6)).astype(np.int8)
    assert_alike("MaxPool", [x], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, opset=12)


def test_unpooling() -> None:
    index = np.array([[[[1, 7], [20, 22]], [[30, 34], [40, 48]]]], np.int64)
    assert_alike("MaxUnpool", [real(7, 1, 2, 2, 2), index], {"kernel_shape": [3, 3], "strides": [2, 2]}, opset=11)


PRODUCTS = [
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((6, 1, 4), (1, 4, 3)),
    ((2, 1, 3, 3, 4), (2, 1, 4, 2)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize(("a", "b"), PRODUCTS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_products(a: tuple[int, ...], b: tuple[int, ...], dtype: Any) -> None:
    left, right = ((5 * real(i, *shape)).astype(dtype) for i, shape in ((8, a), (9, b)))
    if 0 in a and dtype != np.float32:
        return
    assert_alike("MatMul", [left, right])
    assert_alike("MatMul", [left, right], constants=(1,))


@pytest.mark.parametrize("flags", [{}, {"transA": 1}, {"transB": 1, "alpha": 0.5, "beta": 0.25}])
@pytest.mark.parametrize("c", [None, (), (1,), (5,), (3, 1), (3, 5)])
def test_gemm(flags: dict[str, Any], c: tuple[int, ...] | None) -> None:
    a = real(10, *((4, 3) if flags.get("transA") else (3, 4)))
    b = real(11, *((5, 4) if flags.get("transB") else (4, 5)))
    inputs = [a, b] + ([] if c is None else [real(12, *c)])
    assert_alike("Gemm", inputs, flags, opset=11)


EQUATIONS = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("ij,jk", [(3, 4), (4, 5)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (1, 6, 4, 5)]),
    ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("i,j->ij", [(3,), (4,)]),
    ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]),
    ("ij->i", [(3, 4)]),
    ("ii->i", [(4, 4)]),
    ("ii", [(4, 4)]),
    ("bii->ib", [(2, 4, 4)]),
    ("i,i->", [(4,), (4,)]),
    ("ij,kj->", [(3, 4), (5, 4)]),
    ("abc,cd,de->abe", [(2, 3, 4), (4, 5), (5, 2)]),
    ("bchw,bkhw->bck", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("b...d,d->b...", [(2, 3, 4, 5), (5,)]),
    ("ij,ij->ij", [(3, 4), (3, 4)]),
    ("iJ,Jk->ik", [(3, 4), (4, 5)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    assert_alike("Einsum", [real(i, *shape) for i, shape in enumerate(shapes)], {"equation": equation})


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 3, 4)])
def test_batch_normalization(shape: tuple[int, ...]) -> None:
    parameters = [real(i, 3) for i in (13, 14, 15)] + [abs(real(16, 3))]
    for opset in (7, 9, 14, 17):
        assert_alike("BatchNormalization", [real(17, *shape), *parameters], {"epsilon": 1e-3}, opset=opset)


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 4), (2, 2, 3, 4)])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("outputs", [1, 3])
def test_layer_normalization(shape: tuple[int, ...], axis: int, outputs: int) -> None:
    inputs = [real(18, *shape), real(19, *shape[axis:]), real(20, *shape[axis:])]
    assert_alike("LayerNormalization", inputs, {"axis": axis, "epsilon": 1e-4}, outputs=outputs)


@pytest.mark.parametrize("shape", [(2, 4, 5), (2, 4, 3, 5), (1, 4, 2, 3, 4)])
def test_other_normalizations(shape: tuple[int, ...]) -> None:
    x, scale, bias = real(21, *shape), real(22, 4), real(23, 4)
    assert_alike("InstanceNormalization", [x, scale, bias], {"epsilon": 1e-3})
    assert_alike("GroupNormalization", [x, scale, bias], {"num_groups": 2}, opset=21)
    assert_alike("LpNormalization", [x], {"p": 1, "axis": 1})
    assert_alike("LpNormalization", [x], {"p": 2, "axis": -1})
    assert_alike("MeanVarianceNormalization", [x], {"axes": [0, 2]}, opset=13)
    assert_alike("RMSNormalization", [x, scale[:1]], {"axis": -1}, opset=23)
    if len(shape) == 4:
        assert_alike("LRN", [x], {"size": 3, "alpha": 0.5, "beta": 0.6, "bias": 2.0})


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("is_full", [False, True])
def test_recurrent(op: str, gates: int, direction: str, is_full: bool) -> None:
    steps, batch, size, hidden, ways = 5, 3, 4, 6, 2 if direction == "bidirectional" else 1
    inputs = [
        real(24, steps, batch, size),
        real(25, ways, gates * hidden, size),
        real(26, ways, gates * hidden, hidden),
    ]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if is_full:
        inputs += [real(27, ways, 2 * gates * hidden), np.array([5, 2, 3], np.int32), real(28, ways, batch, hidden)]
        usual = {"RNN": ["LeakyRelu"], "GRU": ["HardSigmoid", "Softsign"], "LSTM": ["Sigmoid", "Tanh", "Relu"]}[op]
        attributes["activations"] = usual * ways
        if op == "GRU":
            attributes["linear_before_reset"] = 1
        if op == "LSTM":
            inputs += [real(29, ways, batch, hidden), real(30, ways, 3 * hidden)]
            attributes["clip"] = 1.5
    assert_alike(op, inputs, attributes, outputs=3 if op == "LSTM" else 2, constants=(1, 2))


def test_batches_of_none() -> None:
    x, channel = real(31, 0, 3, 8, 8), real(32, 3)
    assert_alike("Conv", [x, real(33, 4, 3, 3, 3)], {"strides": [2, 2], "pads": [1] * 4})
    assert_alike("ConvTranspose", [x, real(33, 3, 4, 3, 3)], {"strides": [2, 2]})
    assert_alike("MaxPool", [x], {"kernel_shape": [2, 2]}, outputs=2)
    assert_alike("AveragePool", [x], {"kernel_shape": [2, 2], "ceil_mode": 1})
    assert_alike("GlobalAveragePool", [x])
    assert_alike("BatchNormalization", [x, channel, channel, channel, abs(channel)])
    assert_alike("LayerNormalization", [real(34, 0, 3), channel, channel])
    assert_alike("Gemm", [real(34, 0, 3), real(35, 3, 4)])
