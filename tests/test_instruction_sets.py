"""The case tables on every instruction set that this machine has, and threads as NumPy's users know them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import anydml
from anydml import Device, _native
from cases import all_cases
from harness import compiled, engines_of

pytestmark = [pytest.mark.native, pytest.mark.slow]

SETS = _native.build_info()["instruction_sets"]
NATIVE = next(case.desc for case in all_cases() if "cpu" in engines_of(case.desc))
LARGE = np.random.default_rng(0).uniform(-1, 1, (64, 40_000)).astype(np.float32)


@pytest.mark.longest
@pytest.mark.parametrize("number", range(1, len(SETS)))
def test_cases_and_large_arrays(number: int) -> None:
    """Of the sets that are not chosen by themselves, in a process each, as the environment says which is used. Each has
    its part of the cases, and of the large arrays, which together are a quarter: kernels are of one source, and digests
    of all of them, on all sets, are compared elsewhere. What has processes for each set itself is not run again."""
    instruction_set = SETS[number]
    folder = Path(__file__).parent
    cases, large = [f"{folder / 'test_cases.py'}::test_desc"], map(str, sorted(folder.glob("test_*_large.py")))
    others = len(SETS) - 1
    shares = f"--share={number - 1}/{others}", f"--share-large={number - 1}/{4 * others}"
    names = "not reference and not instruction_set"
    command = [sys.executable, "-m", "pytest", "-q", "-k", names, "-p", "no:cacheprovider", *shares, *cases, *large]
    environment = {**os.environ, "ANYDML_CPU": instruction_set}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("instruction_set", SETS)
def test_a_forced_set_serves(instruction_set: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANYDML_CPU", instruction_set)
    assert f"({instruction_set})" in compiled("cpu", NATIVE).explain()


def test_a_set_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANYDML_CPU", "abacus")
    device = Device("cpu")
    told = device.compile_operator(device.create_operator(NATIVE)).explain()
    assert "served by reference" in told
    assert "ANYDML_CPU is abacus, but this machine has" in told


def test_threadpoolctl_sees_the_threads() -> None:
    anydml.cumulative_summation(LARGE)
    assert any(pool["user_api"] == "openmp" for pool in threadpool_info())


def test_the_same_bits_for_every_number_of_threads() -> None:
    for axis in (0, 1):
        many = anydml.cumulative_summation(LARGE, axis)
        with threadpool_limits(1, "openmp"):
            one = anydml.cumulative_summation(LARGE, axis)
        np.testing.assert_array_equal(one.view(np.uint32), many.view(np.uint32))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_computes() -> None:
    """A child has none of its parent's threads, and would wait for ever for them; it starts its own."""
    code = """
import os, sys, numpy as np, anydml
x = np.ones((64, 40_000), np.float32)
expected = anydml.cumulative_summation(x)
for _ in range(2):
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if not (anydml.cumulative_summation(x) == expected).all():
        os._exit(3)
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60, check=False).returncode == 0
