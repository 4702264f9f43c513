"""Graphs: operators connected to each other, which are compiled, bound and dispatched as one."""
