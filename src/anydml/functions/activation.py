"""Activations of each element, which other functions take as descs, to apply them to their results."""

from __future__ import annotations

from ._pointwise import functions_of

globals().update(functions_of("activation", globals()))
