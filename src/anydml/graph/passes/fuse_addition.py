"""What follows a convolution: an addition and RELU as part of it, or a bias as part of the pass behind it.

The CPU's kernel adds another tensor to what it writes, where both lie with their channels last. Libraries of GPUs add a
bias and another tensor to a convolution, and apply RELU, as they write it. Where anything else follows, a bias is added
by the kernel that does this, in one pass over memory: it becomes an operator, which `fuse_pointwise.py` chains with
others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...core.enums import ConvolutionDirection
from ...core.strided_layout import Layout
from ...operators import spec as spec_named
from ...operators.convolution_addition import CONVOLUTION_ADDITION, ConvolutionAddition
from ...operators.schema import Tensor
from ...runtime.context import fuses
from ..ir import Network, Vertex
from ..verify import Port

_ADDITIONS = ("ELEMENT_WISE_ADD", "ELEMENT_WISE_ADD1")
_RELU = "ACTIVATION_RELU"


def fuse_additions(network: Network) -> None:
    """RELU(CONVOLUTION + x) becomes one operator, and on the CPU CONVOLUTION + x, where kernels have it."""
    is_host = network.device.memory.is_host
    readers = network.readers()
    given_by: dict[Port | None, Port] = {}
    for i, addition in list(network.vertices.items()):
        if addition.spec.name not in _ADDITIONS:
            continue
        relu = _relu_behind(network, i, addition, readers[Port(i, 0)])
        inner: Any = addition.desc
        if relu is None and (not is_host or getattr(inner, "FusedActivation", None) is not None):
            continue
        # The last of two convolutions, which finds there what the other one gives.
        places = {number: rank for rank, number in enumerate(network.vertices)}
        ranks = [-1 if port is None else places.get(port.node, -1) for port in addition.sources]
        for at in sorted((0, 1), key=lambda at: -ranks[at]):
            source = addition.sources[at]
            if source is None or readers[source] != 1 or not _fuse(network, i, at, relu):
                continue
            if relu is not None and relu != i:
                given_by[Port(relu, 0)] = Port(i, 0)
            break
    network.replace(given_by)


def _relu_behind(network: Network, i: int, addition: Vertex, readers: int) -> int | None:
    """The number of the vertex that applies RELU to a sum: the addition's own, or that of the one that reads it."""
    inner: Any = addition.desc
    fused = getattr(inner, "FusedActivation", None)
    if fused is not None:
        return i if type(fused).__name__ == f"DML_{_RELU}_OPERATOR_DESC" else None
    behind = [number for number, each in network.vertices.items() if Port(i, 0) in each.sources]
    if readers != 1 or len(behind) != 1 or network.vertices[behind[0]].spec.name != _RELU:
        return None
    relu: Any = network.vertices[behind[0]].desc
    own = Layout.of_desc(inner.OutputTensor)
    alike = all(Layout.of_desc(each).same_place(own) for each in (relu.InputTensor, relu.OutputTensor))
    return behind[0] if alike else None


def _fuse(network: Network, i: int, at: int, relu: int | None) -> bool:
    """Makes a convolution, the operand `at` of an addition, and RELU behind it one, in the addition's place."""
    addition = network.vertices[i]
    source, other = addition.sources[at], addition.sources[1 - at]
    convolution = None if source is None else network.vertices.get(source.node)
    if source is None or other is None or convolution is None or convolution.spec.name != "CONVOLUTION":
        return False
    outer: Any = convolution.desc
    inner: Any = addition.desc
    operands = inner.ATensor, inner.BTensor
    own = Layout.of_desc(outer.OutputTensor)
    if outer.FusedActivation is not None or outer.Direction != ConvolutionDirection.FORWARD or any(outer.OutputPadding):
        return False
    if not all(Layout.of_desc(each).same_place(own) for each in (*operands, inner.OutputTensor)):
        return False
    # Libraries have no fast call for groups of one channel each.
    if outer.GroupCount > 1 and outer.GroupCount == outer.InputTensor.Sizes[1]:
        return False
    desc = ConvolutionAddition(
        InputTensor=outer.InputTensor,
        FilterTensor=outer.FilterTensor,
        BiasTensor=outer.BiasTensor,
        AddedTensor=operands[1 - at],
        OutputTensor=outer.OutputTensor,
        convolution=outer,
        is_rectified=relu is not None,
    )
    if network.device.memory.is_host and not _has_kernel(network, desc):
        return False
    titles = convolution.titles + addition.titles
    titles += network.vertices[relu].titles if relu is not None and relu != i else ()
    sources = [*convolution.sources, other]
    del network.vertices[source.node]
    fused = replace(convolution, spec=CONVOLUTION_ADDITION, desc=desc, sources=sources, titles=titles)
    network.vertices[i] = fused
    network.notes.append(f"{addition.name}{' and RELU' * desc.is_rectified} fused into {convolution.name}")
    return True


def _has_kernel(network: Network, desc: ConvolutionAddition) -> bool:
    spec = CONVOLUTION_ADDITION
    inputs = [None if tensor is None else Layout.of_desc(tensor) for _, tensor in spec.inputs(desc)]
    return fuses(network.device, spec, desc, inputs, [Layout.of_desc(desc.OutputTensor)])


def part_biases(network: Network) -> None:
    """Makes a bias an operator, where an element-wise one alone reads a convolution."""
    if network.device.memory.is_host:
        return
    readers = network.readers()
    for node, vertex in list(network.vertices.items()):
        desc: Any = vertex.desc
        port = Port(node, 0)
        if vertex.spec.name != "CONVOLUTION" or desc.BiasTensor is None or desc.FusedActivation is not None:
            continue
        behind = [each for each in network.vertices.values() if port in each.sources]
        if readers[port] != 1 or len(behind) != 1 or behind[0].spec.pointwise is None:
            continue
        output = desc.OutputTensor
        addition = spec_named("ELEMENT_WISE_ADD")
        added = addition.desc(ATensor=output, BTensor=_along(desc.BiasTensor, output), OutputTensor=output)
        without = replace(desc, BiasTensor=None)
        if not network.takes([added, without]):
            continue
        bias = vertex.sources[2]
        vertex.desc, vertex.sources = without, [*vertex.sources[:2], None]
        network.insert(port, Vertex(f"bias of {vertex.name}", addition, added, [port, bias]))


def _along(bias: Tensor, output: Tensor) -> Tensor:
    """A number for each channel, broadcast by strides of 0."""
    strides = [0] * len(output.Sizes)
    strides[1] = bias.strides[1]
    return replace(bias, Sizes=output.Sizes, Strides=strides)
