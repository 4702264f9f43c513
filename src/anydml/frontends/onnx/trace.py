"""Partial evaluation: ONNX nodes become graphs of DirectML's operators, one for each stretch that needs no value of the
one before on the host.

Nodes are traced in order, for inputs of given shapes. What depends on shapes and constants alone is computed here.
Where a lowering needs a value that is not known yet, the piece ends: it is compiled and run, the value is read, and
tracing goes on with it. NonZero, whose result has a size that is a value, ends a piece, too, and so do nodes that
another runtime serves.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...core.enums import ExecutionFlags
from ...core.errors import DMLError, error, refuse, violation
from ...core.packed_array import four_bits_of
from ...device import Device
from ...graph.compile import CompiledGraph
from ...graph.desc import DML_OPERATOR_GRAPH_NODE_DESC
from ...runtime.compiled import Operator
from ..directmlx import Expression, Graph
from . import control, functions, host, weights
from .context import Counted, Demand, NodeContext, NotLowered, Unknown, constant_of
from .lowering import LOWERINGS
from .node import Node
from .values import Held, Shape, Traced, Value, is_held_by_directml, leaves, shape_of


@dataclass
class Report:
    """What serves a node.

    Attributes:
        label: the node's.
        op: its operator.
        operators: DirectML's, in the order in which they were applied.
        engines: what serves each of them, or a note where none is left.
        note: where no operator of DirectML's serves it, what does.
        refused: why DirectML does not serve it, where another runtime does.
    """

    label: str
    op: str
    operators: list[str] = field(default_factory=list)
    engines: list[str] = field(default_factory=list)
    note: str = ""
    refused: str = ""

    def __str__(self) -> str:
        if self.note:
            return f"{self.label} ({self.op}): {self.note}"
        served = ", ".join(dict.fromkeys(self.engines)) or "folded"
        return f"{self.label} ({self.op}): {', '.join(self.operators) or 'another shape of the same bytes'}: {served}"


@dataclass
class Rest:
    """Where tracing goes on once a piece has run.

    Attributes:
        nodes: what is left.
        values: what is known of each value that they read.
        read: keys of arrays that are then read on the host.
        resized: keys of arrays whose shapes are known only then.
        step: a node that another runtime computes first.
    """

    nodes: Sequence[Node]
    values: dict[str, Value]
    read: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    step: Node | None = None


@dataclass
class Piece:
    """A stretch of nodes, compiled.

    Attributes:
        compiled: None where nothing is computed.
        reads: keys of the arrays that it is bound to.
        shapes: the shapes that they have in the graph.
        weights: what it is bound to behind these: constants, on devices whose graphs have none.
        writes: keys and shapes of the arrays that it gives.
        counts: of a key, the key of its size along an axis, and the axis.
        demands: keys of truth values that have to hold.
        reports: what serves each node.
        results: the model's outputs, where it is the last piece.
        rest: what comes then, where it is not.
        following: the pieces that do, compiled, by what was read.
    """

    compiled: CompiledGraph | None
    reads: list[str]
    shapes: list[Shape]
    writes: list[tuple[str, Shape]]
    counts: dict[str, tuple[str, int]]
    demands: dict[str, Demand]
    reports: list[Report]
    results: list[Value]
    rest: Rest | None
    following: OrderedDict[Hashable, Piece] = field(default_factory=OrderedDict)
    weights: list[Any] = field(default_factory=list)


def trace(
    device: Device,
    nodes: Sequence[Node],
    values: dict[str, Value],
    outputs: Sequence[str],
    can_fall_back: bool,
    is_trial: bool = False,
    flags: ExecutionFlags = ExecutionFlags.NONE,
) -> Piece:
    """Builds and compiles the next piece.

    Args:
        device: where it will run.
        nodes: what is left to do.
        values: what is known of each value.
        outputs: the names of the model's outputs.
        can_fall_back: whether nodes that DirectML does not do are left to another runtime.
        is_trial: whether the last piece is not compiled, as nothing but the reports is wanted; the others are as by the
            newest feature level.
        flags: as for an operator.

    Raises:
        DMLError: (N2), (N5), and what compiling a graph raises.
    """
    return _Trace(device, dict(values), outputs, can_fall_back, is_trial, flags).piece(list(nodes))


class _Trace:
    def __init__(
        self,
        device: Device,
        values: dict[str, Value],
        outputs: Sequence[str],
        can_fall_back: bool,
        is_trial: bool,
        flags: ExecutionFlags,
    ) -> None:
        self.graph = Graph(device)
        self.values = values
        self.outputs = outputs
        self.can_fall_back = can_fall_back
        self.is_trial = is_trial
        self.flags = flags
        self.counted: dict[str, Counted] = {}
        self.demands: list[Demand] = []
        self.reports: list[Report] = []
        self._reads: dict[str, Held] = {}
        self._expressions: dict[str, Expression] = {}

    def piece(self, nodes: list[Node]) -> Piece:
        waiting = nodes[::-1]
        while waiting:
            node = waiting[-1]
            start = len(self.graph._nodes)
            try:
                found = self._tried(node)
            except Unknown as wanted:
                return self._ended(waiting[::-1], read=wanted.name)
            except (NotLowered, DMLError) as reason:
                if not self.can_fall_back:
                    raise _refused(node, reason) from reason
                refused = _reason(reason)
                self._report(node, start, f"not by DirectML, as {refused}; by {host.RUNTIMES}", refused)
                return self._ended(waiting[-2::-1], step=node)
            waiting.pop()
            if isinstance(found, control.Inlined):
                self.values |= found.constants
                waiting += found.nodes[::-1]
                continue
            self._report(node, start, found.note if isinstance(found, host.Evaluated) else "")
            results = found.results if isinstance(found, host.Evaluated) else found
            for name, value in zip(node.outputs, results, strict=False):
                if name:
                    self.values[name] = self._taken(name, value)
            if self.counted:
                return self._ended(waiting[::-1])
        return self._ended([], last=True)

    def _tried(self, node: Node) -> Any:
        """The results of a node, where its attributes, types and shapes go together.

        ONNX's checker looks at no shapes and at few types; its inference does, with those that are known here. What
        neither looks at, ranks and lengths that a schema gives in words, shows by an exception in the lowering.
        """
        said = functions.refusal(node, self.values)
        if said:
            raise NotLowered(_mismatch(said))
        try:
            return self._evaluated(node)
        except (DMLError, NotLowered, Unknown):
            raise
        except Exception as problem:
            raise NotLowered(_mismatch(f"{type(problem).__name__}: {problem}")) from problem

    def _evaluated(self, node: Node) -> Any:
        """The results of a node, or nodes in place of it."""
        missing = [name for name in node.inputs if name and name not in self.values]
        if missing:
            raise NotLowered(f"nothing gives its input {missing[0]!r}")
        known = host.evaluated(node, self.values)
        if known is not None:
            return known
        context = NodeContext(self.graph, node, self.values, self._expression)
        inlined = control.inlined(context)
        if inlined is not None:
            return inlined
        lowering = LOWERINGS.get(node.op)
        if lowering is None:
            return functions.expanded(context)
        self.graph.label = node.label
        found = lowering(context)
        self.demands += context.demands
        return found if isinstance(found, (list, tuple)) and not isinstance(found, Counted) else [found]

    def _taken(self, name: str, value: Any) -> Value:
        if isinstance(value, Counted):
            self.counted[name] = value
            return Traced(value.expression, value.expression.shape)
        if isinstance(value, Expression):
            return Traced(value, value.shape)
        if isinstance(value, list):
            return [self._taken(f"{name}[{i}]", each) for i, each in enumerate(value)]
        return np.asarray(value) if isinstance(value, (int, float, np.generic)) else value

    def _expression(self, name: str) -> Expression:
        """An input of the graph, or a constant, for what is held or known."""
        value = self.values[name]
        key = value.key if isinstance(value, Held) else name
        if key not in self._expressions:
            shape = shape_of(value) or (1,)
            if not is_held_by_directml(value.dtype):
                raise NotLowered(f"elements of {value.dtype}, which DirectML has not")
            if isinstance(value, Held):
                self._expressions[key] = self.graph.input(shape, four_bits_of(value.dtype) or value.dtype)
                self._reads[key] = value
            else:
                self._expressions[key] = constant_of(self.graph, value)
        return self._expressions[key]

    def _report(self, node: Node, start: int, note: str, refused: str = "") -> None:
        made = [each.Operator.spec.name for each in self.graph._nodes[start:] if hasattr(each, "Operator")]
        self.reports.append(Report(node.label, node.op, made, note=note, refused=refused))

    def _ended(self, nodes: list[Node], read: str = "", step: Node | None = None, last: bool = False) -> Piece:
        """Compiles what was traced."""
        missing = [name for name in self.outputs if name not in self.values] if last else []
        if missing:
            expected = "a value that a node or an input gives"
            refuse("InferenceSession", "(N1)", "model", f"an output {missing[0]!r} that nothing gives", expected)
        used = {name for name in self.outputs if name}.union(*(node.reads() for node in nodes))
        used |= step.reads() if step is not None else set()
        held: dict[str, Traced] = {}
        # In the order in which they were made: one model is one graph.
        values = {name: self._held(name, value, held) for name, value in self.values.items() if name in used}
        keys = [leaf.key for leaf in leaves(values.get(read)) if isinstance(leaf, Held)] if read else []
        counted = {name: each for name, each in self.counted.items() if name in used}
        counts = {name: (f"{name}#", each.axis) for name, each in counted.items()}
        ends = {key: each.expression for key, each in held.items()}
        ends |= {f"{name}#": each.count for name, each in counted.items()}
        demands = {f"demand {i}": each for i, each in enumerate(self.demands)}
        ends |= {key: each.truth for key, each in demands.items()}
        bound: list[Any] = []
        is_wanted = bool(ends) and not (last and self.is_trial)
        if is_wanted and self.is_trial:
            _move_to_newest(self.graph)
        elif weights.are_inputs(self.graph.device):
            bound = weights.lifted(self.graph, list(ends.values()))
        try:
            compiled = self.graph.compile(list(ends.values()), self.flags) if is_wanted else None
        except MemoryError as problem:
            raise no_memory(problem) from problem
        if compiled is not None:
            _add_engines(self.reports, compiled)
        rest = None if last else Rest(nodes, values, keys, [*counted], step)
        return Piece(
            compiled=compiled,
            reads=[*self._reads],
            shapes=[each.shape or (1,) for each in self._reads.values()],
            writes=[(key, held[key].shape if key in held else (1,)) for key in ends],
            counts=counts,
            demands=demands,
            reports=self.reports,
            results=[values[name] for name in self.outputs] if last else [],
            rest=rest,
            weights=bound,
        )

    def _held(self, name: str, value: Value, held: dict[str, Traced]) -> Value:
        """What the next piece knows of a value, which the run then holds."""
        if isinstance(value, list):
            return [self._held(f"{name}[{i}]", each, held) for i, each in enumerate(value)]
        if not isinstance(value, Traced):
            return value
        held[name] = value
        return Held(name, value.shape, value.dtype)


def _move_to_newest(graph: Graph) -> None:
    """Moves a graph that is complete to a device of the newest feature level.

    Nodes have kept the rules of their own level by now. Those of graphs, which copy no INT64 before level 4.1 and are
    not there at all before 2.1, do not matter to a check, which needs the values alone.
    """
    graph.device = Device(graph.device.name)
    graph._nodes = [
        replace(node, Operator=Operator(graph.device, node.Operator.spec, node.Operator.desc))
        if isinstance(node, DML_OPERATOR_GRAPH_NODE_DESC)
        else node
        for node in graph._nodes
    ]


def _add_engines(reports: Iterable[Report], compiled: CompiledGraph) -> None:
    engines: dict[str, list[str]] = {}
    for step in (*compiled._preparation, *compiled.steps):
        for title in step.vertex.titles:
            engines.setdefault(title, []).append(step.served.engine.name)
    for report in reports:
        report.engines += engines.get(report.label, [])


def no_memory(problem: MemoryError) -> DMLError:
    """The error for sizes that a model asks for and no machine has; rule (D6)."""
    if isinstance(problem, DMLError):
        return problem
    found = " ".join(str(problem).split())[:200] or "too little memory"
    expected = "sizes that there is memory for"
    return error([violation("InferenceSession", "(D6)", "model", found, expected, kind="memory")])


def _refused(node: Node, reason: NotLowered | DMLError) -> DMLError:
    remedy = "--fallback (fallback=True) runs such nodes by another runtime"
    found = _reason(reason)
    place = f"node {node.label!r}"
    expected = "what DirectML's operators do"
    return error([violation(node.op, "(N2)", "", found, expected, remedy, place=place)])


def _mismatch(said: str) -> str:
    return f"attributes, types or shapes that do not go together ({' '.join(said.split())[:300]})"


def _reason(reason: NotLowered | DMLError) -> str:
    return "; ".join(map(str, reason.violations)) if isinstance(reason, DMLError) else str(reason)
