"""The recurrent operators, on integers and simple fractions that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import anydml
from anydml import DML_BUFFER_TENSOR_DESC, TensorDataType, TensorFlags
from anydml.core.enums import RecurrentNetworkDirection
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import FLOATS, Shape, Support, ones

from . import Case, Negative, bad, tensor, tensor_of

BACKWARD, BIDIRECTIONAL = RecurrentNetworkDirection.BACKWARD, RecurrentNetworkDirection.BIDIRECTIONAL
INF, NAN = np.inf, np.nan
IDENTITY = anydml.DML_ACTIVATION_IDENTITY_OPERATOR_DESC()
RELU = anydml.DML_ACTIVATION_RELU_OPERATOR_DESC()
HALF = anydml.DML_ACTIVATION_LINEAR_OPERATOR_DESC(Alpha=0.5, Beta=0)


def _case(
    id: str,
    operator: str,
    activations: Sequence[OperatorDesc],
    values: Mapping[str, Any],
    dtype: Any = np.float32,
    strides: Mapping[str, Sequence[int]] | None = None,
    **options: Any,
) -> Case:
    """`values` are those of all tensors that are there, by their names without `Tensor`."""
    found = spec(operator)
    types = {name: np.uint32 if name == "SequenceLengthsTensor" else dtype for name in found.tensors}
    there = {f"{name}Tensor": each for name, each in values.items()}
    arrays = {name: np.array(there[name], types[name]) if name in there else None for name in found.tensors}
    tensors = {
        name: None if array is None else tensor_of(array, (strides or {}).get(name)) for name, array in arrays.items()
    }
    desc = found.desc(**tensors, ActivationDescs=activations, **options)
    inputs, outputs = ([arrays[name] for name, _ in side] for side in (found.inputs(desc), found.outputs(desc)))
    return Case(f"{operator.lower()}-{id}", desc, inputs, outputs)


def _steps(*values: Any) -> list[Any]:
    """Input of a batch of 1 and a size of 1."""
    return [[[[value]] for value in values]]


def _states(*values: Any) -> list[Any]:
    """OutputSequenceTensor likewise, in one direction."""
    return [[[[value]]] for value in values]


def _rnn() -> list[Case]:
    # H_t = 2 * X_t + H_(t-1)
    one = {"Input": _steps(1, 2, 3), "Weight": [[[[2]]]], "Recurrence": [[[[1]]]]}
    both = {**one, "Weight": [[[[2]], [[1]]]], "Recurrence": [[[[1]], [[-1]]]]}
    # Three sequences; what is behind their ends must not matter.
    three = {
        "Input": [[[[1], [4], [NAN]], [[2], [INF], [INF]], [[3], [NAN], [NAN]]]],
        "Weight": [[[[2]]]],
        "Recurrence": [[[[1]]]],
        "HiddenInit": [[[[10], [20], [30]]]],
        "SequenceLengths": [[[[3, 1, 0]]]],
    }
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        cases += [
            _case(f"{kind}-forward", "RNN", [IDENTITY],
                one | {"OutputSequence": _states(2, 6, 12), "OutputSingle": [[[[12]]]]}, dtype),
            _case(f"{kind}-backward", "RNN", [IDENTITY],
                one | {"OutputSequence": _states(12, 10, 6), "OutputSingle": [[[[12]]]]}, dtype, Direction=BACKWARD),
            # Backward H_t = max(0, X_t - H_(t+1)): 3, max(0, 2 - 3), 1 - 0
            _case(f"{kind}-both", "RNN", [IDENTITY, RELU],
                both | {"OutputSequence": [[[[2]], [[1]]], [[[6]], [[0]]], [[[12]], [[3]]]],
                        "OutputSingle": [[[[12]], [[1]]]]}, dtype, Direction=BIDIRECTIONAL),
        ]  # fmt: skip
    cases += [
        # A state that the output's type does not hold goes on as it is; tests/test_recurrent.py has those of FLOAT32,
        # which native kernels round.
        _case("float16-wide-states", "RNN", [IDENTITY],
            one | {"Weight": [[[[1]]]], "Input": _steps(2048, 1, 1), "OutputSequence": _states(2048, 2048, 2050)},
            np.float16),
        _case("float16-overflow-and-back", "RNN", [IDENTITY],
            one | {"Weight": [[[[1]]]], "Input": _steps(65504, 65504, -65504),
                   "OutputSequence": _states(65504, INF, 65504)}, np.float16),
        _case("single-alone", "RNN", [IDENTITY], one | {"OutputSingle": [[[[12]]]]}),
        _case("sequence-alone", "RNN", [IDENTITY], one | {"OutputSequence": _states(2, 6, 12)}),
        _case("bias", "RNN", [IDENTITY], one | {"Bias": [[[[1, 2]]]], "OutputSequence": _states(5, 12, 21)}),
        _case("biases-of-both", "RNN", [IDENTITY, IDENTITY],
            both | {"Bias": [[[[1, 2], [3, 4]]]], "OutputSingle": [[[[21]], [[9]]]]}, Direction=BIDIRECTIONAL),
        _case("initial-state", "RNN", [IDENTITY],
            one | {"HiddenInit": [[[[10]]]], "OutputSequence": _states(12, 16, 22)}),
        _case("initial-states-of-both", "RNN", [IDENTITY, RELU],
            both | {"HiddenInit": [[[[10]], [[1]]]], "OutputSingle": [[[[22]], [[1]]]]}, Direction=BIDIRECTIONAL),
        _case("lengths", "RNN", [IDENTITY],
            three | {"OutputSequence": [[[[12], [28], [0]]], [[[16], [0], [0]]], [[[22], [0], [0]]]],
                     "OutputSingle": [[[[22], [28], [30]]]]}),
        _case("lengths-backward", "RNN", [IDENTITY],
            three | {"OutputSequence": [[[[22], [28], [0]]], [[[20], [0], [0]]], [[[16], [0], [0]]]],
                     "OutputSingle": [[[[22], [28], [30]]]]}, Direction=BACKWARD),
        # {1, 3} + {0, 0}, {2, 4} + {1 + 6, 3}; {3, 7}, {2, 6} + {3 + 14, 7}
        _case("matrices", "RNN", [IDENTITY], {
            "Input": [[[[1, 0], [1, 1]], [[0, 1], [2, 0]]]],
            "Weight": [[[[1, 2], [3, 4]]]],
            "Recurrence": [[[[1, 2], [0, 1]]]],
            "OutputSequence": [[[[1, 3], [3, 7]]], [[[9, 7], [19, 13]]]],
        }),
        _case("strides", "RNN", [IDENTITY], {
            "Input": [[[[1, 1], [5, 5]], [[2, 2], [7, 7]]]],
            "Weight": [[[[1, 2], [3, 4]]]],
            "Recurrence": [[[[1, 1], [1, 1]]]],
            "Bias": [[[[1, 1, 1, 1]]]],
            "OutputSequence": [[[[5, 9], [17, 37]]], [[[22, 30], [77, 105]]]],
            "OutputSingle": [[[[22, 30], [77, 105]]]],
        }, strides={
            "InputTensor": (99, 3, 7, 0),
            "WeightTensor": (8, 8, 1, 2),
            "RecurrenceTensor": (0, 0, 0, 0),
            "BiasTensor": (0, 0, 0, 0),
            "OutputSequenceTensor": (2, 50, 8, 17),
            "OutputSingleTensor": (1, 1, 5, 2),
        }),
    ]  # fmt: skip
    return cases


def _lstm() -> list[Case]:
    # a_i = 0.5 * 2 + 0.25 * 4 + 0 + 1 = 3, a_o = 2 + 2 + 1 = 5, a_f = 0.5 + 0.5 = 1, a_c = 6 - 4 + 2 = 4
    one = {
        "Input": _steps(2),
        "Weight": [[[[0.5], [1], [0.25], [3]]]],
        "Recurrence": [[[[0.25], [0.5], [0.125], [-1]]]],
        "Bias": [[[[0, 1, 0, 0, 1, 0, 0, 2]]]],
        "HiddenInit": [[[[4]]]],
        "CellMemInit": [[[[8]]]],
    }
    peepholes = {"Peephole": [[[[0.5, 0.25, 0.25]]]]}
    no_clipping: dict[str, Any] = {"ClipThreshold": 0}
    clipping = {"ClipThreshold": 2, "UseClipThreshold": True}

    def case(id: str, values: Mapping[str, Any], h: Any, c: Any, dtype: Any = np.float32, **options: Any) -> Case:
        outputs = {"OutputSequence": _states(h), "OutputSingle": [[[[h]]]], "OutputCellSingle": [[[[c]]]]}
        return _case(id, "LSTM", [IDENTITY, IDENTITY, HALF], {**values, **outputs}, dtype, **options)

    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        cases += [
            # C = 1 * 8 + 3 * 4 = 20, H = 5 * 20 / 2
            case(f"{kind}", one, 50, 20, dtype, **no_clipping),
            # C = (1 - 3) * 8 + 12
            case(f"{kind}-coupled", one, -10, -4, dtype, **no_clipping, CoupleInputForget=True),
            # i = 3 + 4, forget = 1 + 2, C = 3 * 8 + 7 * 4 = 52, o = 5 + 13, H = 18 * 26
            case(f"{kind}-peepholes", one | peepholes, 468, 52, dtype, **no_clipping),
            # C = 1 * 8 + 2 * 2, H = 2 * 12 / 2
            case(f"{kind}-clipped", one, 12, 12, dtype, **clipping),
            # C = 2 * 8 + 2 * 2, H = 2 * 20 / 2
            case(f"{kind}-peepholes-clipped", one | peepholes, 20, 20, dtype, **clipping),
        ]
    # From 0: a = 1, 2, 1, 1 for the first step, C = 1, H = 2 * 1 / 2; for the second, with H and C, C = 1 + 1
    two = {"Input": _steps(1, 1), "Weight": [[[[1], [2], [1], [1]]]], "Recurrence": [[[[0]] * 4]]}
    cases += [
        _case("cell-alone", "LSTM", [IDENTITY, IDENTITY, HALF], two | {"OutputCellSingle": [[[[2]]]]}, **no_clipping),
        _case("from-0", "LSTM", [IDENTITY, IDENTITY, HALF],
            two | {"OutputSequence": _states(1, 2), "OutputCellSingle": [[[[2]]]]}, **no_clipping),
        # Each direction its own: backward o = 3, and peepholes that only it has
        _case("both", "LSTM", [IDENTITY, IDENTITY, HALF] * 2, {
            **two,
            "Weight": [[[[1], [2], [1], [1]], [[1], [3], [1], [1]]]],
            "Recurrence": [[[[0]] * 4] * 2],
            "Peephole": [[[[0, 0, 0], [0, 1, 0]]]],
            # Backward C = 1, H = (3 + 1) / 2; then C = 2, H = (3 + 2) * 2 / 2
            "OutputSequence": [[[[1]], [[5]]], [[[2]], [[2]]]],
            "OutputSingle": [[[[2]], [[5]]]],
            "OutputCellSingle": [[[[2]], [[2]]]],
        }, Direction=BIDIRECTIONAL, **no_clipping),
        _case("lengths", "LSTM", [IDENTITY, IDENTITY, HALF], {
            **two,
            "Input": [[[[1], [1], [NAN]], [[1], [NAN], [INF]]]],
            "CellMemInit": [[[[0], [0], [7]]]],
            "SequenceLengths": [[[[2, 1, 0]]]],
            "OutputSequence": [[[[1], [1], [0]]], [[[2], [0], [0]]]],
            "OutputSingle": [[[[2], [1], [0]]]],
            "OutputCellSingle": [[[[2], [1], [7]]]],
        }, **no_clipping),
        # Without peepholes an infinite cell is not looked at: C = forget * inf, H = 2 * inf
        case("infinite-cell", {**two, "Input": _steps(1), "CellMemInit": [[[[INF]]]]}, INF, INF, **no_clipping),
    ]  # fmt: skip
    return cases


def _gru() -> list[Case]:
    # z = 0.5 - 0.5 + 0.25 + 0.25 = 0.5, r = 1 + 1 = 2
    one = {
        "Input": _steps(2),
        "Weight": [[[[0.25], [0.5], [1]]]],
        "Recurrence": [[[[0.0625], [0.25], [2]]]],
        "Bias": [[[[-0.5, 0, 1, 0.25, 0, 3]]]],
        "HiddenInit": [[[[4]]]],
    }
    # z = 0.5 and r = 1 always, so H_t = X_t / 2 + H_(t-1), backward X_t + H_(t-1)
    two = {
        "Input": _steps(2, 4),
        "Weight": [[[[0], [0], [1]], [[0], [0], [2]]]],
        "Recurrence": [[[[0], [0], [1]]] * 2],
        "Bias": [[[[0.5, 1, 0, 0, 0, 0]] * 2]],
    }
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        for linear, h in (
            (False, 13),  # h = 2 + 1 + 2 * 4 * 2 + 3 = 22, H = 0.5 * 22 + 0.5 * 4
            (True, 14.5),  # h = 2 + 1 + 2 * (4 * 2 + 3) = 25
        ):
            outputs = {"OutputSequence": _states(h), "OutputSingle": [[[[h]]]]}
            id = f"{kind}-linear" if linear else kind
            cases.append(_case(id, "GRU", [IDENTITY] * 2, one | outputs, dtype, LinearBeforeReset=linear))
    cases += [
        _case("both", "GRU", [IDENTITY] * 4, {
            **two,
            "OutputSequence": [[[[1]], [[6]]], [[[3]], [[4]]]],
            "OutputSingle": [[[[3]], [[6]]]],
        }, Direction=BIDIRECTIONAL),
        _case("lengths", "GRU", [IDENTITY] * 4, {
            **two,
            "Input": [[[[2], [2]], [[4], [NAN]]]],
            "SequenceLengths": [[[[2, 1]]]],
            "OutputSequence": [[[[1], [1]], [[6], [2]]], [[[3], [0]], [[4], [0]]]],
            "OutputSingle": [[[[3], [1]], [[6], [2]]]],
        }, Direction=BIDIRECTIONAL),
    ]  # fmt: skip
    return cases


CASES = [*_rnn(), *_lstm(), *_gru()]

KERNELS = {operator: rf"{operator} of float(32|16), " for operator in ("RNN", "LSTM", "GRU")}

GATES_AND_ACTIVATIONS = {"RNN": (1, 1), "LSTM": (4, 3), "GRU": (3, 2)}


def recurrent(operator: str, **members: Any) -> OperatorDesc:
    """Four steps of five sequences, from sizes of 3 to 2."""
    gates, activations = GATES_AND_ACTIVATIONS[operator]
    right = {
        "InputTensor": tensor((1, 4, 5, 3)),
        "WeightTensor": tensor((1, 1, 2 * gates, 3)),
        "RecurrenceTensor": tensor((1, 1, 2 * gates, 2)),
        "OutputSingleTensor": tensor((1, 1, 5, 2)),
        "ActivationDescs": [anydml.DML_ACTIVATION_TANH_OPERATOR_DESC()] * activations,
        **({"ClipThreshold": 1} if operator == "LSTM" else {}),
    }
    return spec(operator).desc(**{**right, **members})


RIGHT = [recurrent(operator) for operator in GATES_AND_ACTIVATIONS]
NEGATIVES = [
    *(
        Negative(rule, recurrent(operator, **members), where, found, expected)
        for operator in GATES_AND_ACTIVATIONS
        for rule, members, where, found, expected in [
            (
                "(C1)",
                {"HiddenInitTensor": tensor((1, 1, 5, 2), "FLOAT16")},
                "HiddenInitTensor.DataType",
                "FLOAT16",
                "FLOAT32, that of InputTensor",
            ),
            (
                "(C2)",
                {"InputTensor": bad(Sizes=(1, 4, 5, 3), Flags=TensorFlags.OWNED_BY_DML)},
                "InputTensor.Flags",
                "OWNED_BY_DML",
                "NONE",
            ),
            ("(C3)", {"HiddenInitTensor": tensor((1, 1, 5, 3))}, "HiddenInitTensor.Sizes[3]", "3", "2, hidden_size"),
            ("(C4)", {"OutputSequenceTensor": tensor((3, 1, 5, 2))}, "OutputSequenceTensor.Sizes[0]", "3", "4"),
            ("(C5)", {"ActivationDescs": []}, "ActivationDescs", "0 activations", "for each direction"),
            ("(C6)", {"OutputSingleTensor": None}, "OutputSequenceTensor", "None", "or as OutputSingleTensor"),
        ]
    ),
    Negative("(C7)", recurrent("LSTM", ClipThreshold=-1, UseClipThreshold=True), "ClipThreshold", "-1.0", "at least 0"),
]


def _unrolled(operator: str, **tensors: Shape) -> OperatorDesc:
    """One step of one sequence, from a size of 1 to a size of 1."""
    gates, activations = GATES_AND_ACTIVATIONS[operator]
    sizes = {
        "WeightTensor": (1, 1, gates, 1),
        "RecurrenceTensor": (1, 1, gates, 1),
        "BiasTensor": (1, 1, 1, 2 * gates),
        "PeepholeTensor": (1, 1, 1, 3),
    }
    members = {
        name: DML_BUFFER_TENSOR_DESC(DataType=shape[1], Sizes=sizes[name])
        if shape[0] == 4 and name in sizes
        else ones(shape)
        for name, shape in tensors.items()
    }
    clip = {"ClipThreshold": 1} if operator == "LSTM" else {}
    return spec(operator).desc(
        **members, **clip, ActivationDescs=[anydml.DML_ACTIVATION_TANH_OPERATOR_DESC()] * activations
    )


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    """Lengths have a type of their own."""
    length, real = TensorDataType.UINT32, TensorDataType.FLOAT32 if tensor == "SequenceLengthsTensor" else shape[1]
    others = {name: (4, length if name == "SequenceLengthsTensor" else real) for name in spec(operator).tensors}
    return {**others, tensor: shape}


_TABLES = {
    operator: [
        *("InputTensor", "WeightTensor", "RecurrenceTensor", "BiasTensor", "HiddenInitTensor"),
        *(["CellMemInitTensor"] if operator == "LSTM" else []),
        "SequenceLengthsTensor",
        *(["PeepholeTensor"] if operator == "LSTM" else []),
        *("OutputSequenceTensor", "OutputSingleTensor"),
        *(["OutputCellSingleTensor"] if operator == "LSTM" else []),
    ]
    for operator in GATES_AND_ACTIVATIONS
}
SUPPORT = {
    operator: Support(
        {name: [("1.0", 4, 4, "UINT32" if name == "SequenceLengthsTensor" else FLOATS)] for name in names},
        desc=_unrolled,
        others=_others,
    )
    for operator, names in _TABLES.items()
}
