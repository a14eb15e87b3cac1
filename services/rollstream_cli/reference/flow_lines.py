"""How many lines each algorithm's dataflow takes, beside the paper of RLlib Flow and RLlib's own code.

The rule: lines of the body of the function `flow`, from its first statement to its last, without the docstring; line breaks are those
of our formatter, and blank lines and comments count. The paper counts "lines of code directly related to distributed execution,
comments and instrumentation included"; RLlib's functions were counted in its wheels, all lines.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from rollstream.algorithms.registry import ALGORITHMS
from rollstream_cli.reference.markdown import table

__all__ = ["THEIRS", "Theirs", "body_lines", "lines_table", "our_lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """Lines of one algorithm elsewhere; None where it does not exist, or was not counted.

    Attributes:
        name: as the paper calls it. ours: name of ours in the registry.
        paper: Liang et al. 2021 (arXiv 2011.12719), table 2, column of RLlib Flow.
        plan: its execution plan in ray 1.2.0. iteration: `training_iteration` in ray 1.13.0, after flow was removed.
        today: the training step in ray 2.60.0.
    """

    name: str
    ours: str
    paper: int | None = None
    plan: int | None = None
    iteration: int | None = None
    today: int | None = None

    @property
    def smallest(self) -> int:
        """The smallest of them."""
        return min(lines for lines in (self.paper, self.plan, self.iteration, self.today) if lines is not None)


THEIRS = (
    Theirs(name="A3C", ours="a3c", paper=9, plan=9, iteration=70),
    Theirs(name="A2C", ours="a2c", paper=25, plan=28, iteration=71),
    Theirs(name="DQN", ours="dqn", paper=87, plan=85, iteration=103, today=168),
    Theirs(name="PPO", ours="ppo", paper=79, plan=80, iteration=76, today=81),
    Theirs(name="Ape-X", ours="apex", paper=126, plan=123, iteration=224),
    Theirs(name="IMPALA", ours="impala", paper=89, plan=114, today=907),
    Theirs(name="MAML", ours="maml", paper=136, plan=128),
    Theirs(name="DDPPO", ours="ddppo", plan=111, iteration=55),
    Theirs(name="MARWIL", ours="marwil", plan=19, iteration=34, today=60),
    Theirs(name="QMIX", ours="qmix", plan=21, iteration=71),
    Theirs(name="PPO + DQN, two trainers", ours="two-trainer", plan=56, iteration=74),
)


def body_lines(page: str) -> int:
    """Lines of the body of `flow` in the text of a flow page, by the rule of this module.

    >>> body_lines('def flow(config):\\n    "What flows."\\n    a = 1\\n\\n    return a\\n')
    3
    """
    function = next(node for node in ast.parse(page).body if isinstance(node, ast.FunctionDef) and node.name == "flow")
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1


def our_lines() -> dict[str, int]:
    """Lines of the flow of every algorithm of ours, by name. One that takes another one's flow has its lines."""
    return {name: body_lines(inspect.getsource(entry.member("flow", "flow"))) for name, entry in sorted(ALGORITHMS.items())}


def lines_table(ours: Mapping[str, int]) -> str:
    """The comparison, then the algorithms that have none, as Markdown."""
    rows = [
        (one.name, f"**{ours[one.ours]}**", *(_cell(lines) for lines in (one.paper, one.plan, one.iteration, one.today)))
        for one in THEIRS
        if one.ours in ours
    ]
    compared = {one.ours for one in THEIRS}
    rest = ", ".join(f"{name} {lines}" for name, lines in ours.items() if name not in compared)
    head = ("algorithm", "ours", "paper: RLlib Flow", "ray 1.2.0, plan", "ray 1.13.0, without flow", "ray 2.60.0")
    return table(head, rows) + (f"\n\nWithout a counterpart there: {rest}." if rest else "")


def _cell(lines: int | None) -> str:
    return "-" if lines is None else str(lines)
