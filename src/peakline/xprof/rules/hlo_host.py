"""What one host contributes to XProf's tools of HLO, and how that of several is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peakline.tables import Profile
from peakline.timing.hlo_facts import described_table
from peakline.timing.op_metrics import OpTable, combine_tables
from peakline.timing.rates import PeakRates, combine_peak_rates
from peakline.trace.events import trace_of
from peakline.xprof.rules.device_ops import TPU_PREFIX, device_prefix, xprof_device_table
from peakline.xprof.rules.hardware import (
    RunEnvironment,
    combine_environments,
    run_environment_of,
)
from peakline.xprof.rules.peak_rates import peak_rates_of
from peakline.xprof.rules.programs import xprof_programs


@dataclass(frozen=True)
class HloHost:
    """The ops of a host's devices, what these can do, and what they are."""

    table: OpTable
    peaks: PeakRates
    environment: RunEnvironment


def _table(profile: Profile) -> OpTable:
    is_tpu = device_prefix(trace_of(profile)) == TPU_PREFIX
    table, programs = xprof_device_table(profile), xprof_programs(profile)
    return described_table(profile, table, programs, is_tpu=is_tpu)


def hlo_host(profile: Profile) -> HloHost:
    """That of one XSpace; raises InputError when the profile cannot be read."""
    return HloHost(
        _table(profile), peak_rates_of(profile), run_environment_of(profile, strict=True)
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
