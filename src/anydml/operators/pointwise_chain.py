"""A chain of element-wise operators as one: what a graph makes of those whose results nothing else reads.

It is no operator of DirectML's. Every operator in it gives what it gives by itself, rounded to its tensor's type.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core.strided_layout import Array
from .constraints import sizes_of
from .fused_spec import FusedSpec, names_of
from .independence import all_dimensions
from .registry import spec_of
from .schema import OperatorDesc, Tensors, support_table


@dataclass(frozen=True, slots=True)
class ChainStep:
    """An operator of a chain."""

    desc: OperatorDesc
    operands: tuple[int, ...]
    """Numbers of values: the chain's inputs first, then what each operator gives; -1 for an input that its desc leaves
    out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointwiseChain(OperatorDesc):
    """Operators one behind the other, the last of which gives the first output."""

    Inputs: Tensors
    Outputs: Tensors
    links: tuple[ChainStep, ...]
    results: tuple[int, ...]
    """The values that the outputs are."""


def _reference(desc: PointwiseChain, *inputs: Array) -> tuple[Array, ...]:
    values = list(inputs)
    for link in desc.links:
        spec = spec_of(link.desc)
        assert spec is not None
        result = spec.reference(link.desc, *[None if n < 0 else values[n] for n in link.operands])
        assert not isinstance(result, tuple)
        values.append(result)
    return tuple([values[result] for result in desc.results])


POINTWISE_CHAIN = FusedSpec(
    title="ELEMENT_WISE_CHAIN",
    parts=lambda desc: [name for link in desc.links for name in names_of(link.desc)],
    desc=PointwiseChain,
    infer_sizes=lambda desc: {f"Outputs[{i}]": sizes_of(tensor) for i, tensor in enumerate(desc.Outputs)},
    reference=_reference,
    independent=all_dimensions,
    in_place=True,
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        Inputs  | Input array  | 1 to 8 | FLOAT32
        Outputs | Output array | 1 to 8 | FLOAT32
    """),
)
