"""The networks of PyDirectML's samples give what the same networks give in PyTorch, and by the references; native
kernels serve what takes their time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import pydirectml as dml
from anydml.operators import OPERATORS
from harness import GPU
from networks import Built, Eager, Owned, candy, mnist, mobilenet, squeezenet, super_resolution

pytestmark = pytest.mark.slow

NETWORKS = {
    mnist: (1, 1, 28, 28),
    squeezenet: (1, 3, 224, 224),
    mobilenet: (1, 3, 224, 224),
    super_resolution: (1, 1, 56, 56),
    candy: (1, 3, 88, 88),
}
NATIVE_FAMILIES = ("convolution", "pooling", "max_pooling", "normalization")
"""What a network takes its time for."""
each_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)


def picture(sizes: tuple[int, ...]) -> np.ndarray:
    """Waves, which nets see more in than in noise."""
    n, c, h, w = np.indices(sizes)
    return (0.5 + 0.5 * np.sin(0.11 * h * (1 + c) + 0.07 * w + n)).astype(np.float32)


def image_for(network: Callable[..., Any], most: int = 224) -> np.ndarray:
    n, c, h, w = NETWORKS[network]
    return picture((n, c, min(h, most), min(w, most))) * (255 if network is candy else 1)


@cache
def eager(network: Callable[..., Any], most: int) -> np.ndarray:
    """What a network gives in PyTorch, however its weights are bound here."""
    peer = Eager()
    return peer.computed(network(peer, image_for(network, most)))


@cache
def by_reference(network: Callable[..., Any]) -> np.ndarray:
    """What a network gives by the references, which own no weights."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANYDML_DEVICE", "reference")
        reference = Built(dml.Device())
        return reference.computed(network(reference, image_for(network)))


def assert_near(y: np.ndarray, expected: np.ndarray) -> None:
    assert y.shape == expected.shape
    assert np.abs(y - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [Built, Owned])
@each_network
def test_networks(network: Callable[..., Any], kind: type[Built], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    is_interpreted = GPU and os.environ.get("TRITON_INTERPRET") == "1"
    if network is candy and is_interpreted:
        pytest.skip("its normalisations take minutes in the interpreter, which has cases of them")
    # Of pictures of 224 x 224 the interpreter takes minutes, too.
    most = 64 if is_interpreted else 224
    monkeypatch.setenv("ANYDML_DEVICE", GPU or "cpu")
    built = kind(dml.Device())
    assert_near(built.computed(network(built, image_for(network, most))), eager(network, most))


@pytest.mark.parametrize("kind", [Built, Owned])
@each_network
def test_no_network_waits_for_the_reference(
    network: Callable[..., Any], kind: type[Built], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANYDML_DEVICE", "cpu")
    built = kind(dml.Device())
    y = network(built, image_for(network))
    text = built.build(y).explain()
    served = re.findall(r"([A-Z0-9_]+) is served by (\w+):", text)
    assert "CONVOLUTION" in {name for name, _ in served}
    waits = [name for name, engine in served if engine != "cpu" and family_of(name) in NATIVE_FAMILIES]
    assert not waits, text
    assert_near(built.computed(y), by_reference(network))


def family_of(name: str) -> str:
    """A chain is an operator of graphs alone."""
    return OPERATORS[name].family if name in OPERATORS else ""
