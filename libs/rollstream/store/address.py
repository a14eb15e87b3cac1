"""Where Redis is and how to get in: one parsed, frozen value that never shows its password.

    redis://user:password@host:6379/0      TCP
    rediss://user:password@host:6379/0     TCP with TLS; the certificate is always verified
    unix:///run/rollstream/redis.sock?db=0 a socket on this machine

User, password and path are percent-decoded. A password may also come on its own (from a secret), so that the URL can be logged.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from rollstream.errors import ConfigError

__all__ = ["Address", "parse_address"]

_DEFAULT_PORT = 6379
_ENCODE_HINT = "percent-encode the characters @ / # ? : % of user and password, or give the password on its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One Redis: transport, place, database, user. `str()` is a URL without the password; `repr()` has none either."""

    transport: Literal["tcp", "tls", "unix"]
    host: str = ""
    port: int = 0
    path: str = ""
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    def __str__(self) -> str:
        user = f"{quote(self.username, safe='')}@" if self.username else ""
        if self.transport == "unix":
            return f"unix://{user}{quote(self.path)}?db={self.db}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "rediss" if self.transport == "tls" else "redis"
        return f"{scheme}://{user}{host}:{self.port}/{self.db}"

    def ssl_context(self) -> ssl.SSLContext:
        """A context that verifies the server against `ca_file` (the system's authorities without one) and its host name."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.cert_file is not None:
            context.load_cert_chain(self.cert_file, self.key_file)
        return context


def parse_address(
    url: str,
    *,
    ca_file: str | Path | None = None,
    cert_file: str | Path | None = None,
    key_file: str | Path | None = None,
    password: str | None = None,
) -> Address:
    """Read a URL as above.

    Args:
        ca_file: certificate authority (PEM) that signed the server's certificate; only with `rediss://`.
        cert_file, key_file: this client's own certificate and key (PEM), for servers that ask for one.
        password: wins over the one in the URL; an empty one counts as none.

    Raises:
        ConfigError: names what is wrong, never the password.

    >>> str(parse_address("redis://actor:p%40ss@cache/2"))
    'redis://actor@cache:6379/2'
    """
    parts = _split(url)
    if parts.scheme == "unix":
        address = _unix(parts)
    elif parts.scheme in ("redis", "rediss"):
        address = _network(parts)
    else:
        scheme = f"{parts.scheme}://" if parts.scheme else "no scheme"
        raise ConfigError(f"Redis address must start with redis://, rediss:// or unix://, got {scheme}")
    address = replace(
        address,
        password=password or address.password or None,
        ca_file=_file(ca_file, "ca_file"),
        cert_file=_file(cert_file, "cert_file"),
        key_file=_file(key_file, "key_file"),
    )
    if address.transport != "tls" and (address.ca_file or address.cert_file or address.key_file):
        raise ConfigError(f"ca_file, cert_file and key_file need an address with rediss://, got {address}")
    if (address.cert_file is None) != (address.key_file is None):
        raise ConfigError("cert_file and key_file go together: give both or none")
    return address


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        _ = parts.port  # raises when it is no number
    except ValueError as error:
        # `from None`: the text of the cause may quote a part of the password
        raise ConfigError(f"Redis address is not a URL ({type(error).__name__}); {_ENCODE_HINT}") from None
    if parts.fragment:
        raise ConfigError(f"Redis address has a part after #, which means nothing; {_ENCODE_HINT}")
    return parts


def _unix(parts: SplitResult) -> Address:
    options = _options(parts, ("db", "username", "password"))
    if not parts.path or (parts.hostname and not parts.netloc.endswith("@")):
        raise ConfigError("Redis address unix:// must name an absolute path, as in unix:///run/redis.sock")
    return Address(
        transport="unix",
        path=unquote(parts.path),
        db=_database(options.get("db", "0")),
        username=options.get("username") or unquote(parts.username or "") or None,
        password=options.get("password") or unquote(parts.password or "") or None,
    )


def _network(parts: SplitResult) -> Address:
    options = _options(parts, ("db",))
    if not parts.hostname:
        raise ConfigError(f"Redis address names no host; {_ENCODE_HINT}")
    return Address(
        transport="tls" if parts.scheme == "rediss" else "tcp",
        host=unquote(parts.hostname),
        port=parts.port if parts.port is not None else _DEFAULT_PORT,
        db=_database(options.get("db") or parts.path.strip("/") or "0"),
        username=unquote(parts.username or "") or None,
        password=unquote(parts.password or "") or None,
    )


def _options(parts: SplitResult, known: tuple[str, ...]) -> dict[str, str]:
    options = dict(parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True))
    for name in options:
        if name.startswith("ssl"):
            raise ConfigError(
                "Redis address cannot set TLS options: certificates are always verified; for a private authority give ca_file"
            )
        if name not in known:
            raise ConfigError(f"Redis address has an unknown option; known: {', '.join(known)}; {_ENCODE_HINT}")
    return options


def _database(text: str) -> int:
    if not text.isdecimal():
        raise ConfigError(f"Redis address names a database that is no number; {_ENCODE_HINT}")
    return int(text)


def _file(path: str | Path | None, name: str) -> Path | None:
    if path is None or path == "":
        return None
    if not Path(path).is_file():
        raise ConfigError(f"{name} {path} is not a file that can be read")
    return Path(path)
