"""Recurrent networks: their members as numbers, and the activations of gates as programs on FLOAT32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.enums import RecurrentNetworkDirection, TensorDataType
from ...core.strided_layout import Layout
from ...operators import spec_of
from .pointwise_lowering import program_of
from .request import Lowered, bits_of


def recurrent(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    spec = spec_of(desc)
    if spec is None:
        return None
    flags = ("CoupleInputForget", "LinearBeforeReset", "UseClipThreshold")
    limit = np.array(getattr(desc, "ClipThreshold", 0), np.float64)
    programs = [program_of(each, [TensorDataType.FLOAT32]) for each in desc.ActivationDescs]
    return spec.name, {
        "Backward": (int(desc.Direction == RecurrentNetworkDirection.BACKWARD),),
        "ClipThreshold": (bits_of(limit),),
        **{name: (int(getattr(desc, name, False)),) for name in flags},
        **{f"Activation{i}": tuple(program.words) for i, program in enumerate(programs)},
    }
