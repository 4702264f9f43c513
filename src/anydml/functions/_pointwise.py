"""Functions of pointwise operators, made of their rows: signature, docstring and body follow from what a row says.

A family's file writes out the functions that choose between operators, and calls :func:`functions_of` for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from importlib import import_module
from inspect import cleandoc
from textwrap import fill, indent
from typing import Any

import numpy as np

from ..core.enums import TensorDataType
from ..core.errors import listing
from ..core.strided_layout import DTYPES
from ..operators import OPERATORS
from ..operators.pointwise import Pointwise
from . import FUNCTIONS
from ._apply import apply, broadcast_all
from ._documentation import documented
from ._messages import argument_of
from ._names import refuse_unknown
from ._truth_values import type_of_truth


def functions_of(family: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """The functions of a family's rows that its file does not write out itself.

    Args:
        family: the family's name in the table of operators.
        namespace: the file's globals, which the functions belong to.
    """
    specs = import_module(f"anydml.operators.specs.{family}")
    namespace |= {each.__name__: each for each in (apply, broadcast_all, refuse_unknown, type_of_truth)}
    made = {}
    for name, op in OPERATORS.items():
        row = getattr(specs, name, None) if op.family == FUNCTIONS[op.function] == family else None
        if isinstance(row, Pointwise) and op.function not in namespace:
            made[op.function] = _function(name, op.function, row, namespace)
    return made


def signature_of(row: Pointwise) -> str:
    """The parameters of a row's function: inputs, members with their defaults, and by keyword what all have."""
    others = [member for member in row.members if member not in row.tensors]
    operand = "Operand" if len(row.inputs) == 1 else "Operand | float"
    parameters = [f"{argument_of(each)}: {operand}" for each in row.inputs]
    defaults = {**row.typical, **row.defaults}
    for member in others:
        default = f" = {_spelt(defaults[member])}" if member in defaults else ""
        parameters.append(f"{argument_of(member)}: {row.annotations.get(member, 'float')}{default}")
    scale_bias = ["scale_bias: DML_SCALE_BIAS | None = None"] if row.scale_bias else []
    return ", ".join([*parameters, "*", *scale_bias, "out: Output | None = None", "device: Device | str | None = None"])


def _spelt(default: Any) -> str:
    """A default as Python has it."""
    return f"{type(default).__name__}.{default.name}" if isinstance(default, Enum) else repr(default)


def _function(operator: str, function: str, row: Pointwise, namespace: dict[str, Any]) -> Any:
    members = [*row.inputs, *(member for member in row.members if member not in row.tensors)]
    given = [f"{member}={argument_of(member)}" for member in members]
    given += ["ScaleBias=scale_bias"] if row.scale_bias else []
    given += ["spread=broadcast_all"] if len(row.inputs) > 1 else []
    given += [] if any(row.group_of(row.output)) else ["OutputTensor=type_of_truth(out)"]
    lines = [
        "from __future__ import annotations",
        f"def {function}({signature_of(row)}, **others: Any) -> Result:",
        f"    if others: refuse_unknown({function}, {operator!r}, others)",
        f"    return apply({operator!r}, out, device, {', '.join(given)})",
    ]
    own: dict[str, Any] = {type(each).__name__: type(each) for each in row.defaults.values() if isinstance(each, Enum)}
    exec("\n".join(lines), namespace, own)
    made = own[function]
    made.__doc__ = _docstring(row)
    return documented(operator)(made)


def _docstring(row: Pointwise) -> str:
    def words(text: str) -> str:
        """Members as the function calls them."""
        for member in row.members:
            text = re.sub(rf"\b{member}\b", argument_of(member), text)
        return text

    first, _, rest = row.summary.partition(". ")
    meanings = row.meanings()
    newest = row.table.newest
    types = type_names(newest[row.inputs[0]].data_types)
    types += ", or of truth values" * (bool(row.truth) and TensorDataType.UINT8 in newest[row.inputs[0]].data_types)
    inputs = [f"an array or an expression of {types}"]
    if len(row.inputs) > 1:
        same = row.inputs[1] in row.group_of(row.inputs[0])
        inputs[0] += ", or a number beside one"
        inputs.append(f"likewise, of {'the same type' if same else 'any of these types'}; both broadcast as NumPy's do")
    arguments = dict(zip(map(argument_of, row.inputs), [f"{each}." for each in inputs], strict=True))
    arguments |= {argument_of(each): words(meanings[each]) for each in row.members if each not in row.tensors}
    if row.scale_bias:
        arguments["scale_bias"] = "a DML_SCALE_BIAS, applied to each element first; none where None."
    if not row.in_place:
        arguments["out"] = "where to write, of any strides; no memory shared with operands. Returned."
    like = f"An array like `{argument_of(row.inputs[0])}`"
    returned = f"{like}, of its type and {'broadcast ' * (len(row.inputs) > 1)}shape."
    if row.truth == "made":
        of_operands = ", as are those of uint32 operands" * any(row.group_of(row.output))
        returned = f"{like}, of truth values; in an `out` of uint8 or uint32 they are 0 or 1{of_operands}."
    sections = [
        f"{words(first).rstrip('.')}.",
        *([fill(words(rest), 112)] if rest else []),
        "Args:\n" + "\n".join(map(_argument, arguments.items())),
        f"Returns:\n{fill(returned, 112, initial_indent='    ', subsequent_indent='    ')}",
        cleandoc(row.doctest),
    ]
    return indent("\n\n".join(sections), "    ")


def _argument(argument: tuple[str, str]) -> str:
    return fill(f"    {': '.join(argument)}", 112, subsequent_indent=" " * 8)


_INTEGERS = {data_type for data_type, dtype in DTYPES.items() if dtype.kind in "iu"}
_GROUPS = {
    "an integer type": _INTEGERS,
    "an integer type of at most 32 bits": {each for each in _INTEGERS if DTYPES[each].itemsize < 8},
    "a signed integer type": {each for each in _INTEGERS if DTYPES[each].kind == "i"},
}


def type_names(data_types: Collection[TensorDataType]) -> str:
    """Data types in NumPy's words: ``float32, float16 or an integer type``."""
    integers = set(data_types) & _INTEGERS
    group = next((name for name, types in _GROUPS.items() if types == integers), "")
    names = [np.dtype(DTYPES[each]).name for each in data_types if each not in integers or not group]
    return listing([*names, group] if group else names)
