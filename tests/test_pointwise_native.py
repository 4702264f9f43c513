"""That the native program serves every pointwise operator, of every type that its support table has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from anydml import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, Device, RoundingMode
from anydml.core.enums import IsInfinityMode
from anydml.operators import Trait, spec, with_trait

SIZES = (2, 3)
SCALE_BIAS = DML_SCALE_BIAS(Scale=0.5, Bias=1)
ONE = {
    "FLOAT": 1.0,
    "SCALAR": 1,
    "OptionalActivation": None,
    "enums.RoundingMode": RoundingMode.HALVES_TO_NEAREST_EVEN,
    "enums.IsInfinityMode": IsInfinityMode.EITHER,
}


def descs(name: str) -> Iterator[tuple[str, Any]]:
    """Descs of an operator: each type of each group of tensors that have one, with and without what is optional."""
    found = spec(name)
    row = found.pointwise
    grouped = {tensor for group in row.groups for tensor in group}
    groups = [*row.groups, *((tensor,) for tensor in row.tensors if tensor not in grouped)]
    allowed = [
        [each for each in found.tensors[group[0]].data_types if all(each in found.tensors[t].data_types for t in group)]
        for group in groups
    ]
    optional = [tensor for tensor, line in found.tensors.items() if "Optional" in line.kind]
    for types in product(*allowed):
        of = {tensor: data_type for group, data_type in zip(groups, types, strict=True) for tensor in group}
        sizes = {tensor: (1, 1) if tensor in row.scalars else SIZES for tensor in row.tensors}
        tensors = {each: DML_BUFFER_TENSOR_DESC(DataType=of[each], Sizes=sizes[each]) for each in row.tensors}
        members: dict[str, Any] = {each: ONE[kind] for each, kind in found.members.items() if kind in ONE}
        if "MinMaxDataType" in found.members:
            members["MinMaxDataType"] = of[row.inputs[0]]
        for left_out, scaled in product({(), tuple(optional)}, {False, row.scale_bias}):
            given = {**tensors, **members, **dict.fromkeys(left_out)}
            if scaled:
                given["ScaleBias"] = SCALE_BIAS
            label = "-".join([each.name for each in types] + ["scaled"] * scaled + ["without"] * bool(left_out))
            yield label, found.desc(**given)


@pytest.mark.parametrize("name", with_trait(Trait.POINTWISE))
def test_all_types_are_native(name: str) -> None:
    device, count = Device("cpu"), 0
    for label, desc in descs(name):
        try:
            operator = device.create_operator(desc)
        except ValueError:  # types that only go together
            continue
        engine = device.compile_operator(operator).explain()
        assert "is served by cpu" in engine, (label, engine)
        count += 1
    assert count >= len(spec(name).tensors[spec(name).pointwise.inputs[0]].data_types), "each type of the first input"


def test_types_that_only_go_together_are_few() -> None:
    """Of what the rules leave out above: the scale of QUANTIZE_LINEAR has the type of what it scales."""
    device = Device("reference")
    refused = set()
    for name in with_trait(Trait.POINTWISE):
        for _, desc in descs(name):
            try:
                device.create_operator(desc)
            except ValueError:
                refused.add(name)
    assert refused == {"ELEMENT_WISE_QUANTIZE_LINEAR"}
