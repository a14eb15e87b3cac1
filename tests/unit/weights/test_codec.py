"""Weights as bytes."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.numpy

from rollstream.errors import NonFiniteError, SchemaMismatch
from rollstream.weights import decode_tensors, encode_tensors, require_finite

TENSORS = {
    "policy.dense.0.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "policy.dense.0.bias": np.ones(4, np.float32),
    "normalizer.count": np.array(7, np.int64),
    "empty": np.zeros((0, 3), np.float32),
}


def test_what_was_encoded_is_decoded() -> None:
    decoded = decode_tensors(encode_tensors(TENSORS))
    assert list(decoded) == list(TENSORS)
    for name, tensor in TENSORS.items():
        assert decoded[name].dtype == tensor.dtype
        assert decoded[name].shape == tensor.shape
        np.testing.assert_array_equal(decoded[name], tensor)


def test_the_safetensors_library_reads_what_we_write() -> None:
    read = safetensors.numpy.load(encode_tensors(TENSORS))
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(read[name], tensor)


def test_we_read_what_the_safetensors_library_writes() -> None:
    read = decode_tensors(safetensors.numpy.save(TENSORS, metadata={"made_by": "a test"}))
    assert set(read) == set(TENSORS)
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(read[name], tensor)


def test_decoding_copies_no_tensor() -> None:
    blob = encode_tensors(TENSORS)
    weight = decode_tensors(blob)["policy.dense.0.weight"]
    assert np.shares_memory(weight, np.frombuffer(blob, np.uint8))
    assert not weight.flags.writeable


def test_equal_weights_have_equal_bytes_and_others_do_not() -> None:
    other = TENSORS | {"policy.dense.0.bias": np.zeros(4, np.float32)}
    assert encode_tensors(TENSORS) == encode_tensors({name: tensor.copy() for name, tensor in TENSORS.items()})
    assert encode_tensors(TENSORS) != encode_tensors(other)


def test_tensors_that_are_not_contiguous_arrive_as_values() -> None:
    tensor = np.arange(12, dtype=np.float32).reshape(3, 4).T
    np.testing.assert_array_equal(decode_tensors(encode_tensors({"w": tensor}))["w"], tensor)


def test_objects_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="tensor w has dtype object; weights are booleans, integers or floats"):
        encode_tensors({"w": np.array([None])})


@pytest.mark.parametrize("garbage", [b"", b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00", b"\x02" + bytes(7) + b"[]", bytes(8) + b"{}"])
def test_what_is_not_in_the_format_is_refused(garbage: bytes) -> None:
    with pytest.raises(SchemaMismatch, match="not weights in safetensors format"):
        decode_tensors(garbage)


def test_weights_that_were_cut_off_are_refused() -> None:
    blob = encode_tensors({"w": np.ones(100, np.float32)})
    for length in range(0, len(blob), 13):
        with pytest.raises(SchemaMismatch, match="not weights in safetensors format"):
            decode_tensors(blob[:length])


def test_a_shape_that_does_not_fit_its_bytes_is_refused() -> None:
    blob = encode_tensors({"w": np.ones((2, 3), np.float32)})
    for wrong in (b"[9,3]", b"[2,4]"):
        with pytest.raises(SchemaMismatch, match="does not fit bytes 0 to 24 of 24"):
            decode_tensors(blob.replace(b"[2,3]", wrong))
    with pytest.raises(SchemaMismatch, match="not weights in safetensors format"):
        decode_tensors(blob.replace(b"F32", b"OBJ"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named_with_its_place(bad: float) -> None:
    weight = np.zeros((3, 4), np.float32)
    weight[1, 2] = bad
    with pytest.raises(
        NonFiniteError, match=r"weights version 7 refused: tensor w has 1 of 12 values that are not finite, the first at \[1, 2\]"
    ):
        require_finite({"b": np.zeros(3), "w": weight}, what="weights version 7")


def test_the_largest_finite_values_are_finite() -> None:
    require_finite({"w": np.array([-3e38, 3e38, 3e38], np.float32), "count": np.array(3), "none": np.zeros(0)}, what="x")
