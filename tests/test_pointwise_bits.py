"""Pointwise operators, of all types that they take: the same bits on every instruction set and number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from anydml import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, Device, TensorDataType, _native, validate
from anydml.core.enums import PREFIXES
from anydml.core.strided_layout import DTYPES, Array
from anydml.operators import Trait, spec, with_trait
from anydml.operators.pointwise import Pointwise
from anydml.operators.schema import OperatorDesc
from harness import bits, explained

pytestmark = [pytest.mark.native, pytest.mark.slow]

SETS = _native.build_info()["instruction_sets"]
THREADS = (1, 2, 3)
WORK = 2 << 20
"""Bytes read and written, enough for all of the threads; rows are odd, so that each set has a rest of them."""
DEVICE = Device("cpu")
VALUES: dict[str, tuple[Any, ...]] = {
    "FLOAT": (0.75,),
    "Min": (1,),
    "Max": (5,),
    "OptionalScaleBias": (None, DML_SCALE_BIAS(Scale=0.5, Bias=0.25)),
    "OptionalActivation": (None, spec("ACTIVATION_SIGMOID").desc(), spec("ACTIVATION_LEAKY_RELU").desc(Alpha=0.1)),
    **{f"enums.{enum.__name__}": tuple(enum) for enum in PREFIXES if enum is not TensorDataType},
}
"""Of members, by name or by type."""


def types_of(row: Pointwise) -> Iterator[dict[str, TensorDataType]]:
    """All types of the tensors by the newest table, tensors of a group alike."""
    groups = list(dict.fromkeys(row.group_of(tensor) or (tensor,) for tensor in row.tensors))
    for types in product(*(row.table.newest[group[0]].data_types for group in groups)):
        yield {tensor: kind for group, kind in zip(groups, types, strict=True) for tensor in group}


def descs_of(name: str) -> Iterator[OperatorDesc]:
    """An operator with all types, and all values of each member beside the first ones of the others."""
    found = spec(name)
    assert found.pointwise is not None
    for types in types_of(found.pointwise):
        # A power takes as long as a hundred other operators.
        work = WORK // 8 if name == "ELEMENT_WISE_POW" else WORK
        rows = max(work // sum(kind.bits // 8 for kind in types.values()) // 10_001, 2)
        sizes = (rows, 10_001)
        tensors = {
            tensor: DML_BUFFER_TENSOR_DESC(DataType=kind, Sizes=(1, 1) if tensor in found.pointwise.scalars else sizes)
            for tensor, kind in types.items()
        }
        own = {"enums.TensorDataType": (types[found.pointwise.output],)}
        choices = {
            member: VALUES.get(member) or (VALUES | own)[kind]
            for member, kind in found.members.items()
            if member not in tensors
        }
        first = {member: values[0] for member, values in choices.items()}
        members = [first, *(first | {member: value} for member in choices for value in choices[member][1:])]
        for desc in [found.desc(**tensors, **each) for each in members]:
            if not validate(desc):
                yield desc


def values(tensor: DML_BUFFER_TENSOR_DESC, rng: np.random.Generator) -> Array:
    """Any bits in half of the elements, and numbers of ordinary size."""
    dtype, count = DTYPES[tensor.DataType], int(np.prod(tensor.Sizes))
    any_bits = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
    ordinary = rng.normal(0, 4, count) if dtype.kind == "f" else rng.integers(0, 8, count)
    return np.where(rng.random(count) < 0.5, any_bits, ordinary.astype(dtype)).reshape(tensor.Sizes)


def computed(desc: OperatorDesc, inputs: list[Array], output: DML_BUFFER_TENSOR_DESC) -> Array:
    y = np.empty(output.Sizes, DTYPES[output.DataType])
    DEVICE.compile_operator(DEVICE.create_operator(desc)).dispatch(inputs, [y])
    if y.dtype.kind == "f":
        y[np.isnan(y)] = np.nan  # of which any bits are one
    return y.view(bits(y))


@pytest.mark.parametrize("name", with_trait(Trait.POINTWISE))
def test_same_bits_for_every_type(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found, compared = np.random.default_rng(7), spec(name), 0
    tensors: list[DML_BUFFER_TENSOR_DESC] = []
    inputs: list[Array] = []
    pools = ThreadpoolController()  # looks for them in all that is loaded, which takes longer than a dispatch
    for desc in descs_of(name):
        if explained(desc)[0] != "cpu":
            continue
        before, tensors = tensors, [tensor for _, tensor in found.inputs(desc) if tensor is not None]
        if tensors != before:
            inputs = [values(tensor, rng) for tensor in tensors]
        ((_, output),) = found.outputs(desc)
        assert output is not None
        first: Array | None = None
        for instruction_set, threads in [*product(SETS[:1], THREADS), *product(SETS[1:], THREADS[1:2])]:
            monkeypatch.setenv("ANYDML_CPU", instruction_set)
            with pools.limit(limits=threads, user_api="openmp"):
                y = computed(desc, inputs, output)
            first = y if first is None else first
            assert np.array_equal(y, first), (instruction_set, threads, desc)
        compared += 1
    assert compared > 0
