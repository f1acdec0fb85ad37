"""How launches fared: delays until the work began, queues, and devices with nothing to do.

Built on `peakline.trace.links`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from peakline.arrays import AnyArray
from peakline.shown import Brief, Shown, Tabular, several, table_of
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.text import counted
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.device_lines import Role, devices_of
from peakline.trace.events import Trace, trace_of
from peakline.trace.intervals import union
from peakline.trace.links import Links, links_of

if TYPE_CHECKING:
    import pyarrow as pa


_LINKED = 0.9


class Spread(NamedTuple):
    """A distribution; of 20 values 19 are not above ``p95``, and each is a value that occurs."""

    min: int
    median: int
    p95: int
    max: int


def spread_of(values: AnyArray) -> Spread | None:
    """The distribution of some whole numbers; None where there are none."""
    if not values.size:
        return None
    places = [0, (values.size - 1) // 2, -(-values.size * 19 // 20) - 1, values.size - 1]
    ordered = np.partition(values, sorted(set(places)))
    return Spread(*(int(ordered[place]) for place in places))


@dataclass(frozen=True, repr=False)
class DeviceLaunches(Brief):
    """The launches of one device; times in picoseconds.

    ``delay`` is from the begin of a launch to the begin of its work, ``gap`` between the begins of
    launches of one thread, ``call`` how long the launch itself took. ``queue`` is how many launches
    had not begun, at the moments of launches, themselves counted. ``early`` is work that began
    before its launch, which is left out of all of them: the clocks of host and device disagree.

    The device's idle time between its first and its last event is ``starved_ps`` (the next work had
    not been launched yet), ``latency_ps`` (it was being launched), ``blocked_ps`` (it had been
    launched before, and waited for something else), ``unexplained_ps`` (no link shows its launch).
    """

    device: str
    work: int
    linked: int
    launches: int
    early: int
    delay: Spread | None
    gap: Spread | None
    call: Spread | None
    queue: Spread | None
    starved_ps: int
    latency_ps: int
    blocked_ps: int
    unexplained_ps: int

    @property
    def idle_ps(self) -> int:
        """The device's idle time."""
        return self.starved_ps + self.latency_ps + self.blocked_ps + self.unexplained_ps


@dataclass(frozen=True, repr=False)
class LaunchSummary(Shown, Tabular):
    """``source`` is what the links are made of, empty where the profile has none."""

    source: str
    unlinked: int
    devices: tuple[DeviceLaunches, ...]

    def __post_init__(self) -> None:
        several(self, "devices")

    def to_arrow(self) -> pa.Table:
        """A row for each device; of ``delay``, ``gap``, ``call`` and ``queue`` the median."""
        rows = [
            {
                name: value.median if isinstance(value, Spread) else value
                for name, value in (vars(device) | {"idle_ps": device.idle_ps}).items()
            }
            for device in self.devices
        ]
        return table_of(rows)

    def _headline(self) -> str:
        if not self.devices:
            return "no launches"
        launches = sum(device.launches for device in self.devices)
        on = counted(len(self.devices), "device")
        return f"{launches:,} launch{'' if launches == 1 else 'es'} on {on}"


@once
def launched_before_it(profile: Profile) -> tuple[int, int, float]:
    """The work of devices whose launch lies before the recording: how many pieces, how long they
    take together in ps, and what share of all work that is.

    Of a stream with links from launches that is what has none and comes before all that has.
    """
    trace, links = trace_of(profile), links_of(profile)
    activity = activity_of(profile)
    launched = np.zeros(trace.size, np.bool_)
    launched[links.target] = True
    count = before = whole = 0
    for device in devices_of(profile):
        for place, role in device.lines:
            events = trace.lines[place].events
            works = activity[events] != Activity.NOTHING
            length = np.where(works, trace.end[events] - trace.start[events], 0)
            whole += int(length.sum())
            first = int(launched[events].argmax())
            # Where much else has no link, the file does not say what launched it.
            is_linked = first and launched[events][first:].mean() >= _LINKED
            if role is Role.STREAM and is_linked and launched[events][first]:
                count += int(np.count_nonzero(works[:first]))
                before += int(length[:first].sum())
    return count, before, before / whole if whole else 0.0


def launch_summary(profile: Profile) -> LaunchSummary:
    """The launches of every device that has linked work.

    Work that began before its launch counts in the warning ``early_device_work``. Raises
    InputError when the profile cannot be read.
    """
    trace, links = trace_of(profile), links_of(profile)
    plane = np.array([line.plane for line in trace.lines], np.int64)
    own = plane[trace.lines_of(links.target)] if links.size else np.zeros(0, np.int64)
    devices = tuple(
        _of_device(trace, links, number, own == number) for number in np.unique(own).tolist()
    )
    early = sum(device.early for device in devices)
    if early:
        profile.warn(
            "early_device_work", "work on a device that began before its launch", early, once=True
        )
    return LaunchSummary(links.source, links.unlinked, devices)


def _of_device(trace: Trace, links: Links, plane: int, own: AnyArray) -> DeviceLaunches:
    cause, target = links.cause[own], links.target[own]
    lines = np.unique(trace.lines_of(target))
    work = np.concatenate(
        [np.arange(trace.lines[n].first, trace.lines[n].last) for n in lines.tolist()]
    )
    early = trace.start[target] < trace.start[cause]
    good_cause, good_target = cause[~early], target[~early]
    calls = np.unique(good_cause)
    delay = trace.start[good_target] - trace.start[good_cause]
    idle = _idle(trace, work, cause, target)
    return DeviceLaunches(
        device=trace.planes[plane].name,
        work=work.size,
        linked=target.size,
        launches=np.unique(cause).size,
        early=int(np.count_nonzero(early)),
        delay=spread_of(delay),
        gap=spread_of(_gaps(trace, calls)),
        call=spread_of(trace.end[calls] - trace.start[calls]),
        queue=spread_of(_queue(trace, good_cause, good_target)),
        starved_ps=idle[0],
        latency_ps=idle[1],
        blocked_ps=idle[2],
        unexplained_ps=idle[3],
    )


def _gaps(trace: Trace, calls: AnyArray) -> AnyArray:
    """Between the begins of consecutive launches of one thread."""
    line = trace.lines_of(calls)
    apart = np.diff(trace.start[calls])
    result: AnyArray = apart[line[1:] == line[:-1]]
    return result


def _queue(trace: Trace, cause: AnyArray, target: AnyArray) -> AnyArray:
    """At each piece of work's launch: how much launched work had not begun."""
    launched = np.sort(trace.start[cause])
    begun = np.searchsorted(np.sort(trace.start[target]), launched, side="left")
    return np.searchsorted(launched, launched, side="right") - begun


def _idle(
    trace: Trace, work: AnyArray, cause: AnyArray, target: AnyArray
) -> tuple[int, int, int, int]:
    begin, end = union(trace.start[work], trace.end[work])
    if begin.size < 2:
        return 0, 0, 0, 0
    idle_from, idle_to = end[:-1], begin[1:]
    order = np.lexsort((work, trace.start[work]))
    # What ends an idle time is the first event that begins then and takes time.
    lasting = work[order][(trace.end[work] > trace.start[work])[order]]
    next_work = lasting[np.searchsorted(trace.start[lasting], idle_to)]
    at = np.minimum(np.searchsorted(target, next_work), target.size - 1)
    linked = target[at] == next_work
    launched = np.clip(trace.start[cause[at]], idle_from, idle_to)
    was_late = trace.start[cause[at]] > idle_from
    whole = idle_to - idle_from
    return (
        int((launched - idle_from)[linked].sum()),
        int((idle_to - launched)[linked & was_late].sum()),
        int(whole[linked & ~was_late].sum()),
        int(whole[~linked].sum()),
    )
