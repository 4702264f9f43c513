"""Operands of functions that are applied to expressions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..core.errors import DMLError, error, kind_of, refuse
from ..core.interop import as_operand
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..functions._call import as_device, data_type_of
from ..functions._call_cache import exact
from ..functions._messages import argument_label, in_function_terms
from ..functions._operand_adapter import OperandInfo, Shape, broadcast_strides, packed_operand
from ..functions._truth_values import TruthValues
from ..graph.desc import OwnData
from ..operators import spec
from ..operators.shape_inference import complete
from .graph_tensor import GraphTensor, dtype_of


class GraphAdapter:
    """Operands of a graph, arrays among them its constants."""

    def __init__(self, name: str, graph: Any, out: Any, device: Any) -> None:
        self.name = name
        self.graph = graph
        remedy = "Leave it out: a graph is dispatched on its own device, with arrays to write to"
        if out is not None:
            (found,) = out if isinstance(out, list) and len(out) == 1 else [out]
            refuse(name, "(G9)", "out", kind_of(found), "None beside expressions", remedy)
        if device is not None and as_device(device) is not graph.device:
            refuse(name, "(G9)", "device", kind_of(device), f"{graph.device}, that of the graph", remedy)
        self.memory = graph.device.memory
        self._truth = TruthValues(name)

    def take(self, where: str, value: Any, is_own: bool = False) -> Any:
        """An operand as an expression; an array's bytes are copied, unless it is own: one that nobody changes."""
        if isinstance(value, GraphTensor):
            return value
        if self._truth.are_taken and isinstance(value, bool):
            value = np.bool_(value)
        packed = packed_operand(self.name, where, value)
        if packed is not None:
            tensor = DML_BUFFER_TENSOR_DESC(DataType=packed.data_type, Sizes=packed.shape)
            return self.graph.constant(
                tensor, packed.to_bytes().ljust(tensor.TotalTensorSizeInBytes or 0, b"\0"), where
            )
        found = self.memory.import_array(self.name, where, as_operand(self.name, where, value))
        plain = found if isinstance(found, np.ndarray) else found.numpy()
        array = self._truth.taken(where, plain)
        tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type_of(self.name, where, array), Sizes=array.shape)
        data: Any
        if is_own and array.flags.c_contiguous and array.nbytes == tensor.TotalTensorSizeInBytes:
            data = array.reshape(-1).view(np.uint8).view(OwnData)
        else:
            data = array.tobytes().ljust(tensor.TotalTensorSizeInBytes or 0, b"\0")
        constant = self.graph.constant(tensor, data, where)
        constant._is_truth = array is not plain
        return constant

    def shape(self, operand: Any) -> Shape:
        return tuple(operand.tensor.Sizes)

    def dtype(self, operand: Any) -> np.dtype[Any]:
        return dtype_of(self.name, operand.tensor)

    def look(self, where: str, value: Any) -> OperandInfo:
        if isinstance(value, GraphTensor):
            return OperandInfo(self.shape(value), self.dtype(value))
        array = self.memory.import_array(self.name, where, as_operand(self.name, where, value))
        return OperandInfo(tuple(array.shape), array.dtype)

    def spread(self, operand: Any, shape: Shape) -> Any:
        tensor = operand.tensor
        if tuple(tensor.Sizes) == shape:
            return operand
        return operand.reinterpret(
            tensor.DataType, shape, broadcast_strides(self.shape(operand), tensor.strides, shape)
        )

    def wanted_sizes(self, rank: int) -> Shape:
        return ()

    def apply(
        self, operands: Mapping[str, Any], options: Mapping[str, Any], sizes: Shape, like: Any, lent: int
    ) -> list[Any]:
        found, device = spec(self.name), self.graph.device
        inputs: dict[str, Any] = {}
        for label, operand in operands.items():
            member, bracket, _ = label.partition("[")
            if bracket:
                inputs.setdefault(member, []).append(operand)
            else:
                inputs[member] = operand
        try:
            tensors = {
                member: [one.tensor for one in each] if isinstance(each, list) else getattr(each, "tensor", None)
                for member, each in inputs.items()
            }
            given = {member: each for member, each in inputs.items() if each is not None}
            key = _key(self.name, options, tensors, sizes)
            operator = self.graph._made.get(key) if key is not None else None
            if operator is None:
                desc = complete(found, {**options, **tensors}, device.feature_level, sizes)
                operator = device.create_operator(desc)
                if key is not None:
                    self.graph._made[key] = operator
            members, sources, read = self.graph._wired(found, {**options, **given})
            results = self.graph._added(found, operator, "", sources, read, members)
            return [self.spread(result, self.shape(result)[lent:]) for result in results]
        except DMLError as problem:
            names = {label: argument_label(label) for label in operands}
            raise error(in_function_terms(problem.violations, device, names)) from None


def _key(name: str, options: Mapping[str, Any], tensors: Mapping[str, Any], sizes: Shape) -> Hashable:
    """What tells descs apart that functions make; None where a wrong option is nothing that can be looked up."""
    each = [(member, tuple(given) if isinstance(given, list) else given) for member, given in tensors.items()]
    key = name, exact(tuple(options.items())), tuple(each), tuple(sizes)
    try:
        hash(key)
    except TypeError:
        return None
    return key
