"""Every case on every engine, by every way of running it."""

from __future__ import annotations

import numpy as np
import pytest

import anydml
from cases import Case, all_cases
from harness import ENGINES, Memory, assert_same, bits, compiled, run

CASES = all_cases()
case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
engine = pytest.mark.parametrize("engine", ENGINES)


def check(case: Case, outputs: list[np.ndarray]) -> None:
    for actual, expected in zip(outputs, case.outputs, strict=True):
        if case.function == "join":
            actual, expected = (np.ascontiguousarray(each).view(bits(each)) for each in (actual, expected))
        assert_same(actual, expected)


@case
@engine
@pytest.mark.parametrize("through", ["dispatch", "flat", "table"])
def test_desc(case: Case, engine: str, through: str) -> None:
    check(case, run(engine, case.desc, case.inputs, through))


@case
@engine
def test_function(case: Case, engine: str) -> None:
    call = getattr(anydml, case.function)
    check(case, [call(*case.arguments, **case.options, device=engine)])


@case
@engine
def test_function_out(case: Case, engine: str) -> None:
    """Into memory of the desc's strides."""
    call = getattr(anydml, case.function)
    memory = Memory(case.desc.OutputTensor, 0xA5, engine=engine)
    out = memory.array
    assert call(*case.arguments, **case.options, out=out, device=engine) is out
    check(case, [memory.values])
    memory.assert_only_elements_changed()


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.function.startswith("cumulative")], ids=lambda case: case.id
)
@engine
def test_in_place(case: Case, engine: str) -> None:
    desc = case.desc
    if desc.InputTensor.Strides != desc.OutputTensor.Strides:
        desc = type(desc)(
            **{**{name: getattr(desc, name) for name in desc.__slots__}, "InputTensor": desc.OutputTensor}
        )
    memory = Memory(desc.OutputTensor, 0xA5, case.inputs[0], engine)
    compiled(engine, desc).dispatch([memory.array], [memory.array])
    check(case, [memory.values])
    memory.assert_only_elements_changed()
