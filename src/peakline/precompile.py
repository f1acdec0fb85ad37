"""Compile kernels beside the process that needs them: ``python -m peakline.precompile``.

On a new machine Numba compiles every kernel once and keeps the code. Its compiler works on one
kernel at a time, and the decoder's takes about as long as all others together, so the first
profile that is opened starts this program: while the one compiles the decoder, the other answers
a tiny profile with the decoder interpreted, which compiles the rest.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

__all__ = ["main"]

_STATS = (
    "_r",
    "step_num",
    "_pt",
    "_p",
    "_ct",
    "_c",
    "bytes_allocated",
    "allocation_bytes",
    "addr",
    "tf_op",
    "allocator_name",
)


def _tiny_profile() -> bytes:
    """Two steps with an allocation and its end each, handed from one thread to another."""
    from peakline.schema import XSpace

    space = XSpace()
    plane = space.planes.add(name="/host:CPU")
    for number, name in enumerate(("train", "MemoryAllocation", "MemoryDeallocation", "work")):
        plane.event_metadata[number].name = name
    for number, name in enumerate(_STATS):
        plane.stat_metadata[number].name = name
    for start in (0, 500):
        line = plane.lines.add(id=start, name="thread", timestamp_ns=1)
        step = line.events.add(metadata_id=0, offset_ps=start, duration_ps=100)
        for number in range(4):
            step.stats.add(metadata_id=number, int64_value=1)
        other = line.events.add(metadata_id=3, offset_ps=start + 200, duration_ps=100)
        for number in (4, 5):
            other.stats.add(metadata_id=number, int64_value=1)
        for metadata, offset in ((1, start + 210), (2, start + 220)):
            event = line.events.add(metadata_id=metadata, offset_ps=offset)
            for number in (6, 7, 8):
                event.stats.add(metadata_id=number, int64_value=64)
            event.stats.add(metadata_id=9, str_value="op")
            event.stats.add(metadata_id=10, ref_value=10)
    return space.SerializeToString()


def main() -> None:
    """Answer what `peakline memory` and the ``memory_profile`` tool answer, for a tiny profile."""
    import numpy as np

    import peakline
    from peakline.analysis.memory import explain_memory
    from peakline.wire import walker

    # The decoder itself is being compiled elsewhere.
    vars(walker)["walk"] = vars(walker)["walk"].py_func
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        path = Path(folder) / "tiny.xplane.pb"
        path.write_bytes(_tiny_profile())
        with peakline.open(str(path)) as profile:
            profile.tool("memory_profile")
            explain_memory(profile.columns("allocator_events"), profile.columns("steps"))


if __name__ == "__main__":
    main()
