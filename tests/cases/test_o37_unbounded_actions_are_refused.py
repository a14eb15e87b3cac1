"""O37: actions without bounds must be refused with what to do, never become NaN."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rollstream.errors import SpaceError
from rollstream.graph import CategoricalPolicy, QPolicy
from rollstream.spaces import leaves


@pytest.mark.parametrize("low", [-np.inf, -1.0])
@pytest.mark.parametrize("policy", [CategoricalPolicy, QPolicy])
def test_o37_a_box_action_without_bounds_is_refused_at_build(policy: type[CategoricalPolicy] | type[QPolicy], low: float) -> None:
    (action,) = leaves(gymnasium.spaces.Box(low, np.inf, (1,)), "action")
    observation = leaves(gymnasium.spaces.Box(-1.0, 1.0, (2,)), "observation")
    with pytest.raises(SpaceError, match=r"^action: \w+.act, argument action: needs a Discrete space, .*DiscretizeAction"):
        policy(observation, action)
