"""Learning: the learner's side of a flow, what it asks of an algorithm, and when a run has done its job."""

from rollstream.learning.agent import Learned, LearningAgent, SampledItems
from rollstream.learning.policies import PolicyLearners
from rollstream.learning.side import LearnerProcess, TableSource, WaitRecorder, WeightSink
from rollstream.learning.stopping import reason_to_stop
from rollstream.learning.summary import Results, weights_hash

__all__ = [
    "Learned",
    "LearnerProcess",
    "LearningAgent",
    "PolicyLearners",
    "Results",
    "SampledItems",
    "TableSource",
    "WaitRecorder",
    "WeightSink",
    "reason_to_stop",
    "weights_hash",
]
