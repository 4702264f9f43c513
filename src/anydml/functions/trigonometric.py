"""Circular and hyperbolic functions and their inverses."""

from __future__ import annotations

from ._pointwise import functions_of

globals().update(functions_of("trigonometric", globals()))
