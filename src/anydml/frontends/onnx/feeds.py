"""Random values for the inputs of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from ...core.errors import closest, listing, refuse
from .model import ModelInput


def random_feeds(
    inputs: Sequence[ModelInput],
    seed: int,
    sizes: Mapping[str, int] | None = None,
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """An array for each input of a model.

    Floats are of a normal distribution, integers 0 or 1, as masks and indices have them, but those of 8 bits any.

    Args:
        inputs: the model's.
        seed: of NumPy's generator.
        sizes: of dimensions that the model leaves free, by the dimension's name, or ``x[0]`` for the first of x.
        given: arrays that there are; only what they leave out is made.

    Raises:
        DMLError: (N3), a size is missing, or there is no such dimension.

    >>> from anydml.frontends.onnx.model import ModelInput
    >>> x = ModelInput("x", ["batch", 3], "tensor(float)", 1)
    >>> random_feeds([x], 0, {"batch": 2})["x"].shape
    (2, 3)
    """
    sizes, given = dict(sizes or {}), dict(given or {})
    known = {name for each in inputs for name in free_dimensions(each)}
    for name in sizes:
        if name not in known:
            refuse("run", "(N3)", f"--dim {name}", "no free dimension", listing(sorted(known)), closest(name, known))
    generator = np.random.default_rng(seed)
    feeds = {}
    for each in inputs:
        made = None if each.name in given else _made(each, sizes, generator)
        if each.name in given or made is not None:
            feeds[each.name] = given.get(each.name, made)
    return feeds


def free_dimensions(info: ModelInput) -> dict[str, int]:
    """The axes of an input that the model leaves free, by name; ``x[0]`` for one without."""
    found = {}
    for axis, size in enumerate(info.shape or ()):
        if not isinstance(size, int):
            found[size if isinstance(size, str) else f"{info.name}[{axis}]"] = axis
            found[f"{info.name}[{axis}]"] = axis
    return found


def _made(info: ModelInput, sizes: Mapping[str, int], generator: np.random.Generator) -> Any:
    if info.shape is None or info.data_type == onnx.TensorProto.STRING:
        if info.type.startswith("optional"):
            return None
        remedy = "--input NAME=FILE.npy feeds one"
        refuse("run", "(N3)", info.name, f"{info.type}, for which there are no random values", "a tensor", remedy)
    shape = []
    for axis, size in enumerate(info.shape):
        own = f"{info.name}[{axis}]"
        found = size if isinstance(size, int) else sizes.get(own, sizes.get(size or own))
        if found is None:
            remedy = f"--dim {size or own}=SIZE says it"
            refuse("run", "(N3)", own, f"a free dimension{f', {size!r}' if size else ''}", "its size", remedy)
        shape.append(found)
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(info.data_type))
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = (limits.min, limits.max) if dtype.itemsize == 1 else (0, 1)
        return generator.integers(low, high, shape, endpoint=True).astype(dtype)
    return generator.standard_normal(shape, np.float32).astype(dtype)
