"""Products of matrices and convolutions of integers, and dynamic quantisation."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml import DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC, TensorDataType
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import REALS, small_sizes, tensor_of
from fuzzing.drawing.pooling import BYTES, pooling_numbers

REAL, INT32 = TensorDataType.FLOAT32, TensorDataType.INT32


def good_integer_gemm(random: Random) -> OperatorDesc:
    found = spec(
        random.choice(
            ["MATRIX_MULTIPLY_INTEGER", "QUANTIZED_LINEAR_MATRIX_MULTIPLY", "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"]
        )
    )
    batch = [random.randint(1, 2) for _ in range(random.randint(0, 2))]
    m, k, n = (random.choice([1, 1, 2, 3, 7, 33]) for _ in range(3))
    ones, output = [1] * len(batch), [*batch, m, n]
    types = {side: random.choice(found.tensors[f"{side}Tensor"].data_types) for side in ("A", "B", "Output")}
    real = types["Output"] if types["Output"] in REALS else REAL
    sizes = {"A": [*batch, m, k], "B": [*batch, k, n], "Output": output, "Bias": output}
    members: dict[str, Any] = {}
    for name in found.tensors:
        side = name.removesuffix("Tensor").removesuffix("Scale").removesuffix("ZeroPoint")
        if name in ("ATensor", "BTensor", "OutputTensor"):
            members[name] = tensor_of(random, types[side], sizes[side], name == "OutputTensor")
        elif name == "BiasTensor":
            members[name] = random.choice([None, tensor_of(random, real, output)])
        else:
            each = [*ones, 1, n] if side == "B" else [*ones, m, 1]
            kind = real if "Scale" in name else types[side]
            drawn = tensor_of(random, kind, random.choice([each, [*ones, 1, 1]]))
            members[name] = drawn if "Scale" in name else random.choice([None, drawn])
    return found.desc(**members)


def good_integer_convolution(random: Random) -> OperatorDesc:
    found = spec(random.choice(["CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION"]))
    is_quantised = "BiasTensor" in found.tensors
    spatial = small_sizes(random, 2 if is_quantised else random.choice([1, 2]), 64)
    options, places = pooling_numbers(random, spatial, ceiling=False)
    groups, batch = random.choice([1, 1, 2, 3]), random.randint(1, 2)
    inputs, outputs = groups * random.randint(1, 2), groups * random.randint(1, 2)
    types = {side: random.choice(BYTES) for side in ("Input", "Filter", "Output")}
    if not is_quantised:
        types["Output"] = INT32
    sizes = {
        "Input": (batch, inputs, *spatial),
        "Filter": (outputs, inputs // groups, *options.pop("WindowSize")),
        "Output": (batch, outputs, *places),
    }
    ones = (1,) * len(spatial)
    members: dict[str, Any] = {}
    for name in found.tensors:
        side = name.removesuffix("Tensor").removesuffix("Scale").removesuffix("ZeroPoint")
        if name == f"{side}Tensor" and side in sizes:
            members[name] = tensor_of(random, types[side], sizes[side], side == "Output")
        elif name == "BiasTensor":
            members[name] = random.choice([None, tensor_of(random, INT32, (1, outputs, *ones))])
        else:
            channels = random.choice([1, outputs]) if side == "Filter" else 1
            drawn = tensor_of(random, REAL if "Scale" in name else types[side], (1, channels, *ones))
            members[name] = drawn if "Scale" in name else random.choice([None, drawn])
    return found.desc(**members, **options, GroupCount=groups)


def good_dynamic_quantization(random: Random) -> OperatorDesc:
    sizes = small_sizes(random, random.randint(1, 5), 200)
    one, kind = (1,) * len(sizes), random.choice(BYTES)
    return DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC(
        InputTensor=tensor_of(random, random.choice(REALS), sizes),
        OutputTensor=tensor_of(random, kind, sizes, True),
        OutputScaleTensor=tensor_of(random, REAL, one, True),
        OutputZeroPointTensor=tensor_of(random, kind, one, True),
    )


DRAWN = [good_integer_gemm, good_integer_convolution, good_dynamic_quantization]
