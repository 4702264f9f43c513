"""Writes DirectML's serialised graphs, as ONNX Runtime does."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from anydml import DML_BUFFER_TENSOR_DESC, DML_SCALAR_UNION, DML_SCALE_BIAS, DML_SIZE_2D, TensorDataType
from anydml.core.strided_layout import DTYPES
from anydml.operators import spec_of
from anydml.operators.schema import OperatorDesc


class Constant(NamedTuple):
    """Bytes in the file, or the name of a file of their own."""

    output: str
    data: bytes | str


class Applied(NamedTuple):
    """An operator with the names of its edges."""

    desc: OperatorDesc
    inputs: Sequence[str]
    outputs: Sequence[str]
    name: str = "node"


def serialized(nodes: Sequence[Constant | Applied], inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """The bytes of a graph's file."""
    import flatbuffers

    builder = flatbuffers.Builder(0)
    written = [_constant(builder, each) if isinstance(each, Constant) else _applied(builder, each) for each in nodes]
    parts = [_vector(builder, written), _texts(builder, inputs), _texts(builder, outputs)]
    builder.Finish(_table(builder, [("offset", part) for part in parts]))
    return bytes(builder.Output())


def _table(builder: Any, given: Sequence[tuple[str, Any] | None]) -> int:
    builder.StartObject(len(given))
    for slot, each in enumerate(given):
        if each is None:
            continue
        kind, value = each
        if kind == "offset":
            builder.PrependUOffsetTRelativeSlot(slot, value, 0)
        elif kind == "u1":
            builder.PrependUint8Slot(slot, value, 0)
        else:
            builder.PrependUint64Slot(slot, value, 0)
    end: int = builder.EndObject()
    return end


def _vector(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for each in reversed(offsets):
        builder.PrependUOffsetTRelative(each)
    end: int = builder.EndVector()
    return end


def _texts(builder: Any, words: Sequence[str]) -> int:
    return _vector(builder, [builder.CreateString(each) for each in words])


def _struct(builder: Any, data: bytes, alignment: int) -> int:
    builder.Prep(alignment, len(data))
    builder.head -= len(data)
    builder.Bytes[builder.Head() : builder.Head() + len(data)] = data
    end: int = builder.Offset()
    return end


def _node(builder: Any, kind: int, desc: int, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> int:
    text, first, second = builder.CreateString(name), _texts(builder, inputs), _texts(builder, outputs)
    members = [("u1", kind), *(("offset", each) for each in (desc, text, first, second))]
    return _table(builder, members)


def _constant(builder: Any, constant: Constant) -> int:
    if isinstance(constant.data, str):
        inner = _table(builder, [("offset", builder.CreateString(constant.data))])
    else:
        inner = _table(builder, [("offset", builder.CreateNumpyVector(np.frombuffer(constant.data, np.uint8)))])
    desc = _table(builder, [("u1", 1 if isinstance(constant.data, str) else 2), ("offset", inner)])
    return _node(builder, 2, desc, constant.output, [], [constant.output])


def _applied(builder: Any, node: Applied) -> int:
    found = spec_of(node.desc)
    assert found is not None
    sides = [
        _vector(builder, [_tensor(builder, each) for _, each in tensors if each is not None])
        for tensors in (found.inputs(node.desc), found.outputs(node.desc))
    ]
    word = builder.CreateString(f"DML_OPERATOR_{found.name}")
    attributes = _attributes(builder, node.desc)
    desc = _table(builder, [("offset", each) for each in (word, *sides, attributes)])
    return _node(builder, 1, desc, node.name, node.inputs, node.outputs)


def _tensor(builder: Any, tensor: DML_BUFFER_TENSOR_DESC) -> int:
    word = builder.CreateString(f"DML_TENSOR_DATA_TYPE_{tensor.DataType.name}")
    arrays: list[tuple[str, Any] | None] = []
    for numbers in (tensor.Sizes, tensor.Strides):
        given = None if numbers is None else builder.CreateNumpyVector(np.array(numbers, np.uint32))
        arrays.append(None if given is None else ("offset", given))
    return _table(builder, [("offset", word), *arrays, ("u8", tensor.TotalTensorSizeInBytes)])


def _attributes(builder: Any, desc: OperatorDesc) -> int:
    found = spec_of(desc)
    assert found is not None
    others = [name for name in found.members if name not in found.tensors]
    written = []
    for name in others:
        value = getattr(desc, name)
        if found.members[name] == "SCALAR":
            value = _scalar(value, desc.scalar_type)
        written.append(_attribute(builder, name, found.members[name], value))
    return _vector(builder, written)


def _attribute(builder: Any, name: str, annotation: str, value: Any) -> int:
    if value is None:
        # ONNX Runtime writes neither a name nor a value.
        return _table(builder, [None, ("u1", 1), None])
    kind, written = _value(builder, annotation, value)
    return _table(builder, [("offset", builder.CreateString(name)), ("u1", kind), ("offset", written)])


def _value(builder: Any, annotation: str, value: Any) -> tuple[int, int]:
    """The number of a kind of attribute, and where its value was written."""
    if isinstance(value, OperatorDesc):
        return 1, _activation(builder, value)
    if annotation == "Activations":
        return 2, _table(builder, [("offset", _vector(builder, [_activation(builder, each) for each in value]))])
    if isinstance(value, DML_SCALE_BIAS):
        return 10, _struct(builder, struct.pack("<2f", value.Scale, value.Bias), 4)
    if isinstance(value, DML_SIZE_2D):
        return 11, _struct(builder, struct.pack("<2I", value.Width, value.Height), 4)
    if annotation == "SCALAR":
        data = _struct(builder, value, 1)
        return 12, _table(builder, [("u1", 1), ("offset", data)])
    if annotation == "BOOL":
        return 13, _struct(builder, bytes([value]), 1)
    if annotation == "FLOAT":
        return 6, _struct(builder, struct.pack("<f", value), 4)
    if annotation == "INT":
        return 5, _struct(builder, struct.pack("<i", value), 4)
    if isinstance(value, (int, IntEnum)):
        return 3, _struct(builder, struct.pack("<I", value), 4)
    kind, dtype = {"UINTs": (7, np.uint32), "INTs": (8, np.int32), "FLOATs": (9, np.float32)}[annotation]
    return kind, _table(builder, [("offset", builder.CreateNumpyVector(np.array(value, dtype)))])


def _scalar(value: Any, data_type: TensorDataType) -> bytes:
    """The 8 bytes of a number of any type."""
    number = value.value_of(data_type) if isinstance(value, DML_SCALAR_UNION) else value
    dtype = DTYPES[data_type]
    if dtype.kind != "f":
        number, dtype = int(number) % 2 ** (8 * dtype.itemsize), np.dtype(f"u{dtype.itemsize}")
    return np.array(number, dtype).tobytes().ljust(8, b"\0")


def _activation(builder: Any, desc: OperatorDesc) -> int:
    found = spec_of(desc)
    assert found is not None
    word, attributes = builder.CreateString(f"DML_OPERATOR_{found.name}"), _attributes(builder, desc)
    return _table(builder, [("offset", word), ("offset", attributes)])
