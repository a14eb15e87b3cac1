"""Policies as files that run without Rollstream: ONNX, a torch program, or the plain tensors; each with a file that says what they mean."""

from rollstream.graph.export.export import FORMATS, Format, export_policy
from rollstream.graph.export.signature import Signature, signature_of

__all__ = ["FORMATS", "Format", "Signature", "export_policy", "signature_of"]
