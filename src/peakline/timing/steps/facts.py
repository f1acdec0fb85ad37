"""What the findings of time need of a profile's steps: ``step_breakdown`` as arrays and sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Float64Array, Int64Array
from peakline.shown import Shown, Tabular
from peakline.tables import Columns, Profile
from peakline.tables.once import once
from peakline.tables.tables import arrow_of
from peakline.text import counted, population_of, time_text

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = {
    "compute_ps": "device compute",
    "communication_ps": "communication",
    "device_to_device_ps": "copies between devices",
    "device_to_host_ps": "copies to the host",
    "host_to_device_ps": "copies to the device",
    "input_wait_ps": "waiting for input",
    "compile_ps": "compilation",
    "launch_ps": "launching work",
    "host_compute_ps": "host compute",
    "idle_ps": "idle, cause unknown",
    "unknown_ps": "no event recorded",
}
"""The columns of ``step_breakdown`` that add up to a step's time, and what they are called."""

SLOW = 2.0
"""A step is slow when it takes so many times the median: clocks, caches and other programs on the
machine stretch steps by half, and seldom by more."""

FEWEST_STEPS = 5
"""Fewer steps have no median worth the name."""

WARM_UP = 2
"""The first steps of a run compile, trace and fill caches: what only they do is no fault."""


@dataclass(frozen=True, eq=False, repr=False)
class StepFacts(Shown, Tabular):
    """The steps of a profile, a row for each step and device, device by device in order of time.

    ``device`` is each row's place in ``devices``; without a device all rows are of the host, and
    ``devices`` is empty. ``number`` counts the steps of each device from 0. ``cut_off`` are the
    rows of steps that the record does not hold whole, which are not among the others (unless there
    are no others). ``found_by`` is how the steps were found, as in the table ``steps``.
    """

    table: Columns
    devices: tuple[str, ...]
    device: Int64Array
    number: Int64Array
    cut_off: Columns
    found_by: str | None = None

    @property
    def rows(self) -> int:
        """Steps times devices."""
        return self.table.rows

    @property
    def has_device(self) -> bool:
        """Whether the profile has a device's work."""
        return bool(self.devices)

    @property
    def lanes(self) -> int:
        """How many devices, or hosts, run side by side: sums over rows divided by it are time."""
        return max(len(self.devices), 1)

    @cached_property
    def count(self) -> int:
        """The number of steps."""
        return int(np.unique(self.part("step_id")).size)

    @property
    def number_of_steps(self) -> int:
        """How many steps a person would count: where devices count apart, all of theirs."""
        return self.rows if self.is_apart else self.count

    @property
    def is_inferred(self) -> bool:
        """Whether nothing marked the steps: they are runs of functions."""
        return self.found_by == "function"

    @cached_property
    def populations(self) -> tuple[str, ...]:
        """What steps are called without their number (train, eval), the ones with most time
        first: each has a median of its own.
        """
        code, names = self._population
        wall = np.bincount(code, self.part("wall_ps").astype(np.float64), len(names))
        return tuple(names[k] for k in np.argsort(-wall, kind="stable").tolist())

    @property
    def population_codes(self) -> Int64Array:
        """Of which population each row is: a number that is the same for all of one."""
        return self._population[0]

    @cached_property
    def _population(self) -> tuple[Int64Array, list[str]]:
        return self.table.names("name").grouped(population_of)

    def only(self, population: str) -> StepFacts:
        """The steps of one of `populations`."""
        if len(self.populations) < 2:
            return self
        code, names = self._population
        rows = np.flatnonzero(code == names.index(population))
        return replace(
            self, table=self.table.take(rows), device=self.device[rows], number=self.number[rows]
        )

    @cached_property
    def main(self) -> StepFacts:
        """The steps of the population that takes most time."""
        return self.only(self.populations[0]) if self.rows else self

    def part(self, name: str) -> Int64Array:
        """A column of ``step_breakdown``."""
        return self.table.array(name)

    def total(self, *names: str) -> int:
        """The sum of columns over all rows, in ps of all devices together."""
        return sum(int(self.part(name).sum()) for name in names)

    @cached_property
    def wall_ps(self) -> int:
        """The time of all steps, of all devices together."""
        return self.total("wall_ps")

    @cached_property
    def period_ps(self) -> int:
        """The time of all steps and of what lies between them."""
        return self.wall_ps + self.total("gap_before_ps")

    @cached_property
    def median_ps(self) -> int:
        """The median of all rows' times."""
        return round(float(np.median(self.part("wall_ps")))) if self.rows else 0

    def share(self, *names: str) -> float:
        """How much of the steps' time these parts take, 0 to 1."""
        return self.total(*names) / self.wall_ps if self.wall_ps else 0.0

    def label(self, row: int) -> str:
        """What to call the step of a row."""
        return self.table.names("name")[row] or str(int(self.part("step_id")[row]))

    @cached_property
    def is_apart(self) -> bool:
        """Whether devices count steps of their own: windows of one number do not all overlap.

        The cores of a TPU do when the host marks no steps and one ran more programs than another:
        from then on the same number is not the same step.
        """
        ids, start = self.part("step_id"), self.part("start_ps")
        if len(self.devices) < 2:
            return False
        order = np.argsort(ids, kind="stable")
        first = np.flatnonzero(np.concatenate([[True], np.diff(ids[order]) != 0]))
        begun = np.maximum.reduceat(start[order], first)
        return bool((begun > np.minimum.reduceat(self.part("end_ps")[order], first)).any())

    def of_device(self, device: int) -> AnyArray:
        """The rows of a device, in order of time."""
        return np.flatnonzero(self.device == device)

    def rows_of(self, device: int, population: str) -> Int64Array:
        """The rows of a device that are of one of `populations`, in order of time."""
        code, names = self._population
        return np.flatnonzero((self.device == device) & (code == names.index(population)))

    def slowest_lane(self) -> tuple[Int64Array, Int64Array]:
        """Per step, in order of time, its longest window over devices: rows, and their times.

        Where devices count apart (`is_apart`) every row is a step.
        """
        wall, ids = self.part("wall_ps"), self.part("step_id")
        if self.is_apart:
            every = np.argsort(self.part("start_ps"), kind="stable")
            return every, wall[every]
        order = np.lexsort((-wall, ids))
        first = np.concatenate([[True], np.diff(ids[order]) != 0]) if order.size else order
        rows = order[first.astype(bool)]
        rows = rows[np.argsort(self.part("start_ps")[rows], kind="stable")]
        return rows, wall[rows]

    def slow_rows(self) -> Int64Array:
        """Of the rows of `slowest_lane` those that take `SLOW` times the median or more of their
        population; none where most steps took no time: damage, of which nothing is a multiple.
        """
        rows, wall = self.slowest_lane()
        usual = self.usual_ps(rows)
        return rows[(usual > 0) & (wall >= SLOW * usual)]

    @cached_property
    def is_slow(self) -> BoolArray:
        """Which rows are of the steps of `slow_rows`, on all devices unless they count apart."""
        slow = self.slow_rows()
        if self.is_apart:
            return np.isin(np.arange(self.rows), slow)
        ids = self.part("step_id")
        return np.isin(ids, ids[slow])

    @cached_property
    def is_first(self) -> BoolArray:
        """Which rows are of the first steps of their population on their device."""
        return first_steps(self.device, self.population_codes)

    def middle_row(self, row: int) -> int:
        """The row of the device and population of ``row`` that takes the median time; of an even
        number the shorter one.
        """
        return self._middles[int(self.device[row]), int(self.population_codes[row])]

    @cached_property
    def _middles(self) -> dict[tuple[int, int], int]:
        result = {}
        for device in range(self.lanes):
            own = np.flatnonzero(self.device == device)
            for code in np.unique(self.population_codes[own]).tolist():
                rows = own[self.population_codes[own] == code]
                result[device, code] = median_row(rows, self.part("wall_ps")[rows])
        return result

    def usual_ps(self, rows: Int64Array) -> Float64Array:
        """For each of the ``rows`` of `slowest_lane` the median of its population; infinite where
        that is of fewer than `FEWEST_STEPS`.
        """
        every, wall = self.slowest_lane()
        code = self._population[0]
        usual = np.full(len(self._population[1]), np.inf)
        for number in np.unique(code).tolist():
            own = wall[code[every] == number]
            if own.size >= FEWEST_STEPS:
                usual[number] = np.median(own)
        return usual[code[rows]]

    def to_arrow(self) -> pa.Table:
        """The rows of ``step_breakdown``, steps that are cut off left out."""
        return arrow_of("step_breakdown", self.table)

    def _headline(self) -> str:
        if not self.rows:
            return "no steps"
        on = f" on {counted(len(self.devices), 'device')}" if self.has_device else ""
        return f"{counted(self.number_of_steps, 'step')}{on}, median {time_text(self.median_ps)}"


def first_steps(device: AnyArray, population: AnyArray) -> BoolArray:
    """Of steps in order of time by device, which are the first `WARM_UP` of their population there:
    what only they take longer for is no fault.
    """
    order = np.lexsort((population, device))
    one, other = device[order], population[order]
    begins = np.ones(order.size, np.bool_)
    begins[1:] = (one[1:] != one[:-1]) | (other[1:] != other[:-1])
    rank = np.arange(order.size) - np.maximum.accumulate(np.where(begins, np.arange(order.size), 0))
    result = np.zeros(order.size, np.bool_)
    result[order] = rank < WARM_UP
    return result


def median_row(rows: Int64Array, wall: Int64Array) -> int:
    """Of ``rows``, whose steps take ``wall``, the middle one; of an even number the shorter."""
    order = np.argsort(wall, kind="stable")
    return int(rows[order[(order.size - 1) // 2]])


@once
def step_facts_of(profile: Profile) -> StepFacts:
    """The steps of ``profile``, read once; no rows without steps.

    Raises InputError when the profile cannot be read.
    """
    table = profile.columns_or_empty("step_breakdown")
    names = table.names("device")
    order = np.lexsort((table.array("start_ps"), names.codes))
    is_cut = table.array("is_cut_off")[order]
    if is_cut.all():
        is_cut = np.zeros(is_cut.size, np.bool_)
    cut_off, table = table.take(order[is_cut]), table.take(order[~is_cut])
    names = table.names("device")
    codes = names.codes
    used, device = np.unique(codes, return_inverse=True)
    devices = tuple(names.values[code] for code in used.tolist() if code >= 0)
    first = np.searchsorted(device, np.arange(used.size))
    number = np.arange(table.rows) - (first[device] if used.size else 0)
    found_by = table.names("found_by")[0] if table.rows else None
    return StepFacts(table, devices, device.astype(np.int64), number, cut_off, found_by)


def steps_at(profile: Profile, times: AnyArray) -> Int64Array:
    """The number of steps of the main population that have begun by each time, of any device.

    Raises InputError when the profile cannot be read.
    """
    begins = np.unique(step_facts_of(profile).main.part("start_ps"))
    return np.searchsorted(begins, times, "right")
