"""Deep deterministic policy gradient (Lillicrap et al. 2016): TD3 without its three tricks."""

__all__: list[str] = []
