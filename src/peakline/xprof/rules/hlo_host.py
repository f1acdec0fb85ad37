"""What one host contributes to XProf's tools of HLO, and how that of several is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peakline.tables import Profile
from peakline.xprof.rules.hardware import (
    RunEnvironment,
    combine_environments,
    run_environment_of,
)
from peakline.xprof.rules.hlo_facts import hlo_table
from peakline.xprof.rules.op_metrics import OpMetrics, OpTable, combine_tables
from peakline.xprof.rules.rates import PeakRates, combine_peak_rates, peak_rates_of


@dataclass(frozen=True)
class HloHost:
    """The ops of a host's devices, what these can do, and what they are."""

    table: OpTable
    peaks: PeakRates
    environment: RunEnvironment


def hlo_host(profile: Profile) -> HloHost:
    """That of one XSpace; raises InputError when the profile cannot be read."""
    return HloHost(
        hlo_table(profile), peak_rates_of(profile), run_environment_of(profile, strict=True)
    )


def combine_hlo_hosts(hosts: Sequence[HloHost]) -> HloHost:
    """One of several."""
    if len(hosts) == 1:
        return hosts[0]
    return HloHost(
        combine_tables(host.table for host in hosts),
        combine_peak_rates([host.peaks for host in hosts]),
        combine_environments([host.environment for host in hosts], compatible=True),
    )


def sorted_ops(ops: Sequence[OpMetrics]) -> list[OpMetrics]:
    """Those that took longest by themselves first, of equal ones by name."""
    return sorted(ops, key=lambda op: (-op.self_ps, op.name.encode("utf-8", "replace")))
