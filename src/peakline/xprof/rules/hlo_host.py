"""What one host contributes to XProf's tools of HLO, and how that of several is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peakline.tables import Profile
from peakline.timing.ops.metrics import OpTable, combine_tables
from peakline.timing.programs.chips import plane_stats_of
from peakline.timing.programs.hlo_facts import described_table
from peakline.timing.programs.rates import CMEM_READ, CMEM_WRITE, PeakRates, combine_peak_rates
from peakline.trace.events import trace_of
from peakline.xprof.rules.device_ops import TPU_PREFIX, device_prefix, xprof_device_table
from peakline.xprof.rules.hardware import (
    RunEnvironment,
    combine_environments,
    gpu_rates,
    number_in,
    run_environment_of,
)
from peakline.xprof.rules.programs import xprof_programs

_TPU_PLANE, _GPU_PLANE = "/device:TPU:", "/device:GPU:"
_TPU_BANDWIDTHS = ("hbm", "sram_rd", "sram_wr", "cmem_rd", "cmem_wr", "vmem_rd", "vmem_wr")


def peak_rates_of(profile: Profile) -> PeakRates:
    """What the first device can do, as its plane says: that of a TPU, else that of a GPU
    (``GetPerfEnvFromXPlane`` of ``convert/xplane_to_op_stats.cc`` in openxla/xprof).

    Raises InputError when the profile cannot be read.
    """
    names = [name or "" for name in profile.columns("planes").names("name").to_list()]
    place = next((n for n, name in enumerate(names) if name.startswith(_TPU_PLANE)), None)
    if place is not None:
        stats = plane_stats_of(profile, place)
        rates = tuple(
            number_in(stats, f"peak_{kind}_bw_gigabytes_per_second") for kind in _TPU_BANDWIDTHS
        )
        return PeakRates(
            number_in(stats, "peak_teraflops_per_second") * 1000,
            rates,
            any(rate > 0 for rate in rates[CMEM_READ : CMEM_WRITE + 1]),
            number_in(stats, "has_merged_vmem") != 0,
            number_in(stats, "has_megacore") != 0,
        )
    place = next((n for n, name in enumerate(names) if name.startswith(_GPU_PLANE)), None)
    if place is None:
        return PeakRates()
    stats = plane_stats_of(profile, place)
    gigaflops, memory, shared = gpu_rates(stats)
    read = number_in(stats, "peak_sram_rd_bw_gigabytes_per_second")
    derived = gpu_rates({**stats, "peak_sram_wr_bw_gigabytes_per_second": ""})[2]
    return PeakRates(gigaflops, (memory, read if read > 0 else derived, shared))


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


def hlo_of_host(profile: Profile) -> HloHost:
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
