"""Does an experiment get what it needs?"""

from __future__ import annotations

from rollstream.config import Phase
from rollstream.store import ExperimentStatus, MemberRecord
from rollstream_control.condition import judge

ACTOR = MemberRecord(id="actor-0", role="actor")
LEARNER = MemberRecord(id="learner-0", role="learner", doing="x-000000")
REPLAY = MemberRecord(id="replay-0", role="replay", shard=0)


def status(phase: Phase) -> ExperimentStatus:
    return ExperimentStatus(id="x-000000", phase=phase)


def test_an_experiment_with_learner_and_actor_is_ok() -> None:
    judgement = judge(status("running"), wanted="run", members=[ACTOR, LEARNER], seated=["actor-0"], needs_replay=False)
    assert (judgement.condition, judgement.why) == ("OK", ())


def test_everything_that_is_missing_is_listed() -> None:
    judgement = judge(status("running"), wanted="run", members=[], seated=["actor-0"], needs_replay=True)
    assert judgement.condition == "DEGRADED"
    assert [why.split(":")[0].split(",")[0] for why in judgement.why] == [
        "no live learner runs it",
        "no live actor serves it",
        "no replay shard is live",
    ]


def test_a_learner_that_works_on_something_else_does_not_count() -> None:
    other = MemberRecord(id="learner-1", role="learner", doing="y-000000")
    judgement = judge(status("running"), wanted="run", members=[ACTOR, other], seated=["actor-0"], needs_replay=False)
    assert judgement.condition == "DEGRADED"
    assert "no live learner" in judgement.why[0]


def test_a_table_is_only_missed_by_algorithms_that_have_one() -> None:
    members = [ACTOR, LEARNER]
    assert judge(status("running"), wanted="run", members=members, seated=["actor-0"], needs_replay=False).condition == "OK"
    members.append(REPLAY)
    assert judge(status("running"), wanted="run", members=members, seated=["actor-0"], needs_replay=True).condition == "OK"


def test_a_queued_experiment_says_for_whom_it_waits() -> None:
    idle = MemberRecord(id="learner-1", role="learner")
    for members, expected in (
        ([], "no learner is live"),
        ([LEARNER], "every learner is busy"),
        ([LEARNER, idle], "a learner is about to take it"),
    ):
        judgement = judge(status("queued"), wanted="run", members=members, seated=[], needs_replay=False)
        assert judgement.condition == "WAITING"
        assert expected in judgement.why[0]


def test_a_paused_experiment_waits_and_misses_nothing() -> None:
    for phase in ("queued", "running", "paused"):
        judgement = judge(status(phase), wanted="pause", members=[], seated=[], needs_replay=True)
        assert (judgement.condition, judgement.why) == ("WAITING", ("paused by order; resume it to go on",))


def test_an_experiment_that_has_ended_needs_nothing() -> None:
    assert judge(status("failed"), wanted="run", members=[], seated=[], needs_replay=True).condition == "ENDED"


def test_absent_shards_of_a_spread_table_are_named() -> None:
    replay = [MemberRecord(id=f"replay-{shard}", role="replay", shard=shard, ready=True) for shard in range(3)]

    def why(*live: int) -> tuple[str, ...]:
        members = [ACTOR, LEARNER, *(replay[shard] for shard in live)]
        return judge(status("running"), wanted="run", members=members, seated=["actor-0"], needs_replay=True, table_shards=3).why

    assert why(0, 1, 2) == ()
    assert why(0, 2) == ("replay shard 1 is not live, and its tables lie on 3: samples and inserts of that part wait",)
    assert why(1) == ("replay shards 0, 2 are not live, and its tables lie on 3: samples and inserts of that part wait",)
    assert why() == ("no replay shard is live, and its tables need 3",)
