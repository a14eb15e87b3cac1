"""PPO in environments with several agents: one policy shared by all, or as many as there are kinds of agents."""

__all__: list[str] = []
