"""The inputs and outputs of an operator, a graph or a function's call, with how each lies in memory."""

from __future__ import annotations

from typing import NamedTuple

from ..core.enums import TensorFlags
from ..core.packed_array import FOUR_BITS, PackedArray
from ..core.strided_layout import Layout
from ..operators.schema import OperatorDesc, OperatorSpec, Tensor


class Slot(NamedTuple):
    """An input or output of a compiled operator."""

    label: str
    tensor: Tensor | None
    layout: Layout | None
    """As the user sees it, by the desc."""
    aligned: Layout | None
    """As the engine sees it."""
    is_output: bool = False
    is_truth: bool = False
    """Whether calls take or return truth values for its elements, of UINT8."""

    @property
    def owned(self) -> bool:
        return self.tensor is not None and self.tensor.Flags == TensorFlags.OWNED_BY_DML

    @property
    def is_packed(self) -> bool:
        """Whether its elements are of 4 bits, two in a byte; its layouts are those of its bytes."""
        return self.tensor is not None and self.tensor.DataType in FOUR_BITS

    def fits(self, packed: PackedArray) -> bool:
        """Whether a packed array has the tensor's data type and sizes."""
        tensor = self.tensor
        return tensor is not None and (packed.data_type, packed.shape) == (tensor.DataType, tuple(tensor.Sizes))

    def expected_packed(self) -> str:
        """What is expected for a tensor of 4 bits, in messages."""
        assert self.tensor is not None and self.layout is not None
        what = f"a PackedArray of {self.tensor.DataType.name} {tuple(self.tensor.Sizes)}"
        return f"{what}, or a flat array of its {self.layout.sizes[0]} bytes"


def slot_of(label: str, tensor: Tensor | None, is_output: bool = False) -> Slot:
    """The slot of a tensor that an engine sees as its desc has it."""
    layout = None if tensor is None else Layout.of_desc(tensor)
    return Slot(label, tensor, layout, layout, is_output)


def slots_of(spec: OperatorSpec, desc: OperatorDesc) -> tuple[list[Slot], list[Slot]]:
    """The inputs and outputs of an operator, in header order, those that its desc leaves out among them."""
    inputs = [slot_of(label, tensor) for label, tensor in spec.inputs(desc)]
    aligned = spec.align(desc, [slot.layout for slot in inputs])
    seen = [slot._replace(aligned=layout) for slot, layout in zip(inputs, aligned, strict=True)]
    return seen, [slot_of(label, tensor, True) for label, tensor in spec.outputs(desc)]
