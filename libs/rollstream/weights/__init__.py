"""Weights: published by the learner, pulled by actors, in safetensors format."""

from rollstream.weights.codec import decode_tensors, encode_tensors, require_finite
from rollstream.weights.weight_store import KEPT_VERSIONS, Weights, WeightStore

__all__ = ["KEPT_VERSIONS", "WeightStore", "Weights", "decode_tensors", "encode_tensors", "require_finite"]
