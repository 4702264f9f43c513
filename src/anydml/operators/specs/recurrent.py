"""RNN, LSTM, GRU: one layer of a recurrent network over the sequences of a batch, in one direction or in both.

Values and states are held in the next wider type from the first step to the last; each output is rounded once. The CPU's
kernels hold those of FLOAT32 in single precision.

Decisions where the pages are silent:

- Sequences of several lengths are as ONNX has them. BACKWARD begins at the last step of each sequence;
  OutputSequenceTensor holds a state at the step of its input, and zeros behind the end of a sequence; OutputSingleTensor
  and OutputCellSingleTensor hold the states after the last step that a sequence has. Where it has none, they are the
  initial ones, so that a sequence may be cut anywhere and its states carried from part to part.
- So is LSTM, where the text of its page leads elsewhere: the peephole of the output gate looks at C_t (there C_(t-1)), and
  H_t = o . h(C_t) (there of `ct`). The backward direction has peepholes of its own. What enters f and g is clipped, as the
  text has it, and what enters h is not.
- Activations are those that may be fused into any operator that has a FusedActivation.
- One output has to be there, and a limit must not be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ...core import enums
from ...core.enums import OperatorType, RecurrentNetworkDirection, TensorFlags
from ...core.errors import listing
from ...core.strided_layout import Array
from ..constraints import WIDER, rounded, same, widened
from ..fused_activation import activated
from ..schema import (
    BOOL,
    FLOAT,
    Activations,
    Choices,
    ConstraintFailure,
    Count,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recurrent(OperatorDesc):
    InputTensor: Tensor
    WeightTensor: Tensor
    RecurrenceTensor: Tensor
    BiasTensor: OptionalTensor = None
    HiddenInitTensor: OptionalTensor = None

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"ActivationDescCount": ("ActivationDescs",)}
    gates: ClassVar[int]
    activations: ClassVar[int]
    """For each direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfOneState(_Recurrent):
    SequenceLengthsTensor: OptionalTensor = None
    OutputSequenceTensor: OptionalTensor = None
    OutputSingleTensor: OptionalTensor = None
    ActivationDescCount: Count = None
    ActivationDescs: Activations
    Direction: enums.RecurrentNetworkDirection = RecurrentNetworkDirection.FORWARD


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_RNN_OPERATOR_DESC(_OfOneState):
    """One layer of a simple recurrent network: H_t = f(X_t * W^T + H_(t-1) * R^T + W_b + R_b).

    BACKWARD goes through the steps from the last to the first; H_(t-1) is then the state of the step computed before.
    BIDIRECTIONAL does both, each with weights, biases, initial states and an activation of its own, forward first.

    Args:
        InputTensor: X, {1, seq_length, batch_size, input_size}.
        WeightTensor: W, {1, num_directions, hidden_size, input_size}.
        RecurrenceTensor: R, {1, num_directions, hidden_size, hidden_size}.
        BiasTensor: W_b, then R_b, {1, 1, num_directions, 2 * hidden_size}; None for 0.
        HiddenInitTensor: H before the first step, {1, num_directions, batch_size, hidden_size}; None for 0.
        SequenceLengthsTensor: how many steps each sequence has, {1, 1, 1, batch_size}; None for seq_length.
        OutputSequenceTensor: H_t for all t, {seq_length, num_directions, batch_size, hidden_size}, with zeros where a
            sequence has no step; None where it is not wanted.
        OutputSingleTensor: H after the last step, {1, num_directions, batch_size, hidden_size}; None where it is not
            wanted.
        ActivationDescCount: the number of activations; derived from ActivationDescs.
        ActivationDescs: f, for each direction.
        Direction: which way the steps are gone through, or both ways.

    Constraints:
        (C1) All tensors but SequenceLengthsTensor have the same DataType.
        (C2) No input is OWNED_BY_DML.
        (C3) Inputs have the sizes above, with num_directions 2 where Direction is BIDIRECTIONAL, and otherwise 1.
        (C4) Outputs have the sizes above, too.
        (C5) ActivationDescs has 1 activation for each direction.
        (C6) At least one of the outputs is there.
        (V1) No sequence is longer than seq_length.

    Source: the page of DML_RNN_OPERATOR_DESC; since feature level 1.0.
    """

    gates: ClassVar[int] = 1
    activations: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_LSTM_OPERATOR_DESC(_Recurrent):
    """One layer of a long short-term memory (LSTM) network.

    With a_k = X_t * W_k^T + H_(t-1) * R_k^T + W_bk + R_bk for each gate k, and clip(a) = min(max(a, -ClipThreshold),
    ClipThreshold) where UseClipThreshold is true: i = f(clip(a_i + P_i . C_(t-1))); forget = f(clip(a_f + P_f .
    C_(t-1))), or 1 - i where CoupleInputForget is true; C_t = forget . C_(t-1) + i . g(clip(a_c)); o = f(clip(a_o + P_o .
    C_t)); H_t = o . h(C_t).

    BACKWARD goes through the steps from the last to the first; t-1 is then the step computed before. BIDIRECTIONAL does
    both, each with weights, biases, peepholes, initial states and activations of its own, forward first.

    Args:
        InputTensor: X, {1, seq_length, batch_size, input_size}.
        WeightTensor: W of the gates i, o, f, c, {1, num_directions, 4 * hidden_size, input_size}.
        RecurrenceTensor: R of the gates i, o, f, c, {1, num_directions, 4 * hidden_size, hidden_size}.
        BiasTensor: W_b of the gates i, o, f, c, then R_b, {1, 1, num_directions, 8 * hidden_size}; None for 0.
        HiddenInitTensor: H before the first step, {1, num_directions, batch_size, hidden_size}; None for 0.
        CellMemInitTensor: C before the first step, likewise; None for 0.
        SequenceLengthsTensor: how many steps each sequence has, {1, 1, 1, batch_size}; None for seq_length.
        PeepholeTensor: P of the gates i, o, f, {1, 1, num_directions, 3 * hidden_size}; None for no peepholes.
        OutputSequenceTensor: H_t for all t, {seq_length, num_directions, batch_size, hidden_size}, with zeros where a
            sequence has no step; None where it is not wanted.
        OutputSingleTensor: H after the last step, {1, num_directions, batch_size, hidden_size}; None where it is not
            wanted.
        OutputCellSingleTensor: C after the last step, likewise.
        ActivationDescCount: the number of activations; derived from ActivationDescs.
        ActivationDescs: f, g and h, for each direction.
        Direction: which way the steps are gone through, or both ways.
        ClipThreshold: limits what enters f and g.
        UseClipThreshold: whether it does.
        CoupleInputForget: whether the forget gate is 1 - i.

    Constraints:
        (C1) All tensors but SequenceLengthsTensor have the same DataType.
        (C2) No input is OWNED_BY_DML.
        (C3) Inputs have the sizes above, with num_directions 2 where Direction is BIDIRECTIONAL, and otherwise 1.
        (C4) Outputs have the sizes above, too.
        (C5) ActivationDescs has 3 activations for each direction.
        (C6) At least one of the outputs is there.
        (C7) ClipThreshold is at least 0 where UseClipThreshold is true.
        (V1) No sequence is longer than seq_length.

    Source: the page of DML_LSTM_OPERATOR_DESC; since feature level 1.0.
    """

    CellMemInitTensor: OptionalTensor = None
    SequenceLengthsTensor: OptionalTensor = None
    PeepholeTensor: OptionalTensor = None
    OutputSequenceTensor: OptionalTensor = None
    OutputSingleTensor: OptionalTensor = None
    OutputCellSingleTensor: OptionalTensor = None
    ActivationDescCount: Count = None
    ActivationDescs: Activations
    Direction: enums.RecurrentNetworkDirection = RecurrentNetworkDirection.FORWARD
    ClipThreshold: FLOAT
    UseClipThreshold: BOOL = False
    CoupleInputForget: BOOL = False

    gates: ClassVar[int] = 4
    activations: ClassVar[int] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_GRU_OPERATOR_DESC(_OfOneState):
    """One layer of a gated recurrent unit (GRU) network.

    With a_k = X_t * W_k^T + W_bk and b_k(H) = H * R_k^T + R_bk for each gate k: z = f(a_z + b_z(H_(t-1))); r = f(a_r +
    b_r(H_(t-1))); h = g(a_h + b_h(r . H_(t-1))), or g(a_h + r . b_h(H_(t-1))) where LinearBeforeReset is true; H_t =
    (1 - z) . h + z . H_(t-1).

    BACKWARD goes through the steps from the last to the first; H_(t-1) is then the state of the step computed before.
    BIDIRECTIONAL does both, each with weights, biases, initial states and activations of its own, forward first.

    Args:
        InputTensor: X, {1, seq_length, batch_size, input_size}.
        WeightTensor: W of the gates z, r, h, {1, num_directions, 3 * hidden_size, input_size}.
        RecurrenceTensor: R of the gates z, r, h, {1, num_directions, 3 * hidden_size, hidden_size}.
        BiasTensor: W_b of the gates z, r, h, then R_b, {1, 1, num_directions, 6 * hidden_size}; None for 0.
        HiddenInitTensor: H before the first step, {1, num_directions, batch_size, hidden_size}; None for 0.
        SequenceLengthsTensor: how many steps each sequence has, {1, 1, 1, batch_size}; None for seq_length.
        OutputSequenceTensor: H_t for all t, {seq_length, num_directions, batch_size, hidden_size}, with zeros where a
            sequence has no step; None where it is not wanted.
        OutputSingleTensor: H after the last step, {1, num_directions, batch_size, hidden_size}; None where it is not
            wanted.
        ActivationDescCount: the number of activations; derived from ActivationDescs.
        ActivationDescs: f and g, for each direction.
        Direction: which way the steps are gone through, or both ways.
        LinearBeforeReset: whether the reset gate is applied behind the linear transformation of H_(t-1).

    Constraints:
        (C1) All tensors but SequenceLengthsTensor have the same DataType.
        (C2) No input is OWNED_BY_DML.
        (C3) Inputs have the sizes above, with num_directions 2 where Direction is BIDIRECTIONAL, and otherwise 1.
        (C4) Outputs have the sizes above, too.
        (C5) ActivationDescs has 2 activations for each direction.
        (C6) At least one of the outputs is there.
        (V1) No sequence is longer than seq_length.

    Source: the page of DML_GRU_OPERATOR_DESC; since feature level 1.0.
    """

    LinearBeforeReset: BOOL = False

    gates: ClassVar[int] = 3
    activations: ClassVar[int] = 2


_STATE = ("1", "num_directions", "batch_size", "hidden_size")
_SIZES: Mapping[str, tuple[str, ...]] = {
    "InputTensor": ("1", "seq_length", "batch_size", "input_size"),
    "WeightTensor": ("1", "num_directions", "gates * hidden_size", "input_size"),
    "RecurrenceTensor": ("1", "num_directions", "gates * hidden_size", "hidden_size"),
    "BiasTensor": ("1", "1", "num_directions", "2 * gates * hidden_size"),
    "HiddenInitTensor": _STATE,
    "CellMemInitTensor": _STATE,
    "SequenceLengthsTensor": ("1", "1", "1", "batch_size"),
    "PeepholeTensor": ("1", "1", "num_directions", "3 * hidden_size"),
    "OutputSequenceTensor": ("seq_length", "num_directions", "batch_size", "hidden_size"),
    "OutputSingleTensor": _STATE,
    "OutputCellSingleTensor": _STATE,
}
"""In the words of the pages."""


def _tensors(desc: _Recurrent, outputs: bool) -> dict[str, OptionalTensor]:
    """The inputs, or the outputs."""
    names = [name for name in desc.__dataclass_fields__ if name in _SIZES]
    return {name: getattr(desc, name) for name in names if name.startswith("Output") == outputs}


def _directions(desc: Any) -> int:
    return 2 if desc.Direction == RecurrentNetworkDirection.BIDIRECTIONAL else 1


def _sizes(desc: _Recurrent, name: str) -> Iterator[tuple[int, str, str]]:
    """Of a tensor: each size, how it is made up, and what its word stands for; nothing where that cannot be said."""
    x, r = desc.InputTensor.Sizes, desc.RecurrenceTensor.Sizes
    if len(x) != 4 or len(r) != 4:
        return
    words = {
        "1": (1, ""),
        "num_directions": (_directions(desc), "Direction"),
        "seq_length": (x[1], "InputTensor.Sizes[1]"),
        "batch_size": (x[2], "InputTensor.Sizes[2]"),
        "input_size": (x[3], "InputTensor.Sizes[3]"),
        "hidden_size": (r[3], "RecurrenceTensor.Sizes[3]"),
    }
    for each in _SIZES[name]:
        term = each.replace("gates", str(desc.gates))
        *factors, word = term.split(" * ")
        value, source = words[word]
        yield prod(map(int, factors)) * value, term, f"{word} is {value} by {source}" if source else ""


def _of_one_type(desc: _Recurrent, label: str) -> Iterator[ConstraintFailure]:
    tensors = _tensors(desc, False) | _tensors(desc, True)
    floats = [name for name, tensor in tensors.items() if tensor is not None and name != "SequenceLengthsTensor"]
    yield from same(desc, label, "DataType", *floats)


def _not_owned(desc: _Recurrent, label: str) -> Iterator[ConstraintFailure]:
    for name, tensor in _tensors(desc, False).items():
        if tensor is not None and tensor.Flags == TensorFlags.OWNED_BY_DML:
            yield ConstraintFailure(
                label, f"{name}.Flags", "OWNED_BY_DML", "NONE, as for every input of a recurrent operator"
            )


def _sizes_of_inputs(desc: _Recurrent, label: str) -> Iterator[ConstraintFailure]:
    for name, tensor in _tensors(desc, False).items():
        if tensor is not None and len(tensor.Sizes) == 4:
            for i, (found, (size, term, remedy)) in enumerate(zip(tensor.Sizes, _sizes(desc, name), strict=False)):
                if found != size:
                    yield ConstraintFailure(
                        label, f"{name}.Sizes[{i}]", str(found), f"{size}, {term}" if remedy else "1", remedy
                    )


def _count_of_activations(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    found, expected = len(desc.ActivationDescs), desc.activations * _directions(desc)
    if found != expected:
        each = f"{desc.activations} for each direction"
        yield ConstraintFailure(label, "ActivationDescs", f"{found} activations", f"{expected}, {each}")


def _some_output(desc: _Recurrent, label: str) -> Iterator[ConstraintFailure]:
    outputs = _tensors(desc, True)
    if not any(outputs.values()):
        yield ConstraintFailure(
            label, next(iter(outputs)), "None", f"a tensor here, or as {listing(list(outputs)[1:])}"
        )


def _constraints(desc: _OfOneState) -> Iterator[ConstraintFailure]:
    yield from _of_one_type(desc, "(C1)")
    yield from _not_owned(desc, "(C2)")
    yield from _sizes_of_inputs(desc, "(C3)")
    yield from _count_of_activations(desc, "(C5)")
    yield from _some_output(desc, "(C6)")


def _constraints_of_lstm(desc: DML_LSTM_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from _of_one_type(desc, "(C1)")
    yield from _not_owned(desc, "(C2)")
    yield from _sizes_of_inputs(desc, "(C3)")
    yield from _count_of_activations(desc, "(C5)")
    yield from _some_output(desc, "(C6)")
    if desc.UseClipThreshold and not desc.ClipThreshold >= 0:
        yield ConstraintFailure(
            "(C7)", "ClipThreshold", str(desc.ClipThreshold), "at least 0, as UseClipThreshold is true"
        )


def _infer_sizes(desc: _Recurrent) -> dict[str, Choices]:
    sizes = {name: tuple((size,) for size, _, _ in _sizes(desc, name)) for name in _tensors(desc, True)}
    return {name: choices for name, choices in sizes.items() if choices}


def _value_limits(desc: _Recurrent) -> dict[str, tuple[int, int]]:
    return {"SequenceLengthsTensor": (0, desc.InputTensor.Sizes[1])}


def _check_values(desc: _Recurrent, inputs: Sequence[Array | None]) -> Iterator[ConstraintFailure]:
    given = inputs[list(_tensors(desc, False)).index("SequenceLengthsTensor")]
    if given is not None:
        lengths, (_, steps) = given.ravel(), _value_limits(desc)["SequenceLengthsTensor"]
        for i in np.flatnonzero(lengths > steps)[:1]:
            found = f"{lengths[i]} for sequence {i}"
            yield ConstraintFailure("(V1)", "SequenceLengthsTensor", found, f"at most {steps}, seq_length")


class _Linear(NamedTuple):
    """What a step multiplies by: x * A^T + b, for each gate."""

    a: Array
    """{num_directions, gates, hidden_size, size of x}"""
    b: Array
    """{num_directions, gates, 1, hidden_size}"""

    def __call__(self, direction: int, x: Array) -> Array:
        """{gates, batch_size, hidden_size}, of x {batch_size, its size}; in the type of x, which is the wider one."""
        # By einsum's own loops, which widen as they go: a library for matrices would take copies, and may add in
        # another order on another machine.
        y: Array = np.einsum("bi,ghi->gbh", x, self.a[direction]) + self.b[direction]
        return y


def _linear(desc: _Recurrent, w: Array, r: Array, bias: Array | None) -> tuple[_Linear, _Linear]:
    """Of X_t, and of H_(t-1)."""
    directions, hidden = w.shape[1], r.shape[3]
    shape = (directions, 2, desc.gates, 1, hidden)
    b = np.zeros(shape, w.dtype) if bias is None else bias.reshape(shape)
    of_x, of_h = (each.reshape(directions, desc.gates, hidden, each.shape[3]) for each in (w, r))
    return _Linear(of_x, b[:, 0]), _Linear(of_h, b[:, 1])


_Maybe: TypeAlias = Array | None
_Step: TypeAlias = Callable[..., tuple[Array, ...]]
"""Of a direction, X_t and the states before, each {batch_size, size}: the states after. The first of them is H."""


@np.errstate(all="ignore")
def _unrolled(desc: Any, step: _Step, x: Array, initial: Sequence[_Maybe], lengths: _Maybe) -> tuple[Array, ...]:
    """H_t for all t, then the states after the last step."""
    _, steps, batch, _ = x.shape
    directions, hidden = _directions(desc), desc.RecurrenceTensor.Sizes[3]
    wide = WIDER[x.dtype]
    ends = np.full(batch, steps) if lengths is None else lengths.reshape(batch)
    wanted = steps if desc.OutputSequenceTensor is not None else 0
    sequence = np.zeros((wanted, directions, batch, hidden), x.dtype)
    last = [np.zeros((1, directions, batch, hidden), wide) if each is None else widened(each) for each in initial]
    for direction in range(directions):
        backward = desc.Direction == RecurrentNetworkDirection.BACKWARD or direction == 1
        for t in reversed(range(steps)) if backward else range(steps):
            there = (t < ends)[:, None]
            states = step(direction, widened(x[0, t]), *(each[0, direction] for each in last))
            for every, state in zip(last, states, strict=True):
                every[0, direction] = np.where(there, state, every[0, direction])
            if wanted:
                sequence[t, direction] = np.where(there, rounded(states[0], x.dtype), 0)
    return sequence, *(rounded(each, x.dtype) for each in last)


def _rnn(
    desc: DML_RNN_OPERATOR_DESC, x: Array, w: Array, r: Array, bias: _Maybe, initial: _Maybe, lengths: _Maybe
) -> tuple[Array, ...]:
    of_x, of_h = _linear(desc, w, r, bias)

    def step(direction: int, x: Array, h: Array) -> tuple[Array]:
        # H_t = f(X_t * W^T + H_(t-1) * R^T + W_b + R_b)
        (a,) = of_x(direction, x) + of_h(direction, h)
        return (activated(desc.ActivationDescs[direction], a),)

    return _unrolled(desc, step, x, [initial], lengths)


def _lstm(
    desc: DML_LSTM_OPERATOR_DESC,
    x: Array,
    w: Array,
    r: Array,
    bias: _Maybe,
    initial: _Maybe,
    initial_cell: _Maybe,
    lengths: _Maybe,
    peephole: _Maybe,
) -> tuple[Array, ...]:
    of_x, of_h = _linear(desc, w, r, bias)
    peepholes = None if peephole is None else peephole.reshape(-1, 3, r.shape[3])
    limit = desc.ClipThreshold if desc.UseClipThreshold else inf

    def step(direction: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        f, g, of_cell = desc.ActivationDescs[3 * direction :][:3]

        def gate(activation: OperatorDesc, a: Array, k: int = 0, c: Array | None = None) -> Array:
            """Of peephole k, where it looks at a state."""
            seen = a if c is None or peepholes is None else a + peepholes[direction, k] * c
            return activated(activation, np.clip(seen, -limit, limit))

        # i = f(clip(a_i + P_i . C_(t-1)));  forget = f(clip(a_f + P_f . C_(t-1))), or 1 - i
        # C_t = forget . C_(t-1) + i . g(clip(a_c))
        # H_t = f(clip(a_o + P_o . C_t)) . h(C_t)
        a_i, a_o, a_f, a_c = of_x(direction, x) + of_h(direction, h)
        i = gate(f, a_i, 0, c)
        forget = 1 - i if desc.CoupleInputForget else gate(f, a_f, 2, c)
        c = forget * c + i * gate(g, a_c)
        return gate(f, a_o, 1, c) * activated(of_cell, c), c

    return _unrolled(desc, step, x, [initial, initial_cell], lengths)


def _gru(
    desc: DML_GRU_OPERATOR_DESC, x: Array, w: Array, r: Array, bias: _Maybe, initial: _Maybe, lengths: _Maybe
) -> tuple[Array, ...]:
    of_x, of_h = _linear(desc, w, r, bias)

    def step(direction: int, x: Array, h: Array) -> tuple[Array]:
        f, g = desc.ActivationDescs[2 * direction :][:2]
        # z = f(a_z + b_z(H_(t-1)));  r = f(a_r + b_r(H_(t-1)))
        # h = g(a_h + b_h(r . H_(t-1))), or g(a_h + r . b_h(H_(t-1)))
        # H_t = (1 - z) . h + z . H_(t-1)
        a_z, a_r, a_h = of_x(direction, x)
        b_z, b_r, b_h = of_h(direction, h)
        update, reset = activated(f, a_z + b_z), activated(f, a_r + b_r)
        new = activated(g, a_h + (reset * b_h if desc.LinearBeforeReset else of_h(direction, reset * h)[2]))
        return ((1 - update) * new + update * h,)

    return _unrolled(desc, step, x, [initial], lengths)


def _independent(desc: _Recurrent) -> Independence:
    """The batch, wherever a tensor has it."""
    batch = list(_STATE).index("batch_size")
    tensors = _tensors(desc, False) | _tensors(desc, True)
    return {
        name: tuple([batch if word == "batch_size" else None for word in _SIZES[name]])
        for name, tensor in tensors.items()
        if tensor is not None
    }


_SUPPORT_OF_ONE_STATE = support_table("""
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor           | Input           | 4 | FLOAT32, FLOAT16
    WeightTensor          | Input           | 4 | FLOAT32, FLOAT16
    RecurrenceTensor      | Input           | 4 | FLOAT32, FLOAT16
    BiasTensor            | Optional input  | 4 | FLOAT32, FLOAT16
    HiddenInitTensor      | Optional input  | 4 | FLOAT32, FLOAT16
    SequenceLengthsTensor | Optional input  | 4 | UINT32
    OutputSequenceTensor  | Optional output | 4 | FLOAT32, FLOAT16
    OutputSingleTensor    | Optional output | 4 | FLOAT32, FLOAT16
""")

RNN = OperatorSpec(
    operator_type=OperatorType.RNN,
    desc=DML_RNN_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C4)",
    reference=_rnn,
    independent=_independent,
    check_values=_check_values,
    value_limits=_value_limits,
    support=_SUPPORT_OF_ONE_STATE,
)

LSTM = OperatorSpec(
    operator_type=OperatorType.LSTM,
    desc=DML_LSTM_OPERATOR_DESC,
    constraints=_constraints_of_lstm,
    infer_sizes=_infer_sizes,
    sizes_rule="(C4)",
    reference=_lstm,
    independent=_independent,
    check_values=_check_values,
    value_limits=_value_limits,
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor            | Input           | 4 | FLOAT32, FLOAT16
        WeightTensor           | Input           | 4 | FLOAT32, FLOAT16
        RecurrenceTensor       | Input           | 4 | FLOAT32, FLOAT16
        BiasTensor             | Optional input  | 4 | FLOAT32, FLOAT16
        HiddenInitTensor       | Optional input  | 4 | FLOAT32, FLOAT16
        CellMemInitTensor      | Optional input  | 4 | FLOAT32, FLOAT16
        SequenceLengthsTensor  | Optional input  | 4 | UINT32
        PeepholeTensor         | Optional input  | 4 | FLOAT32, FLOAT16
        OutputSequenceTensor   | Optional output | 4 | FLOAT32, FLOAT16
        OutputSingleTensor     | Optional output | 4 | FLOAT32, FLOAT16
        OutputCellSingleTensor | Optional output | 4 | FLOAT32, FLOAT16
    """),
)

GRU = OperatorSpec(
    operator_type=OperatorType.GRU,
    desc=DML_GRU_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C4)",
    reference=_gru,
    independent=_independent,
    check_values=_check_values,
    value_limits=_value_limits,
    support=_SUPPORT_OF_ONE_STATE,
)
