"""What one host contributes to the tools of HLO, and what callers choose of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from peakline.errors import NotFoundError
from peakline.hlo.modules import modules_of
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.timing.ops.hlo import hlo_op_table, is_costed
from peakline.timing.ops.metrics import OpMetrics, OpTable, combine_tables
from peakline.timing.programs.chips import Chips, chips_of, combine_chips
from peakline.timing.programs.rates import PeakRates, Rates, ratio

_SHOWN = 8
_NOTHING = (
    "no event names an instruction of a compiled program (stat hlo_op): record a program that XLA "
    "compiled, on a CPU with jax.profiler.trace"
)


@dataclass(frozen=True)
class HostHlo:
    """The ops of a host, what they ran on, and the names of the compiled programs by id."""

    table: OpTable
    chips: Chips
    programs: Mapping[int, str]


def host_hlo(profile: Profile) -> HostHlo:
    """That of one host; raises InputError when the profile cannot be read."""
    names: dict[int, str] = {}
    for module in modules_of(profile):
        if module.program_id is not None:
            names.setdefault(module.program_id, module.name)
    table = hlo_op_table(profile)
    if not any(op.occurrences for op in table.ops.values()):
        profile.warn("no_instructions", _NOTHING, once=True)
    return HostHlo(table, chips_of(profile), names)


def combine_hosts(hosts: Sequence[HostHlo]) -> HostHlo:
    """One of several: a program of one id is the same on all."""
    if len(hosts) == 1:
        return hosts[0]
    names: dict[int, str] = {}
    for host in hosts:
        names = {**host.programs, **names}
    return HostHlo(
        combine_tables(host.table for host in hosts),
        combine_chips([host.chips for host in hosts]),
        names,
    )


def chosen(host: HostHlo, *, program: str | None, category: str | None, idle: bool) -> HostHlo:
    """The ops of one program (its id, its name or ``name(id)``) and of one category alone, and the
    time without an op where ``idle`` says so.

    Raises NotFoundError, which names those that ran.
    """
    ops = host.table.ops
    if program is not None:
        ran = sorted({key[0] for key, op in ops.items() if op.occurrences})
        labels = {number: f"{host.programs.get(number, 'main')}({number})" for number in ran}
        wanted = {
            number
            for number, label in labels.items()
            if program in (str(number), label, re.sub(r"\(\d+\)$", "", label))
        }
        if not wanted:
            raise _missing("program", program, list(labels.values()))
        ops = {key: op for key, op in ops.items() if key[0] in wanted or op.is_idle}
    if category is not None:
        known = sorted({op.facts.category for op in ops.values() if op.occurrences})
        if category not in known:
            raise _missing("category", category, known)
        ops = {key: op for key, op in ops.items() if op.facts.category == category or op.is_idle}
    if not idle:
        ops = {key: op for key, op in ops.items() if not op.is_idle}
    own = sum(op.self_ps for op in ops.values() if not op.is_idle)
    is_whole = idle and program is None and category is None
    total = host.table.total_ps if is_whole else own
    if not is_whole:
        ops = {key: op for key, op in ops.items() if not op.is_idle}
    return replace(host, table=replace(host.table, ops=ops, op_ps=own, total_ps=total))


def _missing(kind: str, value: str, known: list[str]) -> NotFoundError:
    shown = f"{value!r:.80}"
    return NotFoundError(f"no {kind} {shown} ran{there_is(value, known)}").quoting(shown)


def joined(table: OpTable) -> OpTable:
    """The table with duplicates (instructions that XLA names after one another) as one op each."""
    ops: dict[tuple[int, str], OpMetrics] = {}
    for (program, name), op in table.ops.items():
        key = (program, op.facts.deduplicated_name or name)
        if key in ops:
            ops[key].add(op)
        else:
            ops[key] = replace(op)
    return replace(table, ops=ops)


def above_peak(rates: Rates, peaks: PeakRates) -> str:
    """Which rates are above what the device can do, by words such as ``FLOPs, HBM``.

    Such a number is none of the device's: bytes of a cache, or a peak that its plane says wrong.
    """
    result = []
    if 0 < peaks.gigaflops < rates.flops:
        result.append("FLOPs")
    use = ratio(rates.hbm, peaks.bandwidth(0) * 1e9 / 2**30)
    if use > 1:
        result.append("HBM")
    return ", ".join(result)


def known_rates(op: OpMetrics, rates: Rates) -> Rates:
    """The rates, with what depends on FLOPs or bytes that nobody knows as nan."""
    if is_costed(op):
        return rates
    unknown = float("nan")
    result = replace(
        rates, flops=unknown, model_flops=unknown, intensity=unknown, hbm_intensity=unknown,
        bottleneck_intensity=unknown,
    )  # fmt: skip
    return result if op.bytes_accessed else replace(result, memory=unknown, hbm=unknown)
