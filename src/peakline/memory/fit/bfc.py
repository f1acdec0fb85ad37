"""A recording of TensorFlow's or XLA's best-fit allocator under other limits and settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.fit.combined import combined, most_work
from peakline.memory.fit.model import Cause, Limits, Proof
from peakline.memory.fit.replayed import Outcome, Recording
from peakline.replay.bfc import GRANULE, BfcMachine, BfcProof, BfcSettings, bases_like, prove
from peakline.replay.limits import Scan, scan
from peakline.replay.requests import MIB, Requests

_ORDER = "where regions lie"


@dataclass(frozen=True, eq=False)
class Variant:
    """What could be so: ``what`` is otherwise than in the first of them."""

    what: str
    settings: BfcSettings
    bases: Int64Array


@dataclass(frozen=True, eq=False)
class BfcFit:
    """One recording. ``given`` are settings that the caller knows, by name; ``most_events`` bounds
    the work of a search over limits.
    """

    recording: Recording
    capacity: int | None
    is_gpu: bool
    given: tuple[tuple[str, str], ...] = ()
    most_events: int | None = None
    name = "bfc"
    granule = GRANULE

    @cached_property
    def proof(self) -> BfcProof:
        """The recording, replayed as it was recorded."""
        one = self.recording
        return prove(one.requests, one.address, one.granted, self.capacity)

    @property
    def is_proved(self) -> bool:
        """Whether the replay gives the recorded addresses from the start on."""
        return not self._doubt

    @property
    def stated(self) -> Proof:
        """What is said of the proof."""
        proof = self.proof
        return Proof(proof.allocations, proof.equal, not self._doubt, self._doubt)

    @cached_property
    def _doubt(self) -> str:
        """Why the recording is not proved to be of this allocator; empty where it is."""
        one, proof = self.recording, self.proof
        if not proof.allocations:
            return "no allocation has an address"
        if one.start_bytes is None and not one.before:
            start = "the records do not say what was in use before the first of them"
        elif not one.starts_empty:
            start = "memory was in use before the first record, at unknown addresses"
        else:
            start = ""
        if one.untracked or one.missing:
            return "records are missing: the bytes in use change between them"
        if proof.is_same:
            return start
        return start or (
            f"{proof.equal:,} of {proof.allocations:,} addresses are what this allocator would "
            "give: another one, or events are missing"
        )

    @cached_property
    def settings(self) -> BfcSettings:
        """The settings that the replay shows, with those that are given."""
        result = replace(self.proof.settings, descending=True, coalescing=False)
        for name, text in self.given:
            result = result.changed(name, text)
        return result

    @cached_property
    def requests(self) -> Requests:
        """What is replayed under other limits: what was there before is one more block."""
        one = self.recording
        unknown = one.unknown_bytes
        if not unknown:
            return one.requests
        number = one.requests.size.size
        return Requests(
            np.concatenate([[number], one.requests.events]).astype(np.int64),
            np.append(one.requests.size, unknown).astype(np.int64),
        )

    def _requests(self, sizes: Int64Array | None) -> Requests:
        return self.requests if sizes is None else self.requests.scaled(sizes)

    @cached_property
    def _bases(self) -> Int64Array:
        return bases_like(self.proof.machine.regions())

    def machine(
        self,
        limit: int,
        settings: BfcSettings,
        requests: Requests | None = None,
        bases: Int64Array | None = None,
    ) -> BfcMachine:
        """The allocator before the first request, under a limit. ``bases`` is where regions lie
        (None: in the recorded order).
        """
        wanted = self.requests if requests is None else requests
        return BfcMachine(wanted, settings, limit, bases=self._bases if bases is None else bases)

    @property
    def sizes(self) -> Int64Array:
        """Per buffer the bytes that were requested."""
        return self.requests.size

    def buffer_of(self, event: int) -> int:
        """The buffer that an event allocates."""
        return int(self.requests.events[event])

    def row_of(self, buffer: int) -> int:
        """The record that allocates a buffer, -1 for one from before the profile."""
        one = self.recording
        return int(one.row[buffer]) if 0 <= buffer < one.row.size - one.before else -1

    def index_of(self, event: int) -> int:
        """How many recorded allocations come before an event."""
        known = self.recording.row.size - self.recording.before
        before = self.requests.events[:event]
        return int(((before >= 0) & (before < known)).sum())

    def scaling(self, rows_scale: BoolArray) -> BoolArray:
        """The buffers of these records that are freed again."""
        one, events = self.recording, self.requests.events
        result = np.zeros(self.requests.size.size, np.bool_)
        result[~events[events < 0]] = True
        known = one.row.size - one.before
        result[known:] = False
        result[:known] &= rows_scale[one.row[:known]]
        return result

    def at_peak(self, chosen: BoolArray) -> int:
        """Bytes of the chosen buffers when most bytes are live."""
        only = self.requests.scaled(np.where(chosen, self.requests.size, 0))
        return int(only.live_bytes(1)[int(np.argmax(self.live))]) if self.live.size else 0

    @cached_property
    def live(self) -> Int64Array:
        """Bytes live after each event, each request rounded up."""
        return self.requests.live_bytes(GRANULE)

    @property
    def live_peak(self) -> int:
        """The most bytes that are live, each request rounded up."""
        return int(self.live.max(initial=0))

    def variants(self, settings: BfcSettings) -> list[Variant]:
        """The settings, and what could be otherwise and is not recorded.

        Where regions lie differs from process to process: the first one often in the heap of the
        process, below all others, and each of these below the last.
        """
        result = [Variant("", settings, self._bases)]
        chosen = {name for name, _ in self.given}
        if settings.allow_growth:
            falling = np.ascontiguousarray(np.sort(self._bases)[::-1])
            orders = [falling, np.append(falling[-1:], falling[:-1]), self._bases]
            result += [
                Variant(_ORDER, replace(settings, descending=place < len(orders) - 1), one)
                for place, one in enumerate(orders)
            ]
        if self.is_gpu and "garbage_collection" not in chosen:
            changed = replace(settings, garbage_collection=not settings.garbage_collection)
            result.append(Variant("garbage collection", changed, self._bases))
        if not self.is_proved and "allow_growth" not in chosen:
            changed = replace(settings, allow_growth=not settings.allow_growth)
            result.append(Variant("growth", changed, self._bases))
        return result

    def limits(
        self, settings: BfcSettings | None = None, sizes: Int64Array | None = None
    ) -> Limits:
        """Which limits fit, to the MiB. Raises as `check_deadline`."""
        chosen = self.settings if settings is None else settings
        wanted = self._requests(sizes)
        live = self.live_peak if sizes is None else int(wanted.live_bytes(GRANULE).max(initial=0))
        is_first = settings is None
        left = (
            most_work(len(wanted), is_first=is_first)
            if self.most_events is None
            else self.most_events
        )
        scans: list[Scan] = []
        names: list[str] = []
        unsearched: list[str] = []
        for one in self.variants(chosen):
            if scans and left < len(wanted):
                unsearched.append(one.what)
                continue
            result = scan(
                lambda limit, one=one: self._begun(limit, one, wanted),  # type: ignore[misc]
                len(wanted),
                max(live, MIB),
                most_events=left,
            )
            left -= result.events
            if scans and not result.is_whole:
                unsearched.append(one.what)
                continue
            scans.append(result)
            names.append(one.what)
        return combined(scans, names[1:], unsearched)

    def under(
        self, limit: int, settings: BfcSettings | None = None, sizes: Int64Array | None = None
    ) -> Outcome:
        """The replay under one limit, of several that are possible one that fails. Raises as
        `check_deadline`.
        """
        chosen = self.settings if settings is None else settings
        wanted = self._requests(sizes)
        first, *others = self.variants(chosen)
        machine = self._begun(limit, first, wanted)
        fits = machine.advance(len(wanted)) == len(wanted)
        for one in others if fits else []:
            other = self._begun(limit, one, wanted)
            if other.advance(len(wanted)) < len(wanted):
                return self._outcome(other, one.settings)
        return self._outcome(machine, first.settings)

    def _begun(self, limit: int, variant: Variant, requests: Requests) -> BfcMachine:
        return self.machine(limit, variant.settings, requests, variant.bases)

    def _outcome(self, machine: BfcMachine, settings: BfcSettings) -> Outcome:
        requests, stop = machine.requests, machine.position
        failed = stop < len(requests)
        free = machine.free_sizes()
        live = self.live if requests is self.requests else requests.live_bytes(GRANULE)
        before = int(live[stop - 1]) if stop else 0
        return Outcome(
            limit=machine.limit,
            stopped_at=stop if failed else -1,
            peak=machine.peak,
            reserved=machine.peak_reserved,
            cause=self._cause(machine, settings, before, int(free.sum())) if failed else None,
            live=before,
            free=int(free.sum()),
            largest=int(free.max(initial=0)),
            in_use=machine.in_use,
            blocks=machine.chunks(),
            segments=machine.region_rows(),
        )

    def _cause(self, machine: BfcMachine, settings: BfcSettings, live: int, free: int) -> Cause:
        requests, limit = machine.requests, machine.limit
        size = int(requests.size[requests.events[machine.position]])
        wanted = -(-size // GRANULE) * GRANULE
        if live + wanted > limit:
            return "memory"
        if settings.allow_growth:
            whole = self.machine(limit, replace(settings, allow_growth=False), requests)
            if whole.advance(len(requests)) == len(requests):
                return "growth"
        return "fragmentation" if free + limit - machine.reserved >= wanted else "unsplit"

    def fits(
        self, limit: int, settings: BfcSettings | None = None, sizes: Int64Array | None = None
    ) -> bool | None:
        """Whether one limit fits, None where what is not recorded decides."""
        chosen = self.settings if settings is None else settings
        wanted = self._requests(sizes)
        result = {
            self._begun(limit, one, wanted).advance(len(wanted)) == len(wanted)
            for one in self.variants(chosen)
        }
        return result.pop() if len(result) == 1 else None

    def uncertain(self) -> str:
        """Why other limits are a bound although the recording is proved; empty where not."""
        if self.proof.settings.coalescing:
            return "regions that touch are merged, and where the system puts others is not known"
        return ""

    def others(self) -> list[BfcSettings]:
        """Settings that could make it fit in less."""
        base = self.settings
        chosen = {name for name, _ in self.given}
        result: list[BfcSettings] = []
        if "allow_growth" not in chosen:
            result.append(replace(base, allow_growth=not base.allow_growth))
        if "garbage_collection" not in chosen and base.allow_growth:
            result.append(replace(base, garbage_collection=True))
        if "internal_fragmentation_fraction" not in chosen:
            result += [
                replace(one, internal_fragmentation_fraction=0.01)
                for one in (base, replace(base, allow_growth=False))
            ]
        return [one for one in dict.fromkeys(result) if one != base]
