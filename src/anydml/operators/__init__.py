"""Operators: the table of them, their specifications, and the rules that hold for all of them."""

from .registry import ANY_OPERATOR, OPERATORS, Trait, spec, spec_of, with_trait

__all__ = ["ANY_OPERATOR", "OPERATORS", "Trait", "spec", "spec_of", "with_trait"]
