"""ELEMENT_WISE_ADD of what a GEMM gives, as that GEMM's CTensor: a bias, or what goes round a layer.

A B + c, rounded once each, has the same bits either way in FLOAT32; in FLOAT16 it has not, and stays apart on the CPU.
Libraries of GPUs add a row to halves as they write a product, rounded once: it is theirs, where nothing that computes
element by element would add it in its own pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...core.enums import TensorDataType
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...operators.schema import OperatorDesc, Tensor
from ...operators.validate import validate
from ..ir import Network, Vertex
from ..verify import Port
from .fuse_activation import have_same_elements


def fuse_biases(network: Network) -> None:
    """Makes what is added a member of the product that nothing else reads."""
    if network.allows_half_precision and not network.device.memory.is_host:
        return  # it takes a pass of its own there, with what follows
    readers = network.readers()
    for i, addition in list(network.vertices.items()):
        if addition.spec.name not in ("ELEMENT_WISE_ADD", "ELEMENT_WISE_ADD1"):
            continue
        for at, source in enumerate(addition.sources):
            product = None if source is None else network.vertices.get(source.node)
            other = addition.sources[1 - at]
            if source is None or other is None or product is None or readers[source] != 1:
                continue
            fused = _fused(network, product, addition, at)
            if fused is None or not _pays(network, fused, Port(i, 0)):
                continue
            del network.vertices[source.node]
            sources = [*product.sources[:2], other]
            titles = product.titles + addition.titles
            # In the place of the addition, where both of its operands are there.
            network.vertices[i] = replace(product, desc=fused, sources=sources, titles=titles)
            network.notes.append(f"{addition.name} fused into {product.name}")
            break


def _pays(network: Network, both: Any, port: Port) -> bool:
    """Whether halves are better added by the product; singles always are."""
    if both.OutputTensor.DataType == TensorDataType.FLOAT32:
        return True
    is_row = not any(both.CTensor.strides[:-1]) and both.CTensor.strides[-1] == 1
    behind = [each for each in network.vertices.values() if port in each.sources]
    return is_row and any(each.spec.pointwise is None for each in behind)


def _fused(network: Network, product: Vertex, addition: Vertex, at: int) -> OperatorDesc | None:
    """The desc of both in one, where the rules allow it; `at` is the operand that is the product."""
    outer: Any = product.desc
    inner: Any = addition.desc
    if product.spec.name != "GEMM" or outer.CTensor is not None or outer.FusedActivation is not None:
        return None
    if outer.Alpha != 1 or (outer.OutputTensor.DataType != TensorDataType.FLOAT32 and network.device.memory.is_host):
        return None
    operands = [inner.ATensor, inner.BTensor]
    if not have_same_elements((outer.OutputTensor, operands[at], inner.OutputTensor)):
        return None
    added = _regrouped(operands[1 - at], outer.OutputTensor.Sizes)
    if added is None:
        return None
    activation = getattr(inner, "FusedActivation", None)
    both: OperatorDesc = replace(outer, CTensor=added, Beta=1.0, FusedActivation=activation)
    device = network.device
    return None if validate(both, device.feature_level, device.strict) else both


def _regrouped(tensor: Tensor, sizes: Sequence[int]) -> Tensor | None:
    """The same elements under other sizes, where strides can say so: dimensions that become one follow each other."""
    own = [(size, step) for size, step in zip(tensor.Sizes, tensor.strides, strict=True) if size > 1]
    strides: list[int] = []
    for size in reversed(sizes):
        count, stride = 1, 0
        while count < size:
            if not own:
                return None
            extent, step = own.pop()
            if count == 1:
                stride = step
            elif step != stride * count:
                return None
            count *= extent
        if count != size:
            return None
        strides.insert(0, stride)
    if own:
        return None
    return DML_BUFFER_TENSOR_DESC(
        DataType=tensor.DataType,
        Sizes=sizes,
        Strides=strides,
        Flags=tensor.Flags,
        TotalTensorSizeInBytes=tensor.TotalTensorSizeInBytes,
        GuaranteedBaseOffsetAlignment=tensor.GuaranteedBaseOffsetAlignment,
    )
