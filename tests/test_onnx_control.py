"""Control flow, sequences and shapes that data say in ONNX models, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime

import anydml.onnx


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def one(value: Any, dtype: str) -> Any:
    return np.array(value, dtype)


GRID = np.arange(15, dtype=np.float32).reshape(5, 3) - 4
CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "Loop until data say so": (
        """(float[3] x, float limit) => (float[3] y, float[N,3] all) {
            t = Constant <value = bool {1}> ()
            m = Constant <value = int64 {20}> ()
            y, all = Loop (m, t, x) <body = b (int64 i, bool c, float[3] v) => (bool c2, float[3] v2, float[3] o) {
                v2 = Add (v, v)
                n = ReduceMax <keepdims = 0> (v2)
                c2 = Less (n, limit)
                o = Add (v2, x)
            }>
        }""",
        [{"x": f32(1, 2, 3), "limit": one(limit, "f4")} for limit in (30, 100, 1)],
    ),
    "Loop so many times": (
        """(float[3] x, int64 m) => (float[3] y, float[N,3] all) {
            y, all = Loop (m, , x) <body = b (int64 i, bool c, float[3] v) => (bool c2, float[3] v2, float[3] o) {
                c2 = Identity (c)
                f = Cast <to = 1> (i)
                v2 = Add (v, f)
                o = Identity (v2)
            }>
        }""",
        [{"x": f32(1, 2, 3), "m": one(m, "i8")} for m in (0, 1, 4)],
    ),
    "Loop within a Loop, and an If of the outer one's": (
        """(float[2] x, int64 m, float limit) => (float[2] y, float[N,2] all) {
            y, all = Loop (m, , x) <body = b (int64 i, bool c, float[2] v) => (bool c2, float[2] v2, float[2] o) {
                c2 = Identity (c)
                w = Loop (i, , v) <body = d (int64 j, bool p, float[2] u) => (bool p2, float[2] u2) {
                    u2 = Add (u, x)
                    n = ReduceSum <keepdims = 0> (u2)
                    p2 = Less (n, limit)
                }>
                n2 = ReduceSum <keepdims = 0> (w)
                q = Less (n2, limit)
                v2 = If (q) <
                    then_branch = r () => (float[2] a) { a = Add (w, v) },
                    else_branch = s () => (float[2] e) { e = Neg (w) }
                >
                o = Mul (v2, x)
            }>
        }""",
        [{"x": f32(1, 2), "m": one(m, "i8"), "limit": one(15, "f4")} for m in (1, 5)],
    ),
    "If within an If, of two shapes": (
        """(bool a, bool b, float[5,3] x) => (float[M,N] y) {
            y = If (a) <
                then_branch = t () => (float[M,N] p) {
                    p = If (b) <
                        then_branch = t2 () => (float[M,N] q) { q = Transpose (x) },
                        else_branch = e2 () => (float[M,N] r) { r = Relu (x) }
                    >
                },
                else_branch = e () => (float[M,N] u) { u = Neg (x) }
            >
        }""",
        [{"a": one(a, "?"), "b": one(b, "?"), "x": GRID} for a in (0, 1) for b in (0, 1)],
    ),
    "a sequence that a Loop makes": (
        """(float[5,3] x, int64 m) => (float[N,3] y, int64 n) {
            e = SequenceEmpty ()
            s = Loop (m, , e) <body = b (int64 i, bool c, seq(float[3]) q) => (bool c2, seq(float[3]) q2) {
                c2 = Identity (c)
                v = Gather (x, i)
                w = Mul (v, v)
                q2 = SequenceInsert (q, w)
            }>
            y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
            n = SequenceLength (s)
        }""",
        [{"x": GRID, "m": one(m, "i8")} for m in (1, 5)],
    ),
    "Scan of two axes, backwards": (
        """(float[3] h, float[5,3] x, float[3,5] z) => (float[3] last, float[5,3] y, float[3,5] w) {
            last, y, w = Scan <
                num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [1, 0],
                scan_output_axes = [0, 1], scan_output_directions = [0, 1],
                body = b (float[3] s, float[3] a, float[3] c) => (float[3] s2, float[3] o, float[3] p) {
                    k = Mul (a, c)
                    s2 = Add (s, k)
                    o = Tanh (s2)
                    p = Identity (s2)
                }
            > (h, x, z)
        }""",
        [{"h": f32(1, 2, 3), "x": GRID / 9, "z": GRID.T / 7}],
    ),
    "parts of a sequence at a place that is fed": (
        """(float[5,3] x, int64 k) => (float[N,3] y, float[M,3] z) {
            size = Constant <value = int64 {2}> ()
            s = SplitToSequence <axis = 0> (x, size)
            y = SequenceAt (s, k)
            rest = SequenceErase (s, k)
            z = ConcatFromSequence <axis = 0> (rest)
        }""",
        [{"x": GRID, "k": one(k, "i8")} for k in (0, 2, -1)],
    ),
    "what is not 0, as many as there are": (
        """(float[N,3] x) => (float[M] y, int64[2] sizes, float[L,3] rows) {
            places = NonZero (x)
            sizes = Shape (places)
            tuples = Transpose (places)
            found = GatherND (x, tuples)
            y = Relu (found)
            column = Constant <value = int64 {0}> ()
            first = Gather <axis = 1> (x, column)
            zero = Constant <value = float {0}> ()
            keep = Greater (first, zero)
            rows = Compress <axis = 0> (x, keep)
        }""",
        [{"x": GRID}, {"x": GRID[:1] * 0}, {"x": GRID[2:]}],
    ),
    "shapes that are computed of shapes": (
        """(float[B,S,6] x) => (float[B,2,S,3] y, float[B,S,6] z) {
            shape = Shape (x)
            zero = Constant <value = int64[1] {0}> ()
            one = Constant <value = int64[1] {1}> ()
            b = Gather (shape, zero)
            s = Gather (shape, one)
            heads = Constant <value = int64[2] {2, 3}> ()
            parted = Concat <axis = 0> (b, s, heads)
            r = Reshape (x, parted)
            y = Transpose <perm = [0, 2, 1, 3]> (r)
            back = Transpose <perm = [0, 2, 1, 3]> (y)
            z = Reshape (back, shape)
        }""",
        [{"x": np.arange(b * s * 6, dtype=np.float32).reshape(b, s, 6)} for b, s in ((1, 2), (3, 4))],
    ),
    "arrays without elements": (
        """(float[N,3] x, float[M,3] w) => (float[L,3] y, float[K,3] z) {
            y = Concat <axis = 0> (x, w)
            from = Constant <value = int64[1] {0}> ()
            till = Shape <start = 0, end = 1> (x)
            z = Slice (w, from, till, from)
        }""",
        [{"x": GRID[:n], "w": GRID[n:]} for n in (0, 2, 5)],
    ),
    "what is distinct, of which not all is asked for": (
        """(int64[N] x) => (int64[M] y, int64[N] inverse) {
            y, firsts, inverse = Unique (x)
        }""",
        [{"x": np.array([3, 1, 3, 2, 1])}, {"x": np.array([7])}],
    ),
    "an optional": (
        """(float[3] x) => (float[3] y, bool there) {
            o = Optional (x)
            there = OptionalHasElement (o)
            y = OptionalGetElement (o)
        }""",
        [{"x": f32(1, 2, 3)}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_as_onnx_runtime(name: str) -> None:
    text, feeds = CASES[name]
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]>\nmodel {text}')
    other = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = anydml.onnx.InferenceSession(model)
    for each in feeds:
        for found, wanted in zip(session.run(None, each), other.run(None, each), strict=True):
            found, wanted = np.asarray(found), np.asarray(wanted)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        """(float[1,5,2,3] x) => (float[M,N,K] y) <int64[3] shape = {2, 5, 3}> {
            heads = Transpose <perm = [0, 2, 1, 3]> (x)
            rows = Reshape (heads, shape)
            y = Relu (rows)
        }""",
        """(float[2,1] x) => (float[M,N,K] y) <int64[2] shape = {2, 3}, int64[1] axis = {1}> {
            wide = Expand (x, shape)
            more = Unsqueeze (wide, axis)
            y = Relu (more)
        }""",
        """(float[4,6] x) => (float[M,N,K] y) <int64[4] parts = {2, 3, 1, 4}, int64[1] axis = {2}> {
            turned = Transpose (x)
            parted = Reshape (turned, parts)
            less = Squeeze (parted, axis)
            y = Relu (less)
        }""",
    ],
    ids=("heads", "broadcast", "parts"),
)
def test_shapes_of_strided_elements_cost_nothing(text: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]>\nmodel {text}')
    session = anydml.onnx.InferenceSession(model)
    sizes = session.get_inputs()[0].shape
    x = np.arange(30, dtype=np.float32)[: np.prod(sizes)].reshape(sizes)
    other = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], other.run(None, {"x": x})[0])
    assert len(session.graph.steps) == 1


def test_constants_of_types_that_no_device_has() -> None:
    """Large ones too are converted on the host."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
        model (float[3,128] x) => (float[3,64] y) <bfloat16[128,64] w = {}> {
            turned = Transpose (w)
            wide = Cast <to = 1> (turned)
            back = Transpose (wide)
            y = MatMul (x, back)
        }"""
    model = onnx.parser.parse_model(text.replace("= {}", ""))
    weights = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float32)
    bits = (weights.view(np.uint32) >> 16).astype(np.uint16)
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, bits.shape, bits.tobytes(), raw=True)
    del model.graph.initializer[:]
    model.graph.initializer.append(tensor)
    x = np.random.default_rng(1).standard_normal((3, 128)).astype(np.float32)
    (y,) = anydml.onnx.InferenceSession(model).run(None, {"x": x})
    exact = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(y, x @ exact, rtol=1e-4, atol=1e-4)


def test_strings_of_any_number() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
        model (string[5000] x, int64[2] at) => (string[2] y) {
            twice = Concat <axis = 0> (x, x)
            y = Gather (twice, at)
        }"""
    session = anydml.onnx.InferenceSession(onnx.parser.parse_model(text))
    strings = np.array([f"number {i}" for i in range(5000)], object)
    (y,) = session.run(None, {"x": strings, "at": np.array([3, 5001])})
    assert y.tolist() == ["number 3", "number 1"]
