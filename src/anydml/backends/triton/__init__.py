"""Kernels in Triton's language, for GPUs: an engine, and a folder or a file for each family."""
