"""What a profile records of its collectives: which one, of which group, of how many bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.tables.event_rules import CollectiveStats, numbers_of
from peakline.tables.once import once
from peakline.trace.events import DEVICE, nesting_of, trace_of
from peakline.trace.links import links_of

_DEEPEST = 64
"""Levels of nesting above a launch that are looked at."""
_BYTES = {
    "bool": 1, "byte": 1, "char": 1, "signed char": 1, "unsigned char": 1, "uint8": 1, "int8": 1,
    "short": 2, "half": 2, "bfloat16": 2, "float16": 2, "int16": 2, "uint16": 2, "int": 4,
    "int32": 4, "uint32": 4, "unsigned int": 4, "float": 4, "float32": 4, "long": 8, "int64": 8,
    "uint64": 8, "long int": 8, "unsigned long": 8, "double": 8, "float64": 8, "complexhalf": 4,
    "complexfloat": 8, "complex<float>": 8, "complexdouble": 16, "complex<double>": 16,
}  # fmt: skip
"""Bytes of an element, by the names of types in C++, PyTorch and NumPy."""


def bytes_of_type(name: str) -> int:
    """Bytes of an element of the named type of C++, PyTorch or NumPy; -1 for one not known."""
    plain = name.strip('"').lower().replace("c10::", "")
    return 1 if plain.startswith("float8") else _BYTES.get(plain, -1)


@dataclass(frozen=True, eq=False, repr=False)
class CollectiveRecords(Brief):
    """What stats say of collectives, as columns: a row for each event that describes one.

    ``event`` is its place in the trace, ascending. ``group`` is which processes take part, by name,
    ``ranks`` their numbers (a JSON list, null where not all are recorded), ``size`` how many they
    are, ``sequence`` the number of the collective in its group, ``identity`` (a number as text) is
    the same on all ranks and of no other collective. ``input_bytes`` and ``output_bytes`` are what
    this process gives and gets; ``source`` and ``target`` are the ranks that a message comes from
    and goes to. A number that is not recorded is -1.
    """

    event: Int64Array
    name: Names
    group: Names
    ranks: Names
    size: Int64Array
    data_type: Names
    sequence: Int64Array
    identity: Names
    input_bytes: Int64Array
    output_bytes: Int64Array
    source: Int64Array
    target: Int64Array

    def ranks_of(self, row: int) -> list[int]:
        """The numbers of the processes of a row's group; empty where the file does not say."""
        return [*numbers_of(self.ranks[row])]


@once
def collective_records(profile: Profile) -> CollectiveRecords:
    """What the profile records of its collectives; without rows where its format has no such stats.

    Raises InputError when the profile cannot be read.
    """
    rule, trace = profile.event_rules.collectives, trace_of(profile)
    if rule is None or not rule.name or trace.source != "events":
        rule, stats = CollectiveStats(), None
    else:
        wanted = {value for value in vars(rule).values() if isinstance(value, str) and value}
        stats = profile.typed_stats(frozenset(wanted - {rule.record}))
    event = np.zeros(0, np.int64)
    place = None
    if stats is not None:
        names = stats.names("name")
        place = trace.places(stats.array("event_id"))
        named = place[names.codes == names.code_of(rule.name)]
        event = np.unique(named[named >= 0])
    columns = _Stats(place, event, stats)
    data_type, group = columns.texts(rule.data_type), columns.texts(rule.group)
    bytes_each = data_type.per_row(bytes_of_type, np.int64, -1)
    given, result = columns.numbers(rule.elements_in), columns.numbers(rule.elements_out)
    ranks, size = _members(
        profile, group, columns.texts(rule.ranks), columns.numbers(rule.size),
        columns.numbers(rule.first_rank), columns.numbers(rule.rank_stride),
    )  # fmt: skip
    return CollectiveRecords(
        event,
        columns.texts(rule.name),
        group,
        ranks,
        size,
        data_type,
        columns.numbers(rule.sequence),
        columns.texts(rule.identity),
        np.where((given >= 0) & (bytes_each > 0), given * bytes_each, -1),
        np.where((result >= 0) & (bytes_each > 0), result * bytes_each, -1),
        columns.numbers(rule.source),
        columns.numbers(rule.target),
    )


def _members(
    profile: Profile, group: Names, ranks: Names, size: Int64Array, first: Int64Array,
    stride: Int64Array,
) -> tuple[Names, Int64Array]:  # fmt: skip
    """Who takes part in each row, and how many they are.

    PyTorch cuts the list of a large group short (``...``): its members are then those that are
    evenly apart, or those of the group in the list of all groups, if that is as large.
    """
    known = {one.name: one for one in profile.process_groups()} if group.codes.size else {}
    keys = np.stack([ranks.codes, group.codes, size, first, stride]).astype(np.int64)
    distinct, place = np.unique(keys, axis=1, return_inverse=True)
    texts: list[str | None] = []
    sizes = np.full(distinct.shape[1], -1, np.int64)
    for number, (text, name, count, begin, step) in enumerate(distinct.T.tolist()):
        listed = known.get(group.values[name]) if name >= 0 else None
        members = numbers_of(ranks.values[text]) if text >= 0 else ()
        if not members and 0 < count <= _MOST_RANKS and begin >= 0 and step > 0:
            members = tuple(range(begin, begin + step * count, step))
        if not members and listed is not None and count in (-1, listed.size):
            members, sizes[number] = listed.ranks, listed.size
        texts.append(json.dumps(members) if members else None)
        if count > 0 or members:
            sizes[number] = count if count > 0 else len(members)
    encoded = Names.encode(texts)
    place = place.reshape(-1)
    return encoded.take(place), sizes[place]


_MOST_RANKS = 1 << 20
"""A group of more processes is none: the number is damaged."""


class _Stats:
    """The stats of some events, a column each; of one that an event has twice the last.

    ``place`` is where the event of each row of ``stats`` stands in the trace.
    """

    def __init__(self, place: Int64Array | None, event: Int64Array, stats: Columns | None) -> None:
        self._event, self._stats, self._place = event, stats, place

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
        # Some versions quote a text twice.
        values = [text.values[code].strip('"') if code >= 0 else "" for code in used.tolist()]
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
def collective_kernels(profile: Profile) -> Int64Array:
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
