"""A model being run: its resources in memory, its operators compiled and initialised."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from ...core.enums import TensorDataType
from ...core.errors import DMLError, error
from ...core.strided_layout import Array, Layout
from ...device import Device
from ...graph.desc import graph_of
from ...operators.schema import Tensor
from ...runtime.binding import DML_BUFFER_ARRAY_BINDING, DML_BUFFER_BINDING, BindingTable
from ...runtime.compiled import Compiled
from .buffers import DEFERRED, Buffer, Result, text_of
from .commands import (
    Binding,
    Command,
    Dispatch,
    Dispatchable,
    Print,
    WriteFile,
    at,
    in_model,
    model_violation,
    no_memory,
)
from .content import Content
from .files import Refused, write_whole
from .images import SUFFIXES, write_image
from .onnx_dispatchable import data_type_of
from .timing import Timing, Verbosity
from .whole import Prepared, Whole

_SECONDS_BETWEEN_REPORTS = 0.1


class Session:
    """A model on a device.

    Args:
        model: the model, which is checked in full first.
        device: a Device or its name.
        memory_limit: as for :meth:`Content.check`.
        progress: takes the name of each dispatchable before it is compiled, how many are, and of how many.

    Raises:
        DMLError: every violation; or a file that can't be read any more.
    """

    def __init__(
        self,
        model: Content,
        device: Device | str = "cpu",
        memory_limit: int | None = None,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> None:
        self.model = model
        self.device = device if isinstance(device, Device) else Device(device)
        violations = model.check(self.device.feature_level, self.device.strict, memory_limit)
        if violations:
            raise error(violations)
        self.buffers: dict[str, Buffer | None] = dict(model.resources)
        """Resources, with the sizes of those that were deferred and have been written to."""
        self.memory = {name: self._create(name) for name in model.resources}
        self._there = {name: self.device.memory.to_device(memory) for name, memory in self.memory.items()}
        """The same where the device computes, which may be the same memory."""
        self.compiled: dict[str, Compiled | Prepared] = {}
        self.initialisation: dict[str, float] = {}
        """Seconds that compiling and initialising each dispatchable took."""
        self._persistent: dict[str, DML_BUFFER_BINDING | None] = {}
        for name, dispatchable in model.dispatchables.items():
            assert dispatchable is not None
            if progress is not None:
                progress(name, len(self.compiled), len(model.dispatchables))
            start = perf_counter()
            if isinstance(dispatchable, Whole):
                self.compiled[name] = self._prepared(dispatchable)
                self.initialisation[name] = perf_counter() - start
                continue
            operator = self.device.create_operator(dispatchable.desc)
            compiled: Compiled
            if dispatchable.as_graph:
                compiled = self.device.compile_graph(graph_of(operator), dispatchable.flags)
            else:
                compiled = self.device.compile_operator(operator, dispatchable.flags)
            self.compiled[name] = compiled
            self._persistent[name] = self._initialise(compiled, dispatchable)
            self.initialisation[name] = perf_counter() - start

    def elements(self, name: str) -> Array:
        """A resource's elements, in one dimension; it is memory that dispatches write to."""
        buffer = self.buffers[name]
        assert buffer is not None
        return buffer.elements(self.memory[name])

    def tensors(self, command: Dispatch) -> tuple[list[Array | None], list[Array | None]]:
        """What a dispatch reads and writes, as arrays of its tensors' sizes; None for what is left out.

        What is OWNED_BY_DML is shown as the resource that it was initialised with.
        """
        used = self._used(command)
        operands = {**used.bindings, **command.bindings}
        inputs, outputs = self.model.arrange(used, operands, self.memory)

        def view(tensor: Tensor | None, binding: DML_BUFFER_BINDING | None) -> Array | None:
            if tensor is None or binding is None:
                return None
            return Layout.of_desc(tensor).view(binding.Buffer, binding.Offset)

        read = [view(tensor, each) for (_, tensor), each in zip(used.spec.inputs(used.desc), inputs, strict=True)]
        written = [view(tensor, each) for (_, tensor), each in zip(used.spec.outputs(used.desc), outputs, strict=True)]
        return read, written

    def tell_initialisation(self, timing: Timing | None, write: Callable[[str], object] | None = None) -> None:
        """Tells how long each dispatchable took to initialise, where the timing wants more than the median."""
        if timing is not None and timing.verbosity > Verbosity.HOT:
            for name, seconds in self.initialisation.items():
                (write or sys.stdout.write)(f"Initialize '{name}': {1000 * seconds:.4f} ms\n")

    def execute(
        self,
        command: Command,
        timing: Timing | None = None,
        write: Callable[[str], object] | None = None,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> None:
        """Runs a command; arguments as for `Model.run`."""
        write = write or sys.stdout.write
        if isinstance(command, Dispatch):
            samples = self._dispatch(command, timing or Timing(), progress)
            for line in timing.report(command.dispatchable, samples) if timing is not None else ():
                write(line)
        elif isinstance(command, Print):
            self._print(command, write)
        else:
            self._write_file(command)
            write(f"Resource '{command.resource}' written to '{command.target}'\n")

    def _create(self, name: str) -> Array:
        buffer = self.model.resources[name]
        assert buffer is not None
        where = at("resources", name)
        try:
            return buffer.create()
        except Refused as problem:
            violation = model_violation(where, "(M10)", problem.found, problem.expected)
        except MemoryError:
            violation = no_memory(where, buffer.size)
        raise error([violation])

    def _initialise(self, compiled: Compiled, dispatchable: Dispatchable) -> DML_BUFFER_BINDING | None:
        inputs, _ = self.model.arrange(dispatchable, dispatchable.bindings, self._there)
        initializer = self.device.create_operator_initializer([compiled])
        table = self.device.create_binding_table(initializer)
        size = compiled.binding_properties().PersistentResourceSize
        persistent = DML_BUFFER_BINDING(Buffer=self.device.memory.to_device(np.zeros(size, np.uint8))) if size else None
        table.bind_inputs([DML_BUFFER_ARRAY_BINDING(Bindings=inputs) if size else None])
        table.bind_outputs([persistent])
        self.device.dispatch(initializer, table)
        return persistent

    def _prepared(self, used: Whole) -> Prepared:
        try:
            return used.prepare(self.device)
        except DMLError as problem:
            raise in_model(used.where, problem) from None

    def _used(self, command: Dispatch) -> Dispatchable:
        used = self.model.dispatchables[command.dispatchable]
        assert isinstance(used, Dispatchable)
        return used

    def _dispatch(
        self, command: Dispatch, timing: Timing, progress: Callable[[str, int, int], object] | None
    ) -> Sequence[float]:
        compiled = self.compiled[command.dispatchable]
        steps = timing.iterations if timing.milliseconds is None else timing.milliseconds
        reported = perf_counter()

        def report(share: float) -> None:
            nonlocal reported
            now = perf_counter()
            if progress is not None and now - reported > _SECONDS_BETWEEN_REPORTS:
                progress(command.dispatchable, round(share * steps), steps)
                reported = now

        try:
            if isinstance(compiled, Prepared):
                return self._dispatch_whole(command, compiled, timing, report)
            table = self._table(command, compiled)
            seconds = timing.sample(lambda: self.device.dispatch(compiled, table), report)
        except DMLError as problem:
            raise in_model(command.where, problem) from None
        if not self.device.memory.is_host:
            used = self._used(command)
            outputs = dict.fromkeys(label.partition("[")[0] for label, _ in used.spec.outputs(used.desc))
            self._fetch(binding for name in outputs for binding in command.bindings.get(name, ()))
        return seconds

    def _dispatch_whole(
        self, command: Dispatch, prepared: Prepared, timing: Timing, report: Callable[[float], object]
    ) -> Sequence[float]:
        run = prepared.bound(command, self.buffers, self.memory, self._there)
        seconds = timing.sample(run, report)
        results = run.results()
        for binding, value in results:
            self._store(binding, value)
        if not results and not self.device.memory.is_host:
            used = self.model.dispatchables[command.dispatchable]
            assert isinstance(used, Whole)
            self._fetch(binding for name in used.outputs for binding in command.bindings.get(name, ()))
        return seconds

    def _store(self, binding: Binding, value: Any) -> None:
        """Writes a result to its resource; one that was deferred gets its size and type."""
        name, buffer = binding.resource, self.buffers[binding.resource]
        assert buffer is not None
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OUST":
            raise error([model_violation(binding.where, "(M12)", "a result that is no tensor of numbers", "a tensor")])
        if binding.shape is not None and tuple(value.shape) != binding.shape:
            expected = f"shape {list(binding.shape)}, as the binding says"
            raise error([model_violation(binding.where, "(M12)", f"shape {list(value.shape)}", expected)])
        data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
        if buffer.initial is DEFERRED or isinstance(buffer.initial, Result):
            size = -(-data.size // 4) * 4
            result = Result(data, tuple(value.shape))
            self.buffers[name] = buffer = Buffer(data_type=data_type_of(value), size=size, offset=0, initial=result)
            self.memory[name] = buffer.create()
        else:
            start = binding.offset * (binding.item or buffer.dtype.itemsize)
            if start + data.size > buffer.size:
                expected = f"at least the {data.size} of a result of shape {list(value.shape)}"
                raise error([model_violation(binding.where, "(M12)", f"{buffer.size - start} bytes", expected)])
            self.memory[name][start : start + data.size] = data
        self._there[name] = self.device.memory.to_device(self.memory[name])

    def _fetch(self, written: Iterable[Binding | None]) -> None:
        """What a dispatch wrote, back from the device."""
        for binding in written:
            if binding is not None:
                there: Any = self._there[binding.resource]
                self.memory[binding.resource][...] = there.numpy()

    def _table(self, command: Dispatch, compiled: Compiled) -> BindingTable:
        inputs, outputs = self.model.arrange(self._used(command), command.bindings, self._there)
        table = self.device.create_binding_table(compiled)
        table.bind_inputs(inputs)
        # A graph has no outputs that are left out.
        table.bind_outputs(outputs if len(outputs) == len(compiled.outputs) else [each for each in outputs if each])
        table.bind_persistent_resource(self._persistent[command.dispatchable])
        return table

    def _print(self, command: Print, write: Callable[[str], object]) -> None:
        buffer = self.buffers[command.resource]
        elements = self.elements(command.resource)
        write(f"Resource '{command.resource}':")
        if buffer is not None and buffer.data_type == TensorDataType.UNKNOWN:
            write(f" {elements.tobytes().hex(' ').upper()}\n")
            return
        if not command.verbose:
            write(" ")
        for piece in text_of(elements, command.verbose):
            write(piece)
        write("\n")

    def _write_file(self, command: WriteFile) -> None:
        elements = self.elements(command.resource)
        shape = command.dimensions
        buffer = self.buffers[command.resource]
        if buffer is not None and isinstance(buffer.initial, Result):
            shape = shape or buffer.initial.shape
            if prod(shape) != elements.size:
                found, expected = f"{list(shape)}, {prod(shape)} elements", f"dimensions of {elements.size}"
                raise error([model_violation(at(command.where, "dimensions"), "(M14)", found, expected)])
        try:
            command.path.parent.mkdir(parents=True, exist_ok=True)
            if command.path.suffix.lower() in SUFFIXES:
                dimensions = command.dimensions or ()
                write_whole(command.path, lambda file: write_image(file, command.path, elements, dimensions))
            elif command.path.suffix.lower() == ".npy":
                shaped = elements.reshape(-1 if shape is None else shape)
                write_whole(command.path, lambda file: np.lib.format.write_array(file, shaped, allow_pickle=False))
            else:
                write_whole(command.path, lambda file: file.write(elements.data))
        except OSError as problem:
            found = f"{str(command.path)!r} ({problem.strerror})"
            expected = "a file that can be written"
            raise error([model_violation(at(command.where, "targetPath"), "(M14)", found, expected)]) from None
