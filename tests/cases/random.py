"""RANDOM_GENERATOR: Random123's published answers, the page's counter, every carry, strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_RANDOM_GENERATOR_OPERATOR_DESC, RandomGeneratorType
from support_tables import Support

from . import Case, Negative, tensor, tensor_of

PHILOX = RandomGeneratorType.PHILOX_4X32_10


def block(counter: int, key: int) -> list[int]:
    """A block in whole numbers, as the paper draws a round."""
    words, (k0, k1) = [counter >> 32 * i & 0xFFFFFFFF for i in range(4)], divmod(key, 2**32)[::-1]
    for _ in range(10):
        (high0, low0), (high1, low1) = divmod(0xD2511F53 * words[0], 2**32), divmod(0xCD9E8D57 * words[2], 2**32)
        words = [high1 ^ words[1] ^ k0, low1, high0 ^ words[3] ^ k1, low0]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return words


def _words(counter: int, key: int) -> list[int]:
    return [(counter | key << 128) >> 32 * i & 0xFFFFFFFF for i in range(6)]


def _case(
    id: str,
    counter: int,
    key: int,
    y: Any,
    new: int | None,
    strides: Sequence[int] | None = None,
    state_sizes: Sequence[int] = (6,),
    state_strides: Sequence[int] | None = None,
    new_strides: Sequence[int] | None = None,
) -> Case:
    """Of the output, and of the counter behind it, or None where no new state is wanted."""
    output, state = np.array(y, np.uint32), np.array(_words(counter, key), np.uint32).reshape(state_sizes)
    new_state = None if new is None else np.array(_words(new, key), np.uint32).reshape(state_sizes)
    desc = DML_RANDOM_GENERATOR_OPERATOR_DESC(
        InputStateTensor=tensor_of(state, state_strides),
        OutputTensor=tensor_of(output, strides),
        OutputStateTensor=None if new_state is None else tensor_of(new_state, new_strides),
        Type=PHILOX,
    )
    return Case(f"random_generator-{id}", desc, [state], [output, new_state])


def _drawn(id: str, counter: int, key: int, sizes: Sequence[int], strides: Sequence[int] | None = None) -> Case:
    count = int(np.prod(sizes))
    blocks = -(-count // 4)
    numbers = [word for i in range(blocks) for word in block((counter + i) % 2**128, key)]
    y = np.reshape(np.array(numbers[:count], np.uint32), sizes)
    return _case(id, counter, key, y, (counter + blocks) % 2**128, strides)


_PI = 0x03707344_13198A2E_85A308D3_243F6A88, 0x299F31D0_A4093822
_PAGE = 0x48656C6C_6F46726F_6D536561_74746C65
_ALL = 2**128 - 1

CASES = [
    # The known answers of Random123's kat_vectors for philox4x32, 10 rounds.
    _case("of-zeros", 0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], 1),
    _case("of-ones", _ALL, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD], 0),
    _case("of-pi", *_PI, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1], _PI[0] + 1),
    _case("no-new-state", *_PI, [[0xD16CFE09, 0x94FDCCEB], [0x5001E420, 0x24126EA1]], None),
    _case("page-state", *_PI, [[[[0xD16CFE09]]]], _PI[0] + 1, None, (1, 1, 1, 6)),
    _case("strided-states", *_PI, [0xD16CFE09], _PI[0] + 1, None, (1, 6), (16, 2), (20, 3)),
    _drawn("page-counter", _PAGE, 5, (3, 3, 2, 7)),
    *(_drawn(f"{count}-numbers", 1, 2, (count,)) for count in (1, 2, 3, 5, 31, 32, 33, 63, 65, 127, 129, 513, 1031)),
    *(_drawn(f"carry-from-bit-{bits}", 2**bits - 5, 3 << 40, (2, 23)) for bits in (32, 64, 96, 128)),
    _drawn("carry-at-once", 2**64 - 1, 9, (40,)),
    _drawn("transposed", 7, 7, (5, 67), (1, 5)),
    _drawn("gapped", 7, 8, (3, 2, 37), (90, 40, 1)),
    _drawn("far-apart", 7, 9, (70,), (3,)),
    _drawn("several-programs", 2**64 - 1000, 10, (3, 1501)),  # of a GPU, in the fourth of which the counter carries
    _drawn("large", 2**64 - 1000, 10, (3, 70001)),  # for several threads of the CPU
    _drawn("eight-dimensions", 7, 11, (1, 2, 1, 3, 1, 1, 2, 3)),
]


def _right(**members: Any) -> DML_RANDOM_GENERATOR_OPERATOR_DESC:
    state, numbers = tensor((1, 6), "UINT32"), tensor((2, 3), "UINT32")
    right = {"InputStateTensor": state, "OutputTensor": numbers, "OutputStateTensor": state, "Type": PHILOX}
    return DML_RANDOM_GENERATOR_OPERATOR_DESC(**{**right, **members})


NEGATIVES = [
    Negative("(F4)", _right(Type=0.5), "Type", "float 0.5", "RandomGeneratorType.PHILOX_4X32_10"),
    Negative(
        "(C1)",
        _right(InputStateTensor=tensor((1, 5), "UINT32"), OutputStateTensor=None),
        "InputStateTensor.Sizes[1]",
        "5",
        "6, as",
    ),
    Negative(
        "(C1)",
        _right(InputStateTensor=tensor((2, 6), "UINT32"), OutputStateTensor=None),
        "InputStateTensor.Sizes[0]",
        "2",
        "1, as",
    ),
    Negative("(C2)", _right(OutputStateTensor=tensor((6,), "UINT32")), "OutputStateTensor.DimensionCount", "1", "2"),
    Negative("(C3)", _right(OutputStateTensor=tensor((1, 7), "UINT32")), "OutputStateTensor.Sizes[1]", "7", "6"),
]

RIGHT = [_right(), _right(OutputStateTensor=None), _right(OutputTensor=tensor((9,), "UINT32"))]
KERNELS = {"RANDOM_GENERATOR": "Philox 4x32-10"}


def _built(operator: str, **shapes: Any) -> DML_RANDOM_GENERATOR_OPERATOR_DESC:
    """States of six words."""
    tensors = {
        name: tensor((1, 1, 1, 1, 1, 1, 1, 1, 1, 6)[10 - rank :], kind.name) for name, (rank, kind) in shapes.items()
    }
    return DML_RANDOM_GENERATOR_OPERATOR_DESC(**tensors, Type=PHILOX)


SUPPORT = {"RANDOM_GENERATOR": Support([("3.0", 4, 4, "UINT32"), ("4.0", 1, 8, "UINT32")], desc=_built)}
