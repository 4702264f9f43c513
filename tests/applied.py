"""The call of a function that does what a desc says, as data for tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from keyword import iskeyword
from typing import Any

import numpy as np

import anydml
from anydml import AxisDirection, PackedArray, TensorDataType
from anydml.core.strided_layout import DTYPES
from anydml.operators import OPERATORS, spec_of
from anydml.operators.schema import OperatorDesc

NAMES = {
    "Axes": "axes",
    "FusedActivation": "activation",
    "ActivationDescs": "activations",
    "HasExclusiveSum": "exclusive",
    "HasExclusiveProduct": "exclusive",
    "PaddingMode": "mode",
    "PaddingValue": "value",
    "ValueStart": "start",
    "ValueDelta": "delta",
    "UseVariance": "normalize_variance",
    "InputWindowOffsets": "offsets",
    "InputWindowSizes": "sizes",
    "InputWindowStrides": "strides",
}
"""Arguments that are not called as their members are."""

WITH_SIZES = (
    "CONVOLUTION",
    "AVERAGE_POOLING",
    "AVERAGE_POOLING1",
    "LP_POOLING",
    "LP_POOLING1",
    "FOLD",
    "QUANTIZED_LINEAR_AVERAGE_POOLING",
    "ROI_ALIGN",
    "ROI_ALIGN1",
)
WITH_TYPE = (
    "DYNAMIC_QUANTIZE_LINEAR",
    "QUANTIZED_LINEAR_AVERAGE_POOLING",
    "ELEMENT_WISE_QUANTIZE_LINEAR",
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD",
    "QUANTIZED_LINEAR_CONVOLUTION",
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
)
"""Whose functions are told the type of the result."""


def function_of(operator: str) -> str:
    """Its name: without what groups operators, and without its revision; one of a constant is that of a tensor, too."""
    grouped = r"^(ELEMENT_WISE_CONSTANT|ELEMENT_WISE|ACTIVATION)_(LOGICAL_(?=EQUALS|GREATER|LESS))?"
    name = re.sub(r"(?<=[A-Z])[123]$", "", re.sub(grouped, "", operator)).lower()
    return f"{name}_" if iskeyword(name) else name


def options_of(desc: Any) -> dict[str, Any]:
    """All arguments that are no operands."""
    spec = spec_of(desc)
    assert spec is not None
    options = {}
    for each in fields(desc):
        if each.name not in spec.tensors and each.name not in spec.desc.counts:
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each.name).lower()
            options[NAMES.get(each.name, name)] = getattr(desc, each.name)
    output = getattr(desc, "OutputTensor", None)
    name = spec.name
    is_max_pooling = OPERATORS[name].family == "max_pooling"
    if name in WITH_SIZES or is_max_pooling:
        options["output_sizes"] = output.Sizes[2:]
    if is_max_pooling and getattr(desc, "OutputIndicesTensor", None) is not None:
        options["indices_dtype"] = DTYPES[desc.OutputIndicesTensor.DataType]
    if OPERATORS[name].family == "resample":
        options["output_sizes"] = getattr(desc, [*spec.tensors][-1]).Sizes
    if name in WITH_TYPE:
        options["output_dtype"] = DTYPES[output.DataType]
    return _SPECIAL.get(name, lambda desc, options: options)(desc, options)


def _scan(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    reverse = options.pop("axis_direction") == AxisDirection.DECREASING
    return {**options, "reverse": reverse}


def _index(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    return {**_scan(desc, options), "output_dtype": DTYPES[desc.OutputTensor.DataType]}


def _top_k(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    is_largest = options.pop("axis_direction", AxisDirection.DECREASING) == AxisDirection.DECREASING
    return {**options, "largest": is_largest, "indices_dtype": DTYPES[desc.OutputIndexTensor.DataType]}


def _roi_align_grad(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    of_x, of_roi = desc.OutputGradientTensor, desc.OutputROIGradientTensor
    sizes = None if of_x is None else of_x.Sizes
    return {**options, "of_x": of_x is not None, "of_roi": of_roi is not None, "output_sizes": sizes}


def _slice(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The window that holds the elements."""
    pairs = zip(desc.Sizes, desc.Strides, strict=True)
    return {**options, "sizes": [(size - 1) * stride + 1 for size, stride in pairs]}


def _filled(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    kind = options.pop("value_data_type")
    return {**options, "shape": desc.OutputTensor.Sizes, "dtype": DTYPES[kind]}


def _padding1(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    options.pop("padding_value_data_type")
    return options


def _diagonal(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Of a matrix, or of nothing."""
    options.pop("value_data_type", None)
    if getattr(desc, "InputTensor", None) is not None:
        return options
    return {**options, "shape": desc.OutputTensor.Sizes, "dtype": DTYPES[desc.OutputTensor.DataType]}


def _lstm(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    is_used = options.pop("use_clip_threshold")
    return {**options, "clip_threshold": options["clip_threshold"] if is_used else None}


def _mean_variance(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    across = options.pop("cross_channel")
    return {**options, "axes": (1, 2, 3) if across else (2, 3)}


def _attention(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    """With all keys and values where one of both is there."""
    if "query_head_count" in options:
        options["head_count"] = options.pop("query_head_count")
    return {**options, "present": desc.OutputPresentKeyTensor is not None or desc.OutputPresentValueTensor is not None}


def _clip1(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    options.pop("min_max_data_type")
    return options


def _quantize(desc: Any, options: dict[str, Any]) -> dict[str, Any]:
    """By the number of tensors; of quantised results the type, too."""
    options.pop("quantization_type")
    is_real = desc.OutputTensor.DataType in (TensorDataType.FLOAT32, TensorDataType.FLOAT16)
    return options if is_real else {**options, "output_dtype": desc.OutputTensor.DataType}


_SPECIAL: dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]] = {
    "ARGMAX": _index,
    "ARGMIN": _index,
    "AVERAGE_POOLING_GRAD": lambda desc, options: {**options, "output_sizes": desc.OutputGradientTensor.Sizes[2:]},
    "CAST": lambda desc, options: {"dtype": DTYPES[desc.OutputTensor.DataType]},
    "CUMULATIVE_PRODUCT": _scan,
    "CUMULATIVE_SUMMATION": _scan,
    "DEQUANTIZE": _quantize,
    "DIAGONAL_MATRIX": _diagonal,
    "DIAGONAL_MATRIX1": _diagonal,
    "ELEMENT_WISE_CLIP1": _clip1,
    "ELEMENT_WISE_CLIP_GRAD1": _clip1,
    "FILL_VALUE_CONSTANT": _filled,
    "FILL_VALUE_SEQUENCE": _filled,
    "LSTM": _lstm,
    "MAX_UNPOOLING": lambda desc, options: {**options, "output_sizes": desc.OutputTensor.Sizes},
    "MEAN_VARIANCE_NORMALIZATION": _mean_variance,
    "MULTIHEAD_ATTENTION": _attention,
    "MULTIHEAD_ATTENTION1": _attention,
    "ONE_HOT": lambda desc, options: {**options, "depth": desc.OutputTensor.Sizes[desc.Axis]},
    "PADDING1": _padding1,
    "QUANTIZE": _quantize,
    "RANDOM_GENERATOR": lambda desc, options: {**options, "shape": desc.OutputTensor.Sizes},
    "REDUCE": lambda desc, options: {**options, "output_dtype": DTYPES[desc.OutputTensor.DataType]},
    "ROI_ALIGN_GRAD": _roi_align_grad,
    "SLICE": _slice,
    "SLICE_GRAD": lambda desc, options: {**options, "shape": desc.OutputGradientTensor.Sizes},
    "SPLIT": lambda desc, options: {**options, "sizes": [each.Sizes[desc.Axis] for each in desc.OutputTensors]},
    "TOP_K": _top_k,
    "TOP_K1": _top_k,
}


def operands_of(desc: OperatorDesc, inputs: Sequence[Any]) -> list[Any]:
    """What a function takes for a case's inputs: the bytes of those of 4 bits with their shapes."""
    spec = spec_of(desc)
    assert spec is not None
    return [
        PackedArray(x, tensor.DataType, tensor.Sizes) if tensor is not None and tensor.DataType.bits == 4 else x
        for (_, tensor), x in zip(spec.inputs(desc), inputs, strict=True)
    ]


def arguments_of(desc: OperatorDesc, operands: Sequence[Any]) -> dict[str, Any]:
    """All arguments of a desc's function, by name."""
    spec = spec_of(desc)
    assert spec is not None
    if spec.name == "JOIN":
        return {"arrays": list(operands), **options_of(desc)}
    inputs = [member for member, row in spec.tensors.items() if "output" not in row.kind.lower()]
    words = [
        re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=^[AB])(?=[A-Z])", "_", member.removesuffix("Tensor")) for member in inputs
    ]
    words = list(map(str.lower, words))
    names = ["x" if word == "input" else word for word in words]
    if "quantization_tensors" in names:
        names = ["x", "scale", "zero_point"][: len(operands)]
    return {**dict(zip(names, operands, strict=True)), **options_of(desc)}


def as_described(desc: Any, outputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a desc's function as the desc has them: coordinates with its dimensions, rows that are none 0."""
    spec = spec_of(desc)
    assert spec is not None
    if spec.name != "NONZERO_COORDINATES":
        return outputs
    *counts, rows = map(np.asarray, outputs)
    found = rows[: int(counts[0][0])] if counts else rows
    *_, elements, columns = desc.OutputCoordinatesTensor.Sizes
    whole = np.zeros((elements, columns), np.uint32)
    whole[: len(found)] = found[:, found.shape[1] - columns :]
    count = np.full(desc.OutputCountTensor.Sizes, len(found), np.uint32)
    return [count, whole.reshape(desc.OutputCoordinatesTensor.Sizes)]


def applied(desc: OperatorDesc, operands: Sequence[Any], **more: Any) -> list[Any]:
    """The outputs of a desc's function on arrays or expressions, in header order; None for what it leaves out."""
    spec = spec_of(desc)
    assert spec is not None
    result = getattr(anydml, function_of(spec.name))(**arguments_of(desc, operands), **more)
    outputs = result if isinstance(result, list) else [result]
    if spec.name == "ROI_ALIGN_GRAD" and len(outputs) == 1:
        return [None, *outputs] if desc.OutputGradientTensor is None else [*outputs, None]
    if spec.name.startswith("MULTIHEAD_ATTENTION"):
        return [*outputs, None, None][:3]
    return [*outputs, None] if spec.name in ("MAX_POOLING1", "MAX_POOLING2") and len(outputs) == 1 else outputs
