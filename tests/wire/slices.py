"""Small XSpaces out of real ones."""

import gzip
from pathlib import Path
from typing import Any

from peakline.schema import XSpace


def read_sample(path: Path) -> bytes:
    """The bytes of a sample profile, unpacked."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def slice_of(data: bytes, events: int, longest: int = 400) -> bytes:
    """The XSpace in ``data`` with only ``events`` events of each line, as evenly spread as can be.

    Metadata that no event is left of goes too, and values longer than ``longest`` bytes.
    """
    space = XSpace.FromString(data)
    for plane in space.planes:
        for line in plane.lines:
            chosen = line.events[:: max(1, len(line.events) // events)][:events]
            del line.events[:]
            line.events.extend(chosen)
        _forget(plane, longest)
    return space.SerializeToString(deterministic=True)


def _forget(plane: Any, longest: int) -> None:
    events = [event for line in plane.lines for event in line.events]
    for metadata_id in set(plane.event_metadata) - {event.metadata_id for event in events}:
        if len(plane.event_metadata) > 3:
            del plane.event_metadata[metadata_id]
    holders = [plane, *events, *plane.event_metadata.values()]
    for holder in holders:
        chosen = [stat for stat in holder.stats if stat.ByteSize() <= longest]
        del holder.stats[:]
        holder.stats.extend(chosen)
    used = {s.metadata_id for h in holders for s in h.stats}
    used |= {s.ref_value for h in holders for s in h.stats if s.WhichOneof("value") == "ref_value"}
    for metadata_id in set(plane.stat_metadata) - used:
        del plane.stat_metadata[metadata_id]
