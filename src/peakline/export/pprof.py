"""pprof: memory at the peak, by scope or call stack (google/pprof, proto/profile.proto)."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import Any

from peakline import schema
from peakline.export.peak_stacks import AllocatorStacks, Frame, peak_stacks
from peakline.export.registry import Exporter, Options, Sink
from peakline.tables import Profile


def _export(profile: Profile, sink: Sink, options: Options) -> None:
    """For ``pprof`` and ``go tool pprof``: one sample per stack and allocator.

    The allocator is the label ``device``, the type of region the label ``kind``, as in JAX's
    profiles of device memory.
    """
    content = _profile(peak_stacks(profile, options.allocator), profile.path)
    # Without a time the same profile gives the same bytes.
    sink(lambda stream: stream.write(gzip.compress(content, mtime=0)))


def _profile(allocators: Iterable[AllocatorStacks], path: str) -> bytes:
    made: Any = schema.message("perftools.profiles.Profile")()
    strings: dict[str, int] = {"": 0}
    places: dict[Frame, int] = {}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    def location(frame: Frame) -> int:
        if frame not in places:
            number = places[frame] = len(places) + 1
            name = text(frame.name)
            made.function.add(id=number, name=name, system_name=name, filename=text(frame.file))
            made.location.add(id=number).line.add(function_id=number, line=frame.line)
        return places[frame]

    for kind, unit in (("inuse_objects", "count"), ("inuse_space", "bytes")):
        made.sample_type.add(type=text(kind), unit=text(unit))
    made.default_sample_type = text("inuse_space")
    for one in allocators:
        made.comment.append(
            text(f"{path}: {one.allocator}, {one.peak_bytes} bytes at {one.peak_time_ps} ps")
        )
        for row in one.rows:
            sample = made.sample.add(
                location_id=[location(frame) for frame in reversed(row.frames)],
                value=[row.count, row.bytes],
            )
            for key, value in (("device", one.allocator), ("kind", row.region_type)):
                if value:
                    sample.label.add(key=text(key), str=text(value))
    made.string_table.extend(strings)
    return bytes(made.SerializeToString(deterministic=True))


EXPORTER = Exporter(
    name="pprof",
    doc="pprof (protobuf, gzip): memory at the peak by scope or call stack",
    suffix=".pb.gz",
    is_text=False,
    needs=(("allocator_events",),),
    over_time=False,
    write=_export,
)
