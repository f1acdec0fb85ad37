"""The ops of a TPU: what the metadata of its events says (``op_metrics_db_utils.cc`` in XProf)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.tables import Profile
from peakline.tables.once import once

if TYPE_CHECKING:
    from peakline.timing.programs.device import DeviceOp

_OP_LINE = "XLA Ops"
_WANTED = frozenset(
    (
        "program_id", "symbol_id", "tf_op", "flops", "model_flops", "bytes_accessed",
        "hlo_category", "deduplicated_name", "source", "source_stack",
    )
)  # fmt: skip
_COSTS = ("flops", "bytes_accessed", "model_flops")


def is_op_line(plane: str, line: str) -> bool:
    """Whether a line of a TPU's plane shows which ops its TensorCore ran."""
    return line == _OP_LINE and "SparseCore" not in plane


def tpu_ops(profile: Profile, rows: Int64Array) -> tuple[list[DeviceOp], Int32Array]:
    """The ops of events by the stats of their metadata; -1 for one that names no instruction.

    An instruction without a number (``symbol_id`` 0) is the program as a whole, and no op.
    """
    from peakline.timing.programs.device import DeviceOp

    types = profile.columns("event_types")
    said, known = type_stats_of(profile), types_of(profile, rows)
    names, shown = types.names("name"), types.names("display_name")
    ops: list[DeviceOp] = []
    of_type = np.full(types.rows + 1, -1, np.int32)
    for kind in np.unique(known).tolist():
        stats = said.get(kind, {})
        if kind < 0 or symbol_of(stats) is None:
            continue
        name = shown[kind] or names[kind] or ""
        flops, moved, model = (type_number(stats, name) for name in _COSTS)
        of_type[kind] = len(ops)
        ops.append(
            DeviceOp(
                (type_number(stats, "program_id"), name), name, "", stats.get("tf_op") or "",
                float(flops), float(model or flops), float(moved), stats.get("hlo_category") or "",
            )
        )  # fmt: skip
    return ops, of_type[known]


def types_of(profile: Profile, rows: Int64Array) -> Int64Array:
    """The row of ``event_types`` that each event belongs to, -1 for none."""
    events = profile.columns("events", frozenset(("type_id",)))
    return np.where(events.is_valid("type_id")[rows], events.array("type_id")[rows], -1)


def symbol_of(stats: Mapping[str, str]) -> tuple[int, int] | None:
    """The program and the number of the instruction that a kind of event stands for."""
    program, symbol = _number(stats.get("program_id")), _number(stats.get("symbol_id"))
    return None if program is None or not symbol else (program, symbol)


def type_number(stats: Mapping[str, str], name: str) -> int:
    """A stat of a kind of event as an unsigned number, 0 for none."""
    return _number(stats.get(name)) or 0


@once
def type_stats_of(profile: Profile) -> dict[int, dict[str, str]]:
    """The stats of each kind of event, as texts; made once."""
    stats = profile.columns("event_type_stats")
    names = stats.names("name")
    codes = [code for code, text in enumerate(names.values) if text in _WANTED]
    rows = np.flatnonzero(np.isin(names.codes, codes))
    found: dict[int, dict[str, str]] = {}
    owner, value = stats.array("type_id")[rows].tolist(), stats.names("value").take(rows).to_list()
    for kind, name, text in zip(owner, names.take(rows).to_list(), value, strict=True):
        if name is not None and text is not None:
            found.setdefault(kind, {})[name] = text
    return found


def _number(text: str | None) -> int | None:
    """The number that a text is, unsigned; 0 for any other text."""
    if text is None:
        return None
    try:
        return int(text) % 2**64
    except ValueError:
        return 0
