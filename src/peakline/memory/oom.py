"""Why an allocation failed: too large, no memory left, or memory in pieces that are too small."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from peakline.tables.columns import Columns

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["MOMENT_PS", "FailedMoment", "Failure", "failed_moments", "limits_of", "only_listed"]

MOMENT_PS = 10**12
"""Requests that fail within one second of each other fail together."""
_TOP_CHUNKS = 5


@dataclass(frozen=True)
class Failure:
    """One row of ``oom_reports``; None for what the report does not say."""

    time_ps: int
    allocator: str
    requested: int | None
    rounded: int | None
    op: str | None
    device: str | None
    data_type: str | None
    shape: str | None
    limit: int | None
    pool: int | None
    in_use: int | None
    free: int | None
    largest: int | None
    fragmentation: float | None
    device_free: int | None
    is_complete: bool

    @property
    def needed(self) -> int | None:
        """Bytes of the chunk that was needed."""
        return self.requested if self.rounded is None else self.rounded

    @property
    def would_fit(self) -> bool | None:
        """Whether a free chunk was large enough; None where the free chunks are not known."""
        if self.needed is None or self.largest is None:
            return None
        return self.largest >= self.needed

    @property
    def cause(self) -> str:
        """Why it failed.

        ``larger_than_limit``; ``held_back`` (a free chunk would have fitted); ``fragmented``
        (enough was free in total); ``device_full`` (the limit was not reached); ``full``; or
        ``unknown`` where the report lacks the numbers.
        """
        if self.needed is None:
            return "unknown"
        if self.limit is not None and self.needed > self.limit:
            return "larger_than_limit"
        if self.would_fit:
            return "held_back"
        if self.free is None:
            return "unknown"
        if self.free >= self.needed:
            return "fragmented"
        if self._may_grow:
            return "device_full"
        return "full"

    @property
    def outside(self) -> int | None:
        """Bytes of the device neither in the pool nor free: other processes, the driver."""
        if self.limit is None or self.pool is None or self.device_free is None:
            return None
        return max(self.limit - self.pool - self.device_free, 0)

    @property
    def _may_grow(self) -> bool:
        """Whether the limit left room for the request, so that the device refused to give more."""
        if self.limit is None or self.pool is None or self.needed is None:
            return False
        return self.limit - self.pool >= self.needed


@dataclass
class FailedMoment:
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
        state = (last.in_use, last.pool, last.limit)
        if last.in_use is not None and state == (failure.in_use, failure.pool, failure.limit):
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
        failure = Failure(
            time_ps=row["time_ps"],
            allocator=row["allocator"],
            requested=row["requested_bytes"],
            rounded=row["rounded_bytes"],
            op=row["op"],
            device=row["device"],
            data_type=row["data_type"],
            shape=row["shape"],
            limit=row["limit_bytes"],
            pool=row["pool_bytes"],
            in_use=row["in_use_bytes"],
            free=row["free_bytes"],
            largest=row["largest_free_bytes"],
            fragmentation=row["fragmentation"],
            device_free=row["device_free_bytes"],
            is_complete=row["is_complete"],
        )
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


def _top_chunks(blocks: Columns, mine: npt.NDArray[np.intp]) -> list[dict[str, int]]:
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
