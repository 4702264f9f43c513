"""Coordinates of what is not 0."""

from __future__ import annotations

from math import prod

import numpy as np

from anydml import TensorDataType

from .node import Adapter, Counted, Node, packed, permuted, sizes_of


def nonzero(node: Node) -> Counted:
    """A row for each dimension, with as many columns as are found: the count comes out beside them."""
    node.values = [x.view(np.uint8) if x.dtype == np.bool_ else x for x in node.values]
    x = node.input(0)
    count, coordinates = node.apply(
        "NONZERO_COORDINATES",
        InputTensor=x,
        OutputCountTensor=packed(TensorDataType.UINT32, (1,)),
        OutputCoordinatesTensor=packed(TensorDataType.UINT32, (prod(sizes_of(x)), len(sizes_of(x)))),
    )
    rows = node("CAST", InputTensor=permuted(coordinates, (1, 0)), OutputTensor=TensorDataType.INT64)
    return Counted(rows, count, axis=1)


ADAPTERS: dict[str, Adapter] = {"NonZero": nonzero}
