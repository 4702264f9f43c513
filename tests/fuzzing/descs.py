"""Descs: what becomes of good ones when members are exchanged, and that engines agree on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from random import Random
from typing import Any

import numpy as np

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_SCALE_BIAS,
    DML_SIZE_2D,
    CompiledOperator,
    Device,
    FeatureLevel,
    validate,
)
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from anydml.operators.schema import OperatorDesc
from fuzzing.common import ENGINES, check_violation, expect, junk, note, number, outcome
from fuzzing.drawing import any_good_desc
from harness import units_of, within


def members_of(desc: Any) -> dict[str, Any]:
    return {field.name: getattr(desc, field.name) for field in fields(desc)}


DERIVED = (
    "TotalTensorSizeInBytes",
    "DimensionCount",
    "InputCount",
    "OutputCount",
    "AxisCount",
    "ChannelCount",
    "ActivationDescCount",
)


def mutated_number(random: Random, value: Any) -> Any:
    if type(value) is int and random.random() < 0.5:
        return value + random.choice([-1, 1, 2, 2**32])
    return number(random) if random.random() < 0.7 else junk(random)


def mutated(random: Random, value: Any) -> Any:
    """The value with something else in one place, or another value."""
    if isinstance(value, (DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, DML_SIZE_2D, OperatorDesc)) and random.random() < 0.9:
        members = members_of(value)
        name = random.choice(list(members))
        members[name] = mutated(random, members[name])
        for derived in DERIVED:
            if derived in members and derived != name and random.random() < 0.7:
                members[derived] = None
        return type(value)(**members)
    if isinstance(value, tuple) and value and random.random() < 0.8:
        items = list(value)
        i = random.randrange(len(items))
        if random.random() < 0.2:
            del items[i]
        elif random.random() < 0.2:
            items.insert(i, items[i])
        else:
            items[i] = mutated(random, items[i])
        return items
    if isinstance(value, int):
        return mutated_number(random, value)
    return junk(random)


def elements(desc: OperatorDesc) -> int:
    found = spec_of(desc)
    assert found is not None
    tensors = [tensor for _, tensor in [*found.inputs(desc), *found.outputs(desc)] if tensor is not None]
    return sum(int(np.prod([float(size) for size in each.Sizes])) for each in tensors) + sum(
        (each.TotalTensorSizeInBytes or 0) for each in tensors
    )


def fill(random: Random, layout: Layout, label: str) -> np.ndarray:
    """Values whose sums and products are exact, so that engines have to agree; of indices most that are right."""
    choices: list[float]
    if "Indices" in label:
        choices = [0] if random.random() < 0.9 else [0, 1, 2, np.iinfo(layout.dtype).max]
        choices += [-1] if layout.dtype.kind == "i" else []
    elif "Scale" in label:
        choices = [1, 1, 0.5, 0.1, 3, 1e-3] + [0, -1, float("nan")] * (random.random() < 0.05)
    elif label == "SequenceLengthsTensor":
        choices = [0, 1, 1] + [2, 3, 2**32 - 1] * (random.random() < 0.5)
    elif layout.dtype.kind == "f":
        choices = [0, 1, 1, -1, 2, 0.5]
        choices += [float("inf"), float("nan")] if random.random() < 0.1 else []
    else:
        limits = np.iinfo(layout.dtype)
        choices = [0, 1, 2, 3, limits.min, limits.max, limits.max // 3]
    size = int(np.prod(layout.sizes))
    return np.array(random.choices(choices, k=size), layout.dtype).reshape(layout.sizes)


def run_desc(random: Random, desc: OperatorDesc) -> None:
    """Both engines do the same with a desc that the validator has accepted."""
    found = spec_of(desc)
    assert found is not None
    memories: list[np.ndarray | None] = []
    for label, tensor in found.inputs(desc):
        memory = None
        if tensor is not None:
            layout = Layout.of_desc(tensor)
            memory = np.full(layout.bounds()[1], 0xA5, np.uint8)
            layout.view(memory)[...] = fill(random, layout, label)
        memories.append(memory)
    outputs = [None if tensor is None else Layout.of_desc(tensor) for _, tensor in found.outputs(desc)]
    owned = [tensor is not None and bool(tensor.Flags) for _, tensor in found.inputs(desc)]
    seen = []
    for engine in ENGINES:
        device = Device(engine)
        operator = device.compile_operator(device.create_operator(desc))
        written = [None if each is None else np.full(each.bounds()[1] + 16, 0x5A, np.uint8) for each in outputs]

        def dispatch(operator: CompiledOperator = operator, written: Sequence[Any] = written) -> None:
            persistent = None
            if any(owned):
                bound = [given if own else None for given, own in zip(memories, owned, strict=True)]
                persistent = operator.initialise(bound)
            inputs = [None if own else given for given, own in zip(memories, owned, strict=True)]
            operator.dispatch(inputs, written, persistent=persistent)

        before = [None if given is None else given.copy() for given in memories]
        result = outcome(dispatch)
        for given, kept in zip(memories, before, strict=True):
            expect(given is None or bytes(given) == bytes(kept), engine, "wrote to an input")  # type: ignore[arg-type]
        values = []
        for layout, memory in zip(outputs, written, strict=True):
            if layout is None or memory is None:
                continue
            values.append(layout.view(memory).copy())
            expected = np.full_like(memory, 0x5A)
            if result.rules is None:
                layout.view(expected)[...] = values[-1]
            expect(bytes(expected) == bytes(memory), engine, "wrote into gaps, or refused and wrote:", result.rules)
        expect(all(rule[1] == "V" for rule, _ in result.rules or ()), engine, "refused", result.rules)
        seen.append((result.rules, values))
    (rules, first), (other_rules, second) = seen
    for one, other in zip(first, second, strict=True):
        same_results(desc, rules, one, other_rules, other, units_of(desc))


def same_results(
    what: object, rules: Any, values: np.ndarray, other_rules: Any, other_values: np.ndarray, units: int = 0
) -> None:
    expect(rules == other_rules, "engines refuse differently:", rules, other_rules, what)
    operator = what[0] if isinstance(what, tuple) else what
    if values.dtype.kind == "f" and is_of_sums_in_singles(operator):
        if _multiplies_errors(operator):
            return None
        near = {"rtol": 1e-2, "atol": 1e-2} if values.dtype == np.float16 else {"rtol": 1e-4, "atol": 1e-5}
        same = np.allclose(other_values.astype(float), values.astype(float), **near, equal_nan=True)
        return expect(same, "engines are far apart:", values.tolist(), other_values.tolist(), what)
    same = np.array_equal(within(units, other_values, values), values, equal_nan=values.dtype.kind == "f")
    expect(same, "engines differ:", values.tolist(), other_values.tolist(), what)


_RECURRENT = ("RNN", "LSTM", "GRU")


def is_of_sums_in_singles(what: Any) -> bool:
    """Whether it is an operator, or a function's name, whose exponentials are of sums in the engine's own precision."""
    name = what.upper() if isinstance(what, str) else getattr(spec_of(what), "name", "")
    return name.startswith("MULTIHEAD_ATTENTION") or name in _RECURRENT


def _multiplies_errors(what: Any) -> bool:
    """Whether an activation may make anything of a sum's last bit, and so of what comes after it."""
    activations = getattr(what, "ActivationDescs", None)
    if activations is None:
        return isinstance(what, str) and what.upper() in _RECURRENT
    numbers = [getattr(each, member, 1) for each in activations for member in ("Alpha", "Beta", "Gamma")]
    return not all(abs(number) <= 2 for number in numbers)


def any_level(random: Random) -> FeatureLevel:
    return FeatureLevel.LEVEL_6_4 if random.random() < 0.7 else random.choice(list(FeatureLevel))


def validator(random: Random) -> None:
    desc: Any = any_good_desc(random)
    for _ in range(random.choice([0, 0, 1, 1, 1, 2])):
        desc = mutated(random, desc)
    note(desc)
    level = any_level(random)
    strict = random.random() < 0.3
    violations = validate(desc, level, strict)
    for violation in violations:
        check_violation(violation)
    refusal = outcome(lambda: Device("reference", level, strict).create_operator(desc))
    expect((refusal.rules is None) == (not violations), "validate and create_operator differ:", refusal.rules)
    if not violations and level == FeatureLevel.LEVEL_6_4 and elements(desc) < 20_000:
        run_desc(random, desc)
