"""A post-import hook (as PEP 369 has it) for PyTorch's compiler: it breaks its graph at this package's functions.

Its tracer would follow a function's Python code down to memory that it knows nothing of. So it is told, as soon as it
is loaded, that there is nothing to trace in this package, nor in functions that are compiled objects, which it knows by
their identity. Nothing of PyTorch is loaded for that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_TRACER = "torch._dynamo"
_PACKAGE = __name__.partition(".")[0]
_OBJECTS: list[Any] = []
"""Functions that are compiled objects."""
_TOLD: list[Any] = []
"""The tracer, once it is there."""


class _Hook:
    """Finds the tracer as Python does, and has it told once it is loaded.

    Not derived from importlib.abc's class, whose module loads a dozen others.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _TRACER:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            load = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _tell(module)

            loader.exec_module = exec_module
        return spec


def break_graphs() -> None:
    """Has PyTorch's compiler break its graphs at this package, be it loaded already or later."""
    tracer = sys.modules.get(_TRACER)
    if tracer is None:
        sys.meta_path.insert(0, _Hook())
    else:
        _tell(tracer)


def break_graphs_at(function: Any) -> None:
    """Has it break its graphs at a function that is a compiled object, which lives as long as the interpreter."""
    # As torch.compiler.disable() marks what it wraps.
    function._torchdynamo_disable = True
    function._torchdynamo_disable_msg = f"{_PACKAGE} runs kernels on memory that a graph knows nothing of"
    _OBJECTS.append(function)
    for tracer in _TOLD:
        tracer.trace_rules._disallowed_callable_ids.add(id(function))


def _tell(tracer: Any) -> None:
    tracer.trace_rules.add(_PACKAGE)
    _TOLD.append(tracer)
    for function in list(_OBJECTS):
        tracer.trace_rules._disallowed_callable_ids.add(id(function))
