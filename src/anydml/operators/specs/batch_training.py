"""Batch normalisation in training: by the batch's own mean and variance, and the gradients of both kinds.

Decisions where the pages are silent or contradict themselves:

1. All is computed in double precision and rounded once for each output. Results are of the mean and the variance as
   they are before they are rounded.
2. Statistics and sums are taken along the dimensions in which the parameters have a size of 1.
3. A variance is the mean of squared differences from the mean (n, not n - 1), as ONNX's in training.
4. In the gradients of training, mean(Input) is MeanTensor, which would be of no effect otherwise, and InputCentered is
   Input - MeanTensor: mean and variance are constants of their formula, which has their gradients in it.
5. Sums are divided by sqrt(Variance + Epsilon), and not their terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import broadcasting, gathered, rounded, same, sizes_of
from ..fused_activation import activated
from ..independence import only
from ..schema import (
    FLOAT,
    Choices,
    ConstraintFailure,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalActivation,
    OptionalTensor,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC(OperatorDesc):
    """FusedActivation(Scale * (Input - Mean) / sqrt(Variance + Epsilon) + Bias + FusedAdd), by the input's own mean and
    variance, which are outputs too.

    They are taken along the dimensions in which the scale has a size of 1, where it broadcasts. Not in-place.

    Args:
        InputTensor: the elements.
        ScaleTensor: the scales.
        BiasTensor: what is added.
        FusedAddTensor: what is added to each element; none where absent.
        OutputTensor: the results.
        OutputMeanTensor: the means.
        OutputVarianceTensor: the variances.
        Epsilon: added to the variance, so that it is not 0.
        FusedActivation: applied to the results; none where absent.

    Constraints:
        (C1) All tensors have the same DataType.
        (C2) All tensors have the same DimensionCount, InputTensor and FusedAddTensor the same Sizes.
        (C3) ScaleTensor and BiasTensor have the same Sizes.
        (C4) Sizes of ScaleTensor are those of InputTensor, or 1.
        (C5) OutputTensor has the Sizes of InputTensor, OutputMeanTensor and OutputVarianceTensor those of ScaleTensor.

    Source: the page of DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC; since feature level 4.1.
    """

    InputTensor: Tensor
    ScaleTensor: Tensor
    BiasTensor: Tensor
    FusedAddTensor: OptionalTensor = None
    OutputTensor: Tensor
    OutputMeanTensor: Tensor
    OutputVarianceTensor: Tensor
    Epsilon: FLOAT
    FusedActivation: OptionalActivation = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC(OperatorDesc):
    """The gradients of BATCH_NORMALIZATION_TRAINING. Not in-place.

    With root = sqrt(Variance + Epsilon), and sums and means along the dimensions in which the mean has a size of 1:
    OutputGradient = Scale / root * (InputGradient - mean(InputGradient) - (Input - Mean) * mean(InputGradient
    * (Input - Mean)) / root ^ 2), OutputScaleGradient = sum(InputGradient * (Input - Mean)) / root and
    OutputBiasGradient = sum(InputGradient).

    Args:
        InputTensor: the elements, the forward operator's.
        InputGradientTensor: the gradients of its results.
        MeanTensor: the means, as it has written them.
        VarianceTensor: likewise the variances.
        ScaleTensor: the scales.
        OutputGradientTensor: the gradients of the elements.
        OutputScaleGradientTensor: those of the scales.
        OutputBiasGradientTensor: those of what is added.
        Epsilon: added to the variance, so that it is not 0.

    Constraints:
        (C1) All tensors have the same DataType.
        (C2) All tensors have the same DimensionCount, InputTensor and InputGradientTensor the same Sizes.
        (C3) MeanTensor, VarianceTensor and ScaleTensor have the same Sizes.
        (C4) Sizes of MeanTensor are those of InputTensor, or 1.
        (C5) OutputGradientTensor has the Sizes of InputTensor, OutputScaleGradientTensor and OutputBiasGradientTensor
            those of MeanTensor.

    Source: the page of DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC; since feature level 4.1.
    """

    InputTensor: Tensor
    InputGradientTensor: Tensor
    MeanTensor: Tensor
    VarianceTensor: Tensor
    ScaleTensor: Tensor
    OutputGradientTensor: Tensor
    OutputScaleGradientTensor: Tensor
    OutputBiasGradientTensor: Tensor
    Epsilon: FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC(OperatorDesc):
    """The gradients of BATCH_NORMALIZATION, whose mean and variance do not depend on its input. Not in-place.

    With root = sqrt(Variance + Epsilon), and sums along the dimensions in which the mean has a size of 1:
    OutputGradient = InputGradient * Scale / root, OutputScaleGradient = sum(InputGradient * (Input - Mean)) / root and
    OutputBiasGradient = sum(InputGradient).

    Args:
        InputTensor: the elements, the forward operator's.
        InputGradientTensor: the gradients of its results.
        MeanTensor: the means.
        VarianceTensor: the variances.
        ScaleTensor: the scales.
        OutputGradientTensor: the gradients of the elements.
        OutputScaleGradientTensor: those of the scales.
        OutputBiasGradientTensor: those of what is added.
        Epsilon: added to the variance, so that it is not 0.

    Constraints:
        (C1) All tensors have the same DataType.
        (C2) All tensors have the same DimensionCount, InputTensor and InputGradientTensor the same Sizes.
        (C3) MeanTensor, VarianceTensor and ScaleTensor have the same Sizes.
        (C4) Sizes of MeanTensor are those of InputTensor, or 1.
        (C5) OutputGradientTensor has the Sizes of InputTensor, OutputScaleGradientTensor and OutputBiasGradientTensor
            those of MeanTensor.

    Source: the page of DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC; since feature level 3.1.
    """

    InputTensor: Tensor
    InputGradientTensor: Tensor
    MeanTensor: Tensor
    VarianceTensor: Tensor
    ScaleTensor: Tensor
    OutputGradientTensor: Tensor
    OutputScaleGradientTensor: Tensor
    OutputBiasGradientTensor: Tensor
    Epsilon: FLOAT


def _of_elements(desc: Any) -> list[str]:
    """The tensors, but for the first, that have the sizes of the elements."""
    names = ("FusedAddTensor", "InputGradientTensor", "OutputTensor", "OutputGradientTensor")
    return [name for name in names if getattr(desc, name, None) is not None]


def _of_parameters(desc: Any) -> list[str]:
    """Those that have the sizes of the parameters."""
    others = ("InputTensor", *_of_elements(desc))
    tensors = [name for name in desc.__dataclass_fields__ if name.endswith("Tensor") and name not in others]
    return [name for name in tensors if getattr(desc, name) is not None]


def _constraints(desc: Any) -> Iterator[ConstraintFailure]:
    elements, (first, *parameters) = _of_elements(desc), _of_parameters(desc)
    yield from same(desc, "(C1)", "DataType", "InputTensor", *elements, first, *parameters)
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", *elements, first, *parameters)
    given = [name for name in elements if not name.startswith("Output")]
    yield from same(desc, "(C2)", "Sizes", "InputTensor", *given)
    given = [name for name in parameters if not name.startswith("Output")]
    yield from same(desc, "(C3)", "Sizes", first, *given)
    yield from broadcasting(desc, "(C4)", "InputTensor", first)


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    """Rule (C5)."""
    elements, (first, *parameters) = _of_elements(desc), _of_parameters(desc)
    wanted = {name: sizes_of(desc.InputTensor) for name in elements if name.startswith("Output")}
    return wanted | {name: sizes_of(getattr(desc, first)) for name in parameters if name.startswith("Output")}


def summed_axes(desc: Any) -> tuple[int, ...]:
    """Along which statistics and sums are taken."""
    first = _of_parameters(desc)[0]
    return tuple(i for i, size in enumerate(getattr(desc, first).Sizes) if size == 1)


def _independent(desc: Any) -> Independence:
    axes = summed_axes(desc)
    return only(desc, [i for i in range(len(desc.InputTensor.Sizes)) if i not in axes])


def _sum(x: Array, axes: Sequence[int]) -> Array:
    total: Array = np.add.reduce(gathered(x, axes), axis=-1)
    return total.reshape([1 if i in axes else size for i, size in enumerate(x.shape)])


def _training(
    desc: DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC, x: Array, scale: Array, bias: Array, added: Array | None
) -> tuple[Array, ...]:
    wide, axes = x.astype(np.float64), summed_axes(desc)
    with np.errstate(all="ignore"):
        count = x.size // scale.size
        mean = _sum(wide, axes) / count
        variance = _sum((wide - mean) ** 2, axes) / count
        y = scale * ((wide - mean) / np.sqrt(variance + desc.Epsilon)) + bias
        y = y if added is None else y + added
        results = (activated(desc.FusedActivation, y), mean, variance)
        return tuple(rounded(each, x.dtype) for each in results)


def _gradients(desc: Any, is_training: bool, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, gradient, mean, variance, scale = inputs
    dy, axes, count = gradient.astype(np.float64), summed_axes(desc), x.size // mean.size
    with np.errstate(all="ignore"):
        centred = x.astype(np.float64) - mean
        square = variance.astype(np.float64) + desc.Epsilon
        root = np.sqrt(square)
        of_bias, of_scale = _sum(dy, axes), _sum(dy * centred, axes)
        own = dy - of_bias / count - centred * (of_scale / count / square) if is_training else dy
        return tuple(rounded(each, x.dtype) for each in (own * (scale / root), of_scale / root, of_bias))


def _training_gradients(desc: Any, *inputs: Array) -> tuple[Array, ...]:
    return _gradients(desc, True, inputs)


def _gradients_of_constants(desc: Any, *inputs: Array) -> tuple[Array, ...]:
    return _gradients(desc, False, inputs)


BATCH_NORMALIZATION_GRAD = OperatorSpec(
    operator_type=OperatorType.BATCH_NORMALIZATION_GRAD,
    desc=DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=_gradients_of_constants,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_3_1 and above
        InputTensor               | Input  | 1 to 8 | FLOAT32, FLOAT16
        InputGradientTensor       | Input  | 1 to 8 | FLOAT32, FLOAT16
        MeanTensor                | Input  | 1 to 8 | FLOAT32, FLOAT16
        VarianceTensor            | Input  | 1 to 8 | FLOAT32, FLOAT16
        ScaleTensor               | Input  | 1 to 8 | FLOAT32, FLOAT16
        OutputGradientTensor      | Output | 1 to 8 | FLOAT32, FLOAT16
        OutputScaleGradientTensor | Output | 1 to 8 | FLOAT32, FLOAT16
        OutputBiasGradientTensor  | Output | 1 to 8 | FLOAT32, FLOAT16
    """),
)

BATCH_NORMALIZATION_TRAINING = OperatorSpec(
    operator_type=OperatorType.BATCH_NORMALIZATION_TRAINING,
    desc=DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=_training,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor          | Input          | 1 to 8 | FLOAT32, FLOAT16
        ScaleTensor          | Input          | 1 to 8 | FLOAT32, FLOAT16
        BiasTensor           | Input          | 1 to 8 | FLOAT32, FLOAT16
        FusedAddTensor       | Optional input | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor         | Output         | 1 to 8 | FLOAT32, FLOAT16
        OutputMeanTensor     | Output         | 1 to 8 | FLOAT32, FLOAT16
        OutputVarianceTensor | Output         | 1 to 8 | FLOAT32, FLOAT16
    """),
)

BATCH_NORMALIZATION_TRAINING_GRAD = OperatorSpec(
    operator_type=OperatorType.BATCH_NORMALIZATION_TRAINING_GRAD,
    desc=DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=_training_gradients,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor               | Input  | 1 to 8 | FLOAT32, FLOAT16
        InputGradientTensor       | Input  | 1 to 8 | FLOAT32, FLOAT16
        MeanTensor                | Input  | 1 to 8 | FLOAT32, FLOAT16
        VarianceTensor            | Input  | 1 to 8 | FLOAT32, FLOAT16
        ScaleTensor               | Input  | 1 to 8 | FLOAT32, FLOAT16
        OutputGradientTensor      | Output | 1 to 8 | FLOAT32, FLOAT16
        OutputScaleGradientTensor | Output | 1 to 8 | FLOAT32, FLOAT16
        OutputBiasGradientTensor  | Output | 1 to 8 | FLOAT32, FLOAT16
    """),
)
