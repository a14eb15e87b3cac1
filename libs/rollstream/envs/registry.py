"""Gymnasium's registry: what an id means there, and what was probably meant when it means nothing."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from rollstream.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

__all__ = ["registered"]


def registered(environment_id: str) -> EnvSpec:
    """The registered spec of a Gymnasium id (without importing the module that may stand in front of it).

    Raises:
        ConfigError: no such id; names the closest that exists.
    """
    import gymnasium

    name = environment_id.rpartition(":")[2]
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error as error:
        close = difflib.get_close_matches(name, list(gymnasium.registry), n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else "gymnasium.pprint_registry() lists what is installed"
        raise ConfigError(f"unknown environment {environment_id!r}: {str(error).rstrip('.')}; {hint}") from error
