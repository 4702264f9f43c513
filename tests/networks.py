"""The five networks that PyDirectML's samples run, in the words of a library: `Built` is PyDirectML, `Eager` PyTorch.

Their trained weights are in ../shared, which a public clone does not have: made-up ones of the same sizes, which
networks.json lists, stand for those that are missing.
"""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import pydirectml as dml

SHARED = Path(__file__).parents[2] / "shared" / "pydirectml"


class Built:
    """A network of pydirectml. Weights are OWNED_BY_DML, as in the samples."""

    def __init__(self, device: dml.Device, flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE) -> None:
        self.device = device
        self.flags = flags
        self.builder = dml.GraphBuilder(device)
        self.bindings: list[dml.Binding] = []

    def input(
        self, data: np.ndarray, strides: list[int] | None = None, sizes: tuple[int, ...] = (), owned: bool = False
    ) -> Any:
        flags = dml.TensorFlags.OWNED_BY_DML if owned else dml.TensorFlags.NONE
        tensor = dml.TensorDesc(dml.TensorDataType.FLOAT32, flags, list(sizes or data.shape), strides, None, 0)
        expression = dml.input_tensor(self.builder, len(self.bindings), tensor)
        self.bindings.append(dml.Binding(expression, data))
        return expression

    def _vector(self, data: np.ndarray, owned: bool = True) -> Any:
        return self.input(data.reshape(1, -1, 1, 1), owned=owned)

    def convolution(
        self,
        x: Any,
        weights: np.ndarray,
        bias: np.ndarray | None,
        activation: str = "INVALID",
        *,
        pad: int = 0,
        stride: int = 1,
        groups: int = 1,
        output_sizes: list[int] | None = None,
    ) -> Any:
        """With output sizes, backward."""
        direction = dml.ConvolutionDirection.BACKWARD if output_sizes else dml.ConvolutionDirection.FORWARD
        return dml.convolution(
            x,
            self.input(weights, owned=True),
            None if bias is None else self._vector(bias),
            direction=direction,
            strides=[stride, stride],
            start_padding=[pad, pad],
            end_padding=[pad, pad],
            group_count=groups,
            fused_activation=_fused(activation),
            output_sizes=output_sizes or [],
        )

    def batch_normalization(self, x: Any, parameters: list[np.ndarray], epsilon: float, activation: str) -> Any:
        fed = [self._vector(each, owned=False) for each in parameters]
        return dml.batch_normalization(x, *fed, 1, epsilon, _fused(activation))

    def instance_normalization(
        self, x: Any, scale: np.ndarray, bias: np.ndarray, epsilon: float, activation: str
    ) -> Any:
        fed = self._vector(scale, owned=False), self._vector(bias)
        return dml.mean_variance_normalization(x, *fed, [0, 2, 3], 1, epsilon, _fused(activation))

    def with_channels(self, operator: str, x: Any, data: np.ndarray) -> Any:
        """An operator with a number for each channel, broadcast by strides of 0."""
        sizes = tuple(x.get_output_desc().sizes)
        return getattr(dml, operator)(x, self.input(data, [data.size, 1, 0, 0], sizes))

    def max_pooling(self, x: Any, window: int, stride: int) -> Any:
        return dml.max_pooling(x, window_sizes=[window, window], strides=[stride, stride]).values

    def average_pooling(self, x: Any, window: int) -> Any:
        return dml.average_pooling(x, [window, window], [window, window], [0, 0], [0, 0], 0)

    def window(self, x: Any, like: Any, offset: int) -> Any:
        sizes = like if isinstance(like, list) else like.get_output_desc().sizes
        return dml.slice(x, [0, 0, offset, offset], sizes, [1, 1, 1, 1])

    def matrix_product(self, x: Any, weights: np.ndarray) -> Any:
        rows = weights.size // weights.shape[-1]
        flat = dml.reinterpret(x, dml.TensorDataType.FLOAT32, [1, 1, 1, rows], [rows, rows, rows, 1])
        owned = dml.activation_identity(self.input(weights, owned=True))
        columns = weights.shape[-1]
        matrix = [1, 1, rows, columns]
        return dml.gemm(flat, dml.reinterpret(owned, dml.TensorDataType.FLOAT32, matrix, None))

    def values(self, x: Any, scale: float, bias: list[float]) -> Any:
        return dml.value_scale_2d(x, scale, bias)

    def reflect(self, x: Any, pad: int) -> Any:
        return dml.padding(x, dml.PaddingMode.REFLECTION, 0.0, [0, 0, pad, pad], [0, 0, pad, pad])

    def soft_max(self, x: Any) -> Any:
        sizes = x.get_output_desc().sizes
        classes = max(sizes[1:])
        rows = [1, 1, sizes[0], classes], [sizes[0] * classes, sizes[0] * classes, classes, 1]
        return dml.activation_soft_max(dml.reinterpret(x, dml.TensorDataType.FLOAT32, *rows))

    def relu(self, x: Any) -> Any:
        return dml.activation_relu(x)

    def identity(self, x: Any) -> Any:
        return dml.activation_identity(x)

    def linear(self, x: Any, alpha: float) -> Any:
        return dml.activation_linear(x, alpha, 0)

    def add(self, a: Any, b: Any) -> Any:
        return dml.add(a, self.input(b, owned=True) if isinstance(b, np.ndarray) else b)

    def join(self, each: list[Any]) -> Any:
        return dml.join(each, 1)

    def build(self, output: Any) -> dml.Model:
        return self.builder.build(self.flags, [output])

    def computed(self, output: Any) -> np.ndarray:
        (result,) = self.device.compute(self.build(output), self.bindings, [output])
        return np.array(result)


class Owned(Built):
    """With all parameters OWNED_BY_DML, those too that the samples give with each picture."""

    def _vector(self, data: np.ndarray, owned: bool = True) -> Any:
        return super()._vector(data)


def _fused(activation: str) -> dml.FusedActivation:
    return dml.FusedActivation(dml.OperatorType[activation])


class Eager:
    """The same by PyTorch, in double precision unless another type is given."""

    def __init__(self, dtype: Any = None) -> None:
        import torch

        self.torch = torch
        self.functional = torch.nn.functional
        self.dtype = dtype or torch.float64

    def input(self, data: np.ndarray) -> Any:
        return self.torch.tensor(data, dtype=self.dtype)

    def convolution(
        self,
        x: Any,
        weights: np.ndarray,
        bias: np.ndarray | None,
        activation: str = "INVALID",
        *,
        pad: int = 0,
        stride: int = 1,
        groups: int = 1,
        output_sizes: list[int] | None = None,
    ) -> Any:
        w, b = self.input(weights), None if bias is None else self.input(bias)
        if output_sizes:
            least = (x.shape[2] - 1) * stride + weights.shape[2] - 2 * pad
            extra = output_sizes[2] - least
            y = self.functional.conv_transpose2d(x, w, b, stride, pad, output_padding=extra)
        else:
            y = self.functional.conv2d(x, w, b, stride, pad, groups=groups)
        return self._activated(y, activation)

    def _activated(self, y: Any, activation: str) -> Any:
        functions = {"ACTIVATION_RELU": self.torch.relu, "ACTIVATION_TANH": self.torch.tanh}
        return functions[activation](y) if activation in functions else y

    def batch_normalization(self, x: Any, parameters: list[np.ndarray], epsilon: float, activation: str) -> Any:
        mean, variance, scale, bias = map(self.input, parameters)
        return self._activated(self.functional.batch_norm(x, mean, variance, scale, bias, eps=epsilon), activation)

    def instance_normalization(
        self, x: Any, scale: np.ndarray, bias: np.ndarray, epsilon: float, activation: str
    ) -> Any:
        y = self.functional.instance_norm(x, weight=self.input(scale), bias=self.input(bias), eps=epsilon)
        return self._activated(y, activation)

    def with_channels(self, operator: str, x: Any, data: np.ndarray) -> Any:
        return getattr(self.torch, operator)(x, self.input(data.reshape(1, -1, 1, 1)))

    def max_pooling(self, x: Any, window: int, stride: int) -> Any:
        return self.functional.max_pool2d(x, window, stride)

    def average_pooling(self, x: Any, window: int) -> Any:
        return self.functional.avg_pool2d(x, window)

    def window(self, x: Any, like: Any, offset: int) -> Any:
        height, width = (like if isinstance(like, list) else list(like.shape))[2:]
        return x[:, :, offset : offset + height, offset : offset + width]

    def matrix_product(self, x: Any, weights: np.ndarray) -> Any:
        return x.reshape(1, 1, 1, -1) @ self.input(weights.reshape(-1, weights.shape[-1]))

    def values(self, x: Any, scale: float, bias: list[float]) -> Any:
        return x * scale + self.input(np.array(bias).reshape(1, -1, 1, 1))

    def reflect(self, x: Any, pad: int) -> Any:
        return self.functional.pad(x, (pad, pad, pad, pad), mode="reflect")

    def soft_max(self, x: Any) -> Any:
        return self.torch.softmax(x.reshape(1, 1, len(x), -1), -1)

    def relu(self, x: Any) -> Any:
        return self.torch.relu(x)

    def identity(self, x: Any) -> Any:
        return x

    def linear(self, x: Any, alpha: float) -> Any:
        return alpha * x

    def add(self, a: Any, b: Any) -> Any:
        return a + (self.input(b) if isinstance(b, np.ndarray) else b)

    def join(self, each: list[Any]) -> Any:
        return self.torch.cat(each, 1)

    def computed(self, output: Any) -> np.ndarray:
        return output.numpy()


class Prepared(Eager):
    """In single precision, each weight brought to a device once."""

    def __init__(self, device: Any = "cpu") -> None:
        import torch

        super().__init__(torch.float32)
        self._device = device
        self._tensors: dict[int, tuple[np.ndarray, Any]] = {}

    def input(self, data: np.ndarray) -> Any:
        if id(data) not in self._tensors:
            # Kept with it, as another array might be where it was.
            self._tensors[id(data)] = data, super().input(data).to(self._device)
        return self._tensors[id(data)][1]


RELU = "ACTIVATION_RELU"
EPSILON = 9.999999747378752e-06


@cache
def _weights(folder: str) -> Any:
    sizes = json.loads(Path(__file__).with_suffix(".json").read_text())[folder]

    @cache
    def load(name: str) -> np.ndarray:
        path = SHARED / folder / f"{name}.npy"
        if not path.exists():
            return _made_up(name, sizes[name])
        # Their headers end with blanks behind a line's end, which NumPy refuses from 2.5 on.
        data = path.read_bytes()
        end = 10 + int.from_bytes(data[8:10], "little")
        header = ast.literal_eval(data[10:end].decode().strip())
        order = "F" if header["fortran_order"] else "C"
        return np.frombuffer(data, header["descr"], offset=end).reshape(header["shape"], order=order)

    return load


def _made_up(name: str, sizes: list[int]) -> np.ndarray:
    """The same ones in each run: around 1 for what scales, else such that results are as large as what is weighed."""
    rng = np.random.default_rng(crc32(name.encode()))
    if len(sizes) == 1:
        is_scale = any(word in name for word in ("var", "gamma", "scale"))
        return (is_scale + rng.uniform(-0.5, 0.5, sizes)).astype(np.float32)
    return rng.standard_normal(sizes, np.float32) * np.float32(np.sqrt(2 / np.prod(sizes[1:])))


def mnist(library: Any, image: np.ndarray) -> Any:
    """A digit of {1, 1, 28, 28}: 10 classes."""
    load = _weights("mnist-8_tensor_data")
    x = library.input(image)
    for number, bias, window in ((5, 6, 2), (87, 88, 3)):
        weights = load(f"Parameter{number}")
        x = library.convolution(x, weights, np.zeros(len(weights), np.float32), pad=2)
        x = library.relu(library.with_channels("add", x, load(f"Parameter{bias}")))
        x = library.max_pooling(x, window, window)
    y = library.matrix_product(x, load("Parameter193"))
    return library.soft_max(library.add(y, load("Parameter194").reshape(1, 1, 1, 10)))


def squeezenet(library: Any, image: np.ndarray) -> Any:
    """A picture of {1, 3, N, N}, N a multiple of 16 and mostly 224: 1,000 classes."""
    load = _weights("squeezenet_tensor_data")

    def convolution(x: Any, number: int, **options: int) -> Any:
        name = f"squeezenet0_conv{number}"
        return library.convolution(x, load(f"{name}_weight"), load(f"{name}_bias"), RELU, **options)

    x = library.max_pooling(convolution(library.input(image), 0, stride=2), 3, 2)
    for fire in range(8):
        x = convolution(x, 3 * fire + 1)
        x = library.join([convolution(x, 3 * fire + 2), convolution(x, 3 * fire + 3, pad=1)])
        if fire in (1, 3):
            x = library.max_pooling(x, 3, 2)
    x = convolution(library.identity(x), 25)
    return library.soft_max(library.average_pooling(x, image.shape[2] // 16 - 1))


def mobilenet(library: Any, image: np.ndarray) -> Any:
    """MobileNet 2 on a picture of {1, 3, N, N}, N a multiple of 32 and mostly 224: 1,000 classes."""
    load = _weights("mobile_net_data")

    def layer(x: Any, prefix: str, number: int, activation: str = RELU, **options: int) -> Any:
        weights = load(f"mobilenetv20_features_{prefix}conv{number}_weight")
        x = library.convolution(x, weights, np.zeros(len(weights), np.float32), **options)
        words = ("running_mean", "running_var", "gamma", "beta")
        parameters = [load(f"mobilenetv20_features_{prefix}batchnorm{number}_{word}") for word in words]
        return library.batch_normalization(x, parameters, EPSILON, activation)

    x = layer(library.input(image), "", 0, stride=2, pad=1)
    for block in range(17):
        prefix = f"linearbottleneck{block}_"
        stride = 2 if block in (1, 3, 10, 13) else 1
        wide = layer(x, prefix, 0)
        channels = len(load(f"mobilenetv20_features_{prefix}conv1_weight"))
        y = layer(layer(wide, prefix, 1, stride=stride, pad=1, groups=channels), prefix, 2, "INVALID")
        x = library.add(x, y) if block in (2, 4, 5, 7, 8, 9, 11, 12, 14, 15) else y
    x = library.average_pooling(layer(x, "", 1), image.shape[2] // 32)
    return library.soft_max(library.convolution(x, load("mobilenetv20_output_pred_weight"), None))


def super_resolution(library: Any, image: np.ndarray) -> Any:
    """Luminance of {1, 1, H, W}: that of a picture three times as large, nine values for each."""
    load = _weights("super_resolution_10_data")
    x = library.input(image)
    for number, pad in ((1, 2), (2, 1), (3, 1), (4, 1)):
        x = library.convolution(x, load(f"conv{number}.weight"), load(f"conv{number}.bias"), RELU, pad=pad)
    return x


def candy(library: Any, image: np.ndarray) -> Any:
    """A picture of {1, 3, N, N}, N a multiple of 4, in another style."""
    load = _weights("candy_tensor_data")
    size = image.shape[2]

    def normalized(x: Any, number: int, activation: str = RELU) -> Any:
        name = str(number) if number else ""
        scale, bias = load(f"InstanceNormalization_scale{name}"), load(f"InstanceNormalization_B{name}")
        return library.instance_normalization(x, scale, bias, EPSILON, activation)

    def convolution(x: Any, number: int, activation: str = "INVALID", **options: Any) -> Any:
        name = f"convolution{number}" if number else "convolution"
        return library.convolution(x, load(f"{name}_W"), load(f"{name}_B"), activation, **options)

    x = library.values(library.input(image), 1.0, [-103.93900299072266, -116.77899932861328, -123.68000030517578])
    x = normalized(convolution(library.reflect(x, 40), 0, pad=4), 0)
    x = normalized(convolution(x, 1, stride=2, pad=1), 1)
    x = normalized(convolution(x, 2, stride=2, pad=1), 2)
    before = x
    for block in range(5):
        first = normalized(convolution(x, 2 * block + 3), 2 * block + 3)
        inner = normalized(convolution(first, 2 * block + 4), 2 * block + 4, "INVALID")
        x = library.add(inner, library.window(before, inner, 2))
        # The fourth block adds what the third had before its own addition; so the sample has it.
        before = inner if block == 2 else x
    for number, channels, wanted in ((13, 32, size // 2), (14, 16, size)):
        sizes = [1, channels, wanted + 2, wanted + 2]
        x = convolution(x, number, stride=2, output_sizes=sizes)
        x = normalized(library.window(x, [1, channels, wanted, wanted], 1), number)
    x = library.linear(convolution(x, 15, "ACTIVATION_TANH", pad=4), 150)
    return library.with_channels("add", library.with_channels("multiply", x, load("Mul_B")), load("scale_B"))
