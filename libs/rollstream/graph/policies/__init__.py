"""Policies: from observations to actions, and what a loss needs to know about them."""

from rollstream.graph.policies.categorical import CategoricalPolicy, Evaluation
from rollstream.graph.policies.epsilon_greedy import QPolicy

__all__ = ["CategoricalPolicy", "Evaluation", "QPolicy"]
