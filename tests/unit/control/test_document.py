"""Documents from outside."""

from __future__ import annotations

import datetime
import math

import pytest

from rollstream.errors import ConfigError
from rollstream_control.submission.document import bad_values, finite, parse_json, parse_yaml


def test_json_and_yaml_give_the_same_document() -> None:
    expected = {"algorithm": "ppo", "environment": {"id": "CartPole-v1"}, "settings": {"hidden": [64, 64]}}
    text = "algorithm: ppo\nenvironment: {id: CartPole-v1}\nsettings:\n  hidden: [64, 64]\n"
    body = b'{"algorithm":"ppo","environment":{"id":"CartPole-v1"},"settings":{"hidden":[64,64]}}'
    assert parse_yaml(text, what="spec") == parse_json(body, what="spec") == expected


def test_yaml_numbers_with_an_exponent_are_numbers() -> None:
    assert parse_yaml("a: [1e-3, -1E+06, 2.e5, 1e]", what="spec") == {"a": [0.001, -1_000_000.0, 200_000.0, "1e"]}


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"", b"[" * 200_000])
def test_broken_json_is_refused(body: bytes) -> None:
    with pytest.raises(ConfigError, match="spec is not JSON: "):
        parse_json(body, what="spec")


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "!!python/object/apply:os.system ['true']", "a: 2020-99-99"])
def test_broken_yaml_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="spec is not YAML: "):
        parse_yaml(text, what="spec")


def test_a_document_must_be_a_mapping() -> None:
    with pytest.raises(ConfigError, match="must be a mapping of names to values, got list"):
        parse_json(b"[1]", what="spec")


def test_everything_that_json_cannot_carry_is_found_with_its_path() -> None:
    document = {
        "stop": {"mean_return": math.nan},
        "settings": {"a": [1, math.inf], 3: "x", "day": datetime.date(2020, 1, 1), "bad": "\ud800"},
    }
    problems = {problem.path: problem.message for problem in bad_values(document)}
    assert set(problems) == {"stop.mean_return", "settings.a.1", "settings.3", "settings.day", "settings.bad"}
    assert "must be a finite number, got nan" in problems["stop.mean_return"]


def test_a_document_that_is_nested_too_deep_is_refused() -> None:
    document: dict[str, object] = {}
    for _ in range(100):
        document = {"a": document}
    assert "nested more than 64 levels" in bad_values(document)[0].message


def test_numbers_that_do_not_exist_become_null() -> None:
    assert finite({"a": math.nan, "b": [math.inf, 1.5], "c": (-math.inf,), "d": "x"}) == {
        "a": None,
        "b": [None, 1.5],
        "c": [None],
        "d": "x",
    }
