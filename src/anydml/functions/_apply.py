"""What every function does: an operator applied to arrays gives arrays, applied to expressions of a graph expressions.

Among expressions an array is a constant of their graph. Outputs are inferred, here and there, as the specification has
them, and what is wrong is said in the function's words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..backends import Kernel
from ..core.errors import DMLError, error, listing
from ..core.strided_layout import DATA_TYPES, DTYPES, Array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, plain
from ..operators import spec
from ..operators.schema import OperatorSpec
from ..operators.shape_inference import complete, is_input
from ..operators.validate import kind_of
from ..runtime.device import Device
from ..runtime.interop import refuse
from ..runtime.memory import restride
from ._arguments import as_axes, as_axis, as_flag, as_number, per_dimension, result_array
from ._call import as_device, data_type_of, resolve, run
from ._call_cache import cached_call, call_key, keep_call
from ._messages import argument_of, in_function_terms

if TYPE_CHECKING:
    from ..graph.builder import Expression, Graph

Shape: TypeAlias = tuple[int, ...]
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
    **members: Any,
) -> Any:
    """The first output of an operator; as :func:`apply_all`, but `out` is one array."""
    sizes = "inferred" if output_sizes is AS_INFERRED else output_sizes
    key = call_key(name, out, device, sizes, members)
    known = cached_call(key)
    if known is not None:
        result = known.run(members, out)
        if result is not None:
            return result
    written = None if out is None else [out]
    return apply_all(name, written, device, spread=spread, output_sizes=output_sizes, key=key, **members)[0]


def apply_all(
    name: str,
    out: Any = None,
    device: Any = None,
    *,
    spread: Spread | None = None,
    output_sizes: Any = AS_INFERRED,
    graph: Graph | None = None,
    key: Any = None,
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
        graph: where an expression is wanted of an operator without operands.
        key: that of :func:`call_key`, by which the call is remembered.
        members: the desc's, but arrays or expressions for its inputs. An axis may be negative; what has a number for
            each dimension may be one for all, or None for what changes nothing. An output is as
            :func:`anydml.operators.shape_inference.complete` has it.

    Returns:
        The outputs that there are, in header order: arrays like the first operand, or expressions where one operand is.

    Raises:
        DMLError: the operator's rules, those of ``runtime/interop.py``, and (G9).
    """
    found = spec(name)
    given: dict[str, Any] = {}
    for member in filter(lambda member: is_input(found, member), found.tensors):
        value = members.pop(member, None)
        many = "array" in found.tensors[member].kind
        given |= {f"{member}[{i}]": each for i, each in enumerate(value)} if many else {member: value}
    side = (
        adapter_for(name, given.values(), out, device) if graph is None else ExpressionAdapter(name, graph, out, device)
    )
    operands = _taken(side, found, given, spread is not None)
    there = {label: operand for label, operand in operands.items() if operand is not None}
    if spread is not None:
        shapes = spread(name, {label: side.shape(operand) for label, operand in there.items()})
        operands |= {label: side.spread(operands[label], shape) for label, shape in shapes.items()}
    rank = len(side.shape(next(iter(there.values())))) if there else 0
    options = _options(found, rank, members)
    sizes = _output_sizes(name, side, rank, output_sizes)
    outputs = side.apply(operands, options, sizes, next(iter(given.values()), None))
    if isinstance(side, ArrayAdapter) and side.memory.is_host:
        keep_call(key, found, side.kernel, given, operands, outputs)
    return outputs


def graph_among(values: Iterable[Any]) -> Graph | None:
    """The graph of the first expression."""
    # Where graphs are not loaded yet, nothing is an expression.
    build = sys.modules.get("anydml.graph.builder")
    if build is None:
        return None
    found: Graph | None = next((each.graph for each in values if isinstance(each, build.Expression)), None)
    return found


def adapter_for(name: str, values: Iterable[Any], out: Any, device: Any) -> Side:
    """What takes operands: of arrays alone, or of expressions with arrays among them."""
    graph = graph_among(values)
    return ArrayAdapter(name, out, device) if graph is None else ExpressionAdapter(name, graph, out, device)


def _argument(label: str) -> str:
    member, bracket, rest = label.partition("[")
    return f"{argument_of(member)}{bracket}{rest}"


def _taken(side: Side, found: OperatorSpec, given: Mapping[str, Any], with_numbers: bool) -> dict[str, Any]:
    """The operands; Python's numbers, where they may be, as what lies beside them."""
    numbers = [label for label, value in given.items() if with_numbers and type(value) in (int, float)]
    if len(numbers) == len(given):
        numbers = []
    taken: dict[str, Any] = dict.fromkeys(given)
    for label, value in given.items():
        is_absent = value is None and "Optional" in found.tensors[label.partition("[")[0]].kind
        if label not in numbers and not is_absent:
            taken[label] = side.take(_argument(label), value)
    for label in numbers:
        dtype = side.dtype(next(each for each in taken.values() if each is not None))
        taken[label] = side.take(_argument(label), as_number(found.name, _argument(label), given[label], dtype))
    return taken


_NOTHING = {"Strides": 1, "Dilations": 1, "StartPadding": 0, "EndPadding": 0, "OutputPadding": 0}
"""What changes nothing, for each dimension; all other arrays of the kind have to be given."""


def _options(found: OperatorSpec, rank: int, members: Mapping[str, Any]) -> dict[str, Any]:
    """Members that are no inputs, with negative axes and numbers for all dimensions as the desc has them."""
    slides = "WindowSize" in found.members or "FilterTensor" in found.members
    options = {}
    for member, value in members.items():
        argument = argument_of(member)
        if member == "Axis":
            value = as_axis(found.name, value, rank)
        elif member == "Axes":
            value = as_axes(found.name, value, rank)
        elif found.members[member] == "BOOL":
            value = as_flag(found.name, argument, value)
        elif member in found.desc.counts.get("DimensionCount", ()):
            each = _NOTHING.get(member) if value is None else value
            value = per_dimension(found.name, argument, each, max(rank - 2, 0) if slides else rank)
        options[member] = plain(value)
    return options


def _output_sizes(name: str, side: Side, rank: int, given: Any) -> Shape:
    if given is None:
        return side.wanted_sizes(rank)
    if given is AS_INFERRED:
        return ()
    sizes = per_dimension(name, "output_sizes", given, max(rank - 2, 0))
    if any(size < 1 for size in sizes):
        refuse(name, "(A10)", "output_sizes", kind_of(sizes), "at least 1 in each dimension")
    return sizes


class OperandInfo(NamedTuple):
    """What is to be known of an operand before it is taken."""

    shape: Shape
    dtype: np.dtype[Any]


class ArrayAdapter:
    """Operands in the memory of a device."""

    def __init__(self, name: str, out: Any, device: Any) -> None:
        self.name = name
        self.out = out
        self.device: Device = as_device(device)
        self.memory = self.device.memory
        self.kernel: Kernel | None = None
        """What served, once it has run."""

    def take(self, where: str, value: Any) -> Array:
        return self.memory.to_device(self.memory.import_array(self.name, where, value))

    def shape(self, operand: Any) -> Shape:
        return tuple(operand.shape)

    def dtype(self, operand: Any) -> np.dtype[Any]:
        dtype: np.dtype[Any] = operand.dtype
        return dtype

    def look(self, where: str, value: Any) -> OperandInfo:
        array = self.memory.import_array(self.name, where, value)
        return OperandInfo(tuple(array.shape), array.dtype)

    def spread(self, operand: Any, shape: Shape) -> Any:
        if operand.shape == shape:
            return operand
        return restride(operand, shape, _spread_strides(self.shape(operand), operand.strides, shape))

    def wanted_sizes(self, rank: int) -> Shape:
        if not isinstance(self.out, (list, tuple)) or not self.out or self.out[0] is None:
            return ()
        shape = self.memory.import_array(self.name, "out", self.out[0]).shape
        return tuple(shape[2:]) if len(shape) == rank else ()

    def apply(self, operands: Mapping[str, Any], options: Mapping[str, Any], sizes: Shape, like: Any) -> list[Any]:
        named = {_argument(label): operand for label, operand in operands.items()}
        described = resolve(self.name, named, self.device, options, sizes)
        count = len(described.results)
        out = [None] * count if self.out is None else self.out
        if not isinstance(out, (list, tuple)) or len(out) != count:
            expected = f"a list of {count} arrays, one for each output"
            refuse(self.name, "(A4)", "out", kind_of(out), expected, kind="type")
        results = [
            result_array(self.memory, self.name, place, *result)
            for place, result in zip(out, described.results, strict=True)
        ]
        self.kernel = run(described, list(operands.values()), results, self.device)
        # What has no operand to be like is the device's own.
        sides = zip(out, results, strict=True)
        return [self.memory.export(result if not operands else like, place, result) for place, result in sides]


class ExpressionAdapter:
    """Operands of a graph, arrays among them its constants."""

    def __init__(self, name: str, graph: Graph, out: Any, device: Any) -> None:
        self.name = name
        self.graph = graph
        remedy = "Leave it out: a graph is dispatched on its own device, with arrays to write to"
        if out is not None:
            (found,) = out if isinstance(out, list) and len(out) == 1 else [out]
            refuse(name, "(G9)", "out", kind_of(found), "None beside expressions", remedy)
        if device is not None and as_device(device) is not graph.device:
            refuse(name, "(G9)", "device", kind_of(device), f"{graph.device}, that of the graph", remedy)
        self.memory = graph.device.memory

    def take(self, where: str, value: Any) -> Expression:
        from ..graph.builder import Expression

        if isinstance(value, Expression):
            return value
        found = self.memory.import_array(self.name, where, value)
        array = found if isinstance(found, np.ndarray) else found.numpy()
        tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type_of(self.name, where, array), Sizes=array.shape)
        data = np.zeros(tensor.TotalTensorSizeInBytes or 0, np.uint8)
        data[: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        return self.graph.constant(tensor, data, where)

    def shape(self, operand: Any) -> Shape:
        return tuple(operand.tensor.Sizes)

    def dtype(self, operand: Any) -> np.dtype[Any]:
        data_type = operand.tensor.DataType
        if data_type not in DTYPES:
            refuse(self.name, "(S3)", "", f"an expression of {data_type.name}", listing(DATA_TYPES), kind="type")
        return DTYPES[data_type]

    def look(self, where: str, value: Any) -> OperandInfo:
        if graph_among([value]) is not None:
            return OperandInfo(self.shape(value), self.dtype(value))
        array = self.memory.import_array(self.name, where, value)
        return OperandInfo(tuple(array.shape), array.dtype)

    def spread(self, operand: Any, shape: Shape) -> Any:
        tensor = operand.tensor
        if tuple(tensor.Sizes) == shape:
            return operand
        return operand.reinterpret(tensor.DataType, shape, _spread_strides(self.shape(operand), tensor.strides, shape))

    def wanted_sizes(self, rank: int) -> Shape:
        return ()

    def apply(self, operands: Mapping[str, Any], options: Mapping[str, Any], sizes: Shape, like: Any) -> list[Any]:
        found, device = spec(self.name), self.graph.device
        inputs: dict[str, Any] = {}
        for label, operand in operands.items():
            member, bracket, _ = label.partition("[")
            if bracket:
                inputs.setdefault(member, []).append(operand)
            else:
                inputs[member] = operand
        try:
            tensors = {
                member: [one.tensor for one in each] if isinstance(each, list) else each and each.tensor
                for member, each in inputs.items()
            }
            desc = complete(found, {**options, **tensors}, device.feature_level, sizes)
            outputs = {member: getattr(desc, member) for member in found.tensors if member not in inputs}
            outputs = {member: tensor for member, tensor in outputs.items() if tensor is not None}
            given = {member: each for member, each in inputs.items() if each is not None}
            return [*self.graph.operator(found.desc, **{**options, **given, **outputs})]
        except DMLError as problem:
            names = {label: _argument(label) for label in operands}
            raise error(in_function_terms(problem.violations, device, names)) from None


Side: TypeAlias = ArrayAdapter | ExpressionAdapter


def _spread_strides(sizes: Shape, strides: Sequence[int], shape: Shape) -> list[int]:
    """Strides that broadcast a tensor to a shape, as NumPy does: 0 along what is repeated."""
    missing = len(shape) - len(sizes)
    own = zip(sizes, strides, shape[missing:], strict=True)
    return [0] * missing + [step if size == wanted else 0 for size, step, wanted in own]


# What broadcasts


def broadcast_all(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Every operand to the shape that NumPy's rules give them; rule (A13)."""
    try:
        shape = np.broadcast_shapes(*shapes.values())
    except ValueError:
        (_, first), (label, other), *_ = shapes.items()
        expected = f"a shape that broadcasts with {first}: sizes that are the same, or 1, counted from the last"
        return refuse(name, "(A13)", argument_of(label), f"shape {other}", expected)  # type: ignore[no-any-return]
    return dict.fromkeys(shapes, shape)
