"""speedscope: memory at the peak as a flame graph (speedscope.app/file-format-schema.json)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO

from peakline.export.peak_stacks import AllocatorStacks, Frame, peak_stacks
from peakline.export.registry import Options, Sink

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["EXPORTER", "Speedscope"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


@dataclass(frozen=True)
class Speedscope:
    """For speedscope: one profile per allocator, the width of a frame is bytes."""

    name: str = "speedscope"
    doc: str = "speedscope (JSON): memory at the peak by scope or call stack"
    suffix: str = ".speedscope.json"
    needs: tuple[tuple[str, ...], ...] = (("allocator_events",),)
    over_time: bool = False

    def write(self, profile: Profile, sink: Sink, options: Options) -> None:
        """One sample per stack; what is negative cannot be drawn and is counted as a warning."""
        allocators = peak_stacks(profile, options.allocator)
        negative = sum(row.bytes < 0 for one in allocators for row in one.rows)
        if negative:
            profile.warn(
                "negative_rows", "(unattributed) is less than nothing and left out", negative
            )
        document = _document(allocators, PurePath(profile.path).name)
        sink(lambda stream: _write(stream, document))


def _write(stream: BinaryIO, document: dict[str, object]) -> None:
    stream.write(json.dumps(document, separators=(",", ":")).encode())


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
    frames = []
    for frame in places:
        shown: dict[str, object] = {"name": frame.name}
        if frame.file:
            shown["file"] = frame.file
        if frame.line:
            shown["line"] = frame.line
        frames.append(shown)
    return {
        "$schema": _SCHEMA,
        "name": f"{name}: memory at the peak",
        "exporter": "peakline",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }


EXPORTER = Speedscope()
