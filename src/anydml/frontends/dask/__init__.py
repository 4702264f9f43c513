"""Dask arrays: functions of them are task graphs over chunks.

(K1) Dask, which is installed, computes what becomes of Dask arrays.
(K2) Sizes of chunks are known.
(K3) A task gives new arrays: nothing is written to ``out``.
(K4) Chunks are arrays in the memory of the CPU; a device is where each is computed.
(K5) What has elements of 4 bits is no result.
(K6) Of an ONNX model that runs on batches, inputs that are cut have the same number of rows, and every output has the
     batch first, its other sizes the same for every batch. That rows do not depend on each other is assumed.

``adapter.py`` is what functions take such operands by. By one rule, ``blockwise.py``, every operator is computed chunk
by chunk along the dimensions that its specification calls independent; along others a chunk has all of them. The table
in ``methods.py`` has what does better for some operators.
"""
