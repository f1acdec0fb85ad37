"""The ``roofline_model`` tool with XProf's numbers (``convert/op_stats_to_roofline_model.cc``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakline import timing
from peakline.toolbox.written import Value, tables_csv, tables_json
from peakline.tools import roofline_model as ours
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.ops.metrics import OpMetrics
    from peakline.xprof.rules.hlo_host import HloHost
    from peakline.xprof.rules.step_model import HostSteps, StepDatabase

_MOST_OPS = 1000


def _partial(
    profile: Profile, _parameters: ours.RooflineModelParameters
) -> tuple[HloHost, HostSteps]:
    return rules.hlo_of_host(profile), rules.host_steps(profile, compatible=True)


def _combine(
    parts: Sequence[tuple[str, tuple[HloHost, HostSteps]]],
    _parameters: ours.RooflineModelParameters,
    output_format: str,
) -> bytes:
    host = rules.combine_hlo_hosts([part for _, (part, _) in parts])
    steps = rules.combine_steps([(name, part) for name, (_, part) in parts])
    hardware = host.environment.hardware
    rows: list[list[Value]] = []
    warnings: list[str] = []
    limits, device_type, multiplier = ours.Limits(), "", 0.0
    table = host.table
    if hardware in (rules.GPU, rules.TPU):
        limits = ours.limits_of(host.peaks, is_gpu=hardware == rules.GPU)
        device_type, multiplier = (
            host.environment.device_type,
            timing.ratio(table.normalized_ps, table.op_ps),
        )
        warnings = rules.step_warnings(steps)
        made = _Table(host, steps, limits, has_average=hardware == rules.TPU or len(parts) > 1)
        rows = [*made.rows(with_transfers=True), *made.rows(with_transfers=False)]
    shown = ours.table_of(rows, limits, device_type, multiplier, is_gpu="GPU" in device_type)
    if output_format == "csv":
        return tables_csv(shown)
    return tables_json(shown, rules.diagnostics_table(warnings))


@dataclass(frozen=True)
class _Table:
    """The rows of all hosts together."""

    host: HloHost
    steps: StepDatabase
    limits: ours.Limits
    has_average: bool

    def rows(self, *, with_transfers: bool) -> Iterator[list[Value]]:
        """The whole record with its ops, the average of the steps, each step."""
        table = self.host.table
        ops = [*table.ops.values()]
        whole = timing.work_of(ops, table.total_ps).program(with_transfers=with_transfers)
        yield self._row(whole, ours.TOTAL, whole.total_ps, with_transfers=with_transfers)
        rank, cumulated = 0, 0.0
        gone = sum(op.total_ps for op in ops if timing.is_transfer(op.facts.category))
        total_ps = (table.total_ps - (0 if with_transfers else gone)) % 2**64
        for op in timing.sorted_ops(ops)[:_MOST_OPS]:
            if not op.occurrences or (timing.is_transfer(op.facts.category) and not with_transfers):
                continue
            share = timing.ratio(op.self_ps / 1e6, total_ps / 1e6)
            rank, cumulated = rank + 1, cumulated + share
            row = self._row(op, ours.TOTAL, total_ps, with_transfers=with_transfers)
            row[1], row[9], row[10] = rank, share, cumulated
            yield row
        works, every = [], timing.Work()
        for step in self.steps.steps:
            work = timing.Work()
            for core in step.cores.values():
                if core.work is not None:
                    work.add(core.work)
            works.append((str(step.number), work))
            every.add(work)
        if self.has_average:
            works.insert(0, (ours.AVERAGE, every))
        for label, work in works:
            one = work.program(with_transfers=with_transfers)
            yield self._row(one, label, one.total_ps, with_transfers=with_transfers)

    def _row(self, op: OpMetrics, step: str, total_ps: int, *, with_transfers: bool) -> list[Value]:
        rows = ours.Rows(self.limits, self.host.environment.devices)
        rates = timing.rates_of(op, self.host.peaks, self.host.environment.hardware)
        return rows.row(
            op, rates, step, total_ps, with_transfers=with_transfers, steps=len(self.steps.steps)
        )


TOOL = replace(ours.TOOL, partial=_partial, combine=_combine)
