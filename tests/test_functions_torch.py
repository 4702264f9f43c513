"""Functions of tensors of PyTorch: nothing is copied, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml import cumulative_summation, join
from function_calls import engine, pool, refused, spying


@engine
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64", "uint32", "uint64"])
def test_torch_in_torch_out(torch: Any, engine: str, dtype: str) -> None:
    x = torch.tensor([[1, 2, 3], [4, 5, 6]]).to(getattr(torch, dtype))
    result = cumulative_summation(x, 0, device=engine)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == x.dtype
    assert result.tolist() == [[1, 2, 3], [5, 7, 9]]
    joined = join([x, x.numpy()], device=engine)
    assert isinstance(joined, torch.Tensor)
    assert joined.shape == (4, 3)


@engine
def test_torch_out(torch: Any, engine: str) -> None:
    x, memory = torch.tensor([1, 2, 3]), torch.zeros(6, dtype=torch.int64)
    out = memory[::2]
    assert cumulative_summation(x, out=out, device=engine) is out
    assert memory.tolist() == [1, 0, 3, 0, 6, 0]
    assert cumulative_summation(x, out=x, device=engine) is x
    assert x.tolist() == [1, 3, 6]
    target = np.zeros(3, np.int64)
    assert cumulative_summation(x, out=target, device=engine) is target


@engine
def test_torch_pooling(torch: Any, engine: str) -> None:
    x = torch.full((1, 2, 2, 2), 8, dtype=torch.uint8)
    options = {"window_size": 2, "device": engine}
    result = pool(x, torch.tensor([1.0, 2.0]), torch.tensor(4, dtype=torch.uint8), **options, output_dtype=torch.int8)
    assert isinstance(result, torch.Tensor)
    assert (result.dtype, result.flatten().tolist()) == (torch.int8, [4, 8])
    typed = pool(x, output_zero_point=torch.tensor([1, 2], dtype=torch.int8), **options)
    assert (typed.dtype, typed.flatten().tolist()) == (torch.int8, [9, 10])


def test_torch_without_a_copy(torch: Any) -> None:
    device, spy = spying()
    x, out = torch.zeros(4, 6)[:, ::2], torch.zeros(4, 3)
    cumulative_summation(x, out=out, device=device)
    assert spy.inputs[0].ctypes.data == x.data_ptr()
    assert spy.outputs[0].ctypes.data == out.data_ptr()


def test_torch_refusals(torch: Any) -> None:
    refused("(A1)", lambda: cumulative_summation(torch.ones(3, requires_grad=True)), "detach()")
    refused("(A1)", lambda: cumulative_summation(torch.ones(3, device="meta")), "meta")
    refused("(A1)", lambda: cumulative_summation(torch.ones(3), out=torch.ones(3, requires_grad=True)), "out: ")
    # Whose memory holds the opposite of what is read.
    refused("(A1)", lambda: cumulative_summation((torch.ones(3) * 1j).conj().imag), "resolve_neg()")
    refused("(S3)", lambda: cumulative_summation(torch.ones(3, dtype=torch.float64)), "float64")
    refused("(A7)", lambda: cumulative_summation(torch.ones(3), out=torch.zeros(1).expand(3)))


def test_torch_bfloat16_is_named(torch: Any) -> None:
    x = torch.ones(3, dtype=torch.bfloat16)
    for call in (lambda: cumulative_summation(x), lambda: anydml.relu(x)):
        refused("(A1)", call, "torch.bfloat16", "Convert it with .float() or .half()")
    np.testing.assert_array_equal(cumulative_summation(x.half()), [1, 2, 3])
    refused("(A1)", lambda: anydml.relu(torch.ones(3), out=x), "out: found Tensor of torch.bfloat16")
    # Of a tensor that is refused for another reason the type is no matter.
    assert "half" not in str(refused("(A1)", lambda: cumulative_summation(torch.ones(3, device="meta")), "meta"))
