"""Why an allocation failed: too large, no memory left, or memory in pieces that are too small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from peakline.findings.memory_peak import Finding
from peakline.tables.columns import Columns
from peakline.text import size_text, time_text

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["KIND", "limits_of", "only_listed", "oom_findings"]

KIND = "out_of_memory"
"""The kind of these findings."""

_TOP_CHUNKS = 5
_MOMENT_PS = 10**12
"""Requests that fail within one second of each other fail together."""
_OUTSIDE = 0.1
"""Memory of the device outside the pool is worth a word from this share of the limit on."""


@dataclass(frozen=True)
class _Failure:
    """One row of ``oom_reports``; None for what the report does not tell."""

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
        """One of the keys of `_SUGGESTIONS`."""
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
    def _may_grow(self) -> bool:
        """Whether the limit left room for the request, so that the device refused to give more."""
        if self.limit is None or self.pool is None or self.needed is None:
            return False
        return self.limit - self.pool >= self.needed


_SUGGESTIONS = {
    "unknown": "The report does not say what was free{buffers}.",
    "larger_than_limit": (
        "The request alone exceeds what the allocator may take: split the tensor or the program "
        "(smaller batch, sharding), or raise the limit."
    ),
    "held_back": (
        "A free chunk was large enough, so it was held back for work that had not finished; "
        "synchronise before the large allocation, or run fewer steps at once."
    ),
    "fragmented": (
        "Enough was free, but in pieces: keep sizes constant from step to step, allocate the "
        "large buffers first, or let the allocator remap memory ({remap})."
    ),
    "device_full": (
        "The allocator was still allowed to grow, but the device had no more: look for other "
        "processes on it, and for memory that the driver and libraries take."
    ),
    "full": (
        "Reduce what is live at that point (smaller batch, rematerialisation, lower precision, "
        "sharding): {less}."
    ),
}


@dataclass
class _Moment:
    """Failures of one allocator that belong together, and the number of the first one's report."""

    report_id: int
    failures: list[_Failure]

    def takes(self, failure: _Failure, *, has_times: bool) -> bool:
        """Whether ``failure`` happened in the state of the last one, or at the same time."""
        last = self.failures[-1]
        if None not in (last.device, failure.device) and last.device != failure.device:
            return False
        state = (last.in_use, last.pool, last.limit)
        if last.in_use is not None and state == (failure.in_use, failure.pool, failure.limit):
            # Nothing was freed between them: an allocator that retries fails every ten seconds.
            return True
        return has_times and failure.time_ps - self.failures[0].time_ps <= _MOMENT_PS

    @property
    def span_ps(self) -> int:
        return self.failures[-1].time_ps - self.failures[0].time_ps


def oom_findings(oom_reports: Columns, blocks: Columns) -> list[Finding]:
    """One finding per moment of ``oom_reports``; ``blocks`` are the chunks that the reports list.

    A moment is one report, or those of one allocator that follow each other within a second or
    without a change of what is in use: all threads of a step fail, one after the other. The
    finding is about the first of them; ``evidence["failed_requests"]`` counts them where there
    are several, ``evidence["last_after_ps"]`` is how much later the last one failed.
    ``evidence["cause"]`` says why: ``larger_than_limit``; ``held_back`` (a free chunk would have
    fitted); ``fragmented`` (enough was free in total); ``device_full`` (the limit was not
    reached); ``full``; or ``unknown`` where the report lacks the numbers.
    """
    owner = np.where(blocks.is_valid("report_id"), blocks.array("report_id"), -1)
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    # A log without times has 0 everywhere.
    has_times = bool(oom_reports.array("time_ps").any())
    moments: list[_Moment] = []
    latest: dict[str, _Moment] = {}
    for row in oom_reports.to_pylist():
        failure = _Failure(
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
            latest[failure.allocator] = moment = _Moment(row["report_id"], [failure])
            moments.append(moment)
    found = []
    for moment in moments:
        start, end = np.searchsorted(owner, (moment.report_id, moment.report_id + 1))
        found.append(_finding(moment, _top_chunks(blocks, order[start:end])))
    return found


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


def _finding(moment: _Moment, top: list[dict[str, int]]) -> Finding:
    failure, count = moment.failures[0], len(moment.failures)
    numbers = {
        "requested_bytes": failure.requested,
        "rounded_bytes": failure.rounded,
        "op": failure.op,
        "device": failure.device,
        "data_type": failure.data_type,
        "shape": failure.shape,
        "limit_bytes": failure.limit,
        "pool_bytes": failure.pool,
        "in_use_bytes": failure.in_use,
        "free_bytes": failure.free,
        "largest_free_bytes": failure.largest,
        "fragmentation": failure.fragmentation,
        "would_fit": failure.would_fit,
        "device_free_bytes": failure.device_free,
        "outside_bytes": _outside(failure),
    }
    evidence: dict[str, object] = {"allocator": failure.allocator, "cause": failure.cause}
    evidence.update({name: value for name, value in numbers.items() if value is not None})
    if top:
        evidence["top_chunks"] = top
    evidence["is_complete"] = failure.is_complete
    if count > 1:
        evidence |= {"failed_requests": count, "last_after_ps": moment.span_ps}
    suggestion = _suggestion(failure, has_buffers=bool(top))
    return Finding(KIND, "error", _title(moment), evidence, suggestion)


def _outside(failure: _Failure) -> int | None:
    """Memory of the device that is neither in the pool nor free: other processes, the driver."""
    if failure.limit is None or failure.pool is None or failure.device_free is None:
        return None
    return max(failure.limit - failure.pool - failure.device_free, 0)


def _title(moment: _Moment) -> str:
    failure, count = moment.failures[0], len(moment.failures)
    is_torch = _is_torch(failure)
    parts = []
    if failure.requested is not None:
        asked = f"{size_text(failure.requested)} asked for"
        parts.append(f"{asked} by {failure.op}" if failure.op else asked)
    elif failure.op:
        parts.append(f"asked by {failure.op}")
    if failure.shape is not None:
        parts.append(f"{failure.data_type or 'tensor'} {failure.shape}")
    if failure.in_use is not None:
        most = failure.pool if failure.limit is None else failure.limit
        of = "" if most is None else f" of {size_text(most)}"
        parts.append(f"{size_text(failure.in_use)}{of} {'allocated' if is_torch else 'in use'}")
    elif failure.limit is not None:
        parts.append(f"{size_text(failure.limit)} at most")
    if failure.free is not None:
        free = f"{size_text(failure.free)} free"
        if is_torch and failure.pool is not None:
            free = f"{size_text(failure.pool)} reserved, {size_text(failure.free)} of that free"
        parts.append(free)
    if failure.largest is not None and failure.free != 0:
        parts.append(f"the largest piece {size_text(failure.largest)}")
    title = f"{failure.allocator or 'an allocator'} ran out of memory"
    facts = ", ".join(parts)
    if count == 1:
        return f"{title}: {facts}" if parts else title
    within = "one moment" if moment.span_ps <= _MOMENT_PS else time_text(moment.span_ps)
    title += f": {count:,} failed requests in {within}"
    return f"{title}, the first: {facts}" if parts else title


def _is_torch(failure: _Failure) -> bool:
    """PyTorch names an allocator as its device, and says allocated and reserved."""
    return failure.allocator.partition(":")[0] in {"cuda", "xpu"}


def _suggestion(failure: _Failure, *, has_buffers: bool) -> str:
    is_torch = _is_torch(failure)
    remap = (
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        if is_torch
        else "TF_GPU_ALLOCATOR=cuda_malloc_async for TensorFlow on a GPU"
    )
    text = _SUGGESTIONS[failure.cause].format(
        less=_less(failure),
        remap=remap,
        buffers="; see what the buffers in it hold" if has_buffers else "",
    )
    outside = _outside(failure)
    if outside is not None and failure.limit and outside >= _OUTSIDE * failure.limit:
        text += f" {size_text(outside)} of the device are held outside this pool."
    return text


def _less(failure: _Failure) -> str:
    """How much less must be live. A request needs one piece: free ones apart do not add up."""
    needed, free, largest = failure.needed or 0, failure.free or 0, failure.largest
    short = f"at least {size_text(needed - free)} more must be free"
    if largest is None:
        return f"{short}, and in one piece" if free else short
    if largest >= free:
        return f"{short}, next to the piece that is" if free else short
    return (
        f"the {size_text(free)} free are in pieces of at most {size_text(largest)}, so "
        f"{size_text(needed - largest)} next to the largest, or {size_text(needed)} in one piece "
        "elsewhere, must become free"
    )
