"""``trace_viewer@`` as JSON: one text for the events of all hosts.

Source: ``trace_events_to_json.h`` in openxla/xprof (``xprof/convert/trace_viewer``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring_ascii as quoted

import numpy as np

from peakline.arrays import AnyArray
from peakline.text import ROW_BYTES, check_length
from peakline.viewer.events import name_texts, named, parts_of
from peakline.viewer.flows import CATEGORIES, IN, OUT
from peakline.viewer.lines import Gap, Lines
from peakline.viewer.part import Argument, HostPart
from peakline.viewer.view import ASYNC, COUNTER, Track

HOST_PIDS = 1000
"""The processes of host n, from 1 on, are numbered from n times this on."""
_EXACT = 1 << 53
_INTO, _OUT_OF = ',"flow_in":true', ',"flow_out":true'
_DIRECTIONS = {0: "", IN: _INTO, OUT: _OUT_OF, IN | OUT: _INTO + _OUT_OF}
_SILENT = frozenset((0, 1))
"""Categories that say nothing."""


def answer_json(
    parts: Sequence[HostPart],
    details: Sequence[tuple[str, bool]],
    shown_ms: Callable[[float], str] = repr,
) -> bytes:
    """The answer made of what the hosts give, in their order.

    ``shown_ms`` writes when all events begin and end, in milliseconds.
    """
    frames = _Frames(parts)
    spans = [part.span for part in parts if part.processes]
    span = (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else (0, 0)
    result = [shown_ms(time / 1e9) for time in span]
    size = sum(track.last - track.first for part in parts for track in part.tracks)
    thinned = any(part.thinned for part in parts)
    shown = ",".join(f'{{"name":{quoted(n)},"value":{str(v).lower()}}}' for n, v in details)
    names = ",".join(f'"{n}":{{"name":{quoted(text)}}}' for text, n in frames.numbers.items())
    head = (
        '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"codeLink":"",'
        f'"useNewBackend":false,"details":[{shown}],"returnedEventsSize":{size},'
        f'"filteredByVisibility":{str(thinned).lower()},"fullTimespan":[{result[0]},{result[1]}],'
        f'"stackFrames":{{{names}}},"traceEvents":[\n'
    )
    rows: list[bytes | memoryview] = [head.encode()]
    flows = counters = 0
    first = True
    for number, part in enumerate(parts):
        base = (number + 1) * HOST_PIDS
        metadata = ",\n".join(_metadata(part, base)).encode()
        if metadata:
            rows.append(metadata if first else b",\n" + metadata)
            first = False
        rows += _events(part, base, flows, frames)
        flows += part.flows
        counters += sum(t.last - t.first for t in part.tracks if t.kind == COUNTER)
    rows.append(f'],"showCounterMessage":"","totalCounterEvents":{counters}}}'.encode())
    return b"".join(rows)


def _metadata(part: HostPart, base: int) -> Iterator[str]:
    for process in sorted(part.processes, key=lambda process: process.pid):
        pid, count = base + process.pid, f',"thread_count":{len(process.threads)}'
        yield from named("process", f'"pid":{pid}', f"{part.host} {process.name}", pid, count)
        for tid, text in sorted(process.threads.items()):
            yield from named("thread", f'"pid":{pid},"tid":{tid}', text, tid)


class _Frames:
    """Long texts that several events have, by number."""

    def __init__(self, parts: Sequence[HostPart]) -> None:
        self.numbers: dict[str, int] = {}
        for part in parts:
            for text in part.frames:
                self.numbers.setdefault(text, len(self.numbers) + 1)
            for result in (part.arguments or {}).values():
                for name, value in result:
                    if is_frame(name, value):
                        self.numbers.setdefault(str(value), len(self.numbers) + 1)


def is_frame(name: str, value: Argument) -> bool:
    """Whether a value stands among the stack frames, and the event refers to it."""
    return name in {"long_name", "hlo_text"} and isinstance(value, str) and len(value) > 16


def _events(part: HostPart, base: int, flows: int, frames: _Frames) -> Iterator[bytes | memoryview]:
    plain = [track for track in part.tracks if track.kind != COUNTER]
    if plain:
        order = np.concatenate([np.arange(track.first, track.last) for track in plain])
        yield from parts_of(_lines(part, plain, order, base, flows, frames))
    for track in part.tracks:
        if track.kind == COUNTER:
            yield from _counter(part, track, base)


def _lines(
    part: HostPart, tracks: list[Track], order: AnyArray, base: int, flows: int, frames: _Frames
) -> Lines:
    """Complete and asynchronous events; one that passes an asynchronous flow on is written as its
    begin and its end.
    """
    sizes = [track.last - track.first for track in tracks]
    of_track = np.repeat(np.arange(len(tracks)), sizes)
    is_async = np.array([track.kind == ASYNC for track in tracks], np.bool_)[of_track]
    direction = part.direction[order].astype(np.int64)
    tail = np.zeros(order.size, np.bool_)
    both = is_async & (direction == (IN | OUT))
    if both.any():
        repeat = np.where(both, 2, 1)
        order, of_track, is_async = (np.repeat(x, repeat) for x in (order, of_track, is_async))
        direction, tail = np.repeat(direction, repeat), np.zeros(order.size, np.bool_)
        tail[np.cumsum(repeat)[both] - 1] = True
        direction[is_async & (direction == (IN | OUT))] = OUT
        direction[tail] = IN
    heads = [
        f',\n{{"pid":{base + track.pid},"name":'
        if track.kind == ASYNC
        else f',\n{{"pid":{base + track.pid},"tid":{track.tid},"name":'
        for track in tracks
    ]
    start, length = part.start[order], part.length[order]
    flow = part.flow[order].astype(np.int64)
    has_flow = flow > 0
    flow = np.where(has_flow, flow + flows, 0)
    phases = [_phase(bool(a), bool(f), c, d) for a in (0, 1) for f in (0, 1)
              for c in range(len(CATEGORIES)) for d in range(4)]  # fmt: skip
    phase = ((is_async * 2 + has_flow) * len(CATEGORIES) + part.category[order]) * 4 + direction
    return Lines(
        order.size,
        [
            Gap("", of_track, texts=heads),
            name_texts("", part.name.take(order)),
            Gap(',"ts":', np.where(tail, start + length, start), is_picoseconds=True),
            Gap(',"dur":', np.where(is_async, 0, np.maximum(length, 1)), is_picoseconds=True,
                unless_zero=True),
            Gap(',"bind_id":', np.where(is_async, 0, flow), unless_zero=True),
            Gap(',"id":', np.where(is_async, flow, 0), unless_zero=True),
            Gap("", phase, texts=phases),
            *_arguments(part, order, tail, frames),
            Gap(',"z":', part.serial[order], unless_zero=True),
            Gap("", np.zeros(order.size, np.int8), texts=["}"]),
        ],
    )  # fmt: skip


def _phase(is_async: bool, has_flow: bool, category: int, direction: int) -> str:
    if is_async:
        phase = "e" if direction == IN else "b"
        return f',"cat":"{CATEGORIES[category]}","ph":"{phase}","args":{{'
    shown = ""
    if has_flow:
        named = "" if category in _SILENT else f',"cat":"{CATEGORIES[category]}"'
        shown = named + _DIRECTIONS[direction]
    return f'{shown},"ph":"X","args":{{'


def _arguments(part: HostPart, order: AnyArray, tail: AnyArray, frames: _Frames) -> list[Gap]:
    """All arguments, or the step and the number by which the others can be requested."""
    if part.arguments is not None:
        steps = [
            int(group) if known else None
            for group, known in zip(part.group[order], part.has_group[order], strict=True)
        ]
        arguments = (
            [] if is_tail else part.arguments.get(place, [])
            for place, is_tail in zip(order.tolist(), tail.tolist(), strict=True)
        )
        texts = list(_argument_texts(arguments, steps, frames))
        return [Gap("", np.arange(order.size), texts=texts)]
    known = part.has_group[order]
    distinct, place = np.unique(np.where(known, part.group[order], 0), return_inverse=True)
    groups = [f'"group_id":{number}' for number in distinct.tolist()]
    # Alone, or before another one.
    shown = ["", *groups, *(f"{text}," for text in groups)]
    code = np.where(known, place + 1 + np.where(tail, 0, len(groups)), 0)
    distinct, place = np.unique(part.serial[order], return_inverse=True)
    ends = ["}", *(f'"uid":{number}}}' for number in distinct.tolist())]
    return [Gap("", code, texts=shown), Gap("", np.where(tail, 0, place + 1), texts=ends)]


def _argument_texts(
    arguments: Iterable[list[tuple[str, Argument]]], steps: Sequence[int | None], frames: _Frames
) -> Iterator[str]:
    """The text of each event's arguments. Raises as `check_length`."""
    size, distinct, source_bytes = 0, set[Argument](), 0
    for values, group in zip(arguments, steps, strict=True):
        for _, value in values:
            if isinstance(value, str) and value not in distinct:
                distinct.add(value)
                source_bytes += len(value)
        text = _arguments_json(values, group, frames)
        size += len(text)
        source_bytes += ROW_BYTES
        check_length(size, source_bytes)
        yield text


def _arguments_json(values: list[tuple[str, Argument]], group: int | None, frames: _Frames) -> str:
    """Names and values; the first long text stands among the stack frames."""
    inside, frame = [] if group is None else [f'"group_id":{group}'], ""
    for name, value in values:
        if not frame and is_frame(name, value):
            frame = f',"sf":{frames.numbers[str(value)]}'
        else:
            inside.append(f"{quoted(name)}:{_number_text(name, value)}")
    return ",".join(inside) + "}" + frame


def _number_text(name: str, value: Argument) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        # Readers keep numbers in 64 bits of floating point.
        return f'"{value}"' if abs(value) > _EXACT else str(value)
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'
    return f"{value:.2f}" if name.endswith(("(util %)", " (MB/sec)")) else f"{value:.17g}"


def _counter(part: HostPart, track: Track, base: int) -> Iterator[bytes]:
    """Counters of one process, an object for each name with all its values."""
    entries: dict[str, list[str]] = {}
    label: dict[str, str] = {}
    for place in range(track.first, track.last):
        name, result = part.name[place] or "", part.counters.get(place, [])
        label.setdefault(name, result[0][0] if result else "")
        values = ",".join(_number_text(key, value) for key, value in result)
        if values:
            time = f"{part.start[place] / 1e6:.17g}"
            entries.setdefault(name, []).append(f"[{time},{values}]")
        else:
            entries.setdefault(name, [])
    for name, own in entries.items():
        stats = f',"event_stats":{quoted(label[name])}' if label[name] else ""
        yield (
            f',\n{{"pid":{base + track.pid},"name":{quoted(name)},"ph":"C"{stats},'
            f'"entries":[{",".join(own)}]}}'
        ).encode()
