"""Normalisations: by a given mean and variance, by those of the array itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import refuse
from ..device import Device
from ..operators.schema import OperatorDesc
from ._apply import Spread, apply, leading, over_channels
from ._arguments import as_axes, as_flag
from ._documentation import documented
from ._messages import argument_of
from ._names import NOT_GIVEN, axes_of, refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._types import Operand, Output, Result


@documented("BATCH_NORMALIZATION")
def batch_normalization(
    x: Operand,
    mean: Operand,
    variance: Operand,
    scale: Operand,
    bias: Operand,
    *,
    spatial: bool = True,
    epsilon: float = 1e-5,
    activation: OperatorDesc | str | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """scale * (x - mean) / sqrt(variance + epsilon) + bias: DML_OPERATOR_BATCH_NORMALIZATION.

    Args:
        x: an array or an expression, float32 or float16.
        mean: likewise, a number for each channel, or of as many dimensions, each of x's size or 1.
        variance: likewise.
        scale: likewise.
        bias: likewise.
        spatial: of no effect from feature level 4.0 on.
        epsilon: added to the variance, so that it is not 0.
        activation: the desc of an activation, without tensors, or its name, that is applied to the result; none where
            None.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and shape.

    >>> batch_normalization([[1.0, 3.0]], [[2.0]], [[4.0]], [[10.0]], [[0.5]], epsilon=0)
    array([[-4.5,  5.5]], dtype=float32)
    """
    if others:
        refuse_unknown(batch_normalization, "BATCH_NORMALIZATION", others)
    return apply(
        "BATCH_NORMALIZATION",
        out,
        device,
        spread=over_channels,
        InputTensor=x,
        MeanTensor=mean,
        VarianceTensor=variance,
        ScaleTensor=scale,
        BiasTensor=bias,
        Spatial=spatial,
        Epsilon=epsilon,
        FusedActivation=activation,
    )


@documented("MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1", "MEAN_VARIANCE_NORMALIZATION2")
def mean_variance_normalization(
    x: Operand,
    scale: Operand | None = None,
    bias: Operand | None = None,
    *,
    axes: int | Sequence[int] | None = NOT_GIVEN,
    axis: int | None = None,
    use_mean: bool = True,
    normalize_variance: bool = True,
    epsilon: float = 1e-5,
    activation: OperatorDesc | str | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """scale * (x - mean) / sqrt(variance + epsilon) + bias, along axes: DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1.

    Along the axes (2, 3) or (1, 2, 3) of 4 dimensions it is DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION, and where no mean
    is subtracted DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION2.

    Args:
        x: an array or an expression, float32 or float16.
        scale: likewise, of as many dimensions, each of x's size or 1; or a number for each channel, or along the last
            axis alone one for each of its elements. None where None.
        bias: likewise; none where None.
        axes: the axes along which mean and variance are taken; negative ones count from the last. None for all.
        axis: one axis, in place of `axes`.
        use_mean: whether the mean is subtracted; else it counts as 0, and the variance is the mean of squares.
        normalize_variance: whether is divided by sqrt(variance + epsilon).
        epsilon: added to the variance, so that it is not 0.
        activation: the desc of an activation, without tensors, or its name, that is applied to the result; none where
            None.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and shape.

    >>> mean_variance_normalization([[1.0, 3.0], [10.0, 14.0]], axes=-1, epsilon=0)
    array([[-1.,  1.],
           [-1.,  1.]], dtype=float32)
    """
    if others:
        refuse_unknown(mean_variance_normalization, "MEAN_VARIANCE_NORMALIZATION", others)
    name = "MEAN_VARIANCE_NORMALIZATION"
    side = adapter_for(name, [x, scale, bias], out, device)
    rank = len(side.look("x", x).shape)
    along = as_axes(name, axes_of(name, axes, axis), rank)
    options: dict[str, Any] = {"Axes": along}
    if not as_flag(name, "use_mean", use_mean):
        return apply(
            f"{name}2",
            out,
            device,
            spread=_parameters_along(along),
            InputTensor=x,
            ScaleTensor=scale,
            BiasTensor=bias,
            UseMean=False,
            UseVariance=normalize_variance,
            Epsilon=epsilon,
            FusedActivation=activation,
            **options,
        )
    if rank == 4 and tuple(sorted(along)) in ((2, 3), (1, 2, 3)):
        options = {"CrossChannel": len(along) == 3}
    return apply(
        f"{name}1" if "Axes" in options else name,
        out,
        device,
        spread=_parameters_along(along),
        InputTensor=x,
        ScaleTensor=scale,
        BiasTensor=bias,
        NormalizeVariance=normalize_variance,
        Epsilon=epsilon,
        FusedActivation=activation,
        **options,
    )


def _parameters_along(axes: tuple[int, ...]) -> Spread:
    def spread(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        x, wanted = shapes["InputTensor"], over_channels(name, shapes)
        rank = len(x)
        for label, shape in shapes.items():
            if len(shape) != 1 or rank < 3 or axes != (rank - 1,) or shape[0] != x[-1]:
                continue
            if shape[0] == x[1]:
                found = f"shape {shape}, of as many elements as channels and last axis"
                channels, last = over_channels(name, {"": x, label: shape})[label], leading(shape, rank)
                refuse(name, "(A17)", argument_of(label), found, f"shape {channels}, of channels, or {last}")
            wanted[label] = leading(shape, rank)
        return wanted

    return spread
