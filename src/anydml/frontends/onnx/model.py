"""Reading of ONNX models: what a file, its bytes or a ModelProto holds, checked, with the model's functions inlined.

(N1) A model is one that ONNX's checker passes, its external data in its folder.
(N2) Every operator has a lowering to DirectML's operators, for its attributes, types and sizes.
(N3) What is fed are the model's inputs, of their types and sizes.
(N4) Values fit the types that DirectML's operators have for them, where those are smaller than ONNX's.
(N5) Each value that a desc needs, such as a size, is one that the host can read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import onnx
import onnx.inliner

from ...core.errors import kind_of, refuse
from .initializers import Split, split, split_file
from .node import Node, array_of, nodes_of


@dataclass(frozen=True, slots=True)
class ModelInput:
    """An input or an output of a model, as ONNX Runtime's NodeArg tells of it.

    Attributes:
        name: its name.
        shape: a number for each dimension, or its name, or None where the model does not say.
        type: such as ``tensor(float)``.
        data_type: the number that ONNX has for the elements' type; 0 for what is no tensor.
    """

    name: str
    shape: list[int | str | None] | None
    type: str
    data_type: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """An ONNX model that was read.

    Attributes:
        inputs: what a run is fed with; initializers that may be replaced are no inputs.
        outputs: what a run gives.
        nodes: in an order in which they can run.
        constants: the initializers, as arrays.
        opsets: the version of each domain's operator set.
        proto: all of it, functions inlined; large initializers may have no data, and no sizes.
    """

    inputs: list[ModelInput]
    outputs: list[ModelInput]
    nodes: list[Node]
    constants: dict[str, Any]
    opsets: dict[str, int]
    proto: onnx.ModelProto

    def whole(self) -> onnx.ModelProto:
        """A copy of the model with its initializers."""
        copy = onnx.ModelProto()
        copy.CopyFrom(self.proto)
        for each in copy.graph.initializer:
            data = self.constants.get(each.name)
            if data is not None and tuple(each.dims) != data.shape:  # what was read by itself
                each.CopyFrom(onnx.numpy_helper.from_array(data, each.name))
        return copy

    @property
    def size(self) -> int:
        """Bytes of the model with its initializers, or little more."""
        return int(self.proto.ByteSize() + sum(each.nbytes for each in self.constants.values()))


def read(source: Any) -> Model:
    """A model from a path, from bytes or from a ModelProto.

    Raises:
        DMLError: (N1).
        OSError: for a file that cannot be read.
    """
    proto, apart, is_external = _split(source)
    try:
        _check(source if is_external else None, proto)
        if proto.functions:
            proto = onnx.inliner.inline_local_functions(proto)
        opsets = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in proto.opset_import}
        if opsets.get("", 0) > onnx.defs.onnx_opset_version():
            raise ValueError(f"operator set {opsets['']}, newer than the {onnx.defs.onnx_opset_version()} of this onnx")
        constants = {
            each.name: apart[each.name] if each.name in apart else array_of(each) for each in proto.graph.initializer
        }
        for sparse in proto.graph.sparse_initializer:
            constants[sparse.values.name] = _dense(sparse)
        return Model(
            inputs=[_checked(_described(each)) for each in proto.graph.input if each.name not in constants],
            outputs=[_described(each) for each in proto.graph.output],
            nodes=nodes_of(proto.graph.node, opsets),
            constants=constants,
            opsets=opsets,
            proto=proto,
        )
    except (OSError, MemoryError):
        raise
    except Exception as problem:  # onnx raises what its protobuf, checker and C++ code happen to raise
        _refuse_model(str(problem))


def _split(source: Any) -> Split:
    """A model, and what of its initializers is read beside it."""
    if not isinstance(source, (onnx.ModelProto, bytes, bytearray, memoryview, str, os.PathLike)):
        expected = "a path, the bytes of a model, or a ModelProto"
        refuse("InferenceSession", "(N1)", "model", kind_of(source), expected, kind="type")
    try:
        if isinstance(source, onnx.ModelProto):
            # Up to 2 GB can be serialised.
            return split(source.SerializeToString()) if source.ByteSize() < 2**31 else Split(source, {})
        if isinstance(source, (bytes, bytearray, memoryview)):
            return split(bytes(source))
        return _of_file(Path(source))
    except (OSError, MemoryError):
        raise
    except Exception as problem:
        _refuse_model(str(problem))


def _of_file(path: Path) -> Split:
    path.open("rb").close()
    if _FORMATS.get_format_from_file_extension(path.suffix) not in (None, "protobuf"):
        return Split(onnx.load(path), {}, is_external=True)
    found = split_file(path)
    is_external = any(map(onnx.external_data_helper.uses_external_data, _tensors(found.proto.graph)))
    if is_external:
        onnx.load_external_data_for_model(found.proto, os.fspath(path.parent))
    return found._replace(is_external=is_external)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Of a graph and of those within its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                yield from _tensors(inner)


_FORMATS = onnx.serialization.registry
"""Of files, by their suffixes: texts, beside what is serialised."""


def _check(path: Any, proto: onnx.ModelProto) -> None:
    """Refuses what ONNX's checker does, which looks for external data beside the file."""
    if not proto.graph.output:
        raise ValueError("a graph without outputs")
    ends = (
        each.type.tensor_type for each in (*proto.graph.input, *proto.graph.output) if each.type.HasField("tensor_type")
    )
    shapeless = [tensor for tensor in ends if tensor.elem_type and not tensor.HasField("shape")]
    for tensor in shapeless:
        # The checker wants one; others' tools leave it out where it depends on data.
        tensor.shape.SetInParent()
    try:
        onnx.checker.check_model(proto if path is None or shapeless else os.fspath(path))
    finally:
        for tensor in shapeless:
            tensor.ClearField("shape")


def _refuse_model(problem: str) -> NoReturn:
    lines = [line.strip() for line in problem.splitlines() if line.strip()]
    found = f"a model of which ONNX says: {' '.join(lines)[:400] or 'nothing'}"
    remedy = "python -m onnx.checker, or the tool that wrote it, may say more"
    refuse("InferenceSession", "(N1)", "model", found, "a valid ONNX model", remedy)


def _dense(sparse: onnx.SparseTensorProto) -> Any:
    import numpy as np

    values, indices = onnx.numpy_helper.to_array(sparse.values), onnx.numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    dense[tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)] = values
    return dense


def _checked(info: ModelInput) -> ModelInput:
    """An input, whose elements have a type where it is a tensor."""
    is_tensor = info.type.startswith("tensor(")
    if is_tensor and info.data_type not in onnx.helper.get_all_tensor_dtypes():
        raise ValueError(f"the input {info.name!r} has elements of type {info.data_type}, which there is not")
    return info


def _described(info: onnx.ValueInfoProto) -> ModelInput:
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        return ModelInput(info.name, None, (kind or "undefined").removesuffix("_type"))
    tensor = info.type.tensor_type
    shape: list[int | str | None] | None = None
    if tensor.HasField("shape"):
        # Some tools write -1 for what is free.
        shape = [
            dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else (dim.dim_param or None)
            for dim in tensor.shape.dim
        ]
    return ModelInput(info.name, shape, f"tensor({_type_name(tensor.elem_type)})", tensor.elem_type)


def _type_name(data_type: int) -> str:
    name: str = onnx.TensorProto.DataType.Name(data_type).lower()
    return name
