"""How a program's temporaries are packed: as recorded, and as XLA's heap packs them again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.hlo.memory import Heap, ProgramMemory
from peakline.kernels.heap_layout import FREE, SHARE
from peakline.replay.xla_heap import HeapTrace, Packed, are_shifted, pack, read_trace

if TYPE_CHECKING:
    from peakline.arrays import AnyArray

_ALIGNMENTS = {"cpu": (64,), "gpu": (128, 256)}
"""Bytes to which XLA aligns values: of CPUs ``cpu::Align`` (``xla/backends/cpu/alignment.h``), of
GPUs ``kXlaAllocatedBufferAlignBytes`` (``xla/service/gpu/gpu_constants.h``), which has had both
values. That of TPUs is not public and differs between their memories."""
_LARGEST_ALIGNMENT = 1024
_FAR = 2**62


@dataclass(frozen=True, slots=True)
class Repacking:
    """How the temporaries of all heaps of a program are packed, in bytes.

    ``heap_bytes`` is the room they take as recorded, ``repacked_bytes`` what they take packed
    again, ``live_bytes`` what of it is in use at most at one time: no packing needs less.
    ``is_same`` says that the recorded places came out again, up to a constant per heap: then
    packing them with changes gives what XLA would make of these.
    """

    heap_bytes: int
    repacked_bytes: int
    live_bytes: int
    is_same: bool

    @property
    def loss_bytes(self) -> int:
        """What the packing wastes at the peak: room that no value needs."""
        return max(self.heap_bytes - self.live_bytes, 0)


class PackedHeap:
    """One simulated heap of a program, packed again.

    ``trace`` are its pieces, ``values`` the numbers of its values, in the order of those of the
    trace, and ``rows`` their rows in the program's ``hlo_buffers``, -1 for none.
    """

    def __init__(self, heap: Heap, memory: ProgramMemory) -> None:
        self.heap = heap
        events, buffers = heap.events, memory.buffers
        is_known = heap.kind <= SHARE
        # What is of no kind frees a value that there is not.
        kind = np.where(is_known, heap.kind, FREE).astype(np.uint8)
        number = events.array("buffer")
        self.values = np.unique(number)
        self.rows = memory.rows_of(self.values)
        value = np.where(is_known, np.searchsorted(self.values, number), -1)
        size = np.append(buffers.array("bytes"), 0)[self.rows]
        self.trace: HeapTrace = read_trace(
            kind, value, self._places(events.array("shared_with")), size
        )
        self._offset = np.append(buffers.array("offset_bytes"), 0)[self.rows]
        self._alignments = *alignments_of(memory), self._common()

    def _common(self) -> int:
        """The largest alignment that all recorded places have, seen from the lowest."""
        offset = self._offset[(self.trace.piece >= 0) & (self.rows >= 0)]
        bits = int(np.bitwise_or.reduce(offset - offset.min(initial=_FAR)))
        return min(bits & -bits, _LARGEST_ALIGNMENT) if bits > 0 else _LARGEST_ALIGNMENT

    def _places(self, numbers: AnyArray) -> Int64Array:
        if not self.values.size:
            return np.zeros(0, np.int64)
        at = np.minimum(np.searchsorted(self.values, numbers), self.values.size - 1)
        return np.where(self.values[at] == numbers, at, -1)

    @cached_property
    def _found(self) -> tuple[int, Packed | None, bool]:
        """The alignment, what it gives, and whether that is as recorded."""
        first: tuple[int, Packed | None, bool] | None = None
        placed = (self.trace.piece >= 0) & (self.rows >= 0)
        for alignment in self._alignments:
            packed = pack(self.trace.pieces, alignment)
            if packed is None:
                return alignment, None, False
            offset = np.append(packed.offset, 0)[self.trace.piece]
            if are_shifted(offset, self._offset, placed):
                return alignment, packed, True
            first = first or (alignment, packed, False)
        return first or (1, None, False)

    @property
    def alignment(self) -> int:
        """To how many bytes values are aligned: of those of the backend the first by which the
        recorded places come out, else the first.
        """
        return self._found[0]

    @property
    def packed(self) -> Packed | None:
        """The heap packed again; None where that takes too long."""
        return self._found[1]

    @property
    def is_same(self) -> bool:
        """Whether the recorded places came out again, up to a constant."""
        return self._found[2]


def alignments_of(memory: ProgramMemory) -> tuple[int, ...]:
    """To how many bytes XLA aligns values on the program's device; all of them where it names none,
    none for a TPU.
    """
    backend = memory.module.names("backend")[0]
    return _ALIGNMENTS.get(backend, ()) if backend else (64, 128, 256)


def packed_heaps(memory: ProgramMemory) -> list[PackedHeap]:
    """The heaps of a program, each packed again when that is wanted."""
    return [PackedHeap(heap, memory) for heap in memory.heaps]


def repack(memory: ProgramMemory) -> Repacking:
    """How the program's temporaries are packed. Where packing again takes too long,
    ``repacked_bytes`` is as recorded. Raises as `peakline.deadline.check_deadline`.
    """
    heaps = packed_heaps(memory)
    return Repacking(
        sum(one.heap.heap_bytes for one in heaps),
        sum(one.heap.heap_bytes if one.packed is None else one.packed.heap_bytes for one in heaps),
        sum(one.heap.peak for one in heaps),
        all(one.is_same for one in heaps),
    )
