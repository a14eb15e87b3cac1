"""What happens to observations between environment and network, as part of the graph. (Actions are brought to the environment's bounds
by the heads of policies.)"""

from rollstream.graph.components.preprocessing.chain import Chains, parse_chains
from rollstream.graph.components.preprocessing.clip import Clip
from rollstream.graph.components.preprocessing.crop import Crop
from rollstream.graph.components.preprocessing.grayscale import Grayscale
from rollstream.graph.components.preprocessing.one_hot import OneHot
from rollstream.graph.components.preprocessing.preprocessing import Preprocessing
from rollstream.graph.components.preprocessing.resize import Resize
from rollstream.graph.components.preprocessing.running_normalizer import RunningNormalizer, Statistics, merge
from rollstream.graph.components.preprocessing.scale import Scale

__all__ = [
    "Chains",
    "Clip",
    "Crop",
    "Grayscale",
    "OneHot",
    "Preprocessing",
    "Resize",
    "RunningNormalizer",
    "Scale",
    "Statistics",
    "merge",
    "parse_chains",
]
