"""Memory that cannot be had ends in a MemoryError, whichever thread asks for it: of a result, or of what a kernel needs
beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.native, pytest.mark.slow]

NO_ROOM = """
import os

os.environ["OMP_NUM_THREADS"] = "4"
import resource
import numpy as np
import anydml

indices = np.zeros(8, np.uint32)

def roi_align_grad(width, out):
    gradients, roi = np.ones((1, 8, 2, 2), np.float32), np.array([[0, 0, width - 1, 15]], np.float32)
    return anydml.roi_align_grad(gradients, roi, indices[:1], output_sizes=(1, 8, 16, width), out=[out])

def roi_align(width, out):
    x = np.broadcast_to(np.float32(1), (1, 8, 16, width))
    roi = np.tile(np.array([0, 0, width - 1, 15], np.float32), (8, 1))
    return anydml.roi_align(x, roi, indices, (2, 2), out=out)

def roi_pooling(width, out):
    x = np.broadcast_to(np.float32(1), (1, 8, 16, width))
    roi = np.tile(np.array([0, 0, 0, width - 1, 15], np.float32), (8, 1))
    return anydml.roi_pooling(x, roi, (2, 2), out=out)

def fold(width, out):
    return anydml.fold(np.broadcast_to(np.uint8(1), (1, 8 * 16, width)), (16, width), (16, 1))

def unfold(width, out):
    return anydml.unfold(np.broadcast_to(np.uint8(1), (1, 8, 16, width)), (16, 1))

call, shape, width = {call}, {shape}, {width}
out = np.zeros(shape, np.float32) if shape else None
small = out[..., :2048] if shape and shape[-1] == width else out
call(2048, small)
with open("/proc/self/statm") as pages:
    used = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), resource.RLIM_INFINITY))
try:
    call(width, out)
except anydml.DMLMemoryError as problem:
    said = str(problem)
else:
    raise AssertionError("there was room")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
call(2048, small)
assert call.__name__.upper() in said and ("(A4)" in said or "bytes of tensors, expected what the kernel" in said), said
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux, which tells what a process uses")
@pytest.mark.parametrize(
    ("call", "shape", "width"),
    [
        ("roi_align_grad", (1, 8, 16, 1 << 20), 1 << 20),
        ("roi_align", (8, 8, 2, 2), 1 << 24),
        ("roi_pooling", (8, 8, 2, 2), 1 << 24),
        ("fold", (), 1 << 20),
        ("unfold", (), 1 << 20),
    ],
)
def test_no_room(call: str, shape: tuple[int, ...], width: int) -> None:
    """And where there is room again, the same call computes."""
    command = [sys.executable, "-c", NO_ROOM.format(call=call, shape=shape, width=width)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
