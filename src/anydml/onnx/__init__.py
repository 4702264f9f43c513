"""ONNX models by DirectML's operators, on any machine; the extra ``onnx`` brings what it needs.

:class:`InferenceSession` runs a model, :func:`check` tells which nodes a device of a feature level takes, and
:func:`compare` where two engines diverge; ``anydml.onnx.backend`` has ONNX's backend interface.
"""

from __future__ import annotations

try:
    import onnx as _  # noqa: F401
except ModuleNotFoundError as problem:
    remedy = "anydml.onnx takes the package onnx, which reads models: pip install 'anydml[onnx]'"
    raise ModuleNotFoundError(remedy, name="onnx") from problem

from ..frontends.onnx.checking import Checked, check
from ..frontends.onnx.session import InferenceSession
from .comparing import Difference, by_anydml, by_onnx, by_onnxruntime, compare
from .feeds import random_feeds

__all__ = [
    "Checked",
    "Difference",
    "InferenceSession",
    "by_anydml",
    "by_onnx",
    "by_onnxruntime",
    "check",
    "compare",
    "random_feeds",
]
