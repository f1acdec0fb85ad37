"""A series of profiles in order of time: what grows from each to the next.

A heap is one moment, and says nothing of growth by itself; several of one program do. What is
compared is what lives at the peak of each, which of a heap is all that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from peakline.compare.state import SPECIAL, Kind
from peakline.findings.kinds.leak import KIND
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.compare.comparison import ProfileState
    from peakline.findings.finding import Finding

FEWEST = 3
"""Two profiles have a difference; so many show a direction."""
RISES = 0.75
"""What grows rises from one profile to the next in this share of them, and never falls below where
it began."""
SHARE = 0.02
"""... by this share of what is in use at the end, ..."""
LEAST = 1024
"""... and so many bytes."""


@dataclass(frozen=True)
class GroupSeries:
    """The bytes of one kind of buffer in each profile of the series."""

    allocator: str
    kind: Kind
    bytes: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def risen(self) -> int:
        """What it gained from the first to the last."""
        return self.bytes[-1] - self.bytes[0]

    @property
    def per_profile(self) -> float:
        """What it gains from one profile to the next."""
        return self.risen / (len(self.bytes) - 1)

    def as_json(self) -> dict[str, object]:
        """The columns of its kind, and its bytes and counts in each profile."""
        return {
            "allocator": self.allocator,
            **self.kind.as_json(),
            "bytes": list(self.bytes),
            "counts": list(self.counts),
        }


@dataclass(frozen=True, eq=False)
class Series:
    """``paths`` are the profiles in order, ``peaks`` per allocator its peak in each, ``medians``
    the median step of each in ps (None without steps), ``growing`` what grows, most bytes first.
    """

    paths: tuple[str, ...]
    peaks: dict[str, tuple[int, ...]]
    medians: tuple[int | None, ...]
    growing: tuple[GroupSeries, ...]

    @property
    def findings(self) -> list[Finding]:
        """What grows, as findings: one for each allocator."""
        return list(_findings(self))

    def as_json(self) -> dict[str, object]:
        """``series`` in ``peakline diff --json``."""
        return {
            "paths": list(self.paths),
            "peak_bytes": {name: list(values) for name, values in self.peaks.items()},
            "median_step_ps": list(self.medians),
            "growing": [one.as_json() for one in self.growing],
            "findings": [finding.as_json() for finding in self.findings],
        }


def series_of(states: Sequence[ProfileState]) -> Series:
    """What changes over three profiles or more; allocators are those that all of them have."""
    by_name = [{one.allocator: one for one in state.memory.allocators} for state in states]
    names = [name for name in by_name[0] if all(name in own for own in by_name)]
    growing: list[GroupSeries] = []
    for name in names:
        groups = [{group.kind: group for group in own[name].groups} for own in by_name]
        last = by_name[-1][name].peak_bytes
        for kind in groups[-1]:
            sizes = tuple(own[kind].bytes if kind in own else 0 for own in groups)
            counts = tuple(own[kind].count if kind in own else 0 for own in groups)
            if kind.op not in SPECIAL and _grows(sizes, last):
                growing.append(GroupSeries(name, kind, sizes, counts))
    growing.sort(key=lambda one: -one.risen)
    return Series(
        tuple(state.facts.path for state in states),
        {name: tuple(own[name].peak_bytes for own in by_name) for name in names},
        tuple(
            state.time.times.median_ps if state.time and state.time.times else None
            for state in states
        ),
        tuple(growing),
    )


def _grows(sizes: Sequence[int], whole: int) -> bool:
    if len(sizes) < FEWEST:
        return False
    rises = sum(after > before for before, after in pairwise(sizes))
    gained = sizes[-1] - sizes[0]
    return (
        rises >= RISES * (len(sizes) - 1)
        and min(sizes) >= sizes[0]
        and gained >= max(SHARE * whole, LEAST)
    )


def _findings(series: Series) -> Iterator[Finding]:
    for name in dict.fromkeys(one.allocator for one in series.growing):
        mine = [one for one in series.growing if one.allocator == name]
        first = mine[0]
        peaks = series.peaks[name]
        others = f" and {len(mine) - 1} more" if len(mine) > 1 else ""
        yield KIND.finding(
            f"{allocator_text(name)}: {size_text(round(first.per_profile))} more live in each of "
            f"{len(series.paths)} profiles: {first.kind.title}{others}",
            {
                "allocator": name,
                **first.kind.as_json(),
                "bytes_per_step": round(first.per_profile),
                "kept_bytes": sum(one.risen for one in mine),
                "steps": len(series.paths),
                "steps_found_by": "profiles",
                "peak_bytes": peaks[-1],
            },
            "Something retains what was made since the profile before: look for a list, a cache, a "
            "history or a closure that holds these arrays, and hold numbers instead.",
            tuple(
                {**one.kind.as_json(), "bytes_per_step": round(one.per_profile),
                 "held_bytes": one.bytes[-1]}
                for one in mine[:10]
            ),
        )  # fmt: skip
