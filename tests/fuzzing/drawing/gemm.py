"""Products of matrices."""

from __future__ import annotations

from random import Random

from anydml import (
    DML_ACTIVATION_SOFTMAX_OPERATOR_DESC,
    DML_GEMM_OPERATOR_DESC,
)
from anydml.core.enums import MatrixTransform
from anydml.operators.schema import OperatorDesc
from fuzzing.common import REALS, tensor_of
from fuzzing.drawing.activation import fused


def good_gemm(random: Random) -> OperatorDesc:
    activation = random.choice([None, fused(random, "GEMM")])
    # SOFTMAX is of matrices only.
    most = 1 if isinstance(activation, DML_ACTIVATION_SOFTMAX_OPERATOR_DESC) else 2
    batch = [random.randint(1, most) for _ in range(random.randint(0, 2))]
    m, k, n = (random.choice([1, 1, 2, 3, 7]) for _ in range(3))
    data_type = random.choice(REALS)
    transforms = [random.choice(list(MatrixTransform)) for _ in range(2)]
    (a, b) = ([*batch, *shape[:: 1 - 2 * turn]] for shape, turn in zip(((m, k), (k, n)), transforms, strict=True))
    output = [*batch, m, n]
    return DML_GEMM_OPERATOR_DESC(
        ATensor=tensor_of(random, data_type, a),
        BTensor=tensor_of(random, data_type, b),
        CTensor=random.choice([None, tensor_of(random, data_type, output)]),
        OutputTensor=tensor_of(random, data_type, output, True),
        TransA=transforms[0],
        TransB=transforms[1],
        Alpha=random.choice([0, 1, -0.5]),
        Beta=random.choice([0, 1, 2]),
        FusedActivation=activation,
    )


DRAWN = [good_gemm]
