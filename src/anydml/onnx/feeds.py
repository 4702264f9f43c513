"""What a model is fed with: arrays from files, and random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ..core.errors import refuse
from ..frontends.dxdispatch.files import Refused, npy_array, source_size
from ..frontends.onnx.feeds import random_feeds

__all__ = ["random_feeds", "read_array"]


def read_array(where: str, path: Path) -> Any:
    """An array from a file: .npy, or .pb, which holds a TensorProto, as ONNX's test data have them.

    Args:
        where: what messages call it.
        path: the file.

    Raises:
        DMLError: (N3).
    """
    try:
        source_size(path)
        if path.suffix.lower() == ".pb":
            return onnx.numpy_helper.to_array(onnx.load_tensor(path))
        return np.array(npy_array(path))
    except Refused as problem:
        refuse("run", "(N3)", where, problem.found, problem.expected)
    except Exception as problem:  # protobuf's and onnx's own, of whatever a file may hold
        refuse("run", "(N3)", where, f"{str(path)!r} ({problem})"[:300], "a .npy file, or a TensorProto in a .pb file")
