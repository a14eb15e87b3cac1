"""The only place where onnx and onnxruntime are imported. Nothing here is imported unless something is asked to run in ONNX Runtime."""

__all__: list[str] = []
