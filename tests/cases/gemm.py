"""GEMM: transposes, factors, batches, and what is held in the wider type. Numbers are worked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml import DML_ELEMENT_WISE_CLIP_OPERATOR_DESC, DML_GEMM_OPERATOR_DESC
from anydml.core.enums import MatrixTransform
from anydml.operators.schema import OperatorDesc
from support_tables import FLOATS, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str,
    a: Any,
    b: Any,
    y: Any,
    c: Any = None,
    *,
    dtype: Any = np.float32,
    transposes: str = "NN",
    alpha: float = 1,
    beta: float = 1,
    strides: Any = None,
    activation: Any = None,
) -> Case:
    """`strides` are those of tensors by their names."""
    arrays = {"ATensor": a, "BTensor": b, "CTensor": c, "OutputTensor": y}
    arrays = {name: None if x is None else np.array(x, dtype) for name, x in arrays.items()}
    tensors = {name: None if x is None else tensor_of(x, (strides or {}).get(name)) for name, x in arrays.items()}
    trans_a, trans_b = (MatrixTransform.TRANSPOSE if each == "T" else MatrixTransform.NONE for each in transposes)
    desc = DML_GEMM_OPERATOR_DESC(
        **tensors, TransA=trans_a, TransB=trans_b, Alpha=alpha, Beta=beta, FusedActivation=activation
    )
    *inputs, output = arrays.values()
    return Case(f"gemm-{id}", desc, inputs, [output])


_A, _B = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
_CLIP = DML_ELEMENT_WISE_CLIP_OPERATOR_DESC(InputTensor=None, OutputTensor=None, Min=20, Max=45)
_TALL, _WIDE = np.array([[1], [2], [3]]), np.array([[4, 5, 6]])

CASES = [
    # DxDispatch's sample
    _case("sample", _TALL, _WIDE, [[6, 7, 8], [10, 12, 14], [14, 17, 20]], np.full((3, 3), 2)),
    *(
        _case(f"{np.dtype(dtype).name}-{transposes}", _A, _B, y, dtype=dtype, transposes=transposes)
        for dtype in (np.float32, np.float16)
        for transposes, y in (
            ("NN", [[19, 22], [43, 50]]),
            ("TN", [[26, 30], [38, 44]]),
            ("NT", [[17, 23], [39, 53]]),
            ("TT", [[23, 31], [34, 46]]),
        )
    ),
    # 1 x 3 by 3 x 2, whichever way they lie
    _case("oblong", [[1, 2, 3]], [[1, 4], [2, 5], [3, 6]], [[14, 32]]),
    _case("oblong-transposed", [[1], [2], [3]], [[1, 2, 3], [4, 5, 6]], [[14, 32]], transposes="TT"),
    # 2 * 19 - 10 * -1 and so on
    _case("factors", _A, _B, [[48, 24], [46, 40]], [[-1, 2], [4, 6]], alpha=2, beta=-10),
    _case("beta-of-nothing", _A, _B, [[19, 22], [43, 50]], beta=NAN),
    _case("alpha-0", _A, _B, [[1, 2], [3, 4]], [[1, 2], [3, 4]], alpha=0),
    _case("three-dimensions", [_A, _B], [_B, _A], [[[19, 22], [43, 50]], [[23, 34], [31, 46]]]),
    _case(
        "batch-and-channels",
        [[_A, _B], [[[1, 0], [0, 1]], _A]],
        [[_B, _A], [_A, [[0, 1], [1, 0]]]],
        [[[[19, 22], [43, 50]], [[23, 34], [31, 46]]], [_A, [[2, 1], [4, 3]]]],
    ),
    _case(
        "broadcast",
        [_A, _B],
        [_B, _B],
        [[[20, 24], [44, 52]], [[68, 80], [92, 108]]],
        [[[1, 2], [1, 2]], [[1, 2], [1, 2]]],
        strides={"BTensor": (0, 2, 1), "CTensor": (0, 0, 1)},
    ),
    _case("strided", _A, _B, [[19, 22], [43, 50]], strides={"ATensor": (1, 5), "OutputTensor": (7, 3)}),
    _case("one-element", [[3]], [[-5]], [[-15]]),
    _case("specials", [[INF, 1], [INF, 0], [0, 1]], [[0, 1], [1, -INF]], [[NAN, NAN], [NAN, NAN], [1, -INF]]),
    # 300 * 300 - 300 * 300 with terms beyond float16, and a sum beyond it
    _case("float16-held-wide", [[300, 300]], [[300, 300], [-300, 300]], [[0, INF]], dtype=np.float16),
    # 1 + 2^-11 + 2^-11: each would be lost alone
    _case("rounds-once", [[1, 2**-11, 2**-11]], [[1], [1], [1]], [[1 + 2**-10]], dtype=np.float16),
    _case("fused-clip", _A, _B, [[20, 22], [43, 45]], activation=_CLIP),
    # Applied before rounding: 60000 + 60000 is beyond float16, 45 is not
    _case("float16-fused-clip", [[60000, 60000]], [[1], [1]], [[45]], dtype=np.float16, activation=_CLIP),
]


KERNELS = {"GEMM": "product of matrices(, transposed)?"}


def _gemm(**members: Any) -> OperatorDesc:
    right = {
        "ATensor": tensor((2, 3, 4)),
        "BTensor": tensor((2, 4, 5)),
        "CTensor": tensor((2, 3, 5)),
        "OutputTensor": tensor((2, 3, 5)),
        "TransA": MatrixTransform.NONE,
        "TransB": MatrixTransform.NONE,
        "Alpha": 1,
        "Beta": 1,
    }
    return DML_GEMM_OPERATOR_DESC(**{**right, **members})


NEGATIVES = [
    Negative("(C1)", _gemm(BTensor=tensor((2, 4, 5), "FLOAT16")), "BTensor.DataType", "FLOAT16", "FLOAT32, that of A"),
    Negative("(C1)", _gemm(CTensor=tensor((2, 3, 5), "FLOAT16")), "CTensor.DataType", "FLOAT16", "FLOAT32, that of A"),
    Negative("(C2)", _gemm(BTensor=tensor((4, 5))), "BTensor.DimensionCount", "2", "3, that of ATensor"),
    Negative("(C2)", _gemm(CTensor=tensor((3, 5))), "CTensor.DimensionCount", "2", "3, that of ATensor"),
    Negative("(C3)", _gemm(BTensor=tensor((1, 4, 5))), "BTensor.Sizes[0]", "1", "2, that of ATensor"),
    Negative("(C4)", _gemm(BTensor=tensor((2, 3, 5))), "BTensor.Sizes[1]", "3", "4, that of ATensor.Sizes[2]"),
    Negative(
        "(C4)",
        _gemm(ATensor=tensor((2, 6, 3)), TransA=MatrixTransform.TRANSPOSE),
        "BTensor.Sizes[1]",
        "4",
        "6, that of ATensor.Sizes[1]",
    ),
    Negative(
        "(C4)",
        _gemm(BTensor=tensor((2, 5, 6)), TransB=MatrixTransform.TRANSPOSE),
        "BTensor.Sizes[2]",
        "6",
        "4, that of ATensor.Sizes[2]",
    ),
    Negative("(C5)", _gemm(CTensor=tensor((1, 3, 5))), "CTensor.Sizes", "(1, 3, 5)", "(2, 3, 5), that of Output"),
    Negative("(C6)", _gemm(CTensor=None, OutputTensor=tensor((2, 3, 4))), "OutputTensor.Sizes[2]", "4", "5"),
    Negative("(C6)", _gemm(CTensor=None, OutputTensor=tensor((1, 3, 5))), "OutputTensor.Sizes[0]", "1", "2"),
    Negative("(F4)", _gemm(TransA=1), "TransA", "int 1", "MatrixTransform.TRANSPOSE"),
]

RIGHT = [_gemm()]
SUPPORT = {
    "GEMM": Support(
        [("1.0", 4, 4, FLOATS), ("4.0", 2, 4, FLOATS)],
        members=lambda output: {"TransA": MatrixTransform.NONE, "TransB": MatrixTransform.NONE},
    ),
}
