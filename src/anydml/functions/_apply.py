"""What every function does: an operator applied to arrays gives arrays, applied to expressions of a graph expressions.

Among expressions an array is a constant of their graph. Outputs are inferred, here and there, as the specification has
them, and what is wrong is said in the function's words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..core.errors import kind_of, refuse
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, plain
from ..operators import spec
from ..operators.schema import OperatorSpec
from ..operators.shape_inference import is_input
from ._arguments import as_axes, as_axis, as_flag, per_dimension
from ._messages import argument_label, argument_of, in_words_of
from ._names import as_activation, as_member
from ._operand_adapter import OperandAdapter, Shape, adapter_for
from ._weak_operands import take_all

Spread: TypeAlias = Callable[[str, Mapping[str, Shape]], Mapping[str, Shape]]
"""The shapes that operands are broadcast to, by member; of an operator, and its operands' own."""

AS_INFERRED: Any = object()
"""The output sizes of what has no choice."""


def apply(
    name: str,
    out: Any = None,
    device: Any = None,
    *,
    spread: Any = None,
    output_sizes: Any = AS_INFERRED,
    lent: Any = 0,
    **members: Any,
) -> Any:
    """The first output of an operator; as :func:`apply_all`, but `out` is one array."""
    written = None if out is None else [out]
    return apply_all(name, written, device, spread=spread, output_sizes=output_sizes, lent=lent, **members)[0]


def apply_all(
    name: str,
    out: Any = None,
    device: Any = None,
    *,
    spread: Spread | None = None,
    output_sizes: Any = AS_INFERRED,
    lent: int = 0,
    graph: Any = None,
    **members: Any,
) -> list[Any]:
    """Applies an operator.

    Args:
        name: the operator, by the header's name without its prefix.
        out: a list of what to write to, an array for each output; new arrays where None.
        device: where to run; "cpu" where None.
        spread: what broadcasts the operands, of which one may then be a number; None where they have the shapes that
            the operator wants.
        output_sizes: the spatial sizes of an output that has a choice, one number or one for each dimension; where
            None those of `out`, or else the documented ones.
        lent: how many leading dimensions of 1 `spread` lends, which results are without.
        graph: where an expression is wanted of an operator without operands.
        members: the desc's, but arrays or expressions for its inputs. An axis may be negative; what has a number for
            each dimension may be one for all, or None for what changes nothing. An output is as
            :func:`anydml.operators.shape_inference.complete` has it.

    Returns:
        The outputs that there are, in header order: arrays like the first operand, or expressions where one operand is.

    Raises:
        DMLError: the operator's rules, those of ``core/interop.py``, and (G9).
    """
    found = spec(name)
    given: dict[str, Any] = {}
    for member in filter(lambda member: is_input(found, member), found.tensors):
        value = members.pop(member, None)
        many = "array" in found.tensors[member].kind
        given |= {f"{member}[{i}]": each for i, each in enumerate(value)} if many else {member: value}
    side: OperandAdapter
    if graph is None:
        side = adapter_for(name, given.values(), out, device)
    else:
        side = graph.__anydml_graph_adapter__(name, out, device)
    with in_words_of({argument_label(label): value for label, value in given.items()}):
        operands = take_all(side, found, given, members, spread is not None)
        there = {label: operand for label, operand in operands.items() if operand is not None}
        shapes = {label: side.shape(operand) for label, operand in there.items()}
        wanted = {} if spread is None else spread(name, shapes)
        if shapes and not any(shapes.values()) and (found.pointwise is not None or name in _OF_SCALARS):
            wanted, lent = dict.fromkeys(shapes, (1,)), 1
        operands |= {label: side.spread(operands[label], shape) for label, shape in wanted.items()}
        rank = len(side.shape(operands[next(iter(there))])) if there else 0
        options = _options(found, rank, members)
        sizes = _output_sizes(name, side, rank, output_sizes)
        return side.apply(operands, options, sizes, _model(given), lent)


_OF_SCALARS = ("CAST", "REDUCE")
"""Operators that take an array of 0 dimensions, beside the pointwise ones; it is lent one, as a tensor has some."""


def _model(given: Mapping[str, Any]) -> Any:
    """What results are like: the first operand, but for numbers; None where there is no operand."""
    values = [value for value in given.values() if value is not None]
    numbers = (int, float, np.generic)
    return next((value for value in values if not isinstance(value, numbers)), values[0] if values else None)


_NOTHING = {"Strides": 1, "Dilations": 1, "StartPadding": 0, "EndPadding": 0, "OutputPadding": 0}
"""What changes nothing, for each dimension; all other arrays of the kind have to be given."""


def _options(found: OperatorSpec, rank: int, members: Mapping[str, Any]) -> dict[str, Any]:
    """Members that are no inputs, with negative axes and numbers for all dimensions as the desc has them."""
    slides = not {"WindowSize", "WindowSizes", "FilterTensor"}.isdisjoint(found.members)
    # Of what is folded, blocks in one dimension, the output has the spatial dimensions.
    output = members.get("OutputTensor")
    spatial = len(output.Sizes) if isinstance(output, DML_BUFFER_TENSOR_DESC) else rank
    spatial = max(spatial - 2, 0) if slides else spatial
    options = {}
    for member, value in members.items():
        argument = argument_of(member)
        if member == "Axis":
            value = as_axis(found.name, value, rank)
        elif member == "Axes":
            value = as_axes(found.name, value, rank)
        elif found.members[member] == "BOOL":
            value = as_flag(found.name, argument, value)
        elif found.members[member].startswith("enums."):
            value = as_member(found.name, argument, value, found.members[member])
        elif found.members[member] == "OptionalActivation":
            value = as_activation(found.name, argument, value)
        elif found.members[member] == "Activations" and isinstance(value, (list, tuple)):
            value = [as_activation(found.name, f"{argument}[{i}]", each) for i, each in enumerate(value)]
        elif found.members[member] != "FLOATs" and member in found.desc.counts.get("DimensionCount", ()):
            each = _NOTHING.get(member) if value is None else value
            value = per_dimension(found.name, argument, each, spatial)
        options[member] = plain(value)
    return options


def _output_sizes(name: str, side: OperandAdapter, rank: int, given: Any) -> Shape:
    if given is None:
        return side.wanted_sizes(rank)
    if given is AS_INFERRED:
        return ()
    sizes = per_dimension(name, "output_sizes", given, max(rank - 2, 0))
    if any(size < 1 for size in sizes):
        refuse(name, "(A10)", "output_sizes", kind_of(sizes), "at least 1 in each dimension")
    return sizes


# What broadcasts


def broadcast_all(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Every operand to the shape that NumPy's rules give them; rule (A13)."""
    try:
        shape = np.broadcast_shapes(*shapes.values())
    except ValueError:
        (_, first), (label, other), *_ = shapes.items()
        expected = f"a shape that broadcasts with {first}: sizes that are the same, or 1, counted from the last"
        return refuse(name, "(A13)", argument_of(label), f"shape {other}", expected)
    return dict.fromkeys(shapes, shape)


def over_channels(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Parameters of fewer dimensions than the first operand: one dimension is that of its channels, of more those that
    are missing lead; rule (A17). What fits in no way is left to the operator's own rules, which name it as it is."""
    first, *parameters = shapes.values()
    rank = len(first)
    spread = {}
    for label, shape in zip([*shapes][1:], parameters, strict=True):
        if len(shape) == 1 < rank:
            spread[label] = (1, *shape, *(1,) * (rank - 2))
        elif len(shape) < rank and all(size in (1, of_x) for size, of_x in zip(shape[::-1], first[::-1], strict=False)):
            spread[label] = leading(shape, rank)
    return spread


def leading(shape: Shape, rank: int) -> Shape:
    """A shape with dimensions of 1 before its own."""
    return (1,) * (rank - len(shape)) + shape
