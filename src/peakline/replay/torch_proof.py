"""Whether a model of PyTorch's caching allocator gives the addresses that were recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.kernels import caching_layout as layout
from peakline.replay.torch_caching import CachingMachine
from peakline.replay.torch_recording import CachingRecording
from peakline.replay.torch_segments import Final


@dataclass(frozen=True)
class Proof:
    """A replay of a recording under its own settings.

    Of ``allocations`` the model put ``equal`` where they were recorded; ``unplaced`` others could
    not be moved there. ``segments_equal``: what was taken from the device for each allocation is
    what was recorded. ``end_equal``: so are the segments, blocks and free blocks at the end, None
    where the recording does not have them. ``is_whole``: the history begins with the first
    allocation. ``is_by_age``: of equal free blocks that of the older segment was taken, as PyTorch
    2.14 does, and not that at the lower address.

    ``reason`` says in one sentence why it is not proved, empty where it is.
    """

    allocations: int
    equal: int
    unplaced: int
    segments_equal: bool
    end_equal: bool | None
    is_whole: bool
    is_by_age: bool
    strange: int
    reason: str

    @property
    def is_proved(self) -> bool:
        """Whether everything that is recorded came out."""
        return not self.reason


def prove(recording: CachingRecording, device_bytes: int | None = None) -> Proof:
    """Replays a recording, and moves every block that came to lie elsewhere to where it was.

    ``device_bytes`` is the size of the device (None: more than is recorded), which decides how far
    an expandable segment can grow. Raises as `check_deadline`.
    """
    result = _proof(recording, device_bytes, is_by_age=True)
    if result.is_proved or result.equal == result.allocations:
        return result
    other = _proof(recording, device_bytes, is_by_age=False)
    return other if (other.equal, other.is_proved) > (result.equal, result.is_proved) else result


def _proof(recording: CachingRecording, device_bytes: int | None, *, is_by_age: bool) -> Proof:
    events = recording.events
    machine = CachingMachine(
        events, recording.settings, None, recording.start, device_bytes=device_bytes,
        is_proof=True, is_by_age=is_by_age,
    )  # fmt: skip
    machine.advance()
    allocations = int((events.kind == layout.ALLOCATE).sum())
    equal = allocations - machine.misses
    requested = np.ones(events.requested.size, np.bool_)
    requested[recording.before] = False
    taken = bool((machine.taken_bytes == events.segment_bytes)[requested].all())
    end = None if recording.final is None else _is_end(recording.final, machine)
    # A gap that made no difference is none.
    reason = recording.gap if recording.final is None or equal < allocations else ""
    if not reason and machine.failed >= 0:
        reason = "A request of the recording does not fit into any device."
    if not reason and not allocations:
        reason = "It has no allocation."
    if not reason and equal < allocations:
        reason = f"{allocations - equal:,} of {allocations:,} blocks lie elsewhere than replayed."
    if not reason and machine.strange:
        reason = f"{machine.strange:,} of its records fit none before them."
    if not reason and not taken:
        reason = "The segments taken from the device are others than replayed."
    if not reason and end is False:
        reason = "The blocks at the end are others than replayed."
    return Proof(
        allocations=allocations,
        equal=equal,
        unplaced=machine.unplaced,
        segments_equal=taken,
        end_equal=end,
        is_whole=recording.is_whole,
        is_by_age=is_by_age,
        strange=machine.strange,
        reason=reason,
    )


def _is_end(final: Final, machine: CachingMachine) -> bool:
    """Whether segments and blocks at the end are the recorded ones."""
    result = machine.blocks()
    is_mapped = result.state != layout.IS_UNMAPPED
    blocks = [column[is_mapped] for column in (result.address, result.bytes, result.state)]
    order = np.argsort(blocks[0], kind="stable")
    recorded = (final.address, final.bytes, final.state)
    if not all(np.array_equal(a[order], b) for a, b in zip(blocks, recorded, strict=True)):
        return False
    # An expandable segment is recorded as runs of pages.
    of = result.segment[is_mapped][order]
    starts = blocks[0][order]
    begins = np.ones(starts.size, np.bool_)
    ends = starts + blocks[1][order]
    begins[1:] = (of[1:] != of[:-1]) | (starts[1:] != ends[:-1])
    base: Int64Array = starts[begins]
    size = np.append(ends[:-1][begins[1:]], ends[-1:]) - base
    return bool(np.array_equal(base, final.base) and np.array_equal(size, final.size))
