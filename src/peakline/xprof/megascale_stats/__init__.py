"""The ``megascale_stats`` tool: collectives between the slices of TPUs, by rendezvous.

The table of XProf's tool of the same name (``xprof/convert/process_megascale_dcn.cc`` of
openxla/xprof): what was sent over the data center's network, how much time there was for it, and
how long TensorCores waited.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from peakline import trace
from peakline.toolbox.parameters import XprofParameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import Column, DataTable, Value, tables_csv, tables_json_array

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.megascale_stats.transfers import Summary, Transfer

__all__ = ["TOOL", "HostTransfers", "MegascaleStatsParameters"]

_HOST, _MARK = "/host:CPU", "MegaScale:"
_HOST_EVENT = re.compile(r"device_[0-9]+([0-9]{5})_gid_(.+)", re.DOTALL)
_LARGEST_INT = 2**31 - 1
_GIGABITS = 8e-9 / 1e-6
"""Bytes per µs as Gbit/s."""


def _shown_bytes(value: float) -> str:
    """A size as XProf shows it: of 1024 bytes each, one place behind the point for K, else two."""
    number = int(value)
    if number < 1024:
        return f"{number}B"
    units = "KMGTPE"
    place = 0
    scaled = number
    while scaled >= 1024 * 1024 and place < len(units) - 1:
        scaled //= 1024
        place += 1
    return f"{scaled / 1024:.{2 if place else 1}f}{units[place]}"


_COLUMNS = (
    Column("rendezvous_name", "string", "Rendezvous Name"),
    Column("recv_op_name", "string", "Recv Op Name"),
    Column("send_op_name", "string", "Send Op Name"),
    Column("transfer_type", "string", "Transfer Type"),
    Column("slack_time", "number", "Slack Time (ms)"),
    Column("host_stall", "string", "Host Stall (ms)"),
    Column("observed_duration", "number", "Observed Duration (ms)"),
    Column("send_stall", "number", "Send Stall (ms)"),
    Column("send_done_stall", "number", "SendDone Stall (ms)"),
    Column("recv_stall", "number", "Recv Stall (ms)"),
    Column("recv_done_stall", "number", "RecvDone Stall (ms)"),
    Column("stall_duration", "number", "Stall Duration (ms)"),
    Column("total_stall", "number", "Aggregated Total Stall (ms)"),
    Column("occurrences", "number", "Occurrences"),
    Column("net_tx_bytes", "number", "Data Transmitted Size", shown=_shown_bytes),
    Column("required_bandwidth", "number", "Required Bandwidth (Gbps)"),
)


class MegascaleStatsParameters(XprofParameters):
    """The parameters; text is accepted for every value."""


@dataclass(frozen=True)
class HostTransfers:
    """What one host contributes; ``is_marked``: it has events of the network, without which XProf
    shows nothing of any host.
    """

    summaries: list[Summary]
    is_marked: bool


def _partial(profile: Profile, parameters: MegascaleStatsParameters) -> HostTransfers:
    from peakline.xprof.megascale_stats.ops import runs_by_core
    from peakline.xprof.megascale_stats.transfers import (
        cut_to_ns,
        host_delays,
        summed,
        transfers_of,
    )

    if profile.event_rules.planes is None:
        return HostTransfers([], is_marked=False)
    compatible = bool(parameters.compatible)
    cores = runs_by_core(profile, compatible=compatible)
    result: list[tuple[Transfer, int | None]] = []
    if compatible:
        # XProf looks at one core, and at nothing that the host did.
        times = partial(cut_to_ns, zero_ps=profile.zero_ps)
        result = [(one, None) for one in transfers_of(cores.get(0, []), times)]
    else:
        spans = _host_spans(profile) if any(cores.values()) else {}
        for core, runs in cores.items():
            result += host_delays(transfers_of(runs), spans.get(core, {}))
    summaries = summed(result, compatible=compatible)
    return HostTransfers(summaries, is_marked=_has_mark(profile))


def _host_spans(profile: Profile) -> dict[int, dict[str, list[tuple[int, int]]]]:
    """What the host's threads did for a device and a rendezvous, in order of time."""
    import numpy as np

    recorded = trace.trace_of(profile)
    parsed = {
        code: (int(match[1]), match[2])
        for code, name in enumerate(recorded.name.values)
        if (match := _HOST_EVENT.fullmatch(name))
    }
    result: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for line in recorded.lines_on(trace.HOST):
        codes = recorded.name.codes[line.events]
        for place in (line.first + np.flatnonzero(np.isin(codes, list(parsed)))).tolist():
            device, rendezvous = parsed[int(recorded.name.codes[place])]
            result[device][rendezvous].append(
                (int(recorded.start[place]), int(recorded.end[place]))
            )
    for of_device in result.values():
        for spans in of_device.values():
            spans.sort()
    return result


def _has_mark(profile: Profile) -> bool:
    """Whether kinds of events of the host are called so, whether or not there is one."""
    if "event_types" not in profile.tables:
        return False
    planes = profile.columns("planes").names("name").to_list()
    if _HOST not in planes:
        return False
    types = profile.columns("event_types", frozenset(("plane_id", "name")))
    marked = types.names("name").per_row(lambda name: name.startswith(_MARK), bool)
    return bool((marked & (types.array("plane_id") == planes.index(_HOST))).any())


def _combine(
    parts: Sequence[tuple[str, HostTransfers]],
    parameters: MegascaleStatsParameters,
    output_format: str,
) -> bytes:
    from peakline.xprof.megascale_stats.transfers import combined

    hosts, compatible = [part for _, part in parts], bool(parameters.compatible)
    shown = [host.summaries for host in hosts]
    if compatible and not all(host.is_marked for host in hosts):
        shown = []
    rows = sorted(
        (_row(one) for one in combined(shown, compatible=compatible)),
        key=lambda row: (-float(row[12] or 0), str(row[0])),
    )
    table = DataTable(_COLUMNS, rows)
    return tables_csv(table) if output_format == "csv" else tables_json_array(table)


def _row(one: Summary) -> list[Value]:
    """The cells of a rendezvous, times in ms."""
    bandwidth = one.sent_bytes / one.slack_us * _GIGABITS if one.slack_us else float(_LARGEST_INT)
    stalls = [one.stalls_us[stall] / 1e3 for stall in ("send", "send-done", "recv", "recv-done")]
    return [
        one.rendezvous, one.recv_op, one.send_op, one.transfer_type, one.slack_us / 1e3,
        f"{one.host_us / 1e3:.6g}" if one.host_events else "-", one.observed_us / 1e3, *stalls,
        one.stall_us / 1e3, one.stall_us * one.occurrences / 1e3, one.occurrences, one.sent_bytes,
        bandwidth,
    ]  # fmt: skip


TOOL = Tool(
    name="megascale_stats",
    doc="Collectives between slices of TPUs: what they sent, and how long devices waited for them.",
    parameters=MegascaleStatsParameters,
    formats=("json", "csv"),
    shows=(("events",),),
    looks=_has_mark,
    marks=(_MARK,),
    partial=_partial,
    combine=_combine,
)
