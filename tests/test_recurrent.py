"""The recurrent operators: against PyTorch, against exact arithmetic, against themselves; and what is theirs alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml
from anydml import (
    DML_BUFFER_TENSOR_DESC,
    Device,
    DMLError,
    DMLValueError,
    FeatureLevel,
    Graph,
    HResult,
    TensorDataType,
    TensorFlags,
    validate,
)
from anydml.core.enums import RecurrentNetworkDirection
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from cases import tensor, tensor_of
from exact import FLOATS
from harness import ENGINE, compiled, run

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

OPERATORS = ("RNN", "LSTM", "GRU")
FORWARD, BACKWARD, BIDIRECTIONAL = RecurrentNetworkDirection
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
INITIAL = ("HiddenInitTensor", "CellMemInitTensor")
each_operator = pytest.mark.parametrize("operator", OPERATORS)


def activation(name: str, **members: float) -> OperatorDesc:
    return spec(f"ACTIVATION_{name}").desc(**members)


USUAL = {
    "RNN": [activation("TANH")],
    "LSTM": [activation("SIGMOID"), activation("TANH"), activation("TANH")],
    "GRU": [activation("SIGMOID"), activation("TANH")],
}
IDENTITIES = {operator: [activation("IDENTITY")] * len(usual) for operator, usual in USUAL.items()}


def sizes(operator: str, steps: int = 4, batch: int = 5, read: int = 3, hidden: int = 2, directions: int = 1) -> Any:
    """Of every tensor that an operator may have."""
    gates = GATES[operator]
    state = (1, directions, batch, hidden)
    every = {
        "InputTensor": (1, steps, batch, read),
        "WeightTensor": (1, directions, gates * hidden, read),
        "RecurrenceTensor": (1, directions, gates * hidden, hidden),
        "BiasTensor": (1, 1, directions, 2 * gates * hidden),
        "HiddenInitTensor": state,
        "CellMemInitTensor": state,
        "SequenceLengthsTensor": (1, 1, 1, batch),
        "PeepholeTensor": (1, 1, directions, 3 * hidden),
        "OutputSequenceTensor": (steps, directions, batch, hidden),
        "OutputSingleTensor": state,
        "OutputCellSingleTensor": state,
    }
    return {name: every[name] for name in spec(operator).tensors}


def whole(operator: str, **members: Any) -> Any:
    """A desc of everything that there is, in one direction."""
    tensors = {
        name: tensor(each, "UINT32" if name == "SequenceLengthsTensor" else "FLOAT32")
        for name, each in sizes(operator).items()
    }
    clip = {"ClipThreshold": 1} if operator == "LSTM" else {}
    return spec(operator).desc(**{**tensors, "ActivationDescs": USUAL[operator], **clip, **members})


def values(
    operator: str, rng: np.random.Generator, dtype: Any = np.float32, integers: bool = False, **dimensions: int
) -> dict[str, np.ndarray]:
    """For every input."""
    found = {}
    for name, each in sizes(operator, **dimensions).items():
        if name == "SequenceLengthsTensor":
            found[name] = rng.integers(0, dimensions["steps"] + 1, each, np.uint32)
        elif not name.startswith("Output"):
            found[name] = (rng.integers(-2, 3, each) if integers else rng.uniform(-1, 1, each)).astype(dtype)
    return found


def computed(operator: str, inputs: Mapping[str, np.ndarray | None], **options: Any) -> list[np.ndarray]:
    """All outputs."""
    found = spec(operator)
    x, r = inputs["InputTensor"], inputs["RecurrenceTensor"]
    assert x is not None
    assert r is not None
    dimensions = {"steps": x.shape[1], "batch": x.shape[2], "hidden": r.shape[3], "directions": r.shape[1]}
    every = sizes(operator, **dimensions)
    kind = tensor_of(x).DataType.name
    outputs = {name: tensor(each, kind) for name, each in every.items() if name.startswith("Output")}
    tensors = {name: tensor_of(array) for name, array in inputs.items() if array is not None}
    clip = {"ClipThreshold": 0} if operator == "LSTM" else {}
    desc = found.desc(**tensors, **outputs, **{"ActivationDescs": USUAL[operator] * r.shape[1], **clip, **options})
    given_ = [inputs.get(name) for name, _ in found.inputs(desc)]
    return [array for array in run(ENGINE, desc, given_) if array is not None]


# PyTorch


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("direction", RecurrentNetworkDirection, ids=lambda each: each.name)
@pytest.mark.parametrize(
    "left_out", [(), ("SequenceLengthsTensor",), ("BiasTensor", "HiddenInitTensor", "CellMemInitTensor")]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@each_operator
def test_is_what_pytorch_computes_in_double_precision_rounded_once(
    torch: Any, operator: str, dtype: Any, left_out: Sequence[str], direction: RecurrentNetworkDirection
) -> None:
    steps, batch, read, hidden = 7, 4, 3, 5
    directions = 2 if direction == BIDIRECTIONAL else 1
    rng = np.random.default_rng(len(left_out))
    inputs = values(operator, rng, dtype, steps=steps, batch=batch, read=read, hidden=hidden, directions=directions)
    inputs["SequenceLengthsTensor"] = np.array([5, 7, 1, 3], np.uint32).reshape(1, 1, 1, 4)
    inputs = {name: each for name, each in inputs.items() if name not in (*left_out, "PeepholeTensor")}
    options = {"LinearBeforeReset": True} if operator == "GRU" else {}
    y, *last = computed(operator, inputs, Direction=direction, **options)

    # PyTorch has the gates i, f, c, o and r, z, h.
    order = {"RNN": [0], "LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2]}[operator]
    gates = GATES[operator]
    # It has no backward direction alone: the forward one then reads the steps from the last to the first.
    network = getattr(torch.nn, operator)(read, hidden, bidirectional=directions == 2).double()
    bias = inputs.get("BiasTensor", np.zeros((1, 1, directions, 2 * gates * hidden)))
    for d, suffix in zip(range(directions), ("", "_reverse"), strict=False):
        parts = {
            "weight_ih": inputs["WeightTensor"][0, d],
            "weight_hh": inputs["RecurrenceTensor"][0, d],
            "bias_ih": bias[0, 0, d, : gates * hidden],
            "bias_hh": bias[0, 0, d, gates * hidden :],
        }
        for name, part in parts.items():
            gated = part.reshape(gates, hidden, *part.shape[1:])[order].reshape(part.shape)
            getattr(network, f"{name}_l0{suffix}").data = torch.from_numpy(gated.astype(np.float64))
    lengths = inputs.get("SequenceLengthsTensor", np.full((1, 1, 1, batch), steps)).ravel().astype(np.int64)
    x = inputs["InputTensor"][0].astype(np.float64)
    zeros = np.zeros((1, directions, batch, hidden))
    initial = [torch.from_numpy(inputs.get(name, zeros)[0].astype(np.float64)) for name in INITIAL]
    x = reversed_parts(x, lengths) if direction == BACKWARD else x
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.from_numpy(x), lengths, enforce_sorted=False)
    with torch.no_grad():
        sequence, state = network(packed, tuple(initial) if operator == "LSTM" else initial[0])
        sequence, _ = torch.nn.utils.rnn.pad_packed_sequence(sequence)
    sequence = sequence.numpy().reshape(steps, batch, directions, hidden)
    sequence = reversed_parts(sequence, lengths) if direction == BACKWARD else sequence
    assert_rounded(y, sequence.swapaxes(1, 2))
    for actual, expected in zip(last, state if operator == "LSTM" else [state], strict=True):
        assert_rounded(actual, expected.numpy()[None])


def reversed_parts(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """What each sequence has, from its last step to its first; the axes are steps and sequences."""
    result = x.copy()
    for i, length in enumerate(lengths):
        result[:length, i] = x[:length, i][::-1]
    return result


def assert_rounded(y: np.ndarray, exact: np.ndarray) -> None:
    """Within half a unit in the last place, but for what the computation itself leaves open.

    FLOAT16 is computed in single precision, so it is left more.
    """
    slack = 1e-6 if y.dtype == np.float32 else 1e-2
    assert y.shape == exact.shape
    assert (np.abs(y - exact) <= (0.5 + slack) * np.spacing(np.abs(y)).astype(np.float64)).all()


# Exact arithmetic: integers and fractions, element by element


def activations_of(operator: str) -> dict[str, Any]:
    """Those that keep fractions what they are, with what they do."""
    return {
        "IDENTITY": (activation("IDENTITY"), lambda x: x),
        "RELU": (activation("RELU"), lambda x: max(x, 0)),
        "LINEAR": (activation("LINEAR", Alpha=0.5, Beta=-1), lambda x: x / 2 - 1),
        "THRESHOLDED_RELU": (activation("THRESHOLDED_RELU", Alpha=1), lambda x: x if x > 1 else Fraction(0)),
    }


Vector = list[Fraction]


class Layer:
    """One direction, by the equations of the pages."""

    def __init__(self, operator: str, inputs: Mapping[str, Any], d: int, functions: Any, options: Any) -> None:
        hidden = inputs["RecurrenceTensor"].shape[3]

        def fractions(name: str) -> Any:
            array = inputs.get(name)
            return None if array is None else np.vectorize(Fraction, otypes=[object])(array.astype(float))

        def gates(name: str, part: int = 0, parts: int = 1) -> Any:
            array = fractions(name)
            if array is None:
                return np.full((GATES[operator], hidden), Fraction(0))
            array = array[0, 0, d] if name in ("BiasTensor", "PeepholeTensor") else array[0, d]
            return array.reshape(parts, -1, hidden, *array.shape[1:])[part]

        self.operator, self.functions, self.options = operator, functions, SimpleNamespace(**options)
        self.w, self.r = gates("WeightTensor"), gates("RecurrenceTensor")
        self.wb, self.rb = gates("BiasTensor", 0, 2), gates("BiasTensor", 1, 2)
        self.p = None if inputs.get("PeepholeTensor") is None else gates("PeepholeTensor")
        self.x = fractions("InputTensor")[0]
        self.h0, self.c0 = fractions("HiddenInitTensor"), fractions("CellMemInitTensor")
        self.d, self.hidden = d, hidden

    def states(self, sequence: int, order: Sequence[int]) -> Iterator[tuple[int, Vector, Vector]]:
        """After each step: which it was, H and C; first of all, as step -1, the initial ones."""
        zeros = [Fraction(0)] * self.hidden
        h = zeros if self.h0 is None else list(self.h0[0, self.d, sequence])
        c = zeros if self.c0 is None else list(self.c0[0, self.d, sequence])
        yield -1, h, c
        for t in order:
            h, c = self.step(list(self.x[t, sequence]), h, c)
            yield t, h, c

    def step(self, x: Vector, h: Vector, c: Vector) -> tuple[Vector, Vector]:
        units = range(self.hidden)

        def from_x(k: int, j: int) -> Fraction:
            return sum((a * b for a, b in zip(self.w[k, j], x, strict=True)), self.wb[k, j])

        def from_h(k: int, j: int, h: Vector = h) -> Fraction:
            return sum((a * b for a, b in zip(self.r[k, j], h, strict=True)), self.rb[k, j])

        if self.operator == "RNN":
            (f,) = self.functions
            return [f(from_x(0, j) + from_h(0, j)) for j in units], c
        if self.operator == "GRU":
            f, g = self.functions
            z, r = ([f(from_x(k, j) + from_h(k, j)) for j in units] for k in (0, 1))
            if self.options.LinearBeforeReset:
                new = [g(from_x(2, j) + r[j] * from_h(2, j)) for j in units]
            else:
                new = [g(from_x(2, j) + from_h(2, j, [a * b for a, b in zip(r, h, strict=True)])) for j in units]
            return [(1 - z[j]) * new[j] + z[j] * h[j] for j in units], c
        f, g, last = self.functions
        limit = Fraction(self.options.ClipThreshold) if self.options.UseClipThreshold else None

        def entering(k: int, j: int, c: Vector, peephole: int | None = None) -> Fraction:
            a = from_x(k, j) + from_h(k, j)
            if self.p is not None and peephole is not None:
                a += self.p[peephole, j] * c[j]
            return a if limit is None else max(-limit, min(a, limit))

        i = [f(entering(0, j, c, 0)) for j in units]
        forget = [1 - i[j] if self.options.CoupleInputForget else f(entering(2, j, c, 2)) for j in units]
        after = [forget[j] * c[j] + i[j] * g(entering(3, j, c)) for j in units]
        return [f(entering(1, j, after, 1)) * last(after[j]) for j in units], after


@settings(max_examples=60, deadline=None)
@given(st.data())
@each_operator
def test_is_the_exact_result_rounded_once(operator: str, data: st.DataObject) -> None:
    direction = data.draw(st.sampled_from(RecurrentNetworkDirection))
    directions = 2 if direction == BIDIRECTIONAL else 1
    steps, batch, read, hidden = (data.draw(st.integers(1, most)) for most in (3, 3, 2, 2))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dimensions = {"steps": steps, "batch": batch, "read": read, "hidden": hidden, "directions": directions}
    inputs = values(operator, rng, data.draw(st.sampled_from([np.float32, np.float16])), True, **dimensions)
    if inputs["InputTensor"].dtype == np.float16:  # few enough bits that single precision holds every step
        inputs["InputTensor"][:, 1:] = 0
        inputs["RecurrenceTensor"] //= 2
    optional = [name for name, row in spec(operator).tensors.items() if row.kind == "Optional input"]
    inputs = {name: each for name, each in inputs.items() if name not in optional or data.draw(st.booleans())}
    chosen = [data.draw(st.sampled_from(list(activations_of(operator).values()))) for _ in USUAL[operator] * directions]
    options: dict[str, Any] = {}
    if operator == "LSTM":
        options = {"ClipThreshold": data.draw(st.sampled_from([0, 1, 2.5]))}
        options |= {name: data.draw(st.booleans()) for name in ("UseClipThreshold", "CoupleInputForget")}
    elif operator == "GRU":
        options = {"LinearBeforeReset": data.draw(st.booleans())}
    y, *last = computed(operator, inputs, ActivationDescs=[each for each, _ in chosen], Direction=direction, **options)

    rounded = FLOATS[y.dtype].rounded
    lengths = inputs.get("SequenceLengthsTensor", np.full((1, 1, 1, batch), steps)).ravel()
    expected = [np.zeros_like(each) for each in (y, *last)]
    for d in range(directions):
        each = len(USUAL[operator])
        layer = Layer(operator, inputs, d, [function for _, function in chosen[d * each :][:each]], options)
        for i, length in enumerate(lengths):
            order = list(range(length))
            for t, h, c in layer.states(i, order[::-1] if direction == BACKWARD or d else order):
                if t >= 0:
                    expected[0][t, d, i] = [rounded(value) for value in h]
                for state, exact in zip(expected[1:], (h, c), strict=False):
                    state[0, d, i] = [rounded(value) for value in exact]
    for actual, right in zip((y, *last), expected, strict=True):
        np.testing.assert_array_equal(actual, right)


# Against themselves


@each_operator
def test_a_sequence_in_a_batch_is_what_it_is_alone(operator: str) -> None:
    rng = np.random.default_rng(1)
    for direction in RecurrentNetworkDirection:
        directions = 2 if direction == BIDIRECTIONAL else 1
        inputs = values(operator, rng, steps=6, batch=5, read=3, hidden=4, directions=directions)
        inputs["SequenceLengthsTensor"] = np.array([3, 6, 1, 0, 5], np.uint32).reshape(1, 1, 1, 5)
        acts = {"ActivationDescs": USUAL[operator] * directions, "Direction": direction}
        y, *last = computed(operator, inputs, **acts)
        for i, length in enumerate([3, 6, 1, 0, 5]):
            alone: dict[str, Any] = {**inputs, "SequenceLengthsTensor": None}
            alone["InputTensor"] = inputs["InputTensor"][:, : max(length, 1), i : i + 1]
            for name in INITIAL:
                if name in inputs:
                    alone[name] = inputs[name][:, :, i : i + 1]
            states = [inputs[name] for name in INITIAL if name in inputs]
            if length:
                sequence, *states = computed(operator, alone, **acts)
                np.testing.assert_array_max_ulp(y[:length, :, i], sequence[:, :, 0])
                states = [np.repeat(each, 5, axis=2) for each in states]
            assert (y[length:, :, i] == 0).all()
            for actual, expected in zip(last, states, strict=True):
                np.testing.assert_array_max_ulp(actual[:, :, i], expected[:, :, i])


@each_operator
def test_backward_is_forward_on_the_reversed_sequence_and_both_are_both(operator: str) -> None:
    inputs = values(operator, np.random.default_rng(2), steps=6, batch=5, read=3, hidden=4, directions=2)
    del inputs["SequenceLengthsTensor"]

    def one(d: int) -> dict[str, np.ndarray]:
        """The inputs of one direction."""
        found = {}
        for name, each in inputs.items():
            axis = 2 if name in ("BiasTensor", "PeepholeTensor") else 1
            found[name] = each if name == "InputTensor" else each.take([d], axis)
        return found

    forward, backward = computed(operator, one(0)), computed(operator, one(1), Direction=BACKWARD)
    reverse = {**one(1), "InputTensor": inputs["InputTensor"][:, ::-1].copy()}
    sequence, *states = computed(operator, reverse)
    for actual, expected in zip(backward, [sequence[::-1], *states], strict=True):
        np.testing.assert_array_equal(actual, expected)
    both = computed(operator, inputs, Direction=BIDIRECTIONAL)
    for actual, *expected in zip(both, forward, backward, strict=True):
        np.testing.assert_array_equal(actual, np.concatenate(expected, axis=1))


@each_operator
def test_a_sequence_may_be_cut_anywhere_and_its_states_carried_on(operator: str) -> None:
    inputs = values(operator, np.random.default_rng(3), integers=True, steps=4, batch=3, read=2, hidden=2, directions=1)
    del inputs["SequenceLengthsTensor"]
    # What is rounded between the parts has to be exact.
    inputs["RecurrenceTensor"] = np.sign(inputs["RecurrenceTensor"])
    options = {"ActivationDescs": IDENTITIES[operator]}
    if operator == "LSTM":
        options |= {"ClipThreshold": 2, "UseClipThreshold": True}
    else:
        options["ActivationDescs"] = [activation("HARD_SIGMOID", Alpha=0.25, Beta=0.5)] * len(USUAL[operator])
    y, *last = computed(operator, inputs, **options)
    for cut in range(5):
        parts = []
        states = [inputs[name] for name in INITIAL if name in inputs]
        for x in (inputs["InputTensor"][:, :cut], inputs["InputTensor"][:, cut:]):
            carried = zip(INITIAL, states, strict=False)
            some = x if x.shape[1] else np.full((1, 1, 3, 2), np.nan, np.float32)
            length = np.full((1, 1, 1, 3), x.shape[1], np.uint32)
            part = {**inputs, "InputTensor": some, "SequenceLengthsTensor": length, **dict(carried)}
            sequence, *states = computed(operator, part, **options)
            parts.append(sequence[: x.shape[1]])
        for actual, expected in zip([np.concatenate(parts), *states], [y, *last], strict=True):
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("x", "states"),
    [([2**24, 1, 1], [2**24, 2**24, 2**24 + 2]), (np.finfo(np.float32).max * np.array([1, 1, -1], np.float32), None)],
)
def test_a_state_of_float32_that_its_type_does_not_hold_goes_on_as_it_is(x: Any, states: Any) -> None:
    """In double precision; the CPU's kernels hold it in single precision."""
    ones = np.ones((1, 1, 1, 1), np.float32)
    inputs = {
        "InputTensor": np.array(x, np.float32).reshape(1, 3, 1, 1),
        "WeightTensor": ones,
        "RecurrenceTensor": ones,
    }
    y, last = computed("RNN", inputs, ActivationDescs=IDENTITIES["RNN"])
    most = np.finfo(np.float32).max
    np.testing.assert_array_equal(y.ravel(), [most, np.inf, most] if states is None else states)
    assert last.ravel() == y.ravel()[-1]


# Outputs that are left out


def some_outputs(operator: str) -> Iterator[tuple[str, ...]]:
    outputs = [name for name in spec(operator).tensors if name.startswith("Output")]
    return chain.from_iterable(combinations(outputs, count) for count in range(1, len(outputs)))


@pytest.mark.parametrize(
    ("operator", "absent"), [(operator, absent) for operator in OPERATORS for absent in some_outputs(operator)]
)
@pytest.mark.parametrize("through", ["dispatch", "flat", "table"])
def test_what_is_left_out_changes_nothing_else(operator: str, absent: Sequence[str], through: str) -> None:
    desc = whole(operator)
    inputs = list(values(operator, np.random.default_rng(4), steps=4, batch=5, read=3, hidden=2, directions=1).values())
    every = run(ENGINE, desc, inputs)
    labels = [label for label, _ in spec(operator).outputs(desc)]
    some = run(ENGINE, replace(desc, **dict.fromkeys(absent)), inputs, through)
    for label, actual, expected in zip(labels, some, every, strict=True):
        if label in absent:
            assert actual is None
        else:
            np.testing.assert_array_equal(actual, expected)


@each_operator
def test_what_is_left_out_is_bound_as_none_and_nothing_else_is(operator: str) -> None:
    desc = whole(operator, OutputSequenceTensor=None)
    inputs = list(values(operator, np.random.default_rng(5), steps=4, batch=5, read=3, hidden=2, directions=1).values())
    found = compiled("reference", desc)
    outputs = [None if each is None else np.empty(each.Sizes, np.float32) for _, each in spec(operator).outputs(desc)]
    assert found.binding_properties().RequiredDescriptorCount == len(inputs) + len(outputs)
    for wrong, where in (
        ([np.empty((4, 1, 5, 2), np.float32), *outputs[1:]], "OutputSequenceTensor: .* None: the desc leaves it out"),
        ([None, None, *outputs[2:]], "OutputSingleTensor: found None, expected an array"),
    ):
        with pytest.raises(DMLError, match=rf"{where}.*\(B2\)"):
            found.dispatch(inputs, wrong)
    with pytest.raises(DMLError, match=r"outputs: found \d, expected a list of \d: OutputSequenceTensor, .*\(B1\)"):
        found.dispatch(inputs, outputs[1:])
    with pytest.raises(DMLError, match=r"OutputSingleTensor: found memory shared with HiddenInitTensor.*\(B7\)"):
        found.dispatch(inputs, [None, inputs[4], *outputs[2:]])


@each_operator
def test_in_a_graph(operator: str) -> None:
    inputs = values(operator, np.random.default_rng(6), steps=4, batch=5, read=3, hidden=2, directions=1)
    device = Device("reference")
    graph = Graph(device)
    expressions = {name: graph.input(tensor_of(array)) for name, array in inputs.items()}
    clip = {"ClipThreshold": 0} if operator == "LSTM" else {}
    kind = spec(operator).desc
    (last,) = graph.operator(
        kind, **expressions, **clip, OutputSingleTensor=TensorDataType.FLOAT32, ActivationDescs=USUAL[operator]
    )
    (again,) = graph.operator(anydml.DML_ACTIVATION_RELU_OPERATOR_DESC, InputTensor=last)
    y = np.empty(last.tensor.Sizes, np.float32)
    graph.compile([again]).dispatch(list(inputs.values()), [y])
    np.testing.assert_array_equal(y, np.maximum(computed(operator, inputs)[1], 0))
    with pytest.raises(DMLValueError, match=r"\(C6\)"):
        graph.operator(kind, **expressions, **clip, ActivationDescs=USUAL[operator])


def test_an_output_that_is_left_out_takes_no_memory() -> None:
    """A broadcast input takes 4 bytes; the sequence of its states would take 4 for each step."""
    steps = 2**10
    desc = spec("RNN").desc(
        InputTensor=tensor((1, steps, 1, 1), "FLOAT32", (0, 0, 0, 0)),
        WeightTensor=tensor((1, 1, 1, 1)),
        RecurrenceTensor=tensor((1, 1, 1, 1)),
        OutputSingleTensor=tensor((1, 1, 1, 1)),
        ActivationDescs=IDENTITIES["RNN"],
    )
    one = np.ones((1, 1, 1, 1), np.float32)
    x = np.broadcast_to(one, (1, steps, 1, 1))
    assert spec("RNN").reference(desc, x, one, one, None, None, None)[0].size == 0
    assert spec("RNN").reference(desc, x, one, one, None, None, None)[1] == steps


# Rules


def test_whole_descs_are_right() -> None:
    for operator in OPERATORS:
        assert validate(whole(operator), strict=True) == []
        assert validate(whole(operator), FeatureLevel.LEVEL_1_0) == []


@pytest.mark.parametrize(
    ("operator", "name", "i"),
    [(operator, name, i) for operator in OPERATORS for name in spec(operator).tensors for i in range(4)],
)
def test_every_size_of_every_tensor_has_to_fit(operator: str, name: str, i: int) -> None:
    desc = whole(operator)
    old: DML_BUFFER_TENSOR_DESC = getattr(desc, name)
    wrong = tensor([size + (k == i) for k, size in enumerate(old.Sizes)], old.DataType.name)
    violations = validate(replace(desc, **{name: wrong}))
    # Three sizes of the input and one of the recurrence are what others have to fit.
    if (name, i) in (("InputTensor", 1), ("InputTensor", 2), ("InputTensor", 3), ("RecurrenceTensor", 3)):
        assert {v.rule for v in violations} <= {"(C3)", "(C4)"}
        assert len(violations) >= 1
        return
    (violation,) = violations
    assert violation.rule == ("(C4)" if name.startswith("Output") else "(C3)")
    assert violation.where == f"{name}.Sizes[{i}]"
    assert violation.found == str(wrong.Sizes[i])
    assert violation.expected.partition(",")[0] == str(old.Sizes[i])


def test_sizes_are_explained() -> None:
    (violation,) = validate(whole("LSTM", WeightTensor=tensor((1, 1, 6, 3))))
    assert str(violation) == (
        "LSTM.WeightTensor.Sizes[2]: found 6, expected 8, 4 * hidden_size (C3). "
        "hidden_size is 2 by RecurrenceTensor.Sizes[3]"
    )
    (violation,) = validate(whole("RNN", BiasTensor=tensor((1, 1, 2, 4))))
    assert str(violation) == (
        "RNN.BiasTensor.Sizes[2]: found 2, expected 1, num_directions (C3). num_directions is 1 by Direction"
    )


@each_operator
def test_both_directions_need_tensors_of_two(operator: str) -> None:
    usual = USUAL[operator]
    wrong = validate(whole(operator, Direction=BIDIRECTIONAL, ActivationDescs=usual * 2))
    states = [name for name in spec(operator).tensors if name not in ("InputTensor", "SequenceLengthsTensor")]
    assert [v.where.partition(".")[0] for v in wrong] == states
    (count,) = (v for v in validate(whole(operator, Direction=BIDIRECTIONAL)) if v.rule == "(C5)")
    assert count.expected == f"{2 * len(usual)}, {len(usual)} for each direction"


@pytest.mark.parametrize(
    ("operator", "name"),
    [(operator, name) for operator in OPERATORS for name in spec(operator).tensors if not name.startswith("Output")],
)
def test_no_input_may_be_owned(operator: str, name: str) -> None:
    desc = whole(operator)
    owned = replace(getattr(desc, name), Flags=TensorFlags.OWNED_BY_DML)
    (violation,) = validate(replace(desc, **{name: owned}))
    assert (violation.rule, violation.where) == ("(C2)", f"{name}.Flags")


@pytest.mark.parametrize("limit", [-1, -np.inf, np.nan])
def test_a_limit_that_limits_nothing(limit: float) -> None:
    (violation,) = validate(whole("LSTM", ClipThreshold=limit, UseClipThreshold=True))
    assert (violation.rule, violation.where) == ("(C7)", "ClipThreshold")
    assert validate(whole("LSTM", ClipThreshold=limit)) == []


@each_operator
def test_activations_are_those_that_may_be_fused_anywhere(operator: str) -> None:
    _, *rest = USUAL[operator]

    def refused(name: str, level: FeatureLevel = FeatureLevel.LEVEL_6_4, **members: Any) -> Any:
        desc = whole(operator, ActivationDescs=[activation(name, **members), *rest])
        return [(v.rule, v.where, v.hresult) for v in validate(desc, level)]

    for name, members in (("ELU", {"Alpha": 1}), ("RELU", {}), ("SHRINK", {"Bias": 0, "Threshold": 1})):
        assert refused(name, **members) == []
    (found,) = refused("SHRINK", FeatureLevel.LEVEL_1_0, Bias=0, Threshold=1)
    assert found == ("(S4)", "ActivationDescs[0]", HResult.DXGI_ERROR_UNSUPPORTED)
    assert refused("SOFTMAX") == [("(S4)", "ActivationDescs[0]", HResult.E_INVALIDARG)]
    x = tensor((1, 1))
    assert [rule for rule, _, _ in refused("HARDMAX", InputTensor=x, OutputTensor=x)] == ["(F11)"]
    assert [where for _, where, _ in refused("RELU", InputTensor=x)] == ["ActivationDescs[0].InputTensor"]


@pytest.mark.parametrize("through", ["arrays", "bytes"])
@each_operator
def test_a_sequence_longer_than_there_are_steps_is_refused_and_nothing_written(operator: str, through: str) -> None:
    desc = whole(operator)
    inputs = values(operator, np.random.default_rng(7), steps=4, batch=5, read=3, hidden=2, directions=1)
    inputs["SequenceLengthsTensor"][0, 0, 0, 3] = 5
    given_ = [each if through == "arrays" else each.reshape(-1).view(np.uint8) for each in inputs.values()]
    outputs = [np.full(each.Sizes, 7, np.float32) for _, each in spec(operator).outputs(desc)]
    with pytest.raises(DMLValueError, match=r"\(V1\)") as raised:
        compiled("reference", desc).dispatch(given_, outputs)
    (violation,) = raised.value.violations
    assert violation.where == "SequenceLengthsTensor"
    assert (violation.found, violation.expected) == ("5 for sequence 3", "at most 4, seq_length")
    assert all((each == 7).all() for each in outputs)


@each_operator
def test_wrong_ranks_are_refused_by_the_table_alone(operator: str) -> None:
    for name in spec(operator).tensors:
        for rank in (1, 3, 5, 8):
            desc = whole(operator, **{name: tensor((1,) * rank, getattr(whole(operator), name).DataType.name)})
            assert {v.rule for v in validate(desc)} == {"(S2)"}
