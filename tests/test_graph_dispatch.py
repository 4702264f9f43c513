"""What is bound to a graph: what fits at a glance, and that everything else is told as where nobody glanced."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC,
    DML_ELEMENT_WISE_EXP_OPERATOR_DESC,
    Device,
    DMLError,
    Graph,
    TensorFlags,
)
from anydml.core.tensor_desc import DML_BUFFER_TENSOR_DESC
from anydml.graph.compile import CompiledGraph
from cases import tensor

X = tensor([2, 3])
Spoil = Callable[[list[Any], list[Any]], Any]


def compiled(is_owned: bool = False) -> CompiledGraph:
    """exp(a) + b"""
    graph = Graph(Device("cpu"))
    a = graph.input(X)
    flags = TensorFlags.OWNED_BY_DML if is_owned else TensorFlags.NONE
    b = graph.input(DML_BUFFER_TENSOR_DESC(DataType=X.DataType, Sizes=X.Sizes, Flags=flags))
    (y,) = graph.operator(DML_ELEMENT_WISE_EXP_OPERATOR_DESC, InputTensor=a)
    return graph.compile(list(graph.operator(DML_ELEMENT_WISE_ADD_OPERATOR_DESC, ATensor=y, BTensor=b)))


def floats(value: float = 0.0) -> np.ndarray:
    return np.full(X.Sizes, value, np.float32)


def put(side: int, number: int, value: Callable[[list[Any]], Any]) -> Spoil:
    def spoil(*sides: list[Any]) -> None:
        sides[side][number] = value(sides[1 - side])

    return spoil


def change(member: str, value: Any) -> Spoil:
    """Of the very array that was bound before."""
    return lambda inputs, _: setattr(inputs[0], member, value)


WRONG: dict[str, Spoil] = {
    "another shape": change("shape", (3, 2)),
    "another type": change("dtype", np.int32),
    "backward": put(0, 0, lambda _: floats()[::-1]),
    "the other byte order": put(0, 0, lambda _: floats().astype(">f4")),
    "few elements": put(0, 0, lambda _: np.zeros(5, np.float32)),
    "objects": put(0, 0, lambda _: np.zeros(X.Sizes, object)),
    "None": put(0, 0, lambda _: None),
    "masked": put(0, 0, lambda _: np.ma.masked_equal(floats(), 0)),
    "one too many": lambda inputs, _: inputs.append(floats()),
    "the output": put(0, 0, lambda outputs: outputs[0]),
    "a part of the output": put(0, 1, lambda outputs: outputs[0].reshape(-1)[:1]),
    "a read-only output": lambda _, outputs: outputs[0].setflags(write=False),
    "an output of another shape": put(1, 0, lambda _: np.zeros((3, 2), np.float32)),
    "no output": put(1, 0, lambda _: None),
}


@pytest.mark.parametrize("spoil", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_as_ever(spoil: Spoil) -> None:
    """Also by a graph that ran on the same arrays before; and then nothing is written."""
    told = []
    for glances in (True, False):
        graph = compiled()
        if not glances:
            graph._fit = None
        inputs: list[Any] = [floats(), floats(1)]
        outputs: list[Any] = [floats()]
        graph.dispatch(inputs, outputs)
        np.testing.assert_array_equal(outputs[0], floats(2))
        y = outputs[0]
        y[...] = 7
        spoil(inputs, outputs)
        with pytest.raises(DMLError) as problem:
            graph.dispatch(inputs, outputs)
        np.testing.assert_array_equal(y, floats(7))
        told.append(str(problem.value))
    assert told[0] == told[1]


class Subclass(np.ndarray):
    pass


RIGHT: dict[str, Callable[[], Any]] = {
    "read-only": lambda: np.frombuffer(floats().tobytes(), np.float32).reshape(X.Sizes),
    "flat": lambda: np.zeros(6, np.float32),
    "bytes": lambda: np.zeros(24, np.uint8),
    "a list": lambda: [[0.0] * 3] * 2,
    "a subclass": lambda: floats().view(Subclass),
    "a buffer": lambda: memoryview(floats()),
}


@pytest.mark.parametrize("given", RIGHT.values(), ids=RIGHT)
def test_what_fits_at_no_glance_is_bound_all_the_same(given: Callable[[], Any]) -> None:
    graph, y = compiled(), floats()
    graph.dispatch([given(), floats(1)], [y])
    np.testing.assert_array_equal(y, floats(2))


def test_what_is_bound_is_not_kept() -> None:
    graph = compiled()
    x, y = floats(), floats()
    before = sys.getrefcount(x)
    graph.dispatch([x, floats(1)], [y])
    graph.dispatch([x, floats(1)], [y])
    assert sys.getrefcount(x) == before
    lives = weakref.ref(x)
    del x
    gc.collect()
    assert lives() is None


def test_an_output_is_not_in_what_is_owned() -> None:
    graph = compiled(is_owned=True)
    persistent = graph.initialise([None, floats(1)])
    y = floats()
    graph.dispatch([floats(), None], [y], persistent=persistent)
    np.testing.assert_array_equal(y, floats(2))
    inside = persistent[256 : 256 + y.nbytes].view(np.float32).reshape(X.Sizes)
    with pytest.raises(DMLError, match=r"\(B7\)"):
        graph.dispatch([floats(), None], [inside], persistent=persistent)
