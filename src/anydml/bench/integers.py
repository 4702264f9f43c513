"""The rows of quantised products and convolutions, of the geometries that floats have, and of quantisation itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..core.enums import QuantizationType
from .computation import Built, Computation, Node, Shape, Tensor, fitted, layer
from .dense import LAYERS, OTHERS, PRODUCTS, Layer, Product, of_both_batches

_RANGES = {"uint8": (0, 255), "int8": (-127, 127)}
"""INT8 as weights are quantised to it, without -128."""
_SPREAD, _MIDDLE = 73.6, 128
"""The standard deviation of such values, and the zero point of those without a sign."""
SCALE = 2.0**-6


class Quantised(NamedTuple):
    """An operator of the two factors or of the input and the filter: which tensors it has beside them."""

    operator: str
    node: str
    inputs: tuple[str, ...]
    """Of the node."""


_PRODUCTS = (
    Quantised(
        "MATRIX_MULTIPLY_INTEGER",
        "MatMulInteger",
        ("ATensor", "BTensor", "AZeroPointTensor/one", "BZeroPointTensor/one"),
    ),
    Quantised(
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
        "com.microsoft.MatMulIntegerToFloat",
        (
            *("ATensor", "BTensor", "AScaleTensor/one", "BScaleTensor/one"),
            *("AZeroPointTensor/one", "BZeroPointTensor/one"),
        ),
    ),
    Quantised(
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        "QLinearMatMul",
        (
            *("ATensor", "AScaleTensor/one", "AZeroPointTensor/one"),
            *("BTensor", "BScaleTensor/one", "BZeroPointTensor/one"),
            *("OutputScaleTensor/one", "OutputZeroPointTensor/one"),
        ),
    ),
)
_CONVOLUTIONS = (
    Quantised(
        "CONVOLUTION_INTEGER",
        "ConvInteger",
        ("InputTensor", "FilterTensor", "InputZeroPointTensor/one", "FilterZeroPointTensor/one"),
    ),
    Quantised(
        "QUANTIZED_LINEAR_CONVOLUTION",
        "QLinearConv",
        (
            *("InputTensor", "InputScaleTensor/one", "InputZeroPointTensor/one"),
            *("FilterTensor", "FilterScaleTensor/flat", "FilterZeroPointTensor/flat"),
            *("OutputScaleTensor/one", "OutputZeroPointTensor/one", "BiasTensor/flat"),
        ),
    ),
)


def _constant(value: float, dtype: str, shape: Shape = (1, 1, 1, 1)) -> Tensor:
    return Tensor(shape, dtype, value, value, stays=True)


def _quantised(
    names: tuple[str, str], shapes: tuple[Shape, Shape], dtypes: tuple[str, str], wanted: set[str], per: Shape
) -> dict[str, Tensor]:
    """Both factors, each with those of its scale and zero point that are wanted; in header order."""
    tensors = {}
    for name, shape, dtype, parameters in zip(names, shapes, dtypes, ((1, 1, 1, 1), per), strict=True):
        stem = name.removesuffix("Tensor")
        low, high = _RANGES[dtype]
        tensors[name] = Tensor(shape, dtype, low, high, stays=name != names[0])
        if f"{stem}ScaleTensor" in wanted:
            tensors[f"{stem}ScaleTensor"] = _constant(SCALE, "float32", parameters)
        zero_point = _MIDDLE if dtype == "uint8" else 0
        tensors[f"{stem}ZeroPointTensor"] = _constant(zero_point, dtype, parameters)
    return tensors


def _output_parameters(depth: int, dtype: str) -> dict[str, Tensor]:
    """Of results that are sums of so many products: a third of the range is their standard deviation."""
    scale = SCALE**2 * _SPREAD**2 * depth**0.5 / 43
    zero_point = _MIDDLE if dtype == "uint8" else 0
    return {"OutputScaleTensor": _constant(scale, "float32"), "OutputZeroPointTensor": _constant(zero_point, dtype)}


def _names(quantised: Quantised) -> set[str]:
    return {name.partition("/")[0] for name in quantised.inputs}


def _product(quantised: Quantised, product: Product) -> Callable[[int, str], Built]:
    def build(most: int, dtype: str) -> Built:
        found = product.within(most)
        a, b, y = found.shapes
        wanted = _names(quantised)
        tensors = _quantised(("ATensor", "BTensor"), (a, b), (dtype, "int8"), wanted, (1, 1, 1, 1))
        is_requantised = "OutputScaleTensor" in wanted
        output = dtype if is_requantised else "float32" if "AScaleTensor" in wanted else "int32"
        return Built(
            {**tensors, **(_output_parameters(found.k, dtype) if is_requantised else {})},
            {"OutputTensor": Tensor(y, output)},
            {},
            node=Node(quantised.node, quantised.inputs),
            products=found.products,
            may_be_one_off=is_requantised,
        )

    return build


def _convolution(quantised: Quantised, given: Layer) -> Callable[[int, str], Built]:
    def build(most: int, dtype: str) -> Built:
        found = given.within(most)
        x, filters, y = found.shapes
        wanted = _names(quantised)
        is_requantised = "OutputScaleTensor" in wanted
        per = (1, found.filters, 1, 1) if is_requantised else (1, 1, 1, 1)
        tensors = _quantised(("InputTensor", "FilterTensor"), (x, filters), (dtype, "int8"), wanted, per)
        if is_requantised:
            tensors["BiasTensor"] = Tensor((1, found.filters, 1, 1), "int32", -1000, 1000, stays=True)
            tensors |= _output_parameters(found.window**2 * filters[1], dtype)
        return Built(
            tensors,
            {"OutputTensor": Tensor(y, dtype if is_requantised else "int32")},
            found.members,
            node=Node(quantised.node, quantised.inputs, found.attributes),
            products=found.products,
            may_be_one_off=is_requantised,
        )

    return build


# Quantisation


class Blocks(NamedTuple):
    """What of a matrix has one scale: so many elements along an axis; all along it where 0."""

    name: str
    axis: int
    size: int


BLOCKS = (Blocks("blocks of 32", 1, 32), Blocks("blocks of 16 rows", 0, 16), Blocks("rows of 4096", 1, 0))
_WIDTH = 4096


def _in_blocks(blocks: Blocks, quantised: str, is_back: bool) -> Callable[[int, str], Built]:
    def build(most: int, dtype: str) -> Built:
        width = min(_WIDTH, max(most // 16 // 32 * 32, 32))
        shape = (max(most // width // 16 * 16, 16), width)
        size = blocks.size or shape[blocks.axis]
        per = tuple(length // size if axis == blocks.axis else length for axis, length in enumerate(shape))
        low, high = _RANGES[quantised]
        is_per_row = size == shape[1] and blocks.axis == 1
        attributes: dict[str, Any] = {"axis": 0} if is_per_row else {"axis": blocks.axis, "block_size": size}
        view = "/flat" if is_per_row else ""
        integers, floats = Tensor(shape, quantised, low, high), Tensor(shape, dtype, -4, 4)
        names = ("InputTensor", f"QuantizationTensors[0]{view}", f"QuantizationTensors[1]{view}")
        return Built(
            {
                "InputTensor": integers if is_back else floats,
                "QuantizationTensors[0]": Tensor(per, dtype, 2.0**-6, 2.0**-4),
                "QuantizationTensors[1]": Tensor(per, quantised, *((100, 150) if quantised == "uint8" else (-20, 20))),
            },
            {"OutputTensor": floats if is_back else integers},
            {"QuantizationType": QuantizationType.SCALE_ZERO_POINT},
            node=Node("DequantizeLinear" if is_back else "QuantizeLinear", names, attributes),
            may_be_one_off=True,
        )

    return build


def _dynamic(most: int, dtype: str) -> Built:
    shape = fitted(most, max(most // 1024, 1), 1024)
    return Built(
        {"InputTensor": Tensor(shape, low=-3, high=5)},
        {
            "OutputTensor": Tensor(shape, "uint8"),
            "OutputScaleTensor": Tensor((1, 1), "float32"),
            "OutputZeroPointTensor": Tensor((1, 1), "uint8"),
        },
        {},
        node=Node("DynamicQuantizeLinear", ("InputTensor",), outputs=3),
        may_be_one_off=True,
    )


def integers() -> Iterator[Computation]:
    """Products and convolutions: UINT8 by INT8, and some INT8 by INT8."""
    for quantised in _PRODUCTS:
        for i, product in enumerate(PRODUCTS):
            for dtype in ("uint8", "int8")[: 1 + (i % 4 == 0)]:
                yield layer(quantised.operator, product.name, dtype, _product(quantised, product), "products")
    for quantised in _CONVOLUTIONS:
        for i, given in enumerate([*of_both_batches(LAYERS), *OTHERS]):
            for dtype in ("uint8", "int8")[: 1 + (i % 6 == 4)]:
                cell = "depthwise" if given.groups == given.channels else f"{given.window} taps"
                yield layer(quantised.operator, given.title, dtype, _convolution(quantised, given), cell)


def quantisation() -> Iterator[Computation]:
    for operator, is_back in (("QUANTIZE", False), ("DEQUANTIZE", True)):
        for blocks in BLOCKS:
            for quantised in ("uint8", "int8")[: 1 + (blocks is BLOCKS[0])]:
                words = f"{'from' if is_back else 'to'} {quantised}, {blocks.name}"
                build = _in_blocks(blocks, quantised, is_back)
                yield Computation(operator, words, 1.3, "float32", build=build, of="blocks")
    yield Computation("DYNAMIC_QUANTIZE_LINEAR", "to uint8", None, "float32", build=_dynamic, of="range and numbers")
