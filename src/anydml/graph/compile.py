"""A graph, compiled: a list of kernels, and one piece of memory for all that lies between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.base import BindableRun, GivingRun, TryRun
from ..core.annotations import unquoted
from ..core.enums import DML_PERSISTENT_BUFFER_ALIGNMENT, ExecutionFlags
from ..core.errors import error
from ..core.memory import address, bytes_behind
from ..core.strided_layout import Array
from ..core.truth_values import BOOL, as_bytes
from ..runtime.binding import Bound
from ..runtime.compiled import Compiled, check_flags
from ..runtime.slots import slot_of
from .between import given_ports, room_between
from .boundary import bound_inputs, bound_outputs, matcher_of, packed_outputs
from .desc import DML_GRAPH_DESC, Interface, with_own_data
from .ir import Network, Place, Step
from .passes.channels_last import lay_channels_last
from .passes.fold_batch_norm import fold_normalizations
from .passes.fold_constants import fold_constants, take_prepared
from .passes.fuse_activation import fuse_activations
from .passes.fuse_addition import fuse_additions, part_biases
from .passes.fuse_attention import fuse_attention
from .passes.fuse_bias import fuse_biases
from .passes.fuse_pointwise import chain_pointwise
from .verify import GRAPH, Port, check
from .workspace import BindingSlot, Given, Seen, Work, Workspace, bring, looks_at_values, sequence_of

if TYPE_CHECKING:
    from .._native import PlanSequence
    from ..runtime.context import Context


PASSES: tuple[Callable[[Network], None], ...] = (
    fold_constants,
    fuse_attention,
    fuse_biases,
    fuse_activations,
    fold_normalizations,
    fold_constants,
    take_prepared,
    lay_channels_last,
    fuse_additions,
    part_biases,
    chain_pointwise,
)
"""What is done to a graph before kernels are asked for, in order."""


def compile_graph(
    device: Context,
    desc: DML_GRAPH_DESC,
    flags: ExecutionFlags = ExecutionFlags.NONE,
    bound: Interface | None = None,
) -> CompiledGraph:
    """A graph that keeps the rules, compiled.

    Args:
        device: where it will run.
        desc: the graph.
        flags: as for an operator.
        bound: what its inputs and outputs are bound as, and their names.
    """
    check_flags("compile_graph", flags)
    violations = check(desc, device)
    if violations:
        raise error(violations)
    return CompiledGraph(device, desc, flags, bound or Interface())


@unquoted
class CompiledGraph(Compiled):
    """A graph with its kernels. Immutable; several threads may dispatch it at once.

    Inputs and outputs are those of the graph, in order; None for an input that no edge leads from. An array for one
    that feeds several tensors has the sizes and strides of that which spans most bytes, of equals the first in the
    order of InputEdges; of a graph of expressions those of its input, where that spans as many; or it is flat.
    """

    steps: list[Step]
    """The kernels, in the order in which they run."""

    _takes_unread = True

    def __reduce__(self) -> tuple[Any, ...]:
        """Compiled anew, where it is unpickled or copied; what was initialised stays with this one."""
        return compile_graph, self._made_of

    def __repr__(self) -> str:
        return f"<CompiledGraph of {len(self.steps)} kernels on {self.device}>"

    def __init__(
        self,
        device: Context,
        desc: DML_GRAPH_DESC,
        flags: ExecutionFlags,
        bound: Interface,
    ) -> None:
        desc = with_own_data(desc)
        self._made_of = device, desc, flags, bound
        network = Network(desc, device, flags)
        for change in PASSES:
            change(network)
        self.steps = [network.step(vertex, node) for node, vertex in network.vertices.items()]
        self._preparation = [network.step(vertex, node) for node, vertex in network.prepared.items()]
        self._constants = network.constants
        self._notes = network.notes
        # Where a kernel may refuse a value that another has computed, nothing is given before all have run.
        is_careful = any(step.demands is not None for step in self.steps)
        read, named = bound.input_names, bound.output_names
        inputs = [
            slot_of(read.get(i, f"inputs[{i}]"), each)._replace(is_truth=i in bound.truth_inputs)
            for i, each in enumerate(bound_inputs(desc, bound.inputs))
        ]
        outputs = [
            slot_of(named.get(i, f"outputs[{i}]"), bound.outputs.get(i, tensor), True)._replace(
                is_truth=i in bound.truth_outputs
            )
            for i, tensor in enumerate(bound_outputs(desc))
        ]
        # What is bound has the bytes that its own tensor spans; those that are connected to it may span more.
        spans = {place.port: 0 for step in self.steps for place in step.writes if place is not None}
        for place in (place for step in self.steps for place in (*step.reads, *step.writes)):
            if place is not None and place.port in spans:
                spans[place.port] = max(spans[place.port], place.layout.bounds()[1])
        self._direct: dict[Port, int] = {}
        self._copied: list[tuple[int, Port]] = []
        for number, port in network.targets.items():
            layout = outputs[number].layout
            fits = port in spans and layout is not None and spans[port] <= layout.bounds()[1]
            if fits and not is_careful and port not in self._direct:
                self._direct[port] = number
            else:
                self._copied.append((number, port))
        copied = [port for _, port in self._copied]
        self._given = given_ports(self.steps, {*self._direct, *copied})
        self._room = room_between(self.steps, {*self._direct, *self._given}, copied)
        self._seconds: list[list[float]] | None = None
        """Of each step in each dispatch, where they are measured."""
        names = {name: i for i, name in read.items()}
        super().__init__(device, "graph", inputs, outputs, names, bool(named))
        self._fit = matcher_of(inputs) if device.memory.is_host else None
        self._places: dict[Port, int] = {}
        """Where in the persistent resource lies what is prepared."""
        for place in (place for step in self._preparation for place in step.writes if place is not None):
            self._places[place.port] = self._persistent_size
            blocks = -(-place.room // DML_PERSISTENT_BUFFER_ALIGNMENT)
            self._persistent_size += blocks * DML_PERSISTENT_BUFFER_ALIGNMENT
        self._alone: Work | None = None
        self._try_run = self._only_kernel()
        is_plain = device.memory.is_host and not any(slot.is_packed for slot in inputs)
        self._packed_outputs = packed_outputs(self._outputs) if is_plain else None
        if not self._persistent_size:
            self._alone = self._work_with({port: (each, 0) for port, each in self._constants.items()})

    @property
    def engine(self) -> str:
        """The engines that serve its kernels."""
        return ", ".join(dict.fromkeys(step.served.engine.name for step in self.steps))

    def explain(self) -> str:
        """What was folded, fused and chained, the memory between the kernels, and which engine serves each operator."""
        lines = [
            f"graph: {len(self.steps)} kernels; {self._room.size} bytes of intermediate tensors, of which at most "
        ]
        lines[0] += f"{self._room.alive} are alive at once"
        works = [self._alone] if self._alone is not None else [filled.work for filled in list(self._kept.values())]
        packed = sum(run.size for work in works for run in work.runs if isinstance(run, BindableRun))
        lines[0] += f"; {packed} bytes of prepared filters" if packed else ""
        bound = self._made_of[3]
        if bound.input_names or bound.output_names:
            lines.append(f"inputs: {', '.join(self.input_names)}; outputs: {', '.join(self.output_names)}")
        lines += self._notes
        steps = (*self._preparation, *self.steps)
        lines += [f"{step.vertex.name}: {step.served.explain(step.vertex.spec)}" for step in steps]
        free = [each for work in works for lane in list(work.free.values()) for each in list(lane)]
        states = dict.fromkeys(each.recording.state for each in free if each.recording is not None)
        lines[1:1] = [f"kernels are {state}" for state in states]
        return "\n".join(lines)

    def run_packed(self, inputs: list[Array]) -> list[Array] | None:
        """New outputs for arrays that are known to lie packed, of the inputs' types and sizes: a dispatch that looks at
        no rule on bindings. None, and nothing done, where outputs don't lie so, inputs are OWNED_BY_DML, or either has
        elements of less than a byte."""
        if self._packed_outputs is None or self._alone is None:
            return None
        outputs = [np.empty(sizes, dtype) for sizes, dtype in self._packed_outputs]
        self._work(None, [as_bytes(each) for each in inputs], outputs)
        return [y.view(BOOL) if slot.is_truth else y for y, slot in zip(outputs, self._outputs, strict=True)]

    @property
    def prepared(self) -> Collection[Port]:
        """What is computed when weights are bound, once."""
        return self._places

    def outputs_of(self, step: Step) -> list[int]:
        """The numbers of the graph's outputs that a step gives."""
        given = {place.port for place in step.writes if place is not None}
        ends = {number: port for port, number in self._direct.items()} | dict(self._copied)
        return [number for number in sorted(ends) if ends[number] in given]

    def times(
        self, inputs: Sequence[Any], outputs: Sequence[Any], *, persistent: Array | None = None, runs: int = 7
    ) -> list[float]:
        """How long each kernel takes, in seconds: the median of several runs.

        Args:
            inputs: as for :meth:`dispatch`.
            outputs: likewise.
            persistent: likewise.
            runs: how many, after one that is not counted. On a GPU the times are the device's own.
        """
        timed = object.__new__(CompiledGraph)
        timed.__dict__ |= self.__dict__
        timed._seconds, timed._try_run = [], None
        for _ in range(runs + 1):
            timed.dispatch(inputs, outputs, persistent=persistent)
        return [float(np.median(each)) for each in zip(*timed._seconds[1:], strict=True)]

    def _only_kernel(self) -> TryRun | None:
        """That of a graph of one kernel, which takes the graph's inputs and outputs as they are, in the same order."""
        if len(self.steps) != 1 or self._preparation or self._constants or self._copied:
            return None
        (step,) = self.steps
        if step.demands is not None or any(slot.owned for slot in self._inputs):
            return None
        reads = [Port(GRAPH, number) for number in range(len(self._inputs))]
        writes = sorted(self._direct, key=self._direct.__getitem__)
        for places, ports, slots in (step.reads, reads, self._inputs), (step.writes, writes, self._outputs):
            layouts = [slot.layout for slot in slots]
            if [None if place is None else place.port for place in places] != ports or not all(
                place is not None and layout is not None and place.layout.same_place(layout)
                for place, layout in zip(places, layouts, strict=True)
            ):
                return None
        return step.served.kernel.try_run

    def _known_in(self, memory: Array, offset: int) -> dict[Port, tuple[Array, int]]:
        known = {port: (each, 0) for port, each in self._constants.items()}
        known |= {port: (memory, offset + start) for port, start in self._places.items()}
        for i, slot in enumerate(self._inputs):
            if slot.owned:
                known[Port(GRAPH, i)] = memory, offset + self._offsets[slot.label]
        return known

    def _array(self, place: Place | None, known: Mapping[Port, tuple[Array, int]]) -> Array | None:
        """A tensor that is known; None for others."""
        if place is None or place.port not in known:
            return None
        return self.device.memory.view(place.layout, *known[place.port])

    def _prepare(self, memory: Array, offset: int) -> None:
        known = self._known_in(memory, offset)
        for step in self._preparation:
            sides = [[self._array(place, known) for place in side] for side in (step.reads, step.writes)]
            step.check(sides[0])
            step.served.kernel.run(*sides)

    def _prepared(self, inputs: Mapping[int, Bound], memory: Array, offset: int) -> Work:
        return self._work_with(self._known_in(memory, offset))

    def _work_with(self, known: dict[Port, tuple[Array, int]]) -> Work:
        runs = []
        for step in self.steps:
            kernel = step.served.kernel
            ready = None
            if kernel.prepare is not None:
                ready = kernel.prepare([self._array(place, known) for place in step.reads])
            runs.append(ready or kernel.run)
        return Work(known, runs, {})

    def _work(self, prepared: Any, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
        work: Work | None = prepared or self._alone
        assert work is not None
        memory = self.device.memory
        lane = memory.stream_key()
        free = work.free.setdefault(lane, []) if lane is not None else []
        try:
            workspace = free.pop()
        except IndexError:
            workspace = self._workspace(work)
        if self._seconds is not None:
            with memory.stopwatch(len(self.steps) + 1) as stopwatch:
                stopwatch.mark()
                for i in range(len(self.steps)):
                    self._run_step(i, workspace, inputs, outputs)
                    stopwatch.mark()
            self._seconds.append(stopwatch.seconds())
            self._copy_results(work, workspace, outputs)
        elif workspace.recording is not None and lane is not None:
            workspace.recording(partial(self._run_all, work, workspace), inputs, outputs)
        else:
            self._run_all(work, workspace, inputs, outputs)
        free.append(workspace)

    def _run_all(
        self, work: Work, workspace: Workspace, inputs: Sequence[Array | None], outputs: Sequence[Array | None]
    ) -> None:
        bound = [*inputs, *outputs]
        for part in workspace.parts:
            if isinstance(part, int):
                self._run_step(part, workspace, inputs, outputs)
            else:
                part.run(bound)
        self._copy_results(work, workspace, outputs)

    def _copy_results(self, work: Work, workspace: Workspace, outputs: Sequence[Array | None]) -> None:
        memory = self.device.memory
        for number, port in self._copied:
            target: Any = outputs[number]
            layout = self._outputs[number].layout
            assert layout is not None
            if port in self._direct:
                # The same bytes may be outputs of several shapes.
                given: Any = outputs[self._direct[port]]
                where = bytes_behind(given, layout.bounds()[1]), 0
            else:
                where = self._place(work, workspace.memory, port)
            memory.copy(target, memory.view(layout, *where))

    def _run_step(
        self, i: int, workspace: Workspace, inputs: Sequence[Array | None], outputs: Sequence[Array | None]
    ) -> None:
        for hole in workspace.holes[i]:
            hole.arrays[hole.position] = self._filling(hole, inputs, outputs)
        if workspace.looks[i]:
            self.steps[i].check(workspace.arrays[i][0])
        workspace.calls[i]()
        for given in workspace.dropped[i]:
            given.array = None
        for hole in workspace.holes[i]:
            hole.arrays[hole.position] = None

    def _filling(self, hole: BindingSlot, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> Array:
        array = (outputs if hole.is_output else inputs)[hole.number]
        assert array is not None
        if hole.is_whole:
            return array
        wanted = hole.place.layout
        return self.device.memory.view(wanted, bytes_behind(array, wanted.bounds()[1]), 0)

    def _place(self, work: Work, memory: Array, port: Port) -> tuple[Array, int]:
        return work.known[port] if port in work.known else (memory, self._room.offsets[port])

    def _workspace(self, work: Work) -> Workspace:
        memory = self.device.memory.empty((self._room.size,), np.dtype(np.uint8))
        layouts = [slot.layout for slot in (*self._inputs, *self._outputs)]
        recording = self.device.memory.recording(layouts, len(self._inputs), len(self.steps))
        workspace = Workspace(memory, [], [], [], [], [], [[] for _ in self.steps], recording)
        given = {port: Given() for port in self._given}
        for port, last in self._given.items():
            workspace.dropped[last].append(given[port])
        for step, run in zip(self.steps, work.runs, strict=True):
            holes: list[BindingSlot] = []
            sides: list[list[Any]] = []
            for places in (step.reads, step.writes):
                arrays: list[Any] = []
                for position, place in enumerate(places):
                    arrays.append(None)
                    if place is None:
                        continue
                    if place.port in given:
                        arrays[position] = Seen(given[place.port], place.layout)
                        continue
                    is_output = place.port in self._direct
                    if is_output or (place.port.node == GRAPH and place.port not in work.known):
                        number = self._direct[place.port] if is_output else place.port.number
                        own = (self._outputs if is_output else self._inputs)[number].layout
                        is_whole = own is not None and place.layout.same_place(own)
                        holes.append(BindingSlot(arrays, position, place, is_output, number, is_whole))
                    else:
                        where = self._place(work, memory, place.port)
                        arrays[position] = self.device.memory.view(place.layout, *where)
                sides.append(arrays)
            workspace.arrays.append((sides[0], sides[1]))
            workspace.holes.append(holes)
            workspace.looks.append(looks_at_values(step, work, sides[0]))
            brought = next((given[each.port] for each in step.writes if each is not None and each.port in given), None)
            if brought is not None:
                assert isinstance(run, GivingRun)
                workspace.calls.append(partial(bring, run, sides[0], brought))
            elif isinstance(run, BindableRun) and not holes:
                workspace.calls.append(run.bound(*sides))
            else:
                workspace.calls.append(partial(run, *sides))
        workspace.parts.extend(self._parts(work, workspace))
        return workspace

    def _parts(self, work: Work, workspace: Workspace) -> Iterator[PlanSequence | int]:
        """Native plans that follow each other as one; all other steps by themselves."""
        waiting: list[tuple[Any, list[int], list[int]]] = []
        for i, (step, run) in enumerate(zip(self.steps, work.runs, strict=True)):
            plan = run.plan if isinstance(run, BindableRun) else step.served.kernel.plan
            if plan is None or workspace.looks[i] or not self.device.memory.is_host:
                yield from sequence_of(waiting)
                waiting = []
                yield i
                continue
            reads, writes = ([0 if each is None else address(each) for each in side] for side in workspace.arrays[i])
            for hole in workspace.holes[i]:
                side = reads if hole.arrays is workspace.arrays[i][0] else writes
                side[hole.position] = -1 - hole.number - len(self._inputs) * hole.is_output
            waiting.append((plan, reads, writes))
        yield from sequence_of(waiting)
