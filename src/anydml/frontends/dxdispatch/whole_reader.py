"""Dispatchables that are models of their own, read from JSON."""

from __future__ import annotations

from importlib.util import find_spec

from ...core.enums import ExecutionFlags
from ...core.errors import DMLError
from .commands import at
from .files import Refused, resolve_source, source_size
from .jsonc import Object
from .resources import Resources
from .whole import Whole


class WholeReader(Resources):
    """Reads ONNX models and serialised graphs."""

    def onnx(self, where: str, value: Object) -> Whole | None:
        """An ONNX model; options of ONNX Runtime's are not looked at, as it does not run the model."""
        overrides = ("freeDimensionNameOverrides", "freeDimensionDenotationOverrides")
        ignored = ("sessionOptionsConfigEntries", "graphOptimizationLevel", "loggingLevel")
        given = self.mapping(where, value, ("type", "sourcePath"), (*overrides, *ignored))
        if given is None or "sourcePath" not in given:
            return None
        path = self.path(at(where, "sourcePath"), given["sourcePath"], resolve_source)
        by_name, by_denotation = [self.sizes(at(where, name), given.get(name, Object([]))) for name in overrides]
        if path is None or by_name is None or by_denotation is None:
            return None
        if not self.has_packages(at(where, "type"), "onnx"):
            return None
        from ..onnx.model import read
        from .onnx_dispatchable import OnnxDispatchable, sizes_of

        try:
            source_size(path)
            model = read(path)
        except Refused as problem:
            self.refuse(at(where, "sourcePath"), "(M10)", problem.found, problem.expected)
            return None
        except (DMLError, OSError) as problem:
            wrong = problem.violations if isinstance(problem, DMLError) else ()
            found = wrong[0].found if wrong else f"{str(path)!r} ({problem})"
            self.refuse(at(where, "sourcePath"), "(M10)", found, "a valid ONNX model")
            return None
        sizes = sizes_of(model, by_denotation) | by_name | dict(self.given_sizes)
        return OnnxDispatchable(where, path, model, sizes, self.fallback)

    def sizes(self, where: str, value: object) -> dict[str, int] | None:
        """Sizes of dimensions, by name."""
        given = self.mapping(where, value)
        if given is None:
            return None
        found = {name: self.integer(at(where, name), each) for name, each in given.items()}
        return None if None in found.values() else {name: each for name, each in found.items() if each is not None}

    def serialized(self, where: str, value: Object) -> Whole | None:
        """A serialised graph."""
        given = self.mapping(where, value, ("type", "sourcePath"), ("executionFlags",))
        if given is None or "sourcePath" not in given:
            return None
        path = self.path(at(where, "sourcePath"), given["sourcePath"], resolve_source)
        flags = self.flags(at(where, "executionFlags"), ExecutionFlags, given.get("executionFlags", []))
        if path is None or flags is None or not self.has_packages(at(where, "type"), "flatbuffers"):
            return None
        from .graph_dispatchable import GraphDispatchable
        from .serialized import read_graph

        try:
            return GraphDispatchable(where, read_graph(path), flags)
        except Refused as problem:
            self.refuse(at(where, "sourcePath"), "(M10)", problem.found, problem.expected, problem.remedy)
            return None

    def has_packages(self, where: str, package: str) -> bool:
        """Whether a package of the extra ``onnx`` is there."""
        if find_spec(package) is not None:
            return True
        remedy = "pip install 'anydml[onnx]'"
        self.refuse(where, "(M11)", f"no package {package!r}", "the extra onnx, which brings it", remedy)
        return False
