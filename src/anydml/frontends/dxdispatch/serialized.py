"""DirectML's serialised graphs: the FlatBuffer of a graph's desc that ONNX Runtime's DirectML provider writes.

A node has the names of the edges at its inputs and outputs, "" for one that is left out; the same name at an output and
an input, or among those of the graph, is an edge. A constant's bytes are in the file, or in one of its own beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ...core import enums
from ...core.enums import TensorDataType, TensorFlags
from ...core.errors import Violation
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SCALAR_UNION, DML_SCALE_BIAS, DML_SIZE_2D
from ...operators.schema import OperatorDesc, OperatorSpec
from ...operators.shape_inference import is_input
from .commands import operator_named
from .files import Refused, source_size
from .flat import Table
from .limits import format_size

MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class SerializedNode:
    """A node of a serialised graph.

    Attributes:
        name: what messages call it.
        inputs: names of edges, "" for what is left out.
        outputs: likewise.
        desc: an operator's; None for a constant.
        data: a constant's bytes; None for an operator, and for a constant in a file.
        file: of a constant.
    """

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    desc: OperatorDesc | None = None
    data: bytes | None = None
    file: Path | None = None


@dataclass(frozen=True)
class SerializedGraph:
    """A serialised graph.

    Attributes:
        inputs: the names of its inputs.
        outputs: the names of its outputs.
        nodes: in an order in which they can run.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    nodes: Sequence[SerializedNode]


def read_graph(path: Path) -> SerializedGraph:
    """A serialised graph from its file; constants in files of their own are looked for in its folder.

    Raises:
        Refused: it is none.
    """
    size = source_size(path)
    if size > MOST_BYTES:
        raise Refused(format_size(size), f"at most {format_size(MOST_BYTES)}")
    try:
        root = Table.root(path.read_bytes())
    except OSError as problem:
        raise Refused(f"{str(path)!r} ({problem.strerror})", "a file that can be read") from None
    inputs, outputs = root.texts(1), root.texts(2)
    owned: set[str] = set()
    """Edges from constants in files, whose tensors are initialised."""
    nodes = []
    for i, table in enumerate(root.tables(0)):
        name, node_inputs, node_outputs = table.text(2) or f"node {i}", table.texts(3), table.texts(4)
        kind, inner = table.number(0, "u1"), table.table(1)
        if inner is None or kind not in (1, 2):
            raise Refused(f"node {i} of kind {kind}", "an operator or a constant")
        if kind == 1:
            desc = _desc(inner, name, node_inputs, node_outputs, owned)
            nodes.append(SerializedNode(name, node_inputs, node_outputs, desc))
        else:
            data, file = _constant(inner, name, path.parent)
            owned |= set(node_outputs) if file is not None else set()
            nodes.append(SerializedNode(name, [], node_outputs, data=data, file=file))
    if not nodes or not outputs:
        raise Refused(f"{len(nodes)} nodes and {len(outputs)} outputs", "at least one of each")
    return SerializedGraph(inputs, outputs, nodes)


def _constant(table: Table, name: str, folder: Path) -> tuple[bytes | None, Path | None]:
    kind, inner = table.number(0, "u1"), table.table(1)
    if kind == 2 and inner is not None:
        data = inner.array(0, "u1")
        return b"" if data is None else data.tobytes(), None
    if kind != 1 or inner is None or not inner.text(0):
        raise Refused(f"constant {name!r} without data", "its bytes, or the name of their file")
    stem = inner.text(0)
    file = folder / f"{stem}.bin"
    if file.parent != folder or stem != Path(stem).name or "\0" in stem:
        raise Refused(f"constant {stem!r}", "the name of a file in the graph's folder")
    return None, file


def _desc(table: Table, name: str, inputs: Sequence[str], outputs: Sequence[str], owned: set[str]) -> OperatorDesc:
    """The desc of an operator: tensors in the order of the names of edges, members by theirs."""
    operator = _operator(table.text(0), name)
    members: dict[str, Any] = {}
    sides = {True: (iter(inputs), iter(table.tables(1))), False: (iter(outputs), iter(table.tables(2)))}
    for member in operator.tensors:
        names, tensors = sides[is_input(operator, member)]
        if operator.members[member] == "Tensors":
            members[member] = [_tensor(each, next(names, "") in owned) for each in tensors]
            continue
        edge = next(names, "")
        tensor = next(tensors, None) if edge else None
        if edge and tensor is None:
            raise Refused(f"no tensor for {member} of {name!r}", "one for each edge")
        members[member] = None if tensor is None else _tensor(tensor, edge in owned)
    members |= _attributes(table.tables(3), operator, name)
    return _made(operator, members, name)


def _made(operator: OperatorSpec, members: Mapping[str, Any], name: str) -> OperatorDesc:
    try:
        made: OperatorDesc = operator.desc(**members)
    except TypeError as problem:  # a member is missing
        raise Refused(f"{operator.name} of {name!r}: {problem}", "all members of its desc") from None
    return made


def _operator(word: str, name: str) -> OperatorSpec:
    found = operator_named("", word)
    if isinstance(found, Violation):
        raise Refused(f"{found.found} at {name!r}", found.expected, found.remedy)
    return found


def _tensor(table: Table, is_owned: bool) -> DML_BUFFER_TENSOR_DESC:
    word = table.text(0)
    data_type = enums.parse(TensorDataType, word)
    if data_type is None:
        raise Refused(f"a tensor of {word[:80]!r}", "a data type of DirectML's")
    sizes, strides = table.array(1, "u4"), table.array(2, "u4")
    return DML_BUFFER_TENSOR_DESC(
        DataType=data_type,
        Flags=TensorFlags.OWNED_BY_DML if is_owned else TensorFlags.NONE,
        Sizes=[] if sizes is None else sizes.tolist(),
        Strides=None if strides is None else strides.tolist(),
        TotalTensorSizeInBytes=table.number(3, "u8") or None,
    )


def _attributes(tables: Sequence[Table], operator: OperatorSpec, name: str) -> dict[str, Any]:
    """Members that are no tensors, of which those that are left out have no value, and often no name."""
    known = {each: kind for each, kind in operator.members.items() if each not in operator.tensors}
    found: dict[str, Any] = {each: None for each, annotation in known.items() if annotation.startswith("Optional")}
    for table in tables:
        member = table.text(0)
        if not table.has(2):
            continue  # left out
        if member not in known:
            raise Refused(f"{operator.name}.{member[:80]} of {name!r}", f"a member of its desc: {', '.join(known)}")
        annotation = "UINT" if known[member].startswith("enums.") else known[member]
        value = _READERS[annotation](table)
        if value is not None:
            found[member] = _as(known[member], value)
    return found


def _as(annotation: str, value: Any) -> Any:
    """A number as the desc has it. What does not fit stays as it is; the validator looks at it."""
    if annotation.startswith("enums."):
        enum = getattr(enums, annotation.removeprefix("enums."))
        try:
            return enum(value)
        except (ValueError, TypeError):
            return value
    return bool(value) if annotation == "BOOL" and value in (0, 1) else value


def _activation(table: Table) -> OperatorDesc:
    """An activation, whose tensors are left out."""
    operator = _operator(table.text(0), "an activation")
    if any("ctivation" in kind for kind in operator.members.values()):
        raise Refused(operator.name, "an activation")
    members = dict.fromkeys(operator.tensors) | _attributes(table.tables(1), operator, "an activation")
    return _made(operator, members, "an activation")


def _activations(table: Table) -> list[OperatorDesc]:
    return [_activation(each) for each in table.tables(0)]


def _scalar(table: Table) -> DML_SCALAR_UNION:
    """A number of any type, all of which are read of the same bytes."""
    data = table.struct(1, 8)
    members = {}
    for each in fields(DML_SCALAR_UNION):
        dtype = np.dtype(each.name.lower()).newbyteorder("<")
        members[each.name] = np.frombuffer(data[: dtype.itemsize], dtype)[0].item()
    return DML_SCALAR_UNION(**members)


def _number(dtype: str, count: int = 1) -> Callable[[Table], Any]:
    def read(table: Table) -> Any:
        kind = np.dtype(f"<{dtype}")
        values = np.frombuffer(table.struct(2, count * kind.itemsize), kind).tolist()
        return values[0] if count == 1 else values

    return read


def _inner(read: Callable[[Table], Any]) -> Callable[[Table], Any]:
    def of_table(table: Table) -> Any:
        inner = table.table(2)
        return None if inner is None else read(inner)

    return of_table


def _numbers(dtype: str) -> Callable[[Table], Any]:
    def read(table: Table) -> Any:
        values = table.array(0, dtype)
        return [] if values is None else values.tolist()

    return _inner(read)


def _scale_bias(table: Table) -> DML_SCALE_BIAS:
    scale, bias = _number("f4", 2)(table)
    return DML_SCALE_BIAS(Scale=scale, Bias=bias)


def _size_2d(table: Table) -> DML_SIZE_2D:
    width, height = _number("u4", 2)(table)
    return DML_SIZE_2D(Width=width, Height=height)


_READERS: Mapping[str, Callable[[Table], Any]] = {
    "Activations": _inner(_activations),
    "BOOL": _number("u1"),  # the first byte of what may be an integer of 4
    "Count": _number("u4"),
    "FLOAT": _number("f4"),
    "FLOATs": _numbers("f4"),
    "INT": _number("i4"),
    "INTs": _numbers("i4"),
    "OptionalActivation": _inner(_activation),
    "OptionalScaleBias": _scale_bias,
    "SCALAR": _inner(_scalar),
    "Size2D": _size_2d,
    "UINT": _number("u4"),
    "UINTs": _numbers("u4"),
}
"""By the kind of a desc's member: the numbers that kinds have in files are others in each version of the provider."""
