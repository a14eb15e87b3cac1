"""Two trainers over one environment: a PPO policy and a DQN policy, each for its own agents."""

__all__: list[str] = []
