"""A recording of PyTorch's caching allocator under other limits and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.kernels import caching_layout as layout
from peakline.memory.fit.combined import combined, most_work
from peakline.memory.fit.model import Cause, Limits, Proof
from peakline.memory.fit.replayed import Outcome
from peakline.replay.limits import BEGINNING, Scan, Span, scan
from peakline.replay.requests import MIB, NO_LIMIT
from peakline.replay.torch_caching import CachingMachine, RunningReplay
from peakline.replay.torch_events import CachingEvents
from peakline.replay.torch_proof import Proof as CachingProof
from peakline.replay.torch_proof import prove
from peakline.replay.torch_recording import CachingRecording
from peakline.replay.torch_settings import CachingSettings

GRANULE = 512
_MOST_EACH = 1_500_000
"""So many events are replayed at most where every limit needs a replay of its own."""
_DEVICE = 1 << 40
"""A device that is larger than any program needs."""
_START, _SIZE_OF_DEVICE, _ORDER = (
    "in what order the memory from before was allocated",
    "the size of the device",
    "where segments lie",
)


@dataclass(frozen=True)
class _Variant:
    """What could be so, beside the settings: ``is_from_start`` begins in the recorded state,
    ``device_bytes`` None is a device as large as the limit.
    """

    what: str = ""
    is_from_start: bool = False
    device_bytes: int | None = _DEVICE
    placement: str = "ascending"


@dataclass(frozen=True, eq=False)
class CachingFit:
    """One recording. ``unknown_bytes`` were in use at its begin and are not known as buffers: in a
    replay they are one more block. ``given`` are settings that the caller knows, by name;
    ``most_events`` bounds the work of a search over limits.
    """

    recording: CachingRecording
    unknown_bytes: int = 0
    given: tuple[tuple[str, str], ...] = ()
    most_events: int | None = None
    name = "pytorch"
    granule = GRANULE

    @cached_property
    def proof(self) -> CachingProof:
        """The recording, replayed as it was recorded."""
        return prove(self.recording)

    @property
    def stated(self) -> Proof:
        """What is said of the proof."""
        one = self.proof
        reason = f"{one.reason[:1].lower()}{one.reason[1:]}".rstrip(".")
        return Proof(one.allocations, one.equal, one.is_proved, reason)

    def uncertain(self) -> str:
        """Why other limits are a bound although the recording is proved."""
        one = self.recording
        if not one.is_whole:
            return (
                "the history begins after the first allocation, and what was live then is placed "
                "afresh"
            )
        if (one.events.lane_pool != 0).any():
            return "it has private pools (CUDA graphs), and when they are held is not recorded"
        if one.guessed_returns:
            return "memory was returned to the device, and why is not recorded"
        if one.final is None:
            return "requests are known only by the size of their blocks, and streams not at all"
        return ""

    @cached_property
    def settings(self) -> CachingSettings:
        """The recorded settings, with those that are given."""
        result = self.recording.settings
        for name, text in self.given:
            result = result.changed(name, text)
        return result

    @cached_property
    def _events(self) -> CachingEvents:
        """What was there before is allocated first, in order of its addresses."""
        events = self.recording.what_if
        if not self.unknown_bytes:
            return events.preceded_by(self.recording.before)
        events = replace(
            events,
            requested=np.append(events.requested, self.unknown_bytes),
            lane=np.append(events.lane, 0).astype(np.int32),
        )
        return events.preceded_by(np.append(events.requested.size - 1, self.recording.before))

    @property
    def _lead(self) -> int:
        """How many requests of what was there before come first."""
        return self.recording.before.size + bool(self.unknown_bytes)

    @property
    def sizes(self) -> Int64Array:
        """Per buffer the bytes that were requested."""
        return self._events.requested

    def buffer_of(self, event: int) -> int:
        """The buffer that an event allocates."""
        return int(self._events.subject[event])

    @cached_property
    def _is_before(self) -> BoolArray:
        result = np.zeros(self.sizes.size, np.bool_)
        result[self.recording.before] = True
        result[self.recording.row_of_buffer.size :] = True
        return result

    def row_of(self, buffer: int) -> int:
        """The record that allocates a buffer, -1 for one from before the profile."""
        is_known = 0 <= buffer < self.sizes.size and not self._is_before[buffer]
        return int(self.recording.row_of_buffer[buffer]) if is_known else -1

    def index_of(self, event: int) -> int:
        """How many recorded allocations come before an event."""
        return int((self._events.kind[self._lead : event] == layout.ALLOCATE).sum())

    def scaling(self, rows_scale: BoolArray) -> BoolArray:
        """The buffers of these records that are freed again."""
        events = self._events
        result = np.zeros(self.sizes.size, np.bool_)
        is_free = (events.kind == layout.FREE) | (events.kind == layout.FREE_REQUESTED)
        result[events.subject[is_free]] = True
        result &= ~self._is_before
        rows = self.recording.row_of_buffer
        result[: rows.size] &= rows_scale[rows]
        return result

    def at_peak(self, chosen: BoolArray) -> int:
        """Bytes of the chosen buffers when most bytes are live."""
        live = self._live(self.sizes, GRANULE)
        if not live.size:
            return 0
        return int(self._live(np.where(chosen, self.sizes, 0), 1)[int(np.argmax(live))])

    def _live(self, sizes: Int64Array, granule: int) -> Int64Array:
        """Bytes live after each event, each request rounded up."""
        events = self._events
        size = -(-np.maximum(sizes, 0) // granule) * granule
        change = np.zeros(len(events), np.int64)
        begins = events.kind == layout.ALLOCATE
        ends = (events.kind == layout.FREE) | (events.kind == layout.FREE_COMPLETED)
        change[begins] = size[events.subject[begins]]
        change[ends] = -size[events.subject[ends]]
        return np.cumsum(change)

    @cached_property
    def live_peak(self) -> int:
        """The most bytes that are live, each request rounded up."""
        return int(self._live(self.sizes, GRANULE).max(initial=0))

    def _variants(self, settings: CachingSettings, *, sized: bool) -> Iterator[_Variant]:
        yield _Variant()
        is_recorded = settings == self.recording.settings and not sized
        if not self.recording.is_whole and is_recorded and self.recording.final is not None:
            yield _Variant(_START, is_from_start=True)
        if settings.expandable_segments:
            yield _Variant(_SIZE_OF_DEVICE, device_bytes=None)
        yield _Variant(_ORDER, placement="descending")

    def _machine(
        self, limit: int, settings: CachingSettings, sizes: Int64Array | None, variant: _Variant
    ) -> CachingMachine:
        one = self.recording
        events = one.what_if if variant.is_from_start else self._events
        if sizes is not None:
            events = replace(events, requested=sizes)
        return CachingMachine(
            events,
            settings,
            limit,
            one.start if variant.is_from_start else None,
            device_bytes=variant.device_bytes,
            placement=variant.placement,
            is_by_age=self.proof.is_by_age,
            has_results=False,
        )

    def limits(
        self, settings: CachingSettings | None = None, sizes: Int64Array | None = None
    ) -> Limits:
        """Which limits fit, to the MiB. Raises as `check_deadline`."""
        chosen = self.settings if settings is None else settings
        live = int(self._live(self.sizes if sizes is None else sizes, GRANULE).max(initial=0))
        count = len(self._events)
        is_first = settings is None
        left = most_work(count, is_first=is_first) if self.most_events is None else self.most_events
        scans: list[Scan] = []
        names: list[str] = []
        unsearched: list[str] = []
        for variant in self._variants(chosen, sized=sizes is not None):
            if scans and left < count:
                unsearched.append(variant.what)
                continue
            result = self._scan(variant, chosen, sizes, max(live, MIB), left)
            left -= result.events
            if scans and not result.is_whole:
                unsearched.append(variant.what)
                continue
            scans.append(result)
            names.append(variant.what)
        return combined(scans, names[1:], unsearched)

    def _scan(
        self,
        variant: _Variant,
        settings: CachingSettings,
        sizes: Int64Array | None,
        live: int,
        most_events: int,
    ) -> Scan:
        if variant.device_bytes is None:
            return self._each(variant, settings, sizes, live, most_events)
        count = len(self.recording.what_if if variant.is_from_start else self._events)
        return scan(
            lambda limit: RunningReplay(self._machine(limit, settings, sizes, variant)),
            count,
            live,
            most_events=most_events,
        )

    def _each(
        self,
        variant: _Variant,
        settings: CachingSettings,
        sizes: Int64Array | None,
        live: int,
        most_events: int,
    ) -> Scan:
        """Every limit by a replay of its own: the size of the device enters everywhere.

        From five fourths of what is reserved without a limit on, the size has no influence.
        """
        count = len(self._events)
        free = self._machine(NO_LIMIT, settings, sizes, _Variant())
        free.advance(count)
        lowest = max(-(-live // MIB) * MIB, MIB)
        limit = max(-(-5 * free.peak_reserved // (4 * MIB)) * MIB, lowest)
        spans = [Span(limit, NO_LIMIT, -1)]
        done = count
        while limit > lowest and done < min(most_events, _MOST_EACH):
            limit -= MIB
            machine = self._machine(limit, settings, sizes, variant)
            stop = machine.advance(count)
            done += stop + 2 * BEGINNING
            fails_at = -1 if machine.failed < 0 else stop
            last = spans[-1]
            if last.fails_at == fails_at:
                spans[-1] = Span(limit, last.high, fails_at)
            else:
                spans.append(Span(limit, limit, fails_at))
        return Scan(tuple(spans), limit, limit <= lowest, done)

    def under(
        self, limit: int, settings: CachingSettings | None = None, sizes: Int64Array | None = None
    ) -> Outcome:
        """The replay under one limit, of several that are possible one that fails. Raises as
        `check_deadline`.
        """
        chosen = self.settings if settings is None else settings
        first: Outcome | None = None
        for variant in self._variants(chosen, sized=sizes is not None):
            outcome = self._outcome(variant, limit, chosen, sizes)
            if outcome.stopped_at >= 0:
                return outcome
            first = first or outcome
        return first or self._outcome(_Variant(), limit, chosen, sizes)

    def _outcome(
        self, variant: _Variant, limit: int, settings: CachingSettings, sizes: Int64Array | None
    ) -> Outcome:
        machine = self._machine(limit, settings, sizes, variant)
        machine.advance()
        shift = self._lead if variant.is_from_start else 0
        stopped = machine.failed + shift if machine.failed >= 0 else -1
        live = self._live(self.sizes if sizes is None else sizes, GRANULE)
        state = machine.blocks()
        is_free = state.state == layout.IS_FREE
        free = int(state.bytes[is_free].sum())
        before = int(live[stopped - 1]) if stopped > 0 else 0
        is_used = (state.state == layout.IS_LIVE) | (state.state == layout.IS_AWAITING)
        shown = is_free | is_used
        # Of an expandable segment what is mapped counts.
        mapped = np.zeros(state.base.size, np.int64)
        np.add.at(mapped, state.segment[shown], state.bytes[shown])
        numbers = np.arange(state.base.size)
        return Outcome(
            limit=machine.limit,
            stopped_at=stopped,
            peak=machine.peak_in_use,
            reserved=machine.peak_reserved,
            cause=self._cause(stopped, machine, before, free, sizes) if stopped >= 0 else None,
            live=before,
            free=free,
            largest=int(state.bytes[is_free].max(initial=0)),
            in_use=machine.in_use + machine.awaiting,
            blocks=np.column_stack(
                [state.segment, state.address, state.bytes, is_used, state.buffer]
            )[shown].astype(np.int64),
            segments=np.column_stack([numbers, state.base, mapped]).astype(np.int64),
        )

    def _cause(
        self, event: int, machine: CachingMachine, live: int, free: int, sizes: Int64Array | None
    ) -> Cause:
        requested = (self.sizes if sizes is None else sizes)[self.buffer_of(event)]
        wanted = -(-int(requested) // GRANULE) * GRANULE
        if live + wanted > machine.limit:
            return "memory"
        room = machine.limit - machine.reserved
        return "segments" if free + room >= wanted else "unsplit"

    def fits(
        self, limit: int, settings: CachingSettings | None = None, sizes: Int64Array | None = None
    ) -> bool | None:
        """Whether one limit fits, None where what is not recorded decides."""
        chosen = self.settings if settings is None else settings
        result = set()
        for variant in self._variants(chosen, sized=sizes is not None):
            machine = self._machine(limit, chosen, sizes, variant)
            machine.advance()
            result.add(machine.failed < 0)
        return result.pop() if len(result) == 1 else None

    def others(self) -> list[CachingSettings]:
        """Settings that could make it fit in less."""
        base = self.settings
        chosen = {name for name, _ in self.given}
        grown = replace(base, expandable_segments=True, max_split_bytes=None)
        divided = (4,) * len(base.roundup_power2_divisions)
        result: list[CachingSettings] = []
        if "expandable_segments" not in chosen:
            result.append(grown)
        if "roundup_power2_divisions" not in chosen:
            result.append(replace(base, roundup_power2_divisions=divided))
        if "max_split_size_mb" not in chosen and not base.expandable_segments:
            result += [replace(base, max_split_bytes=size * MIB) for size in (32, 128, 512)]
        return [one for one in dict.fromkeys(result) if one != base]
