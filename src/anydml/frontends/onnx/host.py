"""Arithmetic on the host: on shapes and other small known values, and nodes that are left to another runtime.

What is known is evaluated by ONNX's reference where the result is the same on every machine: integers, truth values,
strings, and floats that are moved, compared, converted, or computed by what IEEE 754 rounds exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx

from ...core.strided_layout import DATA_TYPES
from .context import NotLowered, Unknown
from .functions import proto_of, type_of
from .node import Node
from .values import Held, Traced, Value, leaves

RUNTIMES = "ONNX Runtime, or else ONNX's reference"

_MOST = 4096
"""Elements that are small: shapes, indices, tables of sizes."""

_EXACT = frozenset(
    name
    for line in (
        "Abs Add And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil",
        "Clip Compress Concat ConcatFromSequence Constant ConstantOfShape Div Equal Expand EyeLike Flatten",
        "Floor Gather GatherElements GatherND Greater GreaterOrEqual Identity Less LessOrEqual Max Min Mod",
        "Mul Neg NonZero Not OneHot Optional OptionalGetElement OptionalHasElement Or Pad Range ReduceMax",
        "ReduceMin ReduceProd ReduceSum RegexFullMatch Reshape ReverseSequence Round ScatterElements",
        "ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength",
        "Shape Sign Size Slice Split SplitToSequence Sqrt Squeeze StringConcat StringNormalizer StringSplit",
        "Sub Tile TopK Transpose Trilu Unique Unsqueeze Where Xor",
    )
    for name in line.split()
)
"""Operators of which each result has the same bits on every machine; sums and products of integers alone."""

_OF_INTEGERS = frozenset(("ReduceProd", "ReduceSum", "Range"))


@dataclass
class Evaluated:
    """The results of a node that were computed on the host."""

    results: list[Value]
    note: str


def evaluated(node: Node, values: dict[str, Value]) -> Evaluated | None:
    """The results of a node that depend on shapes and small known values alone; None for all others."""
    if node.op in ("Shape", "Size") and not isinstance(values[node.inputs[0]], list):
        return Evaluated([_of_shape(node, tuple(values[node.inputs[0]].shape))], "its shape, on the host")
    if node.op == "Constant":
        return Evaluated([_constant(node)], "a constant")
    if node.op not in _EXACT:
        return None
    inputs = [values[name] if name else None for name in node.inputs]
    if node.op in _OF_LISTS:
        position = _position(node)
        if position and isinstance(values[position], (Held, Traced)):
            raise Unknown(position)
        return Evaluated(_of_lists(node, inputs), "a sequence, on the host")
    if node.op in _OF_OPTIONALS:
        return Evaluated([_of_optional(node, inputs)], "an optional, on the host")
    known = [_empty_of(each) for each in inputs]
    for name, each in zip(node.inputs, known, strict=True):
        if any(isinstance(leaf, (Held, Traced)) for leaf in leaves(each)):
            if any(_are_strings(leaf) for other in known for leaf in leaves(other)):
                raise Unknown(name)
            return None
    arrays = [leaf for each in known for leaf in leaves(each)]
    is_small = sum(array.size for array in arrays) <= _MOST and not _is_large(node, known)
    if not known or not (is_small or any(map(_is_foreign, arrays))):
        return None
    floats = any(array.dtype.kind == "f" for array in arrays)
    if floats and node.op in _OF_INTEGERS:
        return None
    try:
        return Evaluated(reference(node, known), "known, on the host")
    except NotLowered:
        return None


def _is_foreign(array: Any) -> bool:
    """Whether no device has such elements, strings or floats of 8 bits: they are computed here or not at all."""
    return array.dtype != np.bool_ and array.dtype not in DATA_TYPES


def _are_strings(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OUST"


def _empty_of(value: Value) -> Value:
    """What has no elements is known, whatever computes it."""
    if isinstance(value, Held) and 0 in value.shape:
        return np.zeros(value.shape, value.dtype)
    return value


def _is_large(node: Node, inputs: list[Any]) -> bool:
    """Whether what makes arrays of a given size would make a large one."""
    if node.op in ("Expand", "ConstantOfShape", "Reshape"):
        shape = inputs[-1].astype(float)
        return bool(np.prod(np.maximum(shape, 1)) > _MOST)
    if node.op == "Tile":
        return bool(np.prod(inputs[1].astype(float)) * inputs[0].size > _MOST)
    if node.op == "Range":
        start, limit, delta = (float(np.ravel(each)[0]) for each in inputs)
        return delta != 0 and abs(limit - start) / abs(delta) > _MOST
    if node.op == "Pad" and len(inputs) > 1:
        return bool(np.abs(inputs[1].astype(float)).sum() > 64)
    if node.op == "OneHot":
        return bool(inputs[0].size * float(np.ravel(inputs[1])[0]) > _MOST)
    return False


def _of_shape(node: Node, shape: tuple[int, ...]) -> Any:
    if node.op == "Size":
        return np.array(int(np.prod(shape, dtype=object)), np.int64)
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    return np.array(shape[start:end], np.int64)


def _constant(node: Node) -> Any:
    for name, value in node.attributes.items():
        if name == "value":
            return value
        if name in ("value_float", "value_floats"):
            return np.array(value, np.float32)
        if name in ("value_int", "value_ints"):
            return np.array(value, np.int64)
        if name in ("value_string", "value_strings"):
            return np.array(value, object)
    raise NotLowered("a sparse constant")


_OF_LISTS = ("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength")


def _position(node: Node) -> str:
    """The name of the input that is a place in a list."""
    i = {"SequenceAt": 1, "SequenceErase": 1, "SequenceInsert": 2}.get(node.op, len(node.inputs))
    return node.inputs[i] if i < len(node.inputs) else ""


_OF_OPTIONALS = ("Optional", "OptionalGetElement", "OptionalHasElement")


def _of_optional(node: Node, inputs: list[Any]) -> Any:
    """An optional is its value, or None."""
    value = inputs[0] if inputs else None
    if node.op == "OptionalHasElement":
        return np.array(value is not None)
    if node.op == "OptionalGetElement" and value is None:
        raise NotLowered("an optional without a value")
    return value


def _of_lists(node: Node, inputs: list[Any]) -> list[Any]:
    """Sequences are lists of whatever is known of their elements."""
    if node.op == "SequenceConstruct":
        return [list(inputs)]
    if node.op == "SequenceEmpty":
        return [[]]
    items = list(inputs[0])
    if node.op == "SequenceLength":
        return [np.array(len(items), np.int64)]
    position = 2 if node.op == "SequenceInsert" else 1
    given = inputs[position] if position < len(inputs) and inputs[position] is not None else None
    at = (
        len(items)
        if given is None and node.op == "SequenceInsert"
        else -1
        if given is None
        else int(np.ravel(given)[0])
    )
    if not -len(items) <= at < len(items) + (node.op == "SequenceInsert"):
        raise NotLowered(f"position {at} of a sequence of {len(items)}")
    if node.op == "SequenceAt":
        return [items[at]]
    if node.op == "SequenceErase":
        del items[at]
    else:
        items.insert(at if at >= 0 else len(items) + at, inputs[1])
    return [items]


def computed(node: Node, inputs: list[Any], captured: dict[str, Any]) -> list[Any]:
    """The outputs of a node by another runtime.

    Args:
        node: which.
        inputs: arrays, lists of them, or None for those that are left out.
        captured: what its bodies read of the outer graph.

    Raises:
        NotLowered: with what each runtime says.
    """
    named = {name: value for name, value in zip(node.inputs, inputs, strict=True) if name} | captured
    model = _model_of(node, named)
    said = []
    for name, run in _runtimes():
        try:
            return run(model, named)
        except Exception as problem:  # each raises whatever it likes; what one cannot load or run, the next may
            said.append(f"{name}: {type(problem).__name__}: {problem}")
    raise NotLowered("; ".join(said))


def _runtimes() -> list[tuple[str, Callable[[onnx.ModelProto, dict[str, Any]], list[Any]]]]:
    is_there = find_spec("onnxruntime") is not None
    return [("ONNX Runtime", _by_onnxruntime)] * is_there + [("ONNX's reference", _by_reference)]


def _by_onnxruntime(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def _by_reference(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(None, feeds))


def _model_of(node: Node, values: dict[str, Any]) -> onnx.ModelProto:
    """A model of one node."""
    domain = node.op.rpartition(".")[0]
    proto = proto_of(node)
    inputs = [onnx.helper.make_value_info(name, type_of(value)) for name, value in values.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.outputs if name]
    graph = onnx.helper.make_graph([proto], "node", inputs, outputs)
    # What bodies of another domain's operators have is of the newest set that both runtimes know.
    own = {domain: node.opset} | ({} if domain == "" else {"": _OF_BODIES})
    imports = [onnx.helper.make_opsetid(name, version) for name, version in own.items()]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)


_OF_BODIES = 21


def reference(node: Node, inputs: list[Any]) -> list[Any]:
    """The outputs of a node by ONNX's reference."""
    kernel = _kernel(node.op, node.opset)
    attributes = {
        key: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for key, value in node.attributes.items()
    }
    try:
        found = kernel.eval(*inputs, n_outputs=len(node.outputs), **attributes)
    except Exception as problem:  # the reference raises whatever NumPy does
        raise NotLowered(f"{type(problem).__name__}: {problem}") from problem
    results = list(found) if isinstance(found, tuple) else [found]
    return [list(each) if isinstance(each, list) else _array_of(each) for each in results]


def _array_of(value: Any) -> Any:
    """A result as an array, whose strings are objects, as those of others are."""
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind == "U" else array


@cache
def _kernel(op: str, opset: int) -> Any:
    from onnx.reference.ops import load_op

    return load_op("", op, opset)
