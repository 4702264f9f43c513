"""ONNX's own cases: each passes, or is refused for a reason that stands here."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from onnx_cases import cases, cases_of, modules, outcome, stored_cases
from together import Group, Row, run

pytestmark = pytest.mark.slow

EXCLUDED = {
    r"(?!range_bfloat16_type_positive_delta$).*(bf16|bfloat16|BFLOAT16).*": "DirectML has no bfloat16",
    r"cast.*(FLOAT8|FLOAT4|[ _]U?INT2).*": "DirectML has no such type",
    r"(de)?quantizelinear_(e4m3fn|e5m2|float4e2m1|u?int2).*": "DirectML has no such type",
    r"cum(prod|sum)_(?!.*int32).*": "running products and sums have no FLOAT64",
    r"einsum_(sum|inner_prod|batch_matmul)": "products have no FLOAT64",
    r"flexattention_double.*": "products have no FLOAT64",
    r"(max|min)_float64|mod_.*float64.*": "the operator has no FLOAT64",
    r"reduce_log_sum_exp_.*(example|random|empty_set_expanded).*": "reductions and exponentials have no FLOAT64",
    r"attention_local_window_gqa_rank4_mask.*": "a softmax of FLOAT64",
    r"bernoulli.*": "random numbers, for which ONNX names no generator",
    r"training_dropout(?!_zero_ratio).*": "training, which drops at random",
    r"ai_onnx_ml_.*|tfidfvectorizer_.*": "operators of classical machine learning, of tables and strings",
    r".*deform_conv.*": "DirectML has no convolution whose taps lie where the data say",
    r"image_decoder_.*": "pictures are decoded on the host",
    r"nonmaxsuppression_.*": "DirectML has no such operator",
}
"""Cases that DirectML's operators do not say, by what their whole names match, and why."""

EXCLUDED_MODELS = {
    "test_gradient_of_.*": "ONNX's operators of training, which are a preview",
    "test_operator_add(?!mm).*": "sums have no FLOAT64",
}
"""Likewise of ONNX's models."""


def reason_of(table: dict[str, str], name: str) -> str | None:
    return next((reason for pattern, reason in table.items() if re.fullmatch(pattern, name)), None)


@pytest.mark.parametrize("module", [pytest.param(each, id=each.rpartition(".")[2]) for each in modules()])
def test_nodes(module: str, record_property: Any) -> None:
    """A test for each operator of ONNX, which has many cases."""
    group = Group(("case",), [Row(module, each.name, (each,)) for each in cases_of(module)])
    record_property("cases", len(group.rows))
    run(node_passes_or_is_refused, group)


def node_passes_or_is_refused(case: Any) -> None:
    wrong = outcome(case)
    if reason_of(EXCLUDED, case.name.removeprefix("test_")) is None:
        assert wrong is None, wrong
    else:
        assert wrong is not None
        assert wrong.startswith("refused: ")


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name.removeprefix("test_")) for each in stored_cases()])
def test_models(case: Any) -> None:
    wrong = outcome(case)
    if reason_of(EXCLUDED_MODELS, case.name) is None:
        assert wrong is None
    else:
        assert wrong is not None
        assert wrong.startswith("refused: ")


def test_nearly_all_pass() -> None:
    """What others count: of ONNX's cases of nodes so many pass without another runtime's help."""
    passing = [case for case in cases() if reason_of(EXCLUDED, case.name.removeprefix("test_")) is None]
    assert len(passing) >= 0.85 * len(cases())
