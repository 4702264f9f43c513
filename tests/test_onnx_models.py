"""The classifiers in ONNX's wheel: as given, with the outputs that come with them, and with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

import onnx

import anydml.onnx
from onnx_models import LIGHT, feeds_of, with_random_weights

pytestmark = pytest.mark.slow

NAMES = ("densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet")
"""Those with few enough weights for a test; ``python tests/onnx_models.py`` has the other three, too."""


@pytest.mark.parametrize("name", NAMES)
def test_as_given(name: str) -> None:
    """Their weights are constants, so that this looks at the graph rather than at arithmetic."""
    session = anydml.onnx.InferenceSession(LIGHT / f"light_{name}.onnx")
    (info,) = session.get_inputs()
    stored = onnx.TensorProto.FromString(Path(LIGHT / f"light_{name}_output_0.pb").read_bytes())
    wanted = onnx.numpy_helper.to_array(stored)
    shape = [size for size in info.shape or () if isinstance(size, int)]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / np.float32(np.prod(shape))
    (found,) = session.run(None, {info.name: x})
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_with_random_weights(name: str) -> None:
    """Within 1e-4 of the largest output beside ONNX Runtime."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    model = with_random_weights(onnx.load(LIGHT / f"light_{name}.onnx"))
    session = anydml.onnx.InferenceSession(model)
    feeds = feeds_of(session)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    peer = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    for found, wanted in zip(session.run(None, feeds), peer.run(None, feeds), strict=True):
        assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()
