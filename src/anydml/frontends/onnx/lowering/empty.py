"""Tensors without elements, which DirectML's operators don't take: a batch of none, as detectors have."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from ..context import Lowering, NodeContext, NotLowered
from ..functions import proto_of, type_of


def may_be_empty(lowerings: dict[str, Lowering]) -> dict[str, Lowering]:
    """Lowerings that give what has no elements, too, where the first input has none.

    Shapes and types are those that ONNX infers. What has elements although its input has none, such as the mean of
    nothing, is refused.
    """
    return {name: _guarded(lowering) for name, lowering in lowerings.items()}


def _guarded(lowering: Lowering) -> Lowering:
    def guarded(node: NodeContext) -> Any:
        is_tensor = node.has(0) and not isinstance(node.value(0), list)
        return _results(node) if is_tensor and 0 in node.shape(0) else lowering(node)

    return guarded


def _results(node: NodeContext) -> list[Any]:
    domain, _, name = node.op.rpartition(".")
    if not onnx.defs.has(name, node.opset, domain):
        raise NotLowered(f"an empty tensor, of shape {node.shape(0)}")
    schema = onnx.defs.get_schema(name, node.opset, domain)
    given = {each: type_of(node.value(i)) for i, each in enumerate(node.node.inputs) if node.has(i)}
    known = {
        each: onnx.numpy_helper.from_array(node.value(i))
        for i, each in enumerate(node.node.inputs)
        if node.is_known(i) and node.dtype(i).kind in "iu"
    }
    imports = [onnx.helper.make_opsetid(domain, node.opset)]
    found = onnx.shape_inference.infer_node_outputs(schema, proto_of(node.node), given, known, opset_imports=imports)
    results: list[Any] = []
    for each in node.node.outputs:
        tensor = found[each].tensor_type if each in found else onnx.TypeProto.Tensor()
        shape = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim]
        if each and (0 not in shape or -1 in shape):
            raise NotLowered(f"an empty tensor, of shape {node.shape(0)}, that gives elements")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) if each else np.float32
        results.append(np.zeros(shape, dtype) if each else None)
    return results
