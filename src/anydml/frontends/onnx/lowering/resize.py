"""Interpolation: Resize and Upsample, by RESAMPLE where it says what is wanted, and else by weighted sums of taps.

Element o of an axis is at place(o) of the input, an affine function of o. RESAMPLE says places, linear weights and
nearest elements of up to four dimensions, exactly. Cubic weights, those that leave out what is outside, and other types
are sums of K elements for each of the output's, along one axis after the other:

    y[o] = sum over k of weight[o, k] * x[element[o, k]]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from ..values import Shape
from .shapes import axes_of, filled


@dataclass(frozen=True)
class Axis:
    """How a dimension is resized: element o of the output is at (o - behind) / scale - before of the input.

    Attributes:
        number: the dimension's.
        size: the input's.
        out_size: the output's.
        scale: elements of the output for one of the input, of what places are measured by.
        before: RESAMPLE's InputPixelOffset.
        behind: its OutputPixelOffset.
        given: the scale that the node says, or its sizes.
    """

    number: int
    size: int
    out_size: int
    scale: float
    before: float
    behind: float
    given: float

    def places(self) -> Any:
        """Those of the output's elements."""
        return (np.arange(self.out_size) - self.behind) / self.scale - self.before

    def is_identity(self) -> bool:
        """Whether each element stays where it is."""
        return self.size == self.out_size and bool(np.all(self.places() == np.arange(self.size)))


@dataclass(frozen=True)
class _Kind:
    """What the node asks for."""

    mode: str
    transform: str
    rounding: str
    antialias: bool
    excludes: bool
    cubic: float
    extrapolation: float


def _kind_of(node: NodeContext) -> _Kind:
    """Resize before operator set 11, as Upsample, is asymmetric, and rounds away from what it skips."""
    is_old = node.op == "Upsample" or node.opset < 11
    return _Kind(
        mode=node.get("mode", "nearest"),
        transform=node.get("coordinate_transformation_mode", "asymmetric" if is_old else "half_pixel"),
        rounding=node.get("nearest_mode", "simple" if is_old else "round_prefer_floor"),
        antialias=bool(node.get("antialias", 0)),
        excludes=bool(node.get("exclude_outside", 0)),
        cubic=node.get("cubic_coeff_a", -0.75),
        extrapolation=node.get("extrapolation_value", 0.0),
    )


def resize(node: NodeContext) -> Any:
    kind, shape = _kind_of(node), node.shape(0)
    axes = axes_of(node.get("axes", range(len(shape))), len(shape))
    scales, sizes = _scales(node, shape, axes)
    regions = _regions(node, kind, axes)
    found = [
        _axis(kind, axis, shape[axis], size, scale, regions.get(axis, (0.0, 1.0)))
        for axis, size, scale in zip(axes, sizes, scales, strict=True)
    ]
    wanted = [*shape]
    for each in found:
        wanted[each.number] = each.out_size
    moved = [each for each in found if not each.is_identity()]
    return filled(node, tuple(wanted), lambda: _resized(node, kind, moved))


def _scales(node: NodeContext, shape: Shape, axes: Sequence[int]) -> tuple[list[float], list[int]]:
    """The scale and the output's size of each axis: one says the other."""
    if node.op == "Upsample":
        scales = node.get("scales") if node.opset < 9 else node.known(1).tolist()
    else:
        i = 1 if node.opset < 11 else 2
        scales = node.known(i).tolist() if node.has(i) and 0 not in node.shape(i) else None
    if scales is not None:
        single = [float(np.float32(scale)) for scale in scales]
        return single, [math.floor(shape[axis] * scale) for axis, scale in zip(axes, single, strict=True)]
    sizes = node.integers(3)
    if sizes is None:
        raise NotLowered("neither scales nor sizes")
    ratios = [size / shape[axis] for axis, size in zip(axes, sizes, strict=True)]
    choose: Any = {"not_larger": min, "not_smaller": max}.get(node.get("keep_aspect_ratio_policy", "stretch"))
    if choose is None:
        return ratios, sizes
    ratio = choose(ratios)
    return [ratio] * len(axes), [math.floor(ratio * shape[axis] + 0.5) for axis in axes]


def _regions(node: NodeContext, kind: _Kind, axes: Sequence[int]) -> dict[int, tuple[float, float]]:
    if kind.transform != "tf_crop_and_resize":
        return {}
    roi = np.asarray(node.known(1), np.float64).reshape(2, -1)
    return {axis: (float(roi[0, i]), float(roi[1, i])) for i, axis in enumerate(axes)}


def _axis(kind: _Kind, axis: int, size: int, out_size: int, scale: float, region: tuple[float, float]) -> Axis:
    """The places of ONNX's transformations of coordinates."""
    before, behind, factor = 0.5, -0.5, scale
    length = size * scale
    if kind.transform in ("asymmetric", "align_corners", "tf_crop_and_resize"):
        before, behind = 0.0, 0.0
    if kind.transform == "half_pixel_symmetric":
        before = 0.5 - size / 2 * (1 - out_size / length)
    elif kind.transform == "pytorch_half_pixel" and out_size == 1:
        before, behind = 0.0, 0.0
    elif kind.transform == "tf_half_pixel_for_nn":
        before = 0.0
    elif kind.transform == "align_corners":
        # ONNX's output is as long as the scale says, be it no whole number.
        factor = (length - 1) / (size - 1) if length != 1 and min(out_size, size) > 1 else 1.0
    elif kind.transform == "tf_crop_and_resize":
        start, end = region
        if out_size == 1:
            before = -(start + end) / 2 * (size - 1)
        elif end == start or size == 1:
            raise NotLowered("a region of one element that is enlarged")
        else:
            before = -start * (size - 1)
            factor = (out_size - 1) / ((end - start) * (size - 1))
    return Axis(axis, size, out_size, factor, before, behind, scale)


def _resized(node: NodeContext, kind: _Kind, axes: list[Axis]) -> Expression:
    x, dtype = node.x(0), node.dtype(0)
    if not axes:
        return x
    if kind.mode == "nearest":
        y = _nearest(node, kind, x, axes)
    else:
        if dtype not in _RESAMPLED:
            raise NotLowered(f"interpolated elements of {dtype}; DirectML has float32, float16 and integers of 8 bits")
        y = _weighted(node, kind, x, axes)
    return _extrapolated(node, kind, y, axes)


def _nearest(node: NodeContext, kind: _Kind, x: Expression, axes: list[Axis]) -> Expression:
    roundings = {kind.rounding if kind.rounding != "simple" else "ceil" if axis.scale < 1 else "floor" for axis in axes}
    # Offsets that single precision would round may be on the other side of an element's end.
    is_plain = all(axis.before in (0.0, 0.5) for axis in axes)
    if len(roundings) == 1 and is_plain and node.dtype(0) in _RESAMPLED:
        (rounding,) = roundings
        half = {"round_prefer_floor": 0.5, "round_prefer_ceil": -0.5}.get(rounding, 0.0)
        upward = rounding in ("ceil", "round_prefer_floor")
        found = _resampled(node, x, axes, "NEAREST_NEIGHBOR", half, upward, False)
        if found is not None:
            return found
    for axis in axes:
        rounding = kind.rounding if kind.rounding != "simple" else "ceil" if axis.scale < 1 else "floor"
        elements = np.clip(_ROUNDINGS[rounding](axis.places()), 0, axis.size - 1).astype(np.int32)
        x = node.call("gather", x, node.constant(elements), axis.number)
    return x


_RESAMPLED = tuple(map(np.dtype, ("float32", "float16", "int8", "uint8")))
_ROUNDINGS: dict[str, Any] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda places: np.ceil(places - 0.5),
    "round_prefer_ceil": lambda places: np.floor(places + 0.5),
}


def _weighted(node: NodeContext, kind: _Kind, x: Expression, axes: list[Axis]) -> Expression:
    """Sums of weighted elements; integers are the nearest ones, of two the even one, as RESAMPLE has them."""
    if kind.mode == "linear" and not kind.excludes:
        found = _resampled(node, x, axes, "LINEAR", 0.0, False, kind.antialias)
        if found is not None:
            return found
    wide = x.astype(np.float32)
    for axis in axes:
        elements, weights = _taps(kind, axis)
        parts = node.call("gather", wide, node.constant(elements), axis.number)
        sizes = [1] * parts.ndim
        sizes[axis.number : axis.number + 2] = weights.shape
        product = parts * node.constant(weights.reshape(sizes).astype(np.float32))
        wide = node.call("reduce", product, "sum", [axis.number + 1])
        wide = wide.reshape(*[size for i, size in enumerate(parts.shape) if i != axis.number + 1])
    if x.dtype.kind != "f":
        ends = np.iinfo(x.dtype)
        wide = node.call("clip", node.call("round", wide), float(ends.min), float(ends.max))
    return wide.astype(x.dtype)


def _taps(kind: _Kind, axis: Axis) -> tuple[Any, Any]:
    """The elements, and weights that add up to 1, that each of the output's is made of: {output's size, taps}."""
    places = axis.places()
    stretch = min(axis.given, 1.0) if kind.antialias else 1.0
    reach = 1 if kind.mode == "linear" else 2
    span = math.ceil(reach / stretch)
    elements = np.floor(places)[:, None] + np.arange(1 - span, span + 1)
    distances = np.abs(elements - places[:, None]) * stretch
    weights = np.maximum(1 - distances, 0) if kind.mode == "linear" else _cubic(distances, kind.cubic)
    if kind.excludes:
        weights[(elements < 0) | (elements >= axis.size)] = 0
    return np.clip(elements, 0, axis.size - 1).astype(np.int32), weights / weights.sum(1, keepdims=True)


def _cubic(d: Any, a: float) -> Any:
    """Keys' cubic convolution: two polynomials of the distance."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _resampled(
    node: NodeContext, x: Expression, axes: list[Axis], mode: str, half: float, upward: bool, antialias: bool
) -> Expression | None:
    """RESAMPLE, which has up to four dimensions: those that stay as they are, are put together where there are more."""
    by_number = {axis.number: axis for axis in axes}
    groups: list[tuple[int, Axis | None]] = []
    for i, size in enumerate(x.shape):
        if i in by_number:
            groups.append((size, by_number[i]))
        elif groups and groups[-1][1] is None and x.ndim > 4:
            groups[-1] = (groups[-1][0] * size, None)
        else:
            groups.append((size, None))
    if len(groups) > 4:
        return None
    wanted = [by_number[i].out_size if i in by_number else size for i, size in enumerate(x.shape)]
    options: dict[str, Any] = (
        {} if mode == "LINEAR" else {"rounding_direction": "INCREASING" if upward else "DECREASING"}
    )
    found: Expression = node.call(
        "resample",
        x if len(groups) == x.ndim else x.reshape(*[size for size, _ in groups]),
        [1.0 if axis is None else axis.scale for _, axis in groups],
        mode,
        input_pixel_offsets=[half if axis is None else axis.before + half for _, axis in groups],
        output_pixel_offsets=[0.0 if axis is None else axis.behind for _, axis in groups],
        antialiased=antialias,
        output_sizes=[size if axis is None else axis.out_size for size, axis in groups],
        **options,
    )
    return found if found.shape == tuple(wanted) else found.reshape(*wanted)


def _extrapolated(node: NodeContext, kind: _Kind, y: Expression, axes: list[Axis]) -> Expression:
    """A value in place of what lies beyond the ends, where the node crops."""
    if kind.transform != "tf_crop_and_resize":
        return y
    for axis in axes:
        places = axis.places()
        beyond = (places < 0) | (places > axis.size - 1)
        if beyond.any():
            sizes = [-1 if i == axis.number else 1 for i in range(y.ndim)]
            value = np.array([kind.extrapolation], y.dtype)
            y = node.call("if_", node.constant(beyond.reshape(sizes)), node.constant(value), y)
    return y


LOWERINGS: dict[str, Lowering] = {
    "Resize": resize,
    "Upsample": resize,
}
