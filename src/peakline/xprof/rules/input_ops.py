"""Ops of the host that bring data, and what share of the input time each has.

Source of the rules: ``GenerateHostResult`` of ``convert/op_stats_to_input_pipeline_analysis.cc``
in openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from peakline.tables import Profile
from peakline.timing.host_ops import host_lines
from peakline.timing.input_ops import (
    ADVANCED,
    DEMANDED,
    ENQUEUE,
    PREPROCESSING,
    UNKNOWN,
    input_category,
    is_enqueue,
)
from peakline.timing.op_names import parse_op_name
from peakline.trace.events import trace_of
from peakline.xprof.rules.host_ops import host_table, xprof_host_table
from peakline.xprof.rules.op_metrics import OpTable, combine_tables

_PS_PER_MS, _PS_PER_US = 1e9, 1e6


@dataclass(frozen=True)
class HostInput:
    """What one host contributes: all its ops, and of each enqueue to an infeed but a thread's
    last its own time and the time until the next, in ps.
    """

    ops: OpTable
    enqueue_ps: int = 0
    between_ps: int = 0


def combine_inputs(parts: Iterable[HostInput]) -> HostInput:
    """What several hosts contribute, as one."""
    found = list(parts)
    return HostInput(
        combine_tables(part.ops for part in found),
        sum(part.enqueue_ps for part in found),
        sum(part.between_ps for part in found),
    )


@dataclass(frozen=True)
class InputOp:
    """An op that brings data, and what it is for."""

    name: str
    count: int
    total_ps: int
    self_ps: int
    category: str


@dataclass(frozen=True)
class InputOps:
    """The ops by self time, the longest first, and the input time in microseconds by purpose.

    The reads and the preprocessing are scaled to what of a step is left beside the transfer to the
    device; what none of them explains is ``unclassified_us``.
    """

    ops: tuple[InputOp, ...] = ()
    total_self_ps: int = 0
    enqueue_us: float = 0.0
    demanded_us: float = 0.0
    advanced_us: float = 0.0
    preprocessing_us: float = 0.0
    unclassified_us: float = 0.0

    @property
    def uses_tf_data(self) -> bool:
        """Whether stages of a pipeline were seen."""
        return self.demanded_us > 0 or self.advanced_us > 0 or self.preprocessing_us > 0


def host_input(profile: Profile, *, compatible: bool) -> HostInput:
    """The ops of one host; with ``compatible`` counted as XProf counts them."""
    as_xprof = compatible and profile.has_runtime_planes
    ops = xprof_host_table(profile) if as_xprof else host_table(profile)
    return HostInput(ops, *_enqueues(profile))


def _enqueues(profile: Profile) -> tuple[int, int]:
    trace = trace_of(profile)
    codes = [
        code
        for code, name in enumerate(trace.name.values)
        if "InfeedEnqueue" in name and is_enqueue(parse_op_name(name).op_type)
    ]
    staged = np.zeros(0, np.int64)
    if codes and trace.source == "events" and "event_stats" in profile.tables:
        # A stage of an input pipeline is that first, whatever it is called.
        stats = profile.typed_stats(frozenset(("_ipl_stage_id",)))
        staged = trace.places(stats.array("event_id"))
    spent = between = 0
    for line in host_lines(profile, trace).values() if codes else ():
        events = line.first + np.flatnonzero(np.isin(trace.name.codes[line.events], codes))
        events = events[~np.isin(events, staged)]
        events = events[np.argsort(trace.end[events], kind="stable")]
        begin, end = trace.start[events], trace.end[events]
        spent += int((end - begin)[:-1].sum())
        between += int(np.diff(begin).sum())
    return spent, between % 2**64


def input_ops(host: HostInput, *, step_ms: float, host_to_device_ms: float) -> InputOps:
    """The ops that bring data, of one host or several together.

    ``step_ms`` and ``host_to_device_ms`` are averages over the steps, 0 where they are not known.
    """
    found = []
    for one in host.ops.ops.values():
        category = input_category(one.name, one.op_type)
        if category is not None:
            found.append(InputOp(one.name, one.occurrences, one.total_ps, one.self_ps, category))
    if not found:
        return InputOps()
    found.sort(key=lambda op: (-op.self_ps, op.name))
    spent = dict.fromkeys((ENQUEUE, DEMANDED, ADVANCED, PREPROCESSING, UNKNOWN), 0.0)
    for op in found:
        spent[op.category] += op.self_ps / _PS_PER_US
    share = min(1.0, _transfer_share(host, step_ms, host_to_device_ms))
    classified = spent[DEMANDED] + spent[ADVANCED] + spent[PREPROCESSING]
    rest = spent[ENQUEUE] * (1.0 - share) / share if share else classified
    demanded, advanced, preprocessing = (
        _divided(rest * spent[name], classified) for name in (DEMANDED, ADVANCED, PREPROCESSING)
    )
    return InputOps(
        tuple(found),
        sum(op.self_ps for op in found) % 2**64,
        spent[ENQUEUE],
        demanded,
        advanced,
        preprocessing,
        max(0.0, rest - demanded - advanced - preprocessing),
    )


def _transfer_share(host: HostInput, step_ms: float, host_to_device_ms: float) -> float:
    """How much of a step's time goes to sending data to the device."""
    if host.between_ps > 0:
        return host.enqueue_ps / host.between_ps
    return _divided(host_to_device_ms, step_ms) if step_ms > 0 else 0.0


def _divided(dividend: float, divisor: float) -> float:
    return 0.0 if abs(divisor) < 1e-10 else dividend / divisor
