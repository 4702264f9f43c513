"""Images in models: what is read, what is written, and what is refused; beside Pillow, on its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import DMLError
from anydml.frontends import dxdispatch as model

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

PIXELS = np.arange(4 * 5 * 4, dtype=np.uint8).reshape(4, 5, 4) * 3


def copying(
    sizes: list[int], source: Any = "in.png", target: str = "out.png", kind: str = "FLOAT32", **changes: Any
) -> str:
    """A model that copies an image."""
    tensor = {"DataType": kind, "Sizes": sizes}
    resource = {"initialValuesDataType": kind, "initialValues": {"sourcePath": source}, "resampleSize": sizes}
    result = {"initialValuesDataType": kind, "initialValues": {"valueCount": int(np.prod(sizes)), "value": 0}}
    desc = {"InputTensor": tensor, "OutputTensor": tensor}
    written = {"type": "writeFile", "resource": "Out", "targetPath": target, "dimensions": sizes}
    put = {name: changes.pop(name) for name in ("dimensions",) if name in changes}
    return json.dumps(
        {
            "resources": {"In": {**resource, **changes}, "Out": result},
            "dispatchables": {"copy": {"type": "DML_OPERATOR_ELEMENT_WISE_IDENTITY", "desc": desc}},
            "commands": [
                {"type": "dispatch", "dispatchable": "copy", "bindings": {"InputTensor": "In", "OutputTensor": "Out"}},
                {**written, **put},
            ],
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Image.fromarray(PIXELS).save(tmp_path / "in.png")
    Image.fromarray(PIXELS[..., :3]).save(tmp_path / "in.jpg", quality=95)
    Image.fromarray(PIXELS[..., 0]).save(tmp_path / "gray.png")
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    cut = (tmp_path / "in.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(cut[:-30])
    return tmp_path


@pytest.mark.parametrize("kind", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("channels", [3, 4])
def test_elements_are_channels_of_parts_of_255(folder: Path, kind: str, channels: int) -> None:
    text = copying([1, channels, 4, 5], target="out.npy", kind=kind)
    model.loads(text, folder).run(write=str)
    expected = (PIXELS[..., :channels].astype(np.float32) / 255).astype(kind.lower()).transpose(2, 0, 1)
    np.testing.assert_array_equal(np.load(folder / "out.npy"), expected[None])


def test_gray_is_read_as_colours(folder: Path) -> None:
    model.loads(copying([1, 3, 4, 5], "gray.png", "out.npy"), folder).run(write=str)
    found = np.load(folder / "out.npy")[0]
    for channel in found:
        np.testing.assert_array_equal(channel, PIXELS[..., 0].astype(np.float32) / 255)


@pytest.mark.parametrize("source", ["in.png", "in.jpg"])
def test_an_image_of_another_size_is_scaled(folder: Path, source: str) -> None:
    model.loads(copying([1, 3, 8, 2], source, "out.npy"), folder).run(write=str)
    scaled = Image.open(folder / source).convert("RGB").resize((2, 8), Image.Resampling.BICUBIC)
    expected = np.asarray(scaled, np.float32).transpose(2, 0, 1) / 255
    np.testing.assert_array_equal(np.load(folder / "out.npy")[0], expected)


@pytest.mark.parametrize("channels", [3, 4])
def test_what_is_read_is_what_is_written(folder: Path, channels: int) -> None:
    assert model.loads(copying([1, channels, 4, 5]), folder).check() == []
    model.loads(copying([1, channels, 4, 5]), folder).run(write=str)
    # The products with 255 of what was divided by it round to no less, but for some of the 256.
    found = np.asarray(Image.open(folder / "out.png")).astype(int)
    expected = (PIXELS[..., :channels].astype(np.float32) / np.float32(255) * np.float32(255)).astype(np.uint8)
    np.testing.assert_array_equal(found, expected)


def test_what_is_written_is_limited_and_truncated(folder: Path) -> None:
    values = [-1.0, 0.0, 0.5, 0.999, 1.0, 7.0, "nan", "inf", "-inf"]
    text = json.loads(copying([1, 1, 3, 3], dimensions=[1, 1, 3, 3]))
    text["resources"]["In"] = {"initialValuesDataType": "FLOAT32", "initialValues": values}
    model.loads(json.dumps(text), folder).run(write=str)
    found = np.asarray(Image.open(folder / "out.png"))
    assert found.ravel().tolist() == [0, 0, 127, 254, 255, 255, 0, 255, 0]


def test_the_first_elements_are_written(folder: Path) -> None:
    model.loads(copying([1, 3, 4, 5], target="out.jpg", dimensions=[1, 1, 4, 5]), folder).run(write=str)
    image = Image.open(folder / "out.jpg")
    assert (image.format, image.mode, image.size) == ("JPEG", "L", (5, 4))


@pytest.mark.parametrize(
    ("text", "where", "found"),
    [
        (copying([1, 2, 4, 5], target="o"), "resources.In.initialValues.sourcePath", "the resampleSize [1, 2, 4, 5]"),
        (copying([2, 3, 4, 5], target="o"), "resources.In.initialValues.sourcePath", "the resampleSize [2, 3, 4, 5]"),
        (copying([1, 3, 4], target="o"), "resources.In.initialValues.sourcePath", "the resampleSize [1, 3, 4]"),
        (copying([1, 3, 4, 5], "bad.png"), "resources.In.initialValues.sourcePath", "bad.png"),
        (copying([1, 3, 4, 5], kind="INT8", target="o"), "resources.In.initialValues.sourcePath", "INT8 for the image"),
        (copying([1, 4, 4, 5], target="out.jpg"), "commands[1].targetPath", "[1, 4, 4, 5] for the image 'out.jpg'"),
        (copying([1, 3, 4, 5], dimensions=[1, 3, 4, 6]), "commands[1].targetPath", "[1, 3, 4, 6] for the image"),
        (copying([1, 3, 4, 5], dimensions=[1, 3, 0, 5]), "commands[1].targetPath", "[1, 3, 0, 5] for the image"),
        (copying([1, 3, 4, 5], dimensions=[20]), "commands[1].targetPath", "[20] for the image"),
        (copying([1, 3, 4, 5], dimensions=[]), "commands[1].targetPath", "no dimensions for an image"),
    ],
)
def test_images_that_do_not_do(folder: Path, text: str, where: str, found: str) -> None:
    violations = model.loads(text, folder).check()
    assert [each.rule for each in violations if where in str(each)] == ["(M15)"]
    assert any(found in str(each) for each in violations)


def test_an_image_has_a_size_to_be_scaled_to(folder: Path) -> None:
    text = json.loads(copying([1, 3, 4, 5]))
    del text["resources"]["In"]["resampleSize"]
    (violation,) = model.loads(json.dumps(text), folder).check()
    assert "found no resampleSize for the image 'in.png', expected [1, channels, height, width]" in str(violation)
    text["resources"]["In"] |= {"resampleSize": [1, 3, 4, 5], "resampleMode": "crop"}
    (violation,) = model.loads(json.dumps(text), folder).check()
    assert 'resources.In.resampleMode: found "crop", expected "scale" (M4)' in str(violation)


def test_an_image_that_is_cut_off_is_named(folder: Path) -> None:
    with pytest.raises(DMLError, match=r"resources.In: found .*cut.png.*, expected a whole JPEG or PNG image"):
        model.loads(copying([1, 3, 4, 5], "cut.png"), folder).run(write=str)


def test_without_pillow_images_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.frontends.dxdispatch.images.find_spec", lambda name: None)
    for text in (copying([1, 3, 4, 5], target="o"), copying([1, 3, 4, 5])):
        violations = model.loads(text, folder).check()
        assert "(M15). Install it: pip install 'anydml[image]'" in str(violations[0])
