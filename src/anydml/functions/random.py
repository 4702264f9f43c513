"""Random bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.enums import RandomGeneratorType, TensorDataType
from ..core.errors import kind_of, refuse
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ._apply import apply_all
from ._arguments import as_shape
from ._documentation import documented
from ._names import refuse_unknown
from ._types import Operand, Output, Result


@documented("RANDOM_GENERATOR")
def random_generator(
    input_state: Operand | int,
    shape: int | Sequence[int],
    *,
    type: RandomGeneratorType | str = RandomGeneratorType.PHILOX_4X32_10,
    out: Sequence[Output | None] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """Pseudo-random bits, which a state determines, and the state to go on with: DML_OPERATOR_RANDOM_GENERATOR.

    Args:
        input_state: an array or an expression of uint32, of shape (6,) or with leading sizes of 1: four words of a
            counter and two of a key, the least significant first. A number is a seed: the key, of a counter of 0.
        shape: that of the numbers, 1 to 8 dimensions.
        type: a RandomGeneratorType or its name.
        out: a list of what to write to, an array each for the numbers and for the state, of any strides. Returned.

    Returns:
        The numbers, of uint32, and the new state, arrays like the state. The same on every device.

    >>> numbers, state = random_generator(7, 3)
    >>> numbers
    array([4099963437, 3221879260,  490388034], dtype=uint32)
    >>> state
    array([1, 0, 0, 0, 7, 0], dtype=uint32)
    """
    name = "RANDOM_GENERATOR"
    if others:
        refuse_unknown(random_generator, name, others)
    if isinstance(input_state, (int, np.integer)):
        input_state = _seeded(name, input_state)
    numbers = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.UINT32, Sizes=as_shape(name, shape))
    return apply_all(
        name,
        out,
        device,
        InputStateTensor=input_state,
        OutputTensor=numbers,
        OutputStateTensor=TensorDataType.UINT32,
        Type=type,
    )


def _seeded(name: str, seed: Any) -> Any:
    """Rule (A10)."""
    if isinstance(seed, bool) or not 0 <= seed < 2**64:
        refuse(name, "(A10)", "input_state", kind_of(seed), "a seed from 0 to 2^64 - 1, or a state of six words")
    return np.array([0, 0, 0, 0, int(seed) & 0xFFFFFFFF, int(seed) >> 32], np.uint32)
