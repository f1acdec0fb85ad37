"""Snapshots and traces, as PyTorch writes them, of what a plain model of its allocator does."""

import json
import pickle

from peakline.kernels import caching_layout as layout
from reference.caching_allocator import Allocator

SPELLED = {"free": "inactive", "live": "active_allocated", "awaiting": "active_awaiting_free"}


class Recorded:
    """A sequence run to its end, its history as a snapshot has it."""

    def __init__(self, sequence, settings, limit=1 << 60, device=1 << 40, **options):
        events, self.requested, self.stream, self.pool = sequence
        self.plain = Allocator(settings, limit, device, **options)
        self.entries, self.profiled, self.where = [], [], {}
        self.stack = 0
        for kind, buffer in events:
            self.stack += 1
            if kind == layout.EMPTY_CACHE:
                self.plain.release_cached()
                self.taken()
            elif kind == layout.ALLOCATE:
                at = self.plain.allocate(
                    buffer, self.requested[buffer], self.pool[buffer], self.stream[buffer]
                )
                self.taken()
                assert at is not None
                self.where[buffer] = at
                self.entry("alloc", at, buffer)
                self.profile(at, self.plain.live[buffer][1].size)
            else:
                self.freed(kind, buffer)

    def freed(self, kind, buffer):
        at = self.where[buffer]
        size = self.plain.live[buffer][1].size if buffer in self.plain.live else 0
        step = {layout.FREE: "free", layout.FREE_REQUESTED: "requested"}.get(kind, "completed")
        if step != "completed" or buffer in self.plain.live:
            self.plain.free(buffer, step)
            if step != "completed":
                self.entry("free_requested", at, buffer)
                self.profile(at, -size)
            if step != "requested":
                self.entry("free_completed", at, buffer)
        else:
            self.plain.free(buffer, step)

    def entry(self, action, at, buffer):
        self.add(action, at, self.requested[buffer], self.stream[buffer])

    def add(self, action, at, size, stream):
        frame = {"name": f"f{self.stack}", "filename": "a.py", "line": self.stack}
        self.entries.append(
            {"action": action, "addr": at, "size": size, "stream": stream,
             "time_us": 1000 + len(self.entries), "frames": [frame]}
        )  # fmt: skip

    def taken(self):
        for action, at, size, segment in self.plain.log:
            # Of a wait that is ended the second is the buffer.
            bytes_of = self.requested[size] if action == "free_completed" else size
            self.add(action, at, bytes_of, segment.stream)
        self.plain.log.clear()

    def profile(self, at, size):
        self.profiled.append((at, size, self.plain.in_use(), self.plain.reserved()))

    def segments(self):
        result = []
        for s in sorted(self.plain.segments, key=lambda s: s.base):
            runs = [[]]
            for block in s.blocks:
                if block.state == "unmapped":
                    runs.append([])
                else:
                    runs[-1].append(block)
            result += [self.segment(s, run) for run in runs if run]
        return result

    def segment(self, s, run):
        return {
            "device": 0,
            "address": run[0].address,
            "total_size": sum(b.size for b in run),
            "allocated_size": sum(b.size for b in run if b.state == "live"),
            "active_size": sum(b.size for b in run if b.state != "free"),
            "requested_size": 0,
            "stream": s.stream,
            "segment_type": "large" if s.large else "small",
            "segment_pool_id": (0, s.pool),
            "is_expandable": s.expandable,
            "blocks": [
                {"size": b.size, "address": b.address, "state": SPELLED[b.state], "frames": [],
                 "requested_size": 0 if b.buffer is None else self.requested[b.buffer]}
                for b in run
            ],
        }  # fmt: skip

    def snapshot(self, skipped=0, *, has_stacks=True, failures=()):
        """A pickle, without the first entries of the history; ``failures`` are (place, bytes) of
        requests that failed before the entries with these numbers, in order.
        """
        entries = [dict(one) for one in self.entries[skipped:]]
        for place, size in reversed(failures):
            failed = {"action": "oom", "addr": 0, "size": size, "stream": 0, "device_free": 0}
            entries.insert(place, failed | {"time_us": 1000 + place, "frames": []})
        if not has_stacks:
            entries = [{k: v for k, v in one.items() if k != "frames"} for one in entries]
        divisions = {
            str(1 << n): value for n, value in enumerate(self.plain.s.roundup_power2_divisions)
        }
        return pickle.dumps(
            {
                "segments": self.segments(),
                "device_traces": [entries],
                "allocator_settings": {"roundup_power2_divisions": divisions},
            }
        )

    def trace(self, skipped=0):
        """A trace of the profiler."""
        return json.dumps(
            {
                "schemaVersion": 1,
                "deviceProperties": [],
                "traceEvents": [
                    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
                     "pid": 1, "tid": 1, "ts": 1000 + n,
                     "args": {"Total Reserved": reserved, "Total Allocated": in_use,
                              "Bytes": size, "Addr": at, "Device Id": 0, "Device Type": 1}}
                    for n, (at, size, in_use, reserved) in enumerate(self.profiled)
                ][skipped:],
            }
        ).encode()  # fmt: skip
