"""The operators as functions, for those who come from NumPy, PyTorch and DirectMLX.

Any array in (NumPy, a buffer, ``__array_interface__``, DLPack; lists too, where float lists become float32), the same
kind of array out. Expressions of a graph in, expressions out; an array among them is a constant of their graph. What
descs refuse works here: negative axes and strides, empty arrays, unaligned memory. Rules on operands are in
``core/interop.py``, all others are the operators' own; ``_apply.py`` has what all functions share.

An operator and its later revisions are one function, which takes the oldest that does what is asked, so that it is
there from the lowest feature level on.
"""

from __future__ import annotations

import builtins
from importlib import import_module
from typing import Any

from ..backends.torch.compiler import break_graphs
from ..operators import OPERATORS

FUNCTIONS = {op.function: op.family for op in reversed(OPERATORS.values())}
"""Function to file, which is loaded on first use. Operators that share a function have it in the first one's family."""

ALIASES = {"where": "logical"}
"""Other names of functions, in other libraries' words, by the files that have them."""

BUILTINS = tuple(name for name in FUNCTIONS if hasattr(builtins, name))
"""Those that ``from anydml import *`` leaves out, as it would replace Python's own."""


def function_of(operator: str) -> str:
    """The name of an operator's function, which it shares with its revisions."""
    return OPERATORS[operator].function


def load(name: str) -> Any:
    """The function of a name, loading its file where need be."""
    return getattr(import_module(f".{FUNCTIONS[name]}", __name__), name)


break_graphs()
