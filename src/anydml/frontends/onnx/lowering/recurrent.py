"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.enums import RecurrentNetworkDirection
from ....operators import spec
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .empty import may_be_empty

_DIRECTIONS = {"forward": "FORWARD", "reverse": "BACKWARD", "bidirectional": "BIDIRECTIONAL"}

_ACTIVATIONS: dict[str, tuple[str, dict[str, float]]] = {
    "affine": ("LINEAR", {"Alpha": 1.0, "Beta": 0.0}),
    "elu": ("ELU", {"Alpha": 1.0}),
    "hardsigmoid": ("HARD_SIGMOID", {"Alpha": 0.2, "Beta": 0.5}),
    "leakyrelu": ("LEAKY_RELU", {"Alpha": 0.01}),
    "relu": ("RELU", {}),
    "scaledtanh": ("SCALED_TANH", {"Alpha": 1.0, "Beta": 1.0}),
    "sigmoid": ("SIGMOID", {}),
    "softplus": ("SOFTPLUS", {}),
    "softsign": ("SOFTSIGN", {}),
    "tanh": ("TANH", {}),
    "thresholdedrelu": ("THRESHOLDED_RELU", {"Alpha": 1.0}),
}
"""DirectML's, with the numbers that attributes may give in place of these."""

_OUTPUTS = ("OutputSequenceTensor", "OutputSingleTensor", "OutputCellSingleTensor")


def recurrent(name: str, usual: Sequence[str], states: Sequence[str], **more: Any) -> Lowering:
    """A layer; `states` are the members of the inputs behind the lengths of sequences."""

    def lowering(node: NodeContext) -> list[Expression | None]:
        direction = _DIRECTIONS.get(node.get("direction", "forward"))
        if direction is None:
            raise NotLowered(f"direction {node.get('direction')!r}")
        if name != "LSTM" and node.get("clip"):
            raise NotLowered(f"a limit for what enters the activations, which DirectML's {name} has not")
        by_batch = bool(node.get("layout", 0))
        names = ("InputTensor", "WeightTensor", "RecurrenceTensor", "BiasTensor", "SequenceLengthsTensor", *states)
        tensors: dict[str, Any] = {}
        for i, member in enumerate(names):
            if node.has(i):
                x = node.x(i)
                if by_batch and member in ("InputTensor", "HiddenInitTensor", "CellMemInitTensor"):
                    x = node.call("identity", x.transpose(1, 0, 2))
                x = x.astype(np.uint32) if member == "SequenceLengthsTensor" else x
                tensors[member] = x.reshape((1,) * (4 - x.ndim) + x.shape)
        kind = tensors["InputTensor"].tensor.DataType
        wanted = {member: kind for i, member in enumerate(_OUTPUTS) if node.wants(i)}
        if not wanted:
            return []
        ys = node.operator(
            name,
            ActivationDescs=_activations(node, [*usual] * (2 if direction == "BIDIRECTIONAL" else 1)),
            Direction=RecurrentNetworkDirection[direction],
            **tensors,
            **wanted,
            **{member: each(node) for member, each in more.items()},
        )
        found = dict(zip(wanted, ys, strict=True))
        return [_laid(node, member, found.get(member), by_batch) for member in _OUTPUTS[: len(node.node.outputs)]]

    return lowering


def _laid(node: NodeContext, member: str, y: Expression | None, by_batch: bool) -> Expression | None:
    """{steps, directions, batch, hidden}, and {directions, batch, hidden}; by batch, its dimension is the first."""
    if y is None:
        return None
    if by_batch:
        y = node.call("identity", y.transpose(2, 0, 1, 3))
        return y if member == _OUTPUTS[0] else y.reshape(y.shape[0], *y.shape[2:])
    return y if member == _OUTPUTS[0] else y.reshape(y.shape[1:])


def _activations(node: NodeContext, usual: Sequence[str]) -> list[Any]:
    """Descs; alphas and betas stand for those activations that have one, in their order."""
    given = node.get("activations") or usual
    if len(given) != len(usual):
        raise NotLowered(f"{len(given)} activations, where there are {len(usual)}")
    numbers = {"Alpha": [*node.get("activation_alpha", [])], "Beta": [*node.get("activation_beta", [])]}
    descs = []
    for each in given:
        if each.lower() not in _ACTIVATIONS:
            raise NotLowered(f"an activation {each!r}")
        kind, members = _ACTIVATIONS[each.lower()]
        own = {key: numbers[key].pop(0) if numbers[key] else value for key, value in members.items()}
        descs.append(spec(f"ACTIVATION_{kind}").desc(**own))
    return descs


LOWERINGS: dict[str, Lowering] = may_be_empty(
    {
        "GRU": recurrent(
            "GRU",
            ("Sigmoid", "Tanh"),
            ("HiddenInitTensor",),
            LinearBeforeReset=lambda node: bool(node.get("linear_before_reset", 0)),
        ),
        "LSTM": recurrent(
            "LSTM",
            ("Sigmoid", "Tanh", "Tanh"),
            ("HiddenInitTensor", "CellMemInitTensor", "PeepholeTensor"),
            ClipThreshold=lambda node: node.get("clip", 0.0),
            UseClipThreshold=lambda node: bool(node.get("clip", 0.0)),
            CoupleInputForget=lambda node: bool(node.get("input_forget", 0)),
        ),
        "RNN": recurrent("RNN", ("Tanh",), ("HiddenInitTensor",)),
    }
)
