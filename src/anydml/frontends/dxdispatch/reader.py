"""A model, read from JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from math import prod
from pathlib import Path
from typing import IO, Any

from ...core import enums
from ...core.enums import ExecutionFlags, TensorDataType, TensorFlags, TensorType
from ...core.errors import DMLError, closest, error, listing
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SCALAR_UNION, DML_SCALE_BIAS, DML_SIZE_2D
from ...operators import ANY_OPERATOR
from ...operators.fused_activation import FUSIBLE
from ...operators.schema import OperatorDesc, OperatorSpec
from .buffers import DEFERRED, describe
from .commands import (
    Binding,
    Bindings,
    Command,
    Dispatch,
    Dispatchable,
    Print,
    WriteFile,
    at,
    model_violation,
    operator_named,
)
from .files import Refused, check_target
from .images import SUFFIXES, check_image
from .jsonc import Object, parse
from .limits import format_size
from .model import Model
from .whole import Whole
from .whole_reader import WholeReader


class Reader(WholeReader):
    """Makes a model of JSON values, and says all that is wrong with them."""

    def model(self, value: object) -> Model:
        commands: list[Command | None] = []
        top = self.mapping("", value, ("resources", "dispatchables", "commands"), ("$schema",))
        if top is not None:
            for name, each in (self.mapping("resources", top.get("resources", Object([]))) or {}).items():
                self.resources[name] = self.buffer(at("resources", name), each)
            for name, each in (self.mapping("dispatchables", top.get("dispatchables", Object([]))) or {}).items():
                self.dispatchables[name] = self.dispatchable(at("dispatchables", name), each)
            given = top.get("commands", [])
            if isinstance(given, list):
                commands = [self.command(f"commands[{i}]", each) for i, each in enumerate(given)]
            else:
                self.refuse("commands", "(M4)", describe(given), "a list of commands")
        return Model(
            resources=self.resources,
            dispatchables=self.dispatchables,
            commands=[command for command in commands if command is not None],
            unreadable=self.violations,
        )

    # Dispatchables

    def dispatchable(self, where: str, value: object) -> Dispatchable | Whole | None:
        if not isinstance(value, Object):
            self.refuse(where, "(M4)", describe(value), "an object")
            return None
        kind = value.get("type")
        if isinstance(kind, str) and kind.lower() in _WHOLE:
            return self.onnx(where, value) if kind.lower() == "onnx" else self.serialized(where, value)
        value = value.changed((_ALIASES.get(key, key), each) for key, each in value.items())
        operator = self.operator(where, value)
        if operator is None:
            return None
        nested = "desc" in value
        # A desc may stand in an object of its own, or its members among the dispatchable's.
        if nested:
            self.mapping(where, value, ("type", "desc"), _DISPATCHABLE[1:])
        members = (
            value["desc"] if nested else value.changed(each for each in value.items() if each[0] not in _DISPATCHABLE)
        )
        before = len(self.violations)
        desc = self.desc(at(where, "desc") if nested else where, operator, members)
        flags = self.flags(at(where, "executionFlags"), ExecutionFlags, value.get("executionFlags", []))
        how = value.get("dmlCompileType", "DmlCompileOp")
        if how not in ("DmlCompileOp", "DmlCompileGraph"):
            self.refuse(at(where, "dmlCompileType"), "(M6)", describe(how), '"DmlCompileOp" or "DmlCompileGraph"')
        bindings = self.bindings(at(where, "bindings"), value.get("bindings", Object([])))
        if desc is None or flags is None or bindings is None or len(self.violations) > before:
            return None
        return Dispatchable(where, operator, desc, flags, bindings, how == "DmlCompileGraph")

    def type_of(self, where: str, value: Object) -> str | None:
        """What kind of dispatchable or command it is, which says what fields it has."""
        if "type" in value:
            return self.string(at(where, "type"), value["type"])
        self.refuse(where, "(M3)", "no type", "an object with type")
        return None

    def operator(self, where: str, value: Object) -> OperatorSpec | None:
        """Rule (M11)."""
        name = self.type_of(where, value)
        where = at(where, "type")
        if name is None:
            return None
        if name.lower() in _OTHER_KINDS:
            self.refuse(where, "(M11)", f"{describe(name)}, {_OTHER_KINDS[name.lower()]}", ANY_OPERATOR)
            return None
        found = operator_named(where, name)
        if isinstance(found, OperatorSpec):
            return found
        self.violations.append(found)
        return None

    def desc(
        self, where: str, operator: OperatorSpec, value: object, absent: Iterable[str] = ()
    ) -> OperatorDesc | None:
        """A desc; members that may be absent are None then."""
        defaults = {each.name for each in fields(operator.desc) if each.default is not MISSING}
        required = [name for name in operator.members if name not in {*defaults, *absent}]
        given = self.mapping(where, value, required, [name for name in operator.members if name not in required])
        if given is None:
            return None
        known = {name: kind for name, kind in operator.members.items() if name in given}
        members = {name: self.member(at(where, name), kind, given[name]) for name, kind in known.items()}
        if any(name not in members for name in required):
            return None
        return operator.desc(**{**dict.fromkeys(absent), **members})

    def member(self, where: str, annotation: str, value: Any) -> Any:
        """A member of a desc. What is neither tensor nor enum stays as it is; the validator looks at it."""
        if annotation == "Tensors" and isinstance(value, list):
            return [self.tensor(f"{where}[{i}]", each) for i, each in enumerate(value)]
        if annotation == "Tensor" or (annotation == "OptionalTensor" and value is not None):
            return self.tensor(where, value)
        if annotation == "SCALAR" and isinstance(value, Object):
            return self.scalar_union(where, value)
        if annotation in ("FLOAT", "SCALAR"):
            return self.real(where, value)
        if annotation == "FLOATs" and isinstance(value, list):
            return [self.real(f"{where}[{i}]", each) for i, each in enumerate(value)]
        if annotation == "Activations" and isinstance(value, list):
            return [self.activation(f"{where}[{i}]", each) for i, each in enumerate(value)]
        if annotation == "OptionalActivation" and value is not None:
            return self.activation(where, value)
        if annotation == "Size2D":
            return self.size_2d(where, value)
        if annotation == "OptionalScaleBias" and value is not None:
            return self.scale_bias(where, value)
        if annotation.startswith("enums."):
            return self.enum(where, getattr(enums, annotation.removeprefix("enums.")), value)
        return value

    def scalar_union(self, where: str, value: Object) -> DML_SCALAR_UNION:
        """The validator looks at the integers, and at which of them the desc needs."""
        known = [each.name for each in fields(DML_SCALAR_UNION)]
        given = self.mapping(where, value, (), known) or Object([])
        members = {name: given[name] for name in known if name in given}
        for name in ("Float32", "Float64"):
            if name in members:
                members[name] = self.real(at(where, name), members[name])
        return DML_SCALAR_UNION(**members)

    def scale_bias(self, where: str, value: object) -> DML_SCALE_BIAS | None:
        given = self.mapping(where, value, ("Scale", "Bias"))
        if given is None or "Scale" not in given or "Bias" not in given:
            return None
        scale, bias = (self.real(at(where, name), given[name]) for name in ("Scale", "Bias"))
        return None if scale is None or bias is None else DML_SCALE_BIAS(Scale=scale, Bias=bias)

    def size_2d(self, where: str, value: object) -> DML_SIZE_2D | None:
        given = self.mapping(where, value, ("Width", "Height"))
        if given is None or "Width" not in given or "Height" not in given:
            return None
        width, height = (self.integer(at(where, name), given[name]) for name in ("Width", "Height"))
        return None if width is None or height is None else DML_SIZE_2D(Width=width, Height=height)

    def activation(self, where: str, value: object) -> OperatorDesc | None:
        """An operator's type and its members, beside each other or in an object of their own."""
        if not isinstance(value, Object):
            self.refuse(where, "(M4)", describe(value), "an object")
            return None
        value = value.changed((_ALIASES.get(key, key), each) for key, each in value.items())
        operator = self.operator(where, value)
        if operator is None:
            return None
        if operator.name not in FUSIBLE:
            self.refuse(at(where, "type"), "(M11)", describe(operator.name), "an activation that may be fused")
            return None
        if "desc" in value:
            self.mapping(where, value, ("type", "desc"))
            where, value = at(where, "desc"), value["desc"]
        if isinstance(value, Object):
            unset = [name for name in operator.tensors if value.get(name) is None]
            value = value.changed(each for each in value.items() if each[0] not in ("type", *unset))
        return self.desc(where, operator, value, operator.tensors)

    def real(self, where: str, value: object) -> float | None:
        """A number, which the validator looks at, or the name of one that JSON does not have."""
        if isinstance(value, str) and value.lower() in ("nan", "inf", "-inf"):
            return float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        self.refuse(where, "(M4)", describe(value), 'a number that a double holds, or "nan", "inf" or "-inf"')
        return None

    def tensor(self, where: str, value: object) -> DML_BUFFER_TENSOR_DESC | None:
        if isinstance(value, Object) and "Desc" in value:
            self.mapping(where, value, ("Desc",), ("Type",))
            inner = at(where, "Desc")
            given = self.mapping(inner, value["Desc"], ("DataType", "Sizes"), _TENSOR_OPTIONS)
        else:
            inner = where
            given = self.mapping(where, value, ("DataType", "Sizes"), ("Type", *_TENSOR_OPTIONS))
        if given is None or "DataType" not in given or "Sizes" not in given:
            return None
        assert isinstance(value, Object)
        before = len(self.violations)
        kind = self.enum(at(where, "Type"), TensorType, value.get("Type", "BUFFER"))
        if kind == TensorType.INVALID:
            self.refuse(at(where, "Type"), "(M6)", '"INVALID"', "BUFFER")
        members: dict[str, Any] = {
            "DataType": self.enum(at(inner, "DataType"), TensorDataType, given["DataType"]),
            "Sizes": self.integers(at(inner, "Sizes"), given["Sizes"]),
        }
        # DxDispatch takes an empty list and a size of 0 for absent ones.
        if "Strides" in given:
            members["Strides"] = self.integers(at(inner, "Strides"), given["Strides"]) or None
        for name in ("DimensionCount", "GuaranteedBaseOffsetAlignment", "TotalTensorSizeInBytes"):
            if name in given:
                members[name] = self.integer(at(inner, name), given[name])
        if members.get("TotalTensorSizeInBytes") == 0:
            del members["TotalTensorSizeInBytes"]
        if "Flags" in given:
            members["Flags"] = self.flags(at(inner, "Flags"), TensorFlags, given["Flags"])
        return None if len(self.violations) > before else DML_BUFFER_TENSOR_DESC(**members)

    # Commands

    def command(self, where: str, value: object) -> Command | None:
        if not isinstance(value, Object):
            self.refuse(where, "(M4)", describe(value), "an object")
            return None
        kind = self.type_of(where, value)
        if kind is None:
            return None
        readers: dict[str, Callable[[str, Object], Command | None]] = {
            "dispatch": self.dispatch,
            "print": self.print_command,
            "writefile": self.write_file,
        }
        if kind.lower() not in readers:
            names = ("dispatch", "print", "writeFile")
            self.refuse(at(where, "type"), "(M4)", describe(kind), listing(names), closest(kind, names))
            return None
        return readers[kind.lower()](where, value)

    def dispatch(self, where: str, value: Object) -> Dispatch | None:
        given = self.mapping(where, value, ("type", "dispatchable", "bindings"), ("threadGroupCount",))
        if given is None or "dispatchable" not in given or "bindings" not in given:
            return None
        name = self.reference(at(where, "dispatchable"), "dispatchable", given["dispatchable"])
        bindings = self.bindings(at(where, "bindings"), given["bindings"])
        return None if name is None or bindings is None else Dispatch(where, name, bindings)

    def bindings(self, where: str, value: object) -> Bindings | None:
        given = self.mapping(where, value)
        if given is None:
            return None
        before = len(self.violations)
        every: dict[str, list[Binding | None]] = {}
        for member, each in given.items():
            place = at(where, member)
            if isinstance(each, list):
                every[member] = [self.binding(f"{place}[{i}]", one) for i, one in enumerate(each)]
            else:
                every[member] = [self.binding(place, each)]
        return None if len(self.violations) > before else every

    def binding(self, where: str, value: object) -> Binding | None:
        """A binding; null, where a tensor in a list is not to be bound, is none and right."""
        if value is None:
            return None
        if isinstance(value, str):
            name = self.reference(where, "resource", value)
            return None if name is None else Binding(where, name)
        ignored = ("format", "counter", "counterOffsetBytes")
        numbers = ("elementOffset", "elementCount", "elementSizeInBytes")
        given = self.mapping(where, value, ("name",), (*numbers, "shape", *ignored))
        if given is None or "name" not in given:
            return None
        name = self.reference(at(where, "name"), "resource", given["name"])
        offset, count, item = [self.integer(at(where, key), given.get(key, 0)) for key in numbers]
        if name is None or offset is None or count is None or item is None:
            return None
        buffer = self.resources[name]
        if buffer is not None and buffer.data_type == TensorDataType.UNKNOWN and (offset or count) and not item:
            expected = f"the size of an element, as those of {name!r} are of several types"
            self.refuse(where, "(M12)", "no elementSizeInBytes", expected)
            return None
        shape = self.integers(at(where, "shape"), given["shape"]) if "shape" in given else None
        if (shape is None and "shape" in given) or (shape is not None and min(shape, default=0) < 0):
            self.refuse(at(where, "shape"), "(M4)", describe(given["shape"]), "sizes of dimensions")
            return None
        return Binding(where, name, offset, count, item, shape)

    def print_command(self, where: str, value: Object) -> Print | None:
        given = self.mapping(where, value, ("type", "resource"), ("verbose",))
        if given is None or "resource" not in given:
            return None
        name = self.reference(at(where, "resource"), "resource", given["resource"])
        verbose = given.get("verbose", False)
        if not isinstance(verbose, bool):
            self.refuse(at(where, "verbose"), "(M4)", describe(verbose), "true or false")
            return None
        return None if name is None else Print(name, verbose)

    def write_file(self, where: str, value: Object) -> WriteFile | None:
        given = self.mapping(where, value, ("type", "resource", "targetPath"), ("dimensions",))
        if given is None or "resource" not in given or "targetPath" not in given:
            return None
        name = self.reference(at(where, "resource"), "resource", given["resource"])
        path = self.target(at(where, "targetPath"), given["targetPath"])
        dimensions = self.integers(at(where, "dimensions"), given["dimensions"]) if "dimensions" in given else None
        if name is None or path is None or (dimensions is None and "dimensions" in given):
            return None
        buffer = self.resources[name]
        if path.suffix.lower() in SUFFIXES:
            return self.write_image(where, name, given["targetPath"], path, dimensions)
        is_npy = path.suffix.lower() == ".npy"
        if buffer is not None and is_npy and buffer.data_type == TensorDataType.UNKNOWN:
            expected = "another file name for its bytes; a .npy file has one data type"
            self.refuse(at(where, "targetPath"), "(M14)", f"{name!r}, which has values of several types", expected)
            return None
        is_known = buffer is not None and buffer.initial is not DEFERRED
        if is_known and buffer is not None and dimensions and (prod(dimensions) != buffer.count or min(dimensions) < 1):
            found = f"{list(dimensions)}, {prod(dimensions)} elements"
            self.refuse(at(where, "dimensions"), "(M14)", found, f"dimensions of {buffer.count}, as {name!r} has")
            return None
        return WriteFile(where, name, given["targetPath"], path, dimensions or None)

    def write_image(
        self, where: str, name: str, target: str, path: Path, dimensions: tuple[int, ...] | None
    ) -> WriteFile | None:
        buffer = self.resources[name]
        try:
            if buffer is not None:
                check_image(path, buffer.data_type, buffer.count, dimensions)
        except Refused as problem:
            self.refuse(at(where, "targetPath"), "(M15)", problem.found, problem.expected, problem.remedy)
            return None
        return WriteFile(where, name, target, path, dimensions)

    def target(self, where: str, value: object) -> Path | None:
        path = self.path(where, value)
        if path is None:
            return None
        if self.file is not None and path == self.file.resolve():
            self.refuse(where, "(M9)", "the model itself", "another file")
            return None
        try:
            check_target(path)
        except Refused as problem:
            self.refuse(where, "(M14)", problem.found, problem.expected)
            return None
        return path


_ALIASES = {"Type": "type", "Desc": "desc"}
_DISPATCHABLE = ("type", "executionFlags", "dmlCompileType", "bindings")
_OTHER_KINDS = {
    "hlsl": "a shader, which runs on Direct3D 12 only",
}
_WHOLE = ("onnx", "dmlserializedgraph")
_OTHER_FILES = {
    ".onnx": (
        "an ONNX model",
        "anydml run, check and draw take it as it is; a model names it as the sourcePath of a dispatchable",
    ),
    ".bin": (
        "bytes without a description: a serialised graph, or a tensor's data",
        "A model names a graph as the sourcePath of a dispatchable of type dmlSerializedGraph, a tensor's data as that "
        "of a resource",
    ),
}
"""What DxDispatch's users give as a model beside JSON."""
_TENSOR_OPTIONS = tuple(
    field.name for field in fields(DML_BUFFER_TENSOR_DESC) if field.name not in ("DataType", "Sizes")
)


MAX_MODEL_BYTES = 256 << 20


def load(
    path: str | os.PathLike[str],
    *,
    allow_outside: bool = False,
    allow_unknown_fields: bool = False,
    fallback: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> Model:
    """Reads a model from a file.

    Args:
        path: the file; files that the model names are resolved against its folder, those that are read against the
            current folder too.
        allow_outside: whether they may lie outside of the model's folder.
        allow_unknown_fields: whether fields that mean nothing are passed over, such as comments.
        fallback: whether nodes of ONNX models that DirectML does not do run on another runtime.
        sizes: of free dimensions of ONNX models, by name, in place of those that the model says.

    Returns:
        The model, with what is wrong in it kept for :meth:`Model.check`.

    Raises:
        DMLError: (M1), (M2).
    """
    file = Path(path)
    if file.suffix.lower() in _OTHER_FILES:
        found, remedy = _OTHER_FILES[file.suffix.lower()]
        raise error([model_violation("the model", "(M1)", f"{str(path)!r}, {found}", "a model in JSON", remedy)])
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
    return _read(text, file.parent, file, allow_outside, allow_unknown_fields, fallback, sizes)


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


def loads(
    text: str | bytes,
    folder: str | os.PathLike[str] = ".",
    *,
    allow_outside: bool = False,
    allow_unknown_fields: bool = False,
    fallback: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> Model:
    """Reads a model from a text.

    Args:
        text: the model; bytes in UTF-8.
        folder: where the files lie that it names.
        allow_outside: whether they may lie outside of it.
        allow_unknown_fields: whether fields that mean nothing are passed over, such as comments.
        fallback: as for :func:`load`.
        sizes: likewise.

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
    return _read(text, Path(folder), None, allow_outside, allow_unknown_fields, fallback, sizes)


def _read(
    text: str | bytes,
    folder: Path,
    file: Path | None,
    allow_outside: bool,
    allow_unknown_fields: bool,
    fallback: bool,
    sizes: Mapping[str, int] | None,
) -> Model:
    reader = Reader(folder, file, allow_outside, allow_unknown_fields)
    reader.fallback, reader.given_sizes = fallback, sizes or {}
    return reader.model(parse(text))
