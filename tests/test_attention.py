"""Attention: against its definition, against PyTorch, against itself in other forms; and what is its alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml
from anydml import Device, MultiheadAttentionMaskType, multihead_attention
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from cases import Case
from cases.attention import CASES
from function_calls import refused
from harness import ENGINE, assert_same
from test_properties import property_test

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

engines = pytest.mark.parametrize("engine", [ENGINE, "cpu"] if ENGINE == "reference" else [ENGINE])


def dyadic(*shape: int, seed: int = 0, most: int = 16, dtype: Any = np.float32) -> np.ndarray:
    """Multiples of 1/8, whose products and sums single precision holds."""
    return (np.random.default_rng(seed).integers(-most, most + 1, shape) / 8).astype(dtype)


def defined(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, added: np.ndarray) -> tuple[list[float], float]:
    """sum(w * v) / sum(w), w = exp(score), by correctly rounded sums, of one query; and the mean of |v| so weighed."""
    scores = [fsum(map(float, q * row)) * scale + float(more) for row, more in zip(k, added, strict=True)]
    weights = [exp(score - max(scores)) for score in scores]
    total = fsum(weights)
    columns = [[float(x) for x in column] for column in v.T]
    values = [fsum(w * x for w, x in zip(weights, column, strict=True)) / total for column in columns]
    spread = max(fsum(w * abs(x) for w, x in zip(weights, column, strict=True)) / total for column in columns)
    return values, spread


@engines
@property_test
@given(data=st.data())
def test_is_as_defined(engine: str, data: st.DataObject) -> None:
    batch, queries, heads, shared = (data.draw(st.integers(1, 3)) for _ in range(4))
    past, keys = data.draw(st.integers(0, 5)), data.draw(st.sampled_from([1, 2, 7, 63, 64, 65, 130]))
    size, value_size = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    dtype = data.draw(st.sampled_from([np.float32, np.float16]))
    is_causal = data.draw(st.booleans())
    scale = data.draw(st.sampled_from([0.5, 1.0, -0.25]))
    total = past + keys
    q = dyadic(batch, queries, shared * heads * size, seed=1, dtype=dtype)
    k, v = (dyadic(batch, keys, heads * each, seed=2, dtype=dtype) for each in (size, value_size))
    options: dict[str, Any] = {}
    before = [np.zeros((batch, heads, 0, each), dtype) for each in (size, value_size)]
    if past:
        before = [dyadic(batch, heads, past, each, seed=3, dtype=dtype) for each in (size, value_size)]
        options |= dict(zip(("past_key", "past_value"), before, strict=True))
    lengths = np.full(batch, past)
    if is_causal:
        lengths = np.random.default_rng(4).integers(0, past + 1, batch)
        options["past_sequence_lengths"] = lengths.astype(np.int32)
    added = np.zeros((batch, shared * heads, queries, total))
    if data.draw(st.booleans()):
        relative = dyadic(batch, shared * heads, queries, total, seed=5, dtype=dtype)
        options["relative_position_bias"] = relative
        added += relative
    if data.draw(st.booleans()):
        mask = np.random.default_rng(6).integers(0, 2, (batch, 1, queries, total)).astype(np.int32)
        options |= {"mask": mask, "mask_filter_value": -3.0}
        added -= 3.0 * (mask == 0)
    y = multihead_attention(
        q, k, v, head_count=shared * heads, key_value_head_count=heads, scale=scale, device=engine, **options
    )
    y = np.asarray(y).reshape(batch, queries, shared * heads, value_size)
    # A chain of 64 for each block, one over blocks, the weights' own rounding, and the result's.
    unit = 2.0**-24
    for b, i, h in np.ndindex(batch, queries, shared * heads):
        ends = min(lengths[b] + i + 1, lengths[b] + keys) if is_causal else total
        new = k[b].reshape(keys, heads, size)[:, h // shared], v[b].reshape(keys, heads, value_size)[:, h // shared]
        every = [
            np.concatenate([old[b, h // shared, : lengths[b]], each])[:ends].astype(np.float64)
            for old, each in zip(before, new, strict=True)
        ]
        query = q[b, i].reshape(-1, size)[h].astype(np.float64)
        expected, spread = defined(query, *every, scale, added[b, h, i, :ends])
        ulps = np.spacing(np.abs(np.array(expected, dtype))).astype(np.float64)
        slack = (70 + total / 64) * unit * spread
        assert (np.abs(y[b, i, h] - np.array(expected)) <= ulps + slack).all()


@engines
@pytest.mark.parametrize(
    ("rows", "keys", "size", "value_size"),
    [(15, 64, 8, 8), (17, 63, 16, 17), (64, 65, 64, 64), (65, 200, 33, 1), (1, 1000, 64, 64), (3, 70, 1023, 1025),
     (2, 66, 2050, 16)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_blocks_of_all_sizes_are_as_pytorch_has_them(
    torch: Any, engine: str, rows: int, keys: int, size: int, value_size: int, dtype: Any
) -> None:
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, n, m)).astype(dtype) for n, m in
               ((rows, 2 * size), (keys, 2 * size), (keys, 2 * value_size)))  # fmt: skip
    y = multihead_attention(q, k, v, head_count=2, device=engine)
    wide = [torch.from_numpy(x.astype(np.float64)).unflatten(2, (2, -1)).transpose(1, 2) for x in (q, k, v)]
    expected = torch.nn.functional.scaled_dot_product_attention(*wide).transpose(1, 2).flatten(2).numpy()
    bound = 2e-6 if dtype == np.float32 else 1e-3
    np.testing.assert_allclose(np.asarray(y), expected, rtol=bound, atol=bound)


def views_of(x: np.ndarray) -> list[np.ndarray]:
    """The same values in other layouts: backward, with gaps, in another order."""
    gaps = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    gaps[..., ::2] = x
    return [np.ascontiguousarray(x[:, ::-1])[:, ::-1], gaps[..., ::2], np.asfortranarray(x)]


@engines
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_layouts_change_no_bit(engine: str, dtype: Any) -> None:
    if ENGINE != "reference":
        pytest.skip("libraries for GPUs choose another order of terms by strides")
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, n, 48)).astype(dtype) for n in (19, 70, 70))
    past = [random.standard_normal((2, 3, 9, 16)).astype(dtype) for _ in range(2)]

    def attend(*tensors: np.ndarray, **options: Any) -> list[np.ndarray]:
        q, k, v, past_key, past_value = tensors
        return multihead_attention(
            q, k, v, past_key=past_key, past_value=past_value, head_count=3, present=True, device=engine, **options
        )

    expected = attend(q, k, v, *past)
    for views in zip(*map(views_of, (q, k, v, *past)), strict=True):
        for y, wanted in zip(attend(*views), expected, strict=True):
            assert_same(y, wanted)
    out = [np.empty((*y.shape[:-1], 3 * y.shape[-1]), dtype)[..., ::-3] for y in expected]
    for y, wanted in zip(attend(q, k, v, *past, out=out), expected, strict=True):
        assert_same(y, wanted)


@engines
def test_rows_that_are_masked_whole_keep_their_scores_apart(engine: str) -> None:
    if ENGINE != "reference":
        pytest.skip("PyTorch adds masks in single precision")
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((1, 7, 8)).astype(np.float32) for _ in range(3))
    mask = np.zeros((1, 7), np.int32)
    y = multihead_attention(q, k, v, mask=mask, head_count=2, device=engine)
    plain = multihead_attention(q, k, v, head_count=2, device=engine)
    np.testing.assert_allclose(np.asarray(y), np.asarray(plain), rtol=1e-6, atol=1e-6)


@engines
def test_keys_and_values_go_on_from_call_to_call(engine: str) -> None:
    """One key at a time, of a cache with room, is as all of them at once."""
    q, k, v = (dyadic(2, 6, 12, seed=seed) for seed in range(3))
    lengths = np.zeros(2, np.int32)
    whole = np.asarray(multihead_attention(q, k, v, head_count=3, past_sequence_lengths=lengths, device=engine))
    keys, values = (np.full((2, 3, 8, 4), np.nan, np.float32) for _ in range(2))
    for i in range(6):
        y, present_keys, present_values = multihead_attention(
            *(x[:, i : i + 1] for x in (q, k, v)),
            head_count=3,
            past_key=keys,
            past_value=values,
            past_sequence_lengths=lengths + i,
            present=True,
            device=engine,
        )
        np.testing.assert_allclose(np.asarray(y)[:, 0], whole[:, i], rtol=1e-5, atol=1e-6)
        keys, values = (np.asarray(each)[:, :, :8] for each in (present_keys, present_values))
        assert (keys[:, :, i + 1 :] == 0).all()
        assert (values[:, :, i + 1 :] == 0).all()
    assert_same(keys[:, :, :6], k.reshape(2, 6, 3, 4).swapaxes(1, 2))


def operands(torch: Any, case: Case, tensors: Sequence[Any], values: Sequence[np.ndarray | None]) -> list[Any]:
    """Tensors of PyTorch as the desc has them, with these values, or with NaN."""
    found = []
    for (_, tensor), value in zip(tensors, values, strict=True):
        if tensor is None:
            found.append(None)
            continue
        memory = np.zeros(tensor.TotalTensorSizeInBytes, np.uint8)
        layout = Layout.of_desc(tensor)
        layout.view(memory, 0)[...] = np.nan if value is None else value
        strides = [stride // layout.dtype.itemsize for stride in layout.strides]
        found.append(torch.from_numpy(memory.view(layout.dtype)).as_strided(layout.sizes, strides))
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_cases_by_calls_of_pytorch(torch: Any, case: Case) -> None:
    from anydml.backends.torch.lowering import Plan, plan

    spec = spec_of(case.desc)
    assert spec is not None
    sides = spec.inputs(case.desc), spec.outputs(case.desc)
    layouts = [[tensor and Layout.of_desc(tensor) for _, tensor in side] for side in sides]
    calls = plan(spec, case.desc, *layouts)
    assert isinstance(calls, Plan)
    read = operands(torch, case, sides[0], case.inputs)
    written = operands(torch, case, sides[1], [None] * len(sides[1]))
    calls.run(read, written)
    for y, expected in zip(written, case.outputs, strict=True):
        if expected is not None:
            assert_same(y.numpy(), expected)


# What is refused


def test_lengths_that_leave_no_room() -> None:
    q = dyadic(1, 2, 4)
    past = dyadic(1, 1, 3, 4)

    def attend(length: Any, **options: Any) -> Any:
        return multihead_attention(
            q, q, q, head_count=1, past_key=past, past_value=past, past_sequence_lengths=length, **options
        )

    refused("(V1)", lambda: attend([4]), "past_sequence_lengths", "found 4 for sequence 0", "from 0 to 3")
    refused("(V1)", lambda: attend([-1]), "found -1 for sequence 0")
    refused("(V1)", lambda: attend(np.array([np.nan], np.float32)), "found nan")
    short = [np.empty((1, 2, 4), np.float32), *(np.empty((1, 1, 3, 4), np.float32) for _ in range(2))]
    assert attend([1], present=True)[1].shape == (1, 1, 5, 4)
    refused("(A4)", lambda: attend([1], present=True, out=short), "(1, 1, 5, 4)")


def test_words_of_the_function() -> None:
    x = dyadic(1, 2, 4)
    refused("(C2)", lambda: multihead_attention(x, x, head_count=2), "value: found None", "stacked_key_value")
    refused("(C4)", lambda: multihead_attention(x, x, x, head_count=3), "query.shape[2]", "a multiple of 3, head_count")
    wide = dyadic(1, 2, 6)
    refused(
        "(C8)", lambda: multihead_attention(wide, x, x, head_count=3, key_value_head_count=2), "head_count: found 3"
    )
    refused("(F4)", lambda: multihead_attention(x, x, x, head_count=2, mask_type="bool"), "mask_type")
    refused("(A15)", lambda: multihead_attention(x, x, x, head_count=2, num_heads=2), "num_heads")
    refused("(S3)", lambda: multihead_attention(x, x, x, head_count=2, mask=np.ones(2, bool)), "np.int32")


def test_mask_types_by_name() -> None:
    x = dyadic(2, 3, 4)
    mask = np.array([1, 2], np.int32)
    by_name, by_member = (
        multihead_attention(x, x, x, mask=mask, head_count=2, mask_type=each)
        for each in ("key_sequence_length", MultiheadAttentionMaskType.KEY_SEQUENCE_LENGTH)
    )
    assert_same(by_name, by_member)
    assert anydml.DML_MULTIHEAD_ATTENTION_MASK_TYPE_BOOLEAN is MultiheadAttentionMaskType.BOOLEAN


def test_no_kernel_has_all_scores() -> None:
    """Of 8192 queries and keys they would be 256 MiB."""
    import resource

    x = np.ones((1, 8192, 8), np.float32)
    desc = multihead_attention(x[:, :1], x, x, head_count=1)  # what is loaded on first use
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    y = multihead_attention(x, x, x, head_count=1, device=Device("cpu"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    assert_same(y[0, :1], desc[0])
