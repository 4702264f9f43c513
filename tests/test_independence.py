"""Which dimensions are independent: on slices the reference gives slices of what it gives on the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from anydml import DML_BUFFER_TENSOR_DESC, Device, PackedArray
from anydml.core.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform
from anydml.core.strided_layout import Layout
from anydml.operators import OPERATORS, spec, spec_of
from anydml.operators.independence import all_dimensions, cut
from anydml.operators.schema import Independence, OperatorDesc, OperatorSpec
from cases import Case, all_cases, operator_of, tensor, tensor_of
from together import Row, together


def _values(*sizes: int) -> np.ndarray:
    return np.random.default_rng(len(sizes)).integers(-8, 8, sizes).astype(np.float32)


def _case(name: str, operator: str, tensors: dict[str, np.ndarray | tuple[int, ...]], **members: Any) -> Case:
    """A case whose outputs, tensors of these sizes, the reference gives; its inputs are arrays."""
    found = spec(operator)
    types = {"OutputIndicesTensor": "UINT32"}
    descs = {
        label: tensor(each, types.get(label, "FLOAT32")) if isinstance(each, tuple) else tensor_of(each)
        for label, each in tensors.items()
    }
    desc = found.desc(**descs, **members)
    inputs = [tensors.get(label) for label, _ in found.inputs(desc)]
    return Case(name, desc, [each for each in inputs if not isinstance(each, tuple)], ())


def _pooling(operator: str, with_indices: bool = False, **members: Any) -> Case:
    outputs = dict.fromkeys(("OutputTensor", *(["OutputIndicesTensor"] if with_indices else [])), (2, 3, 2, 3))
    pairs = {"Strides": (2, 1), "WindowSize": (2, 2), "StartPadding": (0, 0), "EndPadding": (0, 0)}
    name = f"{operator}{' with indices' if with_indices else ''}"
    return _case(name, operator, {"InputTensor": _values(2, 3, 4, 4), **outputs}, **pairs, **members)


_GEMM = {"TransA": MatrixTransform.NONE, "TransB": MatrixTransform.NONE, "Alpha": 1, "Beta": 1}
_FUSED_SOFTMAX = _case(
    "GEMM with softmax",
    "GEMM",
    {"ATensor": _values(3, 4), "BTensor": _values(4, 5), "OutputTensor": (3, 5)},
    **_GEMM,
    FusedActivation=spec("ACTIVATION_SOFTMAX").desc(),
)
_WITH_INDICES = _pooling("MAX_POOLING1", with_indices=True)
_SUMS = _case("sums", "CUMULATIVE_SUMMATION", {"InputTensor": _values(3, 4), "OutputTensor": (3, 4)}, Axis=1)
CASES = [
    *all_cases(),
    _pooling("LP_POOLING", P=2),
    _pooling("MAX_POOLING"),
    _pooling("MAX_POOLING1"),
    _pooling("MAX_POOLING2", Dilations=(1, 1)),
    _WITH_INDICES,
    _case(
        "SLICE1 of columns",
        "SLICE1",
        {"InputTensor": _values(3, 4, 5), "OutputTensor": (3, 4, 2)},
        InputWindowOffsets=(0, 0, 1),
        InputWindowSizes=(3, 4, 3),
        InputWindowStrides=(1, -1, 2),
    ),
    _FUSED_SOFTMAX,
    _case(
        "GEMM with softmax along rows",
        "GEMM",
        {"ATensor": _values(4, 3), "BTensor": _values(4, 5), "CTensor": _values(3, 5), "OutputTensor": (3, 5)},
        **{**_GEMM, "TransA": MatrixTransform.TRANSPOSE},
        FusedActivation=spec("ACTIVATION_SOFTMAX1").desc(Axes=(0,)),
    ),
    *(
        _case(
            f"{direction.name} convolution of {groups} groups",
            "CONVOLUTION",
            {
                "InputTensor": _values(2, 4, 5),
                "FilterTensor": _values(4, 4 // groups, 2),
                "BiasTensor": _values(1, 4, 1),
                "OutputTensor": (2, 4, 4 if direction.name == "FORWARD" else 6),
            },
            Mode=ConvolutionMode.CROSS_CORRELATION,
            Direction=direction,
            **dict.fromkeys(("Strides", "Dilations"), (1,)),
            **dict.fromkeys(("StartPadding", "EndPadding", "OutputPadding"), (0,)),
            GroupCount=groups,
        )
        for direction in ConvolutionDirection
        for groups in (1, 2)
    ),
]


def found_of(desc: OperatorDesc) -> OperatorSpec:
    found = spec_of(desc)
    assert found is not None
    return found


def dimensions_to_cut(found: OperatorSpec, desc: OperatorDesc, stated: Independence) -> dict[int, int]:
    """The independent dimensions of the outputs that are longer than 1, with their sizes; all outputs have them."""
    outputs = [(label, output) for label, output in found.outputs(desc) if output is not None]
    each = [
        {number: output.Sizes[i] for i, number in enumerate(stated[label]) if number is not None}
        for label, output in outputs
    ]
    for label, _ in outputs:
        assert all(number in (i, None) for i, number in enumerate(stated[label])), label
    assert all(sizes == each[0] for sizes in each)
    return {number: size for number, size in each[0].items() if size > 1}


def sliced(array: np.ndarray, lined_up: Sequence[int | None], number: int, part: slice) -> np.ndarray:
    return array[tuple([part if each == number else slice(None) for each in lined_up])]


def elements(tensor: DML_BUFFER_TENSOR_DESC | None, array: np.ndarray) -> np.ndarray:
    """The elements of a tensor, those of 4 bits unpacked."""
    is_packed = tensor is not None and tensor.DataType.bits == 4
    return PackedArray(array, tensor.DataType, tensor.Sizes).unpack() if is_packed else array


def stored(tensor: DML_BUFFER_TENSOR_DESC | None, array: np.ndarray) -> np.ndarray:
    """Elements as a tensor's memory has them."""
    is_packed = tensor is not None and tensor.DataType.bits == 4
    return PackedArray.pack(array, tensor.DataType).data if is_packed else np.ascontiguousarray(array)


def part_by_reference(case: Case, stated: Independence, number: int, part: slice) -> dict[str, np.ndarray]:
    """The outputs by label, by the reference, of a slice of all that lines up with a dimension of the output."""
    found = found_of(case.desc)
    desc = cut(found, case.desc, stated, {number: part.stop - part.start})
    inputs = [
        None if array is None else stored(whole, sliced(elements(whole, array), stated[label], number, part))
        for (label, whole), array in zip(found.inputs(case.desc), case.inputs, strict=True)
    ]
    layouts = {label: Layout.of_desc(tensor) for label, tensor in found.outputs(desc) if tensor is not None}
    outputs = {label: np.empty(layout.sizes, layout.dtype) for label, layout in layouts.items()}
    device = Device("reference")
    operator = device.compile_operator(device.create_operator(desc))
    operator.dispatch(inputs, [outputs.get(label) for label, _ in found.outputs(desc)])
    return {label: elements(dict(found.outputs(desc))[label], array) for label, array in outputs.items()}


def compare(case: Case, stated: Independence, number: int, size: int) -> None:
    """Two parts along a dimension of the output, the longer one behind, bit for bit with the whole."""
    whole = part_by_reference(case, stated, number, slice(0, size))
    for part in (slice(0, size // 2), slice(size // 2, size)):
        for label, actual in part_by_reference(case, stated, number, part).items():
            expected = sliced(whole[label], stated[label], number, part)
            assert actual.shape == expected.shape
            assert actual.tobytes() == expected.tobytes(), f"{label}, cut along dimension {number}"


every_case = together("case", [Row(operator_of(case), case.id, (case,)) for case in CASES])


@every_case
def test_slices_give_slices(case: Case) -> None:
    found = found_of(case.desc)
    stated = found.independent(case.desc)
    for number, size in dimensions_to_cut(found, case.desc, stated).items():
        compare(case, stated, number, size)


@every_case
def test_every_dimension_of_every_tensor_has_an_answer(case: Case) -> None:
    found = found_of(case.desc)
    stated = found.independent(case.desc)
    tensors = {label: each for label, each in found.inputs(case.desc) + found.outputs(case.desc) if each is not None}
    assert {label: len(numbers) for label, numbers in stated.items()} == {
        label: len(tensor.Sizes) for label, tensor in tensors.items()
    }
    lengths: dict[int, set[int]] = {}
    for label, numbers in stated.items():
        lined_up = [number for number in numbers if number is not None]
        assert len(set(lined_up)) == len(lined_up), f"two dimensions of {label} line up with one"
        for number, size in zip(numbers, tensors[label].Sizes, strict=True):
            if number is not None:
                lengths.setdefault(number, set()).add(size)
    assert all(len(sizes) == 1 for sizes in lengths.values())
    of_outputs = {number for label, _ in found.outputs(case.desc) for number in stated.get(label, ())}
    assert set(lengths) <= of_outputs


def test_every_operator_is_cut_in_some_case() -> None:
    """But for what looks at all elements, or counts those before. None says nothing for want of thought."""
    cut = set()
    for case in CASES:
        found = found_of(case.desc)
        if dimensions_to_cut(found, case.desc, found.independent(case.desc)):
            cut.add(found.name)
    of_all = {"DYNAMIC_QUANTIZE_LINEAR", "MAX_UNPOOLING", "NONZERO_COORDINATES"}
    assert {*OPERATORS} - cut == {"FILL_VALUE_SEQUENCE", "RANDOM_GENERATOR", *of_all}


def test_no_specification_is_made_without_it() -> None:
    members = {each.name: getattr(spec("JOIN"), each.name) for each in fields(OperatorSpec)}
    assert OperatorSpec(**members) == spec("JOIN")
    members.pop("independent")
    with pytest.raises(TypeError, match="independent"):
        OperatorSpec(**members)


@pytest.mark.parametrize(
    ("case", "number", "wrong"),
    [
        pytest.param(_SUMS, 1, all_dimensions(_SUMS.desc), id="a sum goes on from the part before"),
        pytest.param(_WITH_INDICES, 0, all_dimensions(_WITH_INDICES.desc), id="indices count all pictures"),
        pytest.param(_WITH_INDICES, 1, all_dimensions(_WITH_INDICES.desc), id="indices count all channels"),
        pytest.param(
            _FUSED_SOFTMAX,
            1,
            {"ATensor": (0, None), "BTensor": (None, 1), "OutputTensor": (0, 1)},
            id="softmax takes a row whole",
        ),
    ],
)
def test_a_wrong_statement_does_not_pass(case: Case, number: int, wrong: Independence) -> None:
    found = found_of(case.desc)
    stated = found.independent(case.desc)
    assert all(number not in numbers for numbers in stated.values())
    (size,) = {output.Sizes[number] for _, output in found.outputs(case.desc) if output is not None}
    with pytest.raises(AssertionError, match=f"cut along dimension {number}"):
        compare(case, wrong, number, size)
