"""O55: the reward was NaN in logs though data flowed, because no episode had finished in the window."""

from __future__ import annotations

import json
import math

from rollstream.metrics import Exposition, Gauges, Report, names, render


def test_a_report_without_finished_episodes_says_null_and_zero_episodes() -> None:
    report = Report(
        env_steps=1_000, episodes=0, mean_return=math.nan, lag=math.inf, metrics={"loss": math.nan}, waits={"a -> b": math.nan}
    )
    text = json.dumps(report.to_json(), allow_nan=False)
    data = json.loads(text)
    assert (data["mean_return"], data["episodes"], data["lag"], data["metrics"], data["waits"]) == (
        None, 0, None, {"loss": None}, {"a -> b": None},
    )  # fmt: skip


def test_prometheus_never_shows_nan() -> None:
    gauges = Gauges()
    gauges.set(names.MEAN_RETURN, math.nan, experiment="x-1")
    gauges.set(names.LAG, 2.0, experiment="x-1")
    text = render(Exposition(gauges).registry()).decode()
    assert "nan" not in text.lower().replace("rollstream_lag", "")
    assert 'rollstream_lag_versions{experiment="x-1"} 2.0' in text
