"""The command line on ONNX models: run, check, draw, bench and compare."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_samples import chain, model_of, saved, value, with_words

pytest.importorskip("onnx", reason="onnx is not installed")


def expected(x: Any) -> Any:
    shifted = x * np.array([0.5, -1.5, 2, 1], np.float32) + np.array([0.25, 0.5, -0.75, 1], np.float32)
    return 1 / (1 + np.exp(-np.maximum(shifted, 0)))


# run


@pytest.mark.parametrize("suffix", [".npy", ".pb"])
def test_run_takes_arrays_from_files_and_writes_outputs(anydml_: Any, tmp_path: Path, suffix: str) -> None:
    import onnx

    x = np.arange(8, dtype=np.float32).reshape(2, 4) - 4
    if suffix == ".npy":
        np.save(tmp_path / "x.npy", x)
    else:
        onnx.save_tensor(onnx.numpy_helper.from_array(x), tmp_path / "x.pb")
    model = saved(tmp_path, "chain.onnx", chain())
    code, out, err = anydml_("run", model, "--input", f"x={tmp_path / 'x'}{suffix}", "--output-dir", tmp_path / "new")
    assert (code, err) == (0, "")
    assert out == f"Output 'y' written to '{tmp_path / 'new' / 'y.npy'}'\n"
    np.testing.assert_allclose(np.load(tmp_path / "new" / "y.npy"), expected(x), rtol=1e-6)


def test_run_prints_outputs(anydml_: Any, tmp_path: Path) -> None:
    import onnx

    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    np.save(tmp_path / "x.npy", np.array([-1.5, 2, 0.25], np.float32))
    model = saved(tmp_path, "relu.onnx", model_of([node], [value("x", [3])], [value("y", [3])]))
    assert anydml_("run", model, "--input", f"x={tmp_path}/x.npy") == (0, "Output 'y', float32 [3]: 0, 2, 0.25\n", "")


def test_random_inputs_are_the_same_for_a_seed(anydml_: Any, tmp_path: Path) -> None:
    model = saved(tmp_path, "chain.onnx", chain())
    outputs = [anydml_("run", model, "--random", seed, "--dim", "N=3")[1] for seed in (1, 1, 2)]
    assert outputs[0] == outputs[1] != outputs[2]
    assert outputs[0].startswith("Output 'y', float32 [3, 4]: ")


def test_weights_below_level_6_2_whose_graphs_have_no_constants(anydml_: Any, tmp_path: Path) -> None:
    model = saved(tmp_path, "chain.onnx", chain())
    given = ("run", model, "--random", 0, "--dim", "N=3", "--feature-level")
    assert anydml_(*given, "5.0") == anydml_(*given, "6.4")
    code, out, err = anydml_(*given, "2.1")
    assert (code, out) == (1, "")
    assert "node 'scale': Mul: found ELEMENT_WISE_MULTIPLY.a.ndim: found 2 at feature level 2.1" in err


def test_a_long_output_is_cut(anydml_: Any, tmp_path: Path) -> None:
    model = saved(tmp_path, "chain.onnx", chain())
    _, out, _ = anydml_("run", model, "--random", 0, "--dim", "N=100")
    assert out.endswith(", ... (400 in all; --output-dir DIR writes them)\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 1, r"run\.x: found nothing to feed it with.* --random SEED"),
        (["--random", "0"], 1, r"a free dimension, 'N'.*--dim N=SIZE"),
        (["--random", "0", "--dim", "M=1"], 1, r"--dim M: found no free dimension, expected N"),
        (["--random", "0", "--dim", "N"], 2, r"'N' is no NAME=SIZE"),
        (["--input", "x"], 2, r"'x' is no NAME=FILE"),
        (["--input", "z=x.npy"], 1, r"--input z: found .*x\.npy"),
        (["--input", "x=none.npy"], 1, r"--input x: found 'none.npy' \(No such file"),
        (["--random", "x"], 2, r"'x' is no seed"),
    ],
)
def test_what_run_is_not_fed_with_right(
    anydml_: Any, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    found, out, err = anydml_("run", saved(tmp_path, "chain.onnx", chain()), *arguments)
    assert (found, out) == (code, "")
    assert re.search(said, err), err


def test_a_node_that_is_refused_runs_with_fallback(anydml_: Any, tmp_path: Path) -> None:
    model = saved(tmp_path, "words.onnx", with_words())
    code, out, err = anydml_("run", model, "--random", 0)
    assert (code, out) == (1, "")
    assert "node 'count': TfIdfVectorizer: found DirectML has no operator for it" in err
    assert "--fallback" in err
    code, out, err = anydml_("run", model, "--random", 0, "--fallback", "--verbose")
    assert code == 0
    assert out.startswith("Output 'y', float32 [2]: ")
    assert "count (TfIdfVectorizer): not by DirectML" in err


def test_run_is_timed(anydml_: Any, tmp_path: Path) -> None:
    code, out, _ = anydml_("run", saved(tmp_path, "a.onnx", chain()), "--random", 0, "--dim", "N=2", "-i", 5)
    assert code == 0
    assert re.match(r"Dispatch 'a\.onnx': 5 iterations, \d+\.\d{4} ms median \(CPU\)\nOutput 'y'", out)


@pytest.mark.parametrize("command", ["run", "check", "draw", "bench", "compare"])
def test_a_file_that_is_no_model(anydml_: Any, tmp_path: Path, command: str) -> None:
    code, out, err = anydml_(command, tmp_path / "none.onnx")
    assert code == 2
    assert "No such file" in out + err
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    code, out, err = anydml_(command, tmp_path / "bad.onnx")
    assert code == 1
    assert "expected a valid ONNX model (N1)" in out + err


def test_what_is_printed_may_be_read_no_further(tmp_path: Path) -> None:
    model = saved(tmp_path, "chain.onnx", chain())
    program = [sys.executable, "-m", "anydml", "compare", model, "--dim", "N=2", "--with", "reference", "--json"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 1)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(
            (command, option)
            for command in ("run", "check", "draw")
            for option in (["--input", "x=a"], ["--random", 0])
        ),
        ("run", ["--output-dir", "a"]),
        ("bench", ["--dim", "N=1"]),
        ("bench", ["--fallback"]),
    ],
)
def test_options_of_onnx_models_elsewhere(anydml_: Any, command: str, option: list[Any]) -> None:
    model = Path(__file__).parent.parent / "examples" / "cumulative_product.json"
    code, out, err = anydml_(command, *([] if command == "bench" else [model]), *option)
    assert (code, out) == (2, "")
    assert f"argument {option[0]}: is for ONNX models" in err


# check


def test_check_names_each_node_and_the_level_that_takes_it(anydml_: Any, tmp_path: Path) -> None:
    model = saved(tmp_path, "chain.onnx", chain())
    code, out, _ = anydml_("check", model, "--feature-level", "5.0")
    assert (code, out.splitlines()[0]) == (0, f"{model}: no violations at feature level 5.0")
    code, out, _ = anydml_("check", model, "--feature-level", "2.1")
    assert code == 1
    *lines, last = out.splitlines()
    assert [re.search(r"node '(\w+)'", line)[1] for line in lines] == ["scale", "shift", "rectify", "squash"]  # type: ignore[index]
    assert all(line.endswith("Feature level 3.0 takes it") for line in lines)
    assert last == f"{model}: 4 nodes, 4 refused at feature level 2.1"


@pytest.mark.parametrize("level", ["1.0", "2.0", "2.1"])
def test_check_says_which_levels_have_no_graphs(anydml_: Any, tmp_path: Path, level: str) -> None:
    """Their devices take single operators, which does not count as a node that is refused."""
    import onnx

    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    model = saved(tmp_path, "relu.onnx", model_of([node], [value("x", [1, 1, 2, 3])], [value("y", [1, 1, 2, 3])]))
    code, out, _ = anydml_("check", model, "--feature-level", level)
    said = f"the model: found a graph at feature level {level}, expected feature level 2.1 or higher (G8)"
    if level == "2.1":
        said = "no violations at feature level 2.1"
    assert (code, out) == (
        int(level < "2.1"),
        f"{model}: {said}\n{model}: 1 nodes, 0 refused at feature level {level}\n",
    )


def test_check_goes_on_behind_a_node_that_no_level_takes(anydml_: Any, tmp_path: Path) -> None:
    model = saved(tmp_path, "words.onnx", with_words())
    code, out, _ = anydml_("check", model, "--json", "--feature-level", "6.0")
    (found,) = json.loads(out)
    assert code == 1
    assert (found["place"], found["operator"], found["rule"]) == ("node 'count'", "TfIdfVectorizer", "(N2)")
    assert (found["feature_level"], found["remedy"]) == ("6.0", "No feature level takes it")
    _, out, _ = anydml_("check", model, "--feature-level", "6.0")
    assert out.splitlines()[-1].endswith("3 nodes, 1 refused at feature level 6.0")


def test_check_of_a_node_that_nobody_knows(anydml_: Any, tmp_path: Path) -> None:
    import onnx

    nodes = [
        onnx.helper.make_node("Mystery", ["x"], ["a"], name="mystery", domain="elsewhere"),
        onnx.helper.make_node("Relu", ["a"], ["y"]),
    ]
    model = model_of(nodes, [value("x", [2])], [value("y", [2])])
    model.opset_import.append(onnx.helper.make_opsetid("elsewhere", 1))
    code, out, _ = anydml_("check", saved(tmp_path, "mystery.onnx", model))
    assert code == 1
    assert "node 'mystery': elsewhere.Mystery: found an operator that ONNX does not define" in out
    assert "what comes behind them was not looked at" in out


# draw


def test_draw_shows_kernels_and_their_times(anydml_: Any, tmp_path: Path) -> None:
    model = saved(tmp_path, "chain.onnx", chain())
    code, out, _ = anydml_("draw", model, "--times", "--dim", "N=2")
    assert code == 0
    assert out.startswith("<svg ")
    for word in ("ELEMENT_WISE_MULTIPLY", "squash", ">x<", ">y<", r" us<"):
        assert word in out


def test_draw_writes_a_file_for_each_graph(anydml_: Any, tmp_path: Path) -> None:
    model = saved(tmp_path, "words.onnx", with_words())
    code, out, _ = anydml_("draw", model, "--fallback", "-o", tmp_path / "words.svg")
    assert (code, len(out.splitlines())) == (0, 2)
    assert "rectify" in (tmp_path / "words-2.svg").read_text()
    code, _, err = anydml_("draw", model, "--fallback")
    assert code == 1
    assert "a model of 2 graphs" in err


# bench


def test_bench_is_a_table(anydml_: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = saved(tmp_path, "chain.onnx", chain())
    result = tmp_path / "bench.json"
    code, out, _ = anydml_("bench", model, model, "--quick", "--dim", "N=8", "--json", result)
    assert code == 0
    assert re.search(r"Model +Kernels +Load, ms +Run, ms +ONNX Runtime's load +its run +Ratio +Error", out)
    assert "Geometric mean of the ratios: " in out
    first, _ = json.loads(result.read_text())
    assert first["ratio"] == pytest.approx(first["seconds"] / first["peer_seconds"])
    assert first["error"] < 1e-6


def test_bench_of_models_takes_no_options_of_rows(anydml_: Any) -> None:
    code, _, err = anydml_("bench", "a.onnx", "--sample", 3)
    assert code == 2
    assert "argument MODEL: is measured whole" in err


# compare


@pytest.mark.parametrize("other", ["reference", "onnx", "onnxruntime"])
def test_compare_of_a_right_model(anydml_: Any, tmp_path: Path, other: str) -> None:
    if other == "onnxruntime":
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = saved(tmp_path, "chain.onnx", chain())
    code, out, err = anydml_("compare", model, "--with", other, "--dim", "N=5")
    assert (code, err) == (0, "")
    assert "No value diverges." in out
    assert "4 values, cpu beside " in out


def test_compare_names_the_node_with_a_wrong_weight(anydml_: Any, tmp_path: Path) -> None:
    right, wrong = saved(tmp_path, "right.onnx", chain()), saved(tmp_path, "wrong.onnx", chain(wrong=True))
    code, out, _ = anydml_("compare", wrong, "--with", right, "--dim", "N=5")
    assert code == 1
    assert re.search(r"First to diverge: node 'shift' \(Add\), value 'shifted', by .* at \[\d, 3\]", out)
    assert "it is the node itself" in out
    code, out, _ = anydml_("compare", wrong, "--with", right, "--dim", "N=5", "--json")
    found = {each["node"]: each for each in json.loads(out)}
    assert code == 1
    assert [name for name, each in found.items() if each["diverges"]] == ["shift", "rectify", "squash"]
    assert found["scale"]["error"] == 0
    # Those behind it are right by themselves.
    assert [found[name]["own"] > 1e-3 for name in ("shift", "rectify", "squash")] == [True, False, False]
    code, out, _ = anydml_("compare", wrong, "--with", right, "--dim", "N=5", "--tolerance", 10)
    assert (code, "No value diverges." in out) == (0, True)


def test_compare_finds_a_wrong_weight_in_a_network(anydml_: Any, tmp_path: Path) -> None:
    import onnx

    right = Path(__file__).parent.parent / "examples" / "classifier.onnx"
    model = onnx.load(right)
    (tensor,) = [each for each in model.graph.initializer if each.name == "filter2"]
    weights = onnx.numpy_helper.to_array(tensor).copy()
    weights[3, 1, 0, 2] += 1
    tensor.CopyFrom(onnx.numpy_helper.from_array(weights, "filter2"))
    code, out, _ = anydml_("compare", saved(tmp_path, "wrong.onnx", model), "--with", right, "--dim", "batch=2")
    assert code == 1
    assert re.search(r"First to diverge: node 'conv2' \(Conv\), value 'conv2', by .* at \[\d, 3, \d, \d\]", out)
    assert "it is the node itself" in out


def test_compare_of_other_shapes(anydml_: Any, tmp_path: Path) -> None:
    import onnx

    def flipped(names: list[str], sizes: list[int]) -> Any:
        nodes = [onnx.helper.make_node("Add", names, ["s"], name="sum"), onnx.helper.make_node("Relu", ["s"], ["y"])]
        shapes = [value("x", [3]), value("z", [2, 3])]
        return model_of(nodes, shapes, [value("y", sizes)])

    first = saved(tmp_path, "a.onnx", flipped(["x", "z"], [2, 3]))
    second = saved(tmp_path, "b.onnx", flipped(["x", "x"], [3]))
    code, out, _ = anydml_("compare", first, "--with", second)
    assert code == 1
    assert "node 'sum' (Add), value 's', float32 (2, 3) beside float32 (3,)" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--with", "nowhere"], "nowhere"),
        (["--provider", "NoneExecutionProvider"], "'NoneExecutionProvider', expected one that ONNX Runtime has here"),
        (["--tolerance", "-1"], "'-1' is no tolerance"),
    ],
)
def test_compare_with_what_there_is_not(anydml_: Any, tmp_path: Path, arguments: list[str], said: str) -> None:
    if "--provider" in arguments:
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = saved(tmp_path, "chain.onnx", chain())
    code, _, err = anydml_("compare", model, "--dim", "N=5", *arguments)
    assert code in (1, 2)
    assert said in err


@pytest.mark.parametrize("command", ["run", "check", "draw", "bench", "compare"])
def test_help_has_examples_of_onnx(anydml_: Any, command: str) -> None:
    code, out, _ = anydml_(command, "--help")
    assert code == 0
    assert f"anydml {command}" in out[out.index("examples:") :]
    assert "model.onnx" in out[out.index("examples:") :]
