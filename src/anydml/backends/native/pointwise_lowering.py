"""Element-wise operators and activations as programs for the CPU's kernels, which run an instruction after the other on
a few hundred elements at a time.

What is computed of floats follows the specification: in a wider type, and rounded once. An instruction on FLOAT32 or
FLOAT16 does so by itself; where several are one operator, all but the last give FLOAT64. Exponentials and logarithms of
FLOAT32 and FLOAT16 are computed in single precision, within a unit in its last place, so that they keep up with memory;
where something is scaled before, in double precision, as they would make more of an error there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto
from math import copysign, inf, prod
from typing import Any

from ...core.enums import TensorDataType
from ...operators import spec_of
from ...operators.pointwise_chain import ChainStep, PointwiseChain
from ...operators.schema import OperatorDesc
from ...operators.specs.element_wise_unary import limits

FLOAT16, FLOAT32, FLOAT64 = TensorDataType.FLOAT16, TensorDataType.FLOAT32, TensorDataType.FLOAT64


class Opcode(IntEnum):
    """Those of src/native/pointwise/pointwise.cpp, in the same order."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return count

    COPY = auto()
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    REMAINDER = auto()
    MAX = auto()
    MIN = auto()
    MEAN = auto()
    NEGATE = auto()
    ABS = auto()
    SQRT = auto()
    RECIP = auto()
    CLIP = auto()
    CLIP_FROM_ABOVE = auto()
    RELU = auto()
    PARAMETERIZED_RELU = auto()
    LEAKY_RELU = auto()
    THRESHOLDED_RELU = auto()
    SHRINK = auto()
    LINEAR = auto()
    HARD_SIGMOID = auto()
    SOFTSIGN = auto()
    POW = auto()
    EXP = auto()
    LOG = auto()
    SIGMOID = auto()
    TANH = auto()
    SOFTPLUS = auto()
    ELU = auto()
    SCALED_ELU = auto()
    SCALED_TANH = auto()
    SCALED_SOFTPLUS = auto()


class NoLowering(Exception):
    """Why there is none."""


@dataclass
class Program:
    """Instructions; each gives a value. Values are numbered, the inputs first."""

    types: list[TensorDataType]
    """Of the values."""
    instructions: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, opcode: Opcode, data_type: TensorDataType, x: int, y: int | None = None, *constants: float) -> int:
        """The number of a new value, of that type."""
        three = [_bits(each, data_type) for each in (*constants, 0, 0, 0)[:3]]
        self.instructions.append((opcode, data_type, x, x if y is None else y, *three))
        self.types.append(data_type)
        return len(self.types) - 1

    def cast(self, x: int, data_type: TensorDataType) -> int:
        """A float as one of another type, rounded; itself where it is of that type."""
        return x if self.types[x] == data_type else self.add(Opcode.COPY, data_type, x)


def program_of(desc: OperatorDesc, data_types: Sequence[TensorDataType]) -> list[tuple[int, ...]]:
    """What computes the output of a desc from its inputs, which are of those types.

    Raises:
        NoLowering: where nothing does.
    """
    program = Program(list(data_types))
    values = list(range(len(data_types)))
    for link in desc.links if isinstance(desc, PointwiseChain) else (ChainStep(desc, tuple(values)),):
        values.append(_lower(program, link.desc, [values[operand] for operand in link.operands]))
    return program.instructions


def _lower(program: Program, desc: OperatorDesc, operands: Sequence[int]) -> int:
    """Appends what an operator computes of some values; the number of the result, of the type of the first."""
    spec = spec_of(desc)
    assert spec is not None
    data_type = program.types[operands[0]]
    if spec.name in _BINARY:
        return program.add(_BINARY[spec.name], data_type, *operands)
    if spec.name == "ELEMENT_WISE_POW":
        return _pow(program, desc, data_type, operands)
    if spec.name == "ELEMENT_WISE_ADD1":
        return _add1(program, desc, data_type, operands)
    if spec.name not in _UNARY:
        raise NoLowering(f"no program for {spec.name}")
    return _unary(program, spec.name, desc, data_type, operands[0])


def _pow(program: Program, desc: Any, data_type: TensorDataType, operands: Sequence[int]) -> int:
    x, exponent = operands
    if not _is_float(data_type) or not _is_float(program.types[exponent]):
        raise NoLowering(f"no {data_type.name} to the power of {program.types[exponent].name}")
    if desc.ScaleBias is None and program.types[exponent] == data_type:
        return program.add(Opcode.POW, data_type, x, exponent)
    x, exponent = program.cast(x, FLOAT64), program.cast(exponent, FLOAT64)
    if desc.ScaleBias is not None:
        x = program.add(Opcode.LINEAR, FLOAT64, x, None, desc.ScaleBias.Scale, desc.ScaleBias.Bias)
    return program.cast(program.add(Opcode.POW, FLOAT64, x, exponent), data_type)


def _add1(program: Program, desc: Any, data_type: TensorDataType, operands: Sequence[int]) -> int:
    activation = spec_of(desc.FusedActivation)
    if activation is None or activation.name == "ACTIVATION_IDENTITY":
        return program.add(Opcode.ADD, data_type, *operands)
    # Rounding changes nothing about what is below 0.
    if activation.name == "ACTIVATION_RELU":
        total = program.add(Opcode.ADD, data_type, *operands)
        return _unary(program, activation.name, desc.FusedActivation, data_type, total)
    x, y = [program.cast(operand, FLOAT64) for operand in operands]
    total = program.add(Opcode.ADD, FLOAT64, x, y)
    opcode, constants = _UNARY[activation.name](desc.FusedActivation, FLOAT64)
    return program.cast(program.add(opcode, FLOAT64, total, None, *constants), data_type)


def _unary(program: Program, name: str, desc: Any, data_type: TensorDataType, x: int) -> int:
    opcode, constants = _UNARY[name](desc, data_type)
    scale_bias = getattr(desc, "ScaleBias", None)
    if not _is_float(data_type):
        if scale_bias is not None:
            raise NoLowering(f"no ScaleBias of {data_type.name}")
        if opcode in _OF_FLOATS:
            raise NoLowering(f"no {name} of {data_type.name}")
        return program.add(opcode, data_type, x, None, *constants)
    if scale_bias is not None:
        scaling = scale_bias.Scale, scale_bias.Bias
        if opcode == Opcode.COPY:
            opcode, constants = Opcode.LINEAR, scaling
        else:
            x = program.add(Opcode.LINEAR, FLOAT64, program.cast(x, FLOAT64), None, *scaling)
    elif opcode in _SCALED and not _TINY < abs(prod(constants)) < _HUGE:
        x = program.cast(x, FLOAT64)
    return program.cast(program.add(opcode, program.types[x], x, None, *constants), data_type)


def _is_float(data_type: TensorDataType) -> bool:
    return data_type in (FLOAT16, FLOAT32, FLOAT64)


def _bits(value: float, data_type: TensorDataType) -> int:
    """A constant for an instruction on numbers of that type, in a signed integer of 64 bits."""
    if _is_float(data_type):
        return int(struct.unpack("q", struct.pack("d", value))[0])
    return (int(value) + 2**63) % 2**64 - 2**63


_BINARY = {
    "ELEMENT_WISE_ADD": Opcode.ADD,
    "ELEMENT_WISE_SUBTRACT": Opcode.SUBTRACT,
    "ELEMENT_WISE_MULTIPLY": Opcode.MULTIPLY,
    "ELEMENT_WISE_DIVIDE": Opcode.DIVIDE,
    "ELEMENT_WISE_MODULUS_TRUNCATE": Opcode.REMAINDER,
    "ELEMENT_WISE_MAX": Opcode.MAX,
    "ELEMENT_WISE_MIN": Opcode.MIN,
    "ELEMENT_WISE_MEAN": Opcode.MEAN,
    "ACTIVATION_PARAMETERIZED_RELU": Opcode.PARAMETERIZED_RELU,
}

_Lowering = Callable[[Any, TensorDataType], tuple[Opcode, tuple[float, ...]]]


def _plain(opcode: Opcode, *constants: str | float) -> _Lowering:
    """The instruction whose constants are members of the desc, or numbers."""

    def lowering(desc: Any, data_type: TensorDataType) -> tuple[Opcode, tuple[float, ...]]:
        return opcode, tuple([getattr(desc, each) if isinstance(each, str) else each for each in constants])

    return lowering


def _clip(desc: Any, data_type: TensorDataType) -> tuple[Opcode, tuple[float, ...]]:
    return Opcode.CLIP, limits(data_type, desc.Min, desc.Max)


def _threshold(desc: Any, data_type: TensorDataType) -> tuple[Opcode, tuple[float, ...]]:
    return Opcode.CLIP, limits(data_type, desc.Min, inf)


def _clip1(desc: Any, data_type: TensorDataType) -> tuple[Opcode, tuple[float, ...]]:
    low, high = limits(data_type, desc.Min, desc.Max)
    if _is_float(data_type):
        return Opcode.CLIP_FROM_ABOVE, (low, high)
    return Opcode.CLIP, (low, max(low, high))


def _softplus(desc: Any, data_type: TensorDataType) -> tuple[Opcode, tuple[float, ...]]:
    steepness = desc.Steepness
    if steepness == 1:
        return Opcode.SOFTPLUS, ()
    return Opcode.SCALED_SOFTPLUS, (1 / steepness if steepness else copysign(inf, steepness), steepness)


_UNARY: dict[str, _Lowering] = {
    "ELEMENT_WISE_IDENTITY": _plain(Opcode.COPY),
    "ELEMENT_WISE_ABS": _plain(Opcode.ABS),
    "ELEMENT_WISE_NEGATE": _plain(Opcode.NEGATE),
    "ELEMENT_WISE_SQRT": _plain(Opcode.SQRT),
    "ELEMENT_WISE_RECIP": _plain(Opcode.RECIP),
    "ELEMENT_WISE_EXP": _plain(Opcode.EXP),
    "ELEMENT_WISE_LOG": _plain(Opcode.LOG),
    "ELEMENT_WISE_CLIP": _clip,
    "ELEMENT_WISE_CLIP1": _clip1,
    "ELEMENT_WISE_THRESHOLD": _threshold,
    "ACTIVATION_IDENTITY": _plain(Opcode.COPY),
    "ACTIVATION_RELU": _plain(Opcode.RELU),
    "ACTIVATION_LEAKY_RELU": _plain(Opcode.LEAKY_RELU, "Alpha"),
    "ACTIVATION_THRESHOLDED_RELU": _plain(Opcode.THRESHOLDED_RELU, "Alpha"),
    "ACTIVATION_SHRINK": _plain(Opcode.SHRINK, "Bias", "Threshold"),
    "ACTIVATION_LINEAR": _plain(Opcode.LINEAR, "Alpha", "Beta"),
    "ACTIVATION_HARD_SIGMOID": _plain(Opcode.HARD_SIGMOID, "Alpha", "Beta"),
    "ACTIVATION_SOFTSIGN": _plain(Opcode.SOFTSIGN),
    "ACTIVATION_SIGMOID": _plain(Opcode.SIGMOID),
    "ACTIVATION_TANH": _plain(Opcode.TANH),
    "ACTIVATION_SCALED_TANH": _plain(Opcode.SCALED_TANH, "Alpha", "Beta"),
    "ACTIVATION_SOFTPLUS": _softplus,
    "ACTIVATION_PARAMETRIC_SOFTPLUS": _plain(Opcode.SCALED_SOFTPLUS, "Alpha", "Beta"),
    "ACTIVATION_ELU": _plain(Opcode.ELU, "Alpha"),
    "ACTIVATION_SCALED_ELU": _plain(Opcode.SCALED_ELU, "Alpha", "Gamma"),
}

_OF_FLOATS = {Opcode.SHRINK}
"""What is of integers as well, but not here."""

_SCALED = {Opcode.ELU, Opcode.SCALED_ELU}
_TINY, _HUGE = 2.0**-100, 2.0**100
"""Between them the factor of these, in two parts, is in the range of FLOAT32."""


def described(program: Sequence[tuple[int, ...]]) -> str:
    """What a program computes, in words."""
    opcodes = [Opcode(instruction[0]) for instruction in program]
    words = [opcode.name.lower().replace("_", " ") for opcode in opcodes if opcode != Opcode.COPY]
    return ", ".join(words) or "copy"
