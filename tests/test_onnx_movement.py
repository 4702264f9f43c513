"""What moves, gathers, scatters and resamples elements of ONNX models, beside ONNX Runtime on forms from a seed."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import anydml.onnx
from onnx_forms import Form, check, feeds_of, model_of

TYPES = tuple(map(np.dtype, ("f4", "f2", "f8", "i8", "i4", "i1", "u1", "u2", "?")))
SUMMED = tuple(map(np.dtype, ("f4", "i8", "i4")))


class Draw:
    """Sizes, arrays and choices from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def size(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def shape(self, least: int, most: int, size: int = 4) -> tuple[int, ...]:
        return tuple([self.size(1, size) for _ in range(self.size(least, most))])

    def one(self, *choices: Any) -> Any:
        return choices[self.size(0, len(choices) - 1)]

    def order(self, count: int) -> list[int]:
        return [int(each) for each in self.random.permutation(count)]

    def axis(self, rank: int) -> int:
        return self.size(-rank, rank - 1)

    def known(self, *inputs: int) -> tuple[int, ...]:
        """These inputs as initializers, or fed, so that they are read on the host."""
        return inputs if self.size(0, 1) else ()

    def array(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        dtype = self.one(*TYPES) if dtype is None else np.dtype(dtype)
        low = 0 if dtype.kind in "ub" else -20
        found = self.random.integers(low, 20, shape) + (self.random.random(shape) if dtype.kind == "f" else 0)
        return np.asarray(found % 2 if dtype.kind == "b" else found).astype(dtype)


def int64(*values: Any) -> Any:
    return np.array(values, np.int64)


def slices(draw: Draw) -> Form:
    shape = draw.shape(1, 5)
    axes = draw.order(len(shape))[: draw.size(1, len(shape))]
    steps = [draw.one(1, 1, 2, -1, -2, 3) for _ in axes]
    starts = [draw.size(-shape[axis] - 2, shape[axis] + 2) for axis in axes]
    least, most = -(2**31) + 1, 2**31 - 1
    ends = [
        draw.one(draw.size(-shape[axis] - 2, shape[axis] + 2), most if step > 0 else least)
        for axis, step in zip(axes, steps, strict=True)
    ]
    if draw.size(0, 3) == 0:
        return Form("Slice", 9, {"starts": starts, "ends": ends, "axes": axes}, (draw.array(shape, "f4"),))
    given = [int64(*each) for each in (starts, ends, [axis - len(shape) for axis in axes], steps)]
    return Form("Slice", 13, {}, (draw.array(shape), *given), draw.known(1, 2, 3, 4))


def pads(draw: Draw) -> Form:
    shape = tuple([size + 1 for size in draw.shape(1, 4)])
    mode = draw.one("constant", "edge", "reflect", "wrap")
    x = draw.array(shape)
    # ONNX's reference, which has all types, leaves nothing out.
    least = -1 if mode in ("constant", "edge") and x.dtype in (np.float32, np.int32, np.int64) else 0
    padding = [draw.size(least, size - 1) for _ in range(2) for size in shape]
    if mode != "wrap" and draw.size(0, 2) == 0:
        return Form("Pad", 10, {"mode": mode, "pads": padding, "value": 2.5}, (draw.array(shape, "f4"),))
    value = (draw.array((), x.dtype),) if mode == "constant" else ()
    return Form("Pad", 19, {"mode": mode}, (x, int64(*padding), *value), draw.known(1, 2))


def joins(draw: Draw) -> Form:
    shape, dtype = draw.shape(1, 5), draw.one(*TYPES)
    axis = draw.axis(len(shape))
    parts = [[size for size in shape] for _ in range(draw.size(1, 4))]
    for i, part in enumerate(parts):
        part[axis] = draw.size(int(i == 0), 3)
    return Form("Concat", 13, {"axis": axis}, tuple([draw.array(tuple(part), dtype) for part in parts]))


def splits(draw: Draw) -> Form:
    shape = draw.shape(1, 4, 7)
    axis, count = draw.axis(len(shape)), draw.size(1, 3)
    size = shape[axis]
    if draw.size(0, 1):
        count = min(count, size)
        return Form("Split", 18, {"axis": axis, "num_outputs": count}, (draw.array(shape),), outputs=count)
    cuts = sorted(draw.size(0, size) for _ in range(count - 1))
    parts = np.diff([0, *cuts, size]).tolist()
    if draw.size(0, 1):
        return Form("Split", 11, {"axis": axis, "split": parts}, (draw.array(shape, "f4"),), outputs=count)
    return Form("Split", 13, {"axis": axis}, (draw.array(shape), int64(*parts)), draw.known(1), count)


def shapes(draw: Draw) -> Form:
    """Reshape, Transpose, Squeeze, Unsqueeze, Flatten."""
    shape = draw.shape(1, 4)
    x, rank = draw.array(shape), len(shape)
    op = draw.one("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten")
    if op == "Reshape":
        whole = int64(*draw.one((-1,), (shape[0], -1), (0, -1), (-1, shape[-1]), (0,) * rank))
        return Form(op, 14, {}, (x, whole), draw.known(1))
    if op == "Transpose":
        return Form(op, 13, {"perm": draw.order(rank)} if draw.size(0, 3) else {}, (x,))
    if op == "Flatten":
        return Form(op, 13, {"axis": draw.size(-rank, rank)}, (x,))
    if op == "Squeeze":
        x = x.reshape(1, *shape, 1)
        axes = draw.one([0], [-1], [rank + 1, 0])
    else:
        axes = draw.order(rank + 2)[:2]
    if draw.size(0, 1):
        return Form(op, 11, {"axes": axes}, (x,))
    return Form(op, 13, {}, (x, int64(*axes)), draw.known(1))


def repeats(draw: Draw) -> Form:
    """Tile, Expand, ConstantOfShape, Range, EyeLike, Trilu, CenterCropPad."""
    shape = draw.shape(1, 4)
    op = draw.one("Tile", "Expand", "ConstantOfShape", "Range", "EyeLike", "Trilu", "CenterCropPad")
    if op == "Tile":
        return Form(op, 13, {}, (draw.array(shape), int64(*[draw.size(1, 3) for _ in shape])), draw.known(1))
    if op == "Expand":
        own = tuple([draw.one(1, size) for size in shape])[draw.size(0, len(shape)) :]
        return Form(op, 13, {}, (draw.array(own), int64(*shape)), draw.known(1))
    if op == "ConstantOfShape":
        from onnx.numpy_helper import from_array

        return Form(op, 9, {"value": from_array(draw.array((1,)))}, (int64(*shape),), draw.known(0))
    if op == "Range":
        dtype = draw.one("f4", "f8", "i8", "i4")
        ends = [np.array(each, dtype) for each in draw.one((-3, 9, 2), (5, -7, -3), (1, 1, 1), (0, 6, 1))]
        return Form(op, 11, {}, tuple(ends), draw.known(0, 1, 2))
    if op == "EyeLike":
        return Form(op, 9, {"k": draw.size(-3, 3), "dtype": draw.one(1, 6, 7, 9, 11)}, (draw.array((3, 5), "f4"),))
    if op == "Trilu":
        x = draw.array((*shape, draw.size(1, 5)), draw.one("f4", "f8", "i8", "i4", "?"))
        return Form(op, 14, {"upper": draw.size(0, 1)}, (x, np.array(draw.size(-4, 4))), draw.known(1))
    axes = draw.order(len(shape))[: draw.size(1, len(shape))]
    wanted = int64(*[draw.size(1, 7) for _ in axes])
    return Form(op, 18, {"axes": axes}, (draw.array(shape, "f4"), wanted), draw.known(1))


def blocks(draw: Draw) -> Form:
    """DepthToSpace, SpaceToDepth, ReverseSequence, Col2Im."""
    op = draw.one("DepthToSpace", "SpaceToDepth", "ReverseSequence", "Col2Im")
    block = draw.size(1, 3)
    if op == "DepthToSpace":
        x = draw.array((2, block**2 * 2, *draw.shape(2, 2)), "f4")
        return Form(op, 13, {"blocksize": block, "mode": draw.one("DCR", "CRD")}, (x,))
    if op == "SpaceToDepth":
        return Form(op, 13, {"blocksize": block}, (draw.array((2, 3, block * 2, block * 3), "f4"),))
    if op == "ReverseSequence":
        shape, time = draw.shape(2, 4), draw.size(0, 1)
        lengths = draw.random.integers(1, shape[time] + 1, shape[1 - time])
        return Form(op, 10, {"time_axis": time, "batch_axis": 1 - time}, (draw.array(shape), lengths), draw.known(1))
    n = draw.size(1, 3)
    window, strides, dilations = ([draw.size(1, 2) for _ in range(n)] for _ in range(3))
    padding, image = [draw.size(0, 1) for _ in range(2 * n)], [draw.size(4, 6) for _ in range(n)]
    counts = [
        (image[i] + padding[i] + padding[n + i] - dilations[i] * (window[i] - 1) - 1) // strides[i] + 1
        for i in range(n)
    ]
    x = draw.array((2, prod(window) * 2, prod(counts)), "f4")
    attributes = {"strides": strides, "dilations": dilations, "pads": padding}
    # ONNX Runtime leaves out dilations of one dimension.
    return Form(op, 18, attributes, (x, int64(*image), int64(*window)), draw.known(1, 2), by_reference=True)


def gathers(draw: Draw) -> Form:
    """Gather, GatherElements, GatherND, OneHot."""
    shape = draw.shape(1, 4)
    op, axis = draw.one("Gather", "GatherElements", "GatherND", "OneHot"), draw.axis(len(shape))
    size = shape[axis]
    if op == "Gather":
        indices = np.asarray(draw.random.integers(-size, size, draw.shape(0, 2)), draw.one(np.int64, np.int32))
        return Form(op, 13, {"axis": axis}, (draw.array(shape), indices), draw.known(1))
    if op == "GatherElements":
        sizes = [draw.size(1, each) for each in shape]
        sizes[axis] = draw.size(1, 6)
        return Form(op, 13, {"axis": axis}, (draw.array(shape), draw.random.integers(-size, size, sizes)))
    if op == "GatherND":
        batch, depth = draw.shape(0, 1), draw.size(1, len(shape))
        sizes = batch + draw.shape(0, 2)
        tuples = np.stack([draw.random.integers(-each, each, sizes) for each in shape[:depth]], -1)
        return Form(op, 13, {"batch_dims": len(batch)}, (draw.array(batch + shape), tuples), draw.known(1))
    values, depth = draw.array((2,), draw.one("f4", "i8", "i4", "u1", "f8")), draw.size(1, 5)
    indices = draw.random.integers(-depth - 1, depth + 1, shape).astype(draw.one("f4", "i4", "i8"))
    axis = draw.axis(len(shape) + 1)
    by_reference = indices.dtype == np.int32
    return Form(op, 11, {"axis": axis}, (indices, np.array(depth), values), draw.known(1), by_reference=by_reference)


def scatters(draw: Draw) -> Form:
    """ScatterElements and ScatterND, with indices that are the same where they are combined."""
    shape, reduction = draw.shape(1, 3), draw.one("none", "add", "mul", "max", "min")
    x = draw.array(shape, draw.one(*SUMMED) if reduction != "none" else None)
    small = x // 8 if reduction == "mul" and x.dtype.kind != "?" else x
    if draw.size(0, 1):
        axis = draw.axis(len(shape))
        sizes = [draw.size(1, size) for size in shape]
        if reduction == "none":
            whole = [shape[axis] if i == axis % len(shape) else size for i, size in enumerate(sizes)]
            indices = np.argsort(draw.random.random(whole), axis).take(range(sizes[axis]), axis)
        else:
            sizes[axis] = draw.size(1, 9)
            indices = draw.random.integers(-shape[axis], shape[axis], sizes)
        updates = draw.array(indices.shape, x.dtype) // (8 if reduction == "mul" else 1)
        inputs = (small, indices, updates.astype(x.dtype))
        return Form("ScatterElements", 18, {"axis": axis, "reduction": reduction}, inputs, draw.known(1))
    depth = draw.size(1, len(shape))
    total = prod(shape[:depth])
    count = draw.size(1, total if reduction == "none" else 9)
    flat = draw.random.permutation(total)[:count] if reduction == "none" else draw.random.integers(0, total, count)
    tuples = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    updates = draw.array((count, *shape[depth:]), x.dtype) // (8 if reduction == "mul" else 1)
    inputs = (small, tuples, updates.astype(x.dtype))
    return Form("ScatterND", 18, {"reduction": reduction}, inputs, draw.known(1))


def selections(draw: Draw) -> Form:
    """What is as large as data say: NonZero, Compress, Unique; and TopK."""
    shape = draw.shape(1, 3)
    op, axis = draw.one("NonZero", "Compress", "Unique", "TopK"), draw.axis(len(shape))
    if op == "NonZero":
        return Form(op, 13, {}, (draw.array(shape, draw.one("f4", "i8", "i4", "u1", "?")) % 3 % 2 == 1,))
    if op == "Compress":
        along = draw.size(0, 1)
        size = shape[axis] if along else prod(shape)
        condition = draw.random.random(draw.size(1, size)) < 0.5
        return Form(op, 11, {"axis": axis} if along else {}, (draw.array(shape), condition), draw.known(1))
    if op == "Unique":
        x = draw.random.integers(0, 4, shape).astype(draw.one("f4", "i8", "i1"))
        attributes = {"sorted": draw.size(0, 1)} | ({"axis": axis} if draw.size(0, 1) else {})
        return Form(op, 11, attributes, (x,), outputs=4)
    x = draw.array(shape, draw.one("f4", "i8", "i4", "u1", "f2"))
    k = int64(draw.size(0, shape[axis]))
    return Form(op, 11, {"axis": axis, "largest": draw.size(0, 1)}, (x, k), draw.known(1), 2)


def grids(draw: Draw) -> Form:
    """GridSample, RoiAlign, MaxRoiPool."""
    op, images = draw.one("GridSample", "RoiAlign", "MaxRoiPool"), draw.size(1, 2)
    if op == "GridSample":
        mode = draw.one("linear", "nearest", "cubic")
        n = 2 if mode == "cubic" else draw.size(2, 3)
        x = draw.array((images, 2, *[draw.size(2, 5) for _ in range(n)]), "f4")
        places = (draw.random.random((images, *draw.shape(n, n), n)) * 3 - 1.5).astype(np.float32)
        padding = draw.one("zeros", "border", "reflection")
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": draw.size(0, 1)}
        # ONNX Runtime clamps cubic places before it takes their elements.
        return Form(op, 20, attributes, (x, places), rtol=1e-4, atol=1e-3, by_reference=mode == "cubic")
    x = draw.array((images, 2, draw.size(2, 8), draw.size(2, 8)), "f4")
    count = draw.size(1, 4)
    corners = np.sort(draw.random.random((count, 2, 2)) * 9, 1).reshape(count, 4).astype(np.float32)
    numbers = draw.random.integers(0, images, count)
    sizes, scale = [draw.size(1, 3), draw.size(1, 3)], draw.one(1.0, 0.5)
    if op == "MaxRoiPool":
        rois = np.concatenate([numbers[:, None].astype(np.float32), corners], 1)
        return Form(op, 7, {"pooled_shape": sizes, "spatial_scale": scale}, (x, rois))
    attributes = {"output_height": sizes[0], "output_width": sizes[1], "sampling_ratio": draw.size(0, 3)}
    attributes |= {"spatial_scale": scale, "mode": draw.one("avg", "max")}
    attributes["sampling_ratio"] = max(attributes["sampling_ratio"], int(attributes["mode"] == "max"))
    if draw.size(0, 1):
        attributes["coordinate_transformation_mode"] = draw.one("half_pixel", "output_half_pixel")
    opset = 16 if "coordinate_transformation_mode" in attributes else 10
    return Form(op, opset, attributes, (x, corners, numbers), rtol=1e-4, atol=1e-4)


def resizes(draw: Draw) -> Form:
    mode = draw.one("nearest", "linear", "cubic")
    shape = (draw.size(1, 2), draw.size(1, 2), draw.size(2, 7), draw.size(2, 7))
    if draw.size(0, 3) == 0 and mode != "cubic":
        return upsamples(draw, shape, mode)
    transform = draw.one("half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners")
    transform = draw.one(transform, transform, "tf_crop_and_resize")
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode == "nearest":
        attributes["nearest_mode"] = draw.one("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": draw.one(-0.5, -0.75), "exclude_outside": draw.size(0, 1)}
    roi = None
    if transform == "tf_crop_and_resize":
        attributes["extrapolation_value"] = 3.0
        roi = np.array([0, 0, draw.one(-0.11, 0.23), 0.31, 1, 1, 0.83, draw.one(0.91, 1.13)], np.float32)
    scales = np.array([1, 1, draw.one(0.5, 1, 2, 3), draw.one(0.6, 1.5, 2)], np.float32)
    # What a scale leaves of an element is nobody's where both ends are fixed.
    by_scale = draw.size(0, 1) and transform not in ("align_corners", "tf_crop_and_resize")
    sizes = None if by_scale else int64(*shape[:2], draw.size(1, 10), draw.size(1, 10))
    x = draw.array(shape, draw.one(*{"nearest": ("f4", "i4", "u1", "i1"), "cubic": ("f4", "u1")}.get(mode, ("f4",))))
    opset = draw.one(11, 13, 18, 19) if transform != "half_pixel_symmetric" else 19
    nothing = np.zeros(0, np.float32) if opset == 11 else None
    roi = nothing if roi is None else roi
    inputs = (x, roi, scales if by_scale else nothing, *(() if by_scale else (sizes,)))
    known = tuple([i for i in (1, 2, 3) if i < len(inputs) and inputs[i] is not None])
    # ONNX Runtime has no such regions along axes that it does not resize, no cubic integers, and places of single
    # precision, of which what should be whole may be less.
    by_reference = transform == "tf_crop_and_resize" or (mode == "cubic" and x.dtype == np.uint8)
    by_reference = by_reference or (mode == "nearest" and not by_scale)
    return Form(
        "Resize", opset, attributes, inputs, draw.known(*known), rtol=1e-4, atol=1e-3, by_reference=by_reference
    )


def upsamples(draw: Draw, shape: tuple[int, ...], mode: str) -> Form:
    """Upsample, and Resize before it had more than scales."""
    scales = [1.0, 1.0, draw.one(1.0, 1.5, 2.0), draw.one(1.0, 2.0, 3.0)]
    x, opset = draw.array(shape, "f4"), draw.one(7, 9, 10)
    if opset == 7:
        return Form("Upsample", 7, {"mode": mode, "scales": scales}, (x,))
    if opset == 10:
        scales[2] = draw.one(0.5, 0.6, 1.0, 2.0)
    op = "Upsample" if opset == 9 else "Resize"
    return Form(op, opset, {"mode": mode}, (x, np.array(scales, np.float32)), draw.known(1), rtol=1e-4, atol=1e-4)


FAMILIES: tuple[Callable[[Draw], Form], ...] = (
    *(slices, pads, joins, splits, shapes, repeats, blocks),
    *(gathers, scatters, selections, grids, resizes),
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_forms(family: Callable[[Draw], Form]) -> None:
    draw = Draw(sum(map(ord, family.__name__)))
    for _ in range(24):
        check(family(draw))


@pytest.mark.parametrize("dtype", ["u1", "i1"])
def test_interpolated_integers_are_the_nearest(dtype: str) -> None:
    """As DirectML's and those of ONNX's reference are, where ONNX Runtime cuts them off."""
    x = np.array([[[[0, 10, 100, 3, 77]]]], dtype)
    form = Form("Resize", 19, {"mode": "linear"}, (x, None, None, int64(1, 1, 2, 9)), (3,), atol=0, by_reference=True)
    check(form)


@pytest.mark.parametrize(
    ("op", "attributes", "inputs", "operators"),
    [
        ("Reshape", {}, (np.ones((2, 6), np.float32), int64(3, 4)), 1),
        ("Unsqueeze", {}, (np.ones((2, 6), np.float32), int64(0)), 1),
        ("Transpose", {"perm": [1, 0]}, (np.ones((2, 6), np.float32),), 1),
        ("Expand", {}, (np.ones((2, 1), np.float32), int64(2, 6)), 1),
    ],
)
def test_another_shape_is_no_operator(op: str, attributes: Any, inputs: Any, operators: int) -> None:
    """Only a model's output is written: what stands before an operator costs nothing."""
    form = Form(op, 13, attributes, inputs, tuple(range(1, len(inputs))))
    session = anydml.onnx.InferenceSession(model_of(form, [np.ones((1, 1), np.float32)]))
    session.run(None, feeds_of(form))
    assert not session.reports()[0].operators
    assert sum(len(graph.steps) for graph in session.graphs) == operators


def test_an_index_beyond_a_combined_dimension_is_refused() -> None:
    """Be there an element in the next row at its place."""
    inputs = (np.zeros((2, 3), np.float32), int64(1, 3).reshape(1, 2), np.ones((1, 2), np.float32))
    form = Form("ScatterElements", 18, {"reduction": "add", "axis": 1}, inputs)
    session = anydml.onnx.InferenceSession(model_of(form, inputs[:1]))
    with pytest.raises(anydml.DMLError, match=r"\(N4\)"):
        session.run(None, feeds_of(form))


def test_random_numbers_are_refused_with_the_reason() -> None:
    form = Form("RandomUniformLike", 13, {}, (np.zeros(3, np.float32),))
    with pytest.raises(anydml.DMLError, match="generator"):
        anydml.onnx.InferenceSession(model_of(form, form.inputs))
