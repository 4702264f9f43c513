"""The rows of products of matrices and of convolutions: geometries of networks' layers, which integers have as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from ..core.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform
from .computation import Built, Computation, Node, Shape, Tensor, fitted, layer

FLOATS = ("float32", "float16")


class Product(NamedTuple):
    """Matrices of M rows and K columns, times those of K rows and N columns."""

    name: str
    m: int
    k: int
    n: int
    batch: Shape = ()
    trans_a: bool = False
    trans_b: bool = False
    stays: bool = False
    """Whether the second is a layer's weights."""

    def within(self, most: int) -> Product:
        """The same with matrices of at most so many elements."""
        batch = fitted(max(most // 64, 1), *self.batch) if self.batch else ()
        m, k, n = self.m, self.k, self.n
        while max(m * k, k * n, m * n) * prod(batch) > most and max(m, k, n) > 1:
            largest = max(m, k, n)
            m, k, n = (((each + 1) // 2 if each == largest else each) for each in (m, k, n))
        return self._replace(m=m, k=k, n=n, batch=batch)

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """Of both factors and of the product, with all that DirectML has dimensions for."""
        batch = (1,) * (2 - len(self.batch)) + self.batch
        a = (self.k, self.m) if self.trans_a else (self.m, self.k)
        b = (self.n, self.k) if self.trans_b else (self.k, self.n)
        return (*batch, *a), (*batch, *b), (*batch, self.m, self.n)

    @property
    def products(self) -> int:
        return prod(self.batch) * self.m * self.k * self.n


PRODUCTS = (
    Product("256 x 256 x 256", 256, 256, 256),
    Product("1024 x 1024 x 1024", 1024, 1024, 1024),
    Product("1021 x 509 x 763", 1021, 509, 763),
    Product("one row, 1 x 4096 x 4096", 1, 4096, 4096, stays=True),
    Product("transformer, 128 x 768 x 768", 128, 768, 768, stays=True),
    Product("transformer, 128 x 768 x 3072", 128, 768, 3072, stays=True),
    Product("transformer, 128 x 3072 x 768", 128, 3072, 768, stays=True),
    Product("12 heads, 128 x 64 x 128", 128, 64, 128, batch=(12,)),
)
TRANSPOSED = (
    Product("A transposed, 512 x 512 x 512", 512, 512, 512, trans_a=True),
    Product("B transposed, 512 x 512 x 512", 512, 512, 512, trans_b=True),
    Product("both transposed, 251 x 509 x 127", 251, 509, 127, trans_a=True, trans_b=True),
    Product("B transposed, one row, 1 x 2048 x 2048", 1, 2048, 2048, trans_b=True),
    Product("12 heads, B transposed, 128 x 64 x 128", 128, 64, 128, batch=(12,), trans_b=True),
)


def _gemm(product: Product) -> Callable[[int, str], Built]:
    def build(most: int, dtype: str) -> Built:
        found = product.within(most)
        a, b, y = found.shapes
        transforms = (found.trans_a, found.trans_b)

        def by_library(library: Any, a: Any, b: Any, y: Any) -> Callable[[], None]:
            a, b = (each.swapaxes(-1, -2) if turned else each for each, turned in zip((a, b), transforms, strict=True))

            def run() -> None:
                library.matmul(a, b, out=y)

            return run

        attributes = {"transA": int(found.trans_a), "transB": int(found.trans_b)}
        fused = Node("com.microsoft.FusedMatMul", ("ATensor", "BTensor"), attributes)
        trans_a, trans_b = (MatrixTransform.TRANSPOSE if each else MatrixTransform.NONE for each in transforms)
        return Built(
            {"ATensor": Tensor(a), "BTensor": Tensor(b, stays=found.stays)},
            {"OutputTensor": Tensor(y)},
            {"TransA": trans_a, "TransB": trans_b, "Alpha": 1.0, "Beta": 0.0},
            numpy=by_library if dtype == "float32" else None,  # which has no halves in its BLAS
            torch=by_library,
            node=fused if any(transforms) else Node("MatMul", ("ATensor", "BTensor")),
            products=found.products,
        )

    return build


class Layer(NamedTuple):
    """A convolution: its channels, its input's spatial sizes, and its windows, which are as large in each of these."""

    name: str
    channels: int
    filters: int
    spatial: Shape
    window: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    batch: int = 1
    is_transposed: bool = False

    @property
    def title(self) -> str:
        images = f", batch of {self.batch}" if self.batch > 1 else ""
        return f"{self.name}{images}"

    def within(self, most: int) -> Layer:
        """The same with tensors of at most so many elements: fewer images, smaller ones, of fewer channels."""
        found = self
        while max(map(prod, found.shapes)) > most:
            smaller = tuple(max((size + 1) // 2, found.window) for size in found.spatial)
            if found.batch > 1:
                found = found._replace(batch=1)
            elif smaller != found.spatial:
                found = found._replace(spatial=smaller)
            else:
                channels, filters, groups = (
                    max(each // 2, 1) for each in (found.channels, found.filters, found.groups)
                )
                found = found._replace(channels=channels, filters=filters, groups=groups)
        return found

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """Of the input, the filter and the output."""
        taps = (self.window,) * len(self.spatial)
        if self.is_transposed:
            filters = (self.channels, self.filters // self.groups, *taps)
            sizes = [(size - 1) * self.stride + self.window - 2 * self.padding for size in self.spatial]
        else:
            filters = (self.filters, self.channels // self.groups, *taps)
            sizes = [(size + 2 * self.padding - self.window) // self.stride + 1 for size in self.spatial]
        return (self.batch, self.channels, *self.spatial), filters, (self.batch, self.filters, *sizes)

    @property
    def products(self) -> int:
        x, filters, y = self.shapes
        return prod(filters[1:]) * (prod(x) if self.is_transposed else prod(y))

    @property
    def members(self) -> dict[str, Any]:
        """What the descs of all convolutions have."""
        spatial = len(self.spatial)
        return {
            "Strides": (self.stride,) * spatial,
            "Dilations": (1,) * spatial,
            "StartPadding": (self.padding,) * spatial,
            "EndPadding": (self.padding,) * spatial,
            "GroupCount": self.groups,
        }

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Of ONNX's nodes."""
        spatial = len(self.spatial)
        return {"strides": [self.stride] * spatial, "pads": [self.padding] * 2 * spatial, "group": self.groups}


def _square(
    name: str, channels: int, filters: int, size: int, window: int, stride: int = 1, padding: int = 0, groups: int = 1
) -> Layer:
    return Layer(name, channels, filters, (size, size), window, stride, padding, groups)


LAYERS = (
    _square("SqueezeNet's stem, 3 to 64, 3x3/2, 224", 3, 64, 224, 3, 2),
    _square("SqueezeNet, 64 to 16, 1x1, 55", 64, 16, 55, 1),
    _square("SqueezeNet, 16 to 64, 3x3, 55", 16, 64, 55, 3, 1, 1),
    _square("SqueezeNet, 64 to 256, 3x3, 13", 64, 256, 13, 3, 1, 1),
    _square("SqueezeNet, 512 to 1000, 1x1, 13", 512, 1000, 13, 1),
    _square("MobileNet's stem, 3 to 32, 3x3/2, 224", 3, 32, 224, 3, 2, 1),
    _square("MobileNet, 16 to 96, 1x1, 112", 16, 96, 112, 1),
    _square("MobileNet, depthwise 96, 3x3/2, 112", 96, 96, 112, 3, 2, 1, 96),
    _square("MobileNet, depthwise 144, 3x3, 56", 144, 144, 56, 3, 1, 1, 144),
    _square("MobileNet, depthwise 384, 3x3, 14", 384, 384, 14, 3, 1, 1, 384),
    _square("MobileNet, 384 to 64, 1x1, 14", 384, 64, 14, 1),
    _square("MobileNet, 320 to 1280, 1x1, 7", 320, 1280, 7, 1),
    _square("ResNet-50's stem, 3 to 64, 7x7/2, 224", 3, 64, 224, 7, 2, 3),
    _square("ResNet-50, 64 to 256, 1x1, 56", 64, 256, 56, 1),
    _square("ResNet-50, 64 to 64, 3x3, 56", 64, 64, 56, 3, 1, 1),
    _square("ResNet-50, 128 to 128, 3x3/2, 56", 128, 128, 56, 3, 2, 1),
    _square("ResNet-50, 256 to 256, 3x3, 14", 256, 256, 14, 3, 1, 1),
    _square("ResNet-50, 1024 to 256, 1x1, 14", 1024, 256, 14, 1),
    _square("ResNet-50, 512 to 512, 3x3, 7", 512, 512, 7, 3, 1, 1),
)
OTHERS = (
    Layer("odd sizes, 37 to 51, 3x3, 53x47", 37, 51, (53, 47), 3, 1, 1),
    _square("32 groups, 256 to 256, 3x3, 14", 256, 256, 14, 3, 1, 1, 32),
)
BEYOND_INTEGERS = (
    Layer("1-D, 64 to 64, 9, 4096", 64, 64, (4096,), 9, 1, 4),
    Layer("3-D, 16 to 32, 3x3x3, 16x28x28", 16, 32, (16, 28, 28), 3, 1, 1),
    Layer("transposed, 64 to 32, 4x4/2, 28", 64, 32, (28, 28), 4, 2, 1, is_transposed=True),
    Layer("transposed, 128 to 64, 2x2/2, 14", 128, 64, (14, 14), 2, 2, 0, is_transposed=True),
)
BATCH = 8


def of_both_batches(layers: tuple[Layer, ...]) -> Iterator[Layer]:
    for each in layers:
        yield from (each, each._replace(batch=BATCH))


def _convolution(given: Layer) -> Callable[[int, str], Built]:
    def build(most: int, dtype: str) -> Built:
        found = given.within(most)
        x, filters, y = found.shapes
        bias = (1, y[1], *[1] * len(found.spatial))
        direction = ConvolutionDirection.BACKWARD if found.is_transposed else ConvolutionDirection.FORWARD

        def by_torch(torch: Any, x: Any, filters: Any, bias: Any, y: Any) -> Callable[[], Any]:
            function = getattr(
                torch.nn.functional, f"conv{'_transpose' if found.is_transposed else ''}{len(found.spatial)}d"
            )
            options = {"stride": found.stride, "padding": found.padding, "groups": found.groups}
            return lambda: function(x, filters, bias.flatten(), **options)

        operator = "ConvTranspose" if found.is_transposed else "Conv"
        return Built(
            {
                "InputTensor": Tensor(x),
                "FilterTensor": Tensor(filters, stays=True),
                "BiasTensor": Tensor(bias, stays=True),
            },
            {"OutputTensor": Tensor(y)},
            {
                **found.members,
                "Mode": ConvolutionMode.CROSS_CORRELATION,
                "Direction": direction,
                "OutputPadding": (0,) * len(found.spatial),
            },
            torch=by_torch,
            node=Node(operator, ("InputTensor", "FilterTensor", "BiasTensor/flat"), found.attributes),
            products=found.products,
        )

    return build


def dense() -> Iterator[Computation]:
    """Products and convolutions of floats; of halves all layers of one image, and some of several."""
    for dtype in FLOATS:
        for product in (*PRODUCTS, *TRANSPOSED):
            yield layer("GEMM", product.name, dtype, _gemm(product), "products")
    for dtype in FLOATS:
        every = [*of_both_batches((*LAYERS, *OTHERS)), *BEYOND_INTEGERS]
        for given in every if dtype == "float32" else [*every[::2], *every[5::6]]:
            cell = "depthwise" if given.groups == given.channels else f"{given.window} taps"
            yield layer("CONVOLUTION", given.title, dtype, _convolution(given), cell)
