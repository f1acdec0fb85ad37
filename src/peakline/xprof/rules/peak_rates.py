"""What a device can do by its plane (``GetPerfEnvFromXPlane`` of
``convert/xplane_to_op_stats.cc`` in openxla/xprof).
"""

from __future__ import annotations

from peakline.tables import Profile
from peakline.timing.plane_stats import plane_stats_of
from peakline.timing.rates import CMEM_READ, CMEM_WRITE, PeakRates
from peakline.xprof.rules.hardware import gpu_rates, number_in

_TPU_PLANE, _GPU_PLANE = "/device:TPU:", "/device:GPU:"
_TPU_BANDWIDTHS = ("hbm", "sram_rd", "sram_wr", "cmem_rd", "cmem_wr", "vmem_rd", "vmem_wr")


def peak_rates_of(profile: Profile) -> PeakRates:
    """What the first device's plane says: that of a TPU, else that of a GPU.

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
