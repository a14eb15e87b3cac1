"""Addresses: every way to write one, percent-decoding, and no password where a person could read it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollstream.errors import ConfigError
from rollstream.store import Address, parse_address

SECRET = "p@/#:?%20"
ENCODED = "p%40%2F%23%3A%3F%2520"


def test_a_tcp_address_has_host_port_database_and_user() -> None:
    assert parse_address(f"redis://actor:{ENCODED}@cache.example:6380/2") == Address(
        transport="tcp", host="cache.example", port=6380, db=2, username="actor", password=SECRET
    )


def test_port_and_database_have_the_defaults_of_redis() -> None:
    assert parse_address("redis://cache") == Address(transport="tcp", host="cache", port=6379, db=0)


def test_rediss_means_tls() -> None:
    assert parse_address("rediss://cache/").transport == "tls"


def test_a_unix_address_has_a_path_and_options() -> None:
    parsed = parse_address(f"unix:///run/my%20cell/redis.sock?db=1&username=actor&password={ENCODED}")
    assert parsed == Address(transport="unix", path="/run/my cell/redis.sock", db=1, username="actor", password=SECRET)


def test_an_ipv6_host_is_read_and_written_in_brackets() -> None:
    parsed = parse_address("redis://[::1]:7000/0")
    assert parsed.host == "::1"
    assert str(parsed) == "redis://[::1]:7000/0"


def test_a_password_given_on_its_own_wins() -> None:
    assert parse_address("redis://:old@cache", password="new").password == "new"
    assert parse_address("redis://:old@cache", password="").password == "old"
    assert parse_address("redis://cache", password="").password is None


@pytest.mark.parametrize(
    "url",
    [
        f"redis://us%40er:{ENCODED}@cache:6380/2",
        f"rediss://:{ENCODED}@cache:6380/2",
        f"unix:///run/my%20cell/redis.sock?db=3&username=actor&password={ENCODED}",
    ],
)
def test_text_shows_no_password_and_reads_back_with_it(url: str) -> None:
    parsed = parse_address(url)
    assert parsed.password == SECRET
    for text in (str(parsed), repr(parsed), f"{parsed}"):
        assert SECRET not in text
        assert ENCODED not in text
    assert parse_address(str(parsed), password=SECRET) == parsed


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://cache", "must start with redis://, rediss:// or unix://, got http://"),
        ("cache:6379", "must start with redis://, rediss:// or unix://"),
        ("", "must start with redis://, rediss:// or unix://, got no scheme"),
        ("redis://", "names no host; percent-encode"),
        ("redis://:p@/secret", "names no host"),
        ("redis://:secret/x@cache", "is not a URL"),
        ("redis://cache:port", "is not a URL"),
        ("redis://cache/0#secret", "has a part after #, which means nothing"),
        ("redis://cache/first", "names a database that is no number"),
        ("redis://cache?max=3", "has an unknown option; known: db"),
        ("rediss://cache?ssl_cert_reqs=none", "cannot set TLS options: certificates are always verified"),
        ("unix://", "must name an absolute path"),
        ("unix://redis.sock", "must name an absolute path"),
    ],
)
def test_a_bad_address_is_refused_without_quoting_a_password(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_address(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_certificates_need_tls_and_come_in_pairs(tmp_path: Path) -> None:
    pem = tmp_path / "some.pem"
    pem.write_text("")
    with pytest.raises(ConfigError, match="need an address with rediss://, got redis://cache:6379/0"):
        parse_address("redis://cache", ca_file=pem)
    with pytest.raises(ConfigError, match="cert_file and key_file go together"):
        parse_address("rediss://cache", cert_file=pem)
    with pytest.raises(ConfigError, match="ca_file /no/such/file is not a file that can be read"):
        parse_address("rediss://cache", ca_file="/no/such/file")
    assert parse_address("rediss://cache", ca_file="", cert_file="", key_file="").ca_file is None


def test_addresses_are_values() -> None:
    parsed = parse_address("redis://cache")
    assert replace(parsed, db=1) != parsed
    assert hash(parsed) == hash(parse_address("redis://cache:6379/0"))


@pytest.mark.parametrize("url", ["redis://cache:port/0", "redis://[::1/0", "redis://cache:70000/0"])
def test_what_is_no_url_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigError, match="Redis address is not a URL") as caught:
        parse_address(url)
    assert url not in str(caught.value)
