"""From settings to the preprocessing of a policy: the same in every algorithm."""

from __future__ import annotations

from rollstream.graph.components import Preprocessing, is_action_mask
from rollstream.graph.components.image import Channels, is_image
from rollstream.graph.components.preprocessing import Chains
from rollstream.graph.components.preprocessing.chain import NormalizeSetting
from rollstream.spaces import Leaf

__all__ = ["preprocessing"]


def preprocessing(
    observation: tuple[Leaf, ...], chains: Chains, *, channels: Channels, normalize: bool = False
) -> Preprocessing | None:
    """What stands in front of the networks; None when there is nothing to do.

    Args:
        chains: what is done to each leaf, by its name.
        normalize: at the end of the chain of every Box that is no image and no mask, numbers are normalized by running statistics.
    """
    found = dict(chains)
    for leaf in observation if normalize else ():
        if leaf.kind == "box" and not is_image(leaf) and not is_action_mask(leaf):
            found[leaf.name] = (*found.get(leaf.name, ()), NormalizeSetting())
    return Preprocessing(observation, chains=found, channels=channels) if found else None
