"""Models: how much memory they may take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import DMLMemoryError
from anydml.frontends import dxdispatch as model
from anydml.frontends.dxdispatch.limits import _container_limits, default_limit, format_size, parse_size
from anydml.frontends.dxdispatch.session import Session
from model_texts import BASE, changed, run, sourcing, values


@pytest.mark.parametrize(
    "resource",
    [
        values("FLOAT32", {"valueCount": 10**18, "value": 0}),
        values("INT8", {"valueCount": 2**62, "valueStart": 0, "valueDelta": 1}),
        {**values("INT8", [1]), "sizeInBytes": 2**62},
        values("FLOAT64", {"valueCount": 2**63 - 1, "value": 0}),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_allocated(resource: dict[str, Any]) -> None:
    text = changed({"resources/Huge": resource})
    (violation,) = model.loads(text).check()
    assert violation.rule == "(M13)"
    with pytest.raises(
        DMLMemoryError, match=r"in all, of which resources.Huge takes \d+, expected at most \d+ bytes"
    ) as caught:
        run(text)
    assert caught.value.hresult.name == "E_OUTOFMEMORY"


def test_memory_limit_counts_files_and_all_resources(folder: Path) -> None:
    text = sourcing("x.npy")
    assert model.loads(text, folder).memory_needed == 32
    assert model.loads(text, folder).check(memory_limit=32) == []
    assert model.loads(text, folder).check(memory_limit=31)[0].found == (
        "32 bytes in all, of which resources.A takes 16"
    )


def test_memory_that_is_not_there_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: object, memory: object) -> None:
        raise MemoryError

    wide = changed({"resources/Out/sizeInBytes": 2**62})
    with pytest.raises(DMLMemoryError, match=r"resources: found .*, expected a size that there is memory for \(M13\)"):
        run(wide, memory_limit=2**63)
    monkeypatch.setattr("anydml.frontends.dxdispatch.buffers.Constant.fill", none)
    with pytest.raises(
        DMLMemoryError, match=r"resources.Out: found 16 bytes, expected a size that there is memory for"
    ):
        run(json.dumps(BASE))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("500M", 500 << 20),
        ("2G", 2 << 30),
        ("1.5kB", 1536),
        ("3 GiB", 3 << 30),
        ("0", 0),
        ("1T", 1 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1e3", "2X", "1.G", "9" * 30, "\u0662"])
def test_no_sizes(text: str) -> None:
    assert parse_size(text) is None


def test_format_size() -> None:
    assert format_size(1023) == "1023 bytes"
    assert format_size(1536) == "1536 bytes (1.5 KiB)"


def test_limits_of_control_groups(tmp_path: Path) -> None:
    def put(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    assert list(_container_limits(tmp_path, 7)) == [7]
    put("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/c/d\n")
    put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000\n")
    put("sys/fs/cgroup/c/d/memory.max", "max\n")
    put("sys/fs/cgroup/memory.max", "2000\n")
    assert sorted(set(_container_limits(tmp_path, 10**9))) == [2000, 3000, 10**9]


def test_default_limit_is_below_the_machine() -> None:
    assert 0 < default_limit() < 1 << 60


def test_a_dispatchable_may_be_a_graph_of_its_own() -> None:
    graph = model.loads(changed({"dispatchables/product/dmlCompileType": "DmlCompileGraph"}))
    results = graph.run(write=lambda text: None)
    np.testing.assert_array_equal(results["Out"], np.array([2, 8, 64, 192], np.float32))
    explained = Session(graph).compiled["product"].explain()
    assert explained.startswith("graph: 1 kernels")
    # A graph does not run in-place, which the operator does.
    over = {"commands/0/bindings/OutputTensor": "A"}
    assert model.loads(changed(over)).check() == []
    (violation,) = model.loads(changed({"dispatchables/product/dmlCompileType": "DmlCompileGraph", **over})).check()
    assert violation.rule == "(B7)"
