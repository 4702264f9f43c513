"""Weak operands: numbers, scalars and lists, which have no data type that anybody chose, take that of what lies beside.

The rule is (A13) of ``core/interop.py``. NumPy calls such numbers weak (NEP 50), and promotes PyTorch's tensors of 0
dimensions likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from ..core.strided_layout import DATA_TYPES
from ..operators.schema import OperatorSpec, SupportRow
from ._arguments import as_number
from ._messages import argument_label
from ._operand_adapter import OperandAdapter, brings_adapter

_FLOAT32 = np.dtype(np.float32)
_OF_LISTS = tuple(map(np.dtype, (np.int64, np.float32, np.uint32)))
"""What a list of integers becomes: the first that an operator takes."""


def is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def take_all(
    side: OperandAdapter, found: OperatorSpec, given: Mapping[str, Any], members: Mapping[str, Any], with_numbers: bool
) -> dict[str, Any]:
    """The operands of an operator, by label; None for those left out.

    Args:
        side: what takes them.
        found: the operator.
        given: what a caller gave.
        members: the desc's other members.
        with_numbers: whether the operator broadcasts, so that one of them may be a number.
    """
    plain = [label for label, value in given.items() if with_numbers and type(value) in (int, float)]
    plain = [] if len(plain) == len(given) else plain
    mates = {label: _of_one_type(found, label, given) for label in given}
    # Numbers that only numbers have to share a type with are as lists of one.
    numbers = [label for label in plain if any(mate not in plain for mate in mates[label])]
    lists = [label for label, value in given.items() if is_list(value) or (label in plain and label not in numbers)]
    taken: dict[str, Any] = dict.fromkeys(given)
    weak: dict[str, Any] = {}
    for label, value in given.items():
        where, is_optional = argument_label(label), "Optional" in found.tensors[_member(label)].kind
        if label in numbers or (value is None and is_optional):
            continue
        if label in plain:
            weak[label] = side.memory.import_array(found.name, where, [value]).reshape(())
        elif label in lists or (with_numbers and getattr(value, "ndim", 1) == 0 and not brings_adapter(value)):
            weak[label] = side.memory.import_array(found.name, where, value)
        else:
            taken[label] = side.take(where, value)
    if not weak and not numbers:
        return taken

    def types_beside(label: str) -> list[np.dtype[Any]]:
        typed = [side.dtype(taken[mate]) for mate in mates[label] if taken[mate] is not None]
        of_weak = {mate: weak[mate].dtype for mate in mates[label] if mate in weak}
        typed = typed or [dtype for mate, dtype in of_weak.items() if mate not in lists]
        return typed or [_FLOAT32] * (_FLOAT32 in of_weak.values())

    beside = {label: types_beside(label) for label in weak}
    for label, array in weak.items():
        row = _row(found, members, _member(label))
        taken[label] = side.take(argument_label(label), _typed(found, label, array, label in lists, row, beside[label]))
    for label in numbers:
        dtype = side.dtype(next(taken[mate] for mate in mates[label] if taken[mate] is not None))
        number = as_number(found.name, argument_label(label), given[label], dtype)
        taken[label] = side.take(argument_label(label), number)
    return taken


def _of_one_type(found: OperatorSpec, label: str, given: Mapping[str, Any]) -> list[str]:
    """The operands there that are of an operand's type, or that it takes its own from where it may have any."""
    group = () if found.pointwise is None else found.pointwise.group_of(_member(label))
    return [each for each, value in given.items() if value is not None and (not group or _member(each) in group)]


def as_listed(side: OperandAdapter, found: OperatorSpec, member: str, value: Any) -> Any:
    """A list as the array that it becomes with nothing beside it; all else as it is."""
    if not is_list(value):
        return value
    array = side.memory.import_array(found.name, argument_label(member), value)
    return _typed(found, member, array, True, found.tensors[member], [])


def _typed(
    found: OperatorSpec, label: str, array: Any, of_list: bool, row: SupportRow, beside: list[np.dtype[Any]]
) -> Any:
    """An operand that is weak as one of the type beside it; as it is where that does not hold it."""
    if not of_list and array.dtype in _dtypes(row) and not _shares_type(found, _member(label)):
        return array
    fitting = [dtype for dtype in beside if dtype in _dtypes(row)][:1]
    if of_list and not fitting and array.dtype.kind == "i":
        fitting = [dtype for dtype in _OF_LISTS if dtype in _dtypes(row)]
    return next((held for dtype in fitting if (held := _held(array, dtype)) is not None), array)


def _held(array: Any, dtype: np.dtype[Any]) -> Any:
    """The numbers in another type; None where it does not hold them. Floats may lose digits, but become no infinities.

    What lies on a GPU is not looked at, which would mean to wait for it.
    """
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in ("fiu" if dtype.kind == "f" else "iu"):
        return None
    if not isinstance(array, np.ndarray):
        return array.astype(dtype) if dtype.kind == "f" or np.can_cast(array.dtype, dtype) else None
    with np.errstate(over="ignore"):
        held = array.astype(dtype)
    if dtype.kind == "f":
        return None if (np.isinf(held) & np.isfinite(array)).any() else held
    limits = np.iinfo(dtype)
    return held if not array.size or limits.min <= array.min() <= array.max() <= limits.max else None


def _member(label: str) -> str:
    return label.partition("[")[0]


def _row(found: OperatorSpec, members: Mapping[str, Any], member: str) -> SupportRow:
    """What the newest table says of a tensor; of the table of these members, where there are several."""
    name, tables = found.support_by or ("", {})
    table = next((table for value, table in tables.items() if value == members.get(name)), found.support)
    return table.newest[member]


@cache
def _dtypes(row: SupportRow) -> tuple[np.dtype[Any], ...]:
    return tuple(dtype for dtype, data_type in DATA_TYPES.items() if data_type in row.data_types)


def _shares_type(found: OperatorSpec, member: str) -> bool:
    """Whether a tensor has to be of another one's type: an exponent need not, nor indices."""
    if found.pointwise is not None:
        return bool(found.pointwise.group_of(member))
    return found.tensors[member].data_types == next(iter(found.tensors.values())).data_types
