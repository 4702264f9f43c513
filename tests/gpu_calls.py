"""What the tests of the GPU engine share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from anydml import DMLError
from harness import GPU

on_gpu = pytest.mark.skipif(not GPU, reason="needs PyTorch and Triton: make test-gpu")


def refused(call: Callable[[], Any], *rules: str) -> DMLError:
    with pytest.raises(DMLError) as raised:
        call()
    assert [violation.rule for violation in raised.value.violations] == list(rules)
    return raised.value
