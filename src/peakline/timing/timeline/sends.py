"""From a send of one device to its receipt by another, by what XLA's instructions say.

An event of a device is called as the instruction is written: ``send`` and ``recv`` that belong
together have one ``channel_id``, or one rendezvous in their frontend attributes, which no other
pair of a program has (https://openxla.org/xla/operation_semantics#send). A channel of a permutation
names its ``_xla_send_recv_source_target_pairs``. Messages of a channel arrive in the order in which
they were sent. When they ran is no evidence. Where a channel has several sources or targets and
nothing pairs them, or not as many receipts as sends, there is no arrow.
"""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import DEVICE, Trace, trace_of

_LONGEST = 10_000
_KIND = re.compile(r"%?[\w.-]+ = .{0,4000}?\s(send|recv)\(", re.DOTALL)
_CHANNEL = re.compile(r"\bchannel_id=(\d{1,18})\b")
_RENDEZVOUS = re.compile(r'_xla_host_transfer_rendezvous="([^"]{1,300})"')
_PAIRS = re.compile(r'_xla_send_recv_source_target_pairs="?\{((?:\{\d{1,9},\d{1,9}\},?){1,1000})\}')
_PAIR = re.compile(r"\{(\d+),(\d+)\}")
_ORDINAL = re.compile(r":(\d{1,9})$")


@once
def sends_of(profile: Profile) -> tuple[Int64Array, Int64Array]:
    """Sends and their receipts, as places in the trace, found once.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    sides: dict[str, dict[str, list[int]]] = defaultdict(lambda: {"send": [], "recv": []})
    pairs: dict[str, frozenset[tuple[int, int]]] = {}
    for code, name in enumerate(checked(trace.name.values)):
        result = _end_of(name)
        if result is not None:
            kind, channel, own = result
            sides[channel][kind].append(code)
            pairs[channel] = pairs.get(channel, own) | own
    none = np.zeros(0, np.int64)
    causes, targets = [none], [none]
    for channel, side in sides.items():
        sent, received = (_by_device(trace, side[kind]) for kind in ("send", "recv"))
        for source, target in _routes(sent, received, pairs[channel]):
            if sent[source].size == received[target].size:
                causes.append(sent[source])
                targets.append(received[target])
    return np.concatenate(causes), np.concatenate(targets)


def _end_of(name: str) -> tuple[str, str, frozenset[tuple[int, int]]] | None:
    """Whether an event sends or receives, on which channel, and from which device to which."""
    if "send(" not in name and "recv(" not in name:
        return None
    text = name[:_LONGEST]
    kind, channel = _KIND.match(text), _CHANNEL.search(text)
    meeting, pairs = _RENDEZVOUS.search(text), _PAIRS.search(text)
    if kind is None or (channel is None and meeting is None):
        return None
    key = f"r {meeting[1]}" if meeting else f"c {channel[1] if channel else ''}"
    own = _PAIR.findall(pairs[1]) if pairs else []
    return kind[1], key, frozenset((int(one), int(other)) for one, other in own)


def _by_device(trace: Trace, codes: list[int]) -> dict[int, Int64Array]:
    """The events of each device (its plane), in order of time. Of a device on which several
    instructions have the channel, as those of several programs may, none.
    """
    result: dict[int, list[Int64Array]] = defaultdict(list)
    line_planes = np.array([line.plane for line in trace.lines], np.int64)
    for code in codes:
        events = np.flatnonzero(trace.name.codes == code)
        planes = line_planes[trace.lines_of(events)]
        for plane in np.unique(planes).tolist():
            if trace.planes[plane].kind == DEVICE:
                result[plane].append(events[planes == plane])
    return {
        _ordinal(trace.planes[plane].name, plane): own[0][
            np.argsort(trace.start[own[0]], kind="stable")
        ]
        for plane, own in result.items()
        if len(own) == 1
    }


def _ordinal(name: str, plane: int) -> int:
    """A device's own number, by which pairs name it: 3 of ``/device:TPU:3``."""
    match = _ORDINAL.search(name)
    return int(match[1]) if match else -1 - plane


def _routes(
    sent: dict[int, Int64Array], received: dict[int, Int64Array], pairs: frozenset[tuple[int, int]]
) -> list[tuple[int, int]]:
    """From which device to which the messages of a channel go, as far as it is said."""
    if pairs:
        return [
            (source, target)
            for source, target in sorted(pairs)
            if source in sent and target in received
        ]
    if len(sent) == len(received) == 1 and set(sent) != set(received):
        return [(next(iter(sent)), next(iter(received)))]
    return []
