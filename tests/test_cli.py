"""The command line's run and check, on the examples, on the cases, and on models of DxDispatch's."""

from __future__ import annotations

import io
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from anydml.runtime.context import DEVICE_NAMES
from cases import Case, all_cases, operator_of, some_of_each
from cli_models import EXAMPLES, PRODUCT, SAMPLES, _model_of
from harness import assert_same, units_of
from together import Row, together

# run: examples, samples, cases

PRINTED = {
    "cumulative_product": ["Resource 'Out': 2, 8, 64, 192"],
    "cumulative_summation": [
        "Resource 'Table': 2, 1, 3, 5, 3, 8, 7, 3, 9, 6, 2, 4",
        "Resource 'Table': 9, 8, 5, 0, 18, 10, 3, 0, 12, 6, 4, 0",
    ],
    "join": ["Resource 'Out': 1, 2, 3, -1, -2, 5, 6, 7, 8"],
    "quantized_pooling": [
        "Resource 'Pooled': 13, 14, 11, 23, 36, 55, 2, 243",
        "Resource 'Pooled' written to 'pooled_out.npy'",
    ],
}


def test_every_example_is_tested() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.json")) == sorted(PRINTED)


@pytest.mark.parametrize("device", DEVICE_NAMES)
@pytest.mark.parametrize("name", PRINTED)
def test_examples(anydml_: Any, tmp_path: Path, name: str, device: str) -> None:
    for path in (EXAMPLES / f"{name}.json", *EXAMPLES.glob("*.npy")):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    code, out, err = anydml_("run", tmp_path / f"{name}.json", "--device", device)
    assert (code, out.splitlines(), err) == (0, PRINTED[name], "")
    if name == "quantized_pooling":
        assert np.load(tmp_path / "pooled_out.npy").tolist() == [[[[13, 14], [11, 23]], [[36, 55], [2, 243]]]]


needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"DxDispatch's samples are not in {SAMPLES}")

SAMPLES_PRINTED = {
    "dml_element_wise_add": "Resource 'Out': 6, 10, -2\n",
    "dml_element_wise_add_npy": "Resource 'Out': 2, 4, 6, 8, 10, 12\n"
    "Resource 'Out' written to 'dml_element_wise_add_output.npy'\n"
    "Resource 'Out' written to 'dml_element_wise_add_output.dat'\n",
    "dml_element_wise_add1": "Resource 'Out': 6, 10, -0.432332\n",
    "dml_element_wise_clip": "Resource 'A': -2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5\n",
    "dml_element_wise_identity": "Resource 'Out': 12, 14, 16\n",
    "dml_gemm": "Resource 'output': 6, 7, 8, 10, 12, 14, 14, 17, 20\n",
    "dml_gemm_graph": f"Resource 'output': {', '.join(['32'] * 1024)}\n",
    "dml_convolution_2d": "Resource 'output': 6, 8, 12, 14\n",
    "dml_cumulative_product": "Resource 'Out': 2, 8, 64, 192\n",
    # Of 1 step: row b of 4b + 1.. 4b + 4, times column j of 1, 1.4, 1.8 .. in fours
    "dml_rnn": "Resource 'output': 18, 34, 50, 66, 82, 43.6, 85.2, 126.8, 168.4, 210, 69.2, 136.4, 203.6, 270.8, 338, "
    "94.8, 187.6, 280.4, 373.2, 466, 120.4, 238.8, 357.2, 475.6, 594, 146, 290, 434, 578, 722, 171.6, 341.2, 510.8, "
    "680.4, 850, 197.2, 392.4, 587.6, 782.8, 978, 98, 114, 130, 146, 162, 251.6, 293.2, 334.8, 376.4, 418, 405.2, "
    "472.4, 539.6, 606.8, 674, 558.8, 651.6, 744.4, 837.2, 930, 712.4, 830.8, 949.2, 1067.6, 1186, 866, 1010, 1154, "
    "1298, 1442, 1019.6, 1189.2, 1358.8, 1528.4, 1698, 1173.2, 1368.4, 1563.6, 1758.8, 1954\n",
    "dml_reduce": "Resource 'input': 1, 2, 3, 4, 5, 6, 7, 8, 9\nResource 'output': 6, 15, 24\n",
    "dml_fill_value_sequence": "Resource 'Out': 3.2, 4.7, 6.2, 7.7, 9.2\n",
    "dml_slice": "Resource 'output': 7, 9, 12, 14, 17, 19\n",
    "dml_split": "Resource 'Out1': 1, 2\nResource 'Out2': 3, 4\nResource 'Out3': 5, 6\n",
    "dml_join": "Resource 'Out': 1, 2, 3, 100, 115, 5, 6, 7, 8, 9\n",
}


@needs_samples
@pytest.mark.parametrize("device", DEVICE_NAMES)
@pytest.mark.parametrize("name", SAMPLES_PRINTED)
def test_samples_of_dxdispatch(anydml_: Any, tmp_path: Path, name: str, device: str) -> None:
    for path in (SAMPLES / f"{name}.json", *SAMPLES.glob("*_input.*")):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert anydml_("run", tmp_path / f"{name}.json", "-d", device) == (0, SAMPLES_PRINTED[name], "")


@needs_samples
def test_every_sample_of_dxdispatch_runs() -> None:
    assert {path.stem for path in SAMPLES.glob("dml_*.json")} == set(SAMPLES_PRINTED)


@pytest.mark.slow
@together("case", [Row(operator_of(case), case.id, (case,)) for case in some_of_each(all_cases())])
def test_cases(anydml_: Any, tmp_path: Path, case: Case) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    path = _model_of(case, folder)
    code, _, err = anydml_("run", path)
    assert (code, err) == (0, "")
    found = spec_of(case.desc)
    assert found is not None
    for (label, tensor), expected in zip(found.outputs(case.desc), case.outputs, strict=True):
        if tensor is not None:
            written = np.frombuffer((folder / f"{label}.out").read_bytes(), np.uint8)
            assert_same(Layout.of_desc(tensor).view(written), expected, units_of(case.desc))


def test_run_tells_more_on_standard_error(anydml_: Any) -> None:
    code, out, err = anydml_("run", PRODUCT, "--verbose", "-i", 3, "-d", "reference")
    assert code == 0
    assert out.startswith("Dispatch 'product': 3 iterations, ")
    assert out.endswith(" ms median (CPU)\nResource 'Out': 2, 8, 64, 192\n")
    assert err.splitlines()[0] == "Running on 'reference'"
    assert "product: CUMULATIVE_PRODUCT is served by reference" in err
    assert anydml_("run", PRODUCT, "-i", 1)[2] == "Running on 'cpu'\n"


def test_standard_input(anydml_: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("image.npy", np.load(EXAMPLES / "image.npy"))
    data = (EXAMPLES / "quantized_pooling.json").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert anydml_("run", "-")[1].splitlines() == PRINTED["quantized_pooling"]
    assert Path("pooled_out.npy").exists()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[")))
    assert anydml_("run", "-") == (
        1,
        "",
        "standard input: line 1, column 2: found the end of the text, expected JSON (Expecting value) (M2)\n",
    )


def test_comments_may_stand_in_a_model(anydml_: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    text = Path(PRODUCT).read_text().replace("{", "{ // one\n/* two */", 1)
    path.write_text(text)
    assert anydml_("run", path) == (0, "Resource 'Out': 2, 8, 64, 192\n", "")
    code, out, err = anydml_("run", "--help")
    assert (code, err) == (0, "")
    assert "// and /* */ comments and trailing commas may stand in it." in out


def test_what_is_wrong_goes_to_standard_error(anydml_: Any, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    text = (EXAMPLES / "cumulative_product.json").read_text()
    path.write_text(text.replace('"Axis": 3', '"Axis": 4').replace('"resource": "Out"', '"resource": "Zut"'))
    code, out, err = anydml_("run", path)
    assert (code, out) == (1, "")
    assert [re.findall(r"\([A-Z]\d\)", line) for line in err.splitlines()] == [["(M5)"], ["(C3)"]]
    assert all(line.startswith(f"{path}: ") for line in err.splitlines())


@pytest.mark.parametrize("name", ["none.json", "", ".", "no/where.json", "a\0b.json"])
def test_a_model_that_cannot_be_read_is_a_wrong_command_line(
    anydml_: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("run",), ("draw",), ("draw", "--graph"), ("warmup", "-d", "cpu"), ("check",)):
        code, out, err = anydml_(*words, name)
        line = out if words == ("check",) else err
        assert (code, out + err) == (2, line)
        assert re.fullmatch(
            rf"{re.escape(name or 'anydml')}: the model: found '.*' \(.*\), expected a file that can be read \(M1\)\n",
            line,
        )
    code, out, err = anydml_("check", "--json", name)
    assert (code, [each["rule"] for each in json.loads(out)], err) == (2, ["(M1)"], "")


def test_where_nothing_can_be_written_nothing_is_begun(anydml_: Any, tmp_path: Path) -> None:
    for words in (("draw", "JOIN", "-o"), ("bench", "--json"), ("bench", "--plot")):
        for name in ("", tmp_path, tmp_path / "no" / "where.svg"):
            assert anydml_(*words, name)[0] == 2


def test_allow_outside(anydml_: Any, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "image.npy").write_bytes((EXAMPLES / "image.npy").read_bytes())
    text = (EXAMPLES / "quantized_pooling.json").read_text().replace('"image.npy"', '"../image.npy"')
    path = tmp_path / "models" / "pool.json"
    path.write_text(text)
    for word in ("run", "check", "draw"):
        code, out, err = anydml_(word, path)
        assert code == 1
        assert "(M9). --allow-outside" in out + err
        assert anydml_(word, path, "--allow-outside")[0] == 0


def test_memory_limit(anydml_: Any) -> None:
    for word in ("run", "check", "draw"):
        code, out, err = anydml_(word, PRODUCT, "--memory-limit", "31")
        assert code == 1
        assert "found 32 bytes in all, of which resources.X takes 16, expected at most 31 bytes (M13)" in out + err
        assert anydml_(word, PRODUCT, "--memory-limit", "1K")[0] == 0


# check


def test_check(anydml_: Any, tmp_path: Path) -> None:
    assert anydml_("check", PRODUCT) == (0, f"{PRODUCT}: no violations at feature level 6.4\n", "")
    code, out, err = anydml_("check", PRODUCT, "--feature-level", "3.0")
    assert (code, err) == (1, "")
    assert out == (
        f"{PRODUCT}: dispatchables.product: CUMULATIVE_PRODUCT: found no such operator at feature level 3.0, "
        "expected feature level 3.1 or higher (S1)\n"
    )
    (tmp_path / "no.json").write_text("{")
    assert anydml_("check", tmp_path / "no.json")[0] == 1


def test_check_strict(anydml_: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "image.npy", np.load(EXAMPLES / "image.npy"))
    path = tmp_path / "pool.json"
    text = (EXAMPLES / "quantized_pooling.json").read_text()
    for old, new in (
        ('"WindowSize": [2, 2]', '"WindowSize": [1, 2]'),
        ('"Sizes": [1, 2, 2, 2]', '"Sizes": [1, 2, 3, 2]'),
        ('"valueCount": 8', '"valueCount": 12'),
        (', "dimensions": [1, 2, 2, 2]', ""),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text)
    assert anydml_("check", path)[0] == 0
    code, out, _ = anydml_("check", path, "--strict")
    assert code == 1
    assert "OutputTensor.Sizes[2]: found 3, expected 2 or 3 (a strict device takes the first only) (C8)" in out


def test_check_for_machines(anydml_: Any) -> None:
    assert anydml_("check", PRODUCT, "--json")[:2] == (0, "[]\n")
    code, out, _ = anydml_("check", PRODUCT, "--json", "--feature-level", "3.0")
    assert code == 1
    assert json.loads(out) == [
        {
            "place": "dispatchables.product",
            "operator": "CUMULATIVE_PRODUCT",
            "where": "",
            "found": "no such operator",
            "expected": "feature level 3.1 or higher",
            "rule": "(S1)",
            "remedy": "",
            "feature_level": "3.0",
            "hresult": "DXGI_ERROR_UNSUPPORTED",
        }
    ]


@pytest.mark.parametrize("command", ["run", "check", "compare", "draw", "bench"])
def test_onnx_models_where_nothing_reads_them(anydml_: Any, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """What to install is said, whatever is done with a model."""
    for name in [each for each in sys.modules if each.partition(".")[0] == "onnx" or each.startswith("anydml.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setattr("anydml.cli.onnx_models.find_spec", lambda name: None)
    code, out, err = anydml_(command, *["--graph"] * (command == "draw"), "model.onnx")
    assert code == 2
    assert "found no package 'onnx'" in out + err
    assert (out + err).endswith("pip install 'anydml[onnx]'\n")
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'anydml[onnx]'")):
        import_module("anydml.onnx")
