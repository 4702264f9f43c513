"""Element-wise operators and activations as programs for the CPU's kernels, which run an instruction after the other on
a few hundred elements at a time.

What is computed of floats follows the specification: in a wider type, and rounded once. An instruction on FLOAT32 or
FLOAT16 does so by itself; where several are one operator, all but the last give FLOAT64. Exponentials and logarithms of
FLOAT32 are computed in single precision, within a unit in its last place, so that they keep up with memory; where
something is scaled before, in double precision, as they would make more of an error there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import ceil, floor, prod
from typing import Any

import numpy as np

from ...core.enums import TensorDataType
from ...core.strided_layout import DTYPES
from ...operators import spec_of
from ...operators.pointwise_chain import ChainStep, PointwiseChain
from ...operators.schema import OperatorDesc

FLOAT16, FLOAT32, FLOAT64 = TensorDataType.FLOAT16, TensorDataType.FLOAT32, TensorDataType.FLOAT64
UINT8, INT64 = TensorDataType.UINT8, TensorDataType.INT64
INT32, UINT32 = TensorDataType.INT32, TensorDataType.UINT32
_FLOATS = (FLOAT16, FLOAT32, FLOAT64)


class NoLowering(Exception):
    """Why there is none."""


@cache
def _numbers() -> dict[str, int]:
    """The instructions that the compiled module has."""
    from ..._native import opcodes

    return {name: number for number, name in enumerate(opcodes())}


@dataclass
class Program:
    """Instructions; each gives a value. Values are numbered, the inputs first."""

    types: list[TensorDataType]
    """Of the values."""
    words: list[int] = field(default_factory=list)
    """The instructions as the kernels read them."""
    names: list[str] = field(default_factory=list)
    """Of the instructions."""
    results: list[int] = field(default_factory=list)
    """The values that are outputs."""

    def add(self, opcode: str, data_type: TensorDataType, *operands: int, constants: Sequence[float] = ()) -> int:
        """The number of a new value, of that type."""
        if opcode not in _numbers():
            raise NoLowering(f"no instruction {opcode}")
        of_floats = self.types[operands[0]] in _FLOATS
        three = [_bits(each, of_floats) for each in (*constants, 0, 0, 0)[:3]]
        self.words += (_numbers()[opcode], data_type, *(*operands, operands[0], operands[0])[:3], *three)
        self.names.append(opcode)
        self.types.append(data_type)
        return len(self.types) - 1

    def cast(self, x: int, data_type: TensorDataType) -> int:
        """A value as one of another type, rounded, or saturated; itself where it is of that type."""
        return x if self.types[x] == data_type else self.add("COPY", data_type, x)

    def described(self) -> str:
        """What it computes, in words."""
        words = [name.lower().replace("_", " ") for name in self.names if name not in _PREPARING]
        return ", ".join(words) or "copy"

    @property
    def attributes(self) -> dict[str, tuple[int, ...]]:
        return {"Program": tuple(self.words), "Results": tuple(self.results)}


def program_of(desc: OperatorDesc, data_types: Sequence[TensorDataType | None]) -> Program:
    """What computes the outputs of a desc from its inputs, which are of those types; None for one that it leaves out.

    Raises:
        NoLowering: where nothing does.
    """
    present = [each for each in data_types if each is not None]
    program = Program(list(present))
    numbers = iter(range(len(present)))
    operands = tuple([-1 if each is None else next(numbers) for each in data_types])
    links: tuple[ChainStep, ...] = (ChainStep(desc, operands),)
    results: tuple[int, ...] = (len(present),)
    if isinstance(desc, PointwiseChain):
        links, results = desc.links, desc.results
    values = list(range(len(present)))
    for link in links:
        values.append(_lower(program, link.desc, [None if n < 0 else values[n] for n in link.operands]))
    for result in results:
        value = values[result]
        # A value is one output at most, and no input.
        is_taken = value < len(present) or value in program.results
        program.results.append(program.add("COPY", program.types[value], value) if is_taken else value)
    return program


def _lower(program: Program, desc: Any, operands: Sequence[Any]) -> int:
    """Appends what an operator computes of some values, None for those that it leaves out; the number of the result."""
    spec = spec_of(desc)
    assert spec is not None and spec.pointwise is not None
    written = getattr(desc, spec.pointwise.output)
    output = program.types[operands[0]] if written is None else written.DataType
    if "FusedActivation" in spec.members:
        return _add1(program, desc, output, operands)
    opcode, constants = _code(desc, output)
    lowering = _OWN.get(opcode)
    if lowering is not None:
        return lowering(program, desc, output, operands)
    return _apply(program, opcode, constants, output, operands, getattr(desc, "ScaleBias", None))


def _apply(
    program: Program,
    opcode: str,
    constants: Sequence[float],
    output: TensorDataType,
    operands: Sequence[int],
    scale_bias: Any = None,
) -> int:
    """An instruction in the type that its operands are computed in."""
    first = program.types[operands[0]]
    is_wide = (
        scale_bias is not None
        or (opcode in _OF_FLOATS and first not in _FLOATS)
        or (opcode in _SCALED and not 1 / _SCALED[opcode] <= abs(prod(constants)) <= _SCALED[opcode])
        or (
            opcode in _IN_PARTS and first != FLOAT16 and not all(2.0**-16 <= abs(each) <= 2.0**16 for each in constants)
        )
    )
    if not is_wide:
        return program.add(opcode, output, *operands, constants=constants)
    x, *others = [program.cast(operand, FLOAT64) for operand in operands]
    if scale_bias is not None:
        x = program.add("LINEAR", FLOAT64, x, constants=(scale_bias.Scale, scale_bias.Bias))
    if opcode == "COPY":
        return program.cast(x, output)
    return program.cast(program.add(opcode, FLOAT64, x, *others, constants=constants), output)


def _pow(program: Program, desc: Any, output: TensorDataType, operands: Sequence[int]) -> int:
    if not any(program.types[operand] in _FLOATS for operand in operands) and desc.ScaleBias is None:
        x, exponent = [program.add("EXTEND", INT64, operand) for operand in operands]
        return program.add("WRAP", output, program.add("INTEGER_POW", INT64, x, exponent))
    if {program.types[operand] for operand in operands} == {output} and desc.ScaleBias is None:
        return program.add("POW", output, *operands)
    x, exponent = [program.cast(operand, FLOAT64) for operand in operands]
    if desc.ScaleBias is not None:
        x = program.add("LINEAR", FLOAT64, x, constants=(desc.ScaleBias.Scale, desc.ScaleBias.Bias))
    # What is truncated has to be right on either side of an integer.
    opcode = "POW" if output in _FLOATS else "PRECISE_POW"
    return program.cast(program.add(opcode, FLOAT64, x, exponent), output)


def _shrink(program: Program, desc: Any, output: TensorDataType, operands: Sequence[int]) -> int:
    constants = None if output in _FLOATS else _whole_shrink(desc.Bias, desc.Threshold, output)
    if constants is None:
        return _apply(program, "SHRINK", (desc.Bias, desc.Threshold), output, operands)
    return program.add("SHRINK", output, *operands, constants=constants)


def _whole_shrink(bias: float, threshold: float, output: TensorDataType) -> tuple[int, int, int] | None:
    """The integers by which SHRINK of integers is computed without floats; None where double precision might round a
    difference to an integer, or where a constant is beyond the type."""
    limits = np.iinfo(DTYPES[output])
    lowest = 0 if limits.min == 0 else -limits.max
    if not (lowest <= bias <= limits.max and 0 <= threshold < limits.max + 1):
        return None
    below, above = floor(bias), ceil(bias)
    if below != above and not (bias - below >= _APART and above - bias >= _APART):
        return None
    return floor(threshold), below, above


def _add1(program: Program, desc: Any, output: TensorDataType, operands: Sequence[int]) -> int:
    activation = spec_of(desc.FusedActivation)
    if activation is None or activation.name == "ACTIVATION_IDENTITY":
        return program.add("ADD", output, *operands)
    # Rounding changes nothing about what is below 0.
    if activation.name == "ACTIVATION_RELU":
        return program.add("RELU", output, program.add("ADD", output, *operands))
    total = program.add("ADD", FLOAT64, *[program.cast(operand, FLOAT64) for operand in operands])
    opcode, constants = _code(desc.FusedActivation, FLOAT64)
    return program.cast(program.add(opcode, FLOAT64, total, constants=constants), output)


def _bytes(opcode: str) -> Callable[..., int]:
    """What gives truth values or counts: as bytes, and as an output of UINT32 has them."""

    def lower(program: Program, desc: Any, output: TensorDataType, operands: Sequence[int]) -> int:
        _, constants = _code(desc, output)
        return program.cast(program.add(opcode, UINT8, *operands, constants=constants), output)

    return lower


def _quantize(program: Program, desc: Any, output: TensorDataType, operands: Sequence[Any]) -> int:
    x, scale, zero_point = operands
    x, scale = program.cast(x, FLOAT32), program.cast(scale, FLOAT32)
    return program.add("QUANTIZE_LINEAR", output, x, scale, _or_zero(program, zero_point, output, scale))


def _dequantize(program: Program, desc: Any, output: TensorDataType, operands: Sequence[Any]) -> int:
    x, scale, zero_point = operands
    data_type = program.types[x]
    # Of 16 and 32 bits and FLOAT16, a single would be rounded twice; the product of 8 bits and a half is one.
    if data_type.bits <= 16 or (data_type in (INT32, UINT32) and output == FLOAT32):
        wide = FLOAT32 if output == FLOAT32 or data_type.bits == 8 else FLOAT64
        return program.cast(_dequantized(program, wide, x, program.cast(scale, FLOAT32), zero_point), output)
    difference = program.cast(x, FLOAT64)
    if zero_point is not None:
        difference = program.add("SUBTRACT", FLOAT64, difference, program.cast(zero_point, FLOAT64))
    return program.cast(program.add("MULTIPLY", FLOAT64, difference, program.cast(scale, FLOAT64)), output)


def _dequantized(program: Program, wide: TensorDataType, x: int, scale: int, zero_point: int | None) -> int:
    zero = _or_zero(program, zero_point, program.types[x], scale)
    return program.add("DEQUANTIZE_LINEAR", wide, x, scale, zero)


def _quantized_add(program: Program, desc: Any, output: TensorDataType, operands: Sequence[Any]) -> int:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero_point = operands
    left, right, of_output = [
        program.add("LINEAR_QUANTIZATION", FLOAT32, each, _or_zero(program, zero, data_type, each))
        for each, zero, data_type in (
            (a_scale, a_zero, program.types[a]),
            (b_scale, b_zero, program.types[b]),
            (scale, zero_point, output),
        )
    ]
    quantization = program.add("SUM_QUANTIZATION", FLOAT32, left, right, of_output)
    return program.add("QUANTIZED_LINEAR_ADD", output, a, b, quantization)


def _or_zero(program: Program, zero_point: int | None, data_type: TensorDataType, x: int) -> int:
    """A zero point, where there is none of as many elements as another value."""
    return program.add("ZERO", data_type, x) if zero_point is None else zero_point


def _bits(value: float, is_float: bool) -> int:
    """A constant for an instruction on floats, or on integers, in a signed integer of 64 bits."""
    if is_float:
        return int(struct.unpack("q", struct.pack("d", value))[0])
    return (int(value) + 2**63) % 2**64 - 2**63


def _code(desc: Any, data_type: TensorDataType) -> tuple[str, tuple[float, ...]]:
    """The opcode of an operator's row, and the constants of its instruction."""
    spec = spec_of(desc)
    native = None if spec is None or spec.pointwise is None else spec.pointwise.native
    if native is None:
        raise NoLowering(f"no program for {'it' if spec is None else spec.name}")
    if callable(native):
        name, values = native(desc, data_type)
        return name, values
    opcode, *members = (native,) if isinstance(native, str) else native
    return opcode, tuple([getattr(desc, each) if isinstance(each, str) else each for each in members])


_BYTES = (
    "BIT_COUNT",
    "EQUALS",
    "GREATER_THAN",
    "LESS_THAN",
    "GREATER_THAN_OR_EQUAL",
    "LESS_THAN_OR_EQUAL",
    "IS_NAN",
    "IS_INFINITY",
)
_OWN: dict[str, Callable[..., int]] = {
    "POW": _pow,
    "SHRINK": _shrink,
    "QUANTIZE_LINEAR": _quantize,
    "DEQUANTIZE_LINEAR": _dequantize,
    "QUANTIZED_LINEAR_ADD": _quantized_add,
    **{name: _bytes(name) for name in _BYTES},
}
"""Operators whose tensors have several types, or that are several instructions."""

_PREPARING = {"COPY", "ZERO", "LINEAR_QUANTIZATION", "SUM_QUANTIZATION"}
"""Instructions that operators only need beside their own."""

_OF_FLOATS = {"SHRINK", "CONSTANT_POW"}
"""Instructions that integers have not, which become doubles for them."""

_APART = 2.0**-20
"""From integers, what integers of 32 bits take away: half a unit in the last place of a double difference is less."""

_SCALED = {"ELU": 2.0**100, "SCALED_ELU": 2.0**100, "SWISH": 2.0**16}
"""Instructions that FLOAT32 has in single precision, with what a factor, in two parts, may be at most; at least its
reciprocal."""

_IN_PARTS = {"HARD_SWISH"}
"""Instructions that FLOAT32 has in two parts of single precision, for constants that are neither large nor small."""
