"""What an operator's calls of PyTorch compute, as the body of a function of Triton: symbolic tracing.

`make_fx` runs the calls on tensors without memory and lists ATen's operators. Each becomes a line of `expressions.py`.
Tensors that are written, and views of them with other types, share what was stored last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import make_fx

from ...torch.lowering import Run
from .expressions import COMPARISONS, converted, expression, number, seen_as


class Traced(NamedTuple):
    """A function of Triton, of inputs x0, x1 and so on."""

    lines: tuple[str, ...]
    """Of its body."""
    results: tuple[str, ...]
    calls: int
    """How many of PyTorch's calls compute."""

    @property
    def needs_libdevice(self) -> bool:
        return any("libdevice." in line for line in self.lines)


class NotTraced(Exception):
    """Which call there is no expression for."""


def traced(run: Run, inputs: Sequence[torch.dtype | None], outputs: Sequence[torch.dtype]) -> Traced:
    """What `run` computes of elements of these types.

    Raises:
        NotTraced: it calls what is not in the table.
    """

    def flat(*tensors: Any) -> list[Any]:
        rest = iter(tensors)
        read = [None if dtype is None else next(rest) for dtype in inputs]
        written = [*rest]
        run(read, written)
        return written

    some = [torch.empty(2, dtype=dtype) for dtype in (*inputs, *outputs) if dtype is not None]
    graph = make_fx(flat, tracing_mode="fake")(*some).graph
    body = _Body(len(some) - len(outputs))
    for node in graph.nodes:
        body.take(node)
    return body.finished()


class _Tensor(NamedTuple):
    """A node: memory that others may share, or a value alone."""

    base: Node
    dtype: torch.dtype


class _Body:
    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._tensors: dict[Node, _Tensor] = {}
        self._stored: dict[Node, tuple[str, torch.dtype]] = {}
        """What each memory holds, or each value is: its name and type."""
        self._lines: list[str] = []
        self._places: list[Node] = []
        self._results: tuple[str, ...] = ()
        self._calls = 0

    def finished(self) -> Traced:
        return Traced(tuple(self._lines), self._results, self._calls)

    def take(self, node: Node) -> None:
        if node.op == "placeholder":
            self._tensors[node] = _Tensor(node, _dtype(node))
            if len(self._places) < self._inputs:
                self._stored[node] = f"x{len(self._places)}", _dtype(node)
            self._places.append(node)
        elif node.op == "call_function":
            self._call(node, node.target.overloadpacket.__name__)
        elif node.op == "output":
            self._results = tuple([self._read(place, _dtype(place)) for place in self._places[self._inputs :]])

    def _call(self, node: Node, name: str) -> None:
        args = node.args
        if name == "view":
            source = self._tensors[_node(args[0])]
            if not isinstance(args[1], torch.dtype):
                raise NotTraced("a view of another shape")
            self._tensors[node] = _Tensor(source.base, args[1])
        elif name == "detach":
            self._tensors[node] = self._tensors[_node(args[0])]
        elif name == "empty":
            self._tensors[node] = _Tensor(node, _dtype(node))
        elif name == "copy_":
            self._calls += 1
            self._write(_node(args[0]), *self._stored_in(args[1]))
            self._tensors[node] = self._tensors[_node(args[0])]
        elif name in ("add_", "sub_", "mul_", "div_"):
            self._compute(node, name[:-1], args[0])
        else:
            self._compute(node, name, node.kwargs.get("out"))

    def _compute(self, node: Node, name: str, out: Any) -> None:
        dtype = _dtype(node)
        given = [*node.args]
        if name in ("_to_copy", "clone"):
            value = self._read(given[0], dtype)
        elif name in ("full_like", "zeros_like", "ones_like", "scalar_tensor"):
            value = number({"zeros_like": 0, "ones_like": 1}.get(name, given[-1]), dtype)
        else:
            self._refuse_options(node, name)
            wide = torch.float32 if dtype == torch.float16 else dtype
            if name == "div" and all(isinstance(x, Node) and _dtype(x) == torch.float16 for x in (node, *given)):
                value = f"half_quotient({', '.join([self._read(x, wide) for x in given])})"
            elif name == "div" and dtype == torch.float64 and _was_single(given[1]):
                value = f"double_quotient({', '.join([self._read(x, wide) for x in given])})"
            else:
                value = self._value(name, wide, given)
            value = converted(value, wide, dtype)
        self._calls += name not in ("scalar_tensor", "full_like", "zeros_like", "ones_like")
        if isinstance(out, Node):
            self._write(out, self._named(value), dtype)
            self._tensors[node] = self._tensors[out]
            return
        self._tensors[node] = _Tensor(node, dtype)
        self._stored[node] = self._named(value), dtype

    @staticmethod
    def _refuse_options(node: Node, name: str) -> None:
        options = {key: value for key, value in node.kwargs.items() if key != "out"}
        if options.get("rounding_mode") == "trunc" and not _dtype(node).is_floating_point:
            del options["rounding_mode"]
        if any(value is not None for value in options.values()):
            raise NotTraced(f"{name} with {', '.join(options)}")

    def _value(self, name: str, dtype: torch.dtype, given: Sequence[Any]) -> str:
        """What a call gives in a type."""
        if name == "where":
            condition, a, b = given
            return f"tl.where({self._read(condition, torch.bool)}, {self._read(a, dtype)}, {self._read(b, dtype)})"
        if name == "masked_fill":
            x, mask, value = given
            return f"tl.where({self._read(mask, torch.bool)}, {self._read(value, dtype)}, {self._read(x, dtype)})"
        if name == "clamp":
            return self._clamped(dtype, *given)
        if name == "nan_to_num":
            return self._without_nan(dtype, *given)
        if name == "remainder" and dtype.is_floating_point:
            return self._floored_remainder(dtype, *given)
        if name == "narrow":
            x, function, constants = given
            return f"{function}({', '.join([self._read(x, dtype), *map(repr, constants)])})"
        if name == "narrow_pair":
            a, b, function = given
            return f"{function}({self._read(a, dtype)}, {self._read(b, dtype)})"
        types = [_dtype(each) for each in given if isinstance(each, Node)]
        if name in COMPARISONS:
            dtype = types[0]
            for each in types[1:]:
                dtype = torch.promote_types(dtype, each)
            if not dtype.is_floating_point and any(isinstance(each, float) for each in given):
                raise NotTraced(f"{name} of integers and a float")
            dtype = torch.float32 if dtype == torch.float16 else dtype
        found = expression(name, dtype, dict(zip("abc", [self._read(each, dtype) for each in given], strict=False)))
        if found is None:
            raise NotTraced(f"{name} of {dtype}")
        return found

    def _clamped(self, dtype: torch.dtype, x: Any, low: Any = None, high: Any = None) -> str:
        """NaN stays NaN."""
        value = self._read(x, dtype)
        for end, order in ((low, "<"), (high, ">")):
            if end is not None:
                limit = self._read(end, dtype)
                value = self._named(f"tl.where({value} {order} {limit}, {limit}, {value})")
        return value

    def _without_nan(self, dtype: torch.dtype, x: Any, nan: Any = None, high: Any = None, low: Any = None) -> str:
        value = self._read(x, dtype)
        infinity, lowest = number(float("inf"), dtype), number(float("-inf"), dtype)
        largest = torch.finfo(dtype).max
        ends = [
            (f"{value} == {infinity}", largest if high is None else high),
            (f"{value} == {lowest}", -largest if low is None else low),
            (f"{value} != {value}", 0.0 if nan is None else nan),
        ]
        found = value
        for condition, end in ends:
            found = f"tl.where({condition}, {number(end, dtype)}, {found})"
        return found

    def _floored_remainder(self, dtype: torch.dtype, a: Any, b: Any) -> str:
        """Of the divisor's sign."""
        divisor = self._read(b, dtype)
        rest = expression("fmod", dtype, {"a": self._read(a, dtype), "b": divisor})
        if rest is None:
            raise NotTraced(f"remainder of {dtype}")
        rest = self._named(rest)
        return f"tl.where(({rest} != 0) & (({rest} < 0) != ({divisor} < 0)), {rest} + {divisor}, {rest})"

    def _stored_in(self, x: Any) -> tuple[str, torch.dtype]:
        tensor = self._tensors[_node(x)]
        if tensor.base not in self._stored:
            raise NotTraced("an output that is read before it is written")
        value, dtype = self._stored[tensor.base]
        seen = value if dtype == tensor.dtype else self._named(seen_as(value, dtype, tensor.dtype))
        return seen, tensor.dtype

    def _read(self, x: Any, dtype: torch.dtype) -> str:
        """An operand in a type."""
        if not isinstance(x, Node):
            return number(x, dtype)
        value, before = self._stored_in(x)
        return value if before == dtype else self._named(converted(value, before, dtype))

    def _write(self, place: Node, value: str, dtype: torch.dtype) -> None:
        tensor = self._tensors[place]
        if tensor.base in self._places[: self._inputs]:
            raise NotTraced("an input that is written")
        base = _dtype(tensor.base)
        self._stored[tensor.base] = (
            self._named(seen_as(converted(value, dtype, tensor.dtype), tensor.dtype, base)),
            base,
        )

    def _named(self, value: str) -> str:
        """A name for what a line computes."""
        if value.isidentifier():
            return value
        self._lines.append(f"v{len(self._lines)} = {value}")
        return f"v{len(self._lines) - 1}"


def _node(x: Any) -> Node:
    assert isinstance(x, Node)
    return x


def _was_single(x: Any) -> bool:
    return (
        isinstance(x, Node)
        and x.target is torch.ops.aten._to_copy.default
        and _dtype(_node(x.args[0])) == torch.float32
    )


def _dtype(node: Node) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def composed(links: Sequence[tuple[Run, Sequence[int], torch.dtype]], results: Sequence[int]) -> Callable[..., None]:
    """The run of a chain: each link's operands are numbers of inputs, and of the links before; -1 for none."""

    def run(read: Sequence[Any], written: Sequence[Any]) -> None:
        values = [*read]
        for call, operands, dtype in links:
            place = torch.empty(2, dtype=dtype)
            call([None if number < 0 else values[number] for number in operands], [place])
            values.append(place)
        for out, result in zip(written, results, strict=True):
            out.copy_(values[result])

    return run
