"""Slow, obvious readers of the two trace formats: every event as a tuple, times in picoseconds or
nanoseconds after the earliest.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal

from peakline import schema


class _Pairs(dict):
    """An object of JSON that keeps keys that occur twice."""

    def __init__(self, pairs) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _ps(microseconds):
    return int(Decimal(microseconds) * 1_000_000)


class ChromeEvents:
    """What a Chrome trace says; numbers are read exactly."""

    def __init__(self, content: bytes) -> None:
        document = json.loads(content, parse_float=str, object_pairs_hook=_Pairs)
        self.rows = document["traceEvents"]
        self.zero = min(_ps(row["ts"]) for row in self.rows if "ts" in row)
        self.owners = {
            (row["pid"], row.get("tid"), row["name"]): row["args"].get("name")
            for row in self.rows
            if row["ph"] == "M"
        }

    def of(self, *phases):
        return [row for row in self.rows if row["ph"] in phases]

    def line(self, row):
        return self.owners[row["pid"], row["tid"], "thread_name"] or f"line {row['tid']}"

    def slices(self):
        """Line, name, start, end (ns), category, arguments."""
        result = Counter()
        for row in self.of("X", "i"):
            start = _ps(row["ts"]) - self.zero
            end = start + _ps(row.get("dur", 0))
            args = tuple((k, v) for k, v in row["args"].pairs if k != "group_id")
            result[
                self.line(row), row["name"], start // 1000, end // 1000, row.get("cat", ""), args
            ] += 1
        return result

    def counters(self):
        result = defaultdict(list)
        for row in self.of("C"):
            for series, value in row["args"].items():
                when = (_ps(row["ts"]) - self.zero) // 1000
                result[row["name"], series].append((when, float(value)))
        return dict(result)


class PerfettoEvents:
    """What a Perfetto trace says, read packet by packet; asserts that slices nest."""

    def __init__(self, content: bytes) -> None:
        self.tracks = {}
        self.slices = Counter()
        self.counters = defaultdict(list)
        self.flows = defaultdict(list)
        texts = defaultdict(dict)
        open_slices = defaultdict(list)
        last = Counter()
        for packet in schema.Trace.FromString(content).packet:
            assert packet.trusted_packet_sequence_id == 1
            for kind in ("event_names", "event_categories", "debug_annotation_names"):
                texts[kind].update((e.iid, e.name) for e in getattr(packet.interned_data, kind))
            texts["values"].update(
                (e.iid, e.str.decode()) for e in packet.interned_data.debug_annotation_string_values
            )
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            track = self.tracks[event.track_uuid]
            if event.type in {event.TYPE_SLICE_BEGIN, event.TYPE_SLICE_END}:
                assert last[event.track_uuid] <= packet.timestamp
                last[event.track_uuid] = packet.timestamp
            if event.type == event.TYPE_COUNTER:
                value = getattr(event, event.WhichOneof("counter_value_field"))
                self.counters[track.name].append((packet.timestamp, value))
                continue
            for flow in event.flow_ids:
                name = texts["event_names"].get(event.name_iid)
                self.flows[flow].append((track.name, packet.timestamp, name))
            if event.type == event.TYPE_SLICE_END:
                start, begun = open_slices[event.track_uuid].pop()
            else:
                begun, start = event, packet.timestamp
            if event.type == event.TYPE_SLICE_BEGIN:
                open_slices[event.track_uuid].append((packet.timestamp, event))
            else:
                args = tuple(
                    (
                        texts["debug_annotation_names"][a.name_iid],
                        texts["values"][a.string_value_iid],
                    )
                    for a in begun.debug_annotations
                )
                category = ",".join(texts["event_categories"][c] for c in begun.category_iids)
                name = texts["event_names"][begun.name_iid]
                self.slices[track.name, name, start, packet.timestamp, category, args] += 1
        assert not any(open_slices.values())


class RankEvents:
    """What a Perfetto trace of several ranks says: ``slices`` of each process by begin, as `Slice`,
    and ``arrows``, the slices that each leads from and to, as Perfetto's trace processor takes
    them: in order of time, from where an id occurs first to where it does next.
    """

    def __init__(self, content: bytes) -> None:
        tracks, self.order, self.counters = {}, {}, defaultdict(list)
        texts, stacks, moments = defaultdict(dict), defaultdict(list), []
        self.slices = defaultdict(list)
        for packet in schema.Trace.FromString(content).packet:
            sequence = packet.trusted_packet_sequence_id
            assert sequence > 0
            for entry in packet.interned_data.event_names:
                assert (sequence, entry.iid) not in texts
                texts[sequence, entry.iid] = entry.name
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                assert track.uuid not in tracks
                assert not track.parent_uuid or track.parent_uuid in tracks
                tracks[track.uuid] = track
                if track.HasField("process"):
                    self.order[track.process.process_name] = track.sibling_order_rank
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            top = tracks[event.track_uuid]
            while top.parent_uuid:
                top = tracks[top.parent_uuid]
            process = top.process.process_name
            if event.type == event.TYPE_COUNTER:
                self.counters[process, tracks[event.track_uuid].name].append(packet.timestamp)
                continue
            if event.type == event.TYPE_SLICE_END:
                own = stacks[event.track_uuid].pop()
                own.end = packet.timestamp
            else:
                own = Slice(process, tracks[event.track_uuid].name)
                own.name = texts[sequence, event.name_iid]
                own.begin = own.end = packet.timestamp
                own.args = {a.name: getattr(a, a.WhichOneof("value")) for a in
                            event.debug_annotations if a.name}  # fmt: skip
                self.slices[process].append(own)
                if event.type == event.TYPE_SLICE_BEGIN:
                    stacks[event.track_uuid].append(own)
            moments += [(packet.timestamp, False, flow, own) for flow in event.flow_ids]
            moments += [(packet.timestamp, True, flow, own) for flow in event.terminating_flow_ids]
        self.root = tracks[0]
        self.arrows, starts = [], {}
        for _, is_end, flow, own in sorted(moments, key=lambda moment: moment[:2]):
            if flow in starts:
                self.arrows.append((starts.pop(flow), own))
            assert not is_end or flow not in starts
            if not is_end:
                starts[flow] = own
        often = Counter(flow for _, _, flow, _ in moments)
        self.dangling = [flow for flow, count in often.items() if count < 2]
        for own in self.slices.values():
            own.sort(key=lambda one: (one.begin, -one.end))


@dataclass(eq=False)
class Slice:
    """An event; times in ns."""

    process: str
    track: str
    name: str = ""
    begin: int = 0
    end: int = 0
    args: dict = field(default_factory=dict)
