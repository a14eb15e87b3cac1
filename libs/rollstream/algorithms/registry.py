"""Which algorithms there are: our own, and those of installed packages.

A package brings an algorithm by an entry point of the group `rollstream.algorithms`, which names an `Algorithm`:

    [project.entry-points."rollstream.algorithms"]
    my-ppo = "my_package.my_ppo:ALGORITHM"

Only what is installed can be named, so a spec from the network never chooses what is imported. Pages are imported when asked for.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollstream.config import Frozen, load, suggestion
from rollstream.errors import ConfigError
from rollstream.spaces import Leaf
from rollstream.user_code import error_line, user_traceback

if TYPE_CHECKING:
    from rollstream.algorithms.agent import Agent
    from rollstream.flow import Stream

__all__ = [
    "Algorithm",
    "algorithm",
    "known",
    "make_agent",
    "make_flow",
    "needs_replay",
    "register",
    "settings_type",
    "takes_actors",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One algorithm: a package of three pages (`config.py`, `agent.py`, `flow.py`)."""

    name: str
    package: str
    """Package of the pages, or the module that is all of them."""
    settings: str
    """Class of its settings, in `config.py`."""
    agent: str
    """Class of its agent, in `agent.py`."""
    needs_replay: bool
    """True when its flow has tables."""
    summary: str = ""
    """What it is, in one line; its paper."""
    spaces: str = ""
    """Actions and observations that it is for, e.g. `any actions; any observations` or `one Discrete action; any observations`."""
    policy: str = ""
    """Whose experience it learns from: `on-policy`, `off-policy` or `offline`."""
    status: str = "new"
    """`proven`: reaches its stated return in tests/learning with every seed; `new`: not measured yet."""

    def page(self, name: str) -> Any:
        """The module `config`, `agent` or `flow` of this algorithm; one in a single file is all three."""
        module = f"{self.package}.{name}"
        try:
            found = importlib.import_module(self.package)
            return importlib.import_module(module) if hasattr(found, "__path__") else found
        except Exception as error:
            raise _import_failed(self.name, module, error) from error

    def member(self, page: str, name: str) -> Any:
        """What is called `name` on a page."""
        module = self.page(page)
        if not hasattr(module, name):
            raise ConfigError(f"algorithm {self.name!r}: {module.__name__} has no {name!r}; define it, or correct its Algorithm")
        return getattr(module, name)


GROUP = "rollstream.algorithms"
ALGORITHMS = {
    entry.name: entry
    for entry in (
        Algorithm(
            name="ppo",
            package=f"{GROUP}.ppo",
            settings="PpoConfig",
            agent="PpoAgent",
            needs_replay=False,
            summary="proximal policy optimization (Schulman et al. 2017)",
            spaces="any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="dqn",
            package=f"{GROUP}.dqn",
            settings="DqnConfig",
            agent="DqnAgent",
            needs_replay=True,
            summary="double deep Q-learning, n-step, prioritized; dueling, C51 or quantiles by settings (Mnih et al. 2015)",
            spaces="one Discrete action; any observations",
            policy="off-policy",
            status="proven",
        ),
        Algorithm(
            name="rainbow",
            package=f"{GROUP}.dqn",
            settings="RainbowConfig",
            agent="DqnAgent",
            needs_replay=True,
            summary="DQN with C51, dueling streams and noisy networks (Hessel et al. 2018)",
            spaces="one Discrete action; any observations",
            policy="off-policy",
        ),
        Algorithm(
            name="apex",
            package=f"{GROUP}.apex",
            settings="ApexConfig",
            agent="ApexAgent",
            needs_replay=True,
            summary="distributed prioritized replay: priorities from the actors, each exploring in its own way (Horgan et al. 2018)",
            spaces="one Discrete action; any observations",
            policy="off-policy",
        ),
        Algorithm(
            name="r2d2",
            package=f"{GROUP}.r2d2",
            settings="R2d2Config",
            agent="R2d2Agent",
            needs_replay=True,
            summary="recurrent action values from replayed sequences with burn-in (Kapturowski et al. 2019)",
            spaces="one Discrete action; any observations",
            policy="off-policy",
            status="proven",
        ),
        Algorithm(
            name="a2c",
            package=f"{GROUP}.a2c",
            settings="A2cConfig",
            agent="A2cAgent",
            needs_replay=False,
            summary="advantage actor-critic, one update a round (Mnih et al. 2016)",
            spaces="any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="a3c",
            package=f"{GROUP}.a3c",
            settings="A3cConfig",
            agent="A3cAgent",
            needs_replay=False,
            summary="gradients computed in the actors, applied in order of arrival (Mnih et al. 2016)",
            spaces="any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="appo",
            package=f"{GROUP}.appo",
            settings="AppoConfig",
            agent="AppoAgent",
            needs_replay=False,
            summary="asynchronous PPO: IMPALA's flow, a clip around a target network (Luo et al. 2020)",
            spaces="any actions; any observations",
            policy="on-policy",
        ),
        Algorithm(
            name="ddppo",
            package=f"{GROUP}.ddppo",
            settings="DdppoConfig",
            agent="DdppoAgent",
            needs_replay=False,
            summary="PPO whose actors learn together, decentralized, by all-reduce (Wijmans et al. 2020)",
            spaces="any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="es",
            package=f"{GROUP}.es",
            settings="EsConfig",
            agent="EsAgent",
            needs_replay=False,
            summary="evolution strategies: places of shared noise and returns cross the edge, no gradient (Salimans et al. 2017)",
            spaces="any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="ars",
            package=f"{GROUP}.ars",
            settings="ArsConfig",
            agent="ArsAgent",
            needs_replay=False,
            summary="augmented random search with a linear policy (Mania et al. 2018)",
            spaces="any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="maml",
            package=f"{GROUP}.maml",
            settings="MamlConfig",
            agent="MamlAgent",
            needs_replay=False,
            summary="weights from which one gradient step in the actors learns a task (Finn et al. 2017)",
            spaces="any actions; any observations; environments with a reset option task",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="impala",
            package=f"{GROUP}.impala",
            settings="ImpalaConfig",
            agent="ImpalaAgent",
            needs_replay=False,
            summary="actors run ahead, V-trace corrects (Espeholt et al. 2018)",
            spaces="any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="sac",
            package=f"{GROUP}.sac",
            settings="SacConfig",
            agent="SacAgent",
            needs_replay=True,
            summary="soft actor-critic with a temperature that finds itself (Haarnoja et al. 2018; discrete: Christodoulou 2019)",
            spaces="Boxes with bounds, or one Discrete action; any observations",
            policy="off-policy",
        ),
        Algorithm(
            name="td3",
            package=f"{GROUP}.td3",
            settings="Td3Config",
            agent="Td3Agent",
            needs_replay=True,
            summary="twin delayed deterministic policy gradient (Fujimoto et al. 2018)",
            spaces="Boxes with bounds; any observations",
            policy="off-policy",
            status="proven",
        ),
        Algorithm(
            name="ddpg",
            package=f"{GROUP}.ddpg",
            settings="DdpgConfig",
            agent="DdpgAgent",
            needs_replay=True,
            summary="deep deterministic policy gradient (Lillicrap et al. 2016)",
            spaces="Boxes with bounds; any observations",
            policy="off-policy",
            status="proven",
        ),
        Algorithm(
            name="bc",
            package=f"{GROUP}.bc",
            settings="BcConfig",
            agent="BcAgent",
            needs_replay=True,
            summary="behavior cloning: do as the recorded data did (Pomerleau 1991)",
            spaces="any actions; any observations",
            policy="offline",
            status="proven",
        ),
        Algorithm(
            name="marwil",
            package=f"{GROUP}.marwil",
            settings="MarwilConfig",
            agent="MarwilAgent",
            needs_replay=True,
            summary="imitation weighted by how well it went (Wang et al. 2018)",
            spaces="any actions; any observations",
            policy="offline",
            status="proven",
        ),
        Algorithm(
            name="cql",
            package=f"{GROUP}.cql",
            settings="CqlConfig",
            agent="CqlAgent",
            needs_replay=True,
            summary="conservative Q-learning from recorded data, on SAC or on double Q-learning (Kumar et al. 2020)",
            spaces="Boxes with bounds, or one Discrete action; any observations",
            policy="offline",
            status="proven",
        ),
        Algorithm(
            name="multi-ppo",
            package=f"{GROUP}.multi_ppo",
            settings="MultiPpoConfig",
            agent="MultiPpoAgent",
            needs_replay=False,
            summary="PPO for several agents, with shared or separate policies (de Witt et al. 2020)",
            spaces="several agents; any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="qmix",
            package=f"{GROUP}.qmix",
            settings="QmixConfig",
            agent="QmixAgent",
            needs_replay=True,
            summary="one team reward, agents that act apart: monotonic mixing of their values (Rashid et al. 2018)",
            spaces="several agents with one Discrete action each; any observations",
            policy="off-policy",
            status="proven",
        ),
        Algorithm(
            name="self-play",
            package=f"{GROUP}.self_play",
            settings="SelfPlayConfig",
            agent="SelfPlayAgent",
            needs_replay=False,
            summary="PPO against a growing league of its own frozen snapshots (Bansal et al. 2018)",
            spaces="zero-sum games of agents with equal spaces; any actions; any observations",
            policy="on-policy",
            status="proven",
        ),
        Algorithm(
            name="two-trainer",
            package=f"{GROUP}.two_trainer",
            settings="TwoTrainerConfig",
            agent="TwoTrainerAgent",
            needs_replay=True,
            summary="a PPO policy and a DQN policy in one environment with several agents (Liang et al. 2021)",
            spaces="several agents; any actions for ppo, one Discrete for dqn; any observations",
            policy="on-policy and off-policy",
            status="proven",
        ),
    )
}


def register(entry: Algorithm) -> None:
    """Let this process know an algorithm: for scripts, notebooks and tests, which train inline. A cell needs an installed package."""
    if entry.name in ALGORITHMS and ALGORITHMS[entry.name] != entry:
        raise ConfigError(
            f"there is an algorithm {entry.name!r} already, of {ALGORITHMS[entry.name].package}; choose another name"
        )
    ALGORITHMS[entry.name] = entry


def known() -> list[str]:
    """Names of all algorithms."""
    return sorted({*ALGORITHMS, *(entry.name for entry in importlib.metadata.entry_points(group=GROUP))})


def algorithm(name: str) -> Algorithm:
    """The algorithm called `name`; a `ConfigError` with a suggestion when there is none."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        try:
            found = entry.load()
        except Exception as error:
            raise _import_failed(name, entry.value, error) from error
        if not isinstance(found, Algorithm):
            raise ConfigError(
                f"entry point {name!r} of {GROUP} must name an Algorithm, {entry.value} is a {type(found).__name__}; "
                "see docs/algorithms.md"
            )
        return found
    raise ConfigError(f"unknown algorithm {name!r}{suggestion(name, known())}")


def settings_type(name: str) -> type[Frozen]:
    """The class of settings of the algorithm called `name`."""
    entry = algorithm(name)
    found: type[Frozen] = entry.member("config", entry.settings)
    return found


def make_agent(name: str, settings: Mapping[str, Any], *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> Agent:
    """The agent of the algorithm called `name`, for an environment with these leaves.

    Raises:
        ConfigError: unknown algorithm; every bad setting by its path `settings.<name>`.
        SpaceError: the environment's spaces do not suit the algorithm.
    """
    entry = algorithm(name)
    config = load(settings_type(name), settings, what=f"settings of {name}", path="settings")
    made: Agent = entry.member("agent", entry.agent)(config, observation=observation, actions=actions)
    return made


def make_flow(name: str, agent: Agent, *, actors: int) -> Stream[Any]:
    """The flow of the algorithm called `name`, with the settings of `agent`; its tables are handed over by name."""
    from rollstream.flow import Actors, LearnerHandle, TableHandle

    describe = algorithm(name).member("flow", "flow")
    tables = {table: TableHandle(name=table) for table in agent.table_names}
    stream: Stream[Any] = describe(agent.config, actors=Actors(count=actors), learner=LearnerHandle(), **tables)
    return stream


def needs_replay(name: str) -> bool:
    """True when the algorithm called `name` uses replay tables."""
    return algorithm(name).needs_replay


def takes_actors(name: str) -> bool:
    """False when the algorithm called `name` learns from recorded data alone, so that actors would have nothing to do."""
    entry = ALGORITHMS.get(name)
    return entry is None or entry.policy != "offline"


def _import_failed(name: str, what: str, error: Exception) -> ConfigError:
    return ConfigError(f"algorithm {name!r}: {what} cannot be imported: {error_line(error)}\n{user_traceback(error)}".rstrip())
