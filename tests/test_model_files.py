"""Models: which files they may read and write."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import DMLError
from anydml.frontends import dxdispatch as model
from model_texts import changed, sourcing, values, writing


def only_violation(text: str, folder: Path, **options: Any) -> str:
    (violation,) = model.loads(text, folder, **options).check()
    return str(violation)


posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


@posix
@pytest.mark.parametrize("make", [sourcing, writing])
def test_paths_stay_in_the_folder(folder: Path, make: Callable[[str], str]) -> None:
    (folder / "link").symlink_to(folder.parent)
    (folder / "loop").symlink_to(folder / "loop")
    outside = str(folder.parent / "secret.npy")
    for path in ("../secret.npy", "x/../../secret.npy", "link/secret.npy", outside, str(folder / "x.npy")):
        message = only_violation(make(path), folder)
        assert f"Path: found {path!r}" in message
        assert "expected a relative path inside the model's folder" in message
        assert "(M9). --allow-outside" in message
        assert model.loads(make(path), folder, allow_outside=True).check() == []
    for path in ("a\0b", ""):
        assert "(M9)" in only_violation(make(path), folder)
    for path in ("loop", "n" * 5000):
        assert "(M" in only_violation(make(path), folder)
    assert np.load(outside).tolist() == [0] * 4


def test_outside_files_work_where_allowed(folder: Path) -> None:
    assert model.loads(sourcing("../secret.npy"), folder, allow_outside=True).run(write=str)["A"].tolist() == [0] * 4
    model.loads(writing("../new.npy"), folder, allow_outside=True).run(write=str)
    assert np.load(folder.parent / "new.npy").tolist() == [2, 8, 64, 192]


@posix
def test_sources_are_regular_files(folder: Path) -> None:
    os.mkfifo(folder / "pipe.npy")
    (folder / "sub").mkdir()
    for path, found in {
        "pipe.npy": "the pipe",
        "sub": "the folder",
        "no.npy": "No such",
    }.items():
        message = only_violation(sourcing(path), folder)
        assert "resources.A.initialValues.sourcePath: found" in message
        assert found in message
        assert "(M10)" in message
    device = model.loads(sourcing("/dev/zero"), folder, allow_outside=True).check()
    assert "the device '/dev/zero'" in str(device[0])


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "ValueError"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'", "ValueError"),
        (b"\x93NUMPY\x01\x00\x40\x00" + b"(" * 64, "Error"),
        (b"\x93NUMPY\x09\x00", "ValueError"),
    ],
)
def test_npy_files_that_are_none(folder: Path, data: bytes, found: str) -> None:
    (folder / "bad.npy").write_bytes(data)
    message = only_violation(sourcing("bad.npy"), folder)
    assert found in message
    assert "expected a whole .npy file, without objects (M10)" in message


def npy(descr: str, shape: str, data: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy("'<f4'", "(4,)", b"short"), "(M10)"),
        (npy("'<f4'", f"({2**62},)", b"x"), "(M10)"),
        (npy("'<f4'", f"({2**40}, {2**40})", b"x"), "(M10)"),
        (npy("'|O'", "(1,)", b"xxxxxxxx"), "(M10)"),
        (npy("'<c8'", "(1,)", bytes(8)), "found elements of complex64, expected float32.*(M10)"),
        (npy("[('a', '<f4')]", "(1,)", bytes(4)), "found elements of [('a', '<f4')].*(M10)"),
        (npy("'<f4'", "(0,)"), "found none, expected at least one initial value (M8)"),
    ],
)
def test_npy_files_that_do_not_do(folder: Path, data: bytes, message: str) -> None:
    (folder / "bad.npy").write_bytes(data)
    assert re.search(re.escape(message).replace(r"\.\*", ".*"), only_violation(sourcing("bad.npy"), folder))


def test_files_have_the_type_that_is_said(folder: Path) -> None:
    text = changed({"resources/A": values("INT32", {"sourcePath": "x.npy"})})
    assert "found elements of FLOAT32, expected INT32, which initialValuesDataType says (M10)" in only_violation(
        text, folder
    )
    (folder / "raw.bin").write_bytes(b"12345")
    text = changed({"resources/A": values("FLOAT32", {"sourcePath": "raw.bin"})})
    assert "found 5 bytes, expected whole elements of FLOAT32 (M10)" in only_violation(text, folder)
    assert "found no initialValuesDataType" in only_violation(sourcing("raw.bin"), folder)
    (folder / "raw.bin").write_bytes(b"")
    assert "found none, expected at least one initial value (M8)" in only_violation(text, folder)


@pytest.mark.parametrize("name", ["x.npy", "x.bin"])
def test_a_file_that_changes_after_the_check_is_refused(folder: Path, name: str) -> None:
    np.zeros(4, np.float32).tofile(folder / "x.bin")
    text = changed({"resources/A": values("FLOAT32", {"sourcePath": name})})
    read = model.loads(text, folder)
    (folder / name).write_bytes(b"short")
    with pytest.raises(DMLError, match=r"resources.A: found .*\(M10\)"):
        read.run()
    (folder / name).unlink()
    with pytest.raises(DMLError, match=r"resources.A: found .*\(M10\)"):
        read.run()


def test_targets_that_do_not_do(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "file").write_bytes(b"")
    for path in ("sub", "file/below.npy", "."):
        assert "commands[1].targetPath: found" in only_violation(writing(path), folder)
        assert "(M14)" in only_violation(writing(path), folder)
    for dimensions in ([2, 3], [4, -1, -1], [0], [1] * 33, [2.0, 2.0]):
        message = only_violation(writing("y.npy", dimensions=dimensions), folder)
        assert "commands[1].dimensions: found" in message
        assert "(M14)" in message or "(M4)" in message
    mixed = json.loads(writing("y.npy"))
    mixed["resources"]["Out"] = {"initialValues": [{"type": "FLOAT32", "value": 0}] * 4}
    assert "has values of several types" in only_violation(json.dumps(mixed), folder)


def test_a_model_does_not_overwrite_itself(folder: Path) -> None:
    path = folder / "model.json"
    path.write_text(writing("model.json"))
    (violation,) = model.load(path).check()
    assert str(violation) == "commands[1].targetPath: found the model itself, expected another file (M9)"


def test_models_that_can_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (folder, folder / "none.json", folder / "a\0b"):
        with pytest.raises(DMLError, match=r"expected a file that can be read \(M1\)"):
            model.load(path)
    (folder / "long.json").write_text("[]" + " " * 20)
    monkeypatch.setattr("anydml.frontends.dxdispatch.reader.MAX_MODEL_BYTES", 20)
    with pytest.raises(DMLError, match=r"found more than 20 bytes.*\(M1\). Put initial values into .npy files"):
        model.load(folder / "long.json")
