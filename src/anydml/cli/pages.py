"""What ``anydml ops`` and ``anydml devices`` print, made from the specifications; as plain text or with rich.

The parts of an operator's page are also those of the site, which ``tools/reference`` writes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np

from ..backends import engines
from ..backends.base import Declined
from ..backends.torch.devices import gpus
from ..core import enums
from ..core.enums import FeatureLevel
from ..core.errors import listing
from ..core.strided_layout import Layout
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ..draw import EXAMPLES
from ..functions import function_of, load
from ..operators import OPERATORS, spec
from ..operators.schema import OperatorDesc, OperatorSpec, SupportTable
from ..runtime.context import DEVICE_NAMES
from ..terminal import NARROW, Block, Code, Heading, Table

WIDTH = 120
"""Of a desc's text, which is broken into lines beyond."""


# Pages


def operators_page() -> list[Block]:
    """A line for each operator."""
    rows = []
    for name in OPERATORS:
        found = spec(name)
        serving = ", ".join(engine for engine, answer in answers(found) if not isinstance(answer, Declined))
        summary, _ = docstring(found.desc)
        rows.append((name, found.support.introduced.number, serving, summary[0]))
    count = len(enums.OperatorType) - 1
    return [
        Table(("Operator", "Since", "Engines", "What it does"), rows),
        f"{len(rows)} of DirectML's {count} operators. anydml ops NAME tells more of one.",
    ]


def operator_page(found: OperatorSpec) -> list[Block]:
    """All that is known of an operator."""
    paragraphs, sections = docstring(found.desc)
    since = found.support.introduced
    page: list[Block] = [
        Heading(
            f"{found.name}: DML_OPERATOR_{found.name} ({found.operator_type.value}), since feature level {since.number}"
        ),
        *paragraphs,
        Heading(f"Members of {found.desc.__name__}"),
        Table(("Member", "Type", "Meaning"), list(members(found, sections["Args"]))),
        Heading("Constraints"),
        Table(("Label", "Rule"), [(f"({label})", rule) for label, rule in sections["Constraints"].items()]),
        *decisions(found),
        *_support(found),
        Heading("Engines"),
        Table(("Engine", "How it serves the example below"), list(engine_rows(found))),
    ]
    page += [Heading("As a function"), Code(_function(load(function_of(found.name))))]
    if found.name in EXAMPLES:
        page += [Heading("As a desc"), Code(code(EXAMPLES[found.name][0]))]
    return [*page, f"Source: {sections['Source']['']}"]


def devices_page() -> list[Block]:
    """A line for each device."""
    rows = [(name, *_device(name)) for name in DEVICE_NAMES]
    level = FeatureLevel.LEVEL_6_4.number
    rows += [(name, level, usable) for name, usable in gpus()]
    return [Table(("Device", "Feature level", "Usable"), rows)]


def _device(name: str) -> tuple[str, str]:
    level = Device(name).feature_level.number
    if name == "reference":
        return level, f"yes: every operator's reference in NumPy {np.__version__}"
    try:
        from .. import _native
    except ImportError as problem:
        return level, f"by the reference only: the compiled module cannot be loaded ({problem})"
    built = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in _native.build_info().items() if value)
    return level, f"yes: {built}"


# Parts of an operator's page

Sections = dict[str, dict[str, str]]


def docstring(desc: type[OperatorDesc]) -> tuple[list[str], Sections]:
    """The paragraphs of a desc's docstring, and its sections by title; items by what stands before the colon."""
    text = inspect.getdoc(desc) or ""
    parts = re.split(r"^(Args|Constraints|Source):\s*", text, flags=re.MULTILINE)
    return _paragraphs(parts[0]), {title: _items(body) for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def _paragraphs(text: str) -> list[str]:
    """Each in one line; points of a list are some of their own."""
    return [" ".join(each.split()) for each in re.split(r"\n\n|\n(?=- |\d+\. )", text) if each.strip()]


def decisions(found: OperatorSpec) -> Iterator[Block]:
    """What the operator's file says of all in it, behind its first sentence."""
    # Not the desc's module: pointwise operators have the package's.
    family = import_module(f"anydml.operators.specs.{OPERATORS[found.name].family}")
    _, *taken = _paragraphs(family.__doc__ or "")
    if taken:
        yield Heading("Decisions")
        yield from taken


def _items(body: str) -> dict[str, str]:
    """``Axis: the dimension`` and ``(C1) The rule`` by name, with their continuation lines; other text under ""."""
    items: dict[str, str] = {}
    for entry in re.split(r"^(?=\w+: |\([CV]\d+\) )", inspect.cleandoc(body), flags=re.MULTILINE):
        name, meaning = re.match(r"(?:(\w+): |\(([CV]\d+)\) )?(.*)", entry, re.DOTALL).expand(r"\1\2 \3").split(" ", 1)  # type: ignore[union-attr]
        if meaning.strip():
            items[name] = " ".join(meaning.split())
    return items


_TYPE_WORDS = {
    "Tensor": "tensor",
    "OptionalTensor": "tensor or None",
    "Tensors": "list of tensors",
    "UINT": "integer",
    "INT": "integer",
    "UINTs": "list of integers",
    "INTs": "list of integers",
    "BOOL": "bool",
    "FLOAT": "number",
    "FLOATs": "list of numbers",
    "SCALAR": "number or DML_SCALAR_UNION",
    "OptionalScaleBias": "DML_SCALE_BIAS or None",
    "Size2D": "DML_SIZE_2D",
    "OptionalActivation": "desc of an activation without tensors, or None",
    "Activations": "list of descs of activations without tensors",
    "Count": "integer, derived",
}


def members(found: OperatorSpec, meanings: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for field in fields(found.desc):
        annotation = found.members[field.name]
        words = _TYPE_WORDS.get(annotation)
        if words is None:
            enum = getattr(enums, annotation.rpartition(".")[2])
            words = f"{enum.__name__}: {', '.join(enum.__members__)}"
        default = field.default
        if isinstance(default, Enum):
            words += f"; {default.name} if absent"
        elif isinstance(default, (bool, float)):
            words += f"; {default} if absent"
        yield field.name, words, meanings[field.name]


def _support(found: OperatorSpec) -> Iterator[Block]:
    for condition, table in support_tables(found):
        yield Heading(f"Support, {condition}" if condition else "Support")
        yield Table(("Feature level", "Tensor", "Kind", "Dimensions", "Data types"), list(support_rows(table)))


def support_tables(found: OperatorSpec) -> Iterator[tuple[str, SupportTable]]:
    """The support tables, each once, with the values of the member that it holds for."""
    member, by_value = found.support_by or ("", {"": found.support})
    for table in {id(each): each for each in by_value.values()}.values():
        values = [getattr(value, "name", value) for value, each in by_value.items() if each is table]
        yield f"with {member} {listing(values)}" if member else "", table


def support_rows(table: SupportTable) -> Iterator[tuple[str, ...]]:
    for level, rows in table.levels:
        since = f"{level.number} and above"
        for tensor, row in rows.items():
            low, high = row.dimension_counts[0], row.dimension_counts[-1]
            counts = str(low) if low == high else f"{low} to {high}"
            yield since, tensor, row.kind, counts, ", ".join(data_type.name for data_type in row.data_types)
            since = ""


def answers(found: OperatorSpec) -> Iterator[tuple[str, Any]]:
    """What each engine of the device "cpu" says to the operator's example."""
    if found.name not in EXAMPLES:
        return
    desc, _ = EXAMPLES[found.name]
    inputs = [None if tensor is None else Layout.of_desc(tensor) for _, tensor in found.inputs(desc)]
    outputs = [None if tensor is None else Layout.of_desc(tensor) for _, tensor in found.outputs(desc)]
    for engine in engines("cpu"):
        yield engine.name, engine.compile(found, desc, found.align(desc, inputs), outputs)


def engine_rows(found: OperatorSpec) -> Iterator[tuple[str, str]]:
    for engine, answer in answers(found):
        yield engine, f"declines: {answer.reason}" if isinstance(answer, Declined) else answer.description


def _function(function: Any) -> str:
    """A function's signature, and the examples in its docstring."""
    line = signature_line(function)
    if len(line) > NARROW:
        line = line.replace("(", "(\n    ", 1).replace(", ", ",\n    ")[:-1] + ",\n)"
    text = inspect.getdoc(function) or ""
    return f"{line}\n\n{text[text.index('>>>') :]}" if ">>>" in text else line


def signature_line(function: Any) -> str:
    """A function's name and its parameters without their types."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    line = f"{function.__name__}{signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)}"
    # An enum's member, and a type of NumPy's, as one writes them.
    return re.sub(r"<class 'numpy\.(\w+)'>", r"np.\1", re.sub(r"<(\w+\.\w+): \d+>", r"\1", line))


_STRUCTS = (OperatorDesc, DML_BUFFER_TENSOR_DESC)


def code(value: object, indent: str = "") -> str:
    """A desc as one writes it in Python, without what is derived or left at its default."""
    if isinstance(value, (tuple, list)) and any(isinstance(each, _STRUCTS) for each in value):
        inner = "".join(f"{indent}    {code(each, indent + '    ')},\n" for each in value)
        return f"[\n{inner}{indent}]"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if not isinstance(value, _STRUCTS):
        return repr(value)
    defaults = {field.name: field.default for field in fields(value)}
    derived = (
        {"DimensionCount", "TotalTensorSizeInBytes"} if isinstance(value, DML_BUFFER_TENSOR_DESC) else value.counts
    )
    members = {name: getattr(value, name) for name in defaults if name not in derived}
    given = {name: each for name, each in members.items() if each != defaults[name]}
    name = type(value).__name__
    line = f"{name}({', '.join(f'{key}={code(each)}' for key, each in given.items())})"
    is_plain = "\n" not in line and not any(isinstance(each, _STRUCTS) for each in given.values())
    if is_plain and len(indent + line) <= WIDTH:
        return line
    inner = "".join(f"{indent}    {key}={code(each, indent + '    ')},\n" for key, each in given.items())
    return f"{name}(\n{inner}{indent})"


# Printing
