"""Graphs built from expressions, in the manner of DirectMLX: an operator applied to expressions gives others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import copysign, inf, prod
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.annotations import unquoted
from ..core.enums import ExecutionFlags, TensorDataType, TensorFlags
from ..core.errors import DMLError, error, kind_of, listing, refuse, violation
from ..core.interop import as_operand
from ..core.strided_layout import DATA_TYPES, DTYPES
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, SINGLE_END, is_packed, plain
from ..core.truth_values import BOOL, as_bytes, is_bool
from ..functions import load
from ..functions._arguments import as_axes, as_dtype, as_index
from ..functions._call import as_device, data_type_of, raise_any
from ..functions._call_cache import exact
from ..functions._messages import argument_label, in_function_terms
from ..functions._operand_adapter import OperandInfo, Shape, broadcast_strides, packed_operand
from ..functions._truth_values import TruthValues
from ..functions._weak_operands import take_all
from ..graph.compile import CompiledGraph, compile_graph
from ..graph.desc import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
    Interface,
    Node,
    OwnData,
)
from ..graph.verify import GRAPH, Port
from ..operators import ANY_OPERATOR, OPERATORS, spec
from ..operators.schema import OperatorDesc, OperatorSpec, Tensor
from ..operators.shape_inference import complete, is_input
from ..operators.validate import check_tensor
from ..runtime.call import OPTIONS_OF_CALLS
from ..runtime.compiled import Operator
from .indexing import window_of

if TYPE_CHECKING:
    from ..device import Device


@unquoted
class Expression:
    """A tensor of a graph that is being built: what an operator will give, an input or a constant.

    ``+ - * / // % **`` and ``abs`` are element-wise operators, as functions apply them: operands broadcast, and an
    array is a constant of the graph. With a number ``+ - * /`` are an identity that scales, but for integers with an
    integer. ``%`` is MODULUS_FLOOR, whose remainder has the sign of the right operand, and ``//`` is rounded down, as
    Python's are. ``@`` is GEMM, as NumPy's matmul: the dimensions before the last two broadcast.
    ``x[2:, ::-1, 0, None]`` is NumPy's too, a SLICE or SLICE1.

    ``< <= > >= == !=`` compare elements, and give truth values, of which ``& | ^ ~`` are logical operators; of other
    elements they are those of bits, as ``<< >>`` are. Graphs return truth values as the library's.

    It is hashed, and found in dictionaries, as the very object that it is; it has no truth value.

    Attributes:
        graph: the graph.
        tensor: its desc.
    """

    __iter__ = None
    """Python would ask for elements by number until an IndexError."""

    # NumPy leaves an operator with a number or an array of its own to this class.
    __array_ufunc__ = None

    def __anydml_adapter__(self, name: str, out: Any, device: Any) -> ExpressionAdapter:
        return ExpressionAdapter(name, self.graph, out, device)

    def __init__(self, graph: Graph, port: Port, tensor: Tensor, is_view: bool = False, is_truth: bool = False) -> None:
        self.graph = graph
        self.port = port
        self.tensor = tensor
        self._is_view = is_view
        self._is_truth = is_truth
        """Whether its elements, of UINT8, are truth values."""

    def __repr__(self) -> str:
        return f"<Expression of {self.tensor.DataType.name} {self.shape}>"

    @property
    def shape(self) -> Shape:
        """The sizes."""
        return tuple(self.tensor.Sizes)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.tensor.Sizes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's data type, bool of truth values; a TypeError for those of 4 bits, which NumPy has not."""
        return BOOL if self._is_truth else _dtype_of("Expression", self.tensor)

    def reinterpret(
        self, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None = None
    ) -> Expression:
        """The same bytes as another tensor."""
        if not isinstance(data_type, TensorDataType):
            expected = "a TensorDataType, such as TensorDataType.FLOAT32"
            raise _error("reinterpret", "data_type", kind_of(data_type), expected, "(G9)")
        tensor = DML_BUFFER_TENSOR_DESC(
            DataType=data_type,
            Sizes=sizes,
            Strides=strides,
            Flags=self.tensor.Flags,
            TotalTensorSizeInBytes=self.tensor.TotalTensorSizeInBytes,
            GuaranteedBaseOffsetAlignment=self.tensor.GuaranteedBaseOffsetAlignment,
        )
        return Expression(self.graph, self.port, tensor, is_truth=self._is_truth and data_type == self.tensor.DataType)

    def astype(self, dtype: Any) -> Expression:
        """The elements as values of another type, as :func:`anydml.cast` has them."""
        result: Expression = load("cast")(self, dtype)
        return result

    def reshape(self, *shape: int | Sequence[int]) -> Expression:
        """The elements, in row-major order, under another shape; they are copied where they don't lie so.

        Args:
            shape: integers, or a tuple of them; one of them may be -1, which is then inferred.

        Raises:
            DMLError: (G10).
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        sizes = _sizes("reshape", "(G10)", given)
        count, known = prod(self.shape), prod(size for size in sizes if size != -1)
        if sizes.count(-1) == 1 and known > 0 and count % known == 0:
            sizes = tuple([count // known if size == -1 else size for size in sizes])
        if not sizes or min(sizes) < 1 or prod(sizes) != count:
            expected = f"sizes of at least 1 whose product is {count}, that of {self.shape}; -1 for one of them at most"
            refuse("reshape", "(G10)", "shape", kind_of(sizes), expected)
        return self._packed().reinterpret(self.tensor.DataType, sizes)

    def transpose(self, *axes: int | Sequence[int] | None) -> Expression:
        """The dimensions in another order, by strides, without a copy; a graph's output is copied.

        Args:
            axes: the dimensions in their new order, integers or a tuple of them, negative ones from the last; reversed
                where there are none.

        Raises:
            DMLError: (A5), (G10).
        """
        given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
        order = as_axes("transpose", given, self.ndim) if given else tuple(range(self.ndim))[::-1]
        if sorted(order) != list(range(self.ndim)):
            expected = f"each of 0 to {self.ndim - 1} once"
            refuse("transpose", "(G10)", "axes", kind_of(given), expected)
        sizes, strides = ([side[axis] for axis in order] for side in (self.shape, self.tensor.strides))
        found = self.reinterpret(self.tensor.DataType, sizes, strides)
        found._is_view = not is_packed(found.tensor.Sizes, found.tensor.strides)
        return found

    @property
    def T(self) -> Expression:
        """The dimensions in the opposite order."""
        return self.transpose()

    def __getitem__(self, index: Any) -> Expression:
        window = window_of(self.shape, index)
        found = self
        if not window.is_whole(self.shape):
            found = load("slice")(self, window.offsets, window.sizes, window.steps)
        return found if found.shape == window.shape else found.reshape(window.shape)

    def __matmul__(self, other: Any) -> Expression:
        return _product(self.graph, self, other)

    def __rmatmul__(self, other: Any) -> Expression:
        return _product(self.graph, other, self)

    def __bool__(self) -> bool:
        remedy = "Computed values are known after a dispatch; `is` tells expressions apart"
        refuse("Expression", "(G10)", "bool()", repr(self), "an array, which has values", remedy, kind="type")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _paired("equals", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return ~_paired("equals", self, other)

    def __lt__(self, other: object) -> Expression:
        return _paired("less_than", self, other)

    def __le__(self, other: object) -> Expression:
        return _paired("less_than_or_equal", self, other)

    def __gt__(self, other: object) -> Expression:
        return _paired("greater_than", self, other)

    def __ge__(self, other: object) -> Expression:
        return _paired("greater_than_or_equal", self, other)

    __hash__ = object.__hash__

    def _packed(self) -> Expression:
        """Itself, or a copy whose elements follow each other without gaps."""
        return self if is_packed(self.tensor.Sizes, self.tensor.strides) else self._unary("identity")

    def __add__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("add", self, other) if number is None else self._scaled(1, number)

    def __sub__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("subtract", self, other) if number is None else self._scaled(1, -number)

    def __mul__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("multiply", self, other) if number is None else self._scaled(number, 0)

    def __truediv__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        inverse = None if number is None else self._scale_of(1 / number if number else copysign(inf, number))
        return _paired("divide", self, other) if inverse is None else self._scaled(inverse, 0)

    def __floordiv__(self, other: Any) -> Expression:
        return _floor_quotient(self.graph, self, other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return _floor_quotient(self.graph, other, self)

    def __and__(self, other: Any) -> Expression:
        return self._of_bits("and", other)

    def __or__(self, other: Any) -> Expression:
        return self._of_bits("or", other)

    def __xor__(self, other: Any) -> Expression:
        return self._of_bits("xor", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Expression:
        return self._unary("logical_not" if self._is_truth else "bit_not")

    def __lshift__(self, other: Any) -> Expression:
        return _paired("bit_shift_left", self, other)

    def __rlshift__(self, other: Any) -> Expression:
        return _paired("bit_shift_left", other, self)

    def __rshift__(self, other: Any) -> Expression:
        return _paired("bit_shift_right", self, other)

    def __rrshift__(self, other: Any) -> Expression:
        return _paired("bit_shift_right", other, self)

    def __mod__(self, other: Any) -> Expression:
        return _paired("modulus_floor", self, other)

    def __pow__(self, other: Any) -> Expression:
        return _paired("pow", self, other)

    def __radd__(self, other: Any) -> Expression:
        return self.__add__(other)

    def __rsub__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("subtract", other, self) if number is None else self._scaled(-1, number)

    def __rmul__(self, other: Any) -> Expression:
        return self.__mul__(other)

    def __rtruediv__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("divide", other, self) if number is None else self._unary("recip")._scaled(number, 0)

    def __rmod__(self, other: Any) -> Expression:
        return _paired("modulus_floor", other, self)

    def __rpow__(self, other: Any) -> Expression:
        return _paired("pow", other, self)

    def __neg__(self) -> Expression:
        return 0 - self

    def __abs__(self) -> Expression:
        return self._unary("abs")

    def _scale_of(self, other: Any) -> float | None:
        """A number that an identity may scale by or add: one of single precision, but no integer beside integers, which
        scaling would not take exactly, nor let wrap."""
        number = _plain(other)
        if type(number) not in (int, float) or SINGLE_END <= abs(number) < inf:
            return None
        is_exact = type(number) is int and self.tensor.DataType.name.startswith(("INT", "UINT"))
        return None if is_exact else number

    def _scaled(self, scale: float, bias: float) -> Expression:
        return self._unary("identity", scale_bias=DML_SCALE_BIAS(Scale=scale, Bias=bias))

    def _of_bits(self, name: str, other: Any) -> Expression:
        """An operator of bits, the logical one of truth values."""
        are_truth = self._is_truth and is_bool(other)
        return _paired(f"{'logical' if are_truth else 'bit'}_{name}", self, other)

    def _unary(self, function: str, **options: Any) -> Expression:
        result: Expression = load(function)(self, **options)
        return result


def _paired(function: str, a: Any, b: Any) -> Expression:
    result: Expression = load(function)(_plain(a), _plain(b))
    return result


def _product(graph: Graph, a: Any, b: Any) -> Expression:
    """NumPy's matmul: a vector is a row before a matrix, and a column behind one."""
    side = ExpressionAdapter("GEMM", graph, None, None)
    left, right = side.take("a", a), side.take("b", b)
    is_row, is_column = left.ndim == 1, right.ndim == 1
    if is_row and is_column:
        remedy = "Keep a dimension: x[None, :] @ y"
        refuse("GEMM", "(G10)", "", "a product of two vectors, of 0 dimensions", "1 or more dimensions", remedy)
    product: Expression = load("gemm")(left[None] if is_row else left, right[:, None] if is_column else right)
    if is_row or is_column:
        *batch, rows, columns = product.shape
        return product.reshape(*batch, columns if is_row else rows)
    return product


def _floor_quotient(graph: Graph, a: Any, b: Any) -> Expression:
    """Python's floor division: the truncated quotient, less 1 where there is a remainder of the sign that b has not.

    Of floats trunc(a / b) is (a - r) / b, to the nearest integer, with their remainder r; of FLOAT16 in FLOAT32, which
    has room for what (a - r) loses. What is divided by 0 is as DIVIDE has it.
    """
    divide = spec("ELEMENT_WISE_DIVIDE")
    side = ExpressionAdapter(divide.name, graph, None, None)
    taken = take_all(side, divide, {"ATensor": _plain(a), "BTensor": _plain(b)}, {}, True)
    left, right = (side.spread(each, each.shape or (1,)) for each in taken.values())
    if left.dtype == np.float16 == right.dtype:
        return _floor_quotient(graph, left.astype(np.float32), right.astype(np.float32)).astype(np.float16)
    quotient: Expression = _paired("divide", left, right)
    if quotient.dtype.kind == "u":
        return quotient
    rest: Expression = _paired("modulus_truncate", left, right)
    is_above = ((rest < 0) & (right > 0)) | ((rest > 0) & (right < 0))
    if quotient.dtype.kind == "f":
        whole = load("round")((left - rest) / right)
        quotient = load("if_")(right == 0, quotient, whole)
    result: Expression = quotient - is_above.astype(quotient.dtype)
    return result


def _dtype_of(operator: str, tensor: Tensor) -> np.dtype[Any]:
    if tensor.DataType not in DTYPES:
        refuse(operator, "(S3)", "", f"an expression of {tensor.DataType.name}", listing(DATA_TYPES), kind="type")
    return DTYPES[tensor.DataType]


def _sizes(operator: str, rule: str, given: Any) -> Shape:
    """A shape, by one integer or several."""
    try:
        return tuple(map(as_index, given if isinstance(given, (tuple, list)) else [given]))
    except TypeError:
        return refuse(operator, rule, "shape", kind_of(given), "integers", kind="type")


def _is_bool_type(dtype: Any) -> bool:
    return dtype in (bool, np.bool_, BOOL) or str(dtype) in ("bool", "torch.bool")


def _plain(other: Any) -> Any:
    """NumPy's numbers as Python's, which have no type of their own beside an expression."""
    return other.item() if isinstance(other, np.generic) else other


@unquoted
class Graph:
    """Builds a graph.

    Args:
        device: where it will run, or its name.

    >>> from anydml import *
    >>> graph = Graph("cpu")
    >>> x = graph.input((3,), name="x")
    >>> (sums,) = graph.operator(DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, InputTensor=x, Axis=0)
    >>> compiled = graph.compile([sums * 10 + x])
    >>> compiled([1, 2, 3])
    array([11., 32., 63.], dtype=float32)
    >>> compiled(x=[0, 0, 1])
    array([ 0.,  0., 11.], dtype=float32)
    """

    def __init__(self, device: Device | str | None = None) -> None:
        self.device = as_device(device)
        self.label = ""
        """What messages call operators that are added without a name."""
        self._inputs: dict[int, Tensor] = {}
        self._names: dict[int, str] = {}
        self._truth_inputs: set[int] = set()
        self._nodes: list[Node] = []
        self._sources: list[list[Port | None]] = []
        self._made: dict[Hashable, Operator] = {}
        """The operators that functions made, which networks of equal layers have many times."""

    def __anydml_graph_adapter__(self, name: str, out: Any, device: Any) -> ExpressionAdapter:
        return ExpressionAdapter(name, self, out, device)

    def input(self, like: Any, dtype: Any = None, index: int | None = None, *, name: str = "") -> Expression:
        """An input of the graph.

        Args:
            like: its shape, an integer or integers; or an array of its type and shape; or its desc.
            dtype: beside a shape its data type, NumPy's, another library's or DirectML's, or its name; float32 where
                None; bool for truth values, which are UINT8. Beside a desc the index.
            index: its number in a dispatch; the next one where None.
            name: what messages, explain(), pictures and calls call it, if anything.

        Raises:
            DMLError: (T2), (T5), (T10), (S3), (A1), (G9), (G11).

        >>> Graph().input((3, 4), "float16")
        <Expression of FLOAT16 (3, 4)>
        """
        if isinstance(like, DML_BUFFER_TENSOR_DESC) and index is None:
            dtype, index = None, dtype
        is_truth = is_bool(like) or _is_bool_type(dtype)
        tensor = self._tensor_like(like, np.uint8 if _is_bool_type(dtype) else dtype)
        number = len(self._inputs) if index is None else plain(index)
        if type(number) is not int or number in self._inputs or not 0 <= number < 2**20:
            raise _error("input", "index", kind_of(index), "an integer, of an input that is not there yet", "(G9)")
        if not isinstance(name, str):
            raise _error("input", "name", kind_of(name), "a string", "(G11)")
        if name in OPTIONS_OF_CALLS or (name and name in self._names.values()):
            expected = f"another than those of inputs that are there, and than {listing(OPTIONS_OF_CALLS, 'and')}"
            refuse("input", "(G11)", "name", repr(name), expected)
        self._inputs[number] = tensor
        self._names[number] = name
        if is_truth:
            self._truth_inputs.add(number)
        return Expression(self, Port(GRAPH, number), tensor, is_truth=is_truth)

    def _tensor_like(self, like: Any, dtype: Any) -> Tensor:
        is_shape = isinstance(like, (tuple, list, int, np.integer))
        if not is_shape and dtype is not None:
            raise _error("input", "dtype", kind_of(dtype), "None beside what is no shape", "(G9)")
        if isinstance(like, DML_BUFFER_TENSOR_DESC):
            return like
        if is_shape:
            sizes = _sizes("input", "(T2)", like)
            if isinstance(dtype, TensorDataType):
                data_type = dtype
            else:
                data_type = DATA_TYPES[as_dtype("input", "dtype", np.float32 if dtype is None else dtype)]
        else:
            array = as_bytes(self.device.memory.import_array("input", "like", like))
            if array.dtype not in DATA_TYPES:
                refuse("input", "(S3)", "like", str(array.dtype), listing(map(str, DATA_TYPES)), kind="type")
            sizes, data_type = tuple(array.shape), DATA_TYPES[array.dtype]
        tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=sizes)
        wrong = check_tensor("input", "", tensor, self.device.strict)
        raise_any(replace(each, where=each.where.replace("Sizes", "shape")) for each in wrong)
        return tensor

    def constant(self, tensor: Tensor, data: Any, name: str = "") -> Expression:
        """What is known when the graph is compiled: the bytes of a tensor."""
        self._nodes.append(DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=data, Name=name))
        self._sources.append([])
        return Expression(self, Port(len(self._nodes) - 1, 0), tensor)

    def operator(self, kind: type[OperatorDesc], name: str = "", **members: Any) -> list[Expression]:
        """Applies an operator.

        Args:
            kind: the class of its desc.
            name: what messages call it.
            members: as its desc has them, but an expression for each input. An output is inferred where it is not
                given; a TensorDataType says its type, where that is not the first input's, or that an optional output
                is wanted; a DML_BUFFER_TENSOR_DESC says all of it.

        Returns:
            The outputs that there are, in header order.

        Raises:
            DMLError: what is wrong with the desc; (G9).
        """
        name_of_kind = getattr(kind, "__name__", "").removeprefix("DML_").removesuffix("_OPERATOR_DESC")
        if name_of_kind not in OPERATORS or spec(name_of_kind).desc is not kind:
            raise _error(
                "operator",
                "kind",
                kind_of(kind),
                f"the class of the desc, DML_..._OPERATOR_DESC, of {ANY_OPERATOR}",
                "(G9)",
            )
        found = spec(name_of_kind)
        members, sources, read = self._wired(found, members)
        desc = complete(found, members, self.device.feature_level)
        return self._added(found, self.device.create_operator(desc), name, sources, read, members)

    def _wired(
        self, found: OperatorSpec, members: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[Port | None], dict[str, list[Expression]]]:
        """An operator's members with descs for what it reads, the ports of that, and its expressions."""
        sources: list[Port | None] = []
        read: dict[str, list[Expression]] = {}
        described = dict(members)
        for member in found.tensors:
            given = members.get(member)
            if not is_input(found, member):
                self._check_output(found, member, given)
                continue
            if given is None:
                sources.append(None)
                continue
            many = given if isinstance(given, (list, tuple)) else [given]
            labels = [f"{member}[{i}]" for i in range(len(many))] if many is given else [member]
            each = [self._own(found.name, label, one) for label, one in zip(labels, many, strict=True)]
            described[member] = [one.tensor for one in each] if many is given else each[0].tensor
            sources += [one.port for one in each]
            read[member] = each
        return described, sources, read

    def _added(
        self,
        found: OperatorSpec,
        operator: Operator,
        name: str,
        sources: list[Port | None],
        read: Mapping[str, Sequence[Expression]],
        members: Mapping[str, Any],
    ) -> list[Expression]:
        """The outputs of an operator that is added."""
        node = DML_OPERATOR_GRAPH_NODE_DESC(Operator=operator, Name=name or self.label)
        self._nodes.append(node)
        self._sources.append(sources)
        outputs = [
            (Port(len(self._nodes) - 1, i), tensor) for i, (_, tensor) in enumerate(found.outputs(operator.desc))
        ]
        is_truth = _gives_truth(found, read, members)
        return [
            Expression(self, port, tensor, is_truth=is_truth and tensor.DataType == TensorDataType.UINT8)
            for port, tensor in outputs
            if tensor is not None
        ]

    def compile(
        self,
        outputs: Sequence[Expression] | Mapping[str, Expression],
        flags: ExecutionFlags = ExecutionFlags.NONE,
    ) -> CompiledGraph:
        """Compiles what the outputs need.

        Args:
            outputs: the graph's, in the order of a dispatch; a dictionary has them with their names.
            flags: as for :meth:`anydml.Device.compile_operator`.

        Raises:
            DMLError: (G1) to (G9), (G11), (D4).

        >>> graph = Graph()
        >>> x = graph.input((2,))
        >>> graph.compile({"double": 2 * x, "square": x**2})([3, 4])
        {'double': array([6., 8.], dtype=float32), 'square': array([ 9., 16.], dtype=float32)}
        """
        names = list(outputs) if isinstance(outputs, Mapping) else []
        for i, name in enumerate(names):
            if not isinstance(name, str) or not name:
                expected = "a name, a string of at least one character"
                raise _error("compile", f"outputs[{i}]", kind_of(name), expected, "(G11)")
        ends = self._ends(list(outputs.values()) if isinstance(outputs, Mapping) else outputs)
        numbers = {node: i for i, node in enumerate(self._needed(end.port.node for end in ends))}
        into, between = [], []
        for node, i in numbers.items():
            for j, port in enumerate(self._sources[node]):
                if port is None:
                    continue
                if port.node == GRAPH:
                    edge = DML_INPUT_GRAPH_EDGE_DESC(GraphInputIndex=port.number, ToNodeIndex=i, ToNodeInputIndex=j)
                    into.append(edge)
                else:
                    between.append(
                        DML_INTERMEDIATE_GRAPH_EDGE_DESC(
                            FromNodeIndex=numbers[port.node],
                            FromNodeOutputIndex=port.number,
                            ToNodeIndex=i,
                            ToNodeInputIndex=j,
                        )
                    )
        desc = DML_GRAPH_DESC(
            InputCount=max(self._inputs, default=-1) + 1,
            OutputCount=len(ends),
            Nodes=[self._nodes[node] for node in numbers],
            InputEdges=into,
            IntermediateEdges=between,
            OutputEdges=[
                DML_OUTPUT_GRAPH_EDGE_DESC(
                    FromNodeIndex=numbers[end.port.node], FromNodeOutputIndex=end.port.number, GraphOutputIndex=i
                )
                for i, end in enumerate(ends)
            ],
        )
        bound = Interface(
            inputs=dict(self._inputs),
            outputs={i: end.tensor for i, end in enumerate(ends)},
            input_names={number: name for number, name in self._names.items() if name},
            output_names=dict(enumerate(names)),
            truth_inputs=frozenset(self._truth_inputs),
            truth_outputs=frozenset([i for i, end in enumerate(ends) if end._is_truth]),
        )
        return compile_graph(self.device, desc, flags, bound)

    def _ends(self, outputs: object) -> list[Expression]:
        """What the outputs of a graph are wired to."""
        if not isinstance(outputs, (list, tuple)) or not outputs:
            raise _error("compile", "outputs", kind_of(outputs), "a list of at least one Expression", "(G9)")
        identity, ends = spec("ELEMENT_WISE_IDENTITY").desc, []
        for i, each in enumerate(outputs):
            end = self._own("compile", f"outputs[{i}]", each)
            is_truth = end._is_truth
            if end._is_view:
                (end,) = self.operator(identity, InputTensor=end)
            elif end.port.node == GRAPH:
                # An input is not wired to an output; its bytes are copied, as they lie.
                lying = replace(end.tensor, Flags=TensorFlags.NONE)
                (end,) = self.operator(identity, InputTensor=end, OutputTensor=lying)
            end._is_truth = is_truth
            ends.append(end)
        return ends

    def _check_output(self, found: OperatorSpec, member: str, given: object) -> None:
        is_one = "array" not in found.tensors[member].kind
        if is_one and not isinstance(given, (DML_BUFFER_TENSOR_DESC, TensorDataType, NoneType)):
            expected = "a DML_BUFFER_TENSOR_DESC, or a TensorDataType, such as TensorDataType.FLOAT32"
            raise _error(found.name, member, kind_of(given), expected, "(G9)")

    def _needed(self, ends: Iterable[int]) -> list[int]:
        """The nodes that outputs depend on, in the order in which they were made."""
        needed: set[int] = set()
        waiting = list(ends)
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += [port.node for port in self._sources[node] if port is not None and port.node != GRAPH]
        return sorted(needed)

    def _own(self, method: str, where: str, given: object) -> Expression:
        if not isinstance(given, Expression):
            raise _error(method, where, kind_of(given), "an Expression", "(G9)")
        if given.graph is not self:
            raise _error(method, where, "an expression of another graph", "one of this graph", "(G9)")
        return given


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
        self._truth = TruthValues(name)

    def take(self, where: str, value: Any, is_own: bool = False) -> Expression:
        """An operand as an expression; an array's bytes are copied, unless it is own: one that nobody changes."""
        if isinstance(value, Expression):
            return value
        if self._truth.are_taken and isinstance(value, bool):
            value = np.bool_(value)
        packed = packed_operand(self.name, where, value)
        if packed is not None:
            tensor = DML_BUFFER_TENSOR_DESC(DataType=packed.data_type, Sizes=packed.shape)
            return self.graph.constant(
                tensor, packed.to_bytes().ljust(tensor.TotalTensorSizeInBytes or 0, b"\0"), where
            )
        found = self.memory.import_array(self.name, where, as_operand(self.name, where, value))
        plain = found if isinstance(found, np.ndarray) else found.numpy()
        array = self._truth.taken(where, plain)
        tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type_of(self.name, where, array), Sizes=array.shape)
        data: Any
        if is_own and array.flags.c_contiguous and array.nbytes == tensor.TotalTensorSizeInBytes:
            data = array.reshape(-1).view(np.uint8).view(OwnData)
        else:
            data = array.tobytes().ljust(tensor.TotalTensorSizeInBytes or 0, b"\0")
        constant = self.graph.constant(tensor, data, where)
        constant._is_truth = array is not plain
        return constant

    def shape(self, operand: Any) -> Shape:
        return tuple(operand.tensor.Sizes)

    def dtype(self, operand: Any) -> np.dtype[Any]:
        return _dtype_of(self.name, operand.tensor)

    def look(self, where: str, value: Any) -> OperandInfo:
        if isinstance(value, Expression):
            return OperandInfo(self.shape(value), self.dtype(value))
        array = self.memory.import_array(self.name, where, as_operand(self.name, where, value))
        return OperandInfo(tuple(array.shape), array.dtype)

    def spread(self, operand: Any, shape: Shape) -> Any:
        tensor = operand.tensor
        if tuple(tensor.Sizes) == shape:
            return operand
        return operand.reinterpret(
            tensor.DataType, shape, broadcast_strides(self.shape(operand), tensor.strides, shape)
        )

    def wanted_sizes(self, rank: int) -> Shape:
        return ()

    def apply(
        self, operands: Mapping[str, Any], options: Mapping[str, Any], sizes: Shape, like: Any, lent: int
    ) -> list[Any]:
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
                member: [one.tensor for one in each] if isinstance(each, list) else getattr(each, "tensor", None)
                for member, each in inputs.items()
            }
            given = {member: each for member, each in inputs.items() if each is not None}
            key = _key(self.name, options, tensors, sizes)
            operator = self.graph._made.get(key) if key is not None else None
            if operator is None:
                desc = complete(found, {**options, **tensors}, device.feature_level, sizes)
                operator = device.create_operator(desc)
                if key is not None:
                    self.graph._made[key] = operator
            members, sources, read = self.graph._wired(found, {**options, **given})
            results = self.graph._added(found, operator, "", sources, read, members)
            return [self.spread(result, self.shape(result)[lent:]) for result in results]
        except DMLError as problem:
            names = {label: argument_label(label) for label in operands}
            raise error(in_function_terms(problem.violations, device, names)) from None


def _key(name: str, options: Mapping[str, Any], tensors: Mapping[str, Any], sizes: Shape) -> Hashable:
    """What tells descs apart that functions make; None where a wrong option is nothing that can be looked up."""
    each = [(member, tuple(given) if isinstance(given, list) else given) for member, given in tensors.items()]
    key = name, exact(tuple(options.items())), tuple(each), tuple(sizes)
    try:
        hash(key)
    except TypeError:
        return None
    return key


_COPIES = (
    *("ELEMENT_WISE_IDENTITY", "GATHER", "GATHER_ELEMENTS", "GATHER_ND", "GATHER_ND1", "JOIN", "SCATTER_ELEMENTS"),
    *("SCATTER_ND", "REVERSE_SUBSEQUENCES", "SLICE", "SLICE1", "SPLIT", "TILE"),
    *("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "SPACE_TO_DEPTH", "SPACE_TO_DEPTH1"),
)
"""Operators of which each element of a result is one of an input's that has no indices or lengths."""


def _gives_truth(found: OperatorSpec, given: Mapping[str, Sequence[Expression]], members: Mapping[str, Any]) -> bool:
    """Whether the results of UINT8 are truth values: made of any elements, or copied, or of bits of such."""
    truth = "" if found.pointwise is None else found.pointwise.truth
    copied: Iterable[str] = ()
    if truth == "kept":
        copied = set(found.pointwise.group_of(found.pointwise.output)) & given.keys()
    elif found.name in _COPIES and members.get("ScaleBias") is None:
        copied = [member for member in given if member not in ("IndicesTensor", "SequenceLengthsTensor")]
    return truth == "made" or (bool(copied) and all(each._is_truth for member in copied for each in given[member]))


def _error(operator: str, where: str, found: str, expected: str, rule: str) -> Exception:
    return error([violation(operator, rule, where, found, expected, kind="type")])
