"""What all targets share: findings, outcomes, and values that no one expects."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    AxisDirection,
    DMLError,
    ExecutionFlags,
    FeatureLevel,
    TensorDataType,
    TensorFlags,
    Violation,
)
from anydml.core.strided_layout import DTYPES

ENGINES = ("reference", "cpu")
JOINED = list(DTYPES)
REALS = [TensorDataType.FLOAT32, TensorDataType.FLOAT16]
MEMORY = 4 << 30
HANG = 30.0
"""Seconds after which a case is taken for endless."""


class Finding(Exception):
    """Something that should not be."""


def expect(condition: bool, *what: object) -> None:
    if not condition:
        raise Finding(" ".join(map(str, what)))


class Outcome(NamedTuple):
    """What came of a call: a result, or the rules that it broke."""

    result: Any
    rules: tuple[tuple[str, str], ...] | None


def outcome(call: Callable[[], Any]) -> Outcome:
    """Runs a call. Any exception but a DMLError is a finding, and so is one whose parts are not in order."""
    try:
        return Outcome(call(), None)
    except DMLError as problem:
        expect(bool(problem.violations), "an error without violations")
        expect(isinstance(problem, (ValueError, TypeError, MemoryError)), type(problem))
        text = str(problem)
        for violation in problem.violations:
            check_violation(violation)
            expect(str(violation) in text, "a violation is missing in", text)
        return Outcome(None, tuple((v.rule, v.where) for v in problem.violations))


def check_violation(violation: object) -> None:
    expect(isinstance(violation, Violation), violation)
    assert isinstance(violation, Violation)
    expect(bool(re.fullmatch(r"\([A-Z]\d+\)", violation.rule)), violation.rule)
    expect(bool(violation.found) and bool(violation.expected), "nothing said:", str(violation))
    expect(len(str(violation)) < 50_000, "too much said:", str(violation)[:300])


# Values that no one expects


class Hostile:
    """Raises where it is looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def endless() -> list[Any]:
    nested: list[Any] = []
    nested.append(nested)
    return nested


def deep() -> list[Any]:
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    return nested


NUMBERS = [0, 1, 2, 3, 4, 5, 7, 8, 16, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**61, 2**62]
NUMBERS += [2**63 - 1, 2**63, 2**64, 2**70, 10**30, -1, -2, -(2**31), -(2**63), -(2**64)]
HUGE = [10**400, 10**4290, 10**5000, -(10**5000)]


def number(random: Random) -> int:
    if random.random() < 0.02:
        return random.choice(HUGE)
    return random.choice(NUMBERS) if random.random() < 0.5 else random.randint(-2, 9)


def small_sizes(random: Random, rank: int | None = None, most: int = 256) -> tuple[int, ...]:
    rank = random.randint(1, 8) if rank is None else rank
    sizes: list[int] = []
    for _ in range(rank):
        sizes.append(random.choice([1, 1, 2, 3, 4, 5, 17]) if int(np.prod(sizes, dtype=int)) < most // 17 else 1)
    random.shuffle(sizes)
    return tuple(sizes)


def strides_for(random: Random, sizes: Sequence[int], is_output: bool) -> tuple[int, ...] | None:
    """None, or strides of any order, with gaps, and for inputs now and then 0."""
    if random.random() < 0.4:
        return None
    order = list(range(len(sizes)))
    random.shuffle(order)
    strides, span = [0] * len(sizes), 1
    for i in order:
        strides[i] = span + random.choice([0, 0, 0, 1, 3])
        span += (sizes[i] - 1) * strides[i]
        if not is_output and random.random() < 0.15:
            strides[i] = 0
    return tuple(strides)


def tensor_of(
    random: Random, data_type: TensorDataType, sizes: Sequence[int], is_output: bool = False
) -> DML_BUFFER_TENSOR_DESC:
    strides = strides_for(random, sizes, is_output)
    return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=sizes, Strides=strides)


def tensor(random: Random) -> DML_BUFFER_TENSOR_DESC:
    return tensor_of(random, random.choice(list(TensorDataType)), small_sizes(random))


def junk(random: Random) -> Any:
    """A value of some type or other."""
    makers: list[Callable[[], Any]] = [
        lambda: None,
        lambda: number(random),
        lambda: random.choice([True, False]),
        lambda: random.choice([0.0, 1.0, -1.5, 1e300, float("nan"), float("inf"), 1j]),
        lambda: random.choice(["", "a", "2", "FLOAT32", "\ud800", "x" * 1000, "é\n"]),
        lambda: random.choice([b"", b"bytes", bytearray(16), memoryview(b"1234")]),
        lambda: [junk(random) for _ in range(random.randint(0, 3))],
        lambda: tuple(number(random) for _ in range(random.randint(0, 9))),
        lambda: random.choice([{}, set(), {1: 2}, range(3), object(), object, Hostile(), Ellipsis, NotImplemented]),
        lambda: random.choice([endless, deep])(),
        lambda: random.choice([np.int32(2), np.uint64(2**64 - 1), np.float32(1), np.bool_(True), np.str_("a")]),
        lambda: random.choice([np.array(3), np.array([1, 2]), np.zeros((2, 0)), np.array([None]), np.array([1.5])]),
        lambda: random.choice([np.array([2**63], np.uint64), np.zeros(3, ">i4"), np.zeros(2, "M8[s]")]),
        lambda: random.choice([TensorDataType.FLOAT32, AxisDirection.DECREASING, TensorFlags(1), TensorFlags(6)]),
        lambda: random.choice([ExecutionFlags.NONE, FeatureLevel.LEVEL_6_4, TensorDataType.UNKNOWN]),
        lambda: tensor(random),
        lambda: iter([1]),
    ]
    return random.choice(makers)()


NOTES: list[object] = []


def note(*what: object) -> None:
    """Keeps what the case is about, for a finding."""
    NOTES[:] = what


def mutated(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Bytes with some taken out, put in, changed, or exchanged for those of others."""
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        i = random.randrange(len(changed) + 1)
        j = min(len(changed), i + random.choice([1, 1, 2, 8, 100]))
        way = random.randrange(5)
        if way == 0:
            changed[i:j] = b""
        elif way == 1:
            changed[i:i] = random.randbytes(2)
        elif way == 2 and i < len(changed):
            changed[i] ^= 1 << random.randrange(8)
        elif way == 3:
            changed[i:i] = changed[i:j]
        else:
            changed[i:i] = random.choice(others)[i:j]
    return bytes(changed)
