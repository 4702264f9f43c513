"""Normalisations: by a given mean and variance, by those of the tensor itself.

Decisions where the pages are silent: all is computed in double precision and rounded once, after the activation; native
code computes the elements of FLOAT16 of BATCH_NORMALIZATION in single precision, and the factors in double precision. A
variance is the mean of squares (n, not n - 1), taken of differences from the mean.

Decisions on MEAN_VARIANCE_NORMALIZATION2, whose page leaves two members open:

1. Without UseMean the mean counts as 0, for the variance too, which is the mean of squares then: what is called RMS
   normalisation, as ONNX Runtime lowers SimplifiedLayerNormalization to it.
2. UseVariance is NormalizeVariance of the revisions before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.enums import FeatureLevel, OperatorType
from ...core.strided_layout import Array
from ..constraints import axes_within, broadcasting, gathered, rounded, same, sizes_of
from ..fused_activation import activated
from ..independence import all_but, all_dimensions
from ..schema import (
    BOOL,
    FLOAT,
    Choices,
    ConstraintFailure,
    Count,
    LevelRequirement,
    OperatorDesc,
    OperatorSpec,
    OptionalActivation,
    OptionalTensor,
    Tensor,
    UINTs,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_BATCH_NORMALIZATION_OPERATOR_DESC(OperatorDesc):
    """FusedActivation(Scale * (Input - Mean) / sqrt(Variance + Epsilon) + Bias), by a given mean and variance.

    A size of 1 in one of these four broadcasts; from feature level 4.0 on also that of the channels. Not in-place.

    Args:
        InputTensor: the elements.
        MeanTensor: the means.
        VarianceTensor: the variances.
        ScaleTensor: the scales.
        BiasTensor: what is added.
        OutputTensor: the results.
        Spatial: of no effect; below feature level 4.0, False wants means and variances that do not broadcast along
            height and width.
        Epsilon: added to the variance, so that it is not 0.
        FusedActivation: applied to the results; none where absent.

    Constraints:
        (C1) All tensors have the same DataType.
        (C2) All tensors have the same DimensionCount, InputTensor and OutputTensor the same Sizes.
        (C3) Sizes of MeanTensor, VarianceTensor, ScaleTensor and BiasTensor are those of InputTensor, or 1.

    Source: the page of DML_BATCH_NORMALIZATION_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    MeanTensor: Tensor
    VarianceTensor: Tensor
    ScaleTensor: Tensor
    BiasTensor: Tensor
    OutputTensor: Tensor
    Spatial: BOOL
    Epsilon: FLOAT
    FusedActivation: OptionalActivation = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC(OperatorDesc):
    """FusedActivation(Scale * (Input - Mean) / sqrt(Variance + Epsilon) + Bias), by the tensor's own mean and variance.

    A size of 1 in a scale or a bias broadcasts. Below feature level 5.2 both are there, or neither. Not in-place.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}.
        ScaleTensor: the scales; none where absent.
        BiasTensor: what is added; none where absent.
        OutputTensor: the results.
        CrossChannel: whether mean and variance are those of all channels of an image, or each channel has its own.
        NormalizeVariance: whether is divided by the root of Variance + Epsilon.
        Epsilon: added to the variance, so that it is not 0; 0.00001 by default, as is recommended.
        FusedActivation: applied to the results; none where absent.

    Constraints:
        (C1) All tensors have the same DataType.
        (C2) All tensors have the same DimensionCount, InputTensor and OutputTensor the same Sizes.
        (C3) Sizes of ScaleTensor and BiasTensor are those of InputTensor, or 1.

    Source: the page of DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    ScaleTensor: OptionalTensor = None
    BiasTensor: OptionalTensor = None
    OutputTensor: Tensor
    CrossChannel: BOOL
    NormalizeVariance: BOOL
    Epsilon: FLOAT = 1e-5
    FusedActivation: OptionalActivation = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC(OperatorDesc):
    """FusedActivation(Scale * (Input - Mean) / sqrt(Variance + Epsilon) + Bias), mean and variance along some axes.

    A size of 1 in a scale or a bias broadcasts; from feature level 4.0 on also that of the channels. Below 5.2 both are
    there, or neither. Not in-place.

    Args:
        InputTensor: the elements.
        ScaleTensor: the scales; none where absent.
        BiasTensor: what is added; none where absent.
        OutputTensor: the results.
        AxisCount: how many axes there are; derived from Axes.
        Axes: the dimensions along which mean and variance are taken.
        NormalizeVariance: whether is divided by the root of Variance + Epsilon.
        Epsilon: added to the variance, so that it is not 0; 0.00001 by default, as is recommended.
        FusedActivation: applied to the results; none where absent.

    Constraints:
        (C1) All tensors have the same DataType.
        (C2) All tensors have the same DimensionCount, InputTensor and OutputTensor the same Sizes.
        (C3) Sizes of ScaleTensor and BiasTensor are those of InputTensor, or 1.
        (C4) AxisCount is at least 1.
        (C5) Axes are less than the DimensionCount of InputTensor.
        (C6) No axis comes twice.

    Source: the page of DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    ScaleTensor: OptionalTensor = None
    BiasTensor: OptionalTensor = None
    OutputTensor: Tensor
    AxisCount: Count = None
    Axes: UINTs
    NormalizeVariance: BOOL
    Epsilon: FLOAT = 1e-5
    FusedActivation: OptionalActivation = None

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"AxisCount": ("Axes",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC(OperatorDesc):
    """FusedActivation(Scale * (Input - Mean) / sqrt(Variance + Epsilon) + Bias), mean and variance along some axes.

    A size of 1 in a scale or a bias broadcasts. Not in-place.

    Args:
        InputTensor: the elements.
        ScaleTensor: the scales; none where absent.
        BiasTensor: what is added; none where absent.
        OutputTensor: the results.
        AxisCount: how many axes there are; derived from Axes.
        Axes: the dimensions along which mean and variance are taken.
        UseMean: whether the mean is subtracted; else it counts as 0, and the variance is the mean of squares.
        UseVariance: whether is divided by the root of Variance + Epsilon.
        Epsilon: added to the variance, so that it is not 0; 0.00001 by default, as is recommended.
        FusedActivation: applied to the results; none where absent.

    Constraints:
        (C1) All tensors have the same DataType.
        (C2) All tensors have the same DimensionCount, InputTensor and OutputTensor the same Sizes.
        (C3) Sizes of ScaleTensor and BiasTensor are those of InputTensor, or 1.
        (C4) AxisCount is at least 1.
        (C5) Axes are less than the DimensionCount of InputTensor.
        (C6) No axis comes twice.

    Source: the page of DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC; since feature level 6.3.
    """

    InputTensor: Tensor
    ScaleTensor: OptionalTensor = None
    BiasTensor: OptionalTensor = None
    OutputTensor: Tensor
    AxisCount: Count = None
    Axes: UINTs
    UseMean: BOOL
    UseVariance: BOOL
    Epsilon: FLOAT = 1e-5
    FusedActivation: OptionalActivation = None

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"AxisCount": ("Axes",)}


_PARAMETERS = ("MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor")


def _parameters(desc: Any) -> list[str]:
    """Those that a desc has."""
    return [name for name in _PARAMETERS if getattr(desc, name, None) is not None]


def _alike(desc: Any, types: str, counts: str, sizes: str) -> Iterator[ConstraintFailure]:
    """That tensors agree in DataType and DimensionCount, and parameters in Sizes, but for those of 1."""
    parameters = _parameters(desc)
    yield from same(desc, types, "DataType", "InputTensor", *parameters, "OutputTensor")
    yield from same(desc, counts, "DimensionCount", "InputTensor", *parameters, "OutputTensor")
    yield from broadcasting(desc, sizes, "InputTensor", *parameters)


def _constraints(desc: Any) -> Iterator[ConstraintFailure]:
    yield from _alike(desc, "(C1)", "(C2)", "(C3)")


def _constraints_with_axes(desc: Any) -> Iterator[ConstraintFailure]:
    yield from _alike(desc, "(C1)", "(C2)", "(C3)")
    yield from axes_within(desc, "(C4)", "(C5)", "(C6)")


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _broadcast_needs(desc: Any, names: Sequence[str], axes: Sequence[int]) -> Iterator[LevelRequirement]:
    """That sizes of 1 along some axes broadcast."""
    wanted = desc.InputTensor.Sizes
    for name in names:
        found = getattr(desc, name).Sizes
        for i in axes:
            if len(found) == len(wanted) > i and found[i] == 1 < wanted[i]:
                yield LevelRequirement(
                    FeatureLevel.LEVEL_4_0, f"{name}.Sizes[{i}]", "1", f"{wanted[i]}, that of InputTensor"
                )


def _needs_of_batch(desc: DML_BATCH_NORMALIZATION_OPERATOR_DESC) -> Iterator[LevelRequirement]:
    yield from _broadcast_needs(desc, _PARAMETERS, [1])
    if not desc.Spatial:
        yield from _broadcast_needs(desc, ["MeanTensor", "VarianceTensor"], range(2, len(desc.InputTensor.Sizes)))


def _needs_of_mean_variance(desc: Any) -> Iterator[LevelRequirement]:
    for name, other in (("ScaleTensor", "BiasTensor"), ("BiasTensor", "ScaleTensor")):
        if getattr(desc, name) is None and getattr(desc, other) is not None:
            yield LevelRequirement(FeatureLevel.LEVEL_5_2, name, f"None beside a {other}", f"a tensor, or no {other}")


def _needs_of_mean_variance1(desc: DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC) -> Iterator[LevelRequirement]:
    yield from _needs_of_mean_variance(desc)
    yield from _broadcast_needs(desc, _parameters(desc), [1])


def _normalized(
    desc: Any, x: Array, mean: Array | None, variance: Array | None, scale: Array | None, bias: Array | None, dtype: Any
) -> Array:
    """FusedActivation(Scale * (x - Mean) / sqrt(Variance + Epsilon) + Bias), of values in double precision."""
    with np.errstate(all="ignore"):
        y = x if mean is None else x - mean
        if variance is not None:
            y = y / np.sqrt(variance + desc.Epsilon)
        if scale is not None:
            y = y * scale
        if bias is not None:
            y = y + bias
        return rounded(activated(desc.FusedActivation, y), dtype)


def _batch(
    desc: DML_BATCH_NORMALIZATION_OPERATOR_DESC, x: Array, mean: Array, variance: Array, scale: Array, bias: Array
) -> Array:
    wide, mean, variance = (each.astype(np.float64) for each in (x, mean, variance))
    return _normalized(desc, wide, mean, variance, scale, bias, x.dtype)


def _mean(x: Array, axes: Sequence[int]) -> Array:
    rows = gathered(x, axes)
    sizes = [1 if i in axes else size for i, size in enumerate(x.shape)]
    mean: Array = np.add.reduce(rows, axis=-1) / rows.shape[1]
    return mean.reshape(sizes)


def _along(desc: Any, axes: Sequence[int], x: Array, scale: Array | None, bias: Array | None) -> Array:
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        mean = _mean(wide, axes) if getattr(desc, "UseMean", True) else None
        squares = (wide if mean is None else wide - mean) ** 2
        is_scaled = desc.UseVariance if hasattr(desc, "UseVariance") else desc.NormalizeVariance
        variance = _mean(squares, axes) if is_scaled else None
    return _normalized(desc, wide, mean, variance, scale, bias, x.dtype)


def _axes(desc: DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC) -> tuple[int, ...]:
    return (1, 2, 3) if desc.CrossChannel else (2, 3)


def _mean_variance(
    desc: DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC, x: Array, scale: Array | None, bias: Array | None
) -> Array:
    return _along(desc, _axes(desc), x, scale, bias)


def _mean_variance_with_axes(desc: Any, x: Array, scale: Array | None, bias: Array | None) -> Array:
    return _along(desc, desc.Axes, x, scale, bias)


BATCH_NORMALIZATION = OperatorSpec(
    operator_type=OperatorType.BATCH_NORMALIZATION,
    desc=DML_BATCH_NORMALIZATION_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_batch,
    independent=all_dimensions,
    needs=_needs_of_batch,
    support=support_table("""
        DML_FEATURE_LEVEL_3_1 and above
        InputTensor    | Input  | 1 to 8 | FLOAT32, FLOAT16
        MeanTensor     | Input  | 1 to 8 | FLOAT32, FLOAT16
        VarianceTensor | Input  | 1 to 8 | FLOAT32, FLOAT16
        ScaleTensor    | Input  | 1 to 8 | FLOAT32, FLOAT16
        BiasTensor     | Input  | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor   | Output | 1 to 8 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor    | Input  | 4      | FLOAT32, FLOAT16
        MeanTensor     | Input  | 4      | FLOAT32, FLOAT16
        VarianceTensor | Input  | 4      | FLOAT32, FLOAT16
        ScaleTensor    | Input  | 4      | FLOAT32, FLOAT16
        BiasTensor     | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor   | Output | 4      | FLOAT32, FLOAT16
    """),
)

MEAN_VARIANCE_NORMALIZATION = OperatorSpec(
    operator_type=OperatorType.MEAN_VARIANCE_NORMALIZATION,
    desc=DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_mean_variance,
    independent=lambda desc: all_but(desc, _axes(desc)),
    needs=_needs_of_mean_variance,
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input          | 4 | FLOAT32, FLOAT16
        ScaleTensor  | Optional input | 4 | FLOAT32, FLOAT16
        BiasTensor   | Optional input | 4 | FLOAT32, FLOAT16
        OutputTensor | Output         | 4 | FLOAT32, FLOAT16
    """),
)

MEAN_VARIANCE_NORMALIZATION1 = OperatorSpec(
    operator_type=OperatorType.MEAN_VARIANCE_NORMALIZATION1,
    desc=DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC,
    constraints=_constraints_with_axes,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_mean_variance_with_axes,
    independent=lambda desc: all_but(desc, desc.Axes),
    needs=_needs_of_mean_variance1,
    support=support_table("""
        DML_FEATURE_LEVEL_3_1 and above
        InputTensor  | Input          | 1 to 8 | FLOAT32, FLOAT16
        ScaleTensor  | Optional input | 1 to 8 | FLOAT32, FLOAT16
        BiasTensor   | Optional input | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor | Output         | 1 to 8 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input          | 4      | FLOAT32, FLOAT16
        ScaleTensor  | Optional input | 4      | FLOAT32, FLOAT16
        BiasTensor   | Optional input | 4      | FLOAT32, FLOAT16
        OutputTensor | Output         | 4      | FLOAT32, FLOAT16
    """),
)

MEAN_VARIANCE_NORMALIZATION2 = OperatorSpec(
    operator_type=OperatorType.MEAN_VARIANCE_NORMALIZATION2,
    desc=DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC,
    constraints=_constraints_with_axes,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_mean_variance_with_axes,
    independent=lambda desc: all_but(desc, desc.Axes),
    support=support_table("""
        DML_FEATURE_LEVEL_6_3 and above
        InputTensor  | Input          | 1 to 8 | FLOAT32, FLOAT16
        ScaleTensor  | Optional input | 1 to 8 | FLOAT32, FLOAT16
        BiasTensor   | Optional input | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor | Output         | 1 to 8 | FLOAT32, FLOAT16
    """),
)
