"""GEMM: the general matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core import enums
from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import rounded, same, widened
from ..fused_activation import activated, kept_apart
from ..schema import (
    FLOAT,
    Choices,
    ConstraintFailure,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalActivation,
    OptionalTensor,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_GEMM_OPERATOR_DESC(OperatorDesc):
    """FusedActivation(Alpha * TransA(A) x TransB(B) + Beta * C), one product of matrices for each batch and channel.

    The reference computes FLOAT32 in double and FLOAT16 in single precision, and rounds once, after the activation. All
    others sum products in single precision; the CPU's kernel by chains of 512 fused multiply-adds, which are added up,
    and with Alpha, Beta and CTensor in double: the same bits for every number of threads. With no CTensor, Beta is of
    no effect. Not in-place.

    Args:
        ATensor: matrices of M rows and K columns, or of K rows and M columns where TransA is TRANSPOSE. Dimensions before
            those two are batch and channels.
        BTensor: matrices of K rows and N columns, or of N rows and K columns where TransB is TRANSPOSE.
        CTensor: matrices to add, of the sizes of OutputTensor, broadcast by strides of 0; None for none.
        OutputTensor: matrices of M rows and N columns.
        TransA: whether the matrices of ATensor are transposed.
        TransB: whether those of BTensor are.
        Alpha: the factor of the product.
        Beta: the factor of CTensor.
        FusedActivation: what is applied to the result; None for nothing.

    Constraints:
        (C1) ATensor, BTensor, CTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor, CTensor and OutputTensor have the same DimensionCount.
        (C3) ATensor and BTensor have the same sizes of batch and channels. Strides of 0 broadcast.
        (C4) TransB(B) has as many rows as TransA(A) has columns.
        (C5) CTensor has the Sizes of OutputTensor.
        (C6) OutputTensor has the batch and channels of ATensor, M rows and N columns.

    Source: the page of DML_GEMM_OPERATOR_DESC; since feature level 1.0. The page is silent on precision and on in-place
    execution; what is said of them here is this project's decision.
    """

    ATensor: Tensor
    BTensor: Tensor
    CTensor: OptionalTensor = None
    OutputTensor: Tensor
    TransA: enums.MatrixTransform
    TransB: enums.MatrixTransform
    Alpha: FLOAT
    Beta: FLOAT
    FusedActivation: OptionalActivation = None


def _dimensions(transform: enums.MatrixTransform) -> tuple[int, int]:
    """Where a matrix has its rows and its columns once it is transformed."""
    return (-1, -2) if transform == enums.MatrixTransform.TRANSPOSE else (-2, -1)


def _constraints(desc: DML_GEMM_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    names = ["ATensor", "BTensor", *(["CTensor"] if desc.CTensor is not None else []), "OutputTensor"]
    yield from same(desc, "(C1)", "DataType", *names)
    yield from same(desc, "(C2)", "DimensionCount", *names)
    a, b = desc.ATensor.Sizes, desc.BTensor.Sizes
    if len(a) == len(b) >= 2:
        for i, (found, size) in enumerate(zip(b[:-2], a[:-2], strict=True)):
            if found != size:
                yield ConstraintFailure("(C3)", f"BTensor.Sizes[{i}]", str(found), f"{size}, that of ATensor")
        inner, rows = _dimensions(desc.TransA)[1], _dimensions(desc.TransB)[0]
        if b[rows] != a[inner]:
            expected = f"{a[inner]}, that of ATensor.Sizes[{len(a) + inner}]"
            yield ConstraintFailure("(C4)", f"BTensor.Sizes[{len(b) + rows}]", str(b[rows]), expected)
    if desc.CTensor is not None:
        # Those that A and B give: while outputs are inferred, OutputTensor has others.
        sizes = tuple([size for (size,) in _infer_sizes(desc).get("OutputTensor", ())])
        if len(desc.CTensor.Sizes) == len(sizes) and desc.CTensor.Sizes != sizes:
            yield ConstraintFailure("(C5)", "CTensor.Sizes", str(desc.CTensor.Sizes), f"{sizes}, that of OutputTensor")


def _infer_sizes(desc: DML_GEMM_OPERATOR_DESC) -> dict[str, Choices]:
    a, b = desc.ATensor.Sizes, desc.BTensor.Sizes
    if not len(a) == len(b) >= 2:
        return {}
    sizes = (*a[:-2], a[_dimensions(desc.TransA)[0]], b[_dimensions(desc.TransB)[1]])
    return {"OutputTensor": tuple((size,) for size in sizes)}


def _reference(desc: DML_GEMM_OPERATOR_DESC, a: Array, b: Array, c: Array | None) -> Array:
    with np.errstate(all="ignore"):
        left, right = (
            widened(x.swapaxes(-1, -2) if transform == enums.MatrixTransform.TRANSPOSE else x)
            for x, transform in ((a, desc.TransA), (b, desc.TransB))
        )
        y = desc.Alpha * np.matmul(left, right)
        if c is not None:
            y = y + desc.Beta * widened(c)
        return rounded(activated(desc.FusedActivation, y), a.dtype)


def _independent(desc: DML_GEMM_OPERATOR_DESC) -> Independence:
    """Batch and channels of all, the rows of TransA(A) and the columns of TransB(B), where the activation has them so."""
    rank = len(desc.OutputTensor.Sizes)
    *outer, row, column = [i if i in kept_apart(desc.FusedActivation, desc.OutputTensor) else None for i in range(rank)]
    rows = [*outer, row, None] if desc.TransA == enums.MatrixTransform.NONE else [*outer, None, row]
    columns = [*outer, None, column] if desc.TransB == enums.MatrixTransform.NONE else [*outer, column, None]
    of_output = [*outer, row, column]
    added = {} if desc.CTensor is None else {"CTensor": of_output}
    return {"ATensor": rows, "BTensor": columns, **added, "OutputTensor": of_output}


GEMM = OperatorSpec(
    operator_type=OperatorType.GEMM,
    desc=DML_GEMM_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_4_0 and above
        ATensor      | Input          | 2 to 4 | FLOAT32, FLOAT16
        BTensor      | Input          | 2 to 4 | FLOAT32, FLOAT16
        CTensor      | Optional input | 2 to 4 | FLOAT32, FLOAT16
        OutputTensor | Output         | 2 to 4 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_1_0 and above
        ATensor      | Input          | 4      | FLOAT32, FLOAT16
        BTensor      | Input          | 4      | FLOAT32, FLOAT16
        CTensor      | Optional input | 4      | FLOAT32, FLOAT16
        OutputTensor | Output         | 4      | FLOAT32, FLOAT16
    """),
)
