"""Tables made from other tables, for formats that do not fill them themselves.

A table is made by ``columns_of`` of the module of its name, in the room that knows how: the only
import that goes up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from importlib import import_module
from typing import TYPE_CHECKING

from peakline.tables.made_columns import ColumnDerivation
from peakline.tables.profile import Derivation

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.tables.columns import Columns


def _event_columns(profile: Profile, names: AbstractSet[str]) -> Columns:
    columns: Columns = import_module("peakline.timing.event_columns").columns_of(profile, names)
    return columns


_PLACED = frozenset(("line_id", "name", "start_ps", "duration_ps"))
_EVENTS = ColumnDerivation(
    {
        "parent_id": _PLACED,
        "depth": _PLACED,
        "self_ps": _PLACED,
        "activity": _PLACED | {"category", "type_id"},
    },
    _event_columns,
)


def _in(room: str, table: str) -> Callable[[Profile], Columns]:
    """What makes ``table``, imported where it is used."""

    def make(profile: Profile) -> Columns:
        columns: Columns = import_module(f"peakline.{room}.{table}").columns_of(profile)
        return columns

    return make


_MEMORY: Mapping[str, Derivation] = {
    name: Derivation(needs, _in("memory", name))
    for name, needs in (
        ("buffers", ("allocator_events",)),
        ("allocator_events", ("buffers",)),
        ("memory_snapshots", ("allocator_events",)),
    )
}
_RAN = ("events", "op_runs")
_TIME: Mapping[str, Derivation] = {
    name: Derivation(needs, _in("timing", name), one_of=one_of)
    for name, needs, one_of in (
        ("step_breakdown", ("steps",), _RAN),
        ("device_time", (), _RAN),
        ("thread_time", (), _RAN),
        ("op_stats", (), _RAN),
        ("kernels", ("events",), ()),
        ("input_pipeline", ("events",), ()),
    )
}
DERIVED: Mapping[str, Derivation | ColumnDerivation] = {"events": _EVENTS, **_MEMORY, **_TIME}
"""What `peakline.open` gives every profile: a format that tells only buffers gets its events, one
that tells only events its buffers, and either the snapshots of the memory_profile tool."""
