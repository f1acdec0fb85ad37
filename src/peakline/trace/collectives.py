"""What profiles record of collectives: which kernels are theirs, whatever these are called, and
which group did what in which order.

PyTorch runs the op ``record_param_comms`` around every collective of a process group
(``torch/csrc/distributed/c10d/ParamCommsUtils.hpp``); it names the collective, and newer versions
write the same arguments to the kernel that Kineto finds launched inside of it. Other formats say it
by the names in their `CollectiveStats`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.tables.event_rules import CollectiveStats
from peakline.tables.once import once
from peakline.trace.events import DEVICE, Trace, nesting_of, trace_of
from peakline.trace.links import links_of

_DEEPEST = 64
"""Levels of nesting above a launch that are looked at."""
_BYTES = {
    "bool": 1, "byte": 1, "char": 1, "uint8": 1, "int8": 1, "short": 2, "half": 2, "bfloat16": 2,
    "float16": 2, "int16": 2, "int": 4, "int32": 4, "float": 4, "float32": 4, "long": 8,
    "int64": 8, "long int": 8, "double": 8, "float64": 8,
}  # fmt: skip
"""Bytes of an element, by the names of types in C++, PyTorch and NumPy."""


@dataclass(frozen=True, eq=False, repr=False)
class Collectives(Brief):
    """The collectives of a profile as columns, a row for each event that describes one.

    ``event`` is its place in the trace, ascending. ``group`` is which processes take part, by name,
    ``ranks`` their numbers (a JSON list, as the file writes it), ``sequence`` the number of the
    collective in its group (-1: not recorded). ``input_bytes`` and ``output_bytes`` are what this
    process gives and gets (-1: not recorded).
    """

    event: Int64Array
    name: Names
    group: Names
    ranks: Names
    data_type: Names
    sequence: Int64Array
    input_bytes: Int64Array
    output_bytes: Int64Array

    def ranks_of(self, row: int) -> list[int]:
        """The numbers of the processes of a row's group; empty where the file does not say."""
        try:
            ranks = json.loads(self.ranks[row] or "")
        except ValueError:
            return []
        return [one for one in ranks if type(one) is int] if isinstance(ranks, list) else []


@once
def collectives_of(profile: Profile) -> Collectives:
    """The collectives that the profile describes; without rows where its format describes none.

    Raises InputError when the profile cannot be read.
    """
    rule, trace = profile.event_rules.collectives, trace_of(profile)
    if rule is None or not rule.name or trace.source != "events":
        rule, stats = CollectiveStats(), None
    else:
        stats = profile.typed_stats(frozenset(filter(None, vars(rule).values())) - {rule.record})
    event = np.zeros(0, np.int64)
    if stats is not None:
        names = stats.names("name")
        named = trace.places(stats.array("event_id")[names.codes == names.code_of(rule.name)])
        event = np.unique(named[named >= 0])
    columns = _Stats(trace, event, stats)
    data_type = columns.texts(rule.data_type)
    size = data_type.per_row(lambda text: _BYTES.get(text.lower(), -1), np.int64, -1)
    given, result = columns.numbers(rule.elements_in), columns.numbers(rule.elements_out)
    return Collectives(
        event,
        columns.texts(rule.name),
        columns.texts(rule.group),
        columns.texts(rule.ranks),
        data_type,
        columns.numbers(rule.sequence),
        np.where((given >= 0) & (size > 0), given * size, -1),
        np.where((result >= 0) & (size > 0), result * size, -1),
    )


class _Stats:
    """The stats of some events, a column each; of one that an event has twice the last."""

    def __init__(self, trace: Trace, event: Int64Array, stats: Columns | None) -> None:
        self._event, self._stats = event, stats
        self._place = None if stats is None else trace.places(stats.array("event_id"))

    def _rows(self, stat: str) -> tuple[Int64Array, Int64Array]:
        """Rows of the stats that are so called, and the place of each among the events."""
        if self._stats is None or self._place is None or not self._event.size:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        names = self._stats.names("name")
        rows = np.flatnonzero((names.codes == names.code_of(stat)) & bool(stat))
        at = np.searchsorted(self._event, self._place[rows])
        known = self._event[np.minimum(at, self._event.size - 1)] == self._place[rows]
        return rows[known], at[known]

    def texts(self, stat: str) -> Names:
        codes: Int32Array = np.full(self._event.size, -1, np.int32)
        rows, at = self._rows(stat)
        if self._stats is None:
            return Names(codes, [])
        text, is_number = self._stats.names("text"), self._stats.is_valid("integer")[rows]
        used, place = np.unique(text.codes[rows], return_inverse=True)
        values = [text.values[code] if code >= 0 else "" for code in used.tolist()]
        codes[at] = place
        # A group may be called 0.
        numbers = self._stats.array("integer")[rows[is_number]]
        distinct, place = np.unique(numbers, return_inverse=True)
        codes[at[is_number]] = place + len(values)
        return Names(codes, [*values, *map(str, distinct.tolist())])

    def numbers(self, stat: str) -> Int64Array:
        result = np.full(self._event.size, -1, np.int64)
        rows, at = self._rows(stat)
        if self._stats is not None:
            known = self._stats.is_valid("integer")[rows]
            result[at[known]] = self._stats.array("integer")[rows[known]]
        return result


@once
def recorded_collectives(profile: Profile) -> Int64Array:
    """The kernels of collectives by what is recorded of them: places in the trace, ascending.

    Empty for a profile without such records. Raises InputError when it cannot be read.
    """
    trace, rule = trace_of(profile), profile.event_rules.collectives
    none = np.zeros(0, np.int64)
    if trace.source != "events" or rule is None:
        return none
    record = trace.name.code_of(rule.record) if rule.record else -1
    by_library = any("ccl" in name.lower() for name in trace.name.values)
    if record < 0 and rule.record and not by_library:
        return none
    stats = profile.typed_stats(frozenset((rule.name,)))
    places, is_named = trace.places(stats.array("event_id")), stats.names("text").codes >= 0
    recorded = np.zeros(trace.size, np.bool_)
    recorded[places[(places >= 0) & is_named]] = True
    recorded &= trace.within(trace.lines_on(DEVICE))
    if record >= 0:
        links, parent = links_of(profile), nesting_of(profile).parent
        above = links.cause.astype(np.int64)
        for _ in range(_DEEPEST):
            open_ = np.flatnonzero((above >= 0) & (trace.name.codes[above] != record))
            if not open_.size:
                break
            above[open_] = parent[above[open_]]
        inside = (above >= 0) & (trace.name.codes[above] == record)
        recorded[links.target[inside]] = True
    return np.flatnonzero(recorded)
