"""NONZERO_COORDINATES: where the elements are that are not 0, and how many there are.

Decisions where the page is silent or contradicts itself:

1. NaN is not 0, nor is a number below the normal ones; 0 and -0 are.
2. Coordinates are those of the last dimensions of InputTensor, as many as OutputCoordinatesTensor has columns. A tensor
   of one element, which is of effective rank 0, has one column at least, as no size is 0.
3. The tensors' DimensionCounts may differ on every level, though an older page has them equal: coordinates have 2
   dimensions where an input has 1. The sizes of OutputCoordinatesTensor before the last two are 1.
4. Rows behind the last coordinates, whose values the page leaves open, stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..independence import no_dimension
from ..schema import Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_NONZERO_COORDINATES_OPERATOR_DESC(OperatorDesc):
    """Finds the elements that are not 0: how many there are, and their coordinates, in row-major order of the elements.

    Row i of the coordinates has those of element i of these. Rows behind the last one stay as they were. Not in-place.

    Args:
        InputTensor: the elements.
        OutputCountTensor: the number of those that are not 0; one element.
        OutputCoordinatesTensor: a row for each element of InputTensor, as all may be other than 0, with its coordinates
            along the last dimensions. Leading dimensions of 1 may be left out.

    Constraints:
        (C1) OutputCountTensor has sizes of 1. OutputCoordinatesTensor has sizes {..., M, N}, all before them 1: M is the
            number of elements of InputTensor; N is at most its DimensionCount, and at least 1 and the number of its
            dimensions from the first one on that is longer than 1.
        (C2) InputTensor has less than 2^32 elements, as many as OutputCountTensor can tell.

    Source: the page of DML_NONZERO_COORDINATES_OPERATOR_DESC; since feature level 3.0.
    """

    InputTensor: Tensor
    OutputCountTensor: Tensor
    OutputCoordinatesTensor: Tensor


def effective_rank(sizes: Sequence[int]) -> int:
    """The number of dimensions from the first one on that is longer than 1."""
    return next((len(sizes) - i for i, size in enumerate(sizes) if size > 1), 0)


def _constraints(desc: DML_NONZERO_COORDINATES_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    elements = prod(desc.InputTensor.Sizes)
    if elements >= 2**32:
        expected = "less than 4294967296, which UINT32 counts"
        yield ConstraintFailure("(C2)", "InputTensor.Sizes", f"{elements} elements", expected)


def _infer_sizes(desc: DML_NONZERO_COORDINATES_OPERATOR_DESC) -> dict[str, Choices]:
    sizes = desc.InputTensor.Sizes
    leading = max(len(desc.OutputCoordinatesTensor.Sizes) - 2, 0)
    columns = range(max(effective_rank(sizes), 1), len(sizes) + 1)
    return {
        "OutputCountTensor": ((1,),) * len(desc.OutputCountTensor.Sizes),
        "OutputCoordinatesTensor": (*((1,),) * leading, (prod(sizes),), columns),
    }


def _reference(desc: DML_NONZERO_COORDINATES_OPERATOR_DESC, x: Array) -> tuple[Array, Array]:
    found = np.argwhere(x)
    *_, columns = desc.OutputCoordinatesTensor.Sizes
    coordinates = np.zeros(desc.OutputCoordinatesTensor.Sizes, np.uint32)
    coordinates[..., : len(found), :] = found[:, x.ndim - columns :]
    return np.full(desc.OutputCountTensor.Sizes, len(found), np.uint32), coordinates


def _written(desc: DML_NONZERO_COORDINATES_OPERATOR_DESC, outputs: Sequence[Any]) -> Sequence[Any]:
    """The count, and as many rows."""
    count = int(np.asarray(outputs[0]).reshape(-1)[0])
    return ..., (..., slice(count), slice(None))


NONZERO_COORDINATES = OperatorSpec(
    operator_type=OperatorType.NONZERO_COORDINATES,
    desc=DML_NONZERO_COORDINATES_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C1)",
    reference=_reference,
    # A row's place counts all elements before.
    independent=no_dimension,
    written=_written,
    support=support_table("""
        DML_FEATURE_LEVEL_4_0 and above
        InputTensor             | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputCountTensor       | Output | 1 to 8 | UINT32
        OutputCoordinatesTensor | Output | 2 to 8 | UINT32
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor             | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputCountTensor       | Output | 4 to 5 | UINT32
        OutputCoordinatesTensor | Output | 4 to 5 | UINT32
    """),
)
