"""The rows of recurrent networks, of 256 numbers in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..operators import spec
from .computation import Built, Computation, Node, Tensor, layer


class Cell(NamedTuple):
    """A kind of network: its gates, as DirectML and ONNX order them, in the order that PyTorch has."""

    operator: str
    node: str
    gates: tuple[int, ...]
    activations: tuple[str, ...]
    states: int
    """Tensors that go from step to step."""


CELLS = (
    Cell("RNN", "RNN", (0,), ("TANH",), 1),
    Cell("LSTM", "LSTM", (0, 2, 3, 1), ("SIGMOID", "TANH", "TANH"), 2),
    Cell("GRU", "GRU", (1, 0, 2), ("SIGMOID", "TANH"), 1),
)
HIDDEN = 256


def _recurrent(cell: Cell, steps: int, batch: int) -> Callable[[int, str], Built]:
    def build(most: int, dtype: str) -> Built:
        hidden, gates = HIDDEN, len(cell.gates)
        length, count = steps, batch
        while max(gates * hidden * hidden, length * count * hidden) > most:
            hidden, length, count = max(hidden // 2, 2), max(length // 2, 2), (count + 1) // 2
        weights = (1, 1, gates * hidden, hidden)
        bound = hidden**-0.5
        descs = [spec(f"ACTIVATION_{name}").desc() for name in cell.activations]
        members: dict[str, Any] = {"ActivationDescs": descs}
        attributes: dict[str, Any] = {"hidden_size": hidden}
        if cell.operator == "GRU":
            members["LinearBeforeReset"] = True
            attributes["linear_before_reset"] = 1
        if cell.operator == "LSTM":
            members["ClipThreshold"] = 0.0

        def by_torch(torch: Any, x: Any, w: Any, r: Any, b: Any, *outputs: Any) -> Callable[[], Any]:
            """Its gates have another order, and so has what they are made from; that is done once."""

            def ordered(rows: Any) -> Any:
                parts = rows.reshape(gates, hidden, -1)
                return torch.cat([parts[i] for i in cell.gates]).contiguous()

            halves = b.reshape(2, gates * hidden)
            parameters = [ordered(w[0, 0]), ordered(r[0, 0]), *(ordered(each).reshape(-1) for each in halves)]
            zeros = torch.zeros((1, count, hidden), dtype=x.dtype)
            state = (zeros, zeros) if cell.states == 2 else zeros
            name = {"RNN": "rnn_tanh"}.get(cell.operator, cell.operator.lower())
            function = getattr(torch._VF, name)
            given = x[0]

            def run() -> Any:
                with torch.inference_mode():
                    return function(given, state, parameters, True, 1, 0.0, False, False, False)[0]

            return run

        names = ("InputTensor/rest", "WeightTensor/rest", "RecurrenceTensor/rest", "BiasTensor/rows")
        return Built(
            {
                "InputTensor": Tensor((1, length, count, hidden)),
                "WeightTensor": Tensor(weights, low=-bound, high=bound),
                "RecurrenceTensor": Tensor(weights, low=-bound, high=bound),
                "BiasTensor": Tensor((1, 1, 1, 2 * gates * hidden), low=-bound, high=bound),
            },
            {
                "OutputSequenceTensor": Tensor((length, 1, count, hidden)),
                "OutputSingleTensor": Tensor((1, 1, count, hidden)),
            },
            members,
            torch=by_torch,
            node=Node(cell.node, names, attributes, constants=names[1:]),
            products=2 * length * count * gates * hidden * hidden,
        )

    return build


def recurrent() -> Iterator[Computation]:
    for cell in CELLS:
        for dtype in ("float32", "float16"):
            for steps in (32, 128):
                for batch in (1, 8):
                    name = f"{HIDDEN}, {steps} steps, batch of {batch}"
                    yield layer(cell.operator, name, dtype, _recurrent(cell, steps, batch), "steps")
