"""The picture of QUANTIZED_LINEAR_AVERAGE_POOLING."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.strided_layout import Array
from .boxes import TRACED_FILL, WHITE, Box
from .parts import Calculation, Operand, equations, from_to
from .tensors import Look, Tensor, visible
from .text import braces, factor, minus, number, plus_term


class _Window(NamedTuple):
    """The first window of the first channel, with what counts in it."""

    taps: Array
    """The elements of the input that it has, in one dimension."""
    divisor: int
    zero_point: int
    scale: float
    output_zero_point: int
    output_scale: float


def _first(operands: Mapping[str, Operand], label: str) -> Any:
    """A scale's or a zero point's value for the first channel."""
    return operands[label].array.flat[0].item() if label in operands else 0


def _window(desc: Any, operands: Mapping[str, Operand]) -> _Window:
    x = operands["InputTensor"].array[0, 0]
    inside = []
    for start, size, dilation in zip(desc.StartPadding, desc.WindowSize, desc.Dilations, strict=True):
        inside.append(slice(-start % dilation, max(0, (size - 1) * dilation + 1 - start), dilation))
    taps = x[tuple(inside)].ravel()
    return _Window(
        taps=taps,
        divisor=math.prod(desc.WindowSize) if desc.IncludePadding else taps.size,
        zero_point=_first(operands, "InputZeroPointTensor"),
        scale=_first(operands, "InputScaleTensor"),
        output_zero_point=_first(operands, "OutputZeroPointTensor"),
        output_scale=_first(operands, "OutputScaleTensor"),
    )


def picture(desc: Any, inputs: list[Operand], outputs: list[Operand]) -> list[Box]:
    operands = {each.label: each for each in inputs}
    x, (y,) = operands["InputTensor"], outputs
    window = _window(desc, operands)
    real = f"{_less('x', window.zero_point)} · {number(window.scale)}"
    read = _padded_input(desc, x, [*x.caption, *_quantisation(operands, "Input")])
    taps = _window_taps(desc, x, window, ["First window", f"as real numbers {braces(desc.WindowSize)}", real])
    written = Tensor(
        caption=[*y.caption, *_quantisation(operands, "Output")],
        sizes=y.sizes,
        look=lambda i: Look(number(y.array[i]), WHITE if any(i) else TRACED_FILL, traced=not any(i)),
    )
    flow = from_to(from_to(read.box(), ["dequantise"], taps.box()), ["average,", "quantise"], written.box())
    return [flow, equations(_traced_window(desc, window, y), flow.width)]


def _less(value: str, zero_point: int) -> str:
    return f"({value}{plus_term(-zero_point)})" if zero_point else value


def _quantisation(operands: Mapping[str, Operand], side: str) -> list[str]:
    """What a tensor's scale and zero point are."""
    lines = []
    for words, label in (("scale", f"{side}ScaleTensor"), ("zero point", f"{side}ZeroPointTensor")):
        if label in operands:
            values = operands[label].array.ravel()
            texts = ["…" if i is None else number(values[i]) for i in visible(values.size, 4)]
            lines.append(f"{words} {', '.join(texts)}{' by channel' if values.size > 1 else ''}")
    return lines


def _padded_input(desc: Any, x: Operand, caption: list[str]) -> Tensor:
    """The input in its padding, so that the first window starts at index 0 of every spatial dimension."""
    starts = (0, 0, *desc.StartPadding)
    padded = zip(desc.StartPadding, x.sizes[2:], desc.EndPadding, strict=True)
    sizes = (*x.sizes[:2], *map(sum, padded))
    steps = list(zip(desc.WindowSize, desc.Dilations, strict=True))

    def look(index: tuple[int, ...]) -> Look:
        spatial = zip(index[2:], steps, strict=True)
        traced = not any(index[:2]) and all(i % step == 0 and i // step < size for i, (size, step) in spatial)
        place = tuple(i - start for i, start in zip(index, starts, strict=True))
        inside = all(0 <= i < size for i, size in zip(place, x.sizes, strict=True))
        text = number(x.array[place]) if inside else ""
        return Look(text, TRACED_FILL if traced else WHITE, traced=traced, dashed=not inside)

    if max(*desc.StartPadding, *desc.EndPadding):
        caption = [*caption, "padding dashed"]
    return Tensor(caption=caption, sizes=sizes, look=look, origin=tuple(-start for start in starts))


def _window_taps(desc: Any, x: Operand, window: _Window, caption: list[str]) -> Tensor:
    """The taps of the first window, dequantised; padding is the real number 0, or is not counted."""

    def look(index: tuple[int, ...]) -> Look:
        steps = zip(index, desc.Dilations, desc.StartPadding, strict=True)
        place = tuple(i * dilation - start for i, dilation, start in steps)
        inside = all(0 <= i < size for i, size in zip(place, x.sizes[2:], strict=True))
        if not inside:
            return Look("0" if desc.IncludePadding else "", dashed=True)
        return Look(number((int(x.array[(0, 0, *place)]) - window.zero_point) * window.scale), TRACED_FILL)

    return Tensor(caption=caption, sizes=tuple(desc.WindowSize), look=look)


def _traced_window(desc: Any, window: _Window, y: Operand) -> Calculation:
    """From the taps to the output element, in the terms of the specification."""
    result = int(y.array.flat[0])
    total = int(window.taps.astype(np.int64).sum()) - window.zero_point * window.taps.size
    terms = [_less(number(tap), window.zero_point) if window.zero_point else factor(tap) for tap in window.taps[:9]]
    terms += ["…"] if window.taps.size > 9 else []
    taps = "taps, those on padding too" if desc.IncludePadding else "taps, those inside the input"
    spelled = f"{' + '.join(terms)} = " if len(terms) > 1 else ""
    rows = [
        ("S", f"= {spelled}{number(total)}"),
        ("count", f"= {window.divisor} {taps}"),
    ]
    if window.divisor:
        scale, output_scale = number(window.scale), number(window.output_scale)
        quotient = (total * window.scale) / (window.divisor * window.output_scale)
        rounded = round(quotient) + window.output_zero_point
        saturated = f", saturated to {number(result)}" if rounded != result else ""
        plus = plus_term(window.output_zero_point)
        rows.append(("y", f"= round((S · {scale}) / (count · {output_scale})){plus}"))
        rows.append(("", f"= round({_exact(quotient)}){plus} = {number(rounded)}{saturated}"))
    else:
        rows.append(("y", f"= {number(result)}, the zero point, as nothing is counted"))
    return f"y = {y.label}[{', '.join('0' * len(y.sizes))}]; round() takes a half to the even number", rows


def _exact(value: float) -> str:
    """More digits than `number` gives, for what is about to be rounded."""
    return minus(f"{value:.10g}")
