"""A question about how a program fits into memory (limits, settings, a batch size), and what is
said of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, Self

from peakline.errors import UsageError
from peakline.replay.requests import MIB
from peakline.shown import Brief, Several, Shown, several
from peakline.text import allocator_text, size_text, whole_number

Range = tuple[int, int | None]
"""Limits in bytes, both included; None: without an end."""

Cause = Literal["memory", "growth", "fragmentation", "unsplit", "segments"]
"""Why a request fails: more is live than the limit; the pool grew in regions that are too small,
one region of the same size would do; free memory is in pieces that are too small; blocks that were
not split take much more than was requested; what is free lies in segments that cannot be returned.
"""


@dataclass(frozen=True, repr=False)
class Proof(Brief):
    """The recording, replayed as it was recorded: of ``allocations``, those with an address,
    ``equal_addresses`` went where the model puts them. Where ``proved`` does not hold, ``reason``
    says why in a sentence.
    """

    allocations: int
    equal_addresses: int
    proved: bool
    reason: str = ""


@dataclass(frozen=True, repr=False)
class Request(Brief):
    """An allocation: ``index`` is how many came before it, ``source`` the line of the program that
    made it; empty and None for what is not known.
    """

    index: int
    bytes: int
    rounded_bytes: int
    op: str
    shape: str
    data_type: str
    time_ps: int | None
    step: str
    source: str


@dataclass(frozen=True, repr=False)
class UnderLimit(Brief):
    """A replay under a limit: ``fits`` is None where facts that are not recorded decide.

    ``peak_bytes`` are in use at most, in blocks as the allocator makes them; ``reserved_bytes``
    are taken from the device at most. Where a request fails, the figures are those until then:
    ``live_bytes`` are live, each request rounded up, ``in_use_bytes`` their blocks,
    ``free_bytes`` are free in the pool, and ``largest_free_bytes`` in one piece.
    """

    limit_bytes: int
    fits: bool | None
    peak_bytes: int
    reserved_bytes: int
    fails_at: Request | None = None
    cause: Cause | None = None
    live_bytes: int | None = None
    free_bytes: int | None = None
    largest_free_bytes: int | None = None
    in_use_bytes: int | None = None

    @property
    def fragmentation(self) -> float | None:
        """(free - largest) / free of the pool when the request failed."""
        if not self.free_bytes or self.largest_free_bytes is None:
            return None
        return (self.free_bytes - self.largest_free_bytes) / self.free_bytes

    def as_json(self) -> dict[str, object]:
        """One of ``limits`` in ``peakline fit --json``."""
        return {
            "limit_bytes": self.limit_bytes,
            "fits": self.fits,
            "peak_bytes": self.peak_bytes,
            "reserved_bytes": self.reserved_bytes,
            "fragmentation": self.fragmentation,
            "live_bytes": self.live_bytes,
            "in_use_bytes": self.in_use_bytes,
            "free_bytes": self.free_bytes,
            "largest_free_bytes": self.largest_free_bytes,
            "cause": self.cause,
            "fails_at": None if self.fails_at is None else asdict(self.fails_at),
        }


@dataclass(frozen=True, repr=False)
class Limits(Brief):
    """The limits that fit: ``fits`` for certain, ``may_fit`` where facts that are not recorded
    decide; both ascending. ``searched_from`` is the least limit that was looked at (all below it do
    not fit where ``is_whole``); ``differs_by`` names the facts that decide, ``unsearched``
    those of which it is not known, since the search was too much work. ``needs`` is what a request
    that failed needs at least, in bytes (0: none failed): then nothing fits for certain, since what
    the program would have taken after it is not recorded.
    """

    fits: tuple[Range, ...]
    may_fit: tuple[Range, ...]
    searched_from: int
    is_whole: bool
    differs_by: tuple[str, ...] = ()
    unsearched: tuple[str, ...] = ()
    needs: int = 0

    @property
    def smallest(self) -> int | None:
        """The smallest limit that fits; where a request failed, the least that may."""
        ranges = self.may_fit if self.needs else self.fits
        return ranges[0][0] if ranges else None

    @property
    def safe_from(self) -> int | None:
        """The limit from which on all fit."""
        return self.fits[-1][0] if self.fits and self.fits[-1][1] is None else None

    def at_least(self, needed: int) -> Limits:
        """The same where a request that needs so many bytes failed: whole MiB from there on may
        fit.
        """
        least = -(-needed // MIB) * MIB
        may = self.may_fit or self.fits
        return replace(
            self,
            fits=(),
            may_fit=tuple((max(low, least), high) for low, high in may if (high or least) >= least),
            searched_from=max(self.searched_from, least),
            needs=needed,
        )


@dataclass(frozen=True, repr=False)
class Failed(Brief):
    """A recorded request that failed while ``live_bytes`` were in use: so much and itself are
    needed at least.
    """

    request: Request
    live_bytes: int

    @property
    def needed_bytes(self) -> int:
        """What it needs at least."""
        return self.live_bytes + self.request.rounded_bytes

    def fits(self, limit: int, *, replayed: bool | None) -> bool | None:
        """Whether a limit fits, by what the replay of all other requests says."""
        return False if limit < self.needed_bytes or replayed is False else None

    def under(self, one: UnderLimit) -> UnderLimit:
        """The replay of all other requests under a limit, with this one."""
        fits = self.fits(one.limit_bytes, replayed=one.fits)
        if fits is None or one.fails_at is not None:
            return replace(one, fits=fits)
        return replace(
            one, fits=False, fails_at=self.request, cause="memory", live_bytes=self.live_bytes
        )

    def as_json(self) -> dict[str, object]:
        """``failed_request`` in ``peakline fit --json``."""
        needed = {"live_bytes": self.live_bytes, "needed_bytes": self.needed_bytes}
        return asdict(self.request) | needed


@dataclass(frozen=True, repr=False)
class Alternative(Brief):
    """Other settings: what fits under them, and whether the first limit does."""

    settings: Mapping[str, object]
    smallest_limit_bytes: int | None
    safe_from_bytes: int | None
    is_whole: bool
    peak_bytes: int
    reserved_bytes: int
    fits: bool | None = None


@dataclass(frozen=True, repr=False)
class Pin(Brief):
    """A segment or region that live blocks hold: ``free_bytes`` of its ``bytes`` are free,
    ``live_bytes`` in ``blocks`` blocks are not, the largest of them of ``op``.
    """

    address: int
    bytes: int
    free_bytes: int
    live_bytes: int
    blocks: int
    op: str
    source: str


@dataclass(frozen=True, repr=False)
class Batch(Brief):
    """The batch size that was recorded and another: an estimate, which scales the buffers whose
    first dimension is a multiple of ``recorded``. ``scaled_bytes`` of the peak are such.
    """

    recorded: int
    wanted: int
    scaled_bytes: int
    smallest_limit_bytes: int | None
    safe_from_bytes: int | None
    fits: bool | None


@dataclass(frozen=True, repr=False)
class Fit(Shown):
    """How one allocator's recorded requests fit into memory.

    ``model`` is the allocator that was replayed: ``bfc``, ``pytorch`` or ``xla``. ``exact`` says
    whether the answer is exact for the recorded order of requests; where it is not, ``reason``
    says why. ``live_peak_bytes`` are live at most, each request rounded up: no limit below fits.
    ``deciding`` is the replay under the largest limit that fails. ``failed`` is the request that
    failed in the recording: then all limits are lower bounds, none is exact, and from none on it is
    safe.
    """

    allocator: str
    model: str
    settings: Mapping[str, object]
    proof: Proof
    recorded_peak_bytes: int
    live_peak_bytes: int
    threads: int
    limits: Limits
    exact: bool
    reason: str
    deciding: UnderLimit | None
    under: tuple[UnderLimit, ...]
    alternatives: tuple[Alternative, ...] = ()
    pins: tuple[Pin, ...] = ()
    batches: tuple[Batch, ...] = ()
    failed: Failed | None = None

    def __post_init__(self) -> None:
        several(self, "under", "alternatives", "pins", "batches")

    def as_short_json(self) -> dict[str, object]:
        """The verdict alone."""
        return {
            "allocator": self.allocator,
            "smallest_limit_bytes": self.limits.smallest,
            "safe_from_bytes": self.limits.safe_from,
            "proved": self.proof.proved,
            "exact": self.exact,
            "reason": self.reason,
        }

    def as_json(self) -> dict[str, object]:
        """One of ``allocators`` in ``peakline fit --json``."""
        limits, deciding = self.limits, self.deciding
        return {
            "allocator": self.allocator,
            "model": self.model,
            "settings": dict(self.settings),
            "replay": asdict(self.proof),
            "recorded_peak_bytes": self.recorded_peak_bytes,
            "live_peak_bytes": self.live_peak_bytes,
            "threads": self.threads,
            "smallest_limit_bytes": limits.smallest,
            "safe_from_bytes": limits.safe_from,
            "fits": [list(one) for one in limits.fits],
            "may_fit": [list(one) for one in limits.may_fit],
            "searched_from_bytes": limits.searched_from,
            "is_whole": limits.is_whole,
            "exact": self.exact,
            "reason": self.reason,
            "failed_request": None if self.failed is None else self.failed.as_json(),
            "deciding_request": None if deciding is None else deciding.as_json(),
            "limits": [one.as_json() for one in self.under],
            "alternatives": [asdict(one) for one in self.alternatives],
            "pins": [asdict(one) for one in self.pins],
            "batches": [asdict(one) for one in self.batches],
        }

    def _headline(self) -> str:
        smallest = self.limits.smallest
        runs = "no limit found that fits"
        if smallest is not None:
            how = "needs at least" if self.limits.needs else "runs in"
            runs = f"{how} {size_text(smallest)}"
        exact = "" if self.exact else " (a bound)"
        return f"{allocator_text(self.allocator)} {runs}{exact}"


@dataclass(frozen=True, repr=False)
class NoFit(Brief):
    """An allocator that cannot be replayed, and why."""

    allocator: str
    reason: str


class Fits(Several[Fit]):
    """A `Fit` for each allocator that can be replayed, or for each compiled program; ``failed`` are
    the allocators that cannot be, each with its ``reason``.
    """

    failed: tuple[NoFit, ...]

    def __new__(cls, fits: Iterable[Fit], failed: Iterable[NoFit] = ()) -> Self:
        """Of these fits."""
        result = super().__new__(cls, fits)
        result.failed = Several(failed)
        return result

    def _headline(self) -> str:
        if self or not self.failed:
            return super()._headline()
        first = self.failed[0]
        return f"none: {allocator_text(first.allocator)} cannot be replayed: {first.reason}"


MOST_LIMITS = 64
"""So many limits may be given at a time."""
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_LARGEST_BATCH = 1 << 24


@dataclass(frozen=True)
class Question:
    """``limits`` in bytes, ``settings`` as names and texts, a recorded ``batch`` size and a wanted
    one (None: the largest that fits under the first limit, or under what the allocator has).
    """

    limits: tuple[int, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    batch: int | None = None
    wanted_batch: int | None = None


def question_of(limits: Sequence[int], settings: Sequence[str], batch: str | None) -> Question:
    """A question as callers write it: ``NAME=VALUE`` for a setting, ``32`` or ``32:64`` for a
    batch. Raises UsageError for anything else.
    """
    if len(limits) > MOST_LIMITS:
        raise UsageError(f"--limit: {len(limits)} limits; give at most {MOST_LIMITS}")
    pairs: dict[str, str] = {}
    for text in settings:
        match = _SETTING.fullmatch(text)
        if match is None:
            raise UsageError(f"--set {text}: write NAME=VALUE")
        pairs[match[1]] = match[2]
    recorded = wanted = None
    if batch is not None:
        first, colon, second = batch.partition(":")
        recorded = whole_number(first, 9)
        wanted = whole_number(second, 9) if colon else None
        if not recorded or (colon and not wanted) or (wanted or 0) > _LARGEST_BATCH:
            raise UsageError(
                f"--batch {batch}: write the recorded size, or that and another: 32:64"
            )
    return Question(tuple(limits), tuple(pairs.items()), recorded, wanted)
