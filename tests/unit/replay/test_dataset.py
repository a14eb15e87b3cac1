"""A dataset over a source of samples: how it ends, and that it does not when something is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from rollstream.errors import ConfigError, DeadlineExceeded
from rollstream.replay.dataset import SampleDataset
from rollstream.replay.sample import Sample

OPENED: list[Source] = []


@dataclass
class Source:
    """Gives samples whose one column counts, and after `gives` of them nothing in time."""

    gives: int = 1_000
    drawn: list[int] = field(default_factory=list)
    closed: bool = False

    def sample(self, *, batch_items: int, deadline_s: float) -> Sample:
        if len(self.drawn) == self.gives:
            raise DeadlineExceeded(f"table t waited {deadline_s} s for writers")
        self.drawn.append(batch_items)
        zeros = np.zeros(batch_items)
        item = {name: zeros.astype(np.int32) for name in ("times_sampled", "lengths", "lead", "lag")}
        return Sample(
            keys=zeros.astype(np.uint64),
            probability=zeros,
            priority=zeros.astype(np.float32),
            table_items=9,
            version=zeros.astype(np.uint32),
            age_rows=zeros.astype(np.uint32),
            rows={"reward": np.full((batch_items, 1), len(self.drawn), np.float32)},
            mask=np.ones((batch_items, 1), np.bool_),
            **item,
        )

    def close(self) -> None:
        self.closed = True


def open_source() -> Source:
    OPENED.append(Source())
    return OPENED[-1]


@pytest.fixture(autouse=True)
def opened() -> Iterator[list[Source]]:
    OPENED.clear()
    yield OPENED


def test_an_iteration_ends_after_so_many_batches_and_closes_its_client(opened: list[Source]) -> None:
    dataset = SampleDataset(open_source, batch_items=4, batches=3)
    assert not opened, "nothing is opened before a process iterates"
    for _ in range(2):
        batches = list(DataLoader(dataset, batch_size=None))
        assert [batch["reward"][0, 0].item() for batch in batches] == [1.0, 2.0, 3.0]
        assert batches[0]["item.keys"].shape == (4,)
    assert [source.closed for source in opened] == [True, True]
    assert opened[0].drawn == [4, 4, 4]


def test_without_a_number_it_goes_on_until_it_is_left(opened: list[Source]) -> None:
    batches = iter(SampleDataset(open_source, batch_items=1))
    for _ in range(50):
        next(batches)
    del batches
    assert opened[0].closed


def test_a_starved_dataset_raises_and_does_not_end(opened: list[Source]) -> None:
    for workers in (0, 1):
        dataset = SampleDataset(lambda: Source(gives=2), batch_items=1, deadline_s=0.5)
        taken = 0
        with pytest.raises(DeadlineExceeded, match=r"table t waited 0.5 s for writers"):
            for _ in DataLoader(dataset, batch_size=None, num_workers=workers):
                taken += 1
        assert taken == 2


def test_workers_share_the_batches() -> None:
    dataset = SampleDataset(open_source, batch_items=2, batches=5)
    batches = list(DataLoader(dataset, batch_size=None, num_workers=2))
    assert sorted(batch["reward"][0, 0].item() for batch in batches) == [1.0, 1.0, 2.0, 2.0, 3.0]
    few = SampleDataset(open_source, batch_items=2, batches=1)
    assert len(list(DataLoader(few, batch_size=None, num_workers=2))) == 1


def test_a_transform_decides_what_a_batch_is() -> None:
    dataset = SampleDataset(open_source, batch_items=2, batches=1, transform=lambda sample: sample.rows["reward"])
    [batch] = list(dataset)
    assert batch.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("sizes", [{"batch_items": 0}, {"batch_items": 1, "batches": 0}, {"batch_items": 1, "deadline_s": 0.0}])
def test_sizes_that_cannot_be_are_refused(sizes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="SampleDataset needs batch_items >= 1, batches >= 1 or None, and deadline_s > 0"):
        SampleDataset(open_source, **sizes)


def test_the_package_loads_torch_only_when_a_dataset_is_asked_for() -> None:
    check = (
        "import sys, rollstream.replay as replay; assert 'torch' not in sys.modules; "
        "assert replay.SampleDataset.__name__ == 'SampleDataset'; assert 'torch' in sys.modules; assert not hasattr(replay, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
