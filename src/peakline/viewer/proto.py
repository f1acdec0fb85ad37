"""``trace_viewer@`` as XProf's compact form: zstd of a ``xprof.TraceDataResponse``.

Source: ``trace_data_to_compressed_delta_series_proto.cc`` in openxla/xprof
(``xprof/convert/trace_viewer/delta_series``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from peakline.arrays import AnyArray
from peakline.schema import TraceDataResponse, TraceEventMetadata
from peakline.viewer.flows import CATEGORIES
from peakline.viewer.json import HOST_PIDS
from peakline.viewer.names import is_interned
from peakline.viewer.part import HostPart
from peakline.viewer.view import ASYNC, COMPLETE, COUNTER, Track
from peakline.wire.encode import Field, Number, encode, message
from peakline.wire.tables import varint

_SERIES = {COMPLETE: 1, COUNTER: 2, ASYNC: 3}
"""The field of the answer that holds the series of each kind of track."""
_DELTAS, _DURATIONS, _NAMES, _METADATA = 2, 3, 4, 5
_LEVEL = 1
_SILENT = 2
"""Categories below this one say nothing."""
_BLOCK = 1 << 16
"""Events whose bytes are made at once: few enough to stay in a cache."""


def answer_pb(
    parts: Sequence[HostPart], details: Sequence[tuple[str, bool]], *, numbers_hosts: bool = True
) -> bytes:
    """The answer made of what the hosts give, in their order; with ``numbers_hosts`` the numbers of
    processes show the host.
    """
    import pyarrow as pa

    rest = TraceDataResponse()
    for name, value in details:
        rest.details.add(name=name, value=value)
    spans = [part.span for part in parts if part.processes]
    if spans:
        rest.full_timespan_start_ps = min(begin for begin, _ in spans) % 2**64
        rest.full_timespan_end_ps = max(end for _, end in spans) % 2**64
    strings = _Strings()
    series: list[bytes] = []
    flows = 0
    for number, part in enumerate(parts):
        base = (number + 1) * HOST_PIDS if numbers_hosts else 0
        for process in sorted(part.processes, key=lambda process: process.pid):
            pid = base + process.pid
            result = rest.metadata.processes.add(
                name=f"{part.host} {process.name}".lstrip(), id=pid, sort_index=pid
            )
            for tid, name in sorted(process.threads.items()):
                result.threads.add(name=name, id=tid, sort_index=tid)
        series += _series(part, base, flows, strings)
        flows += part.flows
    rest.interned_strings.extend(strings.texts)
    content = b"".join([*series, rest.SerializeToString()])
    # Level 1, as upstream: fast, and its size is in the frame.
    packed: bytes = pa.Codec("zstd", compression_level=_LEVEL).compress(content, asbytes=True)
    return packed


class _Strings:
    """Every text once, by its place; the first is empty."""

    def __init__(self) -> None:
        self._places = {"": 0}

    def place(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))

    @property
    def texts(self) -> list[str]:
        # Message fields hold no halves of characters.
        return [text.encode("utf-8", "replace").decode() for text in self._places]


def _series(part: HostPart, base: int, flows: int, strings: _Strings) -> list[bytes]:
    names = np.array([strings.place(text) for text in part.name.values] or [0], np.uint64)
    categories = np.array(
        [strings.place(text) if number >= _SILENT else 0
         for number, text in enumerate(CATEGORIES)] if part.flows else [0] * len(CATEGORIES),
        np.uint64,
    )  # fmt: skip
    start = part.start.view(np.uint64)
    deltas = np.diff(start, prepend=np.uint64(0))
    firsts = np.array([track.first for track in part.tracks], np.int64)
    deltas[firsts] = start[firsts]
    lengths = part.length.astype(np.uint64)
    codes, flow = part.name.codes, part.flow
    columns = {
        _DELTAS: _Rows(start.size, lambda here: [_packed(deltas[here])]),
        _DURATIONS: _Rows(start.size, lambda here: [_packed(lengths[here])]),
        _NAMES: _Rows(start.size, lambda here: [_packed(names[codes[here]])]),
    }

    def links(here: slice) -> list[Field]:
        own = flow[here].astype(np.uint64)
        group = np.where(part.has_group[here], part.group[here], 0).astype(np.int64)
        return [
            Number(1, np.where(own > 0, own + np.uint64(flows), np.uint64(0))),
            Number(2, np.where(own > 0, categories[part.category[here]], np.uint64(0))),
            Number(3, group.view(np.uint64) & np.uint64(2**32 - 1)),
            Number(4, part.serial[here].astype(np.uint64)),
        ]

    metadata = _Rows(start.size, links, frame=_METADATA)
    result = []
    for track in part.tracks:
        code = int(codes[track.first])
        name = int(names[code])
        if track.kind == ASYNC and is_interned(part.name.values[code]):
            # XProf keeps such a name elsewhere, and finds none here.
            name = 0
        answer = part.counters.get(track.first, []) if track.kind == COUNTER else []
        label = strings.place(answer[0][0]) if answer else None
        fields = [message(1, _identity(track, base, name, label))]
        chosen = {COUNTER: (_DELTAS,), ASYNC: (_DELTAS, _DURATIONS)}.get(track.kind, tuple(columns))
        fields += [message(field, columns[field].of(track)) for field in chosen]
        if track.kind == COUNTER:
            fields += [_value(part, place) for place in range(track.first, track.last)]
        else:
            fields.append(metadata.of(track))
        result.append(message(_SERIES[track.kind], b"".join(fields)))
    return result


class _Rows:
    """The bytes of every event, made for many at once: there can be thousands of series."""

    def __init__(
        self, size: int, fields: Callable[[slice], list[Field]], frame: int | None = None
    ) -> None:
        parts, first = [], np.zeros(size + 1, np.int64)
        for begin in range(0, size, _BLOCK):
            here = slice(begin, min(begin + _BLOCK, size))
            made = encode(here.stop - begin, fields(here), frame=frame)
            parts.append(made.data.tobytes())
            first[begin + 1 : here.stop + 1] = np.diff(made.bounds)
        self._content, self._first = b"".join(parts), np.cumsum(first)

    def of(self, track: Track) -> bytes:
        """Those of a track."""
        return self._content[self._first[track.first] : self._first[track.last]]


def _packed(values: AnyArray) -> Number:
    return Number(None, values, np.ones(values.size, np.bool_))


def _identity(track: Track, base: int, name: int, label: int | None) -> bytes:
    numbers = [(1, base + track.pid)]
    numbers.append((2, track.tid & 0xFFFFFFFF) if track.kind == COMPLETE else (3, name))
    known = b"".join(_number(field, value) for field, value in numbers if value)
    return known if label is None else known + _number(4, label)


def _value(part: HostPart, place: int) -> bytes:
    """What a counter has: a message even for none, so that there is one for each event."""
    value = TraceEventMetadata()
    result = part.counters.get(place, [])
    if result and isinstance(result[0][1], float):
        value.counter_value_double = result[0][1]
    elif result and isinstance(result[0][1], int):
        value.counter_value_uint64 = result[0][1] % 2**64
    return message(_METADATA, value.SerializeToString())


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)
