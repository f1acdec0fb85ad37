"""speedscope: memory at the peak as a flame graph (speedscope.app/file-format-schema.json)."""

from __future__ import annotations

import json
from pathlib import PurePath

from peakline.export.peak_stacks import AllocatorStacks, Frame, peak_stacks
from peakline.export.registry import Exporter, Options, Sink
from peakline.tables import Profile
from peakline.text import check_repeated


def _export(profile: Profile, sink: Sink, options: Options) -> None:
    """For speedscope: a profile per allocator, a sample per stack; the width of a frame is bytes.

    What is negative cannot be drawn and is counted as a warning.
    """
    allocators = peak_stacks(profile, options.allocator)
    negative = sum(row.bytes < 0 for one in allocators for row in one.rows)
    if negative:
        profile.warn("negative_rows", "(unattributed) is less than nothing and left out", negative)
    document = _document(allocators, PurePath(profile.path).name)
    content = json.dumps(document, separators=(",", ":")).encode()
    sink(lambda stream: stream.write(content))


def _document(allocators: tuple[AllocatorStacks, ...], name: str) -> dict[str, object]:
    places: dict[Frame, int] = {}
    profiles = []
    for one in allocators:
        rows = [row for row in one.rows if row.bytes > 0]
        total = sum(row.bytes for row in rows)
        profiles.append(
            {
                "type": "sampled",
                "name": one.allocator or "(unnamed allocator)",
                "unit": "bytes",
                "startValue": 0,
                "endValue": total,
                "samples": [
                    [places.setdefault(frame, len(places)) for frame in row.frames] for row in rows
                ],
                "weights": [row.bytes for row in rows],
            }
        )
    check_repeated([text for frame in places for text in (frame.name, frame.file)])
    frames = []
    for frame in places:
        shown: dict[str, object] = {"name": frame.name}
        if frame.file:
            shown["file"] = frame.file
        if frame.line:
            shown["line"] = frame.line
        frames.append(shown)
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": f"{name}: memory at the peak",
        "exporter": "peakline",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }


EXPORTER = Exporter(
    name="speedscope",
    doc="speedscope (JSON): memory at the peak by scope or call stack",
    suffix=".speedscope.json",
    is_text=True,
    needs=(("allocator_events",),),
    over_time=False,
    write=_export,
)
