"""ONNX models: good ones with bytes or parts exchanged, and nodes made up by the operators' schemas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import numpy as np

from fuzzing.common import check_violation, expect, mutated, note, outcome

SIZES = [0, 1, 2, 3, 4, 7, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -1, -(2**63)]
MOST = 1 << 16
"""Elements of an input that is fed."""


@cache
def bases() -> list[bytes]:
    """Models of a few nodes: constants, control flow, shapes that are computed, functions."""
    import onnx
    from onnx import helper

    texts = [
        """<ir_version: 9, opset_import: ["": 18]>
        chain (float[N, 4] x) => (float[N, 4] y) <float[4] w = {0.5, -1.5, 2, 1}> {
            a = Mul(x, w)
            b = Relu(a)
            y = Add(b, w)
        }""",
        """<ir_version: 9, opset_import: ["": 18]>
        shapes (float[N, 4] x) => (float[M, K] y) <int64[1] two = {2}, int64[1] rest = {-1}> {
            s = Shape(x)
            n = Mul(s, s)
            t = Concat<axis = 0>(two, rest)
            y = Reshape(x, t)
            z = ConstantOfShape(n)
        }""",
        """<ir_version: 9, opset_import: ["": 18]>
        branch (bool c, float[2] x) => (float[2] y) {
            y = If (c) <
                then_branch = yes () => (float[2] a) { a = Relu(x) },
                else_branch = no () => (float[2] b) { b = Sigmoid(x) }
            >
        }""",
        """<ir_version: 9, opset_import: ["": 18]>
        loop (int64 n, float[2] x) => (float[2] y, float[K, 2] all) {
            c = Constant<value = bool {1}>()
            y, all = Loop (n, c, x) <
                body = step (int64 i, bool go, float[2] v) => (bool again, float[2] w, float[2] out) {
                    again = Identity(go)
                    w = Add(v, v)
                    out = Identity(w)
                }
            >
        }""",
        """<ir_version: 9, opset_import: ["": 18, "own": 1]>
        calls (float[3] x) => (float[3] y) {
            y = own.twice(x)
        }
        <domain: "own", opset_import: ["": 18]>
        twice (a) => (b) {
            b = Add(a, a)
        }""",
        """<ir_version: 9, opset_import: ["": 18]>
        picture (float[1, 2, 5, 5] x) => (float[1, 3, 2, 2] y) <float[3, 2, 3, 3] w> {
            a = Conv<kernel_shape = [3, 3], pads = [0, 0, 0, 0], strides = [1, 1]>(x, w)
            b = Relu(a)
            y = MaxPool<kernel_shape = [2, 2]>(b)
        }""",
    ]
    models = []
    for text in texts:
        model = onnx.parser.parse_model(text)
        for tensor in model.graph.initializer:
            if tensor.name == "w" and len(tensor.dims) == 4:
                tensor.CopyFrom(onnx.numpy_helper.from_array(np.ones((3, 2, 3, 3), np.float32), "w"))
        models.append(model.SerializeToString())
    node = helper.make_node("NonZero", ["x"], ["y"])
    info = helper.make_tensor_value_info
    graph = helper.make_graph([node], "counted", [info("x", 1, [3])], [info("y", 7, [1, None])])
    models.append(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return models


def parts(message: Any) -> Iterator[tuple[Any, Any]]:
    """Every message within a message, itself among them, with the fields that it has."""
    fields = message.ListFields()
    yield message, [field for field, _ in fields]
    for field, value in fields:
        if field.type != field.TYPE_MESSAGE:
            continue
        for each in value if is_many(message, field) else [value]:
            yield from parts(each)


def is_many(message: Any, field: Any) -> bool:
    return hasattr(getattr(message, field.name), "append")


def other(random: Random, model: Any, field: Any, value: Any) -> Any:
    """Another value of the kind of a field."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice([value + 1, value - 1, *SIZES])
    if isinstance(value, float):
        return random.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
    words = [each.name for each in (*model.graph.node, *model.graph.input, *model.graph.initializer)]
    words += [name for node in model.graph.node for name in (*node.input, *node.output)]
    words += ["", "x" * 300, "Add", "Det", "Reshape", "Loop", "If", "ai.onnx.ml", "\u00e9", "../../etc/hosts", "y", "x"]
    if isinstance(value, str):
        return random.choice(words)
    return random.choice([b"", value[:-1], value + b"\0", random.randbytes(8), random.choice(words).encode()])


def changed(random: Random, model: Any) -> None:
    """Changes a field of a message somewhere in a model."""
    found = [each for each in parts(model) if each[1]]
    if not found:
        return
    message, fields = random.choice(found)
    field = random.choice(fields)
    way = random.randrange(4)
    value = getattr(message, field.name)
    if way == 0:
        message.ClearField(field.name)
    elif is_many(message, field):
        at = random.randrange(len(value))
        if way == 1:
            del value[at]
        elif field.type == field.TYPE_MESSAGE:
            if way == 2:
                value.append(value[at])
            elif len(value) > 1:
                one, two = value[at], value[random.randrange(len(value))]
                copy = type(one)()
                copy.CopyFrom(one)
                one.CopyFrom(two)
                two.CopyFrom(copy)
        else:
            value[at] = fitting(random, model, field, value[at])
    elif field.type != field.TYPE_MESSAGE:
        with suppress(ValueError):  # an enum of proto2 has no other values
            setattr(message, field.name, fitting(random, model, field, value))


def fitting(random: Random, model: Any, field: Any, value: Any) -> Any:
    found = other(random, model, field, value)
    if not isinstance(found, int) or isinstance(found, bool):
        return found
    low, high = (-(2**31), 2**31 - 1) if field.type in (field.TYPE_INT32, field.TYPE_ENUM) else (-(2**63), 2**63 - 1)
    low = 0 if field.type in (field.TYPE_UINT64, field.TYPE_UINT32) else low
    return min(max(found, low), high)


@cache
def schemas() -> list[Any]:
    import onnx

    latest: dict[tuple[str, str], Any] = {}
    for schema in onnx.defs.get_all_schemas():
        if schema.domain in ("", "ai.onnx") and not schema.deprecated:
            latest[schema.domain, schema.name] = schema
    return [latest[key] for key in sorted(latest)]


TYPES = [np.float32, np.float32, np.float16, np.int64, np.int32, np.uint8, np.int8, np.bool_, np.float64, np.uint64]


def made_up(random: Random) -> Any:
    """A model of one node, whose attributes, types and shapes are any."""
    import onnx
    from onnx import helper

    schema = random.choice(schemas())
    count = random.randint(schema.min_input, min(schema.max_input, schema.min_input + 2))
    dtype = random.choice(TYPES)
    inputs, constants = [], []
    for i in range(count):
        name = f"x{i}"
        own = dtype if random.random() < 0.8 else random.choice(TYPES)
        shape = [random.choice([1, 1, 2, 2, 2, 3, 3, 4, 4, 0, 17]) for _ in range(random.randint(0, 4))]
        if i and random.random() < 0.5:
            size = random.choice([(), (1,), (2,), (4,)])
            numbers = np.array(random.choices([0, 1, 2, 3, -1, 2**62], k=int(np.prod(size))), np.int64).reshape(size)
            with np.errstate(all="ignore"):
                numbers = numbers.astype(np.int64 if random.random() < 0.7 else own)
            constants.append(onnx.numpy_helper.from_array(numbers, name))
        else:
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(own)), shape))
    attributes = {}
    for name, attribute in schema.attributes.items():
        if attribute.required or random.random() < 0.4:
            value = attribute_value(random, attribute)
            if value is not None:
                attributes[name] = value
    outputs = [f"y{i}" for i in range(max(1, random.randint(schema.min_output, min(schema.max_output, 4))))]
    node = helper.make_node(schema.name, [f"x{i}" for i in range(count)], outputs, **attributes)
    results = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, []) for name in outputs]
    graph = helper.make_graph([node], "made up", inputs, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", schema.since_version)], ir_version=10)


def attribute_value(random: Random, attribute: Any) -> Any:
    kinds = type(attribute.type)
    numbers = [0, 1, 2, 3, -1, 5, 16, 2**31, 2**62]
    if attribute.type == kinds.INT:
        return random.choice(numbers)
    if attribute.type == kinds.INTS:
        return [random.choice(numbers[:6] if random.random() < 0.95 else numbers) for _ in range(random.randint(1, 4))]
    if attribute.type == kinds.FLOAT:
        return random.choice([0.0, 0.5, 1.0, -1.0, 1e30, float("nan")])
    if attribute.type == kinds.FLOATS:
        return [random.choice([0.5, 1.0, 2.0]) for _ in range(random.randint(1, 3))]
    if attribute.type == kinds.STRING:
        return random.choice(["", "constant", "linear", "nearest", "SAME_UPPER", "forward", "sum", "none", "max"])
    return None


def fed(random: Random, session: Any) -> dict[str, Any] | None:
    """Arrays for a model's inputs; None where they would be large, or are no tensors."""
    feeds = {}
    generator = np.random.default_rng(random.randrange(2**32))
    for each in session.get_inputs():
        if each.shape is None or each.data_type == 0:
            return None
        import onnx

        shape = [size if isinstance(size, int) else random.choice([1, 2, 3]) for size in each.shape]
        if any(size < 0 for size in shape) or np.prod(shape, dtype=object) > MOST:
            return None
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(each.data_type))
        if dtype.kind in "OUS":
            feeds[each.name] = np.full(shape, "a", object)
        else:
            feeds[each.name] = generator.integers(0, 3, shape).astype(dtype)
    return feeds


def onnx_models(random: Random) -> None:
    """A session either refuses a model by a DMLError, or runs it with one, or gives a result."""
    import onnx

    from anydml.frontends.onnx import control
    from anydml.onnx import InferenceSession, check

    control._MOST_ITERATIONS = 100  # a loop without an end takes seconds until it is refused
    way = random.choice(["bytes", "parts", "parts", "made up", "made up", "made up"])
    if way == "made up":
        data = made_up(random).SerializeToString()
    elif way == "bytes":
        data = mutated(random, random.choice(bases()), bases())
    else:
        model = onnx.ModelProto()
        model.ParseFromString(random.choice(bases()))
        for _ in range(random.choice([1, 1, 2, 4])):
            changed(random, model)
        data = model.SerializeToString()
    note(data)
    fallback = way != "made up" and random.random() < 0.2
    made = outcome(lambda: InferenceSession(data, fallback=fallback))
    if made.rules is not None:
        return
    feeds = fed(random, made.result)
    if feeds is None:
        return
    first = outcome(lambda: made.result.run(None, feeds))
    second = outcome(lambda: made.result.run(None, feeds))
    expect(first.rules == second.rules, "refused once:", first.rules, second.rules)
    if random.random() < 0.1:
        found = outcome(lambda: check(data, feeds=feeds))
        for violation in found.result.violations if found.rules is None else ():
            check_violation(violation)
