"""Steps of optimizers."""

from __future__ import annotations

import numpy as np

from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, reshaped, sizes_of
from .normalization import scaled


def adam(node: Node) -> list[Expression]:
    """Of several tensors, each in 4 dimensions; the gradient has a part of the parameters, which decay so."""
    rate, step, count = float(node.value(0)), node.value(1), (len(node) - 2) // 4
    steps = []
    for i in range(count):
        x, gradient, first, second = [node.input(2 + part * count + i) for part in range(4)]
        decay, after = node.get("norm_coefficient", 0.0), node.get("norm_coefficient_post", 0.0)
        if decay:
            gradient = node("ELEMENT_WISE_ADD", ATensor=scaled(node, x, decay), BTensor=gradient)
        sizes = sizes_of(x)
        four = (1,) * (4 - len(sizes)) + sizes
        outputs = node.apply(
            "ADAM_OPTIMIZER",
            InputParametersTensor=reshaped(x, four),
            InputFirstMomentTensor=reshaped(first, four),
            InputSecondMomentTensor=reshaped(second, four),
            GradientTensor=reshaped(gradient, four),
            TrainingStepTensor=reshaped(node.constant(step.reshape(1).astype(np.uint32)), (1, 1, 1, 1)),
            LearningRate=rate,
            Beta1=node.get("alpha", 0.9),
            Beta2=node.get("beta", 0.999),
            Epsilon=node.get("epsilon", 1e-6),
        )
        x, *moments = [reshaped(each, sizes) for each in outputs]
        steps.append([scaled(node, x, 1 - after) if after else x, *moments])
    return [one for each in zip(*steps, strict=True) for one in each]


ADAPTERS: dict[str, Adapter] = {"Adam": adam}
