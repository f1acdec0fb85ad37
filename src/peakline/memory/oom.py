"""Why an allocation failed: too large, no memory left, or memory in pieces that are too small."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from peakline.arrays import IntpArray
from peakline.memory.peak.explained import AllocatorPeak
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.columns import Columns

MOMENT_PS = 10**12
"""Requests that fail within one second of each other fail together."""
_RANKS_PS = 300 * MOMENT_PS
"""Ranks that fail alike do so within so much of each other: each until its next collective."""
_ALIKE = 0.02
"""What ranks have in use differs by so much where they fail alike."""
_DIGITS = re.compile(r"\d+")
_TOP_CHUNKS = 5
_CONTEXT = 4 << 30
"""A process holds up to so much beside its pool: contexts, libraries, communicators."""
_MUCH_OUTSIDE = 0.1
"""What a process holds beside its pool is the cause from this share of the device on, ..."""
_LEAST_OUTSIDE = 5 << 29
"""... and so many bytes, which no context takes."""
_ROUNDED = 0.01
"""Sizes with two decimals differ by so much at most."""


OTHER_KINDS = frozenset(
    ("driver", "library", "cache_budget", "host_memory", "host_limit", "host_full", "killed",
     "shared_memory", "other_processes", "budget", "summary")
)  # fmt: skip
"""Failures of no allocator's request: what they are is their cause."""


@dataclass(frozen=True, repr=False)
class Failure(Brief):
    """One row of ``oom_reports`` with its ``oom_parts``; None for what the report does not say.

    ``parts`` are (name, subject, bytes).
    """

    time_ps: int
    allocator: str
    requested_bytes: int | None
    rounded_bytes: int | None
    op: str | None
    device: str | None
    data_type: str | None
    shape: str | None
    limit_bytes: int | None
    pool_bytes: int | None
    in_use_bytes: int | None
    free_bytes: int | None
    largest_free_bytes: int | None
    fragmentation: float | None
    device_free_bytes: int | None
    capacity_bytes: int | None
    kind: str | None
    source: str | None
    message: str | None
    is_complete: bool
    parts: tuple[tuple[str, str | None, int], ...] = ()

    @property
    def needed(self) -> int | None:
        """Bytes of the chunk that was needed."""
        return self.requested_bytes if self.rounded_bytes is None else self.rounded_bytes

    @property
    def would_fit(self) -> bool | None:
        """Whether a free chunk was large enough; None where the free chunks are not known."""
        if self.needed is None or self.largest_free_bytes is None:
            return None
        return self.largest_free_bytes >= self.needed

    @property
    def cause(self) -> str:
        """Why it failed, by all that the report says; `CAUSES` has the words."""
        if self.kind is not None and self.kind in OTHER_KINDS:
            return self.kind
        needed, free = self.needed, self.free_bytes
        if needed is None:
            return "unknown"
        if self.limit_bytes is not None and needed > self.limit_bytes:
            return "padding" if self._is_padded(needed - self.limit_bytes) else "larger_than_limit"
        if self.would_fit:
            return "held_back"
        if (self.device_free_bytes or 0) >= needed:
            beyond = self.part("allowed") is not None and not self._may_grow
            return "process_limit" if beyond and (free or 0) < needed else "refused"
        if (holder := self._holder(needed)) is not None:
            return holder
        if free is None:
            return "unknown" if self.device_free_bytes is None else "full"
        if free >= needed:
            is_pool = self.pool_bytes is not None or self.largest_free_bytes is not None
            # Without a pool it is what was left to the limit, which the device need not have had.
            return "fragmented" if is_pool or self.limit_bytes is None else "unknown"
        if self.part("allowed") is not None and not self._may_grow:
            return "process_limit"
        if self._may_grow:
            return "device_full"
        return "full"

    def _holder(self, needed: int) -> str | None:
        """Who has the memory, where it is not what this allocator has in use."""
        mine = self.pool_bytes or self.in_use_bytes or 0
        others, outside = self.others_bytes or 0, self.own_outside_bytes or 0
        other = self.part("other_allocations")
        if other is not None:
            return "other_allocations" if other >= max(mine, needed) else None
        if others > max(mine + outside, needed):
            return "other_processes"
        much = max(_MUCH_OUTSIDE * (self.capacity_bytes or 0), _LEAST_OUTSIDE)
        if outside >= max(much, needed):
            return "outside_allocator"
        private = self.part("private_pools") or 0
        if private >= needed and 2 * private >= (self.in_use_bytes or 0) > 0:
            return "private_pools"
        return None

    def part(self, name: str) -> int | None:
        """The first part of that name, in bytes."""
        return next((size for part, _, size in self.parts if part == name), None)

    @property
    def processes(self) -> dict[str, int]:
        """What each other process of the device held, by its id.

        In a container a process does not know its own id and is listed like the others: the one
        that holds what the pool has, and little more, is taken for this one.
        """
        listed = {subject or "": size for part, subject, size in self.parts if part == "process"}
        own = None if self.part("this_process") is not None else self._own_process(listed)
        return {process: size for process, size in listed.items() if process != own}

    def _own_process(self, listed: dict[str, int]) -> str | None:
        pool = self.pool_bytes
        if pool is None or not pool:
            return None
        least, most = pool * (1 - _ROUNDED), pool + max(_CONTEXT, pool * _MUCH_OUTSIDE)
        fitting = {size: process for process, size in listed.items() if least <= size <= most}
        return fitting[min(fitting)] if fitting else None

    @property
    def own_bytes(self) -> int | None:
        """What this process held of the device, outside its allocator too."""
        if (this := self.part("this_process")) is not None:
            return this
        listed = {subject or "": size for part, subject, size in self.parts if part == "process"}
        own = self._own_process(listed)
        return None if own is None else listed[own]

    @property
    def own_outside_bytes(self) -> int | None:
        """What this process held outside its allocator: contexts, libraries."""
        if self.own_bytes is None or self.pool_bytes is None:
            return None
        return max(self.own_bytes - self.pool_bytes, 0)

    @property
    def others_bytes(self) -> int | None:
        """What others held of the device. Where the report does not have this process either,
        all that is neither free nor in the pool, beyond what a process needs beside it.
        """
        total = self.capacity_bytes
        start = self.part("free_at_start")
        if total is not None and start is not None:
            # TensorFlow takes nearly all that is free when it starts, if it may.
            return total - start if 2 * start < total else None
        listed = sum(self.processes.values())
        if total is None or self.device_free_bytes is None:
            return listed or None
        used = total - self.device_free_bytes
        if self.own_bytes is not None:
            return max(used - self.own_bytes, listed)
        if self.pool_bytes is None:
            return listed or None
        return max(used - self.pool_bytes - _CONTEXT // 2, listed)

    @property
    def padding_bytes(self) -> int | None:
        """Padding of what a program needs: of the tensors that are listed, or of all temporaries
        where that is more.
        """
        listed = sum(size for part, _, size in self.parts if part == "padding")
        unpadded, temporaries = self.part("unpadded"), self.part("temporaries")
        if unpadded is not None and temporaries is not None:
            listed = max(listed, temporaries - unpadded)
        return listed or None

    def _is_padded(self, excess: int) -> bool:
        """Whether without padding the program would fit, or padding is most of what it needs."""
        return (self.padding_bytes or 0) >= min(excess, (self.needed or 0) / 2) > 0

    @property
    def outside_bytes(self) -> int | None:
        """Bytes of the device neither in the pool nor free: other processes, the driver."""
        limit = self.limit_bytes if self.capacity_bytes is None else self.capacity_bytes
        if limit is None or self.pool_bytes is None or self.device_free_bytes is None:
            return None
        return max(limit - self.pool_bytes - self.device_free_bytes, 0)

    @property
    def _may_grow(self) -> bool:
        """Whether the limit left room for the request, so that the device refused to give more."""
        if self.limit_bytes is None or self.pool_bytes is None or self.needed is None:
            return False
        return self.limit_bytes - self.pool_bytes >= self.needed


@dataclass(repr=False)
class FailedMoment(Brief):
    """Failures of one allocator that belong together.

    ``report_id`` is the number of the first one's report, ``top_chunks`` what in use held most
    then: bytes each, how many, bytes together.
    """

    report_id: int
    failures: list[Failure]
    top_chunks: list[dict[str, int]] = field(default_factory=list)

    def takes(self, failure: Failure, *, has_times: bool) -> bool:
        """Whether ``failure`` happened in the state of the last one, or at the same time."""
        mine = (one for one in reversed(self.failures) if one.allocator == failure.allocator)
        last = next(mine, self.failures[-1])
        if None not in (last.device, failure.device) and last.device != failure.device:
            return False
        state, before = (
            (one.in_use_bytes, one.pool_bytes, one.limit_bytes) for one in (failure, last)
        )
        if last.in_use_bytes is not None and state == before:
            # Nothing was freed between them: an allocator that retries fails every ten seconds.
            return True
        return has_times and failure.time_ps - self.failures[0].time_ps <= MOMENT_PS

    def is_alike(self, failure: Failure, *, has_times: bool) -> bool:
        """Whether ``failure`` is the same of another device: ranks of a job fail one by one."""
        first = self.failures[0]
        if {one.allocator for one in self.failures} >= {failure.allocator}:
            return False
        same = ("requested_bytes", "rounded_bytes", "limit_bytes", "capacity_bytes", "op", "shape",
                "kind", "cause")  # fmt: skip
        if any(getattr(first, name) != getattr(failure, name) for name in same):
            return False
        if has_times and abs(failure.time_ps - first.time_ps) > _RANKS_PS:
            return False
        mine, other = first.in_use_bytes, failure.in_use_bytes
        if mine is None or other is None:
            return mine is other and first.requested_bytes is not None
        return abs(mine - other) <= _ALIKE * max(mine, other)

    @property
    def allocators(self) -> list[str]:
        """The allocators that failed, the first one first."""
        return list(dict.fromkeys(one.allocator for one in self.failures))

    @property
    def span_ps(self) -> int:
        """How much later the last one failed."""
        return self.failures[-1].time_ps - self.failures[0].time_ps


def failed_moments(
    oom_reports: Columns, blocks: Columns, oom_parts: Columns | None = None
) -> tuple[FailedMoment, ...]:
    """The moments of ``oom_reports``; ``blocks`` are the chunks that the reports list, and
    ``oom_parts`` what else they give.

    A moment is one report, or those of one allocator that follow each other within a second or
    without a change of what is in use: all threads of a step fail, one after the other. The ranks
    of a job that fail alike, each on its device, are one moment too.
    """
    owner = np.where(blocks.is_valid("report_id"), blocks.array("report_id"), -1)
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    # A log without times has 0 everywhere.
    has_times = bool(oom_reports.array("time_ps").any())
    moments: list[FailedMoment] = []
    latest: dict[str, FailedMoment] = {}
    alike: dict[str, FailedMoment] = {}
    parts: dict[int, list[tuple[str, str | None, int]]] = {}
    for row in [] if oom_parts is None else oom_parts.to_pylist():
        parts.setdefault(row["report_id"], []).append((row["part"], row["subject"], row["bytes"]))
    names = [name for name in Failure.__annotations__ if name != "parts"]
    for row in oom_reports.to_pylist():
        numbers = {name: row[name] for name in names}
        failure = Failure(**numbers, parts=tuple(parts.get(row["report_id"], ())))
        moment = latest.get(failure.allocator)
        family = _DIGITS.sub("#", failure.allocator)
        others = alike.get(family)
        if moment is not None and moment.takes(failure, has_times=has_times):
            moment.failures.append(failure)
        elif "#" in family and others is not None and others.is_alike(failure, has_times=has_times):
            others.failures.append(failure)
            latest[failure.allocator] = others
        else:
            latest[failure.allocator] = moment = FailedMoment(row["report_id"], [failure])
            alike[family] = moment
            moments.append(moment)
    for moment in moments:
        start, end = np.searchsorted(owner, (moment.report_id, moment.report_id + 1))
        moment.top_chunks = _top_chunks(blocks, order[start:end])
    return tuple(moments)


def limits_of(profile: Profile) -> dict[str, int]:
    """What each allocator may take, in bytes, as its last report of a failure says."""
    if "oom_reports" not in profile.tables:
        return {}
    rows = profile.columns("oom_reports").to_pylist()
    return {row["allocator"]: row["limit_bytes"] for row in rows if row["limit_bytes"] is not None}


def with_limits(profile: Profile, peaks: Iterable[AllocatorPeak]) -> tuple[AllocatorPeak, ...]:
    """The peaks, of those whose records say no capacity with what `limits_of` says."""
    limits = limits_of(profile)
    return tuple(
        replace(peak, capacity_bytes=limits.get(peak.allocator))
        if peak.capacity_bytes is None
        else peak
        for peak in peaks
    )


def only_listed(profile: Profile, allocator: str) -> bool:
    """Whether an out-of-memory report lists some buffers of ``allocator``, not all in use.

    So do lists of a step's tensors and of a program's largest buffers, which have no addresses.
    """
    if "oom_reports" not in profile.tables or not profile.is_derived("allocator_events"):
        return False
    events = profile.columns("allocator_events")
    names = events.names("allocator").to_list()
    has_address = zip(names, events.is_valid("address").tolist(), strict=True)
    return not any(known for name, known in has_address if name == allocator)


def _top_chunks(blocks: Columns, mine: IntpArray) -> list[dict[str, int]]:
    """The sizes of chunks in use that hold the most: bytes each, how many, bytes together.

    ``mine`` are the rows of the report's chunks.
    """
    state = blocks.names("state")
    used = mine[state.codes[mine] == state.code_of("in_use")]
    sizes, counts = np.unique(blocks.array("bytes")[used], return_counts=True)
    totals = sizes * counts
    order = np.lexsort((-sizes, -totals))[:_TOP_CHUNKS]
    return [
        {"bytes": int(sizes[n]), "count": int(counts[n]), "total_bytes": int(totals[n])}
        for n in order
    ]
