"""Settings of control, from `ROLLSTREAM_…` environment variables: who may ask, and how actors are scaled."""

from __future__ import annotations

import ipaddress
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from rollstream_service.settings import CommonSettings

__all__ = ["ControlSettings"]


class ControlSettings(CommonSettings):
    """What control needs beside Redis."""

    operator_token: SecretStr | None = None
    """Bearer token of those who may change things; None with a loopback address lets everybody in who can reach it."""
    viewer_token: SecretStr | None = None
    """Bearer token of those who may only look; None: operators only."""
    allow_anonymous: bool = False
    """Serve without tokens on an address that others can reach; false, because anyone could then run code on the actors."""
    backend: Literal["local", "kubernetes", "none"] = "none"
    """Who starts actors: the command line's supervisor, the cluster, or (none) a person; none, since a guess may be wrong."""
    namespace: str = "default"
    """Kubernetes namespace of the actor Deployment; the chart sets it to the release's."""
    actor_deployment: str = ""
    """Name of the actor Deployment, required with the kubernetes backend; empty because its name depends on the release."""
    experiment_file: str | None = None
    """YAML file of an experiment that is submitted once when control starts; None submits nothing."""
    inspection_deadline_s: float = Field(default=20.0, gt=0)
    """Seconds in which a user's environment must say what its spaces are; 20 covers slow simulators and their imports."""
    heartbeat_every_s: float = Field(default=10.0, gt=0)
    """Seconds between comments on a silent event stream; 10 is below the idle limit of common proxies (30 to 60)."""
    max_body_bytes: int = Field(default=1 << 20, ge=1024)
    """Largest request body; 1 MiB is a thousand times a spec and nothing to hold in memory."""

    @field_validator("operator_token", "viewer_token", mode="after")
    @classmethod
    def _token_is_long(cls, token: SecretStr | None) -> SecretStr | None:
        """An empty variable counts as none: Compose and Helm write those."""
        if token is None or not token.get_secret_value():
            return None
        if len(token.get_secret_value()) < 8:
            raise ValueError("a token needs at least 8 characters; make one with `openssl rand -hex 32`")
        return token

    @field_validator("experiment_file", mode="after")
    @classmethod
    def _no_file_is_none(cls, path: str | None) -> str | None:
        return path or None

    @model_validator(mode="after")
    def _somebody_may_act(self) -> ControlSettings:
        if self.viewer_token is not None and self.operator_token is None:
            raise ValueError("ROLLSTREAM_VIEWER_TOKEN without ROLLSTREAM_OPERATOR_TOKEN leaves nobody who may act: set both")
        if self.viewer_token is not None and self.viewer_token == self.operator_token:
            raise ValueError("ROLLSTREAM_VIEWER_TOKEN equals ROLLSTREAM_OPERATOR_TOKEN: make the two different")
        if self.operator_token is None and not self.allow_anonymous and not is_loopback(self.host):
            raise ValueError(
                f"ROLLSTREAM_HOST={self.host} can be reached from other machines and there is no token: set "
                "ROLLSTREAM_OPERATOR_TOKEN, listen on 127.0.0.1, or set ROLLSTREAM_ALLOW_ANONYMOUS=true if "
                "the network itself keeps strangers out"
            )
        if self.backend == "kubernetes" and not self.actor_deployment:
            raise ValueError(
                "ROLLSTREAM_BACKEND=kubernetes needs ROLLSTREAM_ACTOR_DEPLOYMENT: the name of the Deployment to scale"
            )
        return self

    @property
    def operator_secret(self) -> str | None:
        return self.operator_token.get_secret_value() if self.operator_token else None

    @property
    def viewer_secret(self) -> str | None:
        return self.viewer_token.get_secret_value() if self.viewer_token else None


def is_loopback(host: str) -> bool:
    """True for an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name that some resolver knows: may be anything
        return False
