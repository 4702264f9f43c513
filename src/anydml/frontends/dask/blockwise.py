"""Blockwise graphs: an operator computed chunk by chunk along its independent dimensions.

Chunks of all operands are made to line up there; along all other dimensions a chunk has the whole of them. Where one
operand broadcasts, its one element goes to every chunk.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.array.core import unify_chunks

from ...core.packed_array import PackedArray
from ...core.strided_layout import Array
from ...core.truth_values import BOOL
from ...operators.independence import cut
from ...operators.schema import OperatorDesc
from .call import Call
from .tasks import First, compute, operator_of, results_of

Index: TypeAlias = tuple[int, ...]
"""For each dimension of an array the number of the output's dimension that its chunks line up with, or a negative
number of its own where there is one chunk."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What computes an operator on chunks of its operands.

    Args:
        desc: that of the whole operator.
        device: where to compute.
        gives_truth: as for `compute`.
        constants: by label, operands that every chunk takes whole, and None for those left out.
        indices: of the others, by label.
    """

    desc: OperatorDesc
    device: Any
    gives_truth: bool
    constants: Mapping[str, Any]
    indices: Mapping[str, Index]

    def __call__(self, *blocks: Any) -> tuple[Array, ...]:
        given = {**self.constants, **dict(zip(self.indices, map(only, blocks), strict=True))}
        sizes = {
            number: size
            for label, index in self.indices.items()
            for number, size in zip(index, given[label].shape, strict=True)
            if number >= 0
        }
        found = operator_of(self.desc)
        desc = cut(found, self.desc, found.independent(self.desc), sizes)
        if 0 in sizes.values():
            empty = [np.empty(shape, dtype) for dtype, shape in results_of(desc)]
            return tuple([each.view(BOOL) for each in empty] if self.gives_truth else empty)
        return tuple(compute(desc, self.device, [given[label] for label, _ in found.inputs(desc)], self.gives_truth))


@dataclass(frozen=True, slots=True)
class _Nth:
    number: int

    def __call__(self, results: Any) -> Array:
        array: Array = only(results)[self.number]
        return array


def only(block: Any) -> Any:
    """A chunk, which Dask wraps into a list for each dimension that is no output's."""
    while type(block) is list:
        (block,) = block
    return block


def blockwise(call: Call) -> list[da.Array]:
    """The outputs that there are."""
    stated = call.independent
    constants: dict[str, Any] = {label: None for label, operand in call.operands.items() if operand is None}
    # What is packed, two elements to a byte, is not cut.
    constants |= {label: each.array for label, each in call.there.items() if isinstance(each.array, PackedArray)}
    whole = {number for label in constants for number in stated.get(label, ())}
    arrays: list[da.Array] = []
    indices: dict[str, Index] = {}
    own = count(-1, -1)
    for label, operand in call.there.items():
        if label in constants:
            continue
        array = call.array(label)
        seen = zip(stated[label], array.shape, operand.shape, strict=True)
        index = [
            next(own) if number is None or number in whole or size < wanted else number for number, size, wanted in seen
        ]
        arrays.append(array.rechunk({i: -1 for i, each in enumerate(index) if each < 0}))
        indices[label] = tuple(index)
    _, arrays = unify_chunks(*chain.from_iterable(zip(arrays, indices.values(), strict=True)), warn=False)
    given = [*zip(arrays, indices.values(), strict=True)]
    part = _Part(call.desc, call.device, call.gives_truth, constants, indices)
    numbers = sorted({number for index in indices.values() for number in index if number >= 0})
    name = call.spec.name.lower()
    dtypes = [BOOL if call.gives_truth else dtype for dtype, _ in results_of(call.desc)]
    if len(dtypes) == 1:
        ((label, tensor),) = call.outputs.items()
        return [_layer(First(part), name, given, numbers, stated[label], tensor.Sizes, dtypes[0])]
    together = _layer(part, name, given, numbers, numbers, (), np.dtype(object))
    return [
        _layer(_Nth(i), f"{name}-{label}", [(together, tuple(numbers))], numbers, stated[label], tensor.Sizes, dtype)
        for i, ((label, tensor), dtype) in enumerate(zip(call.outputs.items(), dtypes, strict=True))
    ]


def _layer(
    function: Any,
    name: str,
    given: Sequence[tuple[da.Array, Index]],
    numbers: Collection[int],
    stated: Sequence[int | None],
    sizes: Sequence[int],
    dtype: np.dtype[Any],
) -> da.Array:
    """A function of chunks.

    Args:
        function: what is called on a chunk of each array.
        name: of the layer.
        given: the arrays and their indices.
        numbers: the dimensions of the output that have chunks.
        stated: for each dimension of the result, the one of the output that it lines up with, or None.
        sizes: the result's.
        dtype: the result's.
    """
    own = count(min((each for _, index in given for each in index), default=0) - 1, -1)
    index = [number if number in numbers else next(own) for number in stated]
    new_axes = {each: size for each, size in zip(index, sizes, strict=False) if each not in numbers}
    return da.blockwise(
        function,
        index,
        *chain.from_iterable(given),
        token=name,
        new_axes=new_axes,
        dtype=dtype,
        align_arrays=False,
        meta=np.empty((0,) * len(index), dtype),
    )
