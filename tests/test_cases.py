"""Every case on every engine, by every way of running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import anydml
from anydml.operators import OPERATORS, spec, spec_of
from cases import Case, all_cases, all_kernels, operator_of, some_of_each
from harness import ENGINES, GPU, Memory, assert_same, bits, compiled, explained, run, units_of
from together import Row, together

CASES = all_cases()
UNPROMISED = ("convolution-padding-adds-nothing",)
"""What GPUs' libraries do otherwise: a tap on padding is a product with 0."""
SHOWN = re.compile(
    r"int\d+-to-(int32|int64|uint64)(-last)?-arg|arg(min|max)-u?int\d+-to-(int32|int64|uint64)|random_generator-large"
)
"""Indices of every type for elements of every type, and hundreds of programs: on a GPU those of UINT32, and several,
show all, and an interpreter is slow."""
KERNELS = all_kernels()


def kernel_of(name: str) -> str | None:
    """What `explain` begins with for the native kernel of an operator, as a pattern; a pointwise row names its
    instruction. None where there is no native kernel."""
    row = spec(name).pointwise
    if name in KERNELS or row is None:
        return KERNELS.get(name)
    opcode = row.native[0] if isinstance(row.native, tuple) else row.native
    assert isinstance(opcode, str), f"{name} needs a line of KERNELS"
    return f"(linear, )?{opcode.lower().replace('_', ' ')}"


def on_every_engine(cases: list[Case], on_gpu: list[Case] | None = None) -> Callable[[Any], Any]:
    """A test for each operator and engine. On a GPU, or rather in an interpreter of its kernels, only some where so
    many are given. The CPU's kernels serve all cases of an operator, or none, as the test below has it."""
    few = {case.id for case in (cases if on_gpu is None else on_gpu)}
    pairs = [
        (case, engine)
        for case in cases
        for engine in ENGINES
        if engine != "cpu" or kernel_of(operator_of(case)) is not None
        if engine != GPU or (case.id not in UNPROMISED and case.id in few and not SHOWN.search(case.id))
    ]
    marks = {"cpu": pytest.mark.native, GPU: pytest.mark.gpu}
    rows = [
        Row(f"{engine}-{operator_of(case)}", case.id, (case, engine), marks.get(engine, ())) for case, engine in pairs
    ]
    return together(("case", "engine"), rows)


@pytest.mark.parametrize("name", OPERATORS)
def test_cases_are_served_by_the_kernels_that_they_are_for(name: str) -> None:
    """So that no case passes unseen on the reference when the CPU's kernels decline it, nor the other way round."""
    pattern = kernel_of(name)
    for case in CASES:
        if type(case.desc) is spec(name).desc:
            engine, kernel = explained(case.desc)
            if pattern is None:
                assert engine == "reference", (case.id, kernel)
            else:
                assert engine == "cpu", (case.id, kernel)
                assert re.match(pattern, kernel), (case.id, kernel)


def check(case: Case, outputs: Sequence[np.ndarray | None], engine: str) -> None:
    for actual, expected in zip(outputs, case.outputs, strict=True):
        if actual is None or expected is None:
            assert actual is expected
            continue
        if case.function == "join":
            actual, expected = (np.ascontiguousarray(each).view(bits(each)) for each in (actual, expected))
        assert_same(
            actual, expected, units_of(case.desc, "cpu" if engine == "cpu" else GPU) if engine != "reference" else 0
        )


@on_every_engine(CASES)
def test_desc(case: Case, engine: str) -> None:
    check(case, run(engine, case.desc, case.inputs, "dispatch"), engine)


@on_every_engine(some_of_each(CASES), some_of_each(CASES, 2))
@pytest.mark.parametrize("through", ["flat", "table"])
def test_desc_bound_otherwise(case: Case, engine: str, through: str) -> None:
    """By flat buffers, and by binding tables."""
    check(case, run(engine, case.desc, case.inputs, through), engine)


@on_every_engine([case for case in CASES if case.function])
def test_function(case: Case, engine: str) -> None:
    call = getattr(anydml, case.function)
    check(case, [call(*case.arguments, **case.options, device=engine)], engine)


@on_every_engine([case for case in CASES if case.function])
def test_function_out(case: Case, engine: str) -> None:
    """Into memory of the desc's strides."""
    call = getattr(anydml, case.function)
    memory = Memory(case.desc.OutputTensor, 0xA5, engine=engine)
    out = memory.array
    assert call(*case.arguments, **case.options, out=out, device=engine) is out
    check(case, [memory.values], engine)
    memory.assert_only_elements_changed()


@on_every_engine([case for case in CASES if spec_of(case.desc).in_place])  # type: ignore[union-attr]
def test_in_place(case: Case, engine: str) -> None:
    """Each output over the input of its number, laid out as the output is."""
    spec = spec_of(case.desc)
    assert spec is not None
    outputs = [output for _, output in spec.outputs(case.desc)]
    names = [name for name, _ in spec.inputs(case.desc)]
    desc = replace(case.desc, **dict(zip(names, outputs, strict=False)))
    inputs = zip(spec.inputs(desc), case.inputs, strict=True)
    memories = [Memory(tensor, 0xA5, x, engine) for (_, tensor), x in inputs if tensor is not None]
    over = memories[: len(outputs)]
    compiled(engine, desc).dispatch([each.array for each in memories], [each.array for each in over])
    check(case, [each.values for each in over], engine)
    for each in over:
        each.assert_only_elements_changed()
