"""Parts of what is summed or multiplied, in wide types: partial results of chunks, and scans that go on from carries.

Sums of floats are double, products of floats pairs of m and e that stand for m * 2^e, and sums of exponentials stand
beside the largest element and the number of those that are as large. Integers are of their own type, and wrap. The
compiled kernels compute them on chunks as they lie; NumPy does where there is no compiled module, and for the device
"reference".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.enums import AxisDirection, ReduceFunction
from ...core.strided_layout import Array, Layout

if TYPE_CHECKING:
    from ..._native import Plan

DOUBLE = np.dtype(np.float64)
PRODUCT = np.dtype([("m", np.float64), ("e", np.int64)])
EXPONENTIALS = np.dtype([("sum", np.float64), ("count", np.float64), ("largest", np.float64)])
"""The sum of e^(x - largest) over all that are less than the largest, and the number of those that are not."""

_OF_TERMS: Mapping[ReduceFunction, Any] = {
    ReduceFunction.SUM: lambda x: x,
    ReduceFunction.L1: np.abs,
    ReduceFunction.SUM_SQUARE: np.square,
}


def wide_type(function: ReduceFunction, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of partial results: of SUM, L1, SUM_SQUARE, MULTIPLY and LOG_SUM_EXP."""
    if dtype.kind != "f":
        return dtype
    if function == ReduceFunction.MULTIPLY:
        return PRODUCT
    return EXPONENTIALS if function == ReduceFunction.LOG_SUM_EXP else DOUBLE


def identity(function: ReduceFunction, dtype: np.dtype[Any]) -> Any:
    """What leaves every partial result of elements of that type as it is."""
    wide = wide_type(function, dtype)
    if wide == PRODUCT:
        return np.array((1.0, 0), PRODUCT)
    if wide == EXPONENTIALS:
        return np.array((0.0, 0.0, -np.inf), EXPONENTIALS)
    return wide.type(function == ReduceFunction.MULTIPLY)


def partial(function: ReduceFunction, x: Array, axes: Sequence[int], device: Any) -> Array:
    """The partial results of a chunk, along axes that keep size 1."""
    sizes = [1 if i in axes else size for i, size in enumerate(x.shape)]
    dtype = wide_type(function, x.dtype)
    if x.size == 0:
        return np.full(sizes, identity(function, x.dtype))
    y = np.empty(sizes, dtype)
    target = y if dtype.names is None else y[dtype.names[0]]
    attributes = ("Function", (int(function),)), ("Axes", tuple(axes))
    plan = (
        _plan("REDUCE", (Layout.of_array(x),), (Layout.of_array(target),), attributes) if _is_native(device) else None
    )
    if plan is not None:
        plan.run([x], [target])
        return y
    with np.errstate(all="ignore"):
        y[...] = _partial(function, x, tuple(axes))
    return y


def scan(
    x: Array, carries: Array, axis: int, *, is_product: bool, decreasing: bool, exclusive: bool, device: Any
) -> Array:
    """The running sums or products of a chunk along an axis, each line from its carry on.

    Args:
        x: the chunk.
        carries: of the wide type, of size 1 along the axis.
        axis: along which.
        is_product: or sums.
        decreasing: from the end.
        exclusive: without the element itself.
        device: where.
    """
    y = np.empty(x.shape, x.dtype)
    if x.size == 0:
        return y
    given = np.ascontiguousarray(carries)
    given = given if given.dtype.names is None else given[given.dtype.names[0]]
    attributes = (
        ("Axis", (axis,)),
        ("AxisDirection", (int(AxisDirection.DECREASING if decreasing else AxisDirection.INCREASING),)),
        ("HasExclusiveProduct" if is_product else "HasExclusiveSum", (int(exclusive),)),
    )
    name = "CUMULATIVE_PRODUCT" if is_product else "CUMULATIVE_SUMMATION"
    layouts = Layout.of_array(x), Layout.of_array(given)
    plan = _plan(name, layouts, (Layout.of_array(y),), attributes) if _is_native(device) else None
    if plan is not None:
        plan.run([x, given], [y])
        return y
    lines = np.moveaxis(x, axis, 0)[:: -1 if decreasing else 1]
    with np.errstate(all="ignore"):
        found = _scan(lines, np.moveaxis(carries, axis, 0), is_product, exclusive)
        np.moveaxis(y, axis, 0)[:: -1 if decreasing else 1] = found
    return y


def _is_native(device: Any) -> bool:
    """Chunks lie in the memory of the CPU, whose kernels take them whatever the device is, but for the reference's."""
    return str(getattr(device, "name", device)) != "reference"


@lru_cache(maxsize=256)
def _plan(
    name: str,
    inputs: tuple[Layout, ...],
    outputs: tuple[Layout, ...],
    attributes: tuple[tuple[str, tuple[int, ...]], ...],
) -> Plan | None:
    """A kernel; None where there is none."""
    try:
        from ..._native import compile as compile_plan
    except ImportError:
        return None
    plan = compile_plan(name, inputs, outputs, dict(attributes))
    return None if isinstance(plan, str) else plan


def _partial(function: ReduceFunction, x: Array, axes: tuple[int, ...]) -> Any:
    if x.dtype.kind != "f":
        ufunc = np.multiply if function == ReduceFunction.MULTIPLY else np.add
        return ufunc.reduce(_OF_TERMS.get(function, np.positive)(x), axis=axes, dtype=x.dtype, keepdims=True)
    wide = x.astype(DOUBLE)
    if function == ReduceFunction.MULTIPLY:
        return _product(wide, axes)
    if function == ReduceFunction.LOG_SUM_EXP:
        return _exponentials(wide, axes)
    # Packed along the axes, where NumPy adds in pairs.
    terms = np.moveaxis(_OF_TERMS[function](wide), axes, range(-len(axes), 0))
    sums = np.ascontiguousarray(terms).reshape(*terms.shape[: x.ndim - len(axes)], -1).sum(axis=-1)
    return np.expand_dims(sums, tuple(sorted(axes)))


def _product(wide: Array, axes: tuple[int, ...]) -> Array:
    """x = m * 2^e: the m are multiplied in pairs, the e are added."""
    rows = np.moveaxis(wide, sorted(axes), range(len(axes)))
    product = scaled(rows.reshape(-1, *rows.shape[len(axes) :]))
    while (half := len(product) // 2) > 0:
        product = np.concatenate([multiplied(product[:half], product[half : 2 * half]), product[2 * half :]])
    return np.expand_dims(product[0], tuple(sorted(axes)))


def _exponentials(wide: Array, axes: tuple[int, ...]) -> Array:
    largest = wide.max(axis=axes, keepdims=True)
    y = np.empty(largest.shape, EXPONENTIALS)
    is_largest = wide == largest
    y["sum"] = np.where(is_largest, 0.0, np.exp(wide - largest)).sum(axis=axes, keepdims=True)
    y["count"] = is_largest.sum(axis=axes, keepdims=True)
    y["largest"] = largest
    return y


def scaled(x: Array) -> Array:
    """Doubles as m * 2^e, m within 0.5 to 1; what has no such m stays what it is."""
    y = np.empty(x.shape, PRODUCT)
    y["m"], y["e"] = np.frexp(x)
    return y


def multiplied(a: Array, b: Array) -> Array:
    """The products of m * 2^e, however far away."""
    y = scaled(a["m"] * b["m"])
    y["e"] += a["e"] + b["e"]
    return y


def rounded_product(product: Array, dtype: np.dtype[Any]) -> Array:
    """m * 2^e as elements of a type."""
    result: Array = np.ldexp(product["m"], np.clip(product["e"], -(2**20), 2**20).astype(np.int32)).astype(dtype)
    return result


def _scan(lines: Array, carries: Array, is_product: bool, exclusive: bool) -> Array:
    """The scan along the first dimension of y[0] = carry, y[i + 1] = y[i] o x[i]."""
    place = slice(0, -1) if exclusive else slice(1, None)
    if carries.dtype != PRODUCT:
        wide = np.concatenate([carries, lines.astype(carries.dtype)])
        ufunc = np.multiply if is_product else np.add
        y: Array = ufunc.accumulate(wide, axis=0, dtype=carries.dtype)[place].astype(lines.dtype)
        return y
    # A scan in logarithmic steps, as NumPy accumulates no pairs: every y is a product of as many factors as before.
    product = np.concatenate([carries, scaled(lines.astype(DOUBLE))])
    distance = 1
    while distance < len(product):
        product[distance:] = multiplied(product[:-distance], product[distance:])
        distance *= 2
    return rounded_product(product[place], lines.dtype)
