"""The reference of the public names: modules, classes with their methods, functions, enums, and the command line."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from importlib import import_module
from typing import Any

import anydml
import anydml.draw
import anydml.onnx
import pydirectml
from anydml.cli import main
from anydml.core.enums import TYPE_NAMES
from anydml.functions import ALIASES, FUNCTIONS
from anydml.operators import OPERATORS

from .markup import block, code, documentation, page_of, table, text

OPERATORS_PAGES = "../operators/"

GROUPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "devices": (
        "Devices",
        "Where operators are compiled and run, and what is bound to them.",
        (
            *("Device", "Operator", "CompiledOperator", "OperatorInitializer", "BindingProperties"),
            *("DML_BINDING_PROPERTIES", "BindingTable", "DML_BUFFER_BINDING", "DML_BUFFER_ARRAY_BINDING"),
        ),
    ),
    "tensors": (
        "Tensors",
        "How a tensor lies in memory, and the small structs of descs.",
        ("DML_BUFFER_TENSOR_DESC", "DML_SCALAR_UNION", "DML_SCALE_BIAS", "DML_SIZE_2D", "PackedArray"),
    ),
    "graphs": (
        "Graphs",
        "Graphs of expressions, functions that compile what they compute, and the header's descs of graphs.",
        (
            *("compile", "Graph", "Expression", "CompiledGraph", "DML_GRAPH_DESC", "DML_OPERATOR_GRAPH_NODE_DESC"),
            *("DML_CONSTANT_DATA_GRAPH_NODE_DESC", "DML_INPUT_GRAPH_EDGE_DESC", "DML_OUTPUT_GRAPH_EDGE_DESC"),
            "DML_INTERMEDIATE_GRAPH_EDGE_DESC",
        ),
    ),
    "errors": (
        "Errors and validation",
        "What is wrong with a desc, and what is raised.",
        ("validate", "Violation", "DMLError", "DMLValueError", "DMLTypeError", "DMLMemoryError", "DMLAttributeError"),
    ),
}
"""Pages of the package's own names, but for functions and descs of operators, which are on the operators' pages."""


def write(put: Callable[[str, str], None]) -> None:
    """All pages of the reference.

    Args:
        put: takes the path of a page and what it holds.
    """
    for name, (title, words, members) in GROUPS.items():
        put(f"api/{name}.md", _page(title, words, "anydml", members))
    put("api/enums.md", _enums())
    put("api/functions.md", _functions())
    put("api/onnx.md", _onnx())
    put("api/draw.md", _draw())
    put("api/pydirectml.md", _pydirectml())
    put("api/command-line.md", _command_line())


def _page(title: str, words: str, module: str, names: Iterable[str]) -> str:
    parts = [f"# {title}\n", words + "\n"]
    parts += [entry(module, name, getattr(import_module(module), name)) for name in names]
    if title.startswith("Errors"):
        parts += ["## Labels of rules\n", documentation(anydml.errors.__doc__)]
    return "\n".join(parts)


# Entries


def entry(module: str, name: str, value: Any) -> str:
    """A name with all that its docstring says, and its public members."""
    if inspect.isclass(value) and value.__name__ != name:
        where = f"{{py:obj}}`{value.__name__} <{module}.{value.__name__}>`"
        return f"```{{py:data}} {name}\n:module: {module}\n\nThe header's name of {where}.\n```\n"
    if inspect.isclass(value) and issubclass(value, Enum):
        return _enum(module, name, value)
    if inspect.isclass(value):
        body = documentation(value.__doc__, folder=OPERATORS_PAGES)
        inner = "\n".join(_members(value))
        kind = "exception" if issubclass(value, BaseException) else "class"
        given = "" if issubclass(value, BaseException) else _parameters(value)
        return f"`````{{py:{kind}}} {name}{given}\n:module: {module}\n\n{body}\n{inner}\n`````\n"
    if callable(value):
        body = documentation(inspect.getdoc(value), folder=OPERATORS_PAGES)
        return f"````{{py:function}} {name}{_parameters(value)}\n:module: {module}\n\n{body}\n````\n"
    return f"```{{py:data}} {name}\n:module: {module}\n:value: {value!r}\n```\n"


def _parameters(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "()"
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    bare = [each for each in bare if each.name != "self"]
    line = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    line = re.sub(r"<(\w+\.\w+): \d+>", r"\1", line)
    # What stands for a default that nobody writes.
    return re.sub(r"<[^<>]*>", "...", line)


def _members(kind: type) -> Iterator[str]:
    """Methods and properties that the class or one of its bases in these packages has and tells of."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] not in ("anydml", "pydirectml"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            value = getattr(member, "__func__", member)
            if isinstance(value, property) and value.__doc__:
                yield f"````{{py:property}} {name}\n\n{documentation(value.__doc__, folder=OPERATORS_PAGES)}\n````\n"
            elif inspect.isfunction(value):
                flag = ":classmethod:\n" * isinstance(member, classmethod)
                flag += ":staticmethod:\n" * isinstance(member, staticmethod)
                given = _parameters(getattr(kind, name)).replace("(cls, ", "(")
                body = documentation(inspect.getdoc(value), folder=OPERATORS_PAGES)
                yield f"````{{py:method}} {name}{given}\n{flag}\n{body}\n````\n"


def _enum(module: str, name: str, value: type[Enum]) -> str:
    headers = {enum.__name__: header for header, enum in TYPE_NAMES.items()}
    header = f"The header's name is {code(headers[name])}.\n" if name in headers and module == "anydml" else ""
    members = "\n".join(
        f"```{{py:attribute}} {each}\n:value: {int(getattr(member, 'value', 0))}\n```\n"
        for each, member in value.__members__.items()
    )
    body = documentation(value.__doc__ if "An enumeration." not in (value.__doc__ or "") else "")
    return f"`````{{py:class}} {name}\n:module: {module}\n\n{body}\n{header}\n{members}\n`````\n"


# Pages of their own


def _enums() -> str:
    names = [each for each in anydml.__all__ if _is_enum(getattr(anydml, each)) and each not in TYPE_NAMES]
    parts = [
        "# Enums and constants\n",
        "Members have the header's values. `anydml.DML_TENSOR_DATA_TYPE_FLOAT32`, which is the header's name of a",
        "member, and `DML_TENSOR_DATA_TYPE.FLOAT32` are there, too.\n",
        *(entry("anydml", name, getattr(anydml, name)) for name in names),
        "## The header's names\n",
        *(entry("anydml", name, enum) for name, enum in TYPE_NAMES.items()),
        "## Constants\n",
    ]
    constants = [each for each in anydml.__all__ if isinstance(getattr(anydml, each), int)]
    parts += [entry("anydml", name, getattr(anydml, name)) for name in constants]
    return "\n".join(parts)


def _is_enum(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Enum)


def _functions() -> str:
    """A line for each function, which is described on the page of its oldest operator."""
    rows = []
    for name in sorted({*FUNCTIONS, *ALIASES}):
        function = getattr(anydml, name)
        operators = [each for each, op in OPERATORS.items() if op.function == function.__name__]
        links = ", ".join(f"[{each}]({page_of(each, OPERATORS_PAGES)})" for each in operators)
        first = (inspect.getdoc(function) or "").partition("\n")[0]
        rows.append((f"{{py:func}}`~anydml.{name}`", text(re.sub(r":\s*DML_OPERATOR_.*$", ".", first)), links))
    return "\n".join(
        [
            "# Functions\n",
            "Arrays in, arrays of the same kind out: NumPy's, PyTorch's, and others' by DLPack. `abs`, `max`, `min`,",
            "`pow`, `round` and `slice` are no part of `from anydml import *`.\n",
            table(("Function", "What it does", "Operators"), rows),
        ]
    )


def _onnx() -> str:
    from anydml.onnx import backend

    head = "ONNX models by DirectML's operators. [ONNX models](../inside/onnx.md) shows how they are used.\n"
    names = [(name, getattr(anydml.onnx, name)) for name in anydml.onnx.__all__]
    parts = ["# anydml.onnx\n", head, *(entry("anydml.onnx", name, value) for name, value in names)]
    parts += ["## anydml.onnx.backend\n", documentation(backend.__doc__)]
    methods = ("prepare", "run_model", "run_node", "supports_device")
    parts += [entry("anydml.onnx.backend", name, getattr(backend, name)) for name in methods]
    return "\n".join(parts)


def _draw() -> str:
    names = ("draw", "draw_operator", "draw_graph")
    parts = ["# anydml.draw\n", documentation(anydml.draw.__doc__)]
    return "\n".join([*parts, *(entry("anydml.draw", name, getattr(anydml.draw, name)) for name in names)])


def public_names_of_pydirectml() -> dict[str, Any]:
    """What is defined there, and the enums that it has from the package."""
    found = {name: value for name, value in vars(pydirectml).items() if not name.startswith("_")}
    own = {name: value for name, value in found.items() if getattr(value, "__module__", "").startswith("pydirectml")}
    return own | {name: value for name, value in found.items() if _is_enum(value) and value.__module__ != "enum"}


def _pydirectml() -> str:
    names = public_names_of_pydirectml()
    members = sorted(
        name for name, value in vars(pydirectml).items() if isinstance(value, Enum) and not name.startswith("_")
    )
    parts = ["# pydirectml\n", documentation(pydirectml.__doc__)]
    parts += [entry("pydirectml", name, value) for name, value in names.items() if not _is_foreign(value)]
    parts += ["## Enums\n", "They are the package's:\n"]
    for name, value in names.items():
        if _is_foreign(value):
            where = f"{{py:obj}}`anydml.{value.__name__}`"
            parts.append(f"```{{py:data}} {name}\n:module: pydirectml\n\n{where}\n```\n")
    parts += ["Their members are names of the module, too:\n", ", ".join(map(code, members)) + "\n"]
    return "\n".join(parts)


def _is_foreign(value: Any) -> bool:
    return _is_enum(value) and not value.__module__.startswith("pydirectml")


def _command_line() -> str:
    """What each command says of itself."""
    commands = re.findall(r"^    (\w+) ", _help(), re.MULTILINE)
    parts = ["# Command line\n", block("text", _help())]
    for command in commands:
        parts += [f"## anydml {command}\n", block("text", _help(command))]
    return "\n".join(parts)


def _help(*command: str) -> str:
    """As it is printed where a line has 88 characters."""
    printed, columns = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "88"
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*command, "--help"])
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
    return printed.getvalue()
