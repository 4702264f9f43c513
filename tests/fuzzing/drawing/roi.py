"""Regions of interest."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml import DML_ROI_POOLING_OPERATOR_DESC, DML_SIZE_2D, InterpolationMode, TensorDataType
from anydml.core.enums import ReduceFunction
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of


def good_roi(random: Random) -> OperatorDesc:
    data_type = random.choice([TensorDataType.FLOAT32, TensorDataType.FLOAT16])
    images, channels = random.randint(1, 2), random.randint(1, 3)
    count, image, pooled = random.randint(1, 4), small_sizes(random, 2, 64), small_sizes(random, 2, 32)
    sizes, out_sizes = (images, channels, *image), (count, channels, *pooled)
    name = random.choice(["ROI_POOLING", "ROI_ALIGN", "ROI_ALIGN1", "ROI_ALIGN_GRAD"])
    scale = random.choice([1, 0.5, 2, -1, 7])
    if name == "ROI_POOLING":
        return DML_ROI_POOLING_OPERATOR_DESC(
            InputTensor=tensor_of(random, data_type, sizes),
            ROITensor=tensor_of(random, data_type, (1, 1, count, 5)),
            OutputTensor=tensor_of(random, data_type, out_sizes, True),
            SpatialScale=scale,
            PooledSize=DML_SIZE_2D(Width=pooled[1], Height=pooled[0]),
        )
    rois, indices = ((*(1,) * random.randint(0, 2), count, *last) for last in ((4,), ()))
    least = random.choice([0, 1, 1, 2, 3])
    wants_x, wants_roi = random.choice([(True, False), (False, True), (True, True)])
    function = random.choice([ReduceFunction.AVERAGE, ReduceFunction.MAX])
    has_input = wants_roi or function == ReduceFunction.MAX or random.random() < 0.5
    members: dict[str, Any] = {
        "InputTensor": tensor_of(random, data_type, sizes) if name != "ROI_ALIGN_GRAD" or has_input else None,
        "InputGradientTensor": tensor_of(random, data_type, out_sizes),
        "ROITensor": tensor_of(random, data_type, rois),
        "BatchIndicesTensor": tensor_of(random, TensorDataType.UINT32, indices),
        "OutputTensor": tensor_of(random, data_type, out_sizes, True),
        "OutputGradientTensor": tensor_of(random, data_type, sizes, True) if wants_x else None,
        "OutputROIGradientTensor": tensor_of(random, data_type, rois, True) if wants_roi else None,
        "ReductionFunction": function,
        "InterpolationMode": random.choice(list(InterpolationMode)),
        "SpatialScaleX": scale,
        "SpatialScaleY": random.choice([1, 3]),
        "InputPixelOffset": random.choice([0.5, 0, -0.25]),
        "OutputPixelOffset": random.choice([-0.5, 0, 1]),
        "OutOfBoundsInputValue": random.choice([0, 0, 2, float("nan")]),
        "MinimumSamplesPerOutput": least,
        "MaximumSamplesPerOutput": max(least, random.choice([1, 2, 2**32 - 1])),
        "AlignRegionsToCorners": random.random() < 0.3,
    }
    found = spec(name)
    return found.desc(**{member: value for member, value in members.items() if member in found.members})


DRAWN = [good_roi]
