"""BATCH_NORMALIZATION folded into the convolution before it, where its parameters stay.

    s = Scale / sqrt(Variance + Epsilon)
    ((x * W + b) - Mean) * s + Bias = x * (W * s) + ((b - Mean) * s + Bias)

Both terms are normalisations themselves, W * s with a mean and a bias of 0: they become nodes that depend on weights
alone, and run when those are known. It is done where an engine prepares filters, and so has something to gain: the
rounding of W * s moves results by some units of the last place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.enums import ConvolutionDirection, TensorDataType
from ...core.strided_layout import Layout
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...operators.schema import Tensor
from ..ir import Network, Vertex
from ..verify import Port

_PARAMETERS = ("MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor")


def fold_normalizations(network: Network) -> None:
    """Folds what can be."""
    readers = network.readers()
    stays = network.owned | set(network.constants)
    given_by: dict[Port | None, Port] = {}
    for i, normalization in list(network.vertices.items()):
        source = normalization.sources[0] if normalization.sources else None
        if normalization.spec.name != "BATCH_NORMALIZATION" or source is None or readers[source] != 1:
            continue
        convolution = network.vertices.get(source.node)
        if (
            convolution is None
            or not _fits(convolution, normalization)
            or not network.prefers_channels_last(convolution)
        ):
            continue
        if not all(port in stays for port in (*convolution.sources[1:], *normalization.sources[1:]) if port):
            continue
        if _fold(network, convolution, normalization):
            given_by[Port(i, 0)] = source
            network.notes.append(f"{normalization.name} folded into the filter of {convolution.name}")
    network.replace(given_by)


def _fits(convolution: Vertex, normalization: Vertex) -> bool:
    """Whether each channel is normalised by numbers of its own, and nothing lies between."""
    outer: Any = convolution.desc
    inner: Any = normalization.desc
    if convolution.spec.name != "CONVOLUTION" or outer.Direction != ConvolutionDirection.FORWARD:
        return False
    if outer.FusedActivation is not None or outer.OutputTensor.DataType != TensorDataType.FLOAT32:
        return False
    parameters = [getattr(inner, name) for name in _PARAMETERS]
    if any(size > 1 for each in parameters for axis, size in enumerate(each.Sizes) if axis != 1):
        return False
    return Layout.of_desc(outer.OutputTensor).same_place(Layout.of_desc(inner.InputTensor))


def _fold(network: Network, convolution: Vertex, normalization: Vertex) -> bool:
    outer: Any = convolution.desc
    inner: Any = normalization.desc
    channels = outer.FilterTensor.Sizes[0]
    filters = _floats(outer.FilterTensor.Sizes)
    ones = [1] * (len(filters.Sizes) - 2)
    bias, nothing = _floats([1, channels, *ones]), _floats([channels, 1, *ones])
    of_filter = replace(
        inner,
        InputTensor=outer.FilterTensor,
        MeanTensor=nothing,
        VarianceTensor=_along_filters(inner.VarianceTensor),
        ScaleTensor=_along_filters(inner.ScaleTensor),
        BiasTensor=nothing,
        OutputTensor=filters,
        FusedActivation=None,
    )
    of_bias = replace(inner, InputTensor=outer.BiasTensor or bias, OutputTensor=bias, FusedActivation=None)
    folded = replace(
        outer,
        FilterTensor=filters,
        BiasTensor=bias,
        OutputTensor=inner.OutputTensor,
        FusedActivation=inner.FusedActivation,
    )
    if not network.takes([of_filter, of_bias, folded]):
        return False
    zero = network.constant(np.zeros(channels, np.float32))
    x, w, b = convolution.sources
    _, variance, scale, _ = normalization.sources[1:]
    parts = (
        ("filter", of_filter, [w, zero, variance, scale, zero]),
        ("bias", of_bias, [b or zero, *normalization.sources[1:]]),
    )
    made = [
        network.add(replace(normalization, name=f"{part} of {convolution.name}", desc=desc, sources=sources))
        for part, desc, sources in parts
    ]
    convolution.desc, convolution.sources = folded, [x, *made]
    convolution.folded = normalization.spec.name
    convolution.titles += normalization.titles
    return True


def _floats(sizes: Sequence[int]) -> Tensor:
    return DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=sizes)


def _along_filters(parameter: Tensor) -> Tensor:
    """A parameter of the output's channels as one of a filter's first dimension."""
    order = (1, 0, *range(2, len(parameter.Sizes)))
    sizes, strides = ([each[i] for i in order] for each in (parameter.Sizes, parameter.strides))
    return replace(parameter, Sizes=sizes, Strides=strides)
