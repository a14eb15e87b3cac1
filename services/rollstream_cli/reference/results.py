"""Keys of the JSON that programs read: the summary of a run, measurements, and what a table says. Declared here, once, with units.

A house test compares these with what the code writes.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["REPLAY_BENCH_KEYS", "SUMMARY_KEYS", "TABLE_KEYS", "TRAIN_BENCH_KEYS", "Key"]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a JSON object: its unit (`-` where it has none) and what it says."""

    name: str
    unit: str
    meaning: str


SUMMARY_KEYS = (
    Key("experiment", "-", "Id of the run."),
    Key("phase", "-", "`succeeded`, `failed` or `stopped`; not in inline mode."),
    Key("algorithm", "-", "As in the spec."),
    Key("environment", "-", "Id of the environment."),
    Key("seed", "-", "As in the spec."),
    Key("mean_return", "reward", "Mean return of the greedy evaluation; that of training when nothing was evaluated."),
    Key("evaluation_episodes", "episodes", "Greedy episodes behind `mean_return`; 0: it is that of training."),
    Key("training_mean_return", "reward", "Mean return of the last 100 training episodes; null before the first ended."),
    Key("env_steps", "environment steps", "Steps that actors took and the learner has counted."),
    Key("env_steps_trained", "environment steps", "Those that went into an update; 0 for algorithms with a table."),
    Key("env_steps_per_s", "environment steps per second", "`env_steps` / `wall_s`."),
    Key("updates", "updates", "Optimizer steps."),
    Key("updates_per_s", "updates per second", "`updates` / `wall_s`."),
    Key("episodes", "episodes", "Training episodes that ended."),
    Key("wall_s", "seconds", "Time of running, over all learners that had the run; without start and evaluation."),
    Key("lag", "versions", "Mean age of the weights that acted, over the rows trained on between the last two reports."),
    Key("max_lag", "versions", "The largest of these ages."),
    Key("version", "versions", "Number of the last published weights."),
    Key("actors_contributed", "actors", "Different actors whose messages the learner has read."),
    Key(
        "counters",
        "as named",
        "All counters; `name{reason}` where a counter is split. What adds up: [counters](operations.md#counters).",
    ),
    Key("tables", "as below", "Per replay table what its shard says (keys of a table, below); empty without tables."),
    Key("weights_sha256", "-", "SHA-256 of names and bytes of all weights, in the order of their names."),
    Key("checkpoint", "-", "Path of the last checkpoint; null when there is none (inline mode makes none)."),
    Key("learning_curve", "-", "Path of the picture; null when no episode ended."),
    Key(
        "start_to_first_update_s", "seconds", "From the start of the command's process to the learner's first update; not inline."
    ),
    Key("cores_used", "cores", "Processor seconds per second of all processes of the cell; not in inline mode."),
    Key("rss_total_mb", "MiB", "Resident memory of all processes at the moment when it was highest; not in inline mode."),
    Key("rss_mb", "MiB", "The same per member; `cli` is the command itself, `redis` the embedded server; not inline."),
    Key("restarts", "restarts", "Per member how often the supervisor had to start it again; not in inline mode."),
    Key("summary_file", "-", "Path of `summary.json`; not in inline mode."),
)
TRAIN_BENCH_KEYS = (
    Key("algorithm", "-", "As asked for."),
    Key("environment", "-", "Id of the environment."),
    Key("actors", "processes", "Actors of the run."),
    Key("envs_per_actor", "environments", "Environments that one actor steps as a batch."),
    Key("window_s", "seconds", "Length of the window, between two reports of the learner."),
    Key("env_steps_per_s", "environment steps per second", "Sampled in the window."),
    Key("env_steps_trained_per_s", "environment steps per second", "Trained on in the window; each step counts once."),
    Key("updates_per_s", "updates per second", "Optimizer steps in the window."),
    Key("lag", "versions", "Mean of the reports' `lag` in the window."),
    Key("mean_return", "reward", "Of the last 100 training episodes at the end of the window."),
    Key("start_to_first_update_s", "seconds", "From the start of the command's process to the learner's first update."),
    Key("cores_used", "cores", "Processor seconds per second of all processes in the window."),
    Key("cores_available", "cores", "That this process may use."),
    Key("rss_total_mb", "MiB", "Resident memory of all processes at the end of the window."),
    Key("rss_mb", "MiB", "The same per member."),
    Key("release", "-", "Version of Rollstream."),
)
TABLE_KEYS = (
    Key("items", "items", "In the table now."),
    Key("max_items", "items", "That it holds at most, over all shards."),
    Key("inserted", "items", "Ever inserted."),
    Key("sampled", "items", "Ever sampled; one that was drawn twice counts twice."),
    Key("samples_per_insert", "ratio", "`sampled` / `inserted`."),
    Key("unique_items_sampled", "items", "Of those inserted so far, sampled at least once."),
    Key("sampleable", "items", "That can be drawn now: without those of priority 0, and those that lag too far behind."),
    Key("mass", "weight", "Sum of the sampler's weights, by which a batch is split over shards."),
    Key("evicted", "items", "Removed because the table was full."),
    Key("exhausted", "items", "Removed because they were sampled `max_times_sampled` times."),
    Key("deleted", "items", "Removed by key."),
    Key("resets", "times", "That the table was emptied."),
    Key("updated", "items", "Written again under the key that they had."),
    Key("gated", "items", "That lag more than `max_lag_versions` behind, and are not sampled."),
    Key("missing_rows", "items", "Removed because their rows were gone from Redis."),
    Key("priorities_updated", "items", "That got another priority."),
    Key("priorities_refused", "items", "Whose new priority was NaN, infinite or negative."),
    Key("keys_stale", "items", "Named by an update or deletion when they were gone already."),
    Key("entries_waiting", "log entries", "Read by the shard and not admitted by the limiter yet."),
    Key("entries_repeated", "log entries", "Delivered again and passed over."),
    Key("entries_refused", "log entries", "That could not be read or did not fit."),
    Key("items_without_rows", "items", "Refused because the rows they name were never announced."),
    Key("items_without_table", "items", "Passed over because the table that they are for is not there."),
    Key("orphans_swept", "chunks", "Deleted because no item and no writer needed them."),
    Key("episodes", "episodes", "Of which some item is in the table."),
    Key("episodes_deleted", "episodes", "Of which the last item has left."),
    Key("rows_written", "rows", "Ever written; the clock by which items age."),
    Key("writers", "writers", "Known to the shard."),
    Key("samplers_waiting", "requests", "Sample requests that wait for the limiter."),
    Key("blocked_s", "seconds", "For which writers and samplers have been waiting for each other; 0: they are not."),
    Key("max_priority", "priority", "Highest so far: what a new item gets."),
    Key("newest_version", "versions", "Newest weights that the shard has heard of."),
    Key("bytes", "bytes", "Estimate of Redis memory that the rows take now."),
    Key("bytes_per_row", "bytes", "`bytes` per row that is stored."),
    Key("shard", "-", "Number of the shard; tables of inline mode have none."),
    Key("bytes_at_full", "bytes", "Estimate for the full table; refused at creation when above `maxmemory`."),
    Key("index_bytes_at_full", "bytes", "Estimate of the shards' own memory for the full table, over all of them."),
)
REPLAY_BENCH_KEYS = (
    Key("payload_bytes", "bytes", "Of one row, besides its flags and version."),
    Key("batch_items", "items", "Of one sample."),
    Key("sampler", "-", "`prioritized` or `uniform`."),
    Key("insert_items_per_s", "items per second", "By one writer, until the shard has admitted all of them."),
    Key("items_inserted", "items", "Behind that number."),
    Key("insert_cpu_us_per_item", "microseconds per item", "Processor time of client, replay service and Redis."),
    Key("sample_batch_p50_ms", "milliseconds", "Half of the batches came within this, each drawn at the time of the call."),
    Key("sample_batch_p99_ms", "milliseconds", "99 % of the batches did."),
    Key("sample_items_per_s_strict", "items per second", "In this measurement."),
    Key("sample_items_per_s", "items per second", "With batches asked for ahead, as a learner does; rows included."),
    Key("sample_cpu_us_per_item", "microseconds per item", "Processor time of client, replay service and Redis."),
    Key("table", "as below", "What the table says at the end."),
    Key("rss_mb", "MiB", "Resident memory of client, replay service and Redis."),
)
