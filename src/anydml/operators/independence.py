"""Data parallelism: along which dimensions an operator may be cut into parts that are computed apart.

What specifications share of it. A specification tells it as its `independent`; what that means stands at the
:data:`Independence` of ``schema.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from .schema import Independence, OperatorDesc, OperatorSpec, Tensor, labelled


def only(desc: OperatorDesc, dimensions: Collection[int]) -> Independence:
    """That some dimensions are independent, of an operator whose tensors all have the output's DimensionCount."""
    return only_of(_tensors(desc), dimensions)


def all_but(desc: OperatorDesc, axes: Collection[int]) -> Independence:
    """That all dimensions are, but for some axes."""
    tensors = _tensors(desc)
    rank = max(len(tensor.Sizes) for tensor in tensors.values())
    return only_of(tensors, [i for i in range(rank) if i not in axes])


def all_dimensions(desc: OperatorDesc) -> Independence:
    """That all dimensions are."""
    return all_but(desc, ())


def no_dimension(desc: OperatorDesc) -> Independence:
    """That none is, whatever dimensions the tensors have."""
    return {label: (None,) * len(tensor.Sizes) for label, tensor in _tensors(desc).items()}


def only_of(tensors: Mapping[str, Tensor], dimensions: Collection[int]) -> Independence:
    """Likewise of these tensors, by label: each dimension lines up with the output's of its number, but for one of size
    1 that broadcasts."""
    lengths = [max(sizes) for sizes in zip(*(tensor.Sizes for tensor in tensors.values()), strict=True)]
    return {
        label: tuple([i if i in dimensions and size == lengths[i] else None for i, size in enumerate(tensor.Sizes)])
        for label, tensor in tensors.items()
    }


def _tensors(desc: OperatorDesc) -> dict[str, Tensor]:
    """Those that a desc has, by label."""
    members = labelled(desc, desc.__dataclass_fields__)
    return {label: value for label, value in members if isinstance(value, DML_BUFFER_TENSOR_DESC)}


REPEATED: Mapping[str, str] = {"SLICE": "Sizes", "SLICE1": "InputWindowSizes", "SLICE_GRAD": "InputWindowSizes"}
"""Members that have a size of the output for each dimension once more."""


def cut(found: OperatorSpec, desc: OperatorDesc, stated: Independence, sizes: Mapping[int, int]) -> OperatorDesc:
    """The desc of a part.

    Args:
        found: the operator.
        desc: that of the whole.
        stated: what is independent there.
        sizes: the part's along independent dimensions of the output, by their numbers.
    """

    def tensor(label: str, whole: Tensor | None) -> Tensor | None:
        if whole is None:
            return None
        each = zip(stated[label], whole.Sizes, strict=True)
        return DML_BUFFER_TENSOR_DESC(
            DataType=whole.DataType,
            Sizes=[size if number is None else sizes.get(number, size) for number, size in each],
        )

    members: dict[str, Any] = {}
    for name in found.tensors:
        value = getattr(desc, name)
        is_array = isinstance(value, tuple)
        members[name] = (
            [tensor(f"{name}[{i}]", each) for i, each in enumerate(value)] if is_array else tensor(name, value)
        )
    if found.name in REPEATED:
        whole = getattr(desc, REPEATED[found.name])
        members[REPEATED[found.name]] = [sizes.get(number, size) for number, size in enumerate(whole)]
    return replace(desc, **members)
