"""What functions take and give, as their signatures call it; what it means for type checkers, the generated stub says.

`tools/generate.py` writes an overload for each kind of operand where a signature has these words.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Operand: TypeAlias = Any
"""An array, of any library or a list, or an expression; rule (A1) of ``core/interop.py``."""
PackedOperand: TypeAlias = Any
"""Likewise, or numbers of 4 bits in a PackedArray."""
Output: TypeAlias = Any
"""What can be written to: an array, or a buffer."""
Result: TypeAlias = Any
"""An array like the first operand, `out` where that was given, or an expression."""
DataTypeLike: TypeAlias = Any
"""A data type, NumPy's, another library's or DirectML's, or its name."""
