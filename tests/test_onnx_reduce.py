"""ONNX's reductions, indices of extremes, running sums and products, beside ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import anydml
import anydml.onnx
from onnx_peers import assert_alike, model_of

SHAPES: list[tuple[int, ...]] = [(3, 4), (2, 3, 4), (5,), (), (2, 0, 3)]
AXES = (None, [0], [-1], [0, -1], [1])


def drawn(dtype: str, shape: tuple[int, ...], low: int = -3, high: int = 3) -> Any:
    random = np.random.default_rng([0, *shape])
    if dtype == "float32":
        return np.asarray(random.uniform(low, high, shape)).astype(dtype)
    return np.asarray(random.integers(max(low, 0) if dtype.startswith("u") else low, high + 1, shape)).astype(dtype)


def fits(axes: list[int] | None, shape: tuple[int, ...]) -> bool:
    rank = len(shape)
    return axes is None or (all(-rank <= axis < rank for axis in axes) and len({a % rank for a in axes}) == len(axes))


REDUCTIONS: list[tuple[str, tuple[str, ...]]] = [
    ("ReduceL1", ("float32", "int32")),
    ("ReduceL2", ("float32",)),
    ("ReduceLogSum", ("float32",)),
    ("ReduceLogSumExp", ("float32",)),
    ("ReduceMax", ("float32", "int32", "int64", "uint8", "int8")),
    ("ReduceMean", ("float32", "int32")),
    ("ReduceMin", ("float32", "int32", "int64", "uint8", "int8")),
    ("ReduceProd", ("float32", "int32", "int64")),
    ("ReduceSum", ("float32", "int32", "int64")),
    ("ReduceSumSquare", ("float32", "int32")),
]


@pytest.mark.parametrize(("op", "dtypes"), REDUCTIONS)
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_reductions(op: str, dtypes: tuple[str, ...], opset: int) -> None:
    by_input = opset >= (13 if op == "ReduceSum" else 18)
    for dtype in dtypes:
        if opset == 11 and dtype in ("uint8", "int8"):
            continue
        for shape in SHAPES if dtype == "float32" else SHAPES[:1]:
            if 0 in shape and op == "ReduceMean":  # it is undefined
                continue
            x = drawn(dtype, shape, 1 if "LogSum" in op else -3)
            for axes in (each for each in AXES if fits(each, shape)):
                for keep in (0, 1):
                    attributes: dict[str, Any] = {"keepdims": keep}
                    inputs = [x]
                    if axes is not None and by_input:
                        inputs.append(np.array(axes))
                    elif axes is not None:
                        attributes["axes"] = axes
                    assert_alike(op, inputs, attributes, opset=opset, constants=range(1, len(inputs)))


@pytest.mark.parametrize(("op", "dtypes"), REDUCTIONS)
def test_of_no_axes(op: str, dtypes: tuple[str, ...]) -> None:
    """Where nothing is reduced each element is by itself."""
    for noop in (0, 1):
        for axes in ([], [np.array([], np.int64)]):
            inputs = [drawn("float32", (3, 4), 1), *axes]
            attributes = {"noop_with_empty_axes": noop, "keepdims": 0}
            assert_alike(op, inputs, attributes, opset=18, constants=range(1, len(inputs)))


def test_axes_that_are_fed() -> None:
    x = drawn("float32", (2, 3, 4))
    assert_alike("ReduceSum", [x, np.array([0, 2])], opset=13)
    assert_alike("ReduceMax", [x, np.array([-2])], {"keepdims": 0}, opset=18)


def test_truth_values() -> None:
    x = np.array([[True, False, True], [True, True, True]])
    for op, wanted in (("ReduceMax", x.any(1)), ("ReduceMin", x.all(1))):
        model = model_of(op, [x, np.array([1])], {"keepdims": 0}, opset=20, constants=(1,), wanted=[wanted])
        (found,) = anydml.onnx.InferenceSession(model).run(None, {"x0": x})
        assert found.dtype == np.bool_
        assert found.tolist() == wanted.tolist()


def test_roots_of_integers_are_refused() -> None:
    x = drawn("int32", (3, 4))
    with pytest.raises(anydml.DMLError, match=r"\(N2\)"):
        anydml.onnx.InferenceSession(model_of("ReduceL2", [x], {}, opset=13, wanted=[x[:1, :1]]))


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_indices(op: str) -> None:
    for dtype in ("float32", "int32", "uint8", "int8"):
        for shape in ((3, 4), (2, 3, 4), (5,)) if dtype == "float32" else ((3, 4),):
            # Few numbers, so that there are equal ones.
            x = drawn("int32", shape, 0, 2).astype(dtype)
            for axis in range(-len(shape), len(shape)):
                for keep in (0, 1):
                    for last in (0, 1):
                        attributes = {"axis": axis, "keepdims": keep, "select_last_index": last}
                        assert_alike(op, [x], attributes, opset=13)


def test_running_sums() -> None:
    for dtype in ("float32", "int32", "int64"):
        for shape in ((3, 4), (5,), (2, 0)):
            for axis in range(-len(shape), len(shape)):
                for exclusive in (0, 1):
                    for reverse in (0, 1):
                        attributes = {"exclusive": exclusive, "reverse": reverse}
                        constants = (1,) if exclusive else ()
                        inputs = [drawn(dtype, shape), np.array(axis)]
                        assert_alike("CumSum", inputs, attributes, opset=14, constants=constants)


def test_running_products() -> None:
    """ONNX Runtime has none."""
    x = drawn("int64", (3, 4), -4, 4)
    for axis in (0, -1):
        wanted = np.cumprod(x, axis)
        model = model_of("CumProd", [x, np.array(axis)], {}, opset=26, constants=(1,), wanted=[wanted])
        np.testing.assert_array_equal(anydml.onnx.InferenceSession(model).run(None, {"x0": x})[0], wanted)
        options = {"exclusive": 1, "reverse": 1}
        model = model_of("CumProd", [x, np.array(axis)], options, opset=26, constants=(1,), wanted=[wanted])
        behind = np.flip(np.cumprod(np.flip(x, axis), axis), axis)
        ones = np.ones_like(np.take(x, [0], axis))
        shifted = np.concatenate([np.delete(behind, 0, axis), ones], axis)
        np.testing.assert_array_equal(anydml.onnx.InferenceSession(model).run(None, {"x0": x})[0], shifted)
