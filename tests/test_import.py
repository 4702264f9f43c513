"""Importing the package is cheap and needs NumPy only: what takes time to load is loaded where it is first used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import anydml


def run_python(code: str) -> str:
    """What code prints in a fresh process."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, check=True, text=True, env=os.environ, timeout=60).stdout


LOADED = "import sys, numpy; before = set(sys.modules); import anydml; print(*sorted(set(sys.modules) - before))"
EAGER = {
    "anydml",
    *("anydml.backends", "anydml.backends.torch", "anydml.backends.torch.compiler"),
    *("anydml.core", "anydml.core.enums", "anydml.core.errors"),
    "anydml.functions",
    *("anydml.operators", "anydml.operators.header_names", "anydml.operators.registry"),
}
"""What `import anydml` loads of the package; each more is a file to read, and time."""


def test_loads_little() -> None:
    """Of the package a few files, no family and no kernels; else NumPy and a few modules of Python itself.

    Which of those NumPy has loaded before depends on its version, so there is no list of them.
    """
    loaded = set(run_python(LOADED).split())
    own = {name for name in loaded if name.partition(".")[0] == "anydml"}
    assert own == EAGER
    others = {name.partition(".")[0] for name in loaded - own}
    assert others <= set(sys.stdlib_module_names)
    assert not others & {"argparse", "difflib", "importlib.resources", "inspect", "json", "tempfile", "uuid"}


@pytest.mark.parametrize("name", ["DML_JOIN_OPERATOR_DESC", "join"])
def test_loads_one_family_for_one_operator(name: str) -> None:
    families = "print(*(name for name in sys.modules if name.startswith('anydml.operators.specs.')))"
    assert run_python(f"import sys, anydml; anydml.{name}; {families}").split() == ["anydml.operators.specs.join"]


@pytest.mark.parametrize("name", ["Device", "DML_BINDING_PROPERTIES", "device", "draw", "runtime", "__version__"])
def test_what_is_loaded_on_first_use_is_there(name: str) -> None:
    """By itself, in a process that has used nothing else."""
    assert run_python(f"import anydml; print(repr(anydml.{name}))").strip() == repr(getattr(anydml, name))


def test_a_module_that_takes_another_package_says_which() -> None:
    """And is absent, as attributes are, where that package is."""
    code = """if True:
        import sys, anydml
        sys.modules["onnx"] = None
        print(hasattr(anydml, "onnx"))
        try:
            anydml.onnx
        except AttributeError as problem:
            print(problem)
        """
    is_there, told = run_python(code).splitlines()
    assert is_there == "False"
    assert told.endswith("pip install 'anydml[onnx]'")
