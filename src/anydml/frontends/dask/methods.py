"""Which operators have better ways over chunks than to gather the dimensions that are not independent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import dask.array as da

from .blockwise import blockwise
from .call import Call
from .normalize import batch_training, hardmax, lp_normalization, mean_variance, softmax
from .reduce import index, reduce
from .scan import scan

Method: TypeAlias = Callable[[Call], "list[da.Array] | None"]
"""The outputs of a call; None where the rule of :func:`blockwise` does as well."""

METHODS: Mapping[str, Method] = {
    "ACTIVATION_HARDMAX": hardmax,
    "ACTIVATION_HARDMAX1": hardmax,
    "ACTIVATION_LOG_SOFTMAX": softmax,
    "ACTIVATION_LOG_SOFTMAX1": softmax,
    "ACTIVATION_SOFTMAX": softmax,
    "ACTIVATION_SOFTMAX1": softmax,
    "ARGMAX": index,
    "ARGMIN": index,
    "BATCH_NORMALIZATION_TRAINING": batch_training,
    "CUMULATIVE_PRODUCT": scan,
    "CUMULATIVE_SUMMATION": scan,
    "LP_NORMALIZATION": lp_normalization,
    "MEAN_VARIANCE_NORMALIZATION": mean_variance,
    "MEAN_VARIANCE_NORMALIZATION1": mean_variance,
    "MEAN_VARIANCE_NORMALIZATION2": mean_variance,
    "REDUCE": reduce,
}
"""By operator. All others have none but that rule."""


def outputs_of(call: Call) -> list[da.Array]:
    """The outputs that there are, by the best way."""
    method = METHODS.get(call.spec.name)
    found = None if method is None else method(call)
    return blockwise(call) if found is None else found
