"""QUANTIZE, DEQUANTIZE, and tensors of 4 bits: against exact arithmetic; packed arrays; what refuses them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from math import inf, isinf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anydml
import pydirectml
from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_DEQUANTIZE_OPERATOR_DESC,
    DML_QUANTIZE_OPERATOR_DESC,
    Device,
    DMLError,
    Graph,
    PackedArray,
    QuantizationType,
    TensorDataType,
    dequantize,
    quantize,
)
from anydml.draw import draw
from anydml.frontends import dxdispatch
from cases import tensor
from cases.quantize import LIMITS, stored

each_kind = pytest.mark.parametrize("kind", LIMITS)
each_device = pytest.mark.parametrize("device", ["reference", "cpu"])


# Values


def exactly_quantised(quotient: float, zero_point: int, kind: str) -> int:
    """Of a quotient in FLOAT32, by rational numbers, which Python rounds with halves to even."""
    low, high = LIMITS[kind]
    if isnan(quotient):
        return zero_point
    if isinf(quotient):
        return high if quotient > 0 else low
    return min(max(round(Fraction(quotient)) + zero_point, low), high)


@each_device
@each_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_quantised_as_exact_arithmetic_has_it(dtype: Any, kind: str, device: str) -> None:
    random = np.random.default_rng(len(kind))
    low, high = LIMITS[kind]
    x = (random.standard_normal((6, 35)) * 40).astype(dtype)
    # Halves, what lies beside them, and what no integer is.
    x[0, :8] = [0.5, 1.5, -0.5, -2.5, np.nextafter(dtype(0.5), dtype(1)), inf, -inf, nan]
    scale = random.choice([0.25, 0.5, 1, 3, 0.1, -2], (3, 5)).astype(dtype)
    zero_point = random.integers(low, high + 1, (2, 7))
    found = quantize(x, scale, zero_point.tolist(), output_dtype=kind, device=device)
    found = found.unpack() if isinstance(found, PackedArray) else found
    with np.errstate(over="ignore"):
        quotients = x.astype(np.float32) / scale.astype(np.float32).repeat(2, 0).repeat(7, 1)
    zeros = zero_point.repeat(3, 0).repeat(5, 1)
    each = [exactly_quantised(float(q), int(z), kind) for q, z in zip(quotients.flat, zeros.flat, strict=True)]
    assert found.reshape(-1).tolist() == each


@each_device
@each_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_dequantised_as_exact_arithmetic_has_it(dtype: Any, kind: str, device: str) -> None:
    random = np.random.default_rng(len(kind))
    low, high = LIMITS[kind]
    codes, zero_point = random.integers(low, high + 1, (6, 35)), random.integers(low, high + 1, (2, 7))
    scale = random.standard_normal((3, 5)).astype(dtype)
    x = PackedArray.pack(codes, kind) if kind.endswith("INT4") else codes.astype(kind.lower())
    found = dequantize(x, scale, zero_point.tolist(), device=device)
    zeros, scales = zero_point.repeat(3, 0).repeat(5, 1), scale.repeat(2, 0).repeat(7, 1)
    for y, code, zero, factor in zip(found.flat, codes.flat, zeros.flat, scales.flat, strict=True):
        exact = Fraction(int(code) - int(zero)) * Fraction(float(factor))
        below, above = np.nextafter(y, dtype(-inf)), np.nextafter(y, dtype(inf))
        distance = abs(Fraction(float(y)) - exact)
        assert all(distance <= abs(Fraction(float(other)) - exact) for other in (below, above))


def large(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    low, high = LIMITS[kind]
    return np.random.default_rng(7).integers(low, high + 1, shape)


@each_kind
@pytest.mark.parametrize(
    ("shape", "blocks"),
    [((1001, 1001), (1001, 7)), ((1001, 1001), (7, 1001)), ((2, 999, 999), (2, 1, 27)), ((1000001,), (1,))],
)
def test_large_ones_are_the_reference_s(kind: str, shape: tuple[int, ...], blocks: tuple[int, ...]) -> None:
    """On several threads, whose parts begin in the middle of rows, of blocks and of bytes."""
    codes, zero_point = large(kind, shape), large(kind, blocks)
    scale = np.random.default_rng(8).uniform(0.01, 2, blocks).astype(np.float32)
    is_packed = kind.endswith("INT4")
    x = PackedArray.pack(codes, kind) if is_packed else codes.astype(kind.lower())
    y, expected = (dequantize(x, scale, zero_point.tolist(), device=name) for name in ("cpu", "reference"))
    assert y.tobytes() == expected.tobytes()
    found, wanted = (
        quantize(y, scale[..., ::-1], zero_point.tolist(), output_dtype=kind, device=name)
        for name in ("cpu", "reference")
    )
    found, wanted = (each.data if is_packed else each for each in (found, wanted))
    assert found.tobytes() == wanted.tobytes()


@each_device
def test_arrays_that_run_backward(device: str) -> None:
    x = np.arange(-12, 12, dtype=np.float32).reshape(4, 6)
    codes = (np.arange(24).reshape(4, 6) % 16).astype(np.uint8)
    out = np.zeros((4, 12), np.float32)[::-1, ::-2]
    scale = np.array([[0.5, 2.0, 1.0]], np.float32)[:, ::-1]
    assert (
        quantize(x[::-1, ::-1], scale, output_dtype="INT4", device=device).unpack().tolist()
        == quantize(x[::-1, ::-1].copy(), scale.copy(), output_dtype="INT4", device="reference").unpack().tolist()
    )
    assert dequantize(codes[:, ::-1], scale, out=out, device=device) is out
    np.testing.assert_array_equal(out, codes[:, ::-1] * scale.repeat(2, 1))


# Functions


def test_a_scale_of_one_dimension_lies_along_the_axis() -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert quantize(x, [1.0, 2.0]).tolist() == quantize(x, [[1.0, 2.0]]).tolist()
    assert quantize(x, [1.0, 2.0], [3, 4], axis=0).tolist() == quantize(x, [[1.0], [2.0]], [[3], [4]]).tolist()
    assert quantize(x, 0.5, 3, output_dtype="uint4").unpack()[0].tolist() == [3, 5, 7, 9, 11, 13]


def test_the_type_of_results() -> None:
    x = np.ones((1, 3), np.float16)
    assert quantize(x, 0.5).dtype == np.uint8
    assert quantize(x, 0.5, np.int8(3)).dtype == np.int8
    assert quantize(x, 0.5, out=np.zeros((1, 3), np.int8)).dtype == np.int8
    for dtype in ("int4", "INT4", TensorDataType.INT4):
        assert repr(quantize(x, 0.5, output_dtype=dtype)) == "<PackedArray of INT4 (1, 3)>"
    assert quantize(x, 0.5, PackedArray.pack([[1]], "UINT4")).data_type == TensorDataType.UINT4
    out = PackedArray(np.full(2, 255, np.uint8), "UINT4", (1, 3))
    assert quantize(x, 0.5, out=out) is out
    assert out.data.tolist() == [0x22, 0x02]
    packed = PackedArray.pack([[1, 2, 3]], "UINT4")
    assert dequantize(packed, 0.5).dtype == np.float32
    assert dequantize(packed, np.float16([[1]])).dtype == np.float16
    assert dequantize(packed, 0.5, out=np.zeros((1, 3), np.float16)).dtype == np.float16


@each_kind
def test_nothing_is_quantised(kind: str) -> None:
    found = quantize(np.zeros((0, 3), np.float32), 0.5, 1, output_dtype=kind)
    assert tuple(found.shape) == (0, 3)
    assert dequantize(found, 0.5, 1).shape == (0, 3)


def test_ml_dtypes_numbers() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    codes = np.array([[1, -8, 7]], ml_dtypes.int4)
    assert dequantize(codes, 0.5).tolist() == [[0.5, -4, 3.5]]
    assert dequantize(codes, 0.5, np.array(1, ml_dtypes.int4)).tolist() == [[0, -4.5, 3]]
    x = np.array([[1, -8, 7]], np.float32)
    for options in ({"output_dtype": ml_dtypes.int4}, {"zero_point": np.zeros((1, 1), ml_dtypes.int4)}):
        found = quantize(x, 1.0, **options)
        assert (found.dtype, found.tolist()) == (ml_dtypes.int4, codes.tolist())
    assert PackedArray.pack(codes, "INT4").unpack().tolist() == codes.tolist()


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x, scale = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -9.0]]), torch.tensor([[0.5], [1.0]])
    found = quantize(x, scale, output_dtype=torch.int4)
    assert isinstance(found.data, torch.Tensor)
    assert found.unpack().tolist() == [[2, -4, 6], [4, 5, -8]]
    y = dequantize(found, scale)
    assert isinstance(y, torch.Tensor)
    assert y.tolist() == [[1, -2, 3], [4, 5, -8]]
    with pytest.raises(DMLError, match=r"QUANTIZE.x: found Tensor of torch.uint4 .*\(A1\)"):
        quantize(torch.empty(2, dtype=torch.uint4), 0.5)


# Packed arrays


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 3), (2, 4), (0, 2)])
def test_packed_and_unpacked(kind: str, shape: tuple[int, ...]) -> None:
    codes = np.resize(np.arange(LIMITS[kind][0], LIMITS[kind][1] + 1), shape)
    packed = PackedArray.pack(codes, kind)
    assert (packed.shape, packed.ndim, packed.size) == (shape, len(shape), codes.size)
    assert packed.data.tolist() == stored(codes, kind).tolist()
    assert packed.unpack().dtype == {"INT4": np.int8, "UINT4": np.uint8}[kind]
    np.testing.assert_array_equal(packed.unpack(), codes)
    again = pickle.loads(pickle.dumps(packed))
    assert (again.to_bytes(), again.data_type, again.shape) == (packed.to_bytes(), packed.data_type, packed.shape)


def test_what_is_behind_the_last_element_is_not_read() -> None:
    packed = PackedArray(b"\x21\xf3", "UINT4", 3)
    assert packed.unpack().tolist() == [1, 2, 3]
    assert dequantize(packed, 1.0).tolist() == [1, 2, 3]


def test_memory_is_shared_with_what_is_given() -> None:
    data = np.array([0x21], np.uint8)
    packed = PackedArray(data, "UINT4", (2,))
    data[0] = 0x43
    assert packed.unpack().tolist() == [3, 4]


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: PackedArray(np.zeros(1, np.uint8), "UINT8", 2), "data_type"),
        (lambda: PackedArray(np.zeros(1, np.uint8), None, 2), "data_type"),
        (lambda: PackedArray(np.zeros(2, np.uint8), "INT4", 2), "data"),
        (lambda: PackedArray(np.zeros((1, 1), np.uint8), "INT4", 2), "data"),
        (lambda: PackedArray(np.zeros(1, np.int8), "INT4", 2), "data"),
        (lambda: PackedArray(np.zeros(8, np.uint8)[::4], "INT4", 4), "data"),
        (lambda: PackedArray([1], "INT4", 2), "data"),
        (lambda: PackedArray(b"1", "INT4", 2.0), "shape"),
        (lambda: PackedArray(b"1", "INT4", (-1, -2)), "shape"),
        (lambda: PackedArray.pack([8], "INT4"), "values"),
        (lambda: PackedArray.pack([-1], "UINT4"), "values"),
        (lambda: PackedArray.pack([1.0], "UINT4"), "values"),
        (lambda: PackedArray.pack(["1"], "UINT4"), "values"),
        (lambda: PackedArray.pack([[1], [1, 2]], "UINT4"), "values"),
    ],
)
def test_what_is_no_packed_array(make: Callable[[], Any], where: str) -> None:
    with pytest.raises(DMLError, match=rf"PackedArray\.{where}: found .*\(A19\)"):
        make()


# What refuses them

PACKED = PackedArray.pack([[1, 2, 3]], "UINT4")
REAL = np.ones((1, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (lambda: anydml.add(PACKED, PACKED), "(S3)"),
        (lambda: anydml.cast(PACKED, "float32"), "(S3)"),
        (lambda: anydml.join([PACKED, PACKED], 0), "(S3)"),
        (lambda: anydml.gather(PACKED, [0]), "(S3)"),
        (lambda: anydml.identity(PACKED), "(S3)"),
        (lambda: anydml.gemm(PACKED, PACKED), "(S3)"),
        (lambda: anydml.reduce(PACKED, "SUM"), "(S3)"),
        (lambda: anydml.slice(PACKED, [0, 0], [1, 1]), "(S3)"),
        (lambda: anydml.add(REAL, REAL, out=PACKED), "(A1)"),
        (lambda: anydml.dequantize_linear(PACKED, 0.5), "(S3)"),
        (lambda: anydml.quantize_linear(REAL, 0.5, PACKED), "(S3)"),
        (lambda: anydml.quantize(PACKED, 0.5), "(S3)"),
        (lambda: anydml.quantize(REAL, PACKED), "(A1)"),
        (lambda: anydml.quantize(REAL, 0.5, 16, output_dtype="uint4"), "(A9)"),
        (lambda: anydml.quantize(REAL, 0.5, np.float32(1), output_dtype="uint4"), "(A9)"),
        (lambda: anydml.quantize(REAL, 0.5, PACKED, output_dtype="int4"), "(C4)"),
        (lambda: anydml.quantize(REAL, 0.5, output_dtype="float32"), "(S3)"),
        (lambda: anydml.quantize(REAL, 0.5, output_dtype="int2"), "(S3)"),
        (lambda: anydml.quantize(REAL, 0.5, output_dtype="int4", out=PACKED), "(A4)"),
        (lambda: anydml.quantize(REAL, 0.5, output_dtype="uint4", out=np.zeros(2, np.uint8)), "(A19)"),
        (lambda: anydml.quantize(REAL, 0.5, output_dtype="uint4", out=PackedArray.pack([1], "UINT4")), "(A4)"),
        (lambda: anydml.quantize(REAL, 0.5, out=PackedArray(b"11", "UINT4", (1, 3))), "(A3)"),
        (lambda: anydml.quantize(REAL, [[0.5, 1.0]]), "(C5)"),
        (lambda: anydml.dequantize(PACKED, 0.5, out=PACKED), "(A1)"),
        (lambda: anydml.cast(REAL, "UINT4"), "(S3)"),
        (lambda: anydml.fill_value_constant((2,), 1, dtype="UINT4"), "(S3)"),
        (lambda: Graph().input(PACKED), "(A1)"),
        (lambda: Graph().input((2,), TensorDataType.UINT4) + 1, "(S3)"),
        (lambda: Graph().input((2,), TensorDataType.UINT4).astype("float32"), "(S3)"),
        (lambda: dequantize(Graph().input((2, 3), TensorDataType.UINT4).T, 0.5), "(T11)"),
    ],
)
def test_refused(call: Callable[[], Any], label: str) -> None:
    with pytest.raises(DMLError) as raised:
        call()
    assert label in {violation.rule for violation in raised.value.violations}, raised.value


def compiled(sizes: tuple[int, ...] = (1, 3)) -> anydml.CompiledOperator:
    """From UINT4, by halves."""
    desc = DML_DEQUANTIZE_OPERATOR_DESC(
        InputTensor=tensor(sizes, "UINT4"),
        QuantizationType=QuantizationType.SCALE,
        QuantizationTensors=[tensor((1,) * len(sizes))],
        OutputTensor=tensor(sizes),
    )
    device = Device("cpu")
    return device.compile_operator(device.create_operator(desc))


HALF = np.array([[0.5]], np.float32)


@pytest.mark.parametrize("x", [PACKED, PACKED.data, PACKED.data.tobytes(), [[1, 2, 3]], np.uint8([0x21, 3, 9, 9])])
def test_called_with_packed_arrays_and_bytes(x: Any) -> None:
    assert compiled()(x, HALF).tolist() == [[0.5, 1, 1.5]]


@pytest.mark.parametrize(
    ("x", "label"),
    [
        (PackedArray.pack([1, 2, 3], "UINT4"), "(B6)"),
        (PackedArray.pack([[1, 2, 3]], "INT4"), "(B6)"),
        (np.ones((1, 3), np.uint8), "(B6)"),
        (np.zeros(1, np.uint8), "(B6)"),
        (np.zeros(2, np.float32), "(B6)"),
        ([[1, 2, 16]], "(A19)"),
        ([1, 2, 3], "(B6)"),
    ],
)
def test_called_with_what_is_not_packed(x: Any, label: str) -> None:
    with pytest.raises(DMLError) as raised:
        compiled()(x, HALF)
    assert [violation.rule for violation in raised.value.violations] == [label]
    if not isinstance(x, list):
        with pytest.raises(DMLError, match=r"\(B6\)"):
            compiled().dispatch([x, HALF], [np.zeros((1, 3), np.float32)])


# Graphs


def test_a_graph_gives_and_takes_packed_arrays() -> None:
    graph = Graph()
    x = graph.input((3, 4), name="x")
    codes = quantize(x, [[0.5, 2.0]], [[1, 2]], output_dtype="int4")
    y = dequantize(codes, [[0.5, 2.0]], PackedArray.pack([[1, 2]], "INT4"))
    assert repr(codes) == "<Expression of INT4 (3, 4)>"
    values = np.arange(12, dtype=np.float32).reshape(3, 4) - 6
    found = graph.compile({"codes": codes, "y": y})(values)
    expected = quantize(values, [[0.5, 2.0]], [[1, 2]], output_dtype="int4")
    assert found["codes"].unpack().tolist() == expected.unpack().tolist()
    np.testing.assert_array_equal(found["y"], dequantize(expected, [[0.5, 2.0]], [[1, 2]]))
    out = {"codes": PackedArray(np.zeros(6, np.uint8), "INT4", (3, 4))}
    assert graph.compile({"codes": codes})(values, out=out)["codes"] is out["codes"]
    assert out["codes"].to_bytes() == expected.to_bytes()


def test_what_a_graph_has_of_4_bits_is_reshaped() -> None:
    graph = Graph()
    x = graph.input((3, 3), TensorDataType.UINT4)
    compiled = graph.compile([dequantize(x.reshape(9), 0.5)])
    codes = np.arange(9).reshape(3, 3)
    assert compiled(PackedArray.pack(codes, "UINT4")).tolist() == (codes.reshape(-1) / 2).tolist()


def test_weights_of_4_bits_are_owned() -> None:
    """They lie in the persistent resource, by bytes."""
    x = DML_BUFFER_TENSOR_DESC(DataType="UINT4", Sizes=(5,), Flags=anydml.TensorFlags.OWNED_BY_DML)
    desc = DML_DEQUANTIZE_OPERATOR_DESC(
        InputTensor=x,
        QuantizationType=QuantizationType.SCALE,
        QuantizationTensors=[tensor((1,))],
        OutputTensor=tensor((5,)),
    )
    device = Device("cpu")
    operator = device.compile_operator(device.create_operator(desc))
    resource = operator.initialise([PackedArray.pack([1, 2, 3, 4, 15], "UINT4"), None])
    out = np.zeros(5, np.float32)
    operator.dispatch([None, np.float32([2])], [out], persistent=resource)
    assert out.tolist() == [2, 4, 6, 8, 30]


def test_a_device_says_since_when_it_has_them() -> None:
    for kind, is_there in (("6.3", True), ("6.2", False)):
        device = Device("cpu", kind)
        desc = DML_QUANTIZE_OPERATOR_DESC(
            InputTensor=tensor((3,)),
            QuantizationType=QuantizationType.SCALE,
            QuantizationTensors=[tensor((1,))],
            OutputTensor=tensor((3,), "INT4"),
        )
        found = [violation.rule for violation in anydml.validate(desc, device.feature_level)]
        assert found == ([] if is_there else ["(S1)"])


# Models, pictures


def model(**members: Any) -> str:
    """Numbers quantised as INT4, to a resource of bytes."""
    tensors = {"InputTensor": {"DataType": "FLOAT32", "Sizes": [3]}, "OutputTensor": {"DataType": "INT4", "Sizes": [3]}}
    scale = {"QuantizationType": "SCALE", "QuantizationTensors": [{"DataType": "FLOAT32", "Sizes": [1]}]}
    bindings = {"InputTensor": "X", "QuantizationTensors": ["S"], "OutputTensor": "Y"}
    resources = {
        "X": {"initialValuesDataType": "FLOAT32", "initialValues": [1, -2, 3]},
        "S": {"initialValuesDataType": "FLOAT32", "initialValues": [0.5]},
        "Y": {"initialValuesDataType": "UINT8", "initialValues": [255, 255], **members},
    }
    return json.dumps(
        {
            "resources": resources,
            "dispatchables": {"q": {"type": "DML_OPERATOR_QUANTIZE", "desc": {**tensors, **scale}}},
            "commands": [
                {"type": "dispatch", "dispatchable": "q", "bindings": bindings},
                {"type": "print", "resource": "Y"},
            ],
        }
    )


def test_a_model_has_them_as_bytes(tmp_path: Path) -> None:
    assert dxdispatch.loads(model(), tmp_path).run()["Y"].tolist() == [194, 6]
    (violation,) = dxdispatch.loads(model(initialValuesDataType="INT4"), tmp_path).check()
    assert (violation.rule, violation.where) == ("(M8)", "resources.Y.initialValuesDataType")


def test_a_file_of_them_is_none_of_a_resource(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    np.save(tmp_path / "codes.npy", np.array([1, 2], ml_dtypes.uint4))
    (violation,) = dxdispatch.loads(model(initialValues={"sourcePath": "codes.npy"}), tmp_path).check()
    assert (violation.rule, violation.where) == ("(M10)", "resources.Y.initialValues.sourcePath")


@pytest.mark.parametrize("x", [PACKED, PACKED.data])
def test_a_picture_shows_their_numbers(x: Any) -> None:
    desc = compiled().desc
    picture = draw(desc, [x, HALF], [np.array([[0.5, 1, 1.5]], np.float32)])
    assert "UINT4 {1, 3}" in picture
    for wrong in (PackedArray.pack([1], "UINT4"), np.zeros((1, 2), np.uint8), np.zeros(3, np.uint8)):
        with pytest.raises(DMLError, match=r"\(P2\)"):
            draw(desc, [wrong, HALF], [HALF])


def test_pydirectml_binds_none() -> None:
    builder = pydirectml.GraphBuilder(pydirectml.Device())
    x = pydirectml.input_tensor(builder, 0, pydirectml.TensorDesc(TensorDataType.UINT4, [3]))
    with pytest.raises(DMLError, match=r"Binding.expr: found an expression of UINT4, .*\(G9\)"):
        pydirectml.Binding(x, [1, 2, 3])
