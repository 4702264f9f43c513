"""Runs of pieces: what they are bound to, what they give, and what is then known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ...core.errors import error, violation
from ...core.packed_array import PackedArray, as_ml_dtypes
from . import host
from .context import NotLowered
from .node import Node
from .trace import Piece, Rest, no_memory
from .values import Held, Value


def type_of(key: str, value: Any) -> Value:
    if value is None:
        return None
    if isinstance(value, list):
        return [type_of(f"{key}[{i}]", each) for i, each in enumerate(value)]
    if value.dtype.kind in "OUST":
        return value
    return Held(key, tuple(value.shape), np.dtype(value.dtype))


def key_of(value: Value) -> Hashable:
    """What tells values apart: types and shapes, and the elements of what is known."""
    if isinstance(value, list):
        return tuple(map(key_of, value))
    if isinstance(value, np.ndarray):
        elements = tuple(value.ravel().tolist()) if value.dtype.kind in "OUST" else value.tobytes()
        return value.dtype.str, value.shape, elements
    return None if value is None else (value.dtype, value.shape)


def with_known(value: Value, known: Mapping[str, Any]) -> Value:
    if isinstance(value, list):
        return [with_known(each, known) for each in value]
    return known.get(value.key, value) if isinstance(value, Held) else value


def on_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.numpy()


def bound_to(piece: Piece, held: Mapping[str, Any]) -> list[Any]:
    """What the inputs of a piece's graph are bound to."""
    arrays = [held[key] for key in piece.reads]
    return [
        each if each.shape == shape else each.reshape(shape) for each, shape in zip(arrays, piece.shapes, strict=True)
    ] + piece.weights


def _lies_packed(array: Any) -> bool:
    """Whether an array's bytes are a tensor's, as those of 4 bits, a byte each, are not."""
    return type(array) is np.ndarray and array.flags.carray and array.dtype.kind != "V"


def _given_by(piece: Piece, held: Mapping[str, Any]) -> list[Any]:
    """What a piece's graph computes."""
    compiled = piece.compiled
    assert compiled is not None
    given = bound_to(piece, held)
    if not piece.weights and all(_lies_packed(each) for each in given):
        # Feeds were checked, and what a piece has computed lies as the next one reads it.
        found = compiled.run_packed(given)
        if found is not None:
            return found
    # What a device computes stays there until it is asked for.
    memory = compiled.device.memory
    called = compiled(*[memory.to_device(each) for each in given])
    return called if isinstance(called, list) else [called]


def dispatch(piece: Piece, held: dict[str, Any]) -> None:
    """Runs a piece; what it gives is held."""
    if piece.compiled is None:
        return
    try:
        given = _given_by(piece, held)
    except MemoryError as problem:
        raise no_memory(problem) from problem
    for (key, shape), written in zip(piece.writes, given, strict=True):
        if isinstance(written, PackedArray):
            array = as_ml_dtypes(PackedArray(on_host(written.data), written.data_type, written.shape))
        else:
            array = written
        held[key] = array if array.shape == shape or tuple(array.shape) == shape else array.reshape(shape)
    for key, (count, axis) in piece.counts.items():
        whole = on_host(held[key])
        held[key] = whole[(slice(None),) * axis + (slice(int(np.ravel(on_host(held[count]))[0])),)]
    broken = [each for key, each in piece.demands.items() if not np.all(on_host(held[key]))]
    if broken:
        raise error(
            violation("", "(N4)", "", each.found, each.expected, place=f"node {each.label!r}") for each in broken
        )


def run_step(rest: Rest, node: Node, held: dict[str, Any]) -> None:
    """Runs a node by another runtime."""

    def array(name: str) -> Any:
        return resolved(rest.values[name], held) if name else None

    captured = {name: array(name) for name in node.reads() - set(node.inputs)}
    names = [name for name in node.outputs if name]
    try:
        found = dict(zip(names, host.computed(node, [array(name) for name in node.inputs], captured), strict=True))
    except (NotLowered, LookupError, TypeError, ValueError) as problem:
        said = " ".join(str(problem).split())[:600]
        place, expected = f"node {node.label!r}", f"what {host.RUNTIMES} computes"
        raise error([violation(node.op, "(N2)", "", said, expected, place=place)]) from problem
    for name, value in found.items():
        held[name] = value
        if isinstance(value, list):
            held |= {f"{name}[{i}]": each for i, each in enumerate(value)}


def resolved(value: Value, held: Mapping[str, Any]) -> Any:
    """A value in the CPU's memory."""
    if isinstance(value, list):
        return [resolved(each, held) for each in value]
    return on_host(held[value.key]) if isinstance(value, Held) else value


def where_it_is(value: Value, held: Mapping[str, Any]) -> Any:
    """A value in whatever memory it was computed."""
    if isinstance(value, list):
        return [where_it_is(each, held) for each in value]
    return held[value.key] if isinstance(value, Held) else value
