"""The command line's ops, devices and draw."""

from __future__ import annotations

import io
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import anydml
from anydml import terminal
from anydml.backends import engines
from anydml.backends.base import Declined
from anydml.backends.native.engine import CpuEngine
from anydml.cli import pages
from anydml.operators import OPERATORS, spec
from anydml.runtime.context import DEVICE_NAMES
from applied import function_of
from cases import all_cases
from cli_models import EXAMPLES, PRODUCT, SUMMATION, _model_of

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


_OTHERS = [engine.name for engine in engines("cpu")[1:]]


def test_ops_are_json_for_machines(anydml_: Any) -> None:
    """Every type of every tensor's table has its engines, but for tensors that the example leaves out."""
    code, out, err = anydml_("ops", "--json")
    assert (code, err) == (0, "")
    listed = json.loads(out)
    assert [each["name"] for each in listed] == list(OPERATORS)
    for each in listed:
        found, op = spec(each["name"]), OPERATORS[each["name"]]
        assert (each["value"], each["family"], each["function"]) == (found.operator_type.value, op.family, op.function)
        assert each["since"] == found.support.introduced.number
        types = {name: [one.name for one in row.data_types] for name, row in found.tensors.items()}
        assert each["data_types"] == types
        given = {name for name in types if getattr(pages.EXAMPLES[each["name"]][0], name) is not None}
        assert {name: [*engines] for name, engines in each["engines"].items()} == {
            name: types[name] for name in types if name in given
        }
        for by_type in each["engines"].values():
            assert all(names and {*names} <= {"native", *_OTHERS} for names in by_type.values())


def test_engines_by_type_are_those_that_serve(anydml_: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_type() -> Any:
        (entry,) = json.loads(anydml_("ops", "--json", "join")[1])
        return entry["engines"]

    everywhere = by_type()
    assert {tuple(names) for table in everywhere.values() for names in table.values()} == {("native",)}
    compile_ = CpuEngine.compile

    def without_halves(self: Any, found: Any, desc: Any, inputs: Any, outputs: Any) -> Any:
        if outputs[0].dtype == "float16":
            return Declined("no halves")
        return compile_(self, found, desc, inputs, outputs)

    monkeypatch.setattr(CpuEngine, "compile", without_halves)
    assert by_type() == {name: {**table, "FLOAT16": ["reference"]} for name, table in everywhere.items()}


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
    family = import_module(f"anydml.operators.specs.{OPERATORS[name].family}")
    first, _, decisions = (family.__doc__ or "").partition("\n\n")
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
        ("EXP", 'found "EXP", no operator of DirectML, .*. Did you mean ELEMENT_WISE_EXP?'),
        ("exqp", "Did you mean ELEMENT_WISE_EXP?"),
        ("cumsum", "Did you mean CUMULATIVE_SUMMATION?"),
        ("sum", "Did you mean REDUCE or CUMULATIVE_SUMMATION?"),
        ("relu", "Did you mean ACTIVATION_RELU, ACTIVATION_LEAKY_RELU, ACTIVATION_THRESHOLDED_RELU, "),
        ("pooling", "Did you mean LP_POOLING, MAX_POOLING, ROI_POOLING, AVERAGE_POOLING, QUANTIZED_LINEAR_"),
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
        "A",
        "C",
        "product",
        "limit",
    ):
        assert text in texts, text
    assert not any(text.endswith((" us", " ms")) for text in texts)
    code, out, err = anydml_("draw", "--graph", "--times", path)
    assert (code, err) == (0, "")
    assert sum(text.endswith((" us", " ms")) for text in ElementTree.fromstring(out).itertext()) == 1


def test_what_is_printed_is_an_output_and_not_fused(anydml_: Any, tmp_path: Path) -> None:
    texts = ElementTree.fromstring(anydml_("draw", "--graph", _chain(tmp_path, printed="M"))[1]).itertext()
    assert {"GEMM", "ACTIVATION_RELU", "M", "C"} <= {*texts}


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
    assert has_time == any(each is not None for _, each in spec(name).inputs(pages.EXAMPLES[name][0]))
