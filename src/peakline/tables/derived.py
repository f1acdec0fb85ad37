"""Tables made from other tables, for formats that do not fill them themselves.

A table is made by ``columns_of`` of the module of its name, in the room that knows how: the only
import that goes up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from peakline.tables.profile import ColumnDerivation, Derivation

if TYPE_CHECKING:
    from peakline.tables.columns import Columns


def _in(room: str, module: str) -> Callable[..., Columns]:
    """``columns_of`` of a module, imported where it is called."""

    def make(*args: object) -> Columns:
        columns: Columns = import_module(f"peakline.{room}.{module}").columns_of(*args)
        return columns

    return make


_PLACED = frozenset(("line_id", "name", "start_ps", "duration_ps"))
_EVENTS = ColumnDerivation(
    {
        "parent_id": _PLACED,
        "depth": _PLACED,
        "self_ps": _PLACED,
        "activity": _PLACED | {"category", "type_id"},
    },
    _in("timing", "event_columns"),
)


def _columns(room: str, name: str, columns: str) -> ColumnDerivation:
    """Columns of a table that need all of its rows, or other tables."""
    return ColumnDerivation(dict.fromkeys(columns.split(), frozenset()), _in(room, name))


_COSTS = "flops transcendentals bytes_accessed"
_MORE = {
    "hlo_modules": ("timing", f"peak_bytes peak_found_by {_COSTS} runs run_ps"),
    "hlo_instructions": ("hlo", _COSTS),
    "hlo_buffers": ("hlo", "start end is_live_at_peak"),
}
_RAN = ("events", "op_runs")
_MADE = (
    ("memory", "buffers", ("allocator_events",), ()),
    ("memory", "allocator_events", ("buffers",), ()),
    ("memory", "memory_snapshots", ("allocator_events",), ()),
    ("hlo", "graphs", ("hlo_modules",), ()),
    ("hlo", "nodes", ("hlo_instructions",), ()),
    ("hlo", "edges", ("hlo_operands",), ()),
    ("timing", "step_breakdown", ("steps",), _RAN),
    ("timing", "collectives", (), _RAN),
    ("timing", "device_time", (), _RAN),
    ("timing", "thread_time", (), _RAN),
    ("timing", "op_stats", (), _RAN),
    ("timing", "function_time", (), _RAN),
    ("timing", "module_time", (), _RAN),
    ("timing", "shape_time", (), _RAN),
    ("timing", "kernels", ("events",), ()),
    ("timing", "input_pipeline", ("events",), ()),
)
"""Of each table the room that makes it, what it needs, and of which it needs one. Those of ``hlo``
are the table that they need by other names."""
DERIVED: Mapping[str, Derivation | ColumnDerivation] = {
    "events": _EVENTS,
    **{name: _columns(room, name, columns) for name, (room, columns) in _MORE.items()},
    **{
        name: Derivation(needs, _in(room, name), one_of, is_row_by_row=room == "hlo")
        for room, name, needs, one_of in _MADE
    },
}
"""What `peakline.open` gives every profile: a format that has only buffers gets its events, one
that has only events its buffers, and either the snapshots of the memory_profile tool."""
