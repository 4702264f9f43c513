"""ONNX's own test cases of the operators that DirectML has too."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from anydml import Device
from anydml.operators import OPERATORS
from onnx_lowering import ADAPTERS, NotSaid, computed

pytestmark = pytest.mark.slow

onnx = pytest.importorskip("onnx", reason="onnx is not installed")

EXCLUDED = {
    r"cast_.*(BFLOAT16|FLOAT8|FLOAT4|INT4|INT2).*": "CAST has no such type",
    r"(celu|range|reversesequence)_bfloat16.*|onehot_with_bfloat16_values": "DirectML has no bfloat16",
    r"reduce_.*bool.*": "DirectML has no bool",
    r"reduce_.*empty_set|slice_start_out_of_bounds|split_zero_.*|.*_shape_zero": "DirectML has no empty tensors",
    r"tri[lu]_zero": "DirectML has no empty tensors",
    r"reduce_sum_empty_set_non_reduced_axis_zero": "DirectML has no empty tensors",
    r"identity_(opt|sequence)": "DirectML has nothing but tensors",
    r"cum(prod|sum)_(?!.*int32).*": "running products and sums have no FLOAT64",
    r"(max|min)_float64|mod_mixed_sign_float64|reduce_log_sum_exp_.*": "the operator has no FLOAT64",
    r"mod_float.*_0.*float64|mod_float64.*_0": "the operator has no FLOAT64",
    r"pow_types_.*64.*": "ELEMENT_WISE_POW has no integers of 64 bits",
    r"maxpool_with_argmax_2d_precomputed_strides": "MAX_POOLING2 counts indices by rows, not by columns",
    r"resize_.*cubic.*": "DirectML has no cubic interpolation",
    r"resize_tf_crop_and_resize_extrapolation_value": "DirectML has no value for what lies beyond the ends",
    r"bitshift_.*_int\d.*": "shifts are of types without a sign",
    r"equal_string.*": "DirectML has no strings",
    r"(de)?quantizelinear_(e4m3fn|e5m2|float4e2m1|u?int2).*": "DirectML has no such type",
    r"scatter_elements_with_(reduction_.*|duplicate_indices)|scatternd_(add|multiply|max|min).*": "scatters only set",
    r"attention_.*_bf16": "DirectML has no bfloat16",
    r"attention_.*softcap.*": "no scores are capped",
    r"attention_.*local_window(?!_default).*|attention_bidirectional_window": "no window goes with the queries",
    r"attention_.*qk_matmul.*": "scores are no output",
    r"attention_.*causal_nonpad.*": "queries are behind the past keys, and end nowhere else",
    r"attention_.*_nan_robustness": "a row that is masked whole is NaN",
    r"quantizelinear_(u?int16|blocked_symmetric)": "what is quantised has 8 bits at most, and not 16",
    r"roialign_mode_max": "ROI_ALIGN1 has the maximum of interpolated samples, not of weighted elements",
}
"""Cases that DirectML's operators do not say, by what their whole names match, and why."""

LATER = {}
"""Those that wait for an operator."""

COPIES = (
    *(
        "Clip",
        "Concat",
        "DepthToSpace",
        "Gather",
        "GatherElements",
        "GatherND",
        "Hardmax",
        "Identity",
        "Max",
        "MaxPool",
        "MaxUnpool",
    ),
    *(
        "Min",
        "NonZero",
        "OneHot",
        "Pad",
        "ReverseSequence",
        "Scatter",
        "ScatterElements",
        "ScatterND",
        "Slice",
        "SpaceToDepth",
        "Split",
    ),
    "Where",
)
"""What computes nothing."""

FOUR_DIGITS = (
    "test_averagepool_2d_ceil_last_window_starts_on_pad",
    "test_roialign_aligned_false",
    "test_roialign_aligned_true",
)
"""Cases whose outputs ONNX gives with no more digits."""


def cases() -> list[Any]:
    """Those of one node, but for the ones that come out of ONNX's own expansion of another."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases()
    return [
        pytest.param(case, id=case.name.removeprefix("test_"))
        for case in found
        if case.model.graph.node[0].op_type in ADAPTERS and "_expanded" not in case.name
    ]


def matching(table: Mapping[str, str], case: Any) -> str | None:
    name = case.name.removeprefix("test_")
    return next((value for pattern, value in table.items() if re.fullmatch(pattern, name)), None)


def array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def assert_passes(case: Any) -> None:
    (node,) = case.model.graph.node
    attributes = {each.name: array(onnx.helper.get_attribute_value(each)) for each in node.attribute}
    for inputs, outputs in case.data_sets:
        given = iter(inputs)
        values = [array(next(given)) if name else None for name in node.input]
        ys = computed(Device("cpu"), node.op_type, node.output, attributes, values)
        for y, expected in zip(ys, map(array, outputs), strict=True):
            assert y.dtype == expected.dtype
            # Sizes of 1 are where shapes and descs differ.
            assert [n for n in y.shape if n > 1] == [n for n in expected.shape if n > 1]
            is_coarse = y.dtype == np.float16 or case.name in FOUR_DIGITS
            rtol = 0 if y.dtype.kind != "f" or node.op_type in COPIES else 1e-3 if is_coarse else 1e-5
            np.testing.assert_allclose(y.reshape(expected.shape), expected, rtol=rtol, atol=rtol and 1e-7)


@pytest.mark.parametrize("case", cases())
def test_onnx(case: Any) -> None:
    awaited = matching(LATER, case)
    reason = matching(EXCLUDED, case) or (awaited and f"{awaited} is not there yet")
    if reason is None:
        assert_passes(case)
        return
    assert awaited not in OPERATORS, awaited
    with pytest.raises(NotSaid):
        assert_passes(case)
    pytest.skip(reason)
