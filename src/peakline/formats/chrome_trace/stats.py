"""The arguments of events: read from the file again when they are needed."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int32Array
from peakline.formats.chrome_trace.collect import objects_of, phases_of
from peakline.formats.chrome_trace.phases import ASYNC, CLASS_OF, EVENT, IS_END
from peakline.formats.chrome_trace.texts import Texts
from peakline.formats.chrome_trace.trace import Events
from peakline.formats.common.files import SourceFile
from peakline.kernels import json_kinds
from peakline.kernels.trace_events import compact
from peakline.tables.columns import Columns, Names
from peakline.wire import Spans
from peakline.wire.json_events import Members, Objects, members_of


def event_stats(file: SourceFile, events: Events) -> Columns:
    """The ``event_stats`` table: one row per argument, text as it is, nested values as JSON.

    The arguments of an event's end are its too. They come in the order of the events.
    """
    names, values = Texts(), Texts()
    event_parts, name_parts, value_parts = ([np.zeros(0, np.int32)] for _ in range(3))
    next_event = next_end = 0
    _, objects = objects_of(file, ("ph", "args"))
    for found in objects:
        phase = phases_of(found)
        of_class = CLASS_OF[phase]
        rows = np.flatnonzero((of_class == EVENT) | (of_class == ASYNC))
        is_end = IS_END[phase[rows]]
        event = np.empty(rows.size, np.int64)
        ends = int(np.count_nonzero(is_end))
        event[is_end] = events.event_of_end[next_end : next_end + ends]
        event[~is_end] = np.arange(next_event, next_event + rows.size - ends)
        next_end += ends
        next_event += rows.size - ends
        tells = (found.kind("args")[rows] == json_kinds.OBJECT) & (event >= 0)
        if not tells.any():
            continue
        members = members_of(found.buffer, found.spans("args").take(rows[tells]))
        event_parts.append(event[tells][members.parent].astype(np.int32))
        name_parts.append(names.codes(found.buffer, members.key_kind, members.key))
        value_parts.append(_values(values, found, members))
    event_id = np.concatenate(event_parts)
    name, value = np.concatenate(name_parts), np.concatenate(value_parts)
    if events.event_of_end.size:
        order = np.argsort(event_id, kind="stable")
        event_id, name, value = event_id[order], name[order], value[order]
    return Columns(
        {
            "event_id": event_id,
            "name": Names(name, names.values),
            "value": Names(value, values.values),
        }
    )


def _values(values: Texts, found: Objects, members: Members) -> Int32Array:
    codes = values.codes(found.buffer, members.kind, members.value)
    nested = np.flatnonzero(members.kind >= json_kinds.ARRAY)
    if nested.size:
        spans = members.value.take(nested)
        out = np.empty(int(spans.length.sum()), np.uint8)
        starts, lengths = np.empty(nested.size, np.int64), np.empty(nested.size, np.int64)
        compact(found.buffer, spans.start, spans.length, out, starts, lengths)
        codes[nested] = values.add_spans(out, Spans(starts, lengths))
    return codes
