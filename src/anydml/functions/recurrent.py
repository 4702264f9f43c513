"""Layers of recurrent networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.enums import RecurrentNetworkDirection
from ..device import Device
from ..operators import spec
from ..operators.schema import OperatorDesc
from ._apply import apply_all, leading
from ._call import data_type_of
from ._documentation import documented
from ._names import as_member, refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._types import Operand, Output, Result
from ._weak_operands import as_listed


@documented("RNN")
def rnn(
    x: Operand,
    weight: Operand,
    recurrence: Operand,
    bias: Operand | None = None,
    hidden_init: Operand | None = None,
    sequence_lengths: Operand | None = None,
    *,
    activations: Sequence[OperatorDesc | str] | None = None,
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    out: Sequence[Output] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """One layer of a simple recurrent network: DML_OPERATOR_RNN.

    Args:
        x: an array or an expression, float32 or float16 of shape (1, steps, batch, input size). Leading dimensions of 1
            may be missing here and below.
        weight: likewise, (1, directions, hidden size, input size).
        recurrence: likewise, (1, directions, hidden size, hidden size).
        bias: likewise, (1, 1, directions, 2 * hidden size); 0 where None.
        hidden_init: likewise, (1, directions, batch, hidden size); 0 where None.
        sequence_lengths: uint32 of shape (1, 1, 1, batch); all steps where None.
        activations: the desc of f, without tensors, or its name, for each direction; tanh where None.
        direction: a RecurrentNetworkDirection or its name: FORWARD, BACKWARD or BIDIRECTIONAL.
        out: a list of what to write to, of any strides; no memory shared with an input. Returned.

    Returns:
        Arrays like `x`: the states of all steps, (steps, directions, batch, hidden size), and the last one,
        (1, directions, batch, hidden size).

    >>> states, last = rnn([[[[1.0]], [[0.0]]]], [[[[1.0]]]], [[[[0.5]]]])
    >>> states.ravel().round(3)
    array([0.762, 0.363], dtype=float32)
    """
    if others:
        refuse_unknown(rnn, "RNN", others)
    return _layer(
        "RNN",
        ["TANH"],
        activations,
        direction,
        out,
        device,
        InputTensor=x,
        WeightTensor=weight,
        RecurrenceTensor=recurrence,
        BiasTensor=bias,
        HiddenInitTensor=hidden_init,
        SequenceLengthsTensor=sequence_lengths,
    )


@documented("LSTM")
def lstm(
    x: Operand,
    weight: Operand,
    recurrence: Operand,
    bias: Operand | None = None,
    hidden_init: Operand | None = None,
    cell_mem_init: Operand | None = None,
    sequence_lengths: Operand | None = None,
    peephole: Operand | None = None,
    *,
    activations: Sequence[OperatorDesc | str] | None = None,
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    clip_threshold: float | None = None,
    couple_input_forget: bool = False,
    out: Sequence[Output] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """One layer of a long short-term memory network: DML_OPERATOR_LSTM.

    Args:
        x: an array or an expression, float32 or float16 of shape (1, steps, batch, input size). Leading dimensions of 1
            may be missing here and below.
        weight: likewise, of the gates i, o, f, c, (1, directions, 4 * hidden size, input size).
        recurrence: likewise, (1, directions, 4 * hidden size, hidden size).
        bias: likewise, (1, 1, directions, 8 * hidden size); 0 where None.
        hidden_init: likewise, (1, directions, batch, hidden size); 0 where None.
        cell_mem_init: likewise; 0 where None.
        sequence_lengths: uint32 of shape (1, 1, 1, batch); all steps where None.
        peephole: like x, of the gates i, o, f, (1, 1, directions, 3 * hidden size); none where None.
        activations: the descs of f, g and h, without tensors, or their names, for each direction; sigmoid, tanh, tanh
            where None.
        direction: a RecurrentNetworkDirection or its name: FORWARD, BACKWARD or BIDIRECTIONAL.
        clip_threshold: limits what enters f and g; nothing does where None.
        couple_input_forget: whether the forget gate is 1 - i.
        out: a list of what to write to, of any strides; no memory shared with an input. Returned.

    Returns:
        Arrays like `x`: the states of all steps, (steps, directions, batch, hidden size), the last one, (1, directions,
        batch, hidden size), and the last cell.

    >>> x = np.ones((1, 2, 1, 1), np.float32)
    >>> states, last, cell = lstm(x, np.ones((1, 1, 4, 1), np.float32), np.zeros((1, 1, 4, 1), np.float32))
    >>> cell.ravel().round(3)
    array([0.964], dtype=float32)
    """
    if others:
        refuse_unknown(lstm, "LSTM", others)
    return _layer(
        "LSTM",
        ["SIGMOID", "TANH", "TANH"],
        activations,
        direction,
        out,
        device,
        InputTensor=x,
        WeightTensor=weight,
        RecurrenceTensor=recurrence,
        BiasTensor=bias,
        HiddenInitTensor=hidden_init,
        CellMemInitTensor=cell_mem_init,
        SequenceLengthsTensor=sequence_lengths,
        PeepholeTensor=peephole,
        ClipThreshold=0.0 if clip_threshold is None else clip_threshold,
        UseClipThreshold=clip_threshold is not None,
        CoupleInputForget=couple_input_forget,
    )


@documented("GRU")
def gru(
    x: Operand,
    weight: Operand,
    recurrence: Operand,
    bias: Operand | None = None,
    hidden_init: Operand | None = None,
    sequence_lengths: Operand | None = None,
    *,
    activations: Sequence[OperatorDesc | str] | None = None,
    direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    linear_before_reset: bool = False,
    out: Sequence[Output] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """One layer of a network of gated recurrent units: DML_OPERATOR_GRU.

    Args:
        x: an array or an expression, float32 or float16 of shape (1, steps, batch, input size). Leading dimensions of 1
            may be missing here and below.
        weight: likewise, of the gates z, r, h, (1, directions, 3 * hidden size, input size).
        recurrence: likewise, (1, directions, 3 * hidden size, hidden size).
        bias: likewise, (1, 1, directions, 6 * hidden size); 0 where None.
        hidden_init: likewise, (1, directions, batch, hidden size); 0 where None.
        sequence_lengths: uint32 of shape (1, 1, 1, batch); all steps where None.
        activations: the descs of f and g, without tensors, or their names, for each direction; sigmoid and tanh where
            None.
        direction: a RecurrentNetworkDirection or its name: FORWARD, BACKWARD or BIDIRECTIONAL.
        linear_before_reset: whether the reset gate is applied behind the linear transformation of the state.
        out: a list of what to write to, of any strides; no memory shared with an input. Returned.

    Returns:
        Arrays like `x`: the states of all steps, (steps, directions, batch, hidden size), and the last one,
        (1, directions, batch, hidden size).

    >>> x = np.ones((1, 2, 1, 1), np.float32)
    >>> states, last = gru(x, np.ones((1, 1, 3, 1), np.float32), np.zeros((1, 1, 3, 1), np.float32))
    >>> last.ravel().round(3)
    array([0.355], dtype=float32)
    """
    if others:
        refuse_unknown(gru, "GRU", others)
    return _layer(
        "GRU",
        ["SIGMOID", "TANH"],
        activations,
        direction,
        out,
        device,
        InputTensor=x,
        WeightTensor=weight,
        RecurrenceTensor=recurrence,
        BiasTensor=bias,
        HiddenInitTensor=hidden_init,
        SequenceLengthsTensor=sequence_lengths,
        LinearBeforeReset=linear_before_reset,
    )


def _layer(
    name: str, usual: Sequence[str], activations: Any, direction: Any, out: Any, device: Any, **members: Any
) -> list[Any]:
    """With all outputs that the operator has."""
    direction = as_member(name, "direction", direction, "RecurrentNetworkDirection")
    if activations is None:
        directions = 2 if direction == RecurrentNetworkDirection.BIDIRECTIONAL else 1
        activations = [spec(f"ACTIVATION_{each}").desc() for each in usual] * directions
    operands = [value for member, value in members.items() if member.endswith("Tensor")]
    side = adapter_for(name, operands, None, device)
    members["InputTensor"] = as_listed(side, spec(name), "InputTensor", members["InputTensor"])
    data_type = data_type_of(name, "x", side.look("x", members["InputTensor"]))
    members |= {member: data_type for member, row in spec(name).tensors.items() if row.kind == "Optional output"}
    return apply_all(
        name, out, device, spread=_of_4_dimensions, **members, ActivationDescs=activations, Direction=direction
    )


def _of_4_dimensions(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    return {label: leading(shape, 4) for label, shape in shapes.items() if len(shape) < 4}
