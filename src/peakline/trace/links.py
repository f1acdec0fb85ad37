"""What on the host caused what: launches and the device work they launched, by the profile's links.

- By numbers that both carry, as the format declares them (`peakline.tables.event_rules.LinkStats`);
  some also tie host threads to one another: work handed to a thread pool.
- Without any: arrows (flow events) that lead from a host thread to a device.
- StepStats: a kernel is named after its node, and belongs to the last run of that node before it.

Of several that fit, the cause is the one that began last before the work did, else the first one;
of several processes that count for themselves (merged files), that of the device's own process.
Source: the Trace Event Format (arrows).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.tables.event_rules import LinkStats, typed_stats
from peakline.tables.joins import REPEATED, by_process, causes
from peakline.tables.once import once
from peakline.trace.events import DEVICE, HOST, PART, Trace, device_key, nesting_of, trace_of

_WORTH = 4
"""Of fewer events than one in so many the stats are read one by one."""
_DEEPEST = 64
"""Levels of nesting that an arrow is followed outwards."""


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of events, as places in the trace: ``target`` happened because ``cause`` did.

    ``source`` says by which links: that of the format's `LinkStats` (correlation, context, run),
    flow or name; empty where there are none. ``unlinked`` are events that carry a link whose other
    end the profile does not have. Targets are in ascending order, each once.
    """

    cause: Int64Array
    target: Int64Array
    source: str
    unlinked: int
    repeated: int = 0
    """How many numbers several processes count, each for its own."""

    @property
    def size(self) -> int:
        """The number of pairs."""
        return self.target.size

    def __bool__(self) -> bool:
        """Whether there are numbers to go by, if only ones that leave it open."""
        return self.size > 0 or self.repeated > 0


def _none(source: str = "", unlinked: int = 0) -> Links:
    return Links(np.zeros(0, np.int64), np.zeros(0, np.int64), source, unlinked)


def links_of(profile: Profile) -> Links:
    """From launches on the host to work on devices.

    Empty where the profile has no links. Raises InputError when it cannot be read.
    """
    links = _launch_links(profile)
    if links.repeated and all(warning.kind != "repeated_ids" for warning in profile.warnings):
        profile.warn("repeated_ids", REPEATED, links.repeated, once=True)
    return links


@once
def _launch_links(profile: Profile) -> Links:
    trace = trace_of(profile)
    on_device, on_host = _on(trace, DEVICE), _on(trace, HOST)
    if not (on_device.any() and on_host.any()):
        return _none()
    if trace.source == "op_runs":
        return _by_name(profile, trace, on_device)
    rules = profile.event_rules.links
    first = [rule for rule in rules if rule.source == rules[0].source]
    others = [rule for rule in rules if rule not in first]
    for some in filter(None, (first, others)):
        stats = _by_name_of(trace, profile.typed_stats(_stats_of(some)))
        if result := _launched(trace, stats, some):
            return result
    return _by_flow(profile, trace)


@once
def contexts_of(profile: Profile) -> Links:
    """From host events that hand work on to those that take it up (XSpace); made once.

    On a host that hands over millions of times it takes seconds: see `links_within`.
    """
    trace = trace_of(profile)
    if trace.source == "op_runs" or not trace.size:
        return _none()
    rules = [rule for rule in profile.event_rules.links if rule.is_handed_on]
    if not rules:
        return _none()
    return _handed(trace, _by_name_of(trace, profile.typed_stats(_stats_of(rules))), rules)


def links_within(profile: Profile, begin: int, end: int) -> tuple[Links, Links]:
    """`links_of` and `contexts_of` between events that begin within a time, read for it alone."""
    trace = trace_of(profile)
    inside = [np.zeros(0, np.int64)]
    for line in trace.lines:
        first, last = np.searchsorted(trace.start[line.events], (begin, end)) + line.first
        inside.append(np.arange(first, last))
    events = np.concatenate(inside)
    if trace.source == "op_runs" or events.size * _WORTH > trace.size:
        return links_of(profile), contexts_of(profile)
    rules = profile.event_rules.links
    rows = typed_stats(profile.stats_of(trace.rows(events)), _stats_of(rules))
    stats = _by_name_of(trace, rows)
    launches = _launched(trace, stats, rules) or _by_flow(profile, trace)
    return launches, _handed(trace, stats, rules)


def _stats_of(rules: Iterable[LinkStats]) -> frozenset[str]:
    """The names of the stats that ``rules`` read."""
    return frozenset(
        name for rule in rules for name in (*rule.cause, *rule.target, rule.device) if name
    )


def _launched(trace: Trace, stats: Stats, rules: Iterable[LinkStats]) -> Links:
    """By the numbers that both ends carry, of the first kind that there is."""
    on_device, on_host = _on(trace, DEVICE), _on(trace, HOST)
    for rule in rules:
        if result := _pair(rule, stats, trace, on_host, on_device):
            return result
    return _none()


def _handed(trace: Trace, stats: Stats, rules: Iterable[LinkStats]) -> Links:
    everywhere = np.ones(len(trace.lines), np.bool_)
    for rule in rules:
        if rule.is_handed_on and (result := _pair(rule, stats, trace, everywhere, everywhere)):
            return result
    return _none()


def _on(trace: Trace, kind: str) -> BoolArray:
    """Which lines are on planes of a kind."""
    return np.array([trace.planes[line.plane].kind == kind for line in trace.lines], np.bool_)


Stats = dict[str, tuple[AnyArray, AnyArray]]
"""Places of the events that have a stat, ascending, and its values."""


def _by_name_of(trace: Trace, rows: Columns) -> Stats:
    names = rows.names("name")
    whole = rows.is_valid("integer")
    place = trace.places(rows.array("event_id"))
    integer = rows.array("integer")
    result: Stats = {}
    for code, name in enumerate(names.values):
        own = (names.codes == code) & whole & (place >= 0)
        at, value = place[own], integer[own]
        # Of a stat that an event has twice the last counts.
        order = np.argsort(at, kind="stable")
        at, value = at[order], value[order]
        last = np.append(at[1:] != at[:-1], True) if at.size else np.zeros(0, np.bool_)
        result[name] = at[last], value[last]
    return result


def _both(stats: Stats, names: tuple[str, ...]) -> tuple[Int64Array, list[AnyArray]]:
    """The events that have all the stats, and the values of each."""
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
    places, values = stats.get(names[0], nothing)
    columns = [values]
    for name in names[1:]:
        others, more = stats.get(name, nothing)
        shared = np.isin(places, others, assume_unique=True)
        places, columns = places[shared], [column[shared] for column in columns]
        columns.append(more[np.searchsorted(others, places)])
    return places, columns


def _pair(
    rule: LinkStats, stats: Stats, trace: Trace, cause_lines: BoolArray, target_lines: BoolArray
) -> Links:
    device = (rule.device,) if rule.device else ()
    from_place, from_key = _both(stats, (*rule.cause, *device))
    to_place, to_key = _both(stats, rule.target)
    if device:
        numbers = np.array([_ordinal(plane.name) for plane in trace.planes], np.int64)
        plane = np.array([line.plane for line in trace.lines], np.int64)
        to_key.append(numbers[plane[trace.lines_of(to_place)]])
    return _joined(
        rule.source, trace, _on_lines(trace, from_place, from_key, rule, cause_lines),
        _on_lines(trace, to_place, to_key, rule, target_lines),
    )  # fmt: skip


Ends = tuple[AnyArray, list[AnyArray]]
"""Events, and the columns of their keys."""


def _on_lines(
    trace: Trace, places: Int64Array, keys: list[Int64Array], rule: LinkStats, wanted: BoolArray
) -> Ends:
    here = wanted[trace.lines_of(places)]
    if not rule.has_zero:
        here &= keys[-1] != 0
    return places[here], [key[here] for key in keys]


def _joined(source: str, trace: Trace, causing: Ends, caused: Ends) -> Links:
    """Pairs with equal keys; none where either side is missing."""
    if not (causing[0].size and caused[0].size):
        return _none()
    number = _numbered([np.concatenate(pair) for pair in zip(causing[1], caused[1], strict=True)])
    split = causing[0].size
    start, at = trace.start[causing[0]], trace.start[caused[0]]
    key, of_key, repeated = number[:split], number[split:], 0
    # A name is no number: it is the same everywhere.
    if source != "name":
        plane = np.array([line.plane for line in trace.lines], np.int64)
        planes = plane[trace.lines_of(causing[0])], plane[trace.lines_of(caused[0])]
        key, of_key, repeated = by_process(key, start, planes[0], of_key, at, planes[1])
    result = causes(key, start, of_key, at)
    known = result >= 0
    target = caused[0][known]
    cause = causing[0][result[known]]
    different = cause != target
    cause, target = cause[different], target[different]
    order = np.argsort(target, kind="stable")
    lonely = int(known.size - np.count_nonzero(known))
    return Links(cause[order], target[order], source if target.size else "", lonely, repeated)


def _numbered(columns: list[Int64Array]) -> Int64Array:
    """One number per distinct combination of values."""
    number = np.zeros(columns[0].size, np.int64)
    for column in columns:
        distinct, code = np.unique(column, return_inverse=True)
        number = np.unique(number * np.int64(distinct.size) + code, return_inverse=True)[1]
    return number


def _ordinal(plane: str) -> int:
    number = plane.rpartition(":")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1


def _by_flow(profile: Profile, trace: Trace) -> Links:
    """Arrows that begin at a host thread and end on a device."""
    if not profile.has_rows("flows"):
        return _none()
    flows = profile.columns("flows")
    place = bound_flows(profile, trace, flows)
    names = flows.names("phase")
    starts, ends = names.code_of("s"), names.code_of("f")
    there = place >= 0
    line = trace.lines_of(np.maximum(place, 0))
    begins = there & (names.codes == starts) & _on(trace, HOST)[line]
    finishes = there & (names.codes == ends) & _on(trace, DEVICE)[line]
    number = flows.array("flow_id")
    result = _joined(
        "flow", trace, (place[begins], [number[begins]]), (place[finishes], [number[finishes]])
    )
    # Several arrows may end at one event: one cause each.
    chosen = np.append(result.target[1:] != result.target[:-1], True) if result.size else slice(0)
    return Links(result.cause[chosen], result.target[chosen], result.source, result.unlinked)


def bound_flows(profile: Profile, trace: Trace, flows: Columns) -> Int64Array:
    """The event that each end of an arrow is bound to: the innermost that holds the moment, or
    the next to begin where an arrow ends without ``bp: e``; -1 for none.
    """
    line, time = flows.array("line_id"), flows.array("time_ps")
    parent = nesting_of(profile).parent
    is_next = ~flows.array("binds_enclosing")
    is_next &= flows.names("phase").codes == flows.names("phase").code_of("f")
    place = np.full(flows.rows, -1, np.int64)
    of_id = {one.line_id: one for one in trace.lines}
    for number in np.unique(line).tolist():
        one = of_id.get(number)
        if one is None or one.first == one.last:
            continue
        own = np.flatnonzero(line == number)
        start = trace.start[one.events]
        at = np.searchsorted(start, time[own], side="right") - 1
        after = np.searchsorted(start, time[own], side="left")
        inside = np.where(at >= 0, at + one.first, -1)
        for _ in range(_DEEPEST):
            ended = (inside >= 0) & (trace.end[np.maximum(inside, 0)] < time[own])
            if not ended.any():
                break
            inside[ended] = parent[inside[ended]]
        following = np.where(after < start.size, after + one.first, -1)
        place[own] = np.where(is_next[own], following, inside)
    return place


def _by_name(profile: Profile, trace: Trace, on_device: BoolArray) -> Links:
    """Kernels of StepStats and the runs of their nodes, for the same device where one was."""
    line = trace.lines_of(np.arange(trace.size))
    kind = profile.columns("op_runs", frozenset(("kind",))).names("kind")
    by_executor = kind.codes[trace.rows(slice(None))] == kind.code_of("executor")
    node: dict[str, int] = {}
    codes = np.array(
        [node.setdefault((name or "").partition(":")[0], len(node)) for name in trace.name.values],
        np.int64,
    )
    code = codes[trace.name.codes]
    streams = ["stream" in trace.planes[one.plane].name.lower() for one in trace.lines]
    hosts = np.flatnonzero(by_executor & ~np.array(streams, np.bool_)[line])
    devices = np.flatnonzero(on_device[line] & ~by_executor)
    # Several devices run nodes of one name, and a tracer may leave out whose they are.
    used: dict[str, int] = {}
    keys = [device_key(PART.sub("", plane.name))[1] for plane in trace.planes]
    numbers = [used.setdefault(key, len(used)) for key in keys]
    of = np.array([numbers[one.plane] for one in trace.lines], np.int64)[line]
    is_there = np.isin(code * len(used) + of, code[hosts] * len(used) + of[hosts])
    both = np.concatenate([hosts, hosts])
    any_of = np.concatenate([of[hosts], np.full(hosts.size, -1)])
    own = np.where(is_there, of, -1)[devices]
    return _joined("name", trace, (both, [code[both], any_of]), (devices, [code[devices], own]))
