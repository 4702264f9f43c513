"""The rows of softmax and of normalisations, in inference and in training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .cases import LARGE
from .computation import Built, Computation, Maker, Node, Shape, Tensor, fitted

FITTING, BEYOND = 1.3, 1.7
"""Copies of large tensors, where a line that is normalised fits the second cache, and where it does not."""
SECOND_CACHE = 1 << 20
EPSILON = 1e-5


class Geometry(NamedTuple):
    """Of what is normalised along some axes."""

    name: str
    shape: Callable[[int], Shape]
    """Of so many elements."""
    axes: Shape
    channel: int = 1
    """The dimension that has parameters of its own."""
    is_last: bool = False

    def limit(self, dtype: str) -> float:
        size = np.dtype(dtype).itemsize
        shape = self.shape(LARGE // size)
        return FITTING if size * prod(shape[axis] for axis in self.axes) <= SECOND_CACHE else BEYOND

    def parameters(self, shape: Shape) -> Shape:
        return tuple(size if axis == self.channel else 1 for axis, size in enumerate(shape))


def rows_of(width: int, between: Shape = ()) -> Callable[[int], Shape]:
    def shape(n: int) -> Shape:
        length = min(width, max(n // 2, 1))
        return max(n // length, 1), *between, length

    return shape


def images_of(*sizes: int) -> Callable[[int], Shape]:
    """As many as there is room for, and smaller ones where there is none for one."""

    def shape(n: int) -> Shape:
        found = fitted(n, *sizes)
        return max(n // prod(found), 1), *found

    return shape


ROWS, ODD_ROWS = (Geometry(f"rows of {width}", rows_of(width), (1,)) for width in (1024, 1021))
ROWS_IN_4_D = tuple(Geometry(f"rows of {width}", rows_of(width, (1, 1)), (3,)) for width in (1024, 1021))
LINES = (
    ROWS,
    ODD_ROWS,
    Geometry("rows of 50257", rows_of(50257), (1,)),
    Geometry("one row", lambda n: (1, n), (1,)),
    Geometry("1024 columns", rows_of(1024), (0,)),
    Geometry("channels of 64 x 56 x 56", images_of(64, 56, 56), (1,)),
    Geometry("channels of 61 x 53 x 47, channels last", images_of(61, 53, 47), (1,), is_last=True),
)
PLANES = (
    Geometry("planes of 56 x 56", images_of(64, 56, 56), (2, 3)),
    Geometry("planes of 53 x 47", images_of(61, 53, 47), (2, 3)),
    Geometry("planes of 56 x 56, channels last", images_of(64, 56, 56), (2, 3), is_last=True),
)
IMAGES = (
    Geometry("images of 64 x 56 x 56", images_of(64, 56, 56), (1, 2, 3)),
    Geometry("images of 61 x 53 x 47, channels last", images_of(61, 53, 47), (1, 2, 3), is_last=True),
)


class Normalization(NamedTuple):
    """An operator: its tensors, members and equivalents for each geometry."""

    operator: str
    words: str
    geometries: tuple[Geometry, ...]
    members: Callable[[Geometry], dict[str, Any]]
    others: tuple[str, ...] = ()
    """Inputs beside the first, of its size where they are gradients, else of the parameters'."""
    more_outputs: tuple[str, ...] = ()
    """Of the parameters' size, but for moments."""
    output: str = "OutputTensor"
    torch: Callable[[Geometry], Maker] | None = None
    node: str = ""
    inputs: tuple[str, ...] = ("InputTensor",)
    """Of the node."""
    attributes: Callable[[Geometry], Mapping[str, Any]] = lambda geometry: {}

    def rows(self, dtypes: tuple[str, ...]) -> Iterator[Computation]:
        for geometry in self.geometries:
            for dtype in dtypes:
                limit = geometry.limit(dtype)
                name = f"{self.words}{geometry.name}"
                yield Computation(self.operator, name, limit, dtype, build=self._build(geometry), of=self._cell(limit))

    @staticmethod
    def _cell(limit: float) -> str:
        return "lines in the caches" if limit == FITTING else "longer lines"

    def _build(self, geometry: Geometry) -> Callable[[int, str], Built]:
        def build(most: int, dtype: str) -> Built:
            shape = geometry.shape(most)
            per = geometry.parameters(shape)
            whole = Tensor(shape, low=-4, high=4, is_last=geometry.is_last)
            inputs = {"InputTensor": whole}
            for name in self.others:
                if "Gradient" in name:
                    inputs[name] = Tensor(shape, is_last=geometry.is_last)
                else:
                    inputs[name] = Tensor(per, low=0.5, high=2) if name in _POSITIVE else Tensor(per)
            outputs = {self.output: whole, **{name: Tensor(per) for name in self.more_outputs}}
            node = Node(self.node, self.inputs, self.attributes(geometry)) if self.node else None
            torch = None if self.torch is None else self.torch(geometry)
            return Built(inputs, outputs, self.members(geometry), torch=torch, node=node)

        return build


_POSITIVE = ("VarianceTensor", "ScaleTensor")


# By PyTorch


def _softmax(function: str) -> Callable[[Geometry], Maker]:
    def of(geometry: Geometry) -> Maker:
        def maker(torch: Any, x: Any, y: Any) -> Callable[[], Any]:
            compute = getattr(torch.ops.aten, function)
            if geometry.is_last:  # where its `out` gets other numbers
                return lambda: compute(x, geometry.axes[0], False)

            def run() -> None:
                compute.out(x, geometry.axes[0], False, out=y)

            return run

        return maker

    return of


def _mean_variance(geometry: Geometry) -> Maker:
    def maker(torch: Any, x: Any, scale: Any, bias: Any, y: Any) -> Callable[[], Any]:
        functions = torch.nn.functional
        scale, bias = scale.flatten(), bias.flatten()
        if geometry.axes == (1,):
            return lambda: functions.layer_norm(x, x.shape[1:], scale, bias, EPSILON)
        if geometry.axes == (2, 3):
            return lambda: functions.instance_norm(x, weight=scale, bias=bias, eps=EPSILON)
        return lambda: functions.group_norm(x, 1, scale, bias, EPSILON)

    return maker


def _squares(geometry: Geometry) -> Maker:
    return lambda torch, x, scale, y: lambda: torch.nn.functional.rms_norm(x, x.shape[1:], scale.flatten(), EPSILON)


def _batch(geometry: Geometry) -> Maker:
    def maker(torch: Any, x: Any, mean: Any, variance: Any, scale: Any, bias: Any, y: Any) -> Callable[[], Any]:
        parameters = [each.flatten() for each in (mean, variance, scale, bias)]
        return lambda: torch.nn.functional.batch_norm(x, *parameters, False, 0.0, EPSILON)

    return maker


def _norm(geometry: Geometry) -> Maker:
    def maker(torch: Any, x: Any, y: Any) -> Callable[[], None]:
        def run() -> None:
            torch.nn.functional.normalize(x, 2.0, geometry.axes[0], EPSILON, out=y)

        return run

    return maker


def _local_response(geometry: Geometry) -> Maker:
    return lambda torch, x, y: lambda: torch.nn.functional.local_response_norm(x, _LOCAL, 1e-4, 0.75, 1.0)


def _batch_training(geometry: Geometry) -> Maker:
    def maker(torch: Any, x: Any, scale: Any, bias: Any, *outputs: Any) -> Callable[[], Any]:
        scale, bias = scale.flatten(), bias.flatten()
        return lambda: torch.ops.aten.native_batch_norm(x, scale, bias, None, None, True, 0.0, EPSILON)[0]

    return maker


def _batch_backward(is_training: bool) -> Callable[[Geometry], Maker]:
    def of(geometry: Geometry) -> Maker:
        def maker(
            torch: Any, x: Any, gradient: Any, mean: Any, variance: Any, scale: Any, *outputs: Any
        ) -> Callable[[], Any]:
            mean, variance, scale = (each.flatten() for each in (mean, variance, scale))
            inverse = 1 / torch.sqrt(variance + EPSILON)
            backward, every = torch.ops.aten.native_batch_norm_backward, [True] * 3
            given = (scale, mean, variance, mean, inverse, is_training, EPSILON, every)
            return lambda: backward(gradient, x, *given)[0]

        return maker

    return of


# The table

_LOCAL = 5
_RESPONSE = {"CrossChannel": True, "LocalSize": _LOCAL, "Alpha": 1e-4, "Beta": 0.75, "Bias": 1.0}
_RESPONSES = (
    Geometry("96 x 55 x 55", images_of(96, 55, 55), (1,)),
    Geometry("61 x 53 x 47, channels last", images_of(61, 53, 47), (1,), is_last=True),
)
# Of what is known before anything is summed, and of the sums of each channel of a batch.
_OF_BATCHES = PLANES
_OF_SUMS = tuple(geometry._replace(axes=(0, 2, 3)) for geometry in PLANES)


def _axes(geometry: Geometry) -> dict[str, Any]:
    return {"Axes": geometry.axes}


def _variances(geometry: Geometry) -> dict[str, Any]:
    return {"Axes": geometry.axes, "NormalizeVariance": True, "Epsilon": EPSILON}


def _epsilon(geometry: Geometry) -> dict[str, Any]:
    return {"Epsilon": EPSILON}


def _epsilon_of_nodes(geometry: Geometry) -> dict[str, Any]:
    return {"epsilon": EPSILON}


_SCALED = ("ScaleTensor", "BiasTensor")
_STATISTICS = ("MeanTensor", "VarianceTensor")
_BACKWARD = ("InputGradientTensor", *_STATISTICS, "ScaleTensor")
_GRADIENTS = ("OutputScaleGradientTensor", "OutputBiasGradientTensor")

NORMALIZATIONS = (
    *(
        Normalization(
            f"ACTIVATION_{name}1",
            "",
            LINES if name == "SOFTMAX" else LINES[:2] + LINES[3:5],
            _axes,
            torch=_softmax(torch) if torch else None,
            node=node,
            attributes=lambda geometry: {"axis": geometry.axes[0]},
        )
        for name, torch, node in (
            ("SOFTMAX", "_softmax", "Softmax"),
            ("LOG_SOFTMAX", "_log_softmax", "LogSoftmax"),
            ("HARDMAX", "", "Hardmax"),
        )
    ),
    Normalization(
        "MEAN_VARIANCE_NORMALIZATION1",
        "",
        (Geometry("rows of 768", rows_of(768), (1,)), ODD_ROWS),
        _variances,
        _SCALED,
        torch=_mean_variance,
        node="LayerNormalization",
        inputs=("InputTensor", "ScaleTensor/flat", "BiasTensor/flat"),
        attributes=lambda geometry: {"axis": -1, "epsilon": EPSILON},
    ),
    Normalization(
        "MEAN_VARIANCE_NORMALIZATION1",
        "",
        PLANES,
        _variances,
        _SCALED,
        torch=_mean_variance,
        node="InstanceNormalization",
        inputs=("InputTensor", "ScaleTensor/flat", "BiasTensor/flat"),
        attributes=_epsilon_of_nodes,
    ),
    Normalization("MEAN_VARIANCE_NORMALIZATION1", "", IMAGES, _variances, _SCALED, torch=_mean_variance),
    Normalization(
        "MEAN_VARIANCE_NORMALIZATION2",
        "roots of mean squares, ",
        (ROWS, ODD_ROWS),
        lambda geometry: {"Axes": geometry.axes, "UseMean": False, "UseVariance": True, "Epsilon": EPSILON},
        ("ScaleTensor",),
        torch=_squares,
    ),
    Normalization(
        "BATCH_NORMALIZATION",
        "",
        _OF_BATCHES,
        lambda geometry: {"Spatial": True, "Epsilon": EPSILON},
        (*_STATISTICS, *_SCALED),
        torch=_batch,
        node="BatchNormalization",
        inputs=("InputTensor", "ScaleTensor/flat", "BiasTensor/flat", "MeanTensor/flat", "VarianceTensor/flat"),
        attributes=_epsilon_of_nodes,
    ),
    Normalization(
        "LP_NORMALIZATION",
        "",
        (*ROWS_IN_4_D, LINES[5]),
        lambda geometry: {"Axis": geometry.axes[0], "Epsilon": EPSILON, "P": 2},
        torch=_norm,
        node="LpNormalization",
        attributes=lambda geometry: {"axis": geometry.axes[0], "p": 2},
    ),
    Normalization(
        "LOCAL_RESPONSE_NORMALIZATION",
        "",
        _RESPONSES,
        lambda geometry: dict(_RESPONSE),
        torch=_local_response,
        node="LRN",
        attributes=lambda geometry: {"size": _LOCAL, "alpha": 1e-4, "beta": 0.75, "bias": 1.0},
    ),
)
TRAINING = (
    Normalization(
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        "",
        _RESPONSES,
        lambda geometry: dict(_RESPONSE),
        ("InputGradientTensor",),
        output="OutputGradientTensor",
    ),
    Normalization(
        "BATCH_NORMALIZATION_TRAINING",
        "",
        _OF_SUMS,
        _epsilon,
        _SCALED,
        ("OutputMeanTensor", "OutputVarianceTensor"),
        torch=_batch_training,
    ),
    *(
        Normalization(
            f"BATCH_NORMALIZATION_{word}GRAD",
            "",
            geometries,
            _epsilon,
            _BACKWARD,
            _GRADIENTS,
            "OutputGradientTensor",
            torch=_batch_backward(bool(word)),
        )
        for word, geometries in (("", _OF_BATCHES), ("TRAINING_", _OF_SUMS))
    ),
)


def _adam(most: int, dtype: str) -> Built:
    """Of all seven large tensors together about twice the size."""
    shape = (1, 1, *fitted(most // 4, max(most // 4096, 1), 1024))
    names = ("Parameters", "FirstMoment", "SecondMoment")
    inputs = {f"Input{name}Tensor": Tensor(shape, low=0 if name == names[2] else -1) for name in names}
    return Built(
        {**inputs, "GradientTensor": Tensor(shape), "TrainingStepTensor": Tensor((1, 1, 1, 1), low=8, high=8)},
        {f"Output{name}Tensor": Tensor(shape) for name in names},
        {"LearningRate": 1e-3, "Beta1": 0.9, "Beta2": 0.999, "Epsilon": 1e-8},
    )


def normalising() -> Iterator[Computation]:
    for each in NORMALIZATIONS:
        yield from each.rows(("float32", "float16"))
    for each in TRAINING:
        yield from each.rows(("float32",))
    yield Computation("ADAM_OPTIMIZER", "one step", FITTING, "float32", build=_adam, of="steps")
