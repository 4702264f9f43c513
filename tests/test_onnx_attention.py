"""ONNX's attention, rotary embeddings and Fourier transforms, beside ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_peers import assert_alike


def real(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def masks(queries: int, keys: int) -> dict[str, Any]:
    truth = np.random.default_rng(9).random((2, 1, queries, keys)) < 0.7
    truth[..., 0] = True
    return {"none": None, "numbers": real(8, queries, keys), "truth": truth[0, 0], "of batches": truth}


FORMS: list[dict[str, Any]] = [
    {},
    {"is_causal": 1},
    {"softcap": 1.5},
    {"scale": 0.2, "is_causal": 1, "softcap": 2.0},
]


@pytest.mark.parametrize("attributes", FORMS)
@pytest.mark.parametrize("mask", ["none", "numbers", "truth", "of batches"])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("is_4d", [False, True])
def test_attention(attributes: dict[str, Any], mask: str, past: int, is_4d: bool) -> None:
    queries, new, count, of_keys, size = 4, 5, 4, 2, 8
    if attributes.get("is_causal"):
        new = queries
    shapes = [(2, count, queries, size), (2, of_keys, new, size), (2, of_keys, new, 6)]
    if not is_4d:
        shapes = [(b, length, heads * each) for b, heads, length, each in shapes]
        attributes = attributes | {"q_num_heads": count, "kv_num_heads": of_keys}
    inputs = [real(i, *shape) for i, shape in enumerate(shapes)]
    inputs.append(masks(queries, past + new)[mask])
    if past:
        inputs += [real(3, 2, of_keys, past, size), real(4, 2, of_keys, past, 6)]
    assert_alike("Attention", inputs, attributes, outputs=3 if past else 1, opset=23)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores(mode: int) -> None:
    inputs = [real(0, 2, 3, 4, 8), real(1, 2, 3, 6, 8), real(2, 2, 3, 6, 8), real(3, 4, 6)]
    inputs += [real(4, 2, 3, 2, 8), real(5, 2, 3, 2, 8)]
    inputs[3] = real(3, 4, 8)
    assert_alike("Attention", inputs, {"qk_matmul_output_mode": mode}, outputs=4, opset=23)


@pytest.mark.parametrize("is_causal", [0, 1])
def test_lengths_of_keys(is_causal: int) -> None:
    inputs = [real(0, 2, 3, 4, 8), real(1, 2, 3, 6, 8), real(2, 2, 3, 6, 8), None, None, None, np.array([4, 6])]
    assert_alike("Attention", inputs, {"is_causal": is_causal}, opset=24)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("size", [0, 4])
@pytest.mark.parametrize("is_4d", [False, True])
def test_rotary_embedding(interleaved: int, size: int, is_4d: bool) -> None:
    angles = real(1, 16, (size or 8) // 2)
    places = np.array([[1, 2, 3], [4, 5, 6]], np.int64)
    inputs = [real(0, 2, 4, 3, 8) if is_4d else real(0, 2, 3, 32), np.cos(angles), np.sin(angles), places]
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": size}
    if not is_4d:
        attributes["num_heads"] = 4
    assert_alike("RotaryEmbedding", inputs, attributes, opset=23)


@pytest.mark.parametrize("length", [None, 6, 12])
@pytest.mark.parametrize("axis", [1, -2])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("inverse", "onesided"), [(0, 0), (1, 0), (0, 1)])
def test_transforms(length: int | None, axis: int, parts: int, inverse: int, onesided: int) -> None:
    if onesided and parts == 2:
        parts = 1
    inputs = [real(0, 2, 9, 5, parts), None if length is None else np.array(length), np.array(axis)]
    attributes = {"inverse": inverse, "onesided": onesided}
    # ONNX Runtime's own rounding, by Bluestein's algorithm, is of this size.
    constants = (1, 2) if length else (2,)
    assert_alike("DFT", inputs, attributes, opset=20, constants=constants, atol=5e-5)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("has_window", [False, True])
def test_transforms_of_frames(onesided: int, has_window: bool) -> None:
    inputs = [real(0, 2, 40, 1), np.array(5), real(1, 12) if has_window else None, np.array(12)]
    assert_alike("STFT", inputs, {"onesided": onesided}, constants=(1, 3))
