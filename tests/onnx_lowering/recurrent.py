"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anydml
from anydml import TensorDataType
from anydml.core.enums import (
    RecurrentNetworkDirection,
)
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, permuted, sizes_of, strided

_DIRECTIONS = {b"forward": "FORWARD", b"reverse": "BACKWARD", b"bidirectional": "BIDIRECTIONAL"}


def recurrent(name: str, activations: Sequence[str], members: Sequence[str], **more: Any) -> Adapter:
    """Members are those of the inputs behind SequenceLengthsTensor."""

    def adapter(node: Node) -> list[Expression]:
        if "activations" in node.attributes:
            raise NotSaid("activations of its own")
        direction = RecurrentNetworkDirection[_DIRECTIONS[node.get("direction", b"forward")]]
        names = ("InputTensor", "WeightTensor", "RecurrenceTensor", "BiasTensor", "SequenceLengthsTensor", *members)
        by_batch = node.get("layout", 0)
        tensors = {}
        for i, member in enumerate(names):
            if node.has(i):
                x = node.input(i)
                if by_batch and member in ("InputTensor", "HiddenInitTensor", "CellMemInitTensor"):
                    x = permuted(x, (1, 0, 2))
                ones = 4 - len(sizes_of(x))
                tensors[member] = strided(x, (1,) * ones + sizes_of(x), (0,) * ones + tuple(x.tensor.strides))
                if member == "SequenceLengthsTensor":
                    tensors[member] = tensors[member].reinterpret(TensorDataType.UINT32, sizes_of(tensors[member]))
        descs = [getattr(anydml, f"DML_ACTIVATION_{each}_OPERATOR_DESC")() for each in activations]
        wanted = zip(
            node.outputs, ("OutputSequenceTensor", "OutputSingleTensor", "OutputCellSingleTensor"), strict=False
        )
        outputs = {member: tensors["InputTensor"].tensor.DataType for output, member in wanted if output}
        ys = node.apply(
            name,
            ActivationDescs=descs * (2 if direction == RecurrentNetworkDirection.BIDIRECTIONAL else 1),
            Direction=direction,
            **tensors,
            **outputs,
            **{member: each(node) for member, each in more.items()},
        )
        # {seq_length, num_directions, batch_size, hidden_size}; by batch, its dimension is the first.
        return [node("ELEMENT_WISE_IDENTITY", InputTensor=permuted(y, (2, 0, 1, 3))) for y in ys] if by_batch else ys

    return adapter


ADAPTERS: dict[str, Adapter] = {
    "GRU": recurrent(
        "GRU",
        ("SIGMOID", "TANH"),
        ("HiddenInitTensor",),
        LinearBeforeReset=lambda node: bool(node.get("linear_before_reset", 0)),
    ),
    "LSTM": recurrent(
        "LSTM",
        ("SIGMOID", "TANH", "TANH"),
        ("HiddenInitTensor", "CellMemInitTensor", "PeepholeTensor"),
        ClipThreshold=lambda node: node.get("clip", 0),
        UseClipThreshold=lambda node: "clip" in node.attributes,
        CoupleInputForget=lambda node: bool(node.get("input_forget", 0)),
    ),
    "RNN": recurrent("RNN", ("TANH",), ("HiddenInitTensor",)),
}
