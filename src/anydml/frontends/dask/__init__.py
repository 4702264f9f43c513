"""Dask arrays: functions of them are task graphs over chunks.

(K1) Sizes of chunks are known.
(K2) A task gives new arrays: nothing is written to ``out``.
(K3) What has elements of 4 bits is no result.
(K4) Of an ONNX model that runs on batches, inputs that are cut have the same number of rows, and every output has the
     batch first, its other sizes the same for every batch. That rows do not depend on each other is assumed.

``adapter.py`` is what functions take such operands by. By one rule, ``blockwise.py``, every operator is computed chunk
by chunk along the dimensions that its specification calls independent; along others a chunk has all of them. The table
in ``methods.py`` has what does better for some operators.
"""
