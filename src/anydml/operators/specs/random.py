"""RANDOM_GENERATOR: numbers that look random, by a counter-based generator.

Decisions where the page is silent or wrong:

1. Words are in the order of Random123: element 0 of the counter and of the key is the least significant one, and a
   block's numbers follow each other as its words do.
2. Element i of OutputTensor, in row-major order whatever its strides, is word i mod 4 of the block of the counter plus
   floor(i / 4). The numbers of a last block that OutputTensor has no place for are left out, and not told later.
3. The counter is taken modulo 2^128. (The sum in the page's example is not the one of its numbers: 0x74746c65 + 324,855
   is 0x7479615c.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ...core import enums
from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import same, sizes_of
from ..schema import (
    Choices,
    ConstraintFailure,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    labelled,
    support_table,
)

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
"""What the key's words grow by from round to round: the golden ratio, and sqrt(3) - 1."""
ROUNDS = 10
WORD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_RANDOM_GENERATOR_OPERATOR_DESC(OperatorDesc):
    """Fills a tensor with pseudo-random bits, which a state determines. Not for cryptography.

    The state is 6 words: a counter of 128 bits, and a key of 64 bits, the least significant word first. Blocks of 4
    elements are those of Philox 4x32-10, of one value of the counter each. The new state has a counter that is larger
    by ceil(elements / 4).

    Args:
        InputStateTensor: the state, {6}, or {..., 6} with leading sizes of 1.
        OutputTensor: the bits, of any sizes.
        OutputStateTensor: the state to go on with; None where it is not wanted.
        Type: the generator, of which there is one.

    Constraints:
        (C1) The last size of InputStateTensor is 6, all others are 1.
        (C2) InputStateTensor and OutputStateTensor have the same DimensionCount.
        (C3) OutputStateTensor has the Sizes of InputStateTensor.

    Source: the page of DML_RANDOM_GENERATOR_OPERATOR_DESC; since feature level 3.0.
    """

    InputStateTensor: Tensor
    OutputTensor: Tensor
    OutputStateTensor: OptionalTensor = None
    Type: enums.RandomGeneratorType


def _constraints(desc: DML_RANDOM_GENERATOR_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    for i, size in enumerate(reversed(desc.InputStateTensor.Sizes)):
        wanted = 6 if i == 0 else 1
        if size != wanted:
            place = len(desc.InputStateTensor.Sizes) - 1 - i
            expected = f"{wanted}, as a state is 6 words"
            yield ConstraintFailure("(C1)", f"InputStateTensor.Sizes[{place}]", str(size), expected)
    if desc.OutputStateTensor is not None:
        yield from same(desc, "(C2)", "DimensionCount", "InputStateTensor", "OutputStateTensor")


def _infer_sizes(desc: DML_RANDOM_GENERATOR_OPERATOR_DESC) -> dict[str, Choices]:
    return {} if desc.OutputStateTensor is None else {"OutputStateTensor": sizes_of(desc.InputStateTensor)}


def words_of(number: int, count: int) -> Array:
    """An integer as words of 32 bits, the least significant first."""
    return np.array([number >> 32 * i & WORD for i in range(count)], np.uint64)


def philox(counter: Sequence[Array], key: Sequence[int]) -> list[Array]:
    """The words of blocks, each an array of 64 bits as those of counters are.

    Philox 4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3") is
    a bijection of 128 bits that 64 others, the key, choose: a counter becomes a block of 4 numbers.
    """
    c0, c1, c2, c3 = counter
    for i in range(ROUNDS):
        k0, k1 = (np.uint64((word + i * step) & WORD) for word, step in zip(key, WEYL, strict=True))
        p0, p1 = (c * np.uint64(m) for c, m in zip((c0, c2), MULTIPLIERS, strict=True))
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & WORD, p0 >> 32 ^ c3 ^ k1, p0 & WORD
    return [c0, c1, c2, c3]


def _reference(desc: DML_RANDOM_GENERATOR_OPERATOR_DESC, state: Array) -> tuple[Array, Array]:
    words = [int(word) for word in state.reshape(-1)]
    counter, key = sum(word << 32 * i for i, word in enumerate(words[:4])), words[4:]
    count = prod(desc.OutputTensor.Sizes)
    blocks = -(-count // 4)
    # The counters' lower halves, and the carry of each into the upper one.
    low = np.uint64(counter & 2**64 - 1) + np.arange(blocks, dtype=np.uint64)
    high = np.uint64(counter >> 64) + (low < np.uint64(counter & 2**64 - 1))
    y = np.stack(philox([low & WORD, low >> 32, high & WORD, high >> 32], key), axis=-1)
    new = [*words_of((counter + blocks) % 2**128, 4), *key]
    numbers = y.reshape(-1)[:count].astype(np.uint32).reshape(desc.OutputTensor.Sizes)
    return numbers, np.array(new, np.uint32).reshape(state.shape)


def _independent(desc: DML_RANDOM_GENERATOR_OPERATOR_DESC) -> Independence:
    """Nothing: an element's number counts all those before it."""
    tensors = [(label, each) for label, each in labelled(desc, desc.__dataclass_fields__) if hasattr(each, "Sizes")]
    return {label: (None,) * len(each.Sizes) for label, each in tensors}


RANDOM_GENERATOR = OperatorSpec(
    operator_type=OperatorType.RANDOM_GENERATOR,
    desc=DML_RANDOM_GENERATOR_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C3)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_4_0 and above
        InputStateTensor  | Input           | 1 to 8 | UINT32
        OutputTensor      | Output          | 1 to 8 | UINT32
        OutputStateTensor | Optional output | 1 to 8 | UINT32
        DML_FEATURE_LEVEL_3_0 and above
        InputStateTensor  | Input           | 4      | UINT32
        OutputTensor      | Output          | 4      | UINT32
        OutputStateTensor | Optional output | 4      | UINT32
    """),
)
