"""Windows that slide along the spatial dimensions of a tensor: what pooling and convolution share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .constraints import at_least_1, same
from .schema import Choices, ConstraintFailure


class Window(NamedTuple):
    """A window along one dimension: at place o, its tap k lies at o * stride - start + k * dilation."""

    size: int
    taps: int
    stride: int
    start: int
    end: int
    dilation: int

    @property
    def padded(self) -> int:
        return self.size + self.start + self.end

    @property
    def extent(self) -> int:
        return (self.taps - 1) * self.dilation + 1

    @property
    def places(self) -> tuple[int, ...]:
        """How many places it has: floor((padded - extent) / stride) + 1, or the same rounded up."""
        whole, rest = divmod(self.padded - self.extent, self.stride)
        return (whole + 1, whole + 2) if rest else (whole + 1,)

    def taps_before(self, end: int, place: int) -> range:
        """The taps at a place that lie on the elements from 0 to end - 1."""
        origin = place * self.stride - self.start
        first = min(self.taps, max(0, -(origin // self.dilation)))
        return range(first, max(first, min(self.taps, (end - 1 - origin) // self.dilation + 1)))

    def elements(self, place: int) -> slice:
        """The elements under the window at a place."""
        taps = self.taps_before(self.size, place)
        begin = place * self.stride - self.start + taps.start * self.dilation
        return slice(begin, begin + len(taps) * self.dilation, self.dilation)

    def counted(self, place: int, with_padding: bool) -> int:
        """How many taps lie on elements at a place, or on those and on declared padding."""
        if with_padding:
            return self.taps_before(self.size + self.end, place).stop
        return len(self.taps_before(self.size, place))

    def tap_slices(self, places: int) -> Iterator[tuple[int, slice, slice]]:
        """For each tap that lies on an element at some place: those places, and those elements."""
        for tap in self._taps_on_elements(places):
            shift = tap * self.dilation - self.start
            first = max(0, -(shift // self.stride))
            last = min(places, (self.size - 1 - shift) // self.stride + 1)
            if first < last:
                begin = first * self.stride + shift
                yield tap, slice(first, last), slice(begin, begin + (last - first) * self.stride, self.stride)

    def _taps_on_elements(self, places: int) -> Iterator[int]:
        """In no more steps than there are taps, or, of a filter that strides of 0 make huge, places and such taps."""
        if self.taps <= places:
            yield from range(self.taps)
            return
        end = 0
        for place in reversed(range(places)):
            taps = self.taps_before(self.size, place)
            yield from range(max(end, taps.start), taps.stop)
            end = max(end, taps.stop)


def windows_of(
    sizes: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    dilations: Sequence[int],
) -> list[Window]:
    """A window for each spatial dimension."""
    dimensions = zip(sizes, taps, strides, start_padding, end_padding, dilations, strict=True)
    return [Window(*dimension) for dimension in dimensions]


def windows_over(desc: Any, tensor: str, taps: str) -> list[Window]:
    """A desc's windows over the spatial dimensions of one of its tensors, whose sizes are a member of it; none at all
    where a broken constraint leaves them open."""
    sizes, many = getattr(desc, tensor).Sizes, getattr(desc, taps)
    dilations = getattr(desc, "Dilations", (1,) * desc.DimensionCount)
    is_open = desc.DimensionCount != len(sizes) - 2
    if is_open or min((*many, *desc.Strides, *dilations), default=1) < 1:
        return []
    return windows_of(sizes[2:], many, desc.Strides, desc.StartPadding, desc.EndPadding, dilations)


# Constraints, each with the label that it has at the operator


def wrong_dimension_count(desc: Any, label: str, tensor: str = "InputTensor") -> Iterator[ConstraintFailure]:
    rank = len(getattr(desc, tensor).Sizes)
    if rank > 2 and desc.DimensionCount != rank - 2:
        expected = f"{rank - 2}, 2 less than the DimensionCount of {tensor}"
        yield ConstraintFailure(label, "DimensionCount", str(desc.DimensionCount), expected)


def too_large(label: str, windows: Sequence[Window], where: str, first: int = 0) -> Iterator[ConstraintFailure]:
    """Windows that fit at no place; `where` is the array of their sizes, from index `first` on."""
    for i, window in enumerate(windows):
        if window.extent > window.padded:
            with_dilation = f", with a dilation of {window.dilation} an extent of {window.extent}"
            found = f"{window.taps}{with_dilation if window.dilation > 1 else ''}"
            yield ConstraintFailure(
                label, f"{where}[{first + i}]", found, f"an extent of at most {window.padded}, the padded size"
            )


# Pooling, where the sizes of the window are a member


def pooling_windows(desc: Any) -> list[Window]:
    return windows_over(desc, "InputTensor", "WindowSize")


def pooling_constraints(
    desc: Any, same_type: str, same_rank: str, count: str, zero: str, fit: str
) -> Iterator[ConstraintFailure]:
    """Those of pooling in general, each by its label."""
    yield from same(desc, same_type, "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, same_rank, "DimensionCount", "InputTensor", "OutputTensor")
    yield from wrong_dimension_count(desc, count)
    yield from at_least_1(desc, zero, "Strides", "WindowSize", *(["Dilations"] if hasattr(desc, "Dilations") else []))
    yield from too_large(fit, pooling_windows(desc), "WindowSize")


def pooled_sizes(desc: Any) -> dict[str, Choices]:
    """Of OutputTensor: batch, channels, and the places of the windows."""
    windows = pooling_windows(desc)
    if not windows or any(window.extent > window.padded for window in windows):
        return {}
    kept = ((size,) for size in desc.InputTensor.Sizes[:2])
    return {"OutputTensor": (*kept, *(window.places for window in windows))}
