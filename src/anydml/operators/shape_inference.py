"""What of a desc functions and graphs may leave out: its outputs, which are inferred from the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.enums import FeatureLevel, TensorDataType
from ..core.errors import error
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from .schema import OperatorDesc, OperatorSpec
from .validate import validate


def is_input(found: OperatorSpec, member: str) -> bool:
    """Whether a tensor member is."""
    return "output" not in found.tensors[member].kind.lower()


def complete(
    found: OperatorSpec, members: Mapping[str, Any], level: FeatureLevel, last_sizes: Sequence[int] = ()
) -> OperatorDesc:
    """The desc with those of its outputs that are not given.

    Args:
        found: the operator.
        members: the desc's, without outputs that are to be inferred. A TensorDataType says an output's type, where that
            is not the first input's, nor what a pointwise operator's row says, or that an optional output is wanted; a
            DML_BUFFER_TENSOR_DESC says all of it.
        level: the feature level whose rules hold.
        last_sizes: those of the last dimensions of outputs, where several are right.

    Raises:
        DMLError: what is wrong with all but the outputs.
    """
    inputs = (members.get(member) for member in found.tensors if is_input(found, member))
    each = [one for given in inputs for one in (given if isinstance(given, (list, tuple)) else [given])]
    first = next((one for one in each if isinstance(one, DML_BUFFER_TENSOR_DESC)), None)
    wanted = {
        name: members.get(
            name, _usual_type(found, members, first) if row.kind == "Output" and first is not None else None
        )
        for name, row in found.tensors.items()
        if not is_input(found, name)
    }
    # Of an array of outputs nobody but the caller knows how many there are.
    open_ones = {
        name: kind
        for name, kind in wanted.items()
        if isinstance(kind, TensorDataType) and "array" not in found.tensors[name].kind
    }
    known = {name: one for name, one in {**members, **wanted}.items() if name not in open_ones}
    if not open_ones or first is None:
        return found.desc(**known)
    # Sizes are inferred from a desc that is right but for those of its outputs.
    likely = {name: DML_BUFFER_TENSOR_DESC(DataType=kind, Sizes=first.Sizes) for name, kind in open_ones.items()}
    desc = found.desc(**known, **likely)
    outside = [v for v in validate(desc, level) if v.where.partition(".")[0] not in open_ones]
    if outside:
        raise error(outside)
    for name, sizes in inferred_sizes(found, desc, last_sizes).items():
        if name in open_ones:
            likely[name] = DML_BUFFER_TENSOR_DESC(DataType=open_ones[name], Sizes=sizes)
    return found.desc(**known, **likely)


def _usual_type(found: OperatorSpec, members: Mapping[str, Any], first: DML_BUFFER_TENSOR_DESC) -> TensorDataType:
    """The type of an output that nobody says: that of the inputs which have to be of one type with it, the first
    input's where it may be, or UINT8."""
    if found.pointwise is None:
        return first.DataType
    group = found.pointwise.group_of(found.pointwise.output)
    mates = [each for each in map(members.get, group) if isinstance(each, DML_BUFFER_TENSOR_DESC)]
    if mates:
        return mates[0].DataType
    allowed = found.tensors[found.pointwise.output].data_types if group else ()
    return first.DataType if first.DataType in allowed else TensorDataType.UINT8


def inferred_sizes(found: OperatorSpec, desc: OperatorDesc, last_sizes: Sequence[int] = ()) -> dict[str, list[int]]:
    """The documented sizes of each output that a desc has; of those inferred, the last may be given."""
    sizes = {name: [right[0] for right in choices] for name, choices in found.infer_sizes(desc).items() if all(choices)}
    return {name: [*each[: len(each) - len(last_sizes)], *last_sizes] for name, each in sizes.items()}
