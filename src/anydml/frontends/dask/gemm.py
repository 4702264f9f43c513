"""Products of matrices by blocks: a chunk is the sum of the products of the chunks along what is summed over.

The products are of FLOAT32, those of FLOAT16 too; they are added up in double precision, by a tree that depends on the
chunks alone. What is applied to a product is applied to the sum. Sums of integers are exact modulo 2^32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from typing import Any, cast

import dask.array as da
import numpy as np

from ...core.enums import MatrixTransform, TensorDataType
from ...core.packed_array import PackedArray
from ...core.strided_layout import DTYPES, Array
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...operators.constraints import rounded, widened
from ...operators.fused_activation import activated, kept_apart
from ...operators.independence import cut
from ...operators.schema import Independence, OperatorDesc
from .blockwise import Index, only
from .call import Call
from .parts import without_empty
from .tasks import compute, operator_of

_TOGETHER = 8
"""Products, or sums of them, that a task adds up."""


@dataclass(frozen=True, slots=True)
class _Product:
    """The product of two chunks, with a dimension of 1 before its own.

    Args:
        desc: that of products of whole tensors.
        stated: which dimensions line up, with that which is summed over.
        device: where to compute.
        indices: of the operands that there are, by label.
    """

    desc: OperatorDesc
    stated: Independence
    device: Any
    indices: Mapping[str, Index]

    def __call__(self, *blocks: Any) -> Array:
        given = dict(zip(self.indices, map(only, blocks), strict=True))
        sizes: dict[int, int] = {}
        for label, index in self.indices.items():
            for number, size in zip(index, given[label].shape, strict=True):
                # What broadcasts has one element.
                sizes[number] = max(size, sizes.get(number, 1))
        found = operator_of(self.desc)
        desc = cut(found, self.desc, self.stated, {number: size for number, size in sizes.items() if number >= 0})
        operands = [given.get(label) for label, _ in found.inputs(desc)]
        wide = [x if x is None or x.dtype != np.float16 else x.astype(np.float32) for x in operands]
        (product,) = compute(desc, self.device, wide)
        return product[None]


@dataclass(frozen=True, slots=True)
class _Finish:
    """Activation(Alpha * sum of products + Beta * C), rounded once."""

    desc: Any

    def __call__(self, total: Array, *added: Any) -> Array:
        with np.errstate(all="ignore"):
            y = self.desc.Alpha * total
            if added:
                y = y + self.desc.Beta * widened(only(added[0]))
            return rounded(activated(self.desc.FusedActivation, y), DTYPES[self.desc.OutputTensor.DataType])


def _sum(blocks: Any, axis: Any, keepdims: Any, of: Any) -> Array:
    """Of a list of arrays, from the first to the last."""
    first, *others = blocks if isinstance(blocks, list) else [blocks]
    total: Array = first.astype(of)
    for each in others:
        total += each
    return total if keepdims else total[0]


def _as_it_is(block: Array, axis: Any, keepdims: Any) -> Array:
    return block


def gemm(call: Call) -> list[da.Array] | None:
    """A product of matrices whose rows and columns are in several chunks."""
    desc = cast(Any, call.desc)
    inner = (
        -2 if desc.TransA == MatrixTransform.TRANSPOSE else -1,
        -1 if desc.TransB == MatrixTransform.TRANSPOSE else -2,
    )
    wide = {name: _as(getattr(desc, name), TensorDataType.FLOAT32) for name in ("ATensor", "BTensor", "OutputTensor")}
    plain = replace(desc, **wide, CTensor=None, Alpha=1.0, Beta=0.0, FusedActivation=None)
    total = _summed(call, plain, inner, np.dtype(np.float64))
    if total is None:
        return None
    rank = total.ndim
    apart = kept_apart(desc.FusedActivation, desc.OutputTensor)
    numbers = tuple(range(rank))
    total = total.rechunk({i: -1 for i in numbers if i not in apart})
    given: list[Any] = [total, numbers]
    if call.operands.get("CTensor") is not None:
        added = without_empty(call.array("CTensor"))
        one = {i: -1 for i in numbers if added.shape[i] == 1 or i not in apart}
        given += [added.rechunk(one), numbers]
    dtype = DTYPES[desc.OutputTensor.DataType]
    meta = np.empty((0,) * rank, dtype)
    return [da.blockwise(_Finish(desc), numbers, *given, token="gemm", dtype=dtype, meta=meta)]


def integer_gemm(call: Call) -> list[da.Array] | None:
    """Likewise of integers."""
    total = _summed(call, call.desc, (-1, -2), np.dtype(np.int32))
    return None if total is None else [total]


def _as(tensor: DML_BUFFER_TENSOR_DESC, data_type: TensorDataType) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=tensor.Sizes)


def _summed(call: Call, desc: OperatorDesc, inner: tuple[int, int], dtype: np.dtype[Any]) -> da.Array | None:
    """The sums of products; None where what is summed over is one chunk.

    Args:
        call: A and B, and what belongs to their rows and columns.
        desc: of a product that can be added to others.
        inner: the dimensions of A and of B that are summed over.
        dtype: the sums'.
    """
    found = operator_of(desc)
    there = {label: call.there[label] for label, tensor in found.inputs(desc) if tensor is not None}
    if any(isinstance(operand.array, PackedArray) for operand in there.values()):
        return None
    pairs = dict(zip(("ATensor", "BTensor"), inner, strict=True))
    if all(call.array(label).numblocks[axis] == 1 for label, axis in pairs.items()):
        return None
    rank = len(cast(Any, desc).OutputTensor.Sizes)
    stated = {label: [*numbers] for label, numbers in found.independent(desc).items()}
    for label, axis in pairs.items():
        stated[label][axis] = rank
    own = count(-1, -1)
    arrays, indices = [], {}
    for label in there:
        array = without_empty(call.array(label))
        indices[label] = tuple([next(own) if number is None else number for number in stated[label]])
        arrays.append(array.rechunk({i: -1 for i, each in enumerate(indices[label]) if each < 0}))
    (output,) = [tensor for _, tensor in found.outputs(desc) if tensor is not None]
    made = (rank, *range(rank))
    kind = DTYPES[output.DataType]
    products = da.blockwise(
        _Product(desc, stated, call.device, indices),
        made,
        *chain.from_iterable(zip(arrays, indices.values(), strict=True)),
        token=call.spec.name.lower(),
        adjust_chunks={rank: lambda size: 1},
        dtype=kind,
        meta=np.empty((0,) * len(made), kind),
    )
    return da.reduction(
        products,
        _as_it_is,
        partial(_sum, of=dtype),
        axis=0,
        combine=partial(_sum, of=dtype),
        concatenate=False,
        split_every=_TOGETHER,
        dtype=dtype,
        meta=np.empty((0,) * rank, dtype),
    )
