"""TILE: a tensor repeated along its dimensions.

Decisions where the page is silent: what is copied is copied by bits. Not in-place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import at_least_1, same
from ..independence import only
from ..schema import (
    Choices,
    ConstraintFailure,
    Count,
    Independence,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    UINTs,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_TILE_OPERATOR_DESC(OperatorDesc):
    """Copies a tensor so many times along each dimension, one copy behind the other.

    Args:
        InputTensor: the elements.
        OutputTensor: the copies.
        RepeatsCount: the number of dimensions; derived from Repeats.
        Repeats: the copies along each dimension.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) RepeatsCount is the DimensionCount of InputTensor.
        (C4) Repeats are at least 1.
        (C5) OutputTensor has the sizes of InputTensor times Repeats.

    Source: the page of DML_TILE_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    RepeatsCount: Count = None
    Repeats: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"RepeatsCount": ("Repeats",)}


def _constraints(desc: DML_TILE_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    rank = len(desc.InputTensor.Sizes)
    if desc.RepeatsCount != rank:
        yield ConstraintFailure("(C3)", "RepeatsCount", str(desc.RepeatsCount), f"{rank}, that of InputTensor")
    yield from at_least_1(desc, "(C4)", "Repeats")


def _infer_sizes(desc: DML_TILE_OPERATOR_DESC) -> dict[str, Choices]:
    if desc.RepeatsCount != len(desc.InputTensor.Sizes) or 0 in desc.Repeats:
        return {}
    pairs = zip(desc.InputTensor.Sizes, desc.Repeats, strict=True)
    return {"OutputTensor": tuple((size * repeat,) for size, repeat in pairs)}


def _reference(desc: DML_TILE_OPERATOR_DESC, x: Array) -> Array:
    return np.tile(x, desc.Repeats)


def _independent(desc: DML_TILE_OPERATOR_DESC) -> Independence:
    """The dimensions that are not repeated."""
    return only(desc, [i for i, repeat in enumerate(desc.Repeats) if repeat == 1])


TILE = OperatorSpec(
    operator_type=OperatorType.TILE,
    desc=DML_TILE_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=_reference,
    independent=_independent,
    example={
        "InputTensor": np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3),
        "Repeats": (1, 1, 1, 2),
    },
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 4 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)
