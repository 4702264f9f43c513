"""Operator fusion: an activation becomes a member of the operator whose result nothing else reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from ...core.strided_layout import Layout
from ...core.tensor_desc import is_packed
from ...operators.fused_activation import FUSIBLE, fused_since
from ...operators.schema import OperatorDesc, Tensor
from ...operators.validate import validate
from ...runtime.context import Context
from ..ir import INTERNAL, Network, Vertex
from ..verify import Port

_BY_LIBRARIES = ("CONVOLUTION", "GEMM")
"""Operators that a GPU's libraries do, which leave activations but RELU to another pass over memory."""


def fuse_activations(network: Network) -> None:
    """Makes an activation a member of the operator whose result nothing else reads."""
    readers = network.readers()
    given_by: dict[Port | None, Port] = {}
    for i, activation in list(network.vertices.items()):
        source = activation.sources[0] if activation.sources else None
        if activation.spec.name not in (*FUSIBLE, *INTERNAL) or source is None or readers[source] != 1:
            continue
        producer = network.vertices.get(source.node)
        fused = None if producer is None else _fused(network.device, producer, activation)
        if producer is None or fused is None:
            continue
        producer.desc = fused
        producer.titles += activation.titles
        given_by[Port(i, 0)] = source
        network.notes.append(f"{activation.name} fused into {producer.name}")
    network.replace(given_by)


def have_same_elements(tensors: Sequence[Tensor]) -> bool:
    """Whether packed tensors have as many elements each, of whatever sizes."""
    return all(is_packed(each.Sizes, each.strides) for each in tensors) and len({prod(e.Sizes) for e in tensors}) == 1


def _fused(device: Context, producer: Vertex, activation: Vertex) -> OperatorDesc | None:
    """The desc of both in one, where the rules allow it."""
    inner: Any = activation.desc
    outer: Any = producer.desc
    is_internal = activation.spec.name in INTERNAL
    if is_internal:
        if not device.memory.is_host or producer.spec.name not in ("CONVOLUTION", "GEMM"):
            return None
    else:
        since = fused_since(activation.spec.name, producer.spec.name)
        if since is None or since > device.feature_level:
            return None
        is_called = not device.memory.is_host and producer.spec.name in _BY_LIBRARIES
        if is_called and activation.spec.name != "ACTIVATION_RELU":
            return None
    if getattr(outer, "FusedActivation", device) is not None:
        return None
    between = Layout.of_desc(outer.OutputTensor), Layout.of_desc(inner.InputTensor)
    output = inner.OutputTensor
    if not between[0].same_place(between[1]):
        # Element by element the sizes that packed elements have make no difference.
        ends = (outer.OutputTensor, inner.InputTensor, output)
        if activation.spec.pointwise is None or not have_same_elements(ends):
            return None
        output = outer.OutputTensor
    alone = replace(inner, **dict.fromkeys(activation.spec.tensors))
    both: OperatorDesc = replace(outer, FusedActivation=alone, OutputTensor=output)
    allowed = replace(both, FusedActivation=None) if is_internal else both
    return None if validate(allowed, device.feature_level, device.strict) else both
