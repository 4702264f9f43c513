"""Operators of com.microsoft, beside ONNX Runtime's kernels for CPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from anydml import DMLError
from onnx_peers import assert_alike


def real(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(seed: int, dtype: Any, *shape: int) -> Any:
    ends = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(ends.min, ends.max + 1, shape).astype(dtype)


def single(value: float) -> Any:
    return np.array(value, np.float32)


FUSED: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Gelu", [real(0, 2, 5)], {}),
    ("BiasGelu", [real(0, 2, 3, 5), real(1, 5)], {}),
    ("FastGelu", [real(0, 2, 3, 5), real(1, 5)], {}),
    ("FastGelu", [real(0, 2, 3, 5)], {}),
    ("QuickGelu", [real(0, 2, 5)], {"alpha": 1.3}),
    ("FusedMatMul", [real(0, 2, 3, 4), real(1, 2, 5, 4)], {"transB": 1, "alpha": 0.5}),
    ("FusedMatMul", [real(0, 2, 4, 3), real(1, 2, 4, 5)], {"transA": 1}),
    ("FusedMatMul", [real(0, 3, 2, 4), real(1, 2, 4, 5)], {"transBatchA": 1}),
    ("FusedMatMul", [real(0, 2, 3, 4), real(1, 4, 2, 5)], {"transBatchB": 1}),
    ("FusedGemm", [real(0, 3, 4), real(1, 4, 5), real(2, 5)], {"activation": "LeakyRelu", "activation_alpha": 0.3}),
    ("FusedConv", [real(0, 1, 3, 6, 6), real(1, 4, 3, 3, 3), real(2, 4)], {"activation": "Relu", "pads": [1] * 4}),
    ("FusedConv", [real(0, 1, 3, 6, 6), real(1, 4, 3, 3, 3), real(2, 4), real(3, 1, 4, 4, 4)], {"activation": "Relu"}),
    (
        "FusedConv",
        [real(0, 1, 3, 6, 6), real(1, 4, 3, 3, 3), real(2, 4)],
        {"activation": "Clip", "activation_params": [-0.5, 0.75]},
    ),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), FUSED)
def test_fused(op: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    assert_alike(f"com.microsoft.{op}", inputs, attributes)


@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_skip_layer_normalization(skip: tuple[int, ...], has_bias: bool) -> None:
    bias = [real(4, 8)] if has_bias else []
    inputs = [real(0, 2, 3, 8), real(1, *skip), real(2, 8)]
    assert_alike("com.microsoft.SkipSimplifiedLayerNormalization", [*inputs, *bias], {"epsilon": 1e-5})
    inputs += [real(3, 8), *bias]
    assert_alike("com.microsoft.SkipLayerNormalization", inputs, {"epsilon": 1e-5})


def test_embedding() -> None:
    ids, segments = integers(0, np.int8, 2, 4).astype(np.int32) % 10, np.array([[0, 0, 1, 1]] * 2, np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)
    tables = [real(1, 10, 8), real(2, 6, 8), real(3, 2, 8), real(4, 8), real(5, 8)]
    assert_alike("com.microsoft.EmbedLayerNormalization", [ids, segments, *tables, mask], outputs=2)


MASKS = {
    "none": None,
    "lengths": np.array([3, 5], np.int32),
    "ends and starts": np.array([4, 5, 1, 0], np.int32),
    "keys": np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0]], np.int32),
    "queries": integers(6, np.int8, 2, 5, 5).astype(np.int32) % 2 | np.eye(5, dtype=np.int32),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(mask: str, unidirectional: int) -> None:
    inputs = [real(0, 2, 5, 6), real(1, 6, 24), real(2, 24), MASKS[mask]]
    attributes = {"num_heads": 2, "unidirectional": unidirectional}
    assert_alike("com.microsoft.Attention", inputs, attributes, constants=(1, 2))


def test_attention_with_past() -> None:
    inputs = [real(0, 2, 3, 6), real(1, 6, 24), real(2, 24), None, real(3, 2, 2, 2, 4, 4)]
    assert_alike("com.microsoft.Attention", inputs, {"num_heads": 2, "unidirectional": 1}, outputs=2)
    inputs[4:] = [None, real(4, 1, 2, 3, 3)]
    assert_alike("com.microsoft.Attention", inputs, {"num_heads": 2, "scale": 0.3})


def test_attention_of_several_sizes() -> None:
    inputs = [real(0, 2, 3, 6), real(1, 6, 8 + 8 + 12), real(2, 28)]
    assert_alike("com.microsoft.Attention", inputs, {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 12]})


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_quantised_attention(unidirectional: int) -> None:
    inputs = [integers(0, np.uint8, 2, 5, 6), integers(1, np.int8, 6, 24), real(2, 24), single(0.02), single(0.01)]
    inputs += [np.array([3, 5], np.int32), np.array(120, np.uint8), np.array(0, np.int8)]
    attributes = {"num_heads": 2, "unidirectional": unidirectional}
    assert_alike("com.microsoft.QAttention", inputs, attributes, constants=(1, 2, 3, 4, 6, 7), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_multi_head_attention(has_bias: bool, unidirectional: int) -> None:
    bias = real(3, 24) if has_bias else None
    attributes = {"num_heads": 2, "unidirectional": unidirectional}
    op = "com.microsoft.MultiHeadAttention"
    q, k, v, mask = real(0, 2, 5, 8), real(1, 2, 5, 8), real(2, 2, 5, 8), MASKS["keys"]
    assert_alike(op, [q, k, v, bias], attributes)
    assert_alike(op, [q, k, v, bias, mask], attributes)
    assert_alike(op, [q, k, v, bias, None, real(4, 1, 2, 5, 5)], attributes)
    past = [real(5, 2, 2, 3, 4), real(6, 2, 2, 3, 4)]
    assert_alike(op, [q, k, v, bias, None, None, *past], attributes, outputs=3)


def test_attention_across() -> None:
    inputs = [real(0, 2, 5, 8), real(1, 2, 2, 7, 4), real(2, 2, 2, 7, 4)]
    assert_alike("com.microsoft.MultiHeadAttention", inputs, {"num_heads": 2})


def grouped(length: int, past: int, lengths: list[int], packed: bool = False, room: int = 0) -> list[Any]:
    """Two heads of keys, four of queries, of 16 elements."""
    batch, total = len(lengths), max(lengths)
    q, k, v = real(0, batch, length, 64), real(1, batch, length, 32), real(2, batch, length, 32)
    pasts = [real(i, batch, 2, room or past, 16) for i in (3, 4)] if room or past else [None, None]
    three = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
    return [*three, *pasts, np.array(lengths, np.int32) - 1, np.array(total, np.int32)]


CHUNKS = [
    (4, 0, [4, 4]),
    (1, 5, [6, 6]),
    (3, 5, [8]),
    (1, 5, [6, 4]),
]


@pytest.mark.parametrize(("length", "past", "lengths"), CHUNKS)
@pytest.mark.parametrize("attributes", [{}, {"local_window_size": 2}, {"softcap": 2.0}, {"smooth_softmax": 1}])
@pytest.mark.parametrize("rotary", [None, 0, 1])
def test_grouped_attention(
    length: int, past: int, lengths: list[int], attributes: dict[str, Any], rotary: int | None
) -> None:
    inputs = grouped(length, past, lengths, packed=rotary == 1)
    attributes = {"num_heads": 4, "kv_num_heads": 2, **attributes}
    if rotary is not None:
        angles = real(7, 16, 8)
        inputs += [np.cos(angles), np.sin(angles)]
        attributes |= {"do_rotary": 1, "rotary_interleaved": rotary}
    # Behind the last key of a shorter sequence ONNX Runtime's results are undefined.
    compared = 3 if len(set(lengths)) == 1 else 1
    op = "com.microsoft.GroupQueryAttention"
    if compared == 1 and attributes.keys() & {"softcap", "smooth_softmax"}:
        with pytest.raises(DMLError, match="6 of each sequence"):
            assert_alike(op, inputs, attributes, outputs=3, constants=(6,), compared=compared)
    else:
        assert_alike(op, inputs, attributes, outputs=3, constants=(6,), compared=compared)


@pytest.mark.parametrize(("length", "lengths"), [(1, [6, 6]), (4, [4, 4]), (1, [5, 3])])
def test_grouped_attention_in_a_buffer(length: int, lengths: list[int]) -> None:
    inputs = grouped(length, 0, lengths, room=8)
    attributes = {"num_heads": 4, "kv_num_heads": 2}
    op = "com.microsoft.GroupQueryAttention"
    assert_alike(op, inputs, attributes, outputs=3, constants=(6,), compared=1)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("is_4d", [False, True])
def test_rotary_embedding(interleaved: int, is_4d: bool) -> None:
    angles = real(1, 16, 4)
    x = real(0, 2, 3, 5, 8) if is_4d else real(0, 2, 5, 24)
    for places in (np.array([[1, 2, 3, 4, 5], [3, 4, 5, 6, 7]], np.int64), np.array([3], np.int64)):
        inputs = [x, places, np.cos(angles), np.sin(angles)]
        assert_alike("com.microsoft.RotaryEmbedding", inputs, {"interleaved": interleaved}, constants=(2, 3))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("n", "k", "block"), [(7, 48, 16), (6, 40, 32)])
@pytest.mark.parametrize("point", [None, "packed", "real"])
@pytest.mark.parametrize("is_constant", [True, False])
def test_products_with_few_bits(bits: int, n: int, k: int, block: int, point: str | None, is_constant: bool) -> None:
    count = -(-k // block)
    q = integers(0, np.uint8, n, count, block * bits // 8)
    points = None
    if point == "packed":
        points = integers(1, np.uint8, n * -(-count * bits // 8))
        points = points.reshape(n, -1)
    if point == "real":
        points = real(1, n, count)
    inputs = [real(2, 2, 3, k), q, 0.1 * abs(real(3, n, count)), points]
    inputs = inputs if point else inputs[:3]
    if bits == 8 and point == "real":
        return
    attributes = {"N": n, "K": k, "block_size": block, "bits": bits}
    constants = range(1, len(inputs)) if is_constant else ()
    op = "com.microsoft.MatMulNBits"
    assert_alike(op, inputs, attributes, constants=tuple(constants), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("per_column", [False, True])
def test_products_of_bytes(dtype: Any, per_column: bool) -> None:
    shape = (5,) if per_column else ()
    b = integers(1, dtype, 4, 5)
    scale = np.array(0.01 + abs(real(2, *shape)) / 50, np.float32)
    point = integers(3, dtype, *shape) if shape else np.array(3, dtype)
    op = "com.microsoft.DynamicQuantizeMatMul"
    assert_alike(op, [real(0, 2, 3, 4), b, scale, point, real(4, 5)], constants=(1, 2, 3, 4), rtol=1e-4)
    a = integers(5, np.uint8, 2, 3, 4)
    inputs = [a, b, single(0.02), scale, np.array(100, np.uint8), point, real(4, 5)]
    assert_alike("com.microsoft.MatMulIntegerToFloat", inputs, constants=(1, 2, 3, 4, 5, 6), rtol=1e-4, atol=1e-4)


def quantised(seed: int, dtype: Any, *shape: int) -> list[Any]:
    """Numbers with a scale and a zero point."""
    return [integers(seed, dtype, *shape), single(0.02 + 0.003 * seed), np.array(seed + 3, dtype)]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantised(dtype: Any) -> None:
    x, other, end = quantised(0, dtype, 2, 3, 4, 6), quantised(1, dtype, 3, 1, 6), quantised(2, dtype)[1:]
    fixed = (1, 2, 3, 4)
    off_by_one = {"rtol": 0.0, "atol": 1.0}
    for op, attributes in (
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
        ("QLinearSoftmax", {"opset": 13}),
    ):
        scale = single(1 / 256) if op != "QLinearLeakyRelu" else end[0]
        assert_alike(f"com.microsoft.{op}", [*x, scale, end[1]], attributes, constants=fixed, **off_by_one)
    for op in ("QLinearAdd", "QLinearMul"):
        assert_alike(f"com.microsoft.{op}", [*x, *other, *end], constants=(1, 2, 4, 5, 6, 7), **off_by_one)
    pieces = [*end, *x, *quantised(3, dtype, 2, 5, 4, 6)]
    assert_alike("com.microsoft.QLinearConcat", pieces, {"axis": 1}, constants=(0, 1, 3, 4, 6, 7), **off_by_one)
    truth = np.array([True, False, True, True, False, True])
    where = [truth, *x, *other, *end]
    assert_alike("com.microsoft.QLinearWhere", where, constants=(2, 3, 5, 6, 7, 8), **off_by_one)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_quantised_pools(dtype: Any, channels_last: int) -> None:
    x, end = quantised(0, dtype, 2, 7, 7, 3), quantised(2, dtype)[1:]
    off_by_one = {"rtol": 0.0, "atol": 1.0}
    attributes: dict[str, Any] = {"channels_last": channels_last}
    op = "com.microsoft.QLinearGlobalAveragePool"
    assert_alike(op, [*x, *end], attributes, constants=(1, 2, 3, 4), **off_by_one)
    attributes |= {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    for include in (0, 1):
        op = "com.microsoft.QLinearAveragePool"
        given = attributes | {"count_include_pad": include}
        assert_alike(op, [*x, *end], given, constants=(1, 2, 3, 4), **off_by_one)


@pytest.mark.parametrize("is_real", [False, True])
def test_quantised_gemm(is_real: bool) -> None:
    a, b, end = quantised(0, np.uint8, 4, 3), quantised(1, np.int8, 5, 4), quantised(2, np.uint8)[1:]
    c = integers(4, np.int16, 5).astype(np.int32)
    inputs = [*a, *b, c] + ([] if is_real else [single(5.0), end[1]])
    attributes = {"transA": 1, "transB": 1}
    options = {"rtol": 1e-4} if is_real else {"rtol": 0.0, "atol": 1.0}
    constants = tuple(i for i in range(1, len(inputs)))
    assert_alike("com.microsoft.QGemm", inputs, attributes, constants=constants, **options)
