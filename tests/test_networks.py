"""The networks of PyDirectML's samples give what the same networks give in PyTorch, and by the references; native
kernels serve what takes their time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pydirectml as dml
from anydml.operators import OPERATORS
from harness import GPU
from networks import Built, Eager, Owned, candy, mnist, mobilenet, squeezenet, super_resolution

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

NETWORKS = {
    mnist: (1, 1, 28, 28),
    squeezenet: (1, 3, 224, 224),
    mobilenet: (1, 3, 224, 224),
    super_resolution: (1, 1, 56, 56),
    candy: (1, 3, 88, 88),
}
NATIVE_FAMILIES = ("convolution", "pooling", "max_pooling", "normalization")
"""What a network takes its time for."""
each_network = pytest.mark.parametrize(
    ("network", "sizes"), NETWORKS.items(), ids=lambda value: getattr(value, "__name__", "")
)


def picture(sizes: tuple[int, ...]) -> np.ndarray:
    """Waves, which nets see more in than in noise."""
    n, c, h, w = np.indices(sizes)
    return (0.5 + 0.5 * np.sin(0.11 * h * (1 + c) + 0.07 * w + n)).astype(np.float32)


def assert_near(y: np.ndarray, expected: np.ndarray) -> None:
    assert y.shape == expected.shape
    assert np.abs(y - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("kind", [Built, Owned])
@each_network
def test_networks(
    network: Callable[..., Any], sizes: tuple[int, ...], kind: type[Built], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    if network is candy and GPU and os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("its normalisations take minutes in the interpreter, which has cases of them")
    monkeypatch.setenv("ANYDML_DEVICE", GPU or "cpu")
    image = picture(sizes) * (255 if network is candy else 1)
    built, eager = kind(dml.Device()), Eager()
    assert_near(built.computed(network(built, image)), eager.computed(network(eager, image)))


@pytest.mark.parametrize("kind", [Built, Owned])
@each_network
def test_no_network_waits_for_the_reference(
    network: Callable[..., Any], sizes: tuple[int, ...], kind: type[Built], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = picture(sizes) * (255 if network is candy else 1)
    monkeypatch.setenv("ANYDML_DEVICE", "cpu")
    built = kind(dml.Device())
    y = network(built, image)
    text = built.build(y).explain()
    served = re.findall(r"([A-Z0-9_]+) is served by (\w+):", text)
    assert "CONVOLUTION" in {name for name, _ in served}
    waits = [name for name, engine in served if engine != "cpu" and family_of(name) in NATIVE_FAMILIES]
    assert not waits, text
    monkeypatch.setenv("ANYDML_DEVICE", "reference")
    reference = kind(dml.Device())
    assert_near(built.computed(y), reference.computed(network(reference, image)))


def family_of(name: str) -> str:
    """A chain is an operator of graphs alone."""
    return OPERATORS[name].family if name in OPERATORS else ""
