"""MAX_UNPOOLING: maxima back at the places that their indices say, among zeros.

Decisions where the page is silent or its versions differ:

1. OutputTensor may have any sizes: an index counts the elements of the whole tensor, batch and channels included, as
   those of MAX_POOLING1 do.
2. What an index that OutputTensor does not have stands beside is left out, as an earlier version of the page says. So no
   value is refused.
3. Where indices are the same, the last one counts in row-major order; the page calls that undefined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import same
from ..independence import only
from ..schema import Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MAX_UNPOOLING_OPERATOR_DESC(OperatorDesc):
    """Zeros, in which each element is put at the place that its index says; it undoes MAX_POOLING1 but for what was lost.

    An index counts the elements of the whole output as one packed array, from 0; of one that it does not have nothing
    comes. Of several elements of one index the last one counts, in row-major order. A copy of bits: NaN payloads
    survive. Not in-place.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, the maxima.
        IndicesTensor: their indices, as MAX_POOLING1 gives them.
        OutputTensor: the maxima among zeros.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) IndicesTensor has the Sizes of InputTensor.

    Source: the page of DML_MAX_UNPOOLING_OPERATOR_DESC; since feature level 3.0.
    """

    InputTensor: Tensor
    IndicesTensor: Tensor
    OutputTensor: Tensor


def _constraints(desc: DML_MAX_UNPOOLING_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "Sizes", "InputTensor", "IndicesTensor")


def _any_sizes(desc: DML_MAX_UNPOOLING_OPERATOR_DESC) -> dict[str, Choices]:
    return {}


def _reference(desc: DML_MAX_UNPOOLING_OPERATOR_DESC, x: Array, indices: Array) -> Array:
    y = np.zeros(desc.OutputTensor.Sizes, x.dtype)
    places = indices.ravel()
    is_there = places < y.size
    # The last of those that are the same: the first, seen from behind.
    unique, first = np.unique(places[is_there][::-1], return_index=True)
    y.reshape(-1)[unique.astype(np.intp)] = x.ravel()[is_there][::-1][first]
    return y


MAX_UNPOOLING = OperatorSpec(
    operator_type=OperatorType.MAX_UNPOOLING,
    desc=DML_MAX_UNPOOLING_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_any_sizes,
    sizes_rule="",
    reference=_reference,
    independent=lambda desc: only(desc, ()),
    support=support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor   | Input  | 4 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 4 | UINT64, UINT32
        OutputTensor  | Output | 4 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor   | Input  | 4 | FLOAT32, FLOAT16
        IndicesTensor | Input  | 4 | UINT32
        OutputTensor  | Output | 4 | FLOAT32, FLOAT16
    """),
)
