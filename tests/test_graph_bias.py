"""What is added to a product becomes a member of it, with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml import Graph


def real(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compiled(
    shape: tuple[int, ...], added: Any, is_first: bool, view: tuple[int, ...] | None = None, **options: Any
) -> Any:
    """relu(a b + c), where b is a constant, and c is fed."""
    graph = Graph()
    x, c = graph.input(shape), graph.input(added.shape)
    y = anydml.gemm(x, real(1, shape[-1], 7), **options)
    y = y if view is None else y.reshape(view)
    return graph.compile([anydml.relu(c + y if is_first else y + c)])


FORMS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]] = [
    ((6, 5), (7,), None),
    ((6, 5), (6, 1), None),
    ((6, 5), (6, 7), None),
    ((6, 5), (1,), None),
    ((2, 3, 5), (7,), None),
    ((2, 3, 5), (2, 1, 7), None),
    ((6, 5), (7,), (2, 3, 7)),
    ((6, 5), (2, 3, 7), (2, 3, 7)),
    ((12, 5), (3, 1, 1, 7), (3, 2, 2, 7)),
]


@pytest.mark.parametrize(("shape", "c", "view"), FORMS)
@pytest.mark.parametrize("is_first", [False, True])
def test_one_kernel(shape: tuple[int, ...], c: tuple[int, ...], view: tuple[int, ...] | None, is_first: bool) -> None:
    x, added = real(0, *shape), real(2, *c)
    product = anydml.gemm(x, real(1, shape[-1], 7))
    expected = anydml.relu(anydml.add(product if view is None else product.reshape(view), added))
    graph = compiled(shape, added, is_first, view)
    if c != (3, 1, 1, 7):
        assert len(graph.steps) == 1
    else:
        assert len(graph.steps) == 2, "rows that repeat in twos are no stride of a matrix"
    np.testing.assert_array_equal(graph(x, added), expected)


def test_what_stays_apart() -> None:
    x, added = real(0, 6, 5), real(2, 7)
    assert len(compiled((6, 5), added, False, alpha=0.5).steps) == 2
    assert len(compiled((6, 5), added, False, c=real(3, 7)).steps) == 2
    half = Graph()
    y = anydml.gemm(half.input((6, 5), np.float16), real(1, 5, 7).astype(np.float16))
    assert len(half.compile([y + half.input((7,), np.float16)]).steps) == 2
    graph = Graph()
    y = anydml.gemm(graph.input((6, 5)), real(1, 5, 7))
    both = graph.compile([y, y + graph.input((7,))])
    assert len(both.steps) == 2
    first, second = both(x, added)
    np.testing.assert_array_equal(second, anydml.add(first, added))


def test_what_is_computed_later() -> None:
    """The product takes the place of the addition, which stands behind what it reads."""
    graph = Graph()
    x = graph.input((6, 5))
    y = anydml.gemm(x, real(1, 5, 7))
    later = anydml.gemm(anydml.exp(x), real(3, 5, 7))
    run = graph.compile([y + later])
    x = real(0, 6, 5)
    expected = anydml.add(anydml.gemm(x, real(1, 5, 7)), anydml.gemm(anydml.exp(x), real(3, 5, 7)))
    np.testing.assert_array_equal(run(x), expected)


@pytest.mark.parametrize("activation", ["swish", "hard_swish"])
def test_activations_that_no_desc_fuses_are_part_of_a_convolution(activation: str) -> None:
    """The same bits as apart, by one kernel."""
    generator = np.random.default_rng(4)
    x, weights = (generator.standard_normal(shape).astype(np.float32) for shape in ((1, 8, 9, 7), (5, 8, 3, 3)))
    graph = Graph("cpu")
    result = getattr(anydml, activation)(anydml.convolution(graph.input(x.shape), weights))
    compiled = graph.compile([result])
    assert len(compiled.steps) == 1
    apart = getattr(anydml, activation)(anydml.convolution(x, weights))
    np.testing.assert_array_equal(compiled(x), apart)
