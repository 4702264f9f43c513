"""Pointwise operators and chains of them, each in one kernel that is generated for it."""
