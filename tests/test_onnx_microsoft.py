"""Operators of com.microsoft, beside ONNX Runtime's kernels for CPUs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from anydml import DMLError
from anydml.onnx import InferenceSession
from onnx_peers import assert_alike, by_runtime, model_of


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
    # The last piece is quantised as the result is.
    pieces = [*end, *x, *quantised(3, dtype, 2, 5, 4, 6), integers(4, dtype, 2, 1, 4, 6), *end]
    fixed = (0, 1, 3, 4, 6, 7, 9, 10)
    assert_alike("com.microsoft.QLinearConcat", pieces, {"axis": 1}, constants=fixed, **off_by_one)
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


ALIASES: list[tuple[str, list[Any], dict[str, Any], tuple[int, ...]]] = [
    ("ExpandDims", [real(0, 2, 3), np.array(-1, np.int32)], {}, (1,)),
    ("Trilu", [real(0, 4, 4), np.array(1)], {"upper": 0}, (1,)),
    ("Pad", [real(0, 2, 3), np.array([0, 1, 1, 2]), single(0.5)], {}, (1, 2)),
    ("Range", [single(1.0), single(4.0), single(0.5)], {}, (0, 1, 2)),
    ("GatherND", [real(0, 3, 4), np.array([[0, 1], [2, 3]], np.int64)], {}, ()),
    ("QuantizeLinear", [real(0, 3, 4), single(0.05), np.array(9, np.uint8)], {}, (1, 2)),
    ("QuantizeLinear", [real(0, 3, 4), abs(real(1, 3)), integers(2, np.int8, 3)], {"axis": 0}, (1, 2)),
    ("DequantizeLinear", [integers(0, np.uint8, 3, 4), abs(real(1, 4)), integers(2, np.uint8, 4)], {"axis": 1}, (1, 2)),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "constants"), ALIASES)
def test_copies_of_operators(
    op: str, inputs: list[Any], attributes: dict[str, Any], constants: tuple[int, ...]
) -> None:
    assert_alike(f"com.microsoft.{op}", inputs, attributes, constants=constants)


def run(op: str, inputs: list[Any], attributes: dict[str, Any], wanted: list[Any]) -> None:
    """Operators that ONNX Runtime has on GPUs alone, beside NumPy's formulas."""
    model = model_of(f"com.microsoft.{op}", inputs, attributes, outputs=len(wanted), wanted=wanted)
    found = InferenceSession(model).run(None, {f"x{i}": x for i, x in enumerate(inputs)})
    for y, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y, expected, 1e-4, 1e-5)


def in_groups(x: Any, groups: int, gamma: Any, beta: Any) -> Any:
    apart = x.reshape(*x.shape[:3], groups, -1)
    mean, deviation = apart.mean((1, 2, 4), keepdims=True), apart.std((1, 2, 4), keepdims=True)
    return ((apart - mean) / deviation).reshape(x.shape) * gamma + beta


def test_what_gpus_have() -> None:
    x, skip, gamma, beta, bias = real(0, 2, 3, 4, 8), real(1, 2, 8), real(2, 8), real(3, 8), real(4, 8)
    attributes = {"groups": 2, "activation": 0, "epsilon": 0.0}
    run("GroupNorm", [x, gamma, beta], attributes, [in_groups(x, 2, gamma, beta)])
    y = in_groups(x, 2, gamma, beta)
    run("GroupNorm", [x, gamma, beta], attributes | {"activation": 1}, [y / (1 + np.exp(-y))])
    whole = x + skip[:, None, None] + bias
    run("SkipGroupNorm", [x, gamma, beta, skip, bias], attributes, [in_groups(whole, 2, gamma, beta), whole])
    rows, other = real(5, 2, 3, 8), real(6, 2, 3, 8)
    run("BiasAdd", [rows, bias, other], {}, [rows + bias + other])
    sum_ = rows + bias
    erf = np.vectorize(math.erf)(sum_[..., 4:] / np.sqrt(2))
    run("BiasSplitGelu", [rows, bias], {}, [sum_[..., :4] * sum_[..., 4:] / 2 * (1 + erf)])


def test_convolutions_of_other_layouts() -> None:
    x, w, b = real(0, 1, 3, 6, 5), real(1, 4, 3, 3, 2), real(2, 4)
    (expected,) = by_runtime(model_of("Conv", [x, w, b], {"strides": [2, 1]}), {"x0": x, "x1": w, "x2": b})
    last = [each.transpose(0, 2, 3, 1) for each in (x, w, expected)]
    run("NhwcConv", [last[0], last[1], b], {"strides": [2, 1]}, [last[2]])
    w = real(1, 3, 4, 3, 2)
    model = model_of("ConvTranspose", [x, w], {"pads": [1, 0, 0, 1], "strides": [2, 1]})
    (expected,) = by_runtime(model, {"x0": x, "x1": w})
    pads = np.array([1, 0, 0, 1], np.int64)
    run("ConvTransposeWithDynamicPads", [x, w, pads], {"strides": [2, 1]}, [expected])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_points", [False, True])
@pytest.mark.parametrize("indices", [(3,), (2, 2)])
def test_embeddings_with_few_bits(bits: int, has_points: bool, indices: tuple[int, ...]) -> None:
    rows, size, block = 6, 64, 16
    inputs = [integers(0, np.uint8, rows, size * bits // 8), integers(1, np.uint8, *indices).astype(np.int64) % rows]
    inputs += [abs(real(2, rows, size // block))]
    inputs += [integers(3, np.uint8, rows, size // block * bits // 8)] if has_points else []
    attributes = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
    assert_alike(
        "com.microsoft.GatherBlockQuantized", inputs, attributes, constants=(0, 2, 3) if has_points else (0, 2)
    )
