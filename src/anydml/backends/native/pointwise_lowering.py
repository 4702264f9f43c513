"""Element-wise operators and activations as programs for the CPU's kernels, which run an instruction after the other on
a few hundred elements at a time.

What is computed of floats follows the specification: in a wider type, and rounded once. An instruction on FLOAT32 or
FLOAT16 does so by itself; where several are one operator, all but the last give FLOAT64. Exponentials and logarithms of
FLOAT32 and FLOAT16 are computed in single precision, within a unit in its last place, so that they keep up with memory;
where something is scaled before, in double precision, as they would make more of an error there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto
from math import prod
from typing import Any

from ...core.enums import TensorDataType
from ...operators import spec_of
from ...operators.pointwise_chain import ChainStep, PointwiseChain
from ...operators.schema import OperatorDesc

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
    opcode, _ = _code(desc, data_type)
    if opcode == Opcode.POW:
        return _pow(program, desc, data_type, operands)
    if "FusedActivation" in spec.members:
        return _add1(program, desc, data_type, operands)
    if len(operands) == 2:
        return program.add(opcode, data_type, *operands)
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
    opcode, constants = _code(desc.FusedActivation, FLOAT64)
    return program.cast(program.add(opcode, FLOAT64, total, None, *constants), data_type)


def _unary(program: Program, name: str, desc: Any, data_type: TensorDataType, x: int) -> int:
    opcode, constants = _code(desc, data_type)
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


def _code(desc: Any, data_type: TensorDataType) -> tuple[Opcode, tuple[float, ...]]:
    """The opcode of an operator's row, and the constants of its instruction."""
    spec = spec_of(desc)
    native = None if spec is None or spec.pointwise is None else spec.pointwise.native
    if native is None:
        raise NoLowering(f"no program for {'it' if spec is None else spec.name}")
    if callable(native):
        name, constants = native(desc, data_type)
    else:
        name, *members = (native,) if isinstance(native, str) else native
        constants = tuple([getattr(desc, each) if isinstance(each, str) else each for each in members])
    if name not in Opcode.__members__:
        raise NoLowering(f"no instruction {name}")
    return Opcode[name], constants


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
