"""ONNX models by DirectML's operators."""
