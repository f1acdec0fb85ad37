"""Why an allocation failed: too large, no memory left, or memory in pieces that are too small."""

from __future__ import annotations

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
_TOP_CHUNKS = 5


@dataclass(frozen=True, repr=False)
class Failure(Brief):
    """One row of ``oom_reports``; None for what the report does not say."""

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
    is_complete: bool

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
        """Why it failed.

        ``larger_than_limit``; ``held_back`` (a free chunk would have fitted); ``fragmented``
        (enough was free in total); ``device_full`` (the limit was not reached); ``full``; or
        ``unknown`` where the report lacks the numbers.
        """
        if self.needed is None:
            return "unknown"
        if self.limit_bytes is not None and self.needed > self.limit_bytes:
            return "larger_than_limit"
        if self.would_fit:
            return "held_back"
        if self.free_bytes is None:
            return "unknown"
        if self.free_bytes >= self.needed:
            return "fragmented"
        if self._may_grow:
            return "device_full"
        return "full"

    @property
    def outside_bytes(self) -> int | None:
        """Bytes of the device neither in the pool nor free: other processes, the driver."""
        if self.limit_bytes is None or self.pool_bytes is None or self.device_free_bytes is None:
            return None
        return max(self.limit_bytes - self.pool_bytes - self.device_free_bytes, 0)

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
        last = self.failures[-1]
        if None not in (last.device, failure.device) and last.device != failure.device:
            return False
        state, before = (
            (one.in_use_bytes, one.pool_bytes, one.limit_bytes) for one in (failure, last)
        )
        if last.in_use_bytes is not None and state == before:
            # Nothing was freed between them: an allocator that retries fails every ten seconds.
            return True
        return has_times and failure.time_ps - self.failures[0].time_ps <= MOMENT_PS

    @property
    def span_ps(self) -> int:
        """How much later the last one failed."""
        return self.failures[-1].time_ps - self.failures[0].time_ps


def failed_moments(oom_reports: Columns, blocks: Columns) -> tuple[FailedMoment, ...]:
    """The moments of ``oom_reports``; ``blocks`` are the chunks that the reports list.

    A moment is one report, or those of one allocator that follow each other within a second or
    without a change of what is in use: all threads of a step fail, one after the other.
    """
    owner = np.where(blocks.is_valid("report_id"), blocks.array("report_id"), -1)
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    # A log without times has 0 everywhere.
    has_times = bool(oom_reports.array("time_ps").any())
    moments: list[FailedMoment] = []
    latest: dict[str, FailedMoment] = {}
    for row in oom_reports.to_pylist():
        failure = Failure(**{name: row[name] for name in Failure.__annotations__})
        moment = latest.get(failure.allocator)
        if moment is not None and moment.takes(failure, has_times=has_times):
            moment.failures.append(failure)
        else:
            latest[failure.allocator] = moment = FailedMoment(row["report_id"], [failure])
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
