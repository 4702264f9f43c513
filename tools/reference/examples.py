"""The small example of an operator as a session of Python's, with what it prints: it is run to be written."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from anydml.cli import pages
from anydml.core.strided_layout import Layout
from anydml.draw import EXAMPLES
from anydml.operators.schema import OperatorSpec


def as_session(found: OperatorSpec) -> str:
    """The desc, its arrays, a dispatch, and the outputs after it."""
    desc, inputs = EXAMPLES[found.name]
    sides: dict[str, list[str]] = {"inputs": [], "outputs": []}
    lines = ["import numpy as np", "from anydml import *", f"desc = {pages.code(desc)}"]
    for (label, _), x in zip(found.inputs(desc), inputs, strict=True):
        name = _variable(label)
        if x is not None:
            lines.append(_assignment(name, np.asarray(x)))
        sides["inputs"].append("None" if x is None else name)
    for label, tensor in found.outputs(desc):
        name = _variable(label)
        if tensor is not None:
            layout = Layout.of_desc(tensor)
            lines.append(f"{name} = np.zeros({tuple(layout.sizes)}, np.{layout.dtype.name})")
        sides["outputs"].append("None" if tensor is None else name)
    read, written = (f"[{', '.join(names)}]" for names in sides.values())
    lines += [
        'device = Device("cpu")',
        "compiled = device.compile_operator(device.create_operator(desc))",
        f"compiled.dispatch({read}, {written})",
        *(name for name in sides["outputs"] if name != "None"),
    ]
    return session(lines)


def session(statements: list[str]) -> str:
    """Statements as they are typed, and what each prints."""
    names: dict[str, Any] = {}
    return "\n".join(line for each in statements for line in _typed(each, names))


def _typed(statement: str, names: dict[str, Any]) -> Iterator[str]:
    first, *others = statement.splitlines()
    yield f">>> {first}"
    yield from (f"... {other}" for other in others)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Interactive(ast.parse(statement).body), "<example>", "single"), names)
    yield from printed.getvalue().rstrip("\n").splitlines()


def _variable(label: str) -> str:
    """``InputTensors[0]`` as a name: input_tensors_0."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", label)
    return re.sub(r"\W+", "_", words).strip("_").lower()


def _assignment(name: str, x: np.ndarray) -> str:
    """An array as one writes it, in lines of its rows."""
    start = f"{name} = np.array("
    body = np.array2string(x, separator=", ", threshold=10**6, max_line_width=96, floatmode="unique", prefix=start)
    body = re.sub(r" +(?=[,\]])|(?<=\[) +", "", body)
    body = re.sub(r"\b(inf|nan)\b", r"np.\1", body)
    return f"{start}{body}, np.{x.dtype.name})"
