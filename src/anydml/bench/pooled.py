"""The rows of pooling of floats, and of its gradients: windows of networks, on planes and with channels last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .computation import Built, Computation, Maker, Node, Shape, Tensor
from .normalising import FITTING, images_of


class Window(NamedTuple):
    """What is pooled at once, in each spatial dimension; all of it where the size is 0."""

    name: str
    images: Callable[[int], Shape]
    size: int
    stride: int = 1
    padding: int = 0
    is_last: bool = False

    def sizes(self, shape: Shape) -> tuple[Shape, Shape]:
        """Of the window, and of the output, for images of a shape."""
        window = tuple(self.size or each for each in shape[2:])
        pairs = zip(shape[2:], window, strict=True)
        pooled = [(each + 2 * self.padding - taps) // self.stride + 1 for each, taps in pairs]
        return window, (*shape[:2], *pooled)


_ROUND, _ODD, _DEEP = images_of(64, 112, 112), images_of(61, 53, 47), images_of(16, 16, 56, 56)
WINDOWS = (
    Window("2x2/2", _ROUND, 2, 2),
    Window("3x3/2, padded", _ROUND, 3, 2, 1),
    Window("3x3/2, channels last", _ROUND, 3, 2, is_last=True),
    Window("3x3, padded, 53 x 47", _ODD, 3, 1, 1),
    Window("3x3, padded, 53 x 47, channels last", _ODD, 3, 1, 1, is_last=True),
    Window("global 7x7", images_of(512, 7, 7), 0),
    Window("global 56x56, channels last", images_of(64, 56, 56), 0, is_last=True),
    Window("3x3x3/2, padded", _DEEP, 3, 2, 1),
)


class Kind(NamedTuple):
    """An operator: what it has beside windows, and its equivalents."""

    operator: str
    members: dict[str, Any]
    torch: Callable[[Window, Shape], Maker] | None
    """By the window and its sizes."""
    node: str = ""
    attributes: tuple[tuple[str, Any], ...] = ()
    is_back: bool = False
    """Whether the gradients of the pooled ones go in, and those of the images come out."""
    takes_images: bool = True
    has_indices: bool = False
    has_paddings: bool = True
    """Whether PyTorch has them."""

    def build(self, window: Window) -> Callable[[int, str], Built]:
        def build(most: int, dtype: str) -> Built:
            shape = window.images(most)
            taps, pooled = window.sizes(shape)
            images, small = (Tensor(each, low=-4, high=4, is_last=window.is_last) for each in (shape, pooled))
            inputs, outputs = {}, {}
            if self.takes_images:
                inputs["InputTensor"] = images
            if self.is_back:
                inputs["InputGradientTensor"], outputs["OutputGradientTensor"] = small, images
            else:
                outputs["OutputTensor"] = small
            if self.has_indices:
                outputs["OutputIndicesTensor"] = small._replace(dtype="uint32")
            spatial = len(taps)
            paddings = (window.padding,) * spatial
            members = {
                "Strides": (window.stride,) * spatial,
                "WindowSize": taps,
                "StartPadding": paddings,
                "EndPadding": paddings,
                **{name: (value,) * spatial if name == "Dilations" else value for name, value in self.members.items()},
            }
            attributes = {
                "kernel_shape": list(taps),
                "strides": [window.stride] * spatial,
                "pads": [window.padding] * 2 * spatial,
                **dict(self.attributes),
            }
            has_torch = self.torch is not None and (self.has_paddings or not window.padding)
            return Built(
                inputs,
                outputs,
                members,
                torch=self.torch(window, taps) if has_torch and self.torch is not None else None,
                node=Node(self.node, ("InputTensor",), attributes) if self.node else None,
            )

        return build


# By PyTorch


def _average(window: Window, taps: Shape) -> Maker:
    def maker(torch: Any, x: Any, y: Any) -> Callable[[], None]:
        function = getattr(torch.ops.aten, f"avg_pool{len(taps)}d").out

        def run() -> None:
            function(x, taps, [window.stride], [window.padding], False, False, None, out=y)

        return run

    return maker


def _norm(window: Window, taps: Shape) -> Maker:
    def maker(torch: Any, x: Any, y: Any) -> Callable[[], Any]:
        function = getattr(torch.nn.functional, f"lp_pool{len(taps)}d")
        return lambda: function(x, 2.0, taps, window.stride)

    return maker


def _maximum(has_indices: bool) -> Callable[[Window, Shape], Maker]:
    def of(window: Window, taps: Shape) -> Maker:
        def maker(torch: Any, x: Any, *outputs: Any) -> Callable[[], Any]:
            function = getattr(torch.nn.functional, f"max_pool{len(taps)}d")
            options = {"stride": window.stride, "padding": window.padding, "return_indices": has_indices}
            if has_indices:
                return lambda: function(x, taps, **options)[0]
            return lambda: function(x, taps, **options)

        return maker

    return of


def _average_back(window: Window, taps: Shape) -> Maker:
    def maker(torch: Any, gradient: Any, y: Any) -> Callable[[], Any]:
        function = getattr(torch.ops.aten, f"avg_pool{len(taps)}d_backward")
        return lambda: function(gradient, y, taps, [window.stride], [window.padding], False, False, None)

    return maker


def _maximum_back(window: Window, taps: Shape) -> Maker:
    """With the maxima, which DirectML's operator has to find again."""

    def maker(torch: Any, x: Any, gradient: Any, y: Any) -> Callable[[], Any]:
        find = getattr(torch.ops.aten, f"max_pool{len(taps)}d_with_indices")
        spread = getattr(torch.ops.aten, f"max_pool{len(taps)}d_with_indices_backward")
        options = taps, [window.stride], [window.padding], [1], False
        return lambda: spread(gradient, x, *options, find(x, *options)[1])

    return maker


KINDS = (
    Kind("AVERAGE_POOLING", {"IncludePadding": False}, _average, "AveragePool", (("count_include_pad", 0),)),
    Kind("LP_POOLING", {"P": 2}, _norm, "LpPool", (("p", 2),), has_paddings=False),
    Kind("MAX_POOLING", {}, _maximum(False), "MaxPool"),
)
WITH_INDICES = Kind("MAX_POOLING2", {"Dilations": 1}, _maximum(True), has_indices=True)
GRADIENTS = (
    Kind("AVERAGE_POOLING_GRAD", {"IncludePadding": False}, _average_back, is_back=True, takes_images=False),
    Kind("MAX_POOLING_GRAD", {"Dilations": 1}, _maximum_back, is_back=True),
)


def pooled() -> Iterator[Computation]:
    for kind in KINDS:
        for window in WINDOWS:
            for dtype in ("float32", "float16"):
                yield _row(kind, window, dtype)
    for window in WINDOWS[1:3]:
        yield _row(WITH_INDICES, window, "float32")
    for kind in GRADIENTS:
        for window in WINDOWS[:6]:
            yield _row(kind, window, "float32")


def _row(kind: Kind, window: Window, dtype: str) -> Computation:
    cell = "global" if not window.size else "windows"
    return Computation(kind.operator, window.name, FITTING, dtype, build=kind.build(window), of=cell)
