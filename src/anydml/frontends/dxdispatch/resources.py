"""Resources, read from JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.enums import TensorDataType
from ...core.errors import listing
from ...core.strided_layout import DATA_TYPES, DTYPES
from .buffers import (
    DEFERRED,
    Buffer,
    Constant,
    Initial,
    NpyFile,
    RawFile,
    Sequential,
    Values,
    describe,
    expected_number,
    number,
    numbers,
)
from .commands import at
from .fields import Fields
from .files import Refused, npy_array, resolve_source, source_size
from .images import SUFFIXES, image_file
from .jsonc import Object

_OF_IMAGES = ("resampleSize", "resampleMode")


class Resources(Fields):
    """Reads resources."""

    def buffer(self, where: str, value: object) -> Buffer | None:
        optional = ("type", "initialValuesDataType", "sizeInBytes", "initialValuesOffsetInBytes", *_OF_IMAGES)
        given = self.mapping(where, value, ("initialValues",), optional)
        if given is None or "initialValues" not in given:
            return None
        kind = given.get("type", "buffer")
        if kind != "buffer":
            self.refuse(at(where, "type"), "(M4)", describe(kind), '"buffer"')
        data_type = self.enum(
            at(where, "initialValuesDataType"), TensorDataType, given.get("initialValuesDataType", "UNKNOWN")
        )
        if data_type is None:
            return None
        if data_type != TensorDataType.UNKNOWN and data_type not in DTYPES:
            expected = listing(kind.name for kind in DTYPES)
            self.refuse(at(where, "initialValuesDataType"), "(M8)", data_type.name, expected)
            return None
        scaled = self.scaling(where, given)
        initial = self.initial(at(where, "initialValues"), data_type, given["initialValues"], scaled)
        offset = self.integer(at(where, "initialValuesOffsetInBytes"), given.get("initialValuesOffsetInBytes", 0))
        if initial is None or offset is None:
            return None
        if initial is DEFERRED:
            return self.deferred(where, data_type, given)
        if not initial.nbytes:
            self.refuse(at(where, "initialValues"), "(M8)", "none", "at least one initial value")
            return None
        if isinstance(initial, NpyFile):
            data_type = DATA_TYPES[initial.dtype]
        size: int | None = -(-initial.nbytes // 4) * 4
        if "sizeInBytes" in given:
            size = self.integer(at(where, "sizeInBytes"), given["sizeInBytes"])
        if size is None:
            return None
        if size < offset + initial.nbytes:
            found = f"{size} bytes" if "sizeInBytes" in given else f"{size} bytes by default"
            expected = f"at least {offset + initial.nbytes}, with {initial.nbytes} bytes at offset {offset}"
            self.refuse(at(where, "sizeInBytes"), "(M8)", found, expected)
            return None
        return Buffer(data_type=data_type, size=-(-size // 4) * 4, offset=offset, initial=initial)

    def deferred(self, where: str, data_type: TensorDataType, given: Object) -> Buffer | None:
        """A resource that is as large as the result of an ONNX model that it is bound to."""
        for name in ("sizeInBytes", "initialValuesOffsetInBytes"):
            if name in given:
                self.refuse(at(where, name), "(M8)", describe(given[name]), "none, as its values are deferred")
                return None
        return Buffer(data_type=data_type, size=0, offset=0, initial=DEFERRED)

    def scaling(self, where: str, given: Object) -> tuple[int, ...] | None:
        """The size of an image."""
        mode = given.get("resampleMode", "scale")
        if mode != "scale":
            self.refuse(at(where, "resampleMode"), "(M4)", describe(mode), '"scale"')
        return self.integers(at(where, "resampleSize"), given["resampleSize"]) if "resampleSize" in given else None

    def initial(
        self, where: str, data_type: TensorDataType, value: object, size: Sequence[int] | None
    ) -> Initial | None:
        if isinstance(value, list):
            if data_type == TensorDataType.UNKNOWN:
                return self.mixed(where, value)
            return self.listed(where, data_type, value)
        if value == "deferred":
            return DEFERRED
        if not isinstance(value, Object):
            expected = 'a list of values, an object with value, valueStart or sourcePath, or "deferred"'
            self.refuse(where, "(M4)", describe(value), expected)
            return None
        kinds = [key for key in ("value", "valueStart", "sourcePath") if key in value]
        if len(kinds) != 1:
            found = listing(kinds, "and") if kinds else "no kind of initial values"
            self.refuse(where, "(M8)", found, "one of value, valueStart and sourcePath")
            return None
        if kinds == ["sourcePath"]:
            return self.from_file(where, data_type, value, size)
        return self.counted(where, data_type, value)

    def listed(self, where: str, data_type: TensorDataType, values: list[Any]) -> Values | None:
        elements = numbers(data_type, values)
        if isinstance(elements, int):
            found = describe(values[elements])
            self.refuse(f"{where}[{elements}]", "(M7)", found, expected_number(data_type))
            return None
        return Values(elements.tobytes())

    def mixed(self, where: str, values: list[Any]) -> Values | None:
        """Values that have each its own type."""
        data = []
        for i, each in enumerate(values):
            place = f"{where}[{i}]"
            if not isinstance(each, Object):
                expected = 'an object with type and value, as there is no "initialValuesDataType"'
                self.refuse(place, "(M8)", describe(each), expected)
                return None
            given = self.mapping(place, each, ("type", "value"), ("name",))
            data_type = self.enum(at(place, "type"), TensorDataType, each.get("type", "UNKNOWN"))
            if given is None or data_type is None or "value" not in given:
                return None
            element = self.number(at(place, "value"), data_type, given["value"])
            if element is None:
                return None
            data.append(element.tobytes())
        return Values(b"".join(data))

    def number(self, where: str, data_type: TensorDataType, value: object) -> np.generic | None:
        if data_type not in DTYPES:
            expected = f"a data type: {listing(kind.name for kind in DTYPES)}"
            self.refuse(where, "(M8)", f"a value of {data_type.name}", expected)
            return None
        element = number(data_type, value)
        if element is None:
            self.refuse(where, "(M7)", describe(value), expected_number(data_type))
        return element

    def counted(self, where: str, data_type: TensorDataType, value: Object) -> Initial | None:
        """A constant or a sequence."""
        names = ("value",) if "value" in value else ("valueStart", "valueDelta")
        given = self.mapping(where, value, ("valueCount", *names))
        if data_type == TensorDataType.UNKNOWN:
            self.refuse(where, "(M8)", "no initialValuesDataType", "the data type of the values")
            return None
        if given is None or any(name not in given for name in ("valueCount", *names)):
            return None
        count = self.integer(at(where, "valueCount"), given["valueCount"], 1)
        first, *rest = [self.number(at(where, name), data_type, given[name]) for name in names]
        if count is None or first is None or None in rest:
            return None
        return Constant(count, first) if not rest else Sequential(count, first, rest[0])  # type: ignore[arg-type]

    def from_file(
        self, where: str, data_type: TensorDataType, value: Object, image_size: Sequence[int] | None
    ) -> Initial | None:
        given = self.mapping(where, value, ("sourcePath",))
        place = at(where, "sourcePath")
        path = None if given is None else self.path(place, given["sourcePath"], resolve_source)
        if path is None:
            return None
        try:
            size = source_size(path)
            if path.suffix.lower() == ".npy":
                return self.npy(place, data_type, path)
        except Refused as problem:
            self.refuse(place, "(M10)", problem.found, problem.expected)
            return None
        if path.suffix.lower() in SUFFIXES:
            try:
                return image_file(path, data_type, image_size)
            except Refused as problem:
                self.refuse(place, "(M15)", problem.found, problem.expected, problem.remedy)
                return None
        if data_type == TensorDataType.UNKNOWN:
            self.refuse(where, "(M8)", "no initialValuesDataType", "the data type of the file's bytes")
            return None
        if size % DTYPES[data_type].itemsize:
            self.refuse(place, "(M10)", f"{size} bytes", f"whole elements of {data_type.name}")
            return None
        return RawFile(path, size)

    def npy(self, where: str, data_type: TensorDataType, path: Path) -> NpyFile | None:
        array = npy_array(path)
        dtype = array.dtype.newbyteorder("=")
        if dtype not in DATA_TYPES:
            self.refuse(where, "(M10)", f"elements of {array.dtype}", listing(map(str, DATA_TYPES)))
            return None
        if data_type not in (TensorDataType.UNKNOWN, DATA_TYPES[dtype]):
            found = f"elements of {DATA_TYPES[dtype].name}"
            self.refuse(where, "(M10)", found, f"{data_type.name}, which initialValuesDataType says")
            return None
        return NpyFile(path, array.nbytes, dtype)
