"""Arrays joined along an axis, and cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import kind_of, refuse
from ..core.memory import result_array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ..operators import spec
from ._apply import apply, apply_all
from ._arguments import as_axis, as_index, check_pieces, fold_to_8, is_several
from ._by_bytes import by_bytes
from ._call import as_device, data_type_of, resolve, run
from ._documentation import documented
from ._messages import in_words_of
from ._names import refuse_unknown
from ._operand_adapter import ArrayAdapter, adapter_for, are_arrays
from ._types import Operand, Output, Result
from ._weak_operands import take_all


@documented("JOIN")
def join(
    arrays: Sequence[Operand],
    axis: int = 0,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Joins arrays along an axis: DML_OPERATOR_JOIN.

    Args:
        arrays: one or more arrays or expressions, of one data type, which may be truth values, complex numbers or
            bfloat16, and of one shape but along the axis. Empty pieces are skipped, lists become what lies beside them.
        axis: the dimension along which they are joined; negative counts from the last.
        out: where to write, of the joined type and shape and of any strides; no memory shared with an input. Returned.

    Returns:
        An array like the first of `arrays`; a copy of bits.

    >>> join([[[1, 2]], [[3, 4]]], axis=1)
    array([[1, 2, 3, 4]])
    """
    if others:
        refuse_unknown(join, "JOIN", others)
    name = "JOIN"
    if not isinstance(arrays, (list, tuple)) or not arrays:
        remedy = "Write join([a, b])" if hasattr(arrays, "shape") else ""
        refuse(name, "(A8)", "arrays", kind_of(arrays), "a list of at least one array", remedy, kind="type")
    copied = by_bytes(name, arrays, out, lambda values, out: join(values, axis, out=out, device=device))
    if copied is not None:
        return copied
    if not are_arrays(arrays):
        return apply(name, out, device, InputTensors=_without_empty(arrays, axis), Axis=axis)
    place = as_device(device)
    memory = place.memory
    given = {f"InputTensors[{i}]": each for i, each in enumerate(arrays)}
    with in_words_of({f"arrays[{i}]": each for i, each in enumerate(arrays)}):
        pieces = [*take_all(ArrayAdapter(name, out, device), spec(name), given, {}, False).values()]
        axis = as_axis(name, axis, pieces[0].ndim)
        check_pieces(name, pieces, axis)
    shape = list(pieces[0].shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    result = result_array(memory, name, out, pieces[0].dtype, tuple(shape), arrays[0])
    # Numbered before empty ones are skipped.
    kept = {f"arrays[{i}]": piece for i, piece in enumerate(pieces) if piece.shape[axis]} or {"arrays[0]": pieces[0]}
    inputs, (output,), axis = fold_to_8(name, list(kept.values()), [result], axis)
    described = resolve(name, dict(zip(kept, inputs, strict=True)), place, {"Axis": axis})
    run(described, inputs, [output], place)
    return memory.export(arrays[0], out, result)


def _without_empty(arrays: Sequence[Any], axis: int) -> Sequence[Any]:
    """Pieces but for empty ones, where they are of one shape but along the axis, and others are as lazy."""
    shapes = [tuple(getattr(each, "shape", ())) for each in arrays]
    others = {(*shape[:axis], *shape[axis:][1:]) if -len(shape) <= axis < len(shape) else None for shape in shapes}
    if len(others) != 1 or None in others:
        return arrays
    kept = [each for each, shape in zip(arrays, shapes, strict=True) if shape[axis] != 0]
    return arrays if are_arrays(kept) else kept


@documented("SPLIT")
def split(
    x: Operand,
    sizes: int | Sequence[int],
    axis: int = 0,
    *,
    out: Sequence[Output] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """Cuts an array into pieces along an axis: DML_OPERATOR_SPLIT.

    Args:
        x: an array or an expression of any of DirectML's data types, of 1 to 8 dimensions.
        sizes: the size of each piece along the axis, which add up to x's; or a number of equal pieces.
        axis: the dimension along which is cut; negative counts from the last.
        out: a list of what to write to, an array for each piece, of any strides. Returned.

    Returns:
        The pieces, arrays like `x`; a copy of bits.

    >>> split([1, 2, 3, 4, 5], [2, 3])
    [array([1, 2]), array([3, 4, 5])]
    """
    if others:
        refuse_unknown(split, "SPLIT", others)
    name = "SPLIT"
    copied = by_bytes(name, [x], out, lambda values, out: split(values[0], sizes, axis, out=out, device=device))
    if copied is not None:
        return [*copied]
    side = adapter_for(name, [x], None, device)
    seen = side.look("x", x)
    shape = seen.shape
    axis = as_axis(name, axis, len(shape))
    each = _sizes_of_pieces(name, sizes, shape[axis])
    data_type = data_type_of(name, "x", seen)
    pieces = [
        DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=(*shape[:axis], size, *shape[axis + 1 :])) for size in each
    ]
    given = out if out is None or isinstance(out, (list, tuple)) else [out]
    return apply_all(name, given, device, InputTensor=x, OutputTensors=pieces, Axis=axis)


def _sizes_of_pieces(name: str, sizes: Any, size: int) -> tuple[int, ...]:
    """Rule (A14)."""
    try:
        count = None if is_several(sizes) else as_index(sizes)
        each = tuple(map(as_index, sizes)) if count is None else (size // max(count, 1),) * min(count, size + 1)
    except TypeError:
        return refuse(name, "(A14)", "sizes", kind_of(sizes), "a list of integers, or an integer", kind="type")
    if sum(each) != size or not each or min(each) < 0:
        expected = f"sizes that add up to {size}, that of x along the axis, or a number that divides it"
        refuse(name, "(A14)", "sizes", kind_of(sizes), expected)
    return each
