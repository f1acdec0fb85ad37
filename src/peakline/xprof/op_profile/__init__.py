"""The ``op_profile`` tool with XProf's numbers (``convert/op_stats_to_op_profile.cc``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakline.toolbox.written import compact_json
from peakline.tools import op_profile as ours

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.rules.hlo_host import HloHost

__all__ = ["TOOL", "HostProfile"]

_KINDS = (("GPU", "GPU"), ("TPU", "TPU"))


@dataclass(frozen=True)
class HostProfile:
    """What one host contributes: its ops, and the names of its programs by id."""

    host: HloHost
    programs: Mapping[int, str]


def _partial(profile: Profile, _parameters: ours.OpProfileParameters) -> HostProfile:
    from peakline.hlo.modules import modules_of
    from peakline.xprof.rules.hlo_host import hlo_host

    names: dict[int, str] = {}
    for module in modules_of(profile):
        if module.program_id is not None:
            names.setdefault(module.program_id, module.name)
    return HostProfile(hlo_host(profile), names)


def _combine(
    parts: Sequence[tuple[str, HostProfile]], parameters: ours.OpProfileParameters, _format: str
) -> bytes:
    from peakline.timing.rates import ratio
    from peakline.tools.op_profile.tree import build_tree
    from peakline.tools.op_profile.written import as_json
    from peakline.xprof.op_profile.order import largest
    from peakline.xprof.rules.hlo_host import combine_hlo_hosts

    host = combine_hlo_hosts([part.host for _, part in parts])
    names: dict[int, str] = {}
    for _, part in parts:
        names = {**part.programs, **names}
    table, group_by = host.table, parameters.group_by
    trees = [
        as_json(build_tree(table, names, group_by, with_idle=with_idle, take=largest), host.peaks)
        for with_idle in (True, False)
    ]
    device = host.environment.device_type
    kind = "CPU_ONLY" if device == "CPU" else "UNKNOWN_HARDWARE"
    kind = next((kind for word, kind in _KINDS if word in device), kind)
    return compact_json(
        {
            ours.NAMES[group_by]: trees[0],
            "deviceType": kind,
            f"{ours.NAMES[group_by]}ExcludeIdle": trees[1],
            "aggDvfsTimeScaleMultiplier": ratio(table.normalized_ps, table.op_ps),
        },
        ascii_only=False,
    )


TOOL = replace(ours.TOOL, partial=_partial, combine=_combine)
