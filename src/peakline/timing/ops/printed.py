"""The tables of times that a profiler printed: what they say, and what they leave open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peakline.tables import Profile
from peakline.tables.once import once

HOST = "host"
_INSTEAD = {
    "torch.profiler": "save the trace, prof.export_chrome_trace('trace.json')",
    "Lightning": "take Trainer(profiler=PyTorchProfiler(...)), which saves a trace",
    "cProfile": "take torch.profiler, jax.profiler or tf.profiler, which save one",
}


@dataclass(frozen=True)
class PrintedTimes:
    """One printed table, of the host or of the ``side`` whose columns it has (``cuda``).

    ``rows`` are dictionaries of ``op``, ``self_ps``, ``total_ps``, ``occurrences`` and
    ``input_shape``, the most time first: self time where the table ``has_self``, else in all.
    ``whole_ps`` is what the table says of all ops together, those not printed included; None where
    it does not say so.
    """

    source: str
    part: str
    side: str
    whole_ps: int | None
    has_self: bool
    rows: Sequence[dict[str, Any]]

    @property
    def column(self) -> str:
        """The column by which rows are compared."""
        return "self_ps" if self.has_self else "total_ps"

    @property
    def shown_ps(self) -> int:
        """The self time of the rows, or what the longest of them took in all."""
        times = [row[self.column] or 0 for row in self.rows]
        return sum(times) if self.has_self else max(times, default=0)

    @property
    def all_ps(self) -> int:
        """What shares are of."""
        return max(self.whole_ps or 0, self.shown_ps)

    def share(self, row: dict[str, Any]) -> float:
        """What share of all a row is."""
        return (row[self.column] or 0) / max(self.all_ps, 1)

    @property
    def instead(self) -> str:
        """What records events."""
        return _INSTEAD.get(self.source, "save a trace")


@once
def printed_times(profile: Profile) -> tuple[PrintedTimes, ...]:
    """The printed tables of a profile, those of devices first; nothing for another profile.

    Raises InputError when the profile cannot be read.
    """
    if "printed_ops" not in profile.tables:
        return ()
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    rows = profile.columns("printed_ops").to_pylist()
    on_host = {row["op"] for row in rows if row["total_ps"] or row["self_ps"]}
    for row in rows:
        key = row["source"], row["part"] or ""
        if row["device_self_ps"] and not row["total_ps"]:
            # A kernel: its time stands in the op that launched it, too. What has the name of
            # something on the host is a user's mark, which lies over all that runs meanwhile.
            if row["op"] not in on_host:
                groups.setdefault((*key, f"{row['device']} kernels"), []).append(row)
            continue
        if row["device_self_ps"]:
            groups.setdefault((*key, row["device"]), []).append(row)
        groups.setdefault((*key, HOST), []).append(row)
    tables = [_table(*key, rows) for key, rows in groups.items()]
    return tuple(sorted(tables, key=lambda one: one.side == HOST))


def _table(source: str, part: str, side: str, rows: Sequence[dict[str, Any]]) -> PrintedTimes:
    prefix = "" if side == HOST else "device_"
    made = [
        {
            "op": row["op"],
            "self_ps": row[f"{prefix}self_ps"],
            "total_ps": row[f"{prefix}total_ps"],
            "occurrences": row["occurrences"],
            "input_shape": row["input_shape"],
        }
        for row in rows
    ]
    has_self = any(row["self_ps"] is not None for row in made)
    column = "self_ps" if has_self else "total_ps"
    made.sort(key=lambda row: -(row[column] or 0))
    wholes = [row[f"{prefix}whole_ps"] for row in rows if row[f"{prefix}whole_ps"] is not None]
    return PrintedTimes(source, part, side, max(wholes, default=None), has_self, made)
