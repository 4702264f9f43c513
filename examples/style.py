"""A photograph in another style, by the network `candy` that PyDirectML's samples have, on any machine.

The weights are in Microsoft's repository: https://github.com/microsoft/DirectML, Python/samples/candy_tensor_data.

    pip install '.[gpu]' pillow       # without [gpu] it runs, too, some minutes long
    python examples/style.py photograph.jpg candy_tensor_data -o styled.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

import pydirectml as dml


class Network:
    """A graph whose weights are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.device = dml.Device(True)
        self.builder = dml.GraphBuilder(self.device)
        self.bindings: list[dml.Binding] = []
        self.folder = folder

    def bind(self, data: np.ndarray, sizes: list[int], strides: list[int] | None = None, owned: bool = True) -> Any:
        flags = dml.TensorFlags.OWNED_BY_DML if owned else dml.TensorFlags.NONE
        tensor = dml.TensorDesc(dml.TensorDataType.FLOAT32, flags, sizes, strides, None, 0)
        expression = dml.input_tensor(self.builder, len(self.bindings), tensor)
        self.bindings.append(dml.Binding(expression, data))
        return expression

    def vector(self, name: str) -> Any:
        """A number for each channel."""
        data = np.load(self.folder / f"{name}.npy")
        return self.bind(data, [1, data.size, 1, 1])

    def spread(self, name: str, like: Any) -> Any:
        """The same, as if it had the sizes of another tensor."""
        data = np.load(self.folder / f"{name}.npy")
        return self.bind(data, like.get_output_desc().sizes, [data.size, 1, 0, 0])

    def convolution(self, x: Any, number: int, **options: Any) -> Any:
        name = f"convolution{number or ''}"
        weights = np.load(self.folder / f"{name}_W.npy")
        return dml.convolution(x, self.bind(weights, list(weights.shape)), self.vector(f"{name}_B"), **options)

    def normalized(self, x: Any, number: int, activation: str = "ACTIVATION_RELU") -> Any:
        name = "InstanceNormalization_{}" + str(number or "")
        scale, bias = (self.vector(name.format(each)) for each in ("scale", "B"))
        fused = dml.FusedActivation(dml.OperatorType[activation])
        return dml.mean_variance_normalization(x, scale, bias, [0, 2, 3], True, 1e-5, fused)


def window(x: Any, sizes: list[int], offset: int) -> Any:
    return dml.slice(x, [0, 0, offset, offset], sizes, [1, 1, 1, 1])


def candy(network: Network, image: np.ndarray) -> Any:
    """A picture of {1, 3, size, size}, its values from 0 to 255, size a multiple of 4."""
    size = image.shape[2]
    x = network.bind(image, list(image.shape), owned=False)
    x = dml.value_scale_2d(x, 1.0, [-103.939, -116.779, -123.68])
    x = dml.padding(x, dml.PaddingMode.REFLECTION, 0.0, [0, 0, 40, 40], [0, 0, 40, 40])
    x = network.normalized(network.convolution(x, 0, start_padding=[4, 4], end_padding=[4, 4]), 0)
    for number in (1, 2):
        halved = network.convolution(x, number, strides=[2, 2], start_padding=[1, 1], end_padding=[1, 1])
        x = network.normalized(halved, number)
    before = x
    for block in range(5):
        first, second = 2 * block + 3, 2 * block + 4
        inner = network.normalized(network.convolution(x, first), first)
        inner = network.normalized(network.convolution(inner, second), second, "ACTIVATION_IDENTITY")
        x = dml.add(inner, window(before, inner.get_output_desc().sizes, 2))
        # The fourth block adds what the third has without its own addition.
        before = inner if block == 2 else x
    for number, channels, wanted in ((13, 32, size // 2), (14, 16, size)):
        sizes = [1, channels, wanted + 2, wanted + 2]
        doubled = network.convolution(
            x, number, direction=dml.ConvolutionDirection.BACKWARD, strides=[2, 2], output_sizes=sizes
        )
        x = network.normalized(window(doubled, [1, channels, wanted, wanted], 1), number)
    tanh = dml.FusedActivation(dml.OperatorType.ACTIVATION_TANH)
    x = network.convolution(x, 15, start_padding=[4, 4], end_padding=[4, 4], fused_activation=tanh)
    x = dml.activation_linear(x, 150, 0)
    return dml.add(dml.multiply(x, network.spread("Mul_B", x)), network.spread("scale_B", x))


def main() -> None:
    parser = argparse.ArgumentParser(description="A photograph in another style.")
    parser.add_argument("photograph", type=Path)
    parser.add_argument("weights", type=Path, help="the folder candy_tensor_data")
    parser.add_argument("-o", "--output", type=Path, default=Path("styled.png"))
    parser.add_argument("--size", type=int, default=720, help="pixels, a multiple of 4 (default: 720)")
    arguments = parser.parse_args()
    photograph = ImageOps.fit(Image.open(arguments.photograph).convert("RGB"), (arguments.size, arguments.size))
    image = np.asarray(photograph, np.float32).transpose(2, 0, 1)[np.newaxis]
    network = Network(arguments.weights)
    output = candy(network, image)
    model = network.builder.build(dml.ExecutionFlags.NONE, [output])
    (result,) = network.device.compute(model, network.bindings, [output])
    styled = np.clip(np.asarray(result)[0], 0, 255).transpose(1, 2, 0).astype(np.uint8)
    Image.fromarray(styled).save(arguments.output)
    print(f"{network.device}: {arguments.output}")


if __name__ == "__main__":
    main()
