"""Images as initial values and as what is written, as DxDispatch has them; Pillow, loaded on first use, does the work.

The elements are those of a tensor {1, channels, height, width}: red, green, blue and alpha in this order, or gray, from
0 to 1. An image of another size is scaled by bicubic interpolation, with results that no two libraries have to the last
bit; what is written is limited to 0 to 1, NaN to 0, and truncated to 8 bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from ...core.enums import TensorDataType
from ...core.errors import listing
from ...core.strided_layout import Array
from .files import Refused

SUFFIXES = (".jpg", ".png")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's, by the number of channels."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image's pixels, as initial values."""

    path: Path
    dtype: np.dtype[Any]
    channels: int
    height: int
    width: int

    @property
    def nbytes(self) -> int:
        return self.channels * self.height * self.width * self.dtype.itemsize

    def fill(self, memory: Array) -> None:
        from PIL import Image

        size = self.width, self.height
        with _opened(self.path) as image:
            try:
                pixels = image.convert(_MODES[self.channels])
                pixels = pixels if pixels.size == size else pixels.resize(size, Image.Resampling.BICUBIC)
            except Exception as problem:  # a hostile file makes Pillow raise many things; all mean the same here
                raise _no_image(self.path, problem) from None
        scaled = np.asarray(pixels, np.float32) / np.float32(255)
        memory.view(self.dtype).reshape(self.channels, self.height, self.width)[...] = scaled.transpose(2, 0, 1)


def image_file(path: Path, data_type: TensorDataType, size: Sequence[int] | None) -> ImageFile:
    """The initial values that an image is.

    Raises:
        Refused: it is none, or not of what is asked; rule (M15).
    """
    dtype = _dtype_of(path, data_type)
    if size is None or len(size) != 4 or size[0] != 1 or size[1] not in (3, 4) or min(size) < 1:
        found = "no resampleSize" if size is None else f"the resampleSize {list(size)}"
        raise Refused(f"{found} for the image {path.name!r}", "[1, channels, height, width], of 3 or 4 channels")
    _opened(path).close()
    return ImageFile(path, dtype, *size[1:])


def check_image(path: Path, data_type: TensorDataType, count: int, dimensions: Sequence[int] | None) -> None:
    """Looks whether a resource could be written as an image.

    Raises:
        Refused: it could not; rule (M15).
    """
    _dtype_of(path, data_type)
    # A JPEG has no alpha, and 16 bits for a size; a PNG has 31.
    is_png = path.suffix.lower() == ".png"
    channels, most = ((1, 3, 4), 2**31 - 1) if is_png else ((1, 3), 2**16 - 1)
    given = tuple(dimensions or ())
    fits = len(given) == 4 and given[0] == 1 and given[1] in channels and all(1 <= size <= most for size in given)
    if not fits or prod(given) > count:
        found = f"the dimensions {list(given)} for the image {path.name!r}" if given else "no dimensions for an image"
        words = f"{listing(channels)} channels, at most {count} elements and {most} in each dimension"
        raise Refused(found, f"[1, channels, height, width], of {words}")


def write_image(file: IO[bytes], path: Path, elements: Array, dimensions: Sequence[int]) -> None:
    """Writes the first elements of a resource."""
    from PIL import Image

    _, channels, height, width = dimensions
    with np.errstate(invalid="ignore"):
        levels = np.nan_to_num(np.clip(elements[: prod(dimensions)].astype(np.float32), 0, 1), nan=0.0)
    pixels = (levels * np.float32(255)).astype(np.uint8).reshape(channels, height, width)
    image = Image.fromarray(np.ascontiguousarray(pixels[0] if channels == 1 else pixels.transpose(1, 2, 0)))
    image.save(file, "PNG" if path.suffix.lower() == ".png" else "JPEG")


def _dtype_of(path: Path, data_type: TensorDataType) -> np.dtype[Any]:
    if find_spec("PIL") is None:
        found = f"the image {path.name!r}"
        raise Refused(found, "Pillow, which reads and writes images", "Install it: pip install 'anydml[image]'")
    if data_type not in (TensorDataType.FLOAT32, TensorDataType.FLOAT16):
        raise Refused(f"{data_type.name} for the image {path.name!r}", "FLOAT32 or FLOAT16")
    return np.dtype(np.float32 if data_type == TensorDataType.FLOAT32 else np.float16)


def _opened(path: Path) -> Any:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Of more pixels than Pillow thinks right.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return Image.open(path, formats=("JPEG", "PNG"))
    except Exception as problem:  # as above
        raise _no_image(path, problem) from None


def _no_image(path: Path, problem: Exception) -> Refused:
    reason = " ".join(str(problem).split())[:200]
    return Refused(f"{str(path)!r} ({type(problem).__name__}: {reason})", "a whole JPEG or PNG image")
