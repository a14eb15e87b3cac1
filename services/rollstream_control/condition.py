"""Does an experiment get what it needs? A pure judgement that people see beside its phase.

The phase says what its learner did last; a learner that was killed cannot say that it is gone. So an experiment which should
work and has no live learner, no live actor or no replay shard is DEGRADED, with the reason in words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rollstream.store import ExperimentStatus, MemberRecord

__all__ = ["Condition", "Judgement", "judge"]

Condition: TypeAlias = Literal["OK", "WAITING", "DEGRADED", "ENDED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A condition and, in sentences, why it is not OK."""

    condition: Condition
    why: tuple[str, ...] = ()


def judge(
    status: ExperimentStatus,
    *,
    wanted: Literal["run", "pause", "stop"],
    members: Sequence[MemberRecord],
    seated: Collection[str],
    needs_replay: bool,
    table_shards: int = 1,
) -> Judgement:
    """How an experiment fares.

    Args:
        members: everybody who is live.
        seated: ids of the actors that control has given it, live or not.
        needs_replay: whether its algorithm uses replay tables.
        table_shards: over how many shards these are spread.
    """
    if status.ended:
        return Judgement(condition="ENDED")
    if wanted == "pause":
        return Judgement(condition="WAITING", why=("paused by order; resume it to go on",))
    learners = [member for member in members if member.role == "learner"]
    live = {member.id for member in members}
    if status.phase == "queued":
        why = "no learner is live" if not learners else "every learner is busy with another experiment"
        idle = any(not learner.doing for learner in learners)
        return Judgement(condition="WAITING", why=("a learner is about to take it" if idle else why,))
    lacks = []
    if not any(learner.doing == status.id for learner in learners):
        lacks.append("no live learner runs it: it goes on from its last checkpoint when one comes")
    if not live & set(seated):
        lacks.append("no live actor serves it: start actors, or wait until others give theirs back")
    if needs_replay:
        lacks += _absent_shards({member.shard or 0 for member in members if member.role == "replay"}, table_shards)
    return Judgement(condition="DEGRADED", why=tuple(lacks)) if lacks else Judgement(condition="OK")


def _absent_shards(live: Collection[int], needed: int) -> list[str]:
    absent = [str(shard) for shard in range(needed) if shard not in live]
    if not absent:
        return []
    if len(absent) == needed:
        return ["no replay shard is live, and its tables need " + ("one" if needed == 1 else str(needed))]
    which = f"shard {absent[0]} is" if len(absent) == 1 else f"shards {', '.join(absent)} are"
    return [f"replay {which} not live, and its tables lie on {needed}: samples and inserts of that part wait"]
