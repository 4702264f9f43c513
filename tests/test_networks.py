"""The networks of PyDirectML's samples give what the same networks give in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pydirectml as dml
from harness import GPU
from networks import SHARED, Built, Eager, Owned, candy, mnist, mobilenet, squeezenet, super_resolution

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not SHARED.is_dir(), reason=f"PyDirectML's weights are not in {SHARED}"),
]

NETWORKS = {
    mnist: (1, 1, 28, 28),
    squeezenet: (1, 3, 224, 224),
    mobilenet: (1, 3, 224, 224),
    super_resolution: (1, 1, 56, 56),
    candy: (1, 3, 88, 88),
}


def picture(sizes: tuple[int, ...]) -> np.ndarray:
    """Waves, which nets see more in than in noise."""
    n, c, h, w = np.indices(sizes)
    return (0.5 + 0.5 * np.sin(0.11 * h * (1 + c) + 0.07 * w + n)).astype(np.float32)


@pytest.mark.parametrize("kind", [Built, Owned])
@pytest.mark.parametrize(("network", "sizes"), NETWORKS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_networks(
    network: Callable[..., Any], sizes: tuple[int, ...], kind: type[Built], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANYDML_DEVICE", GPU or "cpu")
    image = picture(sizes) * (255 if network is candy else 1)
    built, eager = kind(dml.Device()), Eager()
    y = built.computed(network(built, image))
    expected = eager.computed(network(eager, image))
    assert y.shape == expected.shape
    assert np.abs(y - expected).max() <= 1e-4 * np.abs(expected).max()
