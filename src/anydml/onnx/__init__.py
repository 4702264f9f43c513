"""ONNX models by DirectML's operators, on any machine; the extra ``onnx`` brings what it needs.

:class:`InferenceSession` runs a model; ``anydml.onnx.backend`` has ONNX's backend interface.
"""

from __future__ import annotations

from ..frontends.onnx.session import InferenceSession

__all__ = ["InferenceSession"]
