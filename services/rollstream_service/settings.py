"""Settings that every service has, read from `ROLLSTREAM_…` environment variables when the process starts, never at import."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, TypeVar

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from rollstream.config import suggestion
from rollstream.errors import ConfigError, Problem
from rollstream_service.logs import LogFormat, LogLevel

if TYPE_CHECKING:
    from rollstream.store import Address

__all__ = ["CommonSettings", "read_settings"]

Settings = TypeVar("Settings", bound="CommonSettings")


class CommonSettings(BaseSettings):
    """What a process needs in order to find Redis, answer probes and write logs."""

    model_config = SettingsConfigDict(env_prefix="ROLLSTREAM_", frozen=True, use_attribute_docstrings=True, extra="ignore")

    redis_url: str = Field(min_length=1)
    """Where Redis is: `redis://`, `rediss://` (TLS) or `unix://`; required, because a silent default hides mistakes."""
    redis_password: SecretStr | None = None
    """Password that replaces the one in the URL, so that it can come from a Secret; None keeps the URL's."""
    redis_ca_file: str | None = None
    """PEM file of the authority that signed Redis' certificate; None takes the system's."""
    redis_cert_file: str | None = None
    """PEM client certificate for mutual TLS; None sends none."""
    redis_key_file: str | None = None
    """PEM key of the client certificate; None when the certificate file holds it."""
    redis_deadline_s: float = Field(default=30.0, gt=0)
    """Seconds for which an operation retries while Redis is away; 30 outlives a restart with its log replay."""
    member_id: str = ""
    """Name of this process in the cell; empty makes one of role, host and process id."""
    host: str = "127.0.0.1"
    """Address on which probes and APIs listen; loopback because only a container should listen wider."""
    port: int = Field(default=0, ge=0, le=65_535)
    """TCP port; 0 takes a free one, and the member record says which."""
    advertise_url: str = ""
    """URL under which others reach this process; empty makes one of host (this machine's name when it listens everywhere) and port."""
    log_level: LogLevel = "info"
    """Least severe log line that is written; info tells life-cycle events only, nothing per step."""
    log_format: LogFormat = "json"
    """JSON lines for collectors, text for people."""
    grace_s: float = Field(default=20.0, gt=0)
    """Seconds after SIGTERM in which work is finished and flushed; below Kubernetes' default of 30."""
    environment_modules: str = ""
    """Comma-separated Python modules from which an environment's `module:callable` may come; empty allows none."""

    @property
    def allowed_modules(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.environment_modules.split(",") if name.strip())

    def address(self) -> Address:
        """Where Redis is, with the password and the certificates of the other settings."""
        from rollstream.store import parse_address

        password = self.redis_password.get_secret_value() if self.redis_password is not None else ""
        return parse_address(
            self.redis_url,
            ca_file=self.redis_ca_file,
            cert_file=self.redis_cert_file,
            key_file=self.redis_key_file,
            password=password or None,
        )

    def url(self, port: int) -> str:
        """URL under which others reach this process, which listens on `port`."""
        if self.advertise_url:
            return self.advertise_url
        host = socket.gethostname() if self.host in ("", "0.0.0.0", "::") else self.host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def member_name(self, role: str) -> str:
        """`member_id`, or a name that is unique on this network."""
        return self.member_id or f"{role}-{socket.gethostname().split('.')[0]}-{os.getpid()}"


def read_settings(settings_type: type[Settings]) -> Settings:
    """Read the environment, or raise one `ConfigError` that lists every bad variable by its full name."""
    try:
        settings = settings_type()  # type: ignore[call-arg]  # the environment gives the fields
    except ValidationError as error:
        problems = []
        for entry in error.errors(include_url=False, include_input=False):
            name = "ROLLSTREAM_" + "_".join(str(part) for part in entry["loc"]).upper()
            message = "is required" if entry["type"] == "missing" else entry["msg"].removeprefix("Value error, ")
            problems.append(Problem(path=name, message=message))
        listed = "; ".join(str(problem) for problem in problems)
        raise ConfigError(f"{len(problems)} bad environment variable(s): {listed}", problems=problems) from None
    _refuse_unknown(settings_type)
    return settings


KNOWN_ELSEWHERE = frozenset({"ROLLSTREAM_URL", "ROLLSTREAM_TOKEN"})
"""Variables of the command line, which a service may inherit."""


def _refuse_unknown(settings_type: type[CommonSettings]) -> None:
    """A misspelt variable must not be ignored: refuse names close to a known one, let others (of other services) pass."""
    known = {f"ROLLSTREAM_{name.upper()}" for name in settings_type.model_fields}
    for name in os.environ:
        if not name.startswith("ROLLSTREAM_") or name in known or name in KNOWN_ELSEWHERE:
            continue
        hint = suggestion(name, sorted(known))
        if "did you mean" in hint and _distance_is_one_edit(name, hint.split("'")[1]):
            raise ConfigError(f"unknown environment variable {name}{hint}")


def _distance_is_one_edit(name: str, other: str) -> bool:
    """True when one insertion, deletion, substitution or swap of neighbours turns `name` into `other`."""
    if abs(len(name) - len(other)) > 1 or name == other:
        return False
    start = 0
    while start < min(len(name), len(other)) and name[start] == other[start]:
        start += 1
    left, right = name[start:], other[start:]
    swapped = len(left) >= 2 and len(left) == len(right) and left[:2] == right[1::-1] and left[2:] == right[2:]
    return left[1:] == right[1:] or left == right[1:] or left[1:] == right or swapped
