"""The command line, on the project's examples, on the cases, and on models of DxDispatch's."""

from __future__ import annotations

import io
import json
import math
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, DML_SIZE_2D, FeatureLevel, cli, terminal
from anydml.cli import pages
from anydml.core.strided_layout import Layout
from anydml.operators import OPERATORS, spec, spec_of
from anydml.operators.schema import OperatorDesc
from anydml.runtime.context import DEVICE_NAMES
from applied import function_of
from cases import Case, all_cases
from harness import assert_same, units_of

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SAMPLES = ROOT.parent / "shared" / "dxdispatch"

PRODUCT = str(EXAMPLES / "cumulative_product.json")
SUMMATION = str(EXAMPLES / "cumulative_summation.json")


@pytest.fixture
def anydml_(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command line: its exit code, and what it prints."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


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


def _tensor(tensor: DML_BUFFER_TENSOR_DESC) -> dict[str, Any]:
    given = {"DataType": tensor.DataType.name, "Sizes": list(tensor.Sizes)}
    return given if tensor.Strides is None else {**given, "Strides": list(tensor.Strides)}


def _json(value: Any) -> Any:
    """A member of a desc as a model has it."""
    if isinstance(value, DML_BUFFER_TENSOR_DESC):
        return _tensor(value)
    if isinstance(value, (DML_SCALE_BIAS, DML_SIZE_2D, OperatorDesc)):
        found = spec_of(value)
        members = {each.name: _json(getattr(value, each.name)) for each in fields(value)}
        return members if found is None else {"Type": found.name, **members}
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.name if isinstance(value, Enum) else value


def _model_of(case: Case, folder: Path) -> Path:
    """A model that does what a case does, with its tensors in files."""
    found = spec_of(case.desc)
    assert found is not None
    resources: dict[str, Any] = {}
    bindings: dict[str, Any] = {}

    def bind(label: str) -> None:
        member, bracket, _ = label.partition("[")
        if bracket:
            bindings.setdefault(member, []).append(label)
        else:
            bindings[member] = label

    for (label, tensor), array in zip(found.inputs(case.desc), case.inputs, strict=True):
        if tensor is None or array is None:
            continue
        memory = np.zeros(tensor.TotalTensorSizeInBytes or 0, np.uint8)
        Layout.of_desc(tensor).view(memory)[...] = array
        (folder / f"{label}.bin").write_bytes(memory.tobytes())
        resources[label] = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": f"{label}.bin"}}
        bind(label)
    outputs = {label: tensor for label, tensor in found.outputs(case.desc) if tensor is not None}
    for label, tensor in outputs.items():
        zeros = {"valueCount": tensor.TotalTensorSizeInBytes, "value": 0}
        resources[label] = {"initialValuesDataType": "UINT8", "initialValues": zeros}
        bind(label)
    desc = {name: _json(getattr(case.desc, name)) for name in found.members if getattr(case.desc, name) is not None}
    model = {
        "resources": resources,
        "dispatchables": {"it": {"type": f"DML_OPERATOR_{found.name}", "desc": desc}},
        "commands": [
            {"type": "dispatch", "dispatchable": "it", "bindings": bindings},
            *({"type": "writeFile", "resource": label, "targetPath": f"{label}.out"} for label in outputs),
        ],
    }
    path = folder / "model.json"
    path.write_text(json.dumps(model))
    return path


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_cases(anydml_: Any, tmp_path: Path, case: Case) -> None:
    path = _model_of(case, tmp_path)
    code, _, err = anydml_("run", path)
    assert (code, err) == (0, "")
    found = spec_of(case.desc)
    assert found is not None
    for (label, tensor), expected in zip(found.outputs(case.desc), case.outputs, strict=True):
        if tensor is not None:
            written = np.frombuffer((tmp_path / f"{label}.out").read_bytes(), np.uint8)
            assert_same(Layout.of_desc(tensor).view(written), expected, units_of(case.desc))


def test_run_tells_more_on_standard_error(anydml_: Any) -> None:
    code, out, err = anydml_("run", PRODUCT, "-v", "-i", 3, "-d", "reference")
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


def test_comments_may_stand_in_a_model(anydml_: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.json"
    text = Path(PRODUCT).read_text().replace("{", "{ // one\n/* two */", 1)
    path.write_text(text)
    assert anydml_("run", path) == (0, "Resource 'Out': 2, 8, 64, 192\n", "")
    with pytest.raises(SystemExit):
        anydml_("run", "--help")
    assert "// and /* */ comments and trailing commas may stand in it." in capsys.readouterr().out


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
            with pytest.raises(SystemExit) as raised:
                anydml_(*words, name)
            assert raised.value.code == 2


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


# ops, devices, draw


def test_a_picture_of_a_model_that_leaves_an_output_out(anydml_: Any, tmp_path: Path) -> None:
    case = next(each for each in all_cases() if each.id == "rnn-single-alone")
    code, out, err = anydml_("draw", _model_of(case, tmp_path))
    assert (code, err) == (0, "")
    assert "OutputSingleTensor" in out
    assert "OutputSequenceTensor" not in out


def test_ops_lists_all_operators(anydml_: Any) -> None:
    code, out, err = anydml_("ops")
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line for line in out.splitlines()[1 : 1 + len(OPERATORS)]}
    assert list(rows) == list(OPERATORS)
    for name, row in rows.items():
        assert f" {spec(name).support.introduced.number} " in row
        assert "reference" in row
        assert row.endswith(".")


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operators_page_has_all_that_its_file_has(anydml_: Any, name: str) -> None:
    code, out, err = anydml_("ops", name)
    assert (code, err) == (0, "")
    found = spec(name)
    lines = out.splitlines()
    for member in found.members:
        assert any(line.startswith(f"  {member} ") for line in lines), member
    docstring = " ".join((found.desc.__doc__ or "").split())
    for line in lines:
        if line.startswith(("  (C", "  (V")):
            assert " ".join(line.split()) in docstring
    assert sum(line.startswith("  (C") for line in lines) == len(re.findall(r"\(C\d", docstring))
    for level, rows in found.support.levels:
        assert any(line.startswith(f"  {level.number} and above  {next(iter(rows))} ") for line in lines)
    for engine in ("cpu", "reference"):
        assert any(line.startswith(f"  {engine} ") for line in lines)
    assert f"{found.desc.__name__}(\n" in out
    assert f"\n{function_of(name)}(" in out
    assert f"{function_of(name)}(" in out.partition(">>> ")[2]


@pytest.mark.parametrize("name", OPERATORS)
def test_a_page_tells_what_is_decided_of_the_family(anydml_: Any, name: str) -> None:
    out = " ".join(anydml_("ops", name)[1].split())
    first, _, decisions = (sys.modules[spec(name).desc.__module__].__doc__ or "").partition("\n\n")
    assert " ".join(decisions.split()) in out
    assert (" Decisions Decision" in out) == ("Decision" in decisions and name not in ("RNN", "LSTM", "GRU"))
    assert " ".join(first.split()) not in out


@pytest.mark.parametrize("name", OPERATORS)
def test_the_desc_on_a_page_is_python(anydml_: Any, name: str) -> None:
    out = anydml_("ops", name)[1]
    code = out.partition("As a desc\n")[2].partition("\n\nSource")[0]
    namespace = {each: getattr(anydml, each) for each in anydml.__all__}
    desc = eval(code, namespace)
    assert desc == pages.EXAMPLES[name][0]


@pytest.mark.parametrize("name", ["JOIN", "join", "Join", "DML_OPERATOR_JOIN", "DML_JOIN_OPERATOR_DESC", "dml_join"])
def test_names_that_people_give(anydml_: Any, name: str) -> None:
    assert anydml_("ops", name)[1].startswith("JOIN: DML_OPERATOR_JOIN (63), since feature level 1.0\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("JION", 'found "JION", no operator of DirectML, expected one of the .* (M11). Did you mean JOIN?'),
        ("cumulative-sumation", "Did you mean CUMULATIVE_SUMMATION?"),
        ("diagonal-matrix", "found DIAGONAL_MATRIX, which this version does not have yet, expected one of the"),
        ("EXP", 'found "EXP", no operator of DirectML, .*. Did you mean ELEMENT_WISE_EXP?'),
        ("exqp", "Did you mean ELEMENT_WISE_EXP?"),
        ("relu", "Did you mean ACTIVATION_RELU, ACTIVATION_LEAKY_RELU, ACTIVATION_THRESHOLDED_RELU or"),
        ("pooling", "Did you mean LP_POOLING, MAX_POOLING, AVERAGE_POOLING, QUANTIZED_LINEAR_AVERAGE_POOLING, "),
        ("dml-operator-softmax", "Did you mean ACTIVATION_SOFTMAX, "),
        ("x", "that `anydml ops` lists (M11)\n"),
        ("", "that `anydml ops` lists (M11)\n"),
    ],
)
def test_names_that_are_none(anydml_: Any, name: str, message: str) -> None:
    for arguments in (["ops", name], ["draw", name]) if name else (["ops", name],):
        code, out, err = anydml_(*arguments)
        assert (code, out) == (1, "")
        first, _, last = message.partition(".*")
        assert first in err
        assert last in err
        assert "(M11)" in err


def test_devices(anydml_: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = anydml_("devices")
    assert code == 0
    listed = [line.split()[:2] for line in out.splitlines()[1:]]
    assert listed[: len(DEVICE_NAMES)] == [[name, "6.4"] for name in DEVICE_NAMES]
    assert {name.partition(":")[0] for name, _ in listed[len(DEVICE_NAMES) :]} == {"cuda", "xpu"}
    monkeypatch.setitem(sys.modules, "anydml._native", None)
    monkeypatch.delattr(anydml, "_native", raising=False)
    out = anydml_("devices")[1]
    assert "by the reference only: the compiled module cannot be loaded" in out


def test_warmup(anydml_: Any, tmp_path: Path) -> None:
    code, out, err = anydml_("warmup", PRODUCT, SUMMATION, "-d", "reference")
    assert (code, err) == (0, "")
    assert [line.split(": ")[:2] for line in out.splitlines()] == [[PRODUCT, "product"], [SUMMATION, "sum"]]
    assert "CUMULATIVE_PRODUCT is served by reference" in out
    code, out, err = anydml_("warmup", SUMMATION, PRODUCT, "-d", "cpu", "--feature-level", "2.1")
    assert (code, len(out.splitlines())) == (1, 1)
    assert err.startswith(f"{PRODUCT}: ")
    code, out, err = anydml_("warmup", PRODUCT, "-d", "cuda:99x")
    assert (code, out) == (1, "")
    assert err.startswith("anydml: Device.name: found str 'cuda:99x'")


@pytest.mark.parametrize("page", [pages.operators_page, pages.devices_page, lambda: pages.operator_page(spec("JOIN"))])
def test_pages_on_a_terminal(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file = Terminal()
    terminal.show(page(), file)
    plain = io.StringIO()
    terminal.show(page(), plain)
    assert "─" in file.getvalue()

    def words(text: str) -> list[str]:
        return re.sub(r"\x1b\[[0-9;]*m|─", "", text).split()

    assert sorted(words(file.getvalue())) == sorted(words(plain.getvalue()))


def test_draw(anydml_: Any, tmp_path: Path) -> None:
    code, out, err = anydml_("draw", "join")
    assert (code, err) == (0, "")
    assert ElementTree.fromstring(out).tag.endswith("svg")
    path = tmp_path / "sum.svg"
    assert anydml_("draw", EXAMPLES / "cumulative_summation.json", "-o", path) == (0, f"Drawn to '{path}'\n", "")
    texts = "".join(ElementTree.parse(path).getroot().itertext())
    assert "18" in texts  # an output
    assert "8" in texts  # an input, though the operator ran in-place


def test_draw_several_dispatches(anydml_: Any, tmp_path: Path) -> None:
    text = (EXAMPLES / "cumulative_product.json").read_text()
    dispatch = next(line for line in text.splitlines() if '"dispatch"' in line)
    path = tmp_path / "two.json"
    path.write_text(text.replace(dispatch, dispatch * 2))
    assert anydml_("draw", path, "-o", tmp_path / "p.svg")[0] == 0
    assert sorted(each.name for each in tmp_path.glob("*.svg")) == ["p-1.svg", "p-2.svg"]
    code, out, err = anydml_("draw", path)
    assert (code, out) == (1, "")
    assert "found a model of 2 dispatches, expected one, for standard output (P3)" in err


def _chain(tmp_path: Path, printed: str = "C", written: str = "C", read: Any = "M", sizes: Any = (1, 1, 2, 2)) -> Path:
    """A model of C = relu(A x B), with the product in M, in two dispatches."""
    matrix, limited = ({"DataType": "FLOAT32", "Sizes": each} for each in ((1, 1, 2, 2), sizes))
    values = {"initialValuesDataType": "FLOAT32", "initialValues": [1, -2, 3, -4]}
    product = {
        "ATensor": matrix,
        "BTensor": {**matrix, "Flags": "DML_TENSOR_FLAG_OWNED_BY_DML"},
        "OutputTensor": matrix,
        "TransA": "DML_MATRIX_TRANSFORM_NONE",
        "TransB": "DML_MATRIX_TRANSFORM_NONE",
        "Alpha": 1,
        "Beta": 0,
    }
    limit = {"InputTensor": limited, "OutputTensor": limited}
    bindings = {
        "product": {"ATensor": "A", "OutputTensor": "M"},
        "limit": {"InputTensor": read, "OutputTensor": written},
    }
    model = {
        "resources": dict.fromkeys("ABMC", values),
        "dispatchables": {
            "product": {"type": "DML_OPERATOR_GEMM", "desc": product, "bindings": {"BTensor": "B"}},
            "limit": {"type": "DML_OPERATOR_ACTIVATION_RELU", "desc": limit},
        },
        "commands": [
            *({"type": "dispatch", "dispatchable": name, "bindings": each} for name, each in bindings.items()),
            {"type": "print", "resource": printed},
        ],
    }
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(model))
    return path


def test_draw_graph(anydml_: Any, tmp_path: Path) -> None:
    path = _chain(tmp_path)
    assert anydml_("run", path)[1] == "Resource 'C': 0, 6, 0, 10\n"
    code, out, err = anydml_("draw", "--graph", path)
    assert (code, err) == (0, "")
    texts = list(ElementTree.fromstring(out).itertext())
    for text in (
        "GEMM",
        "+ ACTIVATION_RELU",
        "FLOAT32 {1, 1, 2, 2}",
        "weights {1, 1, 2, 2}",
        "to outputs[0]",
        "inputs[0]",
    ):
        assert text in texts, text
    assert not any(text.endswith((" us", " ms")) for text in texts)
    code, out, err = anydml_("draw", "--graph", "--times", path)
    assert (code, err) == (0, "")
    assert sum(text.endswith((" us", " ms")) for text in ElementTree.fromstring(out).itertext()) == 1


def test_what_is_printed_is_an_output_and_not_fused(anydml_: Any, tmp_path: Path) -> None:
    texts = ElementTree.fromstring(anydml_("draw", "--graph", _chain(tmp_path, printed="M"))[1]).itertext()
    assert {"GEMM", "ACTIVATION_RELU", "to outputs[0]", "to outputs[1]"} <= {*texts}


def test_a_dispatch_in_place_is_a_node_like_others(anydml_: Any, tmp_path: Path) -> None:
    texts = ElementTree.fromstring(anydml_("draw", "--graph", _chain(tmp_path, written="M"))[1]).itertext()
    assert {"GEMM", "+ ACTIVATION_RELU"} <= {*texts}


def test_a_dispatch_that_reads_parts_of_results_is_no_node(anydml_: Any, tmp_path: Path) -> None:
    path = _chain(tmp_path, read={"name": "M", "elementCount": 3}, sizes=[3])
    assert anydml_("run", path)[0] == 0
    code, out, err = anydml_("draw", "--graph", path)
    assert (code, out) == (1, "")
    assert "limit.InputTensor: found other bytes of 'M' than 'product' wrote" in err
    assert "(P4). Without --graph, each dispatch is drawn for itself" in err


@pytest.mark.parametrize("name", OPERATORS)
def test_draw_graph_of_an_operator(anydml_: Any, name: str) -> None:
    code, out, err = anydml_("draw", "--graph", "--times", name)
    assert (code, err) == (0, "")
    # What depends on nothing is folded into a constant.
    has_time = any(text.endswith((" us", " ms")) for text in ElementTree.fromstring(out).itertext())
    assert has_time != name.startswith("FILL_VALUE")


# The program


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["walk"],
        ["run"],
        ["run", PRODUCT, "-i", "0"],
        ["draw", PRODUCT, "--times"],
        ["run", PRODUCT, "-i", "9" * 5000],
        ["run", PRODUCT, "--memory-limit", "lots"],
        ["check", PRODUCT, "--feature-level", "7.0"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: anydml" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--version"],
        ["--help"],
        *([word, "--help"] for word in ("run", "check", "ops", "devices", "draw", "bench", "warmup")),
    ):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 0
        out = capsys.readouterr().out
        assert out == f"anydml {anydml.__version__}\n" if arguments == ["--version"] else "examples:\n  anydml " in out


@pytest.mark.parametrize("level", FeatureLevel)
def test_feature_levels(anydml_: Any, level: FeatureLevel) -> None:
    code, out, _ = anydml_("check", PRODUCT, "--feature-level", level.number)
    assert code == (0 if level >= FeatureLevel.LEVEL_3_1 else 1)
    assert f"feature level {level.number}" in out


@pytest.mark.parametrize(
    ("problem", "code", "message"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 1, f"{PRODUCT}: there is not enough memory\n"),
        (OSError(28, "No space left on device"), 1, f"{PRODUCT}: [Errno 28] No space left on device\n"),
    ],
)
def test_no_traceback(
    anydml_: Any, monkeypatch: pytest.MonkeyPatch, problem: BaseException, code: int, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr("anydml.frontends.dxdispatch.session.Session.execute", fail)
    assert anydml_("run", PRODUCT) == (code, "", message)


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="there are no such pipes here")
def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-m", "anydml", "ops", "JOIN"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_names_that_the_terminal_can_not_show() -> None:
    text = json.dumps(
        {
            "resources": {"Größe": {"initialValuesDataType": "INT8", "initialValues": [1]}},
            "dispatchables": {},
            "commands": [{"type": "print", "resource": "Größe"}],
        }
    )
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "anydml", "run", "-"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, env=environment, check=True)
    assert done.stdout == b"Resource 'Gr\\xf6\\xdfe': 1\n"


def test_a_progress_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    with cli._Progress(file) as progress:
        assert progress is not None
        progress("sum", 5, 10)
    assert "sum" in file.getvalue()
    with cli._Progress(io.StringIO()) as progress:
        assert progress is None


@pytest.mark.parametrize("output", ["picture.png", "model.json", "picture"])
def test_draw_writes_svg_files_only(anydml_: Any, tmp_path: Path, output: str) -> None:
    path = tmp_path / output
    path.write_text("as it was")
    code, out, err = anydml_("draw", "JOIN", "-o", path)
    assert (code, out) == (1, "")
    assert "(P3)" in err
    assert path.read_text() == "as it was"


def test_numbers_that_json_does_not_have(anydml_: Any, tmp_path: Path) -> None:
    case = next(each for each in all_cases() if each.id == "clip-float32")
    path = _model_of(case, tmp_path)
    text = path.read_text()
    for written, code in (('"inf"', 0), ('"NaN"', 0), ("3", 0), ("1e999", 1), ('"1"', 1), ("true", 1), ("1e39", 1)):
        path.write_text(text.replace('"Max": 2.5', f'"Max": {written}'))
        returned, _, err = anydml_("run", path)
        assert (returned, "Max: found" in err) == (code, bool(code)), err
