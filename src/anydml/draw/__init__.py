"""Operators as pictures: tensors as grids of values, the way through them, one output element traced with its numbers.

A picture is SVG text: the same bytes for the same numbers, without scripts, ids or fonts of its own. It stands on a
white card, so that it can be read on a dark page too. Its colours are those of Okabe and Ito, for the colour-blind.

(P1) A picture by name needs an operator that has an example here.
(P2) Arrays are as many as the desc's tensors, None for those left out, and of the sizes that the desc says.
(P3) A file for a picture is named .svg, so that none is written over a model; standard output takes one picture.
(P4) A model is one graph where each dispatch is an operator's, and reads the very bytes that one before it wrote, or
     none that any did.
(P5) A picture of tasks has at most 120 of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

from ..core.errors import error, kind_of, violation
from ..core.packed_array import PackedArray, bytes_for
from ..core.strided_layout import Array, Layout
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, DML_SIZE_2D
from ..device import Device
from ..graph.compile import CompiledGraph
from ..graph.desc import graph_of
from ..operators import ANY_OPERATOR, spec_of
from ..operators.schema import OperatorDesc, OperatorSpec
from ..operators.validate import validate
from . import cumulative, join, pooling
from .boxes import FONT, MUTED, WHITE, Box, placed, stacked, text_line
from .examples import EXAMPLES as EXAMPLES
from .graph import draw_graph as draw_graph
from .parts import Operand, Picture, plain
from .tasks import draw_tasks as draw_tasks
from .text import braces, number


def draw(desc: OperatorDesc, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> str:
    """The picture of one dispatch of an operator.

    Args:
        desc: the desc of an operator. One without a picture of its own gets its tensors as grids.
        inputs: as they were before the dispatch, in header order and of the sizes in the desc; None for what it leaves
            out, not for what is OWNED_BY_DML. Of 4 bits a PackedArray, or its bytes.
        outputs: likewise, as they were after it.

    Returns:
        An SVG document, in ASCII. Of a large tensor it has the first elements and the last.

    Raises:
        DMLError: what :func:`anydml.validate` finds, or (P2).

    >>> from anydml import *
    >>> tensor = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.INT32, Sizes=(3,))
    >>> desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=tensor, OutputTensor=tensor, Axis=0)
    >>> draw(desc, [np.array([1, 2, 3], np.int32)], [np.array([1, 3, 6], np.int32)])[:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    violations = validate(desc)
    if violations:
        raise error(violations)
    operator = spec_of(desc)
    assert operator is not None
    read = _operands(operator.name, "inputs", operator.inputs(desc), inputs)
    written = _operands(operator.name, "outputs", operator.outputs(desc), outputs)
    picture = _PICTURES.get(operator.name, plain)
    return _document(operator, desc, [*read, *written], picture(desc, read, written))


def draw_operator(name: str) -> str:
    """The picture of an operator's small example, run on the device "cpu".

    Args:
        name: the header's name without its prefix: "JOIN".

    Returns:
        An SVG document, in ASCII.

    Raises:
        DMLError: (P1).
    """
    desc, inputs, outputs = _example("draw_operator", name)
    device = Device()
    device.compile_operator(device.create_operator(desc)).dispatch(inputs, outputs)
    return draw(desc, inputs, outputs)


def example_graph(name: str) -> tuple[CompiledGraph, Callable[[], list[float]]]:
    """An operator's small example as a graph on the device "cpu", and what measures its kernel.

    Args:
        name: the header's name without its prefix: "JOIN".

    Raises:
        DMLError: (P1).
    """
    desc, inputs, outputs = _example("example_graph", name)
    device = Device()
    graph = device.compile_graph(graph_of(device.create_operator(desc)))
    return graph, lambda: graph.times(inputs, [each for each in outputs if each is not None])


def _example(caller: str, name: str) -> tuple[OperatorDesc, list[Array | None], list[Array | None]]:
    """The desc of an example, its inputs, and room for its outputs."""
    if name not in EXAMPLES:
        raise _error(caller, "name", kind_of(name), ANY_OPERATOR, "(P1)")
    desc, inputs = EXAMPLES[name]
    operator = spec_of(desc)
    assert operator is not None
    layouts = [None if tensor is None else Layout.of_desc(tensor) for _, tensor in operator.outputs(desc)]
    return desc, list(inputs), [None if each is None else np.empty(each.sizes, each.dtype) for each in layouts]


def _error(operator: str, where: str, found: str, expected: str, rule: str) -> Exception:
    return error([violation(operator, rule, where, found, expected)])


def _operands(
    operator: str,
    where: str,
    tensors: Sequence[tuple[str, DML_BUFFER_TENSOR_DESC | None]],
    arrays: Sequence[Array | None],
) -> list[Operand]:
    """The tensors that are there; rule (P2)."""
    if len(arrays) != len(tensors):
        raise _error(operator, where, f"{len(arrays)} arrays", str(len(tensors)), "(P2)")
    operands = []
    for i, ((label, tensor), array) in enumerate(zip(tensors, arrays, strict=True)):
        array = _elements(tensor, array)
        found = None if array is None else np.shape(array)
        sizes = None if tensor is None else tuple(tensor.Sizes)
        if found != sizes:
            raise _error(operator, f"{where}[{i}]", f"shape {found}", f"{sizes}, the Sizes of {label}", "(P2)")
        if tensor is not None and array is not None:
            caption = (label, f"{tensor.DataType.name} {braces(tensor.Sizes)}")
            operands.append(Operand(label, tuple(tensor.Sizes), array, caption))
    return operands


def _elements(tensor: DML_BUFFER_TENSOR_DESC | None, array: Any) -> Any:
    """The elements of a tensor of 4 bits, which are given packed, or as its bytes; of others as they are."""
    if tensor is None or tensor.DataType.bits != 4:
        return array
    if getattr(array, "dtype", None) == np.uint8 and array.shape == (bytes_for(math.prod(tensor.Sizes)),):
        array = PackedArray(array, tensor.DataType, tensor.Sizes)
    return array.unpack() if isinstance(array, PackedArray) else array


_PICTURES: Mapping[str, Picture] = {
    "JOIN": join.picture,
    "CUMULATIVE_SUMMATION": cumulative.picture,
    "CUMULATIVE_PRODUCT": cumulative.picture,
    "QUANTIZED_LINEAR_AVERAGE_POOLING": pooling.picture,
}


def _document(operator: OperatorSpec, desc: OperatorDesc, operands: Sequence[Operand], boxes: list[Box]) -> str:
    heading = stacked([text_line(operator.name, 20, bold=True), *_attributes(operator, desc)], 4)
    inside = stacked([heading, *boxes], 26)
    width, height = math.ceil(inside.width) + 64, math.ceil(inside.height) + 56
    tensors = "; ".join(" ".join(each.caption) for each in operands)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img" font-family="{FONT}">'
        f"<title>{escape(operator.name)}</title><desc>{escape(tensors)}</desc>"
        f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="12" fill="{WHITE}" stroke="#d0d0d0"/>'
        f"{placed(32, 28, inside.body)}</svg>\n"
    )
    # In ASCII it is valid in whatever encoding a terminal or an editor writes it.
    return svg.encode("ascii", "xmlcharrefreplace").decode()


def _words(value: object) -> str:
    """A member as a picture has it: an enum's or an operator's name, numbers in braces."""
    activation = spec_of(value)
    if activation is not None:
        return activation.name
    if isinstance(value, (DML_SCALE_BIAS, DML_SIZE_2D)):
        return braces([f"{each.name} {_words(getattr(value, each.name))}" for each in fields(value)])
    if isinstance(value, tuple):
        return braces([_words(each) for each in value])
    if isinstance(value, float):
        return number(value)
    return getattr(value, "name", None) or str(value).upper()


def _attributes(operator: OperatorSpec, desc: OperatorDesc) -> list[Box]:
    """The members that are no tensors, in lines of bearable length."""
    lines = [""]
    for name in operator.attribute_names:
        value = getattr(desc, name)
        text = _words(value)
        if lines[-1] and len(lines[-1]) + len(name) + len(text) > 96:
            lines.append("")
        lines[-1] += f"{' · ' if lines[-1] else ''}{name} {text}"
    return [text_line(line, 13, MUTED) for line in lines if line]
