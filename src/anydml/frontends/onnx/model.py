"""Reading of ONNX models: what a file, its bytes or a ModelProto holds, checked, with the model's functions inlined.

(N1) A model is one that ONNX's checker passes, its external data in its folder.
(N2) Every operator has a lowering to DirectML's operators, for its attributes, types and sizes.
(N3) What is fed are the model's inputs, of their types and sizes.
(N4) Values fit the types that DirectML's operators have for them, where those are smaller than ONNX's.
(N5) Each value that a desc needs, such as a size, is one that the host can read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import onnx
import onnx.inliner

from ...core.errors import kind_of, refuse
from .node import Node, constants_of, nodes_of


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
        proto: all of it, functions inlined.
    """

    inputs: list[ModelInput]
    outputs: list[ModelInput]
    nodes: list[Node]
    constants: dict[str, Any]
    opsets: dict[str, int]
    proto: onnx.ModelProto


def read(source: Any) -> Model:
    """A model from a path, from bytes or from a ModelProto.

    Raises:
        DMLError: (N1).
        OSError: for a file that cannot be read.
    """
    proto = _proto_of(source)
    try:
        _check(source, proto)
        if proto.functions:
            proto = onnx.inliner.inline_local_functions(proto)
        opsets = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in proto.opset_import}
        if opsets.get("", 0) > onnx.defs.onnx_opset_version():
            raise ValueError(f"operator set {opsets['']}, newer than the {onnx.defs.onnx_opset_version()} of this onnx")
        constants = constants_of(proto.graph)
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


def _proto_of(source: Any) -> onnx.ModelProto:
    if isinstance(source, onnx.ModelProto):
        return source
    if not isinstance(source, (bytes, bytearray, memoryview, str, os.PathLike)):
        expected = "a path, the bytes of a model, or a ModelProto"
        refuse("InferenceSession", "(N1)", "model", kind_of(source), expected, kind="type")
    try:
        if isinstance(source, (bytes, bytearray, memoryview)):
            return onnx.load_model_from_string(bytes(source))
        path = Path(source)
        path.open("rb").close()
        return onnx.load(path)
    except (OSError, MemoryError):
        raise
    except Exception as problem:
        _refuse_model(str(problem))


def _check(source: Any, proto: onnx.ModelProto) -> None:
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
        is_file = isinstance(source, (str, os.PathLike))
        # It looks for external data beside the file; a proto that is held has its data within.
        onnx.checker.check_model(os.fspath(source) if is_file and not shapeless else proto)
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
