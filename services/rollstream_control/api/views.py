"""From records in Redis to what the API says about experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollstream.errors import ConfigError
from rollstream.store import Assignment, ExperimentStatus, MemberRecord
from rollstream_control.api.models import ActorSeat, ExperimentItem, ExperimentView
from rollstream_control.api.parts import CellParts
from rollstream_control.condition import judge
from rollstream_control.failure import Failure
from rollstream_control.submission.document import finite

__all__ = ["Surroundings", "item", "require_status", "view"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The cell around an experiment, read once for a whole list."""

    members: Sequence[MemberRecord]
    assignments: Mapping[str, Assignment]

    @staticmethod
    def read(parts: CellParts) -> Surroundings:
        return Surroundings(members=parts.members.list(), assignments=parts.assignments.all())

    def seats(self, experiment: str) -> tuple[ActorSeat, ...]:
        """The experiment's actors, by ordinal."""
        live = {member.id for member in self.members}
        found = [
            ActorSeat(member=actor, ordinal=entry.ordinal, live=actor in live)
            for actor, entry in self.assignments.items()
            if entry.experiment == experiment
        ]
        return tuple(sorted(found, key=lambda seat: seat.ordinal))


def require_status(parts: CellParts, experiment: str) -> ExperimentStatus:
    """The status of the experiment, or 404."""
    if not parts.experiments.exists(experiment):
        raise Failure(
            f"there is no experiment {experiment!r}; GET /v1/experiments lists those that there are",
            status=404,
            kind="no-experiment",
        )
    return parts.experiments.status(experiment)


def item(parts: CellParts, status: ExperimentStatus, around: Surroundings) -> ExperimentItem:
    """One line of a list."""
    return ExperimentItem.model_validate(_item_fields(parts, status, around))


def view(parts: CellParts, status: ExperimentStatus, around: Surroundings) -> ExperimentView:
    """Everything about one experiment."""
    newest = parts.experiments.newest_report(status.id)
    fields = _item_fields(parts, status, around) | {
        "detail": status.detail,
        "wanted": parts.experiments.wanted(status.id),
        "learner": status.learner,
        "actors": around.seats(status.id),
        "counters": parts.experiments.counters(status.id),
        "report": None if newest is None else finite(newest[1]),
        "summary": finite(dict(status.summary)),
        "spec": parts.experiments.spec(status.id),
    }
    return ExperimentView.model_validate(fields)


def _item_fields(parts: CellParts, status: ExperimentStatus, around: Surroundings) -> dict[str, object]:
    spec = parts.experiments.spec(status.id)
    judgement = judge(
        status,
        wanted=parts.experiments.wanted(status.id),
        members=around.members,
        seated=[seat.member for seat in around.seats(status.id)],
        needs_replay=_needs_replay(parts, spec.algorithm),
        table_shards=_table_shards(spec.settings.get("table_shards")),
    )
    return {
        "id": status.id,
        "phase": status.phase,
        "condition": judgement.condition,
        "why": judgement.why,
        "reason": status.reason,
        "algorithm": spec.algorithm,
        "environment": spec.environment.id,
        "submitted_s": status.submitted_s or None,
        "started_s": status.started_s,
        "ended_s": status.ended_s,
    }


def _table_shards(setting: object) -> int:
    """Over how many shards the tables lie; 1 for algorithms that do not say."""
    return setting if isinstance(setting, int) else 1


def _needs_replay(parts: CellParts, algorithm: str) -> bool:
    try:
        return parts.needs_replay(algorithm)
    except ConfigError:  # of a release that knew more algorithms
        return False
