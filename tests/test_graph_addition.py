"""What is added to a convolution becomes a part of it on the CPU, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import Graph

CONVOLUTIONS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "one tap": ((33, 24, 1, 1), {}),
    "a few places": ((40, 24, 3, 3), {"start_padding": 1, "end_padding": 1}),
    "strided": ((17, 24, 3, 3), {"strides": 2, "start_padding": 1, "end_padding": 1}),
    "dilated": ((64, 24, 5, 3), {"dilations": 2, "start_padding": (4, 2), "end_padding": (4, 2)}),
}
"""Filters, and options."""


def real(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def sums(end: Callable[[Any, Any], Any], name: str, bias: bool = True) -> Callable[..., Any]:
    """`end` of a convolution and another one beside it."""
    _, options = CONVOLUTIONS[name]

    def build(x: Any, first: Any, second: Any, other: Any, b: Any) -> Any:
        between = anydml.relu(anydml.convolution(x, first))
        y = anydml.convolution(between, second, b if bias else None, **options)
        beside = anydml.convolution(between, other, strides=options.get("strides", 1))
        return end(y, anydml.clip(beside, -1, 1))

    return build


def both(build: Callable[..., Any], name: str, side: int, batch: int = 2) -> tuple[Any, Any, Any]:
    """The graph of weights that are constants, what it gives, and what operators give one by one."""
    filters, _ = CONVOLUTIONS[name]
    x = real(0, batch, 8, side, side + 2)
    weights = [real(1, 24, 8, 1, 1), real(2, *filters), real(3, filters[0], 24, 1, 1), real(4, 1, filters[0], 1, 1)]
    weights[1][0, 0, 0, 0] = np.inf
    graph = Graph()
    compiled = graph.compile([build(graph.input(x.shape), *weights) * 2])
    expected = build(x, *weights) * 2
    return compiled, compiled(x), expected


ENDS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda y, z: anydml.add(y, z),
    "swapped": lambda y, z: anydml.add(z, y),
    "relu": lambda y, z: anydml.relu(anydml.add(y, z)),
}


def names(compiled: Any) -> list[str]:
    return [step.vertex.spec.name for step in compiled.steps]


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("side", [7, 20])
def test_one_kernel(name: str, end: str, side: int) -> None:
    compiled, found, expected = both(sums(ENDS[end], name, bias=side == 7), name, side)
    assert "CONVOLUTION_ADD_RELU" in names(compiled), compiled.explain()
    assert "convolution and addition" in compiled.explain()
    assert ("and RELU fused into" in compiled.explain()) == (end == "relu")
    np.testing.assert_array_equal(found.view(np.uint32), np.asarray(expected).view(np.uint32))


def test_what_stays_apart() -> None:
    for end in (
        lambda y, z: anydml.subtract(y, z),
        lambda y, z: anydml.add(anydml.sigmoid(y), anydml.sigmoid(z)),
        lambda y, z: anydml.add(y, z) * y * z,
        lambda y, z: anydml.add(anydml.relu(y), z),
    ):
        compiled, found, expected = both(sums(end, "one tap"), "one tap", 9)
        assert "CONVOLUTION_ADD_RELU" not in names(compiled)
        np.testing.assert_array_equal(found, expected)
