"""ONNX's operators of single elements, and of pairs that broadcast, beside ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

import anydml
import anydml.onnx
from onnx_peers import assert_alike, model_of

FLOATS = ("float32", "float16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *SIGNED, *UNSIGNED)


def drawn(dtype: str, shape: tuple[int, ...], low: int = -5, high: int = 5, seed: int = 0) -> Any:
    """Numbers between two, those below 0 left out where the type has none."""
    random = np.random.default_rng([seed, *shape, len(dtype)])
    if dtype == "bool":
        return np.asarray(random.random(shape) < 0.5)
    if dtype in FLOATS:
        return np.asarray(random.uniform(low, high, shape)).astype(dtype)
    return np.asarray(random.integers(max(low, 0) if dtype in UNSIGNED else low, high + 1, shape)).astype(dtype)


def alike(op: str, inputs: list[Any], attributes: Mapping[str, Any] | None = None, **options: Any) -> None:
    of_halves = any(getattr(x, "dtype", None) == np.float16 for x in inputs)
    options |= {"rtol": 2e-3, "atol": 2e-3} if of_halves else {}
    assert_alike(op, inputs, attributes, **options)


def computed(
    op: str, inputs: list[Any], wanted: Any, attributes: Mapping[str, Any] | None = None, **options: Any
) -> None:
    """Asserts exact results, of what ONNX Runtime has not."""
    session = anydml.onnx.InferenceSession(model_of(op, inputs, attributes or {}, **options, wanted=[wanted]))
    found = session.run(None, {f"x{i}": x for i, x in enumerate(inputs)})[0]
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


UNARY: list[tuple[str, tuple[str, ...], int, dict[str, Any]]] = [
    *((op, ("float32",), 13, {}) for op in ("Asinh", "Atan", "Cos", "Cosh", "Erf", "Exp", "Sin", "Sinh", "Tan")),
    *((op, ("float32",), 13, {}) for op in ("Ceil", "Floor", "Round", "Reciprocal", "Tanh", "Softplus", "Softsign")),
    *((op, FLOATS, 20, {}) for op in ("Sigmoid", "HardSwish", "Mish", "IsNaN", "IsInf", "Gelu")),
    ("Abs", (*FLOATS[:1], *SIGNED, *UNSIGNED), 13, {}),
    ("Neg", ("float32", *SIGNED), 13, {}),
    ("Sign", NUMBERS, 13, {}),
    ("Relu", ("float32", "int32", "int8"), 14, {}),
    ("Not", ("bool",), 7, {}),
    ("BitwiseNot", (*SIGNED, *UNSIGNED), 18, {}),
    ("Elu", FLOATS[:1], 7, {"alpha": 2.0}),
    ("Selu", FLOATS[:1], 7, {}),
    ("Selu", FLOATS[:1], 7, {"alpha": 2.0, "gamma": 0.5}),
    ("Celu", FLOATS[:1], 12, {"alpha": 2.0}),
    ("HardSigmoid", FLOATS[:1], 7, {"alpha": 0.3, "beta": 0.1}),
    ("LeakyRelu", FLOATS[:1], 7, {"alpha": 0.3}),
    ("ThresholdedRelu", FLOATS[:1], 10, {"alpha": 2.0}),
    ("Gelu", FLOATS[:1], 20, {"approximate": "tanh"}),
    ("Shrink", ("float32", "int32", "int64", "uint64", "uint8"), 9, {"bias": 1.5, "lambd": 1.0}),
    ("IsInf", FLOATS[:1], 10, {"detect_positive": 0}),
    ("IsInf", FLOATS[:1], 10, {"detect_negative": 0}),
    ("IsInf", FLOATS[:1], 10, {"detect_positive": 0, "detect_negative": 0}),
]


@pytest.mark.parametrize(("op", "dtypes", "opset", "attributes"), UNARY)
def test_of_one(op: str, dtypes: tuple[str, ...], opset: int, attributes: dict[str, Any]) -> None:
    for dtype in dtypes:
        for shape in ((3, 4), (), (2, 1, 3, 1, 2), (0, 3)) if dtype == dtypes[0] else ((3, 4),):
            alike(op, [drawn(dtype, shape)], attributes, opset=opset)
        if dtype in FLOATS:
            ends = np.array([-200, -90, -30, -1e-3, 0, 1e-3, 30, 90, 200], dtype)
            special = [np.nan, np.inf, -np.inf] if op.startswith("Is") else []
            alike(op, [np.append(ends / 90 if op in ("Cosh", "Sinh", "Exp", "Tan") else ends, special).astype(dtype)],
                  attributes, opset=opset)  # fmt: skip


@pytest.mark.parametrize(
    ("op", "low", "high"),
    [("Acos", -1, 1), ("Acosh", 1, 5), ("Asin", -1, 1), ("Atanh", -1, 1), ("Log", 0, 5), ("Sqrt", 0, 5)],
)
def test_of_intervals(op: str, low: int, high: int) -> None:
    alike(op, [drawn("float32", (3, 5), low, high)], opset=13)


BINARY: list[tuple[str, tuple[str, ...], int]] = [
    *((op, NUMBERS, 14) for op in ("Add", "Sub", "Mul", "Div")),
    *((op, ("float32", "int32", "int64", "uint32", "uint64"), 13) for op in ("Max", "Min")),
    ("Mod", (*SIGNED, *UNSIGNED), 13),
    ("PRelu", ("float32", "int32", "int64", "uint32"), 16),
    ("Pow", ("float32", "int32", "int64"), 15),
    ("Equal", ("bool", "float32", *SIGNED, *UNSIGNED), 13),
    *((op, ("float32", *SIGNED, *UNSIGNED), 13) for op in ("Greater", "Less")),
    *((op, ("float32", "int32", "int64"), 16) for op in ("GreaterOrEqual", "LessOrEqual")),
    *((op, ("bool",), 7) for op in ("And", "Or", "Xor")),
    *((op, (*SIGNED, *UNSIGNED), 18) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    *((op, ("float32",), 13) for op in ("Mean", "Sum")),
]

PAIRS = [((3, 4), (4,)), ((), (3,)), ((3,), ()), ((), ()), ((1,), (2, 2)), ((2, 1, 3), (1, 4, 1)), ((0, 3), (1, 3))]


@pytest.mark.parametrize(("op", "dtypes", "opset"), BINARY)
def test_of_two(op: str, dtypes: tuple[str, ...], opset: int) -> None:
    for dtype in dtypes:
        for a, b in PAIRS if dtype == dtypes[0] else PAIRS[:1]:
            divides = op in ("Div", "Mod", "Pow")
            inputs = [drawn(dtype, a), drawn(dtype, b, 1 if divides else -5, seed=1)]
            if op != "PRelu" or len(a) >= len(b):
                alike(op, inputs, opset=opset, constants=(1,) if a == (3, 4) else ())


def test_of_many() -> None:
    for op in ("Max", "Min", "Mean", "Sum"):
        for shapes in ([(3, 1), (1, 4), (2, 1, 1)], [(3, 1)], [(), (), ()], [(2, 3)] * 5):
            alike(op, [drawn("float32", shape, seed=i) for i, shape in enumerate(shapes)], opset=13)


def test_remainders() -> None:
    for dtype in NUMBERS:
        a, b = drawn(dtype, (60,), -9, 9), drawn(dtype, (60,), 1, 4)
        b = b if dtype in UNSIGNED else np.where(drawn("bool", (60,)), b, -b)
        alike("Mod", [a, b], {"fmod": 1}, opset=13)
        if dtype not in FLOATS:
            alike("Mod", [a, b], opset=13)
            alike("Div", [a, b], opset=14)


@pytest.mark.parametrize("base", ["float32", "int32", "int64"])
def test_powers_of_mixed_types(base: str) -> None:
    for exponent in ("float32", "int32", "int64"):
        for values in ([2], [0], [1, 2, 3], [3]):
            for constants in ((), (1,)):
                inputs = [drawn(base, (2, 3), -4, 4), np.array(values, exponent)]
                alike("Pow", inputs, opset=15, constants=constants)
    alike("Pow", [drawn("float32", (4,), 1, 4), np.array(-0.5, np.float32)], opset=7, constants=(1,))
    alike("Pow", [drawn("float32", (4,), 1, 4), np.array(-2, np.int64)], opset=12)


def test_powers_of_64_bits() -> None:
    """They are exact modulo 2^64, where ONNX Runtime goes through double precision; other exponents are refused."""
    x = np.array([3, -7, 10, 1, 0, -1], np.int64)
    exponents = np.array([39, 22, 18, 63, 5, 61], np.int64)
    session = anydml.onnx.InferenceSession(model_of("Pow", [x, exponents], {}, opset=15, wanted=[x]))
    found = session.run(None, {"x0": x, "x1": exponents})[0]
    assert found.tolist() == [int(a) ** int(n) for a, n in zip(x, exponents, strict=True)]
    for wrong in (-1, 64):
        with pytest.raises(anydml.DMLError, match=r"\(N4\)"):
            session.run(None, {"x0": x, "x1": np.full_like(exponents, wrong)})


@pytest.mark.parametrize("dtype", NUMBERS)
def test_clip(dtype: str) -> None:
    x = drawn(dtype, (4, 5))
    for low in (None, 1):
        for high in (None, 3):
            limits = [None if each is None else np.array(each, dtype) for each in (low, high)]
            there = tuple(i for i, each in enumerate(limits, 1) if each is not None)
            inputs = [x, *limits[: max(there, default=0)]]
            for constants in {(), there, there[:1]}:
                if dtype not in ("int16", "uint16"):  # ONNX Runtime has none
                    alike("Clip", inputs, opset=13, constants=constants)
    if dtype == "float32":
        for attributes in ({}, {"min": 0.0}, {"max": 2.0}, {"min": -1.0, "max": 1.0}):
            alike("Clip", [x], attributes, opset=7)


def test_clip_of_long_integers() -> None:
    low, high = 2**53 + 1, 2**62 + 1
    x = np.array([low - 1, low, low + 1, high + 1, -1], np.int64)
    alike("Clip", [x, np.array(low), np.array(high)], opset=13, constants=(1, 2))
    alike("Clip", [x, np.array(low), np.array(high)], opset=13)


@pytest.mark.parametrize("dtype", [*NUMBERS, "float64", "bool"])
def test_where(dtype: str) -> None:
    for shapes in ([(3, 1), (4,), (2, 1, 1)], [(), (), ()], [(0, 1), (1,), ()]):
        kind = "float32" if dtype == "float64" else dtype
        a, b = (drawn(kind, shape, seed=i).astype(dtype) for i, shape in enumerate(shapes[1:]))
        condition = drawn("bool", shapes[0])
        computed("Where", [condition, a, b], np.asarray(np.where(condition, a, b)), opset=16)


def test_types_that_onnx_runtime_lacks() -> None:
    for dtype in ("int8", "int16", "uint8", "uint16"):
        a, b = drawn(dtype, (3, 4)), drawn(dtype, (4,), seed=1)
        computed("Max", [a, b], np.maximum(a, b), opset=13)
        computed("Min", [a, b], np.minimum(a, b), opset=13)
    x = drawn("int64", (3, 4))
    computed("Relu", [x], np.maximum(x, 0), opset=14)
    x, slope = drawn("uint64", (3, 4)), drawn("uint64", (4,))
    computed("PRelu", [x, slope], x, opset=16)


@pytest.mark.parametrize("dtype", SIGNED)
def test_shifts_of_signed_integers(dtype: str) -> None:
    width = np.dtype(dtype).itemsize * 8
    a = np.array([-8, 4, -1, 3, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)[:, None]
    n = np.array([0, 1, width - 1, width, 100, -1, -width], dtype)
    places = [int(each) if 0 <= each < width else width for each in n]
    left = [[(int(each) << k) & ((1 << width) - 1) for k in places] for each in a[:, 0]]
    computed("BitShift", [a, n], np.array(left, f"uint{width}").view(dtype), {"direction": "LEFT"}, opset=28)
    right = [[int(each) >> k for k in places] for each in a[:, 0]]
    computed("BitShift", [a, n], np.array(right, dtype), {"direction": "RIGHT"}, opset=28)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_shifts(dtype: str) -> None:
    for direction in ("LEFT", "RIGHT"):
        for constants in ((), (1,)):
            inputs = [drawn(dtype, (3, 4), 0, 100), drawn(dtype, (4,), 0, 7)]
            alike("BitShift", inputs, {"direction": direction}, opset=11, constants=constants)


CASTS = (*NUMBERS, "float64", "bool")


@pytest.mark.parametrize("own", CASTS)
def test_casts(own: str) -> None:
    for other in CASTS:
        for shape in ((3, 4),) if other != own else ((), (0, 2)):
            low = 0 if other in UNSIGNED else -5
            kind = "float32" if own == "float64" else own
            x = drawn(kind, shape, low).astype(own)
            alike("Cast", [x], {"to": onnx.helper.np_dtype_to_tensor_dtype(np.dtype(other))}, opset=13)
        alike("CastLike", [x, np.zeros(1, other)], opset=19)


def test_casts_round_once() -> None:
    wide = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-300, 1 + 2**-24, 1 + 2**-24 + 2**-40, 1e300])
    single = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 65519, 65520, 1e30], np.float32)
    long = np.array([2**24 + 1, 2**62 + 1, -(2**63), 2**53 + 1, 0])
    for x in (wide, single, long):
        for other in ("float32", "float64", "bool"):
            to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(other))
            assert_alike("Cast", [x], {"to": to}, opset=13, rtol=0, atol=0)


def test_dropout() -> None:
    x, half = drawn("float32", (3, 2)), np.array(0.5, np.float32)
    for opset in (7, 10, 12, 13):
        for outputs in (1, 2):
            alike("Dropout", [x], opset=opset, outputs=outputs)
            if opset >= 12:
                alike("Dropout", [x, half, np.array(False)], opset=opset, outputs=outputs)
                alike("Dropout", [x, np.array(0, np.float32), np.array(True)], opset=opset, outputs=outputs)
    training = model_of("Dropout", [x, half, np.array(True)], {}, opset=13, constants=(1, 2), wanted=[x])
    with pytest.raises(anydml.DMLError, match=r"training.*\(N2\)"):
        anydml.onnx.InferenceSession(training)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [7, 11, 13])
def test_along_an_axis(op: str, opset: int) -> None:
    for shape in ((3, 4), (5,), (2, 3, 4), (2, 0)):
        for axis in (None, *range(-len(shape) if opset >= 11 else 0, len(shape))):
            attributes = {} if axis is None else {"axis": axis}
            if axis is not None or opset >= 13 or len(shape) > 1:
                alike(op, [drawn("float32", shape)], attributes, opset=opset)


@pytest.mark.parametrize("level", ["3.0", "5.0"])
def test_what_older_feature_levels_have(level: str) -> None:
    """What newer operators do is done by older ones where a device has no others."""
    x = drawn("float32", (2, 3, 4))
    forms = [(op, {"axis": axis}, 13) for op in ("Softmax", "LogSoftmax", "Hardmax") for axis in (0, 1, -1)]
    forms += [(op, {}, 20) for op in ("Gelu", "HardSwish", "Neg")] + [("Swish", {"alpha": 1.5}, 24)]
    for op, attributes, opset in forms:
        model = model_of(op, [x], attributes, opset=opset, wanted=[x])
        found = [
            anydml.onnx.InferenceSession(model, feature_level=each).run(None, {"x0": x})[0] for each in (level, None)
        ]
        np.testing.assert_allclose(*found, 1e-6, 1e-6)


WRONG: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("BitwiseAnd", [np.ones(3, np.float32)] * 2, {}, "float"),
    ("Clip", [np.ones(3, np.bool_)], {}, "bool"),
    ("Clip", [np.ones(3, np.float32), np.ones(3, np.float32)], {}, "limits of shape .3,."),
    ("Cast", [np.ones(3, np.float32)], {"to": 999}, "type"),
    ("Cast", [np.ones(3, np.float32)], {"to": onnx.TensorProto.BFLOAT16}, "elements of bfloat16"),
    ("Pow", [np.ones(3, np.int64), np.float32(0.5)], {}, "exponent is no integer"),
    ("Pow", [np.ones(3, np.int64), np.float32(1e30)], {}, "exponent is no integer"),
    ("CumSum", [np.ones(3, np.float32), np.array([0, 0])], {}, "2 elements where one is wanted"),
    ("Add", [np.ones(3, np.float32), np.ones(4, np.float32)], {}, "Incompatible dimensions|do not broadcast"),
    ("Softmax", [np.ones((2, 3), np.float32)], {"axis": 2}, "axis.* 2"),
    ("ReduceSum", [np.ones((2, 3), np.float32), np.array([2])], {}, "axis.* 2"),
    (
        "QuantizeLinear",
        [np.ones(3, np.float32), np.float32(1)],
        {"output_dtype": 1},
        "type|quantised numbers of float32",
    ),
    ("QuantizeLinear", [np.ones((2, 3), np.float32), np.ones(2, np.float32)], {}, "of shape .2,. along a dimension"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), WRONG)
def test_wrong_nodes_are_refused(op: str, inputs: list[Any], attributes: dict[str, Any], message: str) -> None:
    inputs = [np.asarray(x) for x in inputs]
    constants = () if op in ("BitwiseAnd", "Clip") else range(1, len(inputs))
    model = model_of(op, inputs, attributes, opset=21, constants=constants, wanted=inputs[:1])
    with pytest.raises(anydml.DMLError, match=rf"({message}).*\(N2\)"):
        anydml.onnx.InferenceSession(model)
