"""The noise that actors and learner share: normal numbers that both make from one seed, so that only places in it need to travel."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.seeding import child_generator

__all__ = ["NoiseTable"]


class NoiseTable:
    """`numbers` standard normal numbers (Salimans et al. 2017, section 2.1). Made when it is first looked at: 4 bytes a number.

    Vectors at random places overlap now and then; in a table much larger than a vector their correlation is lost in the noise.
    """

    def __init__(self, *, seed: int, numbers: int) -> None:
        self.seed = seed
        self.numbers = numbers

    def draw(self, generator: np.random.Generator, *, size: int) -> int:
        """A random place of a vector of `size` numbers."""
        if size > self.numbers:
            raise ConfigError(
                f"noise_numbers is {self.numbers}, but the policy has {size} parameters; a noise table needs many times as many"
            )
        return int(generator.integers(self.numbers - size + 1))

    def at(self, place: int, *, size: int) -> npt.NDArray[np.float32]:
        """The vector [size] at `place`; a view."""
        if not 0 <= place <= self.numbers - size:
            raise ConfigError(
                f"there is no noise of {size} numbers at place {place} of a table of {self.numbers}; "
                "run the same settings on all sides"
            )
        return self._table[place : place + size]

    @cached_property
    def _table(self) -> npt.NDArray[np.float32]:
        table = child_generator(self.seed, "noise table").standard_normal(self.numbers, dtype=np.float32)
        table.flags.writeable = False
        return table
