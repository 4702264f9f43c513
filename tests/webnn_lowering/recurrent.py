"""Recurrent networks, and their cells, which are networks of one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anydml
from anydml.core.enums import RecurrentNetworkDirection
from anydml.frontends.directmlx import Expression

from .layouts import packed
from .node import Adapter, Node

_DIRECTIONS = {"forward": "FORWARD", "backward": "BACKWARD", "both": "BIDIRECTIONAL"}


def of_4(x: Expression) -> Expression:
    return x.reshape((1,) * (4 - x.ndim) + x.shape)


def in_order(node: Node, x: Expression, gates: Sequence[str], wanted: Sequence[str], axis: int) -> Expression:
    """What is there for each gate, in DirectML's order."""
    if gates == wanted:
        return x
    piece = packed(x.tensor.DataType, [n // len(gates) if i == axis else n for i, n in enumerate(x.shape)])
    pieces = node.apply("SPLIT", InputTensor=x, OutputTensors=[piece] * len(gates), Axis=axis)
    return node("JOIN", InputTensors=[pieces[gates.index(gate)] for gate in wanted], Axis=axis)


def recurrent(
    name: str,
    gates: str,
    activations: Sequence[str],
    states: Mapping[str, str],
    outputs: Sequence[str],
    is_cell: bool = False,
    **more: Any,
) -> Adapter:
    """States are the arguments for members; outputs come in WebNN's order."""

    def adapter(node: Node) -> list[Expression]:
        x, letters = node.operand("input"), node.get("layout", gates)
        direction = RecurrentNetworkDirection[_DIRECTIONS[node.get("direction", "forward")]]
        count = 2 if direction == RecurrentNetworkDirection.BIDIRECTIONAL else 1
        hidden, rows = node.get("hiddenSize"), len(gates) * node.get("hiddenSize")
        biases = [
            in_order(node, node.operand(each).reshape(1, 1, count, rows), letters, gates, 3)
            if node.has(each)
            else node.filled(x, (1, 1, count, rows), 0)
            for each in ("bias", "recurrentBias")
        ]
        weights = {
            member: in_order(node, of_4(node.operand(each)), letters, gates, 2)
            for member, each in (("WeightTensor", "weight"), ("RecurrenceTensor", "recurrentWeight"))
        }
        if node.has("peepholeWeight"):
            each = node.operand("peepholeWeight").reshape(1, 1, count, 3 * hidden)
            peepholes = [letter for letter in letters if letter != "g"]
            weights["PeepholeTensor"] = in_order(node, each, peepholes, ["i", "o", "f"], 3)
        chosen = node.get("activations", activations)
        descs = [getattr(anydml, f"DML_ACTIVATION_{each.upper()}_OPERATOR_DESC")() for each in chosen]
        wanted = [*outputs, *(["OutputSequenceTensor"] if node.get("returnSequence") else [])]
        ys = node.apply(
            name,
            InputTensor=of_4(x),
            BiasTensor=node("JOIN", InputTensors=biases, Axis=3),
            ActivationDescs=descs * count,
            Direction=direction,
            **weights,
            **{member: of_4(node.operand(each)) for member, each in states.items() if node.has(each)},
            **{member: x.tensor.DataType for member in wanted},
            **{member: each(node) for member, each in more.items()},
        )
        # The sequence, where there is one, is DirectML's first output.
        sequence, last = ys[: -len(outputs)], ys[-len(outputs) :]
        return [*(y.reshape(y.shape[2 if is_cell else 1 :]) for y in last), *sequence]

    return adapter


def gru(hidden: str, is_cell: bool) -> Adapter:
    return recurrent(
        "GRU",
        "zrn",
        ("sigmoid", "tanh"),
        {"HiddenInitTensor": hidden},
        ("OutputSingleTensor",),
        is_cell,
        LinearBeforeReset=lambda node: node.get("resetAfter", True),
    )


def lstm(hidden: str, cell: str, is_cell: bool) -> Adapter:
    return recurrent(
        "LSTM",
        "iofg",
        ("sigmoid", "tanh", "tanh"),
        {"HiddenInitTensor": hidden, "CellMemInitTensor": cell},
        ("OutputSingleTensor", "OutputCellSingleTensor"),
        is_cell,
        ClipThreshold=lambda node: 0,
        UseClipThreshold=lambda node: False,
        CoupleInputForget=lambda node: False,
    )


ADAPTERS: dict[str, Adapter] = {
    "gru": gru("initialHiddenState", False),
    "gruCell": gru("hiddenState", True),
    "lstm": lstm("initialHiddenState", "initialCellState", False),
    "lstmCell": lstm("hiddenState", "cellState", True),
}
