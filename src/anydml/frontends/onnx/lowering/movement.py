"""What moves elements, or looks at them under another shape."""

from __future__ import annotations

from ..context import Counted, Lowering, NodeContext
from ..values import Traced


def identity(node: NodeContext) -> object:
    return node.value(0) if isinstance(node.value(0), Traced) else node.shaped(node.x(0), node.shape(0))


def nonzero(node: NodeContext) -> Counted:
    count, coordinates = node.call("nonzero_coordinates", node.x(0))
    # {elements, dimensions} of UINT32; ONNX has a row for each dimension.
    return Counted(coordinates.astype("int64").T, count, 1)


LOWERINGS: dict[str, Lowering] = {
    "Identity": identity,
    "NonZero": nonzero,
}
