"""Models: resources, operators and commands in a JSON file, as DxDispatch runs them.

A model is ``{"resources": {...}, "dispatchables": {...}, "commands": [...]}``. Names, defaults and meanings are
DxDispatch's, with these differences: unknown fields, repeated keys and text behind the model are errors; files lie in
the model's folder; INT8 and UINT8 are printed as numbers, not as characters; a binding without elementCount reaches to
the end of its resource, and one of elements is rounded up to the 4 bytes that a tensor's size is rounded up to.

(M1) A model is a file that can be read, of at most 256 MiB.
(M2) Its text is JSON in UTF-8, with comments and trailing commas allowed; lists and objects nest at most 64 deep.
(M3) Fields are those that there are, each given once, and none that is needed is missing.
(M4) A field holds what it is for: an object, a list, a string, a number, an integer in range.
(M5) A resource or a dispatchable that is named exists; names are printable.
(M6) The name of an enum's member is one, in full or short.
(M7) An initial value is one of its data type.
(M8) Initial values are at least one, of one kind, of a known data type, and inside sizeInBytes.
(M9) Paths stay in the model's folder, unless allow_outside is given; and no command overwrites the model.
(M10) A file with initial values is a regular file that can be read, with whole elements; a .npy file of the type said.
(M11) A dispatchable is an operator that this package has, an activation in it one that may be fused.
(M12) Bindings name tensors of the desc, and every tensor that wants one has one.
(M13) All resources together take no more memory than the limit.
(M14) What is written fits: a path that can be written to, dimensions that hold the elements.
(M15) An image, .jpg or .png, has FLOAT32 or FLOAT16 elements; one that is read a resampleSize of 3 or 4 channels, one
      that is written dimensions of 1, 3 or 4 channels, no more than the resource has. Pillow reads and writes it.

All of a model is checked before any of it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ...core.enums import PREFIXES, ExecutionFlags, FeatureLevel, HResult, OperatorType
from ...core.enums import parse as parse_enum
from ...core.errors import DMLError, Violation, error, listing
from ...core.strided_layout import Array, Layout
from ...operators import ANY_OPERATOR, OPERATORS, spec
from ...operators.schema import OperatorDesc, OperatorSpec
from ...operators.validate import validate
from ...runtime.binding import DML_BUFFER_BINDING, Slot, bind, bind_range, check_sharing
from ...runtime.memory import HOST
from .buffers import Buffer, describe
from .jsonc import parse
from .limits import default_limit, format_size

if TYPE_CHECKING:
    from ...runtime.device import Device

MAX_MODEL_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Binding:
    """The elements of a resource that a tensor lies in."""

    where: str
    resource: str
    offset: int = 0
    """In elements."""
    count: int = 0
    """Of elements; 0 for all to the end of the resource."""
    item: int = 0
    """The size of an element in bytes; 0 for the resource's own."""

    def of(self, buffer: Buffer, memory: Array) -> DML_BUFFER_BINDING:
        """The same in bytes; as the resource's size is, so is the binding's rounded up to 4 where there is room."""
        item = self.item or buffer.dtype.itemsize
        start = self.offset * item
        size = -(-self.count * item // 4) * 4 if self.count else buffer.size - start
        if start + size > buffer.size:
            size = self.count * item
        return DML_BUFFER_BINDING(Buffer=memory, Offset=start, SizeInBytes=size)


Bindings = Mapping[str, Sequence[Binding | None]]
"""By member of the desc; None for a tensor that is not bound."""


@dataclass(frozen=True, slots=True)
class Dispatchable:
    """An operator with its desc, and what is bound when it is initialised."""

    where: str
    spec: OperatorSpec
    desc: OperatorDesc
    flags: ExecutionFlags
    bindings: Bindings
    as_graph: bool = False
    """Whether it is compiled as a graph of its own, which does not run in-place."""

    @property
    def in_place(self) -> bool:
        return self.spec.in_place and not self.as_graph


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Runs a dispatchable."""

    where: str
    dispatchable: str
    bindings: Bindings


@dataclass(frozen=True, slots=True)
class Print:
    """Prints a resource."""

    resource: str
    verbose: bool


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Writes a resource to a file."""

    where: str
    resource: str
    target: str
    """As the model has it."""
    path: Path
    dimensions: tuple[int, ...] | None
    """Of a .npy file, None for one dimension; or of an image."""


Command = Dispatch | Print | WriteFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model as :func:`load` read it. Immutable.

    What could not be read is None, so that all that is right can be checked all the same.
    """

    resources: Mapping[str, Buffer | None]
    dispatchables: Mapping[str, Dispatchable | None]
    commands: Sequence[Command]
    unreadable: Sequence[Violation]
    """What is wrong with the text."""

    @property
    def memory_needed(self) -> int:
        """The bytes of all resources."""
        return sum(buffer.size for buffer in self.resources.values() if buffer is not None)

    def check(
        self,
        feature_level: FeatureLevel = FeatureLevel.LEVEL_6_4,
        strict: bool = False,
        memory_limit: int | None = None,
    ) -> list[Violation]:
        """Every rule that the model breaks, in text, descs, commands and bindings; nothing is run.

        Args:
            feature_level: the level whose support tables hold.
            strict: whether DirectML's own limits hold, see :func:`anydml.validate`.
            memory_limit: the bytes that resources may take together; None for three quarters of what the machine, or
                its container, has.
        """
        limit = default_limit() if memory_limit is None else memory_limit
        violations = [*self._check_memory(limit), *self.unreadable]
        broken = set()
        for name, dispatchable in self.dispatchables.items():
            if dispatchable is not None:
                wrong = validate(dispatchable.desc, feature_level, strict)
                violations += _of(dispatchable.where, wrong)
                if wrong:
                    broken.add(name)
        if self.memory_needed <= limit:
            try:
                violations += self._check_bindings(broken)
            except MemoryError:
                violations.append(no_memory("resources", self.memory_needed))
        return violations

    def run(
        self,
        device: Device | str = "cpu",
        *,
        iterations: int | None = None,
        memory_limit: int | None = None,
        write: Callable[[str], object] | None = None,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> dict[str, Array]:
        """Runs every command, once all of the model has been checked.

        Args:
            device: a Device or its name.
            iterations: how often each dispatch is run and timed; None for once, without a word on time. An operator
                that works in-place takes its own result as the next input.
            memory_limit: as for :meth:`check`.
            write: takes what commands print, in pieces; standard output where None.
            progress: takes the name of a dispatchable, iterations done, and iterations, now and then.

        Returns:
            The elements of every resource afterwards, in one dimension.

        Raises:
            DMLError: every violation; DMLMemoryError where the memory is too little.
        """
        from .session import Session

        session = Session(self, device, memory_limit)
        for command in self.commands:
            session.execute(command, iterations, write, progress)
        return {name: session.elements(name) for name in self.resources}

    def _check_memory(self, limit: int) -> list[Violation]:
        needed = self.memory_needed
        if needed <= limit:
            return []
        sizes = {name: buffer.size for name, buffer in self.resources.items() if buffer is not None}
        largest, size = max(sizes.items(), key=lambda item: item[1])
        return [
            Violation(
                operator="",
                where="resources",
                found=f"{format_size(needed)} in all, of which {at('resources', largest)} takes {size}",
                expected=f"at most {format_size(limit)}",
                rule="(M13)",
                remedy="--memory-limit SIZE (memory_limit=) sets another limit",
                hresult=HResult.E_OUTOFMEMORY,
                kind="memory",
            )
        ]

    def _check_bindings(self, broken: set[str]) -> list[Violation]:
        """Binds every dispatch, as it would be run, to memory that nothing is written to."""
        buffers = {name: buffer for name, buffer in self.resources.items() if buffer is not None}
        memory = {name: np.zeros(buffer.size, np.uint8) for name, buffer in buffers.items()}
        violations = []
        for name, dispatchable in self.dispatchables.items():
            if dispatchable is not None and name not in broken:
                where = dispatchable.where
                violations += self._try(where, dispatchable, dispatchable.bindings, memory, owned=True)
        for command in self.commands:
            if isinstance(command, Dispatch) and command.dispatchable not in broken:
                used = self.dispatchables[command.dispatchable]
                if used is not None:
                    violations += self._try(command.where, used, command.bindings, memory, owned=False)
        return violations

    def _try(
        self, where: str, used: Dispatchable, bindings: Bindings, memory: Mapping[str, Array], owned: bool
    ) -> list[Violation]:
        if any(
            each is not None and self.resources[each.resource] is None for every in bindings.values() for each in every
        ):
            return []  # the resource has been complained of
        inputs, outputs = _slots(used)
        wrong = _check_members(f"{where}.bindings", used, bindings, [*inputs, *outputs], owned)
        if wrong:
            return wrong
        name = used.spec.name
        read, written = self.arrange(used, bindings, memory)
        sides = ("inputs", inputs, read), ("outputs", outputs, written)
        try:
            bound = bind(HOST, name, sides, owned, bind_range)
        except DMLError as problem:
            return _of(where, problem.violations)
        there = [[each for each in every if each is not None] for every in bound]
        return _of(where, check_sharing(name, used.in_place, *there))

    def arrange(
        self, used: Dispatchable, bindings: Bindings, memory: Mapping[str, Array]
    ) -> tuple[list[DML_BUFFER_BINDING | None], list[DML_BUFFER_BINDING | None]]:
        """The bindings of the inputs and the outputs of a dispatchable, in header order."""

        def find(label: str) -> DML_BUFFER_BINDING | None:
            binding = _binding(bindings, label)
            if binding is None:
                return None
            buffer = self.resources[binding.resource]
            assert buffer is not None
            return binding.of(buffer, memory[binding.resource])

        inputs = [find(label) for label, _ in used.spec.inputs(used.desc)]
        return inputs, [find(label) for label, _ in used.spec.outputs(used.desc)]


def load(path: str | os.PathLike[str], *, allow_outside: bool = False) -> Model:
    """Reads a model from a file.

    Args:
        path: the file; files that the model names are resolved against its folder.
        allow_outside: whether they may lie outside of it.

    Returns:
        The model, with what is wrong in it kept for :meth:`Model.check`.

    Raises:
        DMLError: (M1), (M2).
    """
    file = Path(path)
    try:
        # Not of the path made from it, which for "" is the current folder.
        with open(path, "rb") as stream:
            text = read_text(stream)
    except (OSError, ValueError) as problem:
        if isinstance(problem, DMLError):
            raise
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        found = f"{str(path)!r} ({reason})"
        raise error([model_violation("the model", "(M1)", found, "a file that can be read")]) from None
    return _read(text, file.parent, file, allow_outside)


def read_text(stream: IO[bytes]) -> bytes:
    """The text of a model.

    Raises:
        DMLError: (M1), it is too long.
    """
    text = stream.read(MAX_MODEL_BYTES + 1)
    if len(text) > MAX_MODEL_BYTES:
        found = f"more than {format_size(MAX_MODEL_BYTES)}"
        remedy = "Put initial values into .npy files"
        raise error([model_violation("the model", "(M1)", found, "at most that", remedy)])
    return text


def loads(text: str | bytes, folder: str | os.PathLike[str] = ".", *, allow_outside: bool = False) -> Model:
    """Reads a model from a text.

    Args:
        text: the model; bytes in UTF-8.
        folder: where the files lie that it names.
        allow_outside: whether they may lie outside of it.

    Raises:
        DMLError: (M2).

    >>> model = loads('''{
    ...     "resources": { "A": { "initialValuesDataType": "FLOAT32", "initialValues": [2, 4, 8, 3] } },
    ...     "dispatchables": {
    ...         "product": { "type": "DML_OPERATOR_CUMULATIVE_PRODUCT", "desc": {
    ...             "InputTensor": { "DataType": "FLOAT32", "Sizes": [4] },
    ...             "OutputTensor": { "DataType": "FLOAT32", "Sizes": [4] },
    ...             "Axis": 0 } } },
    ...     "commands": [
    ...         { "type": "dispatch", "dispatchable": "product",
    ...           "bindings": { "InputTensor": "A", "OutputTensor": "A" } },
    ...         { "type": "print", "resource": "A" } ] }''')
    >>> model.check()
    []
    >>> results = model.run()
    Resource 'A': 2, 8, 64, 192
    """
    return _read(text, Path(folder), None, allow_outside)


def at(where: str, key: str) -> str:
    """The path of a member: ``resources.A``, with quotation marks where the key is not a plain word."""
    word = key if key.replace("-", "_").replace("$", "_").isidentifier() else describe(key)
    return f"{where}.{word}" if where else word


def model_violation(where: str, rule: str, found: str, expected: str, remedy: str = "") -> Violation:
    return Violation(operator="", where=where, found=found, expected=expected, rule=rule, remedy=remedy)


def no_memory(where: str, size: int) -> Violation:
    """Rule (M13), where a limit allows more than there is."""
    return Violation(
        operator="",
        where=where,
        found=format_size(size),
        expected="a size that there is memory for",
        rule="(M13)",
        hresult=HResult.E_OUTOFMEMORY,
        kind="memory",
    )


def _of(where: str, violations: Sequence[Violation]) -> list[Violation]:
    """Violations of an operator's rules, with their place in the model."""
    return [replace(each, place=where) for each in violations]


def operator_named(where: str, name: str) -> OperatorSpec | Violation:
    """The operator of a name, in full (``DML_OPERATOR_JOIN``) or short; or what rule (M11) says of it."""
    found = parse_enum(OperatorType, name)
    if found is None or found == OperatorType.INVALID:
        like = _operators_like(name.upper().removeprefix(PREFIXES[OperatorType]))
        remedy = f"Did you mean {listing(like)}?" if like else ""
        text = f"{describe(name)}, no operator of DirectML"
        return model_violation(where, "(M11)", text, ANY_OPERATOR, remedy)
    if found.name not in OPERATORS:
        text = f"{found.name}, which this version does not have yet"
        return model_violation(where, "(M11)", text, ANY_OPERATOR)
    return spec(found.name)


def _operators_like(word: str) -> list[str]:
    """Those that end in a word, those that have it, and the one that is closest, with or without its family's name."""
    known = {name: name for name in OperatorType.__members__ if name != "INVALID"}
    short = {name.removeprefix("ACTIVATION_").removeprefix("ELEMENT_WISE_"): name for name in OPERATORS}
    having = [name for name in OPERATORS if len(word) > 1 and word in name]
    having.sort(key=lambda name: (not name.endswith(f"_{word}"), len(name)))
    closest = [(short | known)[each] for each in get_close_matches(word[:100], short | known, 1)]
    return [*dict.fromkeys([*having[:_MOST_LIKE], *closest])]


_MOST_LIKE = 6


def in_model(where: str, problem: DMLError) -> DMLError:
    """An error of an operator, with its place in the model."""
    return error(_of(where, problem.violations))


def _slots(used: Dispatchable) -> tuple[list[Slot], list[Slot]]:
    def slot(label: str, tensor: Any, is_output: bool) -> Slot:
        layout = None if tensor is None else Layout.of_desc(tensor)
        return Slot(label, tensor, layout, layout, is_output)

    inputs = [slot(label, tensor, False) for label, tensor in used.spec.inputs(used.desc)]
    return inputs, [slot(label, tensor, True) for label, tensor in used.spec.outputs(used.desc)]


def hint(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    folded = {each.lower(): each for each in known if each.isprintable()}
    close = get_close_matches(word.lower()[:100], folded, 1)
    return f"Did you mean {folded[close[0]]}?" if close else ""


def _check_members(
    where: str, used: Dispatchable, bindings: Bindings, slots: Sequence[Slot], owned: bool
) -> list[Violation]:
    """Rule (M12)."""
    known = used.spec.tensors
    wrong = []
    for member, given in bindings.items():
        tensors = getattr(used.desc, member, None)
        count = len(tensors) if isinstance(tensors, tuple) else 1
        if member not in known:
            remedy = hint(member, known)
            wrong.append(model_violation(at(where, member), "(M12)", "no tensor of the desc", listing(known), remedy))
        elif len(given) != count:
            found = f"{len(given)} bindings"
            wrong.append(model_violation(at(where, member), "(M12)", found, f"{count}, one for each tensor"))
    for slot in slots if not wrong else ():
        if slot.tensor is not None and slot.owned == owned and _binding(bindings, slot.label) is None:
            remedy = "It is OWNED_BY_DML, and so bound in the dispatchable" if owned else ""
            found = f"no binding for {slot.label}"
            wrong.append(model_violation(where, "(M12)", found, 'a resource\'s name, or {"name": ...}', remedy))
    return wrong


def _binding(bindings: Bindings, label: str) -> Binding | None:
    """The binding of ``InputTensor`` or ``InputTensors[1]``."""
    member, _, index = label.partition("[")
    return bindings[member][int(index[:-1]) if index else 0] if member in bindings else None


def _read(text: str | bytes, folder: Path, file: Path | None, allow_outside: bool) -> Model:
    from .reader import Reader

    return Reader(folder, file, allow_outside).model(parse(text))
