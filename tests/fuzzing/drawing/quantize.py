"""QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

from random import Random

from anydml import DML_DEQUANTIZE_OPERATOR_DESC, DML_QUANTIZE_OPERATOR_DESC, QuantizationType, TensorDataType
from anydml.operators.schema import OperatorDesc, Tensor
from fuzzing.common import REALS, small_sizes, tensor_of

QUANTISED = [TensorDataType[name] for name in ("INT8", "UINT8", "INT4", "UINT4")]


def _tensor(random: Random, data_type: TensorDataType, sizes: tuple[int, ...], is_output: bool = False) -> Tensor:
    """Of 4 bits always packed."""
    if data_type.bits == 4:
        return Tensor(DataType=data_type, Sizes=sizes)
    return tensor_of(random, data_type, sizes, is_output)


def _blocks(random: Random, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([random.choice([n for n in range(1, size + 1) if size % n == 0]) for size in sizes])


def good_quantize(random: Random) -> OperatorDesc:
    sizes = tuple(small_sizes(random, most=64))
    real, quantised = random.choice(REALS), random.choice(QUANTISED)
    types = [real, quantised][: random.randint(1, 2)]
    kind = random.choice([DML_QUANTIZE_OPERATOR_DESC, DML_DEQUANTIZE_OPERATOR_DESC])
    ends = (real, quantised) if kind is DML_QUANTIZE_OPERATOR_DESC else (quantised, real)
    return kind(
        InputTensor=_tensor(random, ends[0], sizes),
        QuantizationType=QuantizationType(len(types)),
        QuantizationTensors=[_tensor(random, each, _blocks(random, sizes)) for each in types],
        OutputTensor=_tensor(random, ends[1], sizes, True),
    )


DRAWN = [good_quantize]
