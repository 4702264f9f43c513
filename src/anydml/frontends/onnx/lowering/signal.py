"""Fourier transforms, as products with constant cosines, and what belongs to spectra."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered

_MOST = 1 << 26
"""Numbers of a constant matrix of cosines; a transform of as many has to be a fast one, which DirectML has not."""


def cosines(rows: int, count: int, results: int, parts: int, is_inverse: bool, is_real: bool = False) -> Any:
    """The matrix of a transform, {rows, parts, results, 2}: X[j] = sum over k of x[k] e^(-2 pi i j k / count).

    Angles are of j * k modulo count, in double precision. The inverse has the other sign, and is divided by count.

    Args:
        rows: how many numbers are given.
        count: the length of the transform.
        results: how many are wanted.
        parts: 1 for real numbers, 2 for those with an imaginary part.
        is_inverse: whether it is the inverse.
        is_real: whether real results alone are wanted, {rows, parts, results, 1}, of the given half of a spectrum.
    """
    if rows * parts * results * 2 > _MOST:
        raise NotLowered(f"a transform of length {count}, as a product with a matrix of {results} x {rows}")
    angles = np.outer(np.arange(rows), np.arange(results)) % count * (2 * np.pi / count)
    real, imaginary = np.cos(angles), np.sin(angles) if is_inverse else -np.sin(angles)
    # (a + ib)(c + is) = (ac - bs) + i(as + bc)
    found = np.stack([np.stack([real, imaginary], -1), np.stack([-imaginary, real], -1)], 1)[:, :parts]
    if is_real:
        # The other half is the complex conjugate: all but the first number, and the one in the middle, count twice.
        times = np.full(rows, 2.0)
        times[0] = 1
        if count % 2 == 0 and rows == count // 2 + 1:
            times[-1] = 1
        found = (found * times[:, None, None, None])[..., :1]
    return found / count if is_inverse else found


def dft(node: NodeContext) -> Any:
    """Along an axis of {..., 1} or, with imaginary parts, {..., 2}."""
    x = node.x(0)
    rank = x.ndim
    axis = (node.number(2, -2) if node.opset >= 20 else node.get("axis", 1)) % rank
    if axis == rank - 1:
        raise NotLowered("a transform along real and imaginary parts")
    is_inverse, is_half = bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    given, parts = x.shape[axis], x.shape[-1]
    is_real = is_inverse and is_half
    count = node.number(1, 2 * (given - 1) if is_real else given)
    rows = min(given, count // 2 + 1 if is_real else count)
    results = count // 2 + 1 if is_half and not is_inverse else count
    matrix = cosines(rows, count, results, parts, is_inverse, is_real).astype(x.dtype)
    of_result = matrix.shape[-1]
    others = [i for i in range(rank - 1) if i != axis]
    seen = x[(slice(None),) * axis + (slice(rows),)] if rows < given else x
    sizes = [x.shape[i] for i in others]
    flat = node.call("identity", seen.transpose(*others, axis, rank - 1)).reshape(prod(sizes), rows * parts)
    y: Expression = node.call("gemm", flat, node.constant(matrix.reshape(rows * parts, results * of_result)))
    y = y.reshape(*sizes, results, of_result)
    order = [*range(axis), rank - 2, *range(axis, rank - 2), rank - 1]
    return node.call("identity", y.transpose(order))


def stft(node: NodeContext) -> Any:
    """Transforms of frames of {batch, length, 1 or 2}: a convolution with cosines, a step for each frame."""
    x, step = node.x(0), node.number(1)
    batch, length, parts = x.shape
    frame = node.number(3, node.shape(2)[0] if node.has(2) else None)
    if frame is None or frame > length:
        raise NotLowered(f"frames of {frame} of a signal of {length}")
    if node.has(2) and node.shape(2) != (frame,):
        raise NotLowered(f"a window of shape {node.shape(2)} for frames of {frame}")
    results = frame // 2 + 1 if node.get("onesided", 1) else frame
    # {results, 2, parts, frame}
    matrix = cosines(frame, frame, results, parts, False).transpose(2, 3, 1, 0)
    filters = node.constant(np.ascontiguousarray(matrix.reshape(2 * results, parts, 1, frame)).astype(x.dtype))
    if node.has(2):
        filters = filters * node.x(2).astype(x.dtype).reshape(1, 1, 1, frame)
    channels = node.call("identity", x.transpose(0, 2, 1)).reshape(batch, parts, 1, length)
    y: Expression = node.call("convolution", channels, filters, strides=[1, step])
    frames = y.shape[3]
    return node.call("identity", y.reshape(batch, results, 2, frames).transpose(0, 3, 1, 2))


def mel_weights(node: NodeContext) -> Any:
    """A constant matrix of {dft_length / 2 + 1, bins}: triangles between places that are even on the mel scale."""
    bins, length, rate = (node.number(i) for i in range(3))
    low, high = (node.number(i) for i in (3, 4))
    dtype = onnx.helper.tensor_dtype_to_np_dtype(node.get("output_datatype", 1))
    ends = 2595 * np.log10(1 + np.array([low, high], np.float64) / 700)
    mel = ends[0] + np.arange(bins + 2) * ((ends[1] - ends[0]) / (bins + 2))
    places = np.floor((length + 1) * 700 * (10 ** (mel / 2595) - 1) / rate).astype(np.int64)
    found = np.zeros((length // 2 + 1, bins), np.float64)
    for i in range(bins):
        start, peak, end = places[i : i + 3]
        if peak == start:
            found[peak, i] = 1
        else:
            found[start : peak + 1, i] = np.arange(peak - start + 1) / (peak - start)
        if end > peak:
            found[peak:end, i] = np.arange(end - peak, 0, -1) / (end - peak)
    return found.astype(dtype)


def determinant(node: NodeContext) -> Any:
    """Of matrices of at most three rows, by minors."""
    x = node.x(0)
    n = x.shape[-1]
    if x.shape[-2] != n or n > 3:
        raise NotLowered(f"determinants of {x.shape[-2]} x {n}")

    def at(i: int, j: int) -> Expression:
        return x[..., i : i + 1, j : j + 1]

    def minor(i: int, j: int, k: int) -> Expression:
        return at(i, j) * at(i + 1, k) - at(i, k) * at(i + 1, j)

    if n == 1:
        found = at(0, 0)
    elif n == 2:
        found = minor(0, 0, 1)
    else:
        found = at(0, 0) * minor(1, 1, 2) - at(0, 1) * minor(1, 0, 2) + at(0, 2) * minor(1, 0, 1)
    return node.shaped(found, node.shape(0)[:-2])


LOWERINGS: dict[str, Lowering] = {
    "DFT": dft,
    "Det": determinant,
    "MelWeightMatrix": mel_weights,
    "STFT": stft,
}
