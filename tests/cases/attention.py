"""Attention whose weights are exact: queries pick one key, by scores that are far apart, or see all of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import MultiheadAttentionMaskType as MaskType
from anydml import TensorDataType
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan
FAR = 4096.0
"""What decides between two scores: the exponential of its opposite is 0 in every type."""
_ONE = "MULTIHEAD_ATTENTION1"
INTEGERS = ("MaskTensor", "PastSequenceLengthsTensor")


def _case(
    id: str,
    values: Mapping[str, Any],
    heads: int | tuple[int, int] = 1,
    dtype: Any = np.float32,
    strides: Mapping[str, Sequence[int]] | None = None,
    length_type: Any = np.int32,
    **options: Any,
) -> Case:
    """`values` are those of all tensors that are there, by their names without `Tensor`; two `heads`, of queries and of
    keys, are of MULTIHEAD_ATTENTION1."""
    operator = "MULTIHEAD_ATTENTION" if isinstance(heads, int) else _ONE
    found = spec(operator)
    types = {"MaskTensor": np.int32, "PastSequenceLengthsTensor": length_type}
    there = {f"{name}Tensor": np.array(each, types.get(f"{name}Tensor", dtype)) for name, each in values.items()}
    tensors = {
        name: tensor_of(there[name], (strides or {}).get(name)) if name in there else None for name in found.tensors
    }
    counts = (
        {"HeadCount": heads}
        if isinstance(heads, int)
        else dict(zip(("QueryHeadCount", "KeyValueHeadCount"), heads, strict=True))
    )
    members = {"Scale": FAR, "MaskFilterValue": -FAR, "MaskType": MaskType.NONE, **options}
    desc = found.desc(**tensors, **counts, **members)
    inputs, outputs = ([there.get(name) for name, _ in side] for side in (found.inputs(desc), found.outputs(desc)))
    return Case(f"{operator.lower()}-{id}", desc, inputs, outputs)


def _basic() -> list[Case]:
    # The first head of the first query picks the first key, the second head the second one; those of the second query
    # the third and the first.
    picked = {
        "Query": [[[1, 0, 0, 1], [-1, -1, 1, 0]]],
        "Key": [[[1, 0, 1, 0], [0, 1, 0, 1], [-1, -1, 0, 0]]],
        "Value": [[[2, 20], [3, 30], [5, 50]]],
        "Output": [[[2, 30], [5, 20]]],
    }
    mean = {
        "Query": [[[0]], [[0]]],
        "Key": [[[1], [2], [3], [4]], [[5], [6], [7], [8]]],
        "Value": [[[1, 2], [3, 4], [5, 6], [7, 8]], [[0, 0], [0, 0], [0, 4], [4, 0]]],
        "Output": [[[4, 5]], [[1, 1]]],
    }
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        cases += [
            _case(f"{kind}-picked", picked, 2, dtype),
            _case(f"{kind}-mean", mean, 1, dtype),
            # Of the type's largest numbers products are not held by it.
            _case(f"{kind}-one-key", {
                "Query": [[[256, 256]]], "Key": [[[256, 256]]], "Value": [[[3, -7]]], "Output": [[[3, -7]]],
            }, 1, dtype),
        ]  # fmt: skip
    nothing = {"Query": [[[1]]], "Key": [[[1], [3]]], "Value": [[[2], [4]]]}
    return [
        *cases,
        _case("scale-of-0", nothing | {"Output": [[[3]]]}, Scale=0),
        _case("scale-below-0", nothing | {"Output": [[[2]]]}, Scale=-FAR),
        _case("4-dimensions", {name: [each] for name, each in picked.items()}, 2),
        _case("5-dimensions", {name: [[each]] for name, each in mean.items()}),
        _case("mixed-dimensions", {
            name: [[each]] if name == "Key" else each if name == "Value" else [each] for name, each in mean.items()
        }),
        # Of the first query the first head picks the first key, the second one the second; the second query sees both.
        _case("strides", {
            "Query": [[[1, 1, 1, 1], [0, 0, 0, 0]]] * 2,
            "Key": [[[1, 0, 0, 0], [0, 0, 0, 1]]] * 2,
            "Value": [[[2, 2], [6, 6]]] * 2,
            "Bias": [0] * 10,
            "Output": [[[2, 6], [4, 4]]] * 2,
        }, 2, strides={
            "QueryTensor": (0, 9, 2),
            "KeyTensor": (0, 1, 2),
            "ValueTensor": (0, 5, 0),
            "BiasTensor": (0,),
            "OutputTensor": (1, 20, 7),
        }),
        # exp(x - inf) and what has a NaN
        _case("infinite-and-nan", {
            "Query": [[[1], [INF], [NAN], [0]]],
            "Key": [[[1], [-1]]],
            "Value": [[[2, 4], [6, 8]]],
            "Output": [[[2, 4], [NAN, NAN], [NAN, NAN], [4, 6]]],
        }),
        _case("infinite-value", {
            "Query": [[[1]], [[0]]], "Key": [[[1], [-1]]] * 2, "Value": [[[INF, 1, 1], [2, -INF, 3]]] * 2,
            "Output": [[[INF, NAN, 1]], [[INF, -INF, 2]]],
        }),
    ]  # fmt: skip


def _stacked() -> list[Case]:
    # {1, 2, 2, ., 1}: of each head the first query picks the first key, the second one the second.
    query, key, value = [[[1, -1], [-1, 1]]], [[[1, -1], [-1, 1]]], [[[2, 20], [3, 30]]]
    picked = {"Output": [[[2, 20], [3, 30]]]}

    def stacked(*parts: Any) -> Any:
        return np.stack(parts, axis=3)[..., None]

    of_all = {"StackedQueryKeyValue": stacked(query, key, value)}
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        cases += [
            _case(f"{kind}-query-key", picked | {"StackedQueryKey": stacked(query, key), "Value": value}, 2, dtype),
            _case(f"{kind}-key-value", picked | {"Query": query, "StackedKeyValue": stacked(key, value)}, 2, dtype),
            _case(f"{kind}-query-key-value", picked | of_all, 2, dtype),
        ]
    return [
        *cases,
        # Values of another size than queries and keys, which only a ValueTensor has
        _case("query-key-wide-value", {
            "StackedQueryKey": stacked(query, key),
            "Value": [[[2, 20, 4, 40], [3, 30, 5, 50]]],
            "Output": [[[2, 20, 4, 40], [3, 30, 5, 50]]],
        }, 2),
        _case("query-key-value-bias-and-present", of_all | {
            # With the bias of queries all see both, as with that of keys only the first head tells them apart.
            "Bias": [0, 0, 0, 0, 1, 10],
            "Output": [[[3, 30], [4, 40]]],
            "OutputPresentKey": [[[[1], [-1]], [[-1], [1]]]],
            "OutputPresentValue": [[[[3], [4]], [[30], [40]]]],
        }, 2),
        _case("query-key-value-strides", of_all | picked, 2,
            strides={"StackedQueryKeyValueTensor": (99, 1, 2, 4, 50), "OutputTensor": (9, 1, 3)}),
        _case("key-value-grouped", {
            "Query": [[[1, -1, 1, 0]]],
            "StackedKeyValue": stacked([[[1, 1], [-1, -1]]], [[[2, 20], [4, 40]]]),
            "Output": [[[2, 4, 20, 30]]],
        }, (4, 2)),
    ]  # fmt: skip


def _biases() -> list[Case]:
    see_all = {"Query": [[[0], [0]]], "Key": [[[1], [-1], [-1], [1]]], "Value": [[[2], [4], [6], [8]]]}
    relative = {"RelativePositionBias": [[[[1, 0, 0, 0], [0, 0, 0, 1]]]], "Output": [[[2], [8]]]}
    far = {name: FAR * np.array(each) if name != "Output" else each for name, each in relative.items()}
    two = {"Query": [[[0, 0]]] * 2, "Key": [[[0, 0], [0, 0]]] * 2, "Value": [[[2, 20], [4, 40]]] * 2}
    return [
        # Queries that were 0 pick the first and the last key; they do so, too, where these have a bias.
        _case("bias-of-query", see_all | {"Bias": [1, 0, 0], "Output": [[[5], [5]]]}),
        _case("bias-of-key", see_all | {"Bias": [2, 3, 0], "Output": [[[5], [5]]]}),
        _case("bias-of-value", see_all | {"Bias": [0, 0, 7], "Output": [[[12], [12]]]}),
        _case("bias-of-several-dimensions", see_all | {"Bias": [[[0, 0, 7]]], "Output": [[[12], [12]]]}),
        _case("biases-of-two-heads", {
            "Query": [[[0, 0]]], "Key": [[[1, 1], [-1, -1]]], "Value": [[[2, 20], [4, 40]]],
            "Bias": [1, -1, 0, 0, 1, 2], "Output": [[[3, 42]]],
        }, 2),
        _case("biases-of-groups", {
            "Query": [[[0, 0]]], "Key": [[[1], [-1]]], "Value": [[[2], [4]]], "Bias": [1, -1, 0, 1],
            "Output": [[[3, 5]]],
        }, (2, 1)),
        *(
            _case(f"{np.dtype(dtype).name}-relative-position-bias", see_all | far, 1, dtype)
            for dtype in (np.float32, np.float16)
        ),
        # A bias of minus infinity leaves out.
        _case("relative-position-bias-of-minus-infinity", see_all | {
            "RelativePositionBias": [[[[-INF, -INF, 0, -INF], [-INF] * 4]]], "Output": [[[6], [NAN]]],
        }),
        _case("relative-position-bias-of-heads", two | {
            "RelativePositionBias": FAR * np.array([[[[0, 1]], [[1, 0]]]]), "Output": [[[4, 20]]] * 2,
        }, 2),
        _case("relative-position-bias-of-batch", two | {
            "RelativePositionBias": FAR * np.array([[[[[0, 1]]], [[[1, 0]]]]]), "Output": [[[4, 40]], [[2, 20]]],
        }, 2),
        _case("relative-position-bias-strides", two | {
            "RelativePositionBias": FAR * np.array([[[[0, 1]]] * 2, [[[1, 0]]] * 2]), "Output": [[[4, 40]], [[2, 20]]],
        }, 2, strides={"RelativePositionBiasTensor": (2, 0, 9, 5)}),
    ]  # fmt: skip


def _masks() -> list[Case]:
    two = {
        "Query": [[[0, 0], [0, 0]]] * 2,
        "Key": [[[0, 0]] * 4] * 2,
        "Value": [[[2, 20], [4, 40], [6, 60], [8, 80]]] * 2,
    }
    one = {"Query": [[[0], [0]]], "Key": [[[0]] * 4], "Value": [[[2], [4], [6], [8]]]}
    lengths = MaskType.KEY_SEQUENCE_LENGTH
    bounds = MaskType.KEY_SEQUENCE_END_START
    packed = MaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END
    boolean = {"MaskType": MaskType.BOOLEAN}
    rows = {"Mask": [[[[1, 0, 0, 1], [0, -5, 0, 0]]]], "Output": [[[5], [4]]]}
    of_bounds = {"Mask": [[2, 4], [0, 3]], "Output": [[[3, 30]] * 2, [[8, 80]] * 2]}
    return [
        *(
            _case(f"{np.dtype(dtype).name}-boolean", one | rows, 1, dtype, **boolean)
            for dtype in (np.float32, np.float16)
        ),
        # All masked is as none masked; what is added may be more than nothing.
        _case("boolean-rows-masked-whole", one | {"Mask": [[[[0] * 4, [1] * 4]]], "Output": [[[5], [5]]]}, **boolean),
        _case("boolean-chosen", one | {"Mask": [[[[0, 0, 1, 1], [1, 1, 1, 0]]]], "Output": [[[3], [8]]]},
            MaskFilterValue=FAR, **boolean),
        _case("boolean-of-no-effect", one | {"Mask": [[[[0, 0, 1, 1], [1, 1, 1, 0]]]], "Output": [[[5], [5]]]},
            MaskFilterValue=0, **boolean),
        _case("boolean-minus-infinity", one | {"Mask": [[[[0, 0, 1, 1], [0] * 4]]], "Output": [[[7], [NAN]]]},
            MaskFilterValue=-INF, **boolean),
        _case("boolean-of-keys", two | {"Mask": [1, 0, 0, 0], "Output": [[[2, 20]] * 2] * 2}, 2, **boolean),
        _case("boolean-of-heads", two | {"Mask": [[[1, 0, 0, 0]], [[0, 0, 1, 0]]], "Output": [[[2, 60]] * 2] * 2},
            2, **boolean),
        _case("boolean-of-batch", two | {
            "Mask": [[[[[1, 0, 0, 0]]], [[[0, 0, 1, 0]]]]], "Output": [[[2, 20]] * 2, [[6, 60]] * 2],
        }, 2, **boolean),
        _case("boolean-strides", two | {
            "Mask": [[[[1, 0, 0, 0]] * 2] * 2, [[[0, 0, 1, 0]] * 2] * 2], "Output": [[[2, 20]] * 2, [[6, 60]] * 2],
        }, 2, strides={"MaskTensor": (1, 0, 0, 7)}, **boolean),
        _case("key-lengths", two | {"Mask": [[1, 2]], "Output": [[[2, 20]] * 2, [[3, 30]] * 2]}, 2, MaskType=lengths),
        _case("key-lengths-beyond", two | {"Mask": [-3, 9], "Output": [[[5, 50]] * 2] * 2}, 2,
            MaskType=lengths),
        _case("key-ends-and-starts", two | of_bounds, 2, MaskType=bounds),
        _case("key-ends-and-starts-of-several-dimensions", two | of_bounds | {"Mask": [[[[[2, 4], [0, 3]]]]]}, 2,
            MaskType=bounds),
        _case("key-ends-before-starts", two | {"Mask": [[1, 2], [3, 2]], "Output": [[[5, 50]] * 2] * 2}, 2,
            MaskType=bounds),
        _case("key-and-query-lengths", two | {
            "Mask": [1, 2, 0, 2, 4, 0, 4, 8], "Output": [[[2, 20]] * 2, [[3, 30]] * 2],
        }, 2, MaskType=packed),
        _case("mask-and-relative-position-bias", one | {
            "Mask": [3], "RelativePositionBias": FAR * np.array([[[[0, 0, 0, 1]]]]), "Output": [[[5], [5]]],
        }, MaskType=lengths),
        _case("mask-of-groups", two | {
            "Key": [[[0]] * 4] * 2, "Value": [[[2], [4], [6], [8]]] * 2, "Mask": [[[1, 0, 0, 0]], [[0, 0, 1, 0]]],
            "Output": [[[2, 6]] * 2] * 2,
        }, (2, 1), **boolean),
        _case("type-without-mask", one | {"Output": [[[5], [5]]]}, **boolean),
    ]  # fmt: skip


def _past() -> list[Case]:
    one = {"Query": [[[1], [-1]]], "Key": [[[1], [0]]], "Value": [[[2, 3], [4, 5]]]}
    past = {"PastKey": [[[[-1], [0]]]], "PastValue": [[[[6, 7], [8, 9]]]]}
    with_past = one | past | {"Output": [[[2, 3], [6, 7]]]}
    keys, values = [[[[-1], [0], [1], [0]]]], [[[[6, 7], [8, 9], [2, 3], [4, 5]]]]
    present = {"OutputPresentKey": keys, "OutputPresentValue": values}
    # Two heads, of which the second has all twice.
    two = {"Query": [[[1, 1]], [[-1, -1]]], "Key": [[[1, 2]], [[1, 2]]], "Value": [[[2, 4]], [[2, 4]]]}
    of_two = {"PastKey": [[[[-1]], [[-2]]]] * 2, "PastValue": [[[[6]], [[12]]]] * 2}
    return [
        *(_case(f"{np.dtype(dtype).name}-past", with_past | present, 1, dtype) for dtype in (np.float32, np.float16)),
        _case("past-alone", with_past),
        _case("present-keys", with_past | {"OutputPresentKey": keys}),
        _case("present-values", with_past | {"OutputPresentValue": values}),
        _case("present-without-past", one | {
            "Output": [[[2, 3], [4, 5]]], "OutputPresentKey": [[[[1], [0]]]],
            "OutputPresentValue": [[[[2, 3], [4, 5]]]],
        }),
        _case("past-of-two-heads", two | of_two | {
            "Output": [[[2, 4]], [[6, 12]]],
            "OutputPresentKey": [[[[-1], [1]], [[-2], [2]]]] * 2,
            "OutputPresentValue": [[[[6], [2]], [[12], [4]]]] * 2,
        }, 2),
        _case("past-of-5-dimensions", {
            name: [each] if "P" in name else each for name, each in (with_past | present).items()
        }),
        _case("past-strides", two | of_two | {
            "Output": [[[2, 4]], [[6, 12]]],
            "OutputPresentKey": [[[[-1], [1]], [[-2], [2]]]] * 2,
            "OutputPresentValue": [[[[6], [2]], [[12], [4]]]] * 2,
        }, 2, strides={
            "PastKeyTensor": (0, 3, 7, 1), "PastValueTensor": (0, 1, 1, 1),
            "OutputPresentKeyTensor": (1, 2, 9, 1), "OutputPresentValueTensor": (50, 1, 20, 3),
        }),
        # What is past has its bias already.
        _case("past-and-bias", with_past | {
            "Bias": [0, 1, 1, 1],
            "Output": [[[3, 4], [6, 7]]],
            "OutputPresentKey": [[[[-1], [0], [2], [1]]]],
            "OutputPresentValue": [[[[6, 7], [8, 9], [3, 4], [5, 6]]]],
        }),
        _case("past-and-mask", with_past | {"Mask": [2], "Output": [[[5, 6], [6, 7]]]},
            MaskType=MaskType.KEY_SEQUENCE_LENGTH),
        _case("past-and-relative-position-bias", with_past | {
            "RelativePositionBias": 3 * FAR * np.array([[[[0, 1, 0, 0], [0, 0, 0, 1]]]]), "Output": [[[8, 9], [4, 5]]],
        }),
    ]  # fmt: skip


def _groups() -> list[Case]:
    # Query heads 0 and 1 use the first head of keys and values, 2 and 3 the second one.
    grouped = {
        "Query": [[[1, -1, 1, 0]]],
        "Key": [[[1, 1], [-1, -1]]],
        "Value": [[[2, 20], [4, 40]]],
        "Output": [[[2, 4, 20, 30]]],
        "OutputPresentKey": [[[[1], [-1]], [[1], [-1]]]],
        "OutputPresentValue": [[[[2], [4]], [[20], [40]]]],
    }
    # Keys that all look alike; the first sequence has one past key, the second none: what is behind must not matter.
    lengths = {
        "Query": [[[0], [0]]] * 2,
        "Key": [[[1], [2]]] * 2,
        "Value": [[[8], [8]], [[2], [4]]],
        "PastKey": [[[[5], [NAN]]], [[[NAN], [INF]]]],
        "PastValue": [[[[2], [INF]]], [[[NAN], [NAN]]]],
        "PastSequenceLengths": [1, 0],
    }
    outputs = {
        "Output": [[[5], [6]], [[2], [3]]],
        "OutputPresentKey": [[[[5], [1], [2], [0]]], [[[1], [2], [0], [0]]]],
        "OutputPresentValue": [[[[2], [8], [8], [0]]], [[[2], [4], [0], [0]]]],
    }
    shared = {
        "OutputPresentKey": [[[[5], [1], [2]]], [[[1], [2], [0]]]],
        "OutputPresentValue": [[[[2], [8], [8]]], [[[2], [4], [0]]]],
    }
    # A past of 3 has room for the new keys.
    roomy = {"PastKey": [[[[5], [NAN], [1]]], [[[NAN], [INF], [1]]]], "PastValue": [[[[2], [INF], [1]]], [[[NAN]] * 3]]}
    causal = {
        "Query": [[[0], [0], [0]]],
        "Key": [[[0]] * 3],
        "Value": [[[2], [4], [INF]]],
        "PastSequenceLengths": [0],
        "Output": [[[2], [3], [INF]]],
    }
    return [
        *(_case(f"{np.dtype(dtype).name}-grouped", grouped, (4, 2), dtype) for dtype in (np.float32, np.float16)),
        _case("as-many-heads", {
            "Query": [[[1, -1]]], "Key": [[[1, 1], [-1, -1]]], "Value": [[[2, 20], [4, 40]]], "Output": [[[2, 40]]],
        }, (2, 2)),
        _case("grouped-past", grouped | {
            "PastKey": [[[[2]], [[-2]]]], "PastValue": [[[[6]], [[60]]]],
            "Output": [[[6, 4, 20, 40]]],
            "OutputPresentKey": [[[[2], [1], [-1]], [[-2], [1], [-1]]]],
            "OutputPresentValue": [[[[6], [2], [4]], [[60], [20], [40]]]],
        }, (4, 2)),
        *(
            _case(f"{np.dtype(dtype).name}-lengths", lengths | outputs, (1, 1), dtype)
            for dtype in (np.float32, np.float16)
        ),
        _case("lengths-of-float32", lengths | outputs, (1, 1), length_type=np.float32),
        _case("lengths-of-float16", lengths | outputs, (1, 1), np.float16, length_type=np.float16),
        _case("lengths-alone", lengths | {"Output": outputs["Output"]}, (1, 1)),
        _case("lengths-of-several-dimensions", lengths | outputs | {"PastSequenceLengths": [[[1, 0]]]}, (1, 1)),
        _case("lengths-in-place-of-the-past", lengths | outputs | roomy | shared, (1, 1)),
        # Behind a query's own place there is not even a NaN.
        _case("causal", causal, (1, 1)),
        _case("causal-and-mask", causal | {"Mask": [1], "Output": [[[2], [2], [NAN]]]}, (1, 1),
            MaskType=MaskType.KEY_SEQUENCE_LENGTH),
        _case("lengths-and-relative-position-bias", lengths | {
            "RelativePositionBias": FAR * np.array([[[[0, 1, 2, 2], [1, 0, 0, 2]]]]),
            "Output": [[[8], [2]], [[2], [2]]],
        }, (1, 1)),
    ]  # fmt: skip


def _many_rows() -> list[Case]:
    """As many queries that share keys as have lanes of their own in the kernel."""
    units = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    picked = {"Query": [units * 2], "Key": [units], "Value": [[[2, 20], [4, 40], [6, 60]]]}
    picked["Output"] = [picked["Value"][0] * 2]
    six = {"Query": [[[0]] * 6], "Key": [[[0]] * 6], "Value": [[[2], [4], [6], [8], [10], [INF]]]}
    diagonal = np.eye(6)[None, None]
    shared = {
        "Query": [[[1, -1, 0, 1, -1, 0]]], "Key": [[[1], [-1]]], "Value": [[[2], [4]]], "Output": [[[2, 4, 3] * 2]],
    }  # fmt: skip
    return [
        *(_case(f"{np.dtype(dtype).name}-many-rows", picked, 1, dtype) for dtype in (np.float32, np.float16)),
        _case("many-heads-that-share", shared, (6, 1)),
        _case("many-rows-and-relative-position-bias", picked | {
            "RelativePositionBias": 2 * FAR * np.array([[units[::-1] * 2]]),
            "Output": [[[6, 60], [4, 40], [2, 20]] * 2],
        }),
        _case("many-rows-and-bias-of-minus-infinity", six | {
            "Value": [[[2], [4], [6], [8], [10], [12]]],
            "RelativePositionBias": np.where(diagonal * [1, 1, 1, 1, 1, 0], 0, -INF),
            "Output": [[[2], [4], [6], [8], [10], [NAN]]],
        }),
        _case("many-rows-and-mask", six | {
            "Value": [[[2], [4], [6], [8], [10], [12]]], "Mask": diagonal * [1, 1, 1, 1, 1, 0],
            "Output": [[[2], [4], [6], [8], [10], [7]]],
        }, MaskType=MaskType.BOOLEAN),
        _case("many-rows-and-key-lengths", six | {"Mask": [1], "Value": [[[2]] + [[4]] * 5], "Output": [[[2]] * 6]},
            MaskType=MaskType.KEY_SEQUENCE_LENGTH),
        _case("many-rows-causal", six | {"PastSequenceLengths": [0], "Output": [[[2], [3], [4], [5], [6], [INF]]]},
            (1, 1)),
        _case("many-rows-infinite-and-nan", picked | {
            "Query": [[*units, [INF, 0, 0], [NAN, 0, 0], [0, 0, 0]]],
            "Output": [[[2, 20], [4, 40], [6, 60], [NAN, NAN], [NAN, NAN], [4, 40]]],
        }),
    ]  # fmt: skip


CASES = [*_basic(), *_stacked(), *_biases(), *_masks(), *_past(), *_groups(), *_many_rows()]


def _sizes(heads: int = 6) -> dict[str, tuple[int, ...]]:
    """Of a batch of 2 with 3 queries, 5 new keys and 4 past ones, in 6 heads of sizes 2 and 7; or fewer, of keys."""
    return {
        "QueryTensor": (2, 3, 12),
        "KeyTensor": (2, 5, 2 * heads),
        "ValueTensor": (2, 5, 7 * heads),
        "BiasTensor": (12 + 9 * heads,),
        "MaskTensor": (2, 6, 3, 9),
        "RelativePositionBiasTensor": (2, 6, 3, 9),
        "PastKeyTensor": (2, heads, 4, 2),
        "PastValueTensor": (2, heads, 4, 7),
        "OutputTensor": (2, 3, 42),
        "OutputPresentKeyTensor": (2, heads, 9, 2),
        "OutputPresentValueTensor": (2, heads, 9, 7),
    }


def _attention(operator: str, heads: int = 6, **members: Any) -> OperatorDesc:
    """A desc of those sizes."""
    tensors: dict[str, Any] = {
        name: tensor(sizes, "INT32" if name in INTEGERS else "FLOAT32") for name, sizes in _sizes(heads).items()
    }
    counts = {"QueryHeadCount": 6, "KeyValueHeadCount": heads} if operator == _ONE else {"HeadCount": 6}
    return spec(operator).desc(
        **{**tensors, **counts, "Scale": 1, "MaskFilterValue": -1, "MaskType": MaskType.BOOLEAN, **members}
    )


_BOTH = ("MULTIHEAD_ATTENTION", _ONE)
RIGHT = [_attention("MULTIHEAD_ATTENTION"), _attention(_ONE), _attention(_ONE, 2)]
_HALF = "FLOAT16"
_BOUNDS = {"MaskType": MaskType.KEY_SEQUENCE_END_START}
_PACKED = {"MaskType": MaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END}
_STACKED = {
    **dict.fromkeys(("KeyTensor", "ValueTensor", "BiasTensor", "MaskTensor", "PastKeyTensor", "PastValueTensor")),
    **dict.fromkeys(("RelativePositionBiasTensor", "OutputPresentKeyTensor", "OutputPresentValueTensor")),
    "StackedKeyValueTensor": tensor((2, 5, 6, 3, 2)),
    "OutputTensor": tensor((2, 3, 12)),
}
_BROKEN: list[tuple[str, dict[str, Any], str, str, str]] = [
    *(
        ("(C1)", {name: tensor(sizes, _HALF)}, f"{name}.DataType", _HALF, "FLOAT32, that of QueryTensor")
        for name, sizes in _sizes().items()
        if name not in ("QueryTensor", "MaskTensor")
    ),
    ("(C2)", {"QueryTensor": None}, "QueryTensor", "None", "a query here, or in StackedQueryKeyTensor"),
    ("(C2)", {"ValueTensor": None}, "ValueTensor", "None", "a value here, or in StackedKeyValueTensor"),
    ("(C2)", {"QueryTensor": None, "StackedQueryKeyTensor": tensor((2, 3, 6, 2, 2))},
        "StackedQueryKeyTensor", "another key", "one key, which KeyTensor has"),
    ("(C3)", {"PastKeyTensor": None}, "PastKeyTensor", "None", "as PastValueTensor is one"),
    ("(C3)", {"PastValueTensor": None}, "PastValueTensor", "None", "as PastKeyTensor is one"),
    ("(C4)", {"QueryTensor": tensor((2, 3, 13))}, "QueryTensor.Sizes[2]", "13", "a multiple of 6"),
    ("(C4)", {"KeyTensor": tensor((1, 2, 5, 11))}, "KeyTensor.Sizes[3]", "11", "a multiple of 6"),
    ("(C5)", {"KeyTensor": tensor((3, 5, 12))}, "KeyTensor.Sizes[0]", "3", "2, batch_size"),
    ("(C5)", {"KeyTensor": tensor((2, 5, 18))}, "KeyTensor.Sizes[2]", "18", "12, head_count * head_size"),
    ("(C5)", {"ValueTensor": tensor((2, 4, 42))}, "ValueTensor.Sizes[1]", "4", "5, key_length"),
    ("(C5)", {"QueryTensor": tensor((2, 2, 3, 12))}, "QueryTensor.Sizes[0]", "2", "1, before"),
    ("(C5)", {"BiasTensor": tensor((65,))}, "BiasTensor.Sizes[0]", "65", "66, the biases of"),
    ("(C5)", _STACKED, "StackedKeyValueTensor.Sizes[3]", "3", "2, key and value"),
    ("(C5)", {"MaskTensor": tensor((2, 6, 3, 8), "INT32")}, "MaskTensor.Sizes[3]", "8", "9, total_length"),
    ("(C5)", {"MaskTensor": tensor((3,), "INT32"), "MaskType": MaskType.KEY_SEQUENCE_LENGTH},
        "MaskTensor.Sizes[0]", "3", "2, batch_size"),
    ("(C5)", {"MaskTensor": tensor((2,), "INT32"), **_BOUNDS}, "MaskTensor.DimensionCount", "1", "at least 2"),
    ("(C5)", {"MaskTensor": tensor((3, 2), "INT32"), **_BOUNDS}, "MaskTensor.Sizes[0]", "3", "2, an end and a start"),
    ("(C5)", {"MaskTensor": tensor((7,), "INT32"), **_PACKED}, "MaskTensor.Sizes[0]", "7", "8, 3 * batch_size + 2"),
    ("(C5)", {"RelativePositionBiasTensor": tensor((2, 2, 3, 9))},
        "RelativePositionBiasTensor.Sizes[1]", "2", "head_count"),
    ("(C5)", {"PastValueTensor": tensor((2, 6, 3, 7))}, "PastValueTensor.Sizes[2]", "3", "4, past_length"),
    ("(C6)", {"OutputTensor": tensor((2, 3, 12))}, "OutputTensor.Sizes[2]", "12", "42"),
    ("(C6)", {"OutputTensor": tensor((2, 2, 3, 42))}, "OutputTensor.Sizes[0]", "2", "1"),
    ("(C6)", {"OutputPresentKeyTensor": tensor((2, 6, 4, 2))}, "OutputPresentKeyTensor.Sizes[2]", "4", "9"),
    ("(C7)", {"MaskType": MaskType.NONE}, "MaskType", "NONE", "what MaskTensor means"),
]  # fmt: skip
NEGATIVES = [
    *(
        Negative(rule, _attention(operator, **members), where, found, expected)
        for operator in _BOTH
        for rule, members, where, found, expected in _BROKEN
    ),
    Negative("(C1)", _attention(_ONE, PastSequenceLengthsTensor=tensor((2,), _HALF)),
        "PastSequenceLengthsTensor.DataType", _HALF, "FLOAT32, that of QueryTensor"),
    Negative("(C4)", _attention("MULTIHEAD_ATTENTION", HeadCount=0), "HeadCount", "0", "at least 1"),
    Negative("(C4)", _attention(_ONE, KeyValueHeadCount=0), "KeyValueHeadCount", "0", "at least 1"),
    Negative("(C4)", _attention(_ONE, 2, KeyTensor=tensor((2, 5, 5))), "KeyTensor.Sizes[2]", "5", "a multiple of 2"),
    Negative("(C5)", _attention(_ONE, PastSequenceLengthsTensor=tensor((1, 3), "INT32")),
        "PastSequenceLengthsTensor.Sizes[1]", "3", "2, batch_size"),
    Negative("(C8)", _attention(_ONE, 4), "QueryHeadCount", "6", "a multiple of 4, which KeyValueHeadCount is"),
]  # fmt: skip


_ALONE = ("QueryTensor", "KeyTensor", "ValueTensor")
_STACKS = {
    "StackedQueryKeyTensor": (0, 1),
    "StackedKeyValueTensor": (1, 2),
    "StackedQueryKeyValueTensor": (0, 1, 2),
}


def _others(operator: str, name: str, shape: Shape) -> Mapping[str, Shape]:
    """Those that an attention needs, and the one that is looked at, with its mate."""
    real = shape[1] if name not in INTEGERS or shape[1] == TensorDataType.FLOAT16 else TensorDataType.FLOAT32
    held = _STACKS.get(name, ())
    shapes = {each: (3, real) for i, each in enumerate(_ALONE) if i not in held} | {"OutputTensor": (3, real)}
    mates = {"PastKeyTensor": "PastValueTensor", "PastValueTensor": "PastKeyTensor"}
    if name in mates:
        shapes[mates[name]] = (4, real)
    return {**shapes, name: shape}


def _of_ones(operator: str, **tensors: Shape) -> OperatorDesc:
    """One key, or with a past two of them, for one query, in one head."""
    keys = 2 if "PastKeyTensor" in tensors else 1
    last = {
        "BiasTensor": (3,),
        "RelativePositionBiasTensor": (keys,),
        "StackedQueryKeyTensor": (2, 1),
        "StackedKeyValueTensor": (2, 1),
        "StackedQueryKeyValueTensor": (3, 1),
    }
    descs = {}
    for name, (count, data_type) in tensors.items():
        end = last.get(name, ())[-count:] if count else ()
        descs[name] = tensor((1,) * (count - len(end)) + end, data_type.name)
    counts = {"QueryHeadCount": 1, "KeyValueHeadCount": 1} if operator == _ONE else {"HeadCount": 1}
    return spec(operator).desc(**descs, **counts, Scale=1, MaskFilterValue=-1, MaskType=MaskType.KEY_SEQUENCE_LENGTH)


def _table(level: str, lengths: Mapping[str, Any]) -> dict[str, Any]:
    ranks = {name: (3, 5) for name in (*_ALONE, "OutputTensor")}
    ranks |= dict.fromkeys(_STACKS, (5, 5)) | {"BiasTensor": (1, 5)}
    ranks |= dict.fromkeys(("RelativePositionBiasTensor", "PastKeyTensor", "PastValueTensor"), (4, 5))
    ranks |= dict.fromkeys(("OutputPresentKeyTensor", "OutputPresentValueTensor"), (4, 5))
    rows = {name: [(level, *counts, FLOATS)] for name, counts in ranks.items()}
    return rows | {"MaskTensor": [(level, 1, 5, "INT32")], **lengths}


SUPPORT = {
    "MULTIHEAD_ATTENTION": Support(_table("6.1", {}), desc=_of_ones, others=_others),
    # The page has floats alone for the lengths, which are INT32 wherever they are used.
    _ONE: Support(
        _table("6.3", {"PastSequenceLengthsTensor": [("6.3", 1, 5, f"INT32 {FLOATS}")]}), desc=_of_ones, others=_others
    ),
}

KERNELS = dict.fromkeys(_BOTH, r"attention of float(32|16) by blocks of keys")
