"""GATHER_ND, GATHER_ND1 and SCATTER_ND: tuples of indices, each for an element or a whole slice.

Decisions where the pages are silent or disagree with themselves:

1. The last dimension of IndicesTensor is a tuple's coordinates; what they leave of InputTensor's dimensions is the slice.
   The pages take the slice's sizes from the last dimensions of InputTensor, as many as the tuple has coordinates; their
   examples have all behind the batch's and the tuple's, and so it is here.
2. InputDimensionCount and IndicesDimensionCount may be the DimensionCount itself, as in the pages' examples. A result
   has to fit that DimensionCount; leading 1s that would be too many are not left out.
3. A coordinate that its dimension does not have is an error, and nothing is written.
4. Where several tuples of SCATTER_ND are the same, the last one counts in row-major order. It is not in-place. Indices
   are integers, though its page has an example of FLOAT32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import limits_of_indices, not_indices, same, sizes_of
from ..schema import UINT, Choices, ConstraintFailure, Independence, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_GATHER_ND_OPERATOR_DESC(OperatorDesc):
    """Copies an element, or a slice, for each tuple of indices: output[i, ...] = input[indices[i, 0], indices[i, 1], ...].

    Negative indices, of signed types, count from the end of their dimension. A copy of bits: NaN payloads survive. Not
    in-place.

    Args:
        InputTensor: the elements.
        IndicesTensor: the tuples, whose coordinates are its last dimension.
        OutputTensor: the copied elements; 1 in every dimension before the result's.
        InputDimensionCount: how many of the last dimensions of InputTensor there are, of which those before are 1.
        IndicesDimensionCount: likewise of IndicesTensor, with that of the coordinates.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) InputDimensionCount is from 1 to that DimensionCount.
        (C4) IndicesDimensionCount is from 1 to that DimensionCount.
        (C5) InputTensor and IndicesTensor have sizes of 1 before those dimensions.
        (C6) A tuple has at most InputDimensionCount coordinates.
        (C7) The result has no more dimensions than the DimensionCount.
        (C8) OutputTensor has the sizes of IndicesTensor without the last dimension, then those of InputTensor behind
            the dimensions of the tuple; 1s before them where they are fewer.
        (V1) A coordinate is less than the size of its dimension, and at least 0, or at least minus that size where the
            indices' type is signed.

    Source: the page of DML_GATHER_ND_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    IndicesTensor: Tensor
    OutputTensor: Tensor
    InputDimensionCount: UINT
    IndicesDimensionCount: UINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_GATHER_ND1_OPERATOR_DESC(OperatorDesc):
    """Copies an element, or a slice, for each tuple of indices, of the tuple's own batch: output[batch, i, ...] =
    input[batch, indices[batch, i, 0], indices[batch, i, 1], ...].

    Negative indices, of signed types, count from the end of their dimension. A copy of bits: NaN payloads survive. Not
    in-place.

    Args:
        InputTensor: the elements.
        IndicesTensor: the tuples, whose coordinates are its last dimension.
        OutputTensor: the copied elements; 1 in every dimension before the result's.
        InputDimensionCount: how many of the last dimensions of InputTensor there are, of which those before are 1.
        IndicesDimensionCount: likewise of IndicesTensor, with that of the coordinates.
        BatchDimensionCount: how many of the first of both are those of batches.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) InputDimensionCount is from 1 to that DimensionCount.
        (C4) IndicesDimensionCount is from 1 to that DimensionCount.
        (C5) InputTensor and IndicesTensor have sizes of 1 before those dimensions.
        (C6) BatchDimensionCount is less than InputDimensionCount and IndicesDimensionCount.
        (C7) IndicesTensor has the sizes of InputTensor in the dimensions of batches.
        (C8) A tuple has at most as many coordinates as InputTensor has dimensions behind those of batches.
        (C9) The result has no more dimensions than the DimensionCount.
        (C10) OutputTensor has the sizes of IndicesTensor without the last dimension, then those of InputTensor behind
            the dimensions of batches and of the tuple; 1s before them where they are fewer.
        (V1) A coordinate is less than the size of its dimension, and at least 0, or at least minus that size where the
            indices' type is signed.

    Source: the page of DML_GATHER_ND1_OPERATOR_DESC; since feature level 3.0.
    """

    InputTensor: Tensor
    IndicesTensor: Tensor
    OutputTensor: Tensor
    InputDimensionCount: UINT
    IndicesDimensionCount: UINT
    BatchDimensionCount: UINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SCATTER_ND_OPERATOR_DESC(OperatorDesc):
    """Copies a tensor, and sets an element, or a slice, for each tuple of indices: output[indices[i, 0], indices[i, 1],
    ...] = updates[i, ...].

    Negative indices, of signed types, count from the end of their dimension. Of several updates of one element the last
    one counts, in row-major order. A copy of bits: NaN payloads survive. Not in-place.

    Args:
        InputTensor: the elements.
        IndicesTensor: the tuples, whose coordinates are its last dimension.
        UpdatesTensor: what elements are set to; 1 in every dimension before those that it needs.
        OutputTensor: the elements, with the updates.
        InputDimensionCount: how many of the last dimensions of InputTensor there are, of which those before are 1.
        IndicesDimensionCount: likewise of IndicesTensor, with that of the coordinates.

    Constraints:
        (C1) InputTensor, UpdatesTensor and OutputTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) InputDimensionCount is from 1 to that DimensionCount.
        (C4) IndicesDimensionCount is from 1 to that DimensionCount.
        (C5) InputTensor and IndicesTensor have sizes of 1 before those dimensions.
        (C6) A tuple has at most InputDimensionCount coordinates.
        (C7) UpdatesTensor needs no more dimensions than the DimensionCount.
        (C8) UpdatesTensor has the sizes of IndicesTensor without the last dimension, then those of InputTensor behind
            the dimensions of the tuple; 1s before them where they are fewer.
        (C9) OutputTensor has the sizes of InputTensor.
        (V1) A coordinate is less than the size of its dimension, and at least 0, or at least minus that size where the
            indices' type is signed.

    Source: the page of DML_SCATTER_ND_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    IndicesTensor: Tensor
    UpdatesTensor: Tensor
    OutputTensor: Tensor
    InputDimensionCount: UINT
    IndicesDimensionCount: UINT


_Gather = DML_GATHER_ND_OPERATOR_DESC | DML_GATHER_ND1_OPERATOR_DESC
_Desc = _Gather | DML_SCATTER_ND_OPERATOR_DESC


class Dimensions(NamedTuple):
    """What the dimensions of InputTensor and IndicesTensor are, by their numbers, but for leading ones of size 1."""

    batch: range
    """Of InputTensor; IndicesTensor's first ones are of the same sizes."""
    indexed: range
    """Of InputTensor, those that the coordinates are of."""
    slice: range
    """Of InputTensor, the last ones, which are copied whole."""
    tuples: range
    """Of IndicesTensor, with those of batches and without that of the coordinates."""


def dimensions_of(desc: _Desc) -> Dimensions:
    rank, batch, coordinates = len(desc.InputTensor.Sizes), _batch(desc), desc.IndicesTensor.Sizes[-1]
    first = rank - desc.InputDimensionCount
    behind = first + batch + coordinates
    return Dimensions(
        range(first, first + batch),
        range(first + batch, behind),
        range(behind, rank),
        range(rank - desc.IndicesDimensionCount, rank - 1),
    )


def _batch(desc: _Desc) -> int:
    return desc.BatchDimensionCount if isinstance(desc, DML_GATHER_ND1_OPERATOR_DESC) else 0


def _constraints(desc: DML_GATHER_ND_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "IndicesTensor", "OutputTensor")
    yield from _counts(desc, "(C3)", "(C4)", "(C5)")
    yield from _tuple_within(desc, "(C6)")
    yield from _result_within(desc, "(C7)", "a result")


def _constraints1(desc: DML_GATHER_ND1_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "IndicesTensor", "OutputTensor")
    yield from _counts(desc, "(C3)", "(C4)", "(C5)")
    least = min(desc.InputDimensionCount, desc.IndicesDimensionCount)
    if desc.BatchDimensionCount >= least:
        expected = f"less than {least}, the lesser of InputDimensionCount and IndicesDimensionCount"
        yield ConstraintFailure("(C6)", "BatchDimensionCount", str(desc.BatchDimensionCount), expected)
    elif _has_counts(desc):
        x, indices = (
            tensor.Sizes[len(tensor.Sizes) - count :][: desc.BatchDimensionCount]
            for tensor, count in (
                (desc.InputTensor, desc.InputDimensionCount),
                (desc.IndicesTensor, desc.IndicesDimensionCount),
            )
        )
        first = len(desc.IndicesTensor.Sizes) - desc.IndicesDimensionCount
        for i, (wanted, found) in enumerate(zip(x, indices, strict=True)):
            if found != wanted:
                expected = f"{wanted}, that of InputTensor in the same dimension of batches"
                yield ConstraintFailure("(C7)", f"IndicesTensor.Sizes[{first + i}]", str(found), expected)
    yield from _tuple_within(desc, "(C8)")
    yield from _result_within(desc, "(C9)", "a result")


def _scatter_constraints(desc: DML_SCATTER_ND_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "UpdatesTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor")
    yield from _counts(desc, "(C3)", "(C4)", "(C5)")
    yield from _tuple_within(desc, "(C6)")
    yield from _result_within(desc, "(C7)", "updates")
    if _is_computable(desc) and len(desc.UpdatesTensor.Sizes) == len(desc.InputTensor.Sizes):
        for i, (wanted, found) in enumerate(zip(_padded_sizes(desc), desc.UpdatesTensor.Sizes, strict=False)):
            if found != wanted:
                yield ConstraintFailure("(C8)", f"UpdatesTensor.Sizes[{i}]", str(found), str(wanted))


def _counts(desc: _Desc, of_input: str, of_indices: str, before: str) -> Iterator[ConstraintFailure]:
    for label, name in ((of_input, "Input"), (of_indices, "Indices")):
        tensor, count = getattr(desc, f"{name}Tensor"), getattr(desc, f"{name}DimensionCount")
        rank = len(tensor.Sizes)
        if not 1 <= count <= rank:
            yield ConstraintFailure(label, f"{name}DimensionCount", str(count), f"from 1 to {rank}, the DimensionCount")
            continue
        for i, size in enumerate(tensor.Sizes[: rank - count]):
            if size != 1:
                expected = f"1, before the last {name}DimensionCount, which are {count}"
                yield ConstraintFailure(before, f"{name}Tensor.Sizes[{i}]", str(size), expected)


def _has_counts(desc: _Desc) -> bool:
    """Whether there are so many dimensions, so that what they are can be told."""
    rank = len(desc.InputTensor.Sizes)
    counts = desc.InputDimensionCount, desc.IndicesDimensionCount
    return len(desc.IndicesTensor.Sizes) == rank and all(_batch(desc) < count <= rank for count in counts)


def _tuple_within(desc: _Desc, label: str) -> Iterator[ConstraintFailure]:
    if _has_counts(desc) and not _has_tuples(desc):
        most, found = desc.InputDimensionCount - _batch(desc), desc.IndicesTensor.Sizes[-1]
        where = f"IndicesTensor.Sizes[{len(desc.IndicesTensor.Sizes) - 1}]"
        expected = f"at most {most} coordinates, as InputTensor has dimensions for them"
        yield ConstraintFailure(label, where, str(found), expected)


def _result_within(desc: _Desc, label: str, what: str) -> Iterator[ConstraintFailure]:
    rank = len(desc.InputTensor.Sizes)
    if _has_tuples(desc) and len(sizes := _sizes(desc)) > rank:
        found = f"{desc.InputDimensionCount}, and so {what} of sizes {tuple(sizes)}"
        yield ConstraintFailure(label, "InputDimensionCount", found, f"{what} of at most {rank} dimensions")


def _has_tuples(desc: _Desc) -> bool:
    return _has_counts(desc) and desc.IndicesTensor.Sizes[-1] <= desc.InputDimensionCount - _batch(desc)


def _is_computable(desc: _Desc) -> bool:
    return _has_tuples(desc) and len(_sizes(desc)) <= len(desc.InputTensor.Sizes)


def _sizes(desc: _Desc) -> list[int]:
    """The result's, or those that updates need."""
    each = dimensions_of(desc)
    return [desc.IndicesTensor.Sizes[i] for i in each.tuples] + [desc.InputTensor.Sizes[i] for i in each.slice]


def _padded_sizes(desc: _Desc) -> list[int]:
    sizes = _sizes(desc)
    return [1] * (len(desc.InputTensor.Sizes) - len(sizes)) + sizes


def _gather_sizes(desc: _Gather) -> dict[str, Choices]:
    return {"OutputTensor": tuple((size,) for size in _padded_sizes(desc))} if _is_computable(desc) else {}


def _scatter_sizes(desc: DML_SCATTER_ND_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _check_values(desc: _Desc, inputs: Sequence[Array | None]) -> Iterator[ConstraintFailure]:
    for coordinate, dimension in enumerate(dimensions_of(desc).indexed):
        limits = limits_of_indices(desc.IndicesTensor, desc.InputTensor.Sizes[dimension])
        yield from not_indices("(V1)", inputs[1], limits, f"as coordinate {coordinate} of a tuple", coordinate)


def places_of(desc: _Desc, indices: Array) -> tuple[Array, ...]:
    """The coordinates of all tuples, one array for each, which index InputTensor without its leading dimensions."""
    each = dimensions_of(desc)
    batches = np.indices([desc.InputTensor.Sizes[i] for i in each.batch], sparse=True)
    behind = (1,) * (len(each.tuples) - len(each.batch))
    tuples = indices.reshape(indices.shape[each.tuples.start :]).astype(np.intp)
    return *(batch.reshape(batch.shape + behind) for batch in batches), *np.moveaxis(tuples, -1, 0)


def _gather(desc: _Gather, x: Array, indices: Array) -> Array:
    y: Array = x.reshape(x.shape[x.ndim - desc.InputDimensionCount :])[places_of(desc, indices)]
    return y.reshape(desc.OutputTensor.Sizes)


def _scatter(desc: DML_SCATTER_ND_OPERATOR_DESC, x: Array, indices: Array, updates: Array) -> Array:
    y = x.copy()
    slices = y.reshape(x.shape[x.ndim - desc.InputDimensionCount :])
    count = prod(indices.shape[:-1])
    tuples = zip(*(each.reshape(-1) for each in places_of(desc, indices)), strict=True)
    shape = [x.shape[i] for i in dimensions_of(desc).slice]
    # One by one, so that the last one counts.
    for place, update in zip(tuples, updates.reshape(count, *shape), strict=True):
        slices[place] = update
    return y


def _gather_independent(desc: _Gather) -> Independence:
    """Those of batches, of tuples and of the slice, at their places in the result."""
    rank, each = len(desc.OutputTensor.Sizes), dimensions_of(desc)
    first = rank - len(each.tuples) - len(each.slice)
    of_indices = {dimension: first + i for i, dimension in enumerate(each.tuples)}
    of_input = {dimension: first + i for i, dimension in enumerate(each.batch)}
    of_input |= dict(zip(each.slice, each.slice, strict=True))
    return {
        "InputTensor": [of_input.get(i) for i in range(rank)],
        "IndicesTensor": [of_indices.get(i) for i in range(rank)],
        "OutputTensor": [i if i >= first else None for i in range(rank)],
    }


def _scatter_independent(desc: DML_SCATTER_ND_OPERATOR_DESC) -> Independence:
    """Those of the slice, which are the last ones."""
    rank, those = len(desc.OutputTensor.Sizes), dimensions_of(desc).slice
    slices = [i if i in those else None for i in range(rank)]
    names = ("InputTensor", "UpdatesTensor", "OutputTensor")
    return {**dict.fromkeys(names, slices), "IndicesTensor": [None] * rank}


_TABLE = np.array([[[[2, 1, 3, 5], [3, 8, 7, 3], [9, 6, 2, 4]]]], np.float32)
_COUNTS = {"InputDimensionCount": 4, "IndicesDimensionCount": 4}
_EXAMPLE = {"InputTensor": _TABLE, "IndicesTensor": np.array([[[[0, 0, 2], [0, 0, -3]]]], np.int32), **_COUNTS}

GATHER_ND = OperatorSpec(
    operator_type=OperatorType.GATHER_ND,
    desc=DML_GATHER_ND_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_gather_sizes,
    sizes_rule="(C8)",
    reference=_gather,
    independent=_gather_independent,
    check_values=_check_values,
    example=_EXAMPLE,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor   | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        OutputTensor  | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor   | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        OutputTensor  | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor   | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 4      | UINT32
        OutputTensor  | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)


GATHER_ND1 = OperatorSpec(
    operator_type=OperatorType.GATHER_ND1,
    desc=DML_GATHER_ND1_OPERATOR_DESC,
    constraints=_constraints1,
    infer_sizes=_gather_sizes,
    sizes_rule="(C10)",
    reference=_gather,
    independent=_gather_independent,
    check_values=_check_values,
    example={
        "InputTensor": _TABLE,
        "IndicesTensor": np.array([[[[2], [-3]]]], np.int32),
        **_COUNTS,
        "BatchDimensionCount": 2,
    },
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor   | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        OutputTensor  | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor   | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        OutputTensor  | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)


SCATTER_ND = OperatorSpec(
    operator_type=OperatorType.SCATTER_ND,
    desc=DML_SCATTER_ND_OPERATOR_DESC,
    constraints=_scatter_constraints,
    infer_sizes=_scatter_sizes,
    sizes_rule="(C9)",
    reference=_scatter,
    independent=_scatter_independent,
    check_values=_check_values,
    example={**_EXAMPLE, "UpdatesTensor": np.arange(10, 18, dtype=np.float32).reshape(1, 1, 2, 4)},
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor   | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        UpdatesTensor | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor  | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor   | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        UpdatesTensor | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor  | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor   | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 4      | UINT32
        UpdatesTensor | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor  | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)
