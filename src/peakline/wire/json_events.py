"""`JsonEvents`: a JSON array of objects to columns, block by block, without Python objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peakline.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from peakline.kernels import json_kinds as kinds
from peakline.kernels import json_layout as K
from peakline.kernels.json_numbers import integers
from peakline.kernels.json_scan import members, scan
from peakline.wire.decode import as_buffer
from peakline.wire.tables import Buffer, Spans

_ROWS = 1 << 14
_ROOTS = 64
_MOST_BYTES = 256 << 20
_MOST_ROOT_BYTES = 1 << 20
_KEY_PARENT, _KEY_START, _KEY_LENGTH, _KEY_NEXT, _KEY_TIME, _KEY_WORD, _KEY_WIDTH = range(7)


@dataclass(frozen=True, eq=False)
class Objects:
    """Some objects of the array; valid until the next ones are read.

    ``offset`` is where each begins in the file, ``size`` its length in bytes.
    """

    buffer: Buffer
    rows: int
    offset: Int64Array
    size: Int64Array
    _columns: dict[str, int]
    _times: dict[str, int]
    _kinds: UInt8Array
    _starts: Int32Array
    _lengths: Int32Array
    _micros: Int64Array
    _states: UInt8Array

    def kind(self, key: str) -> UInt8Array:
        """What the member's value is: a constant of `json_kinds`, ABSENT where there is none."""
        return self._kinds[:, self._columns[key]]

    def spans(self, key: str) -> Spans:
        """Where the values lie: strings without quotes, containers with their brackets.

        Only what `kind` does not call ABSENT is set; other rows have no meaning.
        """
        column = self._columns[key]
        return Spans(self._starts[:, column], self._lengths[:, column])

    def microseconds(self, key: str) -> tuple[Int64Array, Int64Array, UInt8Array]:
        """A time: whole microseconds, picoseconds beyond them, a TIME state of `json_layout`.

        Picoseconds alone would not do: 64 bits of them are 106 days, and many writers count
        from 1970.
        """
        time = self._times[key]
        return self._micros[:, time, 0], self._micros[:, time, 1], self._states[:, time]

    def integers(self, key: str, rows: Int64Array) -> tuple[Int64Array, BoolArray]:
        """Integers, quoted or not, of some rows; False where there is none that fits 64 bits."""
        has = self.kind(key)[rows]
        spans = self.spans(key).take(rows)
        out, good = np.zeros(has.size, np.int64), np.zeros(has.size, np.bool_)
        is_number = (has == kinds.NUMBER) | (has == kinds.STRING)
        integers(self.buffer, spans.start, spans.length, is_number, out, good)
        return out, good


@dataclass(frozen=True, eq=False)
class Members:
    """All members of some objects: ``parent`` is the object, ``kind`` the kind of the value."""

    parent: Int64Array
    key_kind: UInt8Array
    key: Spans
    kind: UInt8Array
    value: Spans


class JsonEvents:
    """Reads the objects of a trace: a JSON array, or the array(s) ``traceEvents`` of an object.

    ``keys`` are the members wanted, ``outer.inner`` for a member of the object in ``outer``;
    those in ``times`` are decimal numbers of
    microseconds, taken exactly. ``anchor`` is a key that
    every object has, with a string: after damage, reading goes on at the next object with it. With
    ``lines`` the file is objects one after the other. ``most_bytes`` is the largest object read.

    Everything from one call of `feed` or `finish` must be taken before the next call.
    """

    def __init__(
        self,
        keys: Sequence[str],
        *,
        times: Sequence[str] = (),
        anchor: str,
        lines: bool = False,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        order = sorted(keys, key=lambda key: "." in key)
        self._columns = {key: number for number, key in enumerate(order)}
        self._times = {key: number for number, key in enumerate(times)}
        self._table = _key_table(order, self._columns, self._times)
        self._anchor = self._columns[anchor]
        self._most = most_bytes
        self._state = np.zeros(K.S_WIDTH, np.int64)
        self._state[K.S_FIRST] = self._state[K.S_CUT] = -1
        self._state[K.S_ROOT] = K.IN_LINES if lines else K.IN_ARRAY
        self._stack = np.zeros(K.MAX_DEPTH, np.uint8)
        self._scratch = np.zeros(64, np.uint8)
        width = len(order)
        self._kinds = np.zeros((_ROWS, width), np.uint8)
        self._starts = np.zeros((_ROWS, width), np.int32)
        self._lengths = np.zeros((_ROWS, width), np.int32)
        self._micros = np.zeros((_ROWS, len(times), 2), np.int64)
        self._states = np.zeros((_ROWS, len(times)), np.uint8)
        self._offsets = np.zeros(_ROWS, np.int64)
        self._sizes = np.zeros(_ROWS, np.int64)
        self._roots = np.zeros((_ROOTS, 5), np.int64)
        self._waiting: list[Buffer] = []
        self._waiting_bytes = self._needed = 0
        self._base = 0
        self._ended = False
        self.root: dict[str, bytes] = {}
        """Other members of the outermost object, as they are written; large ones are left out."""

    @property
    def damaged(self) -> tuple[int, int]:
        """How many places were damaged, and the offset of the first (-1: none)."""
        return int(self._state[K.S_DAMAGED]), int(self._state[K.S_FIRST])

    @property
    def too_big(self) -> int:
        """Objects that were given up because of their size."""
        return int(self._state[K.S_BIG])

    @property
    def cut(self) -> int:
        """Offset of what the end of the file cuts, -1 when it ends as it should.

        An array that only lacks its closing bracket is as it should be: those who write traces
        while a program runs never close it, and the format allows it.
        """
        if self._state[K.S_CUT] >= 0:
            return int(self._state[K.S_CUT])
        inside = self._state[K.S_MODE] in {K.IN_ROOT, K.EVENTS}
        if self._ended and inside and self._state[K.S_ROOT] == K.IN_OBJECT:
            return self._base
        return -1

    def feed(self, block: Buffer | bytes) -> Iterator[Objects]:
        """The objects that are whole with these bytes, the next ones of the file."""
        part = as_buffer(block)
        self._waiting.append(part)
        self._waiting_bytes += part.size
        # An unfinished object is looked at again when twice as much of it is there, so that the
        # work grows with its size however small the blocks are.
        if self._waiting_bytes >= self._needed:
            yield from self._scan(is_last=False)

    def finish(self) -> Iterator[Objects]:
        """What the end of the file shows to be whole."""
        yield from self._scan(is_last=True)
        self._ended = True

    def _scan(self, *, is_last: bool) -> Iterator[Objects]:
        waiting = self._waiting
        # Read-only as a file's own: the kernels are compiled for one sort of buffer.
        buffer = as_buffer(
            waiting[0] if len(waiting) == 1 else np.concatenate([*waiting, _NOTHING])
        )
        self._waiting, self._waiting_bytes = [], 0
        state = self._state
        state[K.S_AT] = 0
        while True:
            reason = scan(
                buffer, buffer.size, is_last, self._base, self._most, self._anchor, state,
                *self._table, self._stack, self._scratch,
                self._kinds, self._starts, self._lengths, self._micros, self._states,
                self._offsets, self._sizes, self._roots,
            )  # fmt: skip
            self._note_roots(buffer, int(state[K.S_ROOTS]))
            rows = int(state[K.S_ROWS])
            if rows:
                yield Objects(
                    buffer, rows, self._offsets[:rows], self._sizes[:rows],
                    self._columns, self._times, self._kinds[:rows], self._starts[:rows],
                    self._lengths[:rows], self._micros[:rows], self._states[:rows],
                )  # fmt: skip
            if reason != K.FULL:
                break
        at = int(state[K.S_AT])
        rest = buffer[at:]
        self._base += at
        self._needed = 2 * rest.size if state[K.S_NEED] else 0
        if rest.size:
            # A copy, so that the block itself can go.
            self._waiting, self._waiting_bytes = [rest.copy()], rest.size

    def _note_roots(self, buffer: Buffer, count: int) -> None:
        for key, key_length, kind, start, length in self._roots[:count].tolist():
            if length <= _MOST_ROOT_BYTES:
                name = buffer[key : key + key_length].tobytes().decode("utf-8", "replace")
                quote = kind in {kinds.STRING, kinds.ESCAPED}
                text = buffer[start - quote : start + length + quote]
                self.root[name] = text.tobytes()


def members_of(buffer: Buffer, spans: Spans) -> Members:
    """Every member of the objects in ``spans``, which must be whole (as `Objects` gives them)."""
    room = np.int64(max(16, int(spans.length.sum()) // 8))
    starts = np.ascontiguousarray(spans.start, np.int64)
    lengths = np.ascontiguousarray(spans.length, np.int64)
    stack = np.zeros(K.MAX_DEPTH, np.uint8)
    while True:
        parent = np.empty(room, np.int64)
        sorts = np.empty((room, 2), np.uint8)
        places = np.empty((room, 4), np.int64)
        count = members(buffer, starts, lengths, stack, parent, sorts, places)
        if count <= room:
            break
        room = np.int64(count)
    return Members(
        parent[:count],
        sorts[:count, 0],
        Spans(places[:count, 0], places[:count, 1]),
        sorts[:count, 1],
        Spans(places[:count, 2], places[:count, 3]),
    )


_NOTHING = np.zeros(0, np.uint8)


def _key_table(
    order: Sequence[str], columns: dict[str, int], times: dict[str, int]
) -> tuple[npt.NDArray[np.int16], Int64Array, Buffer]:
    """The wanted keys as the kernel looks them up: slots, keys (chained), and their bytes."""
    slots = np.full(256, -1, np.int16)
    keys = np.full((len(order), _KEY_WIDTH), -1, np.int64)
    pool = b""
    for number, name in enumerate(order):
        outer, dot, inner = name.partition(".")
        word = (inner if dot else outer).encode()
        parent = columns[outer] if dot else -1
        first = np.frombuffer(word[:8].ljust(8, b"\0"), np.uint64)[0]
        slot = ((int(first) + parent + 1) * K.KEY_MIX % (1 << 64)) >> 56
        keys[number, _KEY_PARENT] = parent
        keys[number, _KEY_START] = len(pool)
        keys[number, _KEY_LENGTH] = len(word)
        keys[number, _KEY_NEXT] = slots[slot]
        keys[number, _KEY_TIME] = times.get(name, -1)
        keys[number, _KEY_WORD] = first.view(np.int64)
        slots[slot] = number
        pool += word
    return slots, keys, np.frombuffer(pool, np.uint8).copy()
