"""ONNX's linear quantisation beside ONNX Runtime's, and beside a formula where that has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import ml_dtypes
import onnx

import anydml.onnx
from onnx_peers import assert_alike, model_of

FORMS: list[tuple[tuple[int, ...], int | None]] = [
    ((3, 4), None),
    ((3, 4), 0),
    ((3, 4), -1),
    ((2, 3, 5), 1),
    ((5,), 0),
    ((), None),
    ((0, 3), None),
]
"""Shapes, and the axes that scales lie along."""

RANDOM = np.random.default_rng(0)


def reals(dtype: str, shape: tuple[int, ...], low: float, high: float) -> Any:
    return np.asarray(RANDOM.uniform(low, high, shape)).astype(dtype)


def integers(dtype: str, shape: tuple[int, ...]) -> Any:
    ends = np.iinfo(dtype) if dtype != "int32" else np.iinfo("int16")
    return np.asarray(RANDOM.integers(ends.min, ends.max + 1, shape)).astype(dtype)


@pytest.mark.parametrize("quantised", ["uint8", "int8", "uint16", "int16"])
def test_quantisation(quantised: str) -> None:
    for opset, real in ((10, "float32"), (13, "float32"), (19, "float16"), (21, "float32"), (21, "float16")):
        if opset < 21 and quantised.endswith("16"):
            continue
        for shape, axis in FORMS:
            if opset < 13 and axis is not None:
                continue
            along = () if axis is None else (shape[axis],)
            attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
            x, scale = reals(real, shape, -400, 400), reals(real, along, 0.1, 2)
            for zero_point in ([], [integers(quantised, along)]):
                if not zero_point and opset >= 21:
                    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(quantised))
                    attributes["output_dtype"] = kind
                elif not zero_point and quantised != "uint8":
                    continue
                inputs = [x, scale, *zero_point]
                assert_alike("QuantizeLinear", inputs, attributes, opset=opset, rtol=0, atol=0)
                attributes.pop("output_dtype", None)


@pytest.mark.parametrize("precise", [False, True])
def test_precision_of_quotients(precise: bool) -> None:
    """From operator set 23 on quotients of FLOAT16 are rounded to it, or as the node says."""
    x, scale = reals("float16", (2000,), -60, 60), np.array(0.3, np.float16)
    attributes = {"precision": onnx.TensorProto.FLOAT} if precise else {}
    quotient = x.astype(np.float32) / np.float32(scale) if precise else (x / scale).astype(np.float32)
    wanted = np.clip(np.rint(quotient), 0, 255).astype(np.uint8)
    model = model_of("QuantizeLinear", [x, scale], attributes, opset=23, wanted=[wanted])
    (found,) = anydml.onnx.InferenceSession(model).run(None, {"x0": x, "x1": scale})
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("quantised", ["uint8", "int8", "uint16", "int16", "int32"])
def test_dequantisation(quantised: str) -> None:
    for opset, real in ((10, "float32"), (13, "float32"), (19, "float16"), (21, "float16")):
        if opset < 21 and quantised.endswith("16"):
            continue
        for shape, axis in FORMS:
            if opset < 13 and axis is not None:
                continue
            along = () if axis is None else (shape[axis],)
            attributes = {} if axis is None else {"axis": axis}
            for has_zero_point in (False, True):
                inputs = [integers(quantised, shape), reals(real, along, 0.001, 0.02)]
                if has_zero_point:
                    inputs.append(np.zeros(along, quantised) if quantised == "int32" else integers(quantised, along))
                assert_alike("DequantizeLinear", inputs, attributes, opset=opset, rtol=1e-3 if real == "float16" else 0)


BLOCKS = [((6, 4), 0, 2), ((6, 4), 0, 4), ((3, 8), 1, 3), ((2, 5, 4), -2, 2), ((3, 8), 1, 8), ((3, 8), 1, 1)]
"""Shapes, axes, and sizes of blocks, of which the last may be shorter."""


@pytest.mark.parametrize("quantised", ["uint8", "int8", "int16", "int4", "uint4"])
@pytest.mark.parametrize("real", ["float32", "float16"])
def test_blocks(quantised: str, real: str) -> None:
    """Each block along an axis has a scale, and a zero point: beside the formula, as ONNX Runtime takes no 4 bits."""
    dtype = np.dtype(getattr(ml_dtypes, quantised) if quantised.endswith("t4") else quantised)
    ends = (ml_dtypes if quantised.endswith("t4") else np).iinfo(dtype)
    for shape, axis, block in BLOCKS:
        each = [-(-size // block) if i == axis % len(shape) else size for i, size in enumerate(shape)]
        scale = reals(real, tuple(each), 0.1, 0.9)
        low, high = int(ends.min), int(ends.max)
        for constants in ((), (1, 2)):
            zero_point = RANDOM.integers(low, high + 1, each).astype(np.int32)
            whole = [np.repeat(a, block, axis).take(range(shape[axis]), axis) for a in (scale, zero_point)]
            q = RANDOM.integers(low, high + 1, shape).astype(np.int32)
            wanted = ((q - whole[1]).astype(np.float64) * whole[0].astype(np.float64)).astype(real)
            attributes = {"axis": axis, "block_size": block}
            inputs = [q.astype(dtype), scale, zero_point.astype(dtype)]
            found = _run("DequantizeLinear", inputs, attributes, wanted, constants)
            np.testing.assert_allclose(found, wanted, 0 if real == "float32" else 1e-3)
            x = reals(real, shape, -40, 40)
            quotient = x.astype(np.float32) / whole[0].astype(np.float32)
            wanted = np.clip(np.rint(quotient) + whole[1], low, high).astype(dtype)
            found = _run("QuantizeLinear", [x, scale, zero_point.astype(dtype)], attributes, wanted, constants)
            np.testing.assert_array_equal(found.astype(np.int32), wanted.astype(np.int32))


def _run(op: str, inputs: list[Any], attributes: dict[str, Any], wanted: Any, constants: tuple[int, ...]) -> Any:
    model = model_of(op, inputs, attributes, opset=21, constants=constants, wanted=[wanted])
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if i not in constants}
    (found,) = anydml.onnx.InferenceSession(model).run(None, feeds)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    return found


def test_dynamic_quantisation() -> None:
    for shape in ((3, 4), (7,), (1,), ()):
        for low, high in ((-3, 5), (1, 3), (-4, -2), (0, 0)):
            assert_alike("DynamicQuantizeLinear", [reals("float32", shape, low, high)], outputs=3, opset=11)


@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_casts_of_4_bits(kind: str) -> None:
    """Of integers the last 4 bits are left."""
    dtype = np.dtype(getattr(ml_dtypes, kind))
    number = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    for other in ("float32", "float16", "int32", "uint8", "int64", "bool"):
        x = np.arange(8).astype(other) if other in ("uint8", "bool") else np.arange(-20, 21).astype(other)
        low = x.astype(np.int64) & 15
        wanted = np.where((low > 7) & (kind == "int4"), low - 16, low).astype(np.int8).astype(dtype)
        model = model_of("Cast", [x], {"to": number}, opset=21, wanted=[wanted])
        (found,) = anydml.onnx.InferenceSession(model).run(None, {"x0": x})
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype(np.int8), wanted.astype(np.int8))
        back = wanted.astype(np.int8).astype(other)
        to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(other))
        model = model_of("Cast", [wanted], {"to": to}, opset=21, wanted=[back])
        np.testing.assert_array_equal(anydml.onnx.InferenceSession(model).run(None, {"x0": wanted})[0], back)
