"""RNN, LSTM and GRU, unrolled: what depends on the input alone in one product, then some calls for each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeAlias

import torch

from ....core.enums import RecurrentNetworkDirection
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .pointwise import fused
from .values import store, widened

_Step: TypeAlias = Callable[..., Sequence[Any]]
"""Of {gates, batch_size, hidden_size}, the input's part of each gate, and the states before: the states after."""

_Product: TypeAlias = Callable[[Any], Any]
"""R * h + its bias, for each gate."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    members: Any = desc
    step_of = {"RNN": _rnn, "LSTM": _lstm, "GRU": _gru}[spec.name]
    count = 2 if spec.name == "LSTM" else 1  # of states
    directions = 2 if members.Direction == RecurrentNetworkDirection.BIDIRECTIONAL else 1
    _, steps, batch, _ = members.InputTensor.Sizes
    hidden = members.RecurrenceTensor.Sizes[3]
    activations = [_activation(each) for each in members.ActivationDescs]
    each = len(activations) // directions

    def run(read: Tensors, written: Tensors) -> None:
        wide: list[Any] = [None if tensor is None else widened(tensor) for tensor in read]
        (x, w, r, bias), initial, (lengths, *more) = wide[:4], wide[4 : 4 + count], wide[4 + count :]
        w, r = (matrix.reshape(directions, -1, hidden, matrix.shape[3]) for matrix in (w, r))
        sizes = directions, 2, w.shape[1], 1, hidden
        biases = x.new_zeros(sizes) if bias is None else bias.reshape(sizes)
        ends = None if lengths is None else lengths.reshape(batch, 1)
        for direction in range(directions):
            of_x = torch.matmul(x[0].flatten(0, 1), w[direction].mT) + biases[direction, 0]
            of_x = of_x.unflatten(1, (steps, batch))
            peepholes = more[0].reshape(directions, 3, hidden)[direction] if more and more[0] is not None else None
            product = _product(r[direction], biases[direction, 1])
            step = step_of(desc, activations[each * direction :][:each], product, peepholes)
            states = [x.new_zeros((batch, hidden)) if state is None else state[0, direction] for state in initial]
            backward = members.Direction == RecurrentNetworkDirection.BACKWARD or direction == 1
            for t in reversed(range(steps)) if backward else range(steps):
                after = step(of_x[:, t], *states)
                h = after[0]
                if ends is not None:
                    h = torch.where(t < ends, h, 0.0)
                    after = [torch.where(t < ends, new, old) for new, old in zip(after, states, strict=True)]
                states = list(after)
                if written[0] is not None:
                    store(h, written[0][t, direction])
            for state, out in zip(states, written[1:], strict=True):
                if out is not None:
                    store(state, out[0, direction])

    return run


def _activation(desc: OperatorDesc) -> Callable[[Any], Any]:
    function = fused(desc)
    return lambda x: function(x).to(x.dtype)


def _product(r: Any, bias: Any) -> _Product:
    return lambda h: torch.matmul(h, r.mT) + bias


def _rnn(desc: Any, activations: Sequence[Any], of_h: _Product, peepholes: Any) -> _Step:
    (f,) = activations
    # H_t = f(X_t * W^T + H_(t-1) * R^T + W_b + R_b)
    return lambda of_x, h: (f((of_x + of_h(h))[0]),)


def _lstm(desc: Any, activations: Sequence[Any], of_h: _Product, peepholes: Any) -> _Step:
    f, g, of_cell = activations
    limit = desc.ClipThreshold if desc.UseClipThreshold else inf

    def gate(activation: Any, a: Any, k: int = 0, c: Any = None) -> Any:
        """Of peephole k, where it looks at a state."""
        seen = a if c is None or peepholes is None else a + peepholes[k] * c
        return activation(seen.clamp(-limit, limit))

    def step(of_x: Any, h: Any, c: Any) -> Sequence[Any]:
        # i = f(clip(a_i + P_i . C_(t-1)));  forget = f(clip(a_f + P_f . C_(t-1))), or 1 - i
        # C_t = forget . C_(t-1) + i . g(clip(a_c))
        # H_t = f(clip(a_o + P_o . C_t)) . h(C_t)
        a_i, a_o, a_f, a_c = of_x + of_h(h)
        i = gate(f, a_i, 0, c)
        forget = 1 - i if desc.CoupleInputForget else gate(f, a_f, 2, c)
        c = forget * c + i * gate(g, a_c)
        return gate(f, a_o, 1, c) * of_cell(c), c

    return step


def _gru(desc: Any, activations: Sequence[Any], of_h: _Product, peepholes: Any) -> _Step:
    f, g = activations

    def step(of_x: Any, h: Any) -> Sequence[Any]:
        # z = f(a_z + b_z(H_(t-1)));  r = f(a_r + b_r(H_(t-1)))
        # h = g(a_h + b_h(r . H_(t-1))), or g(a_h + r . b_h(H_(t-1)))
        # H_t = (1 - z) . h + z . H_(t-1)
        a_z, a_r, a_h = of_x
        b_z, b_r, b_h = of_h(h)
        update, reset = f(a_z + b_z), f(a_r + b_r)
        new = g(a_h + (reset * b_h if desc.LinearBeforeReset else of_h(reset * h)[2]))
        return ((1 - update) * new + update * h,)

    return step
