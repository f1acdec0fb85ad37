"""The kernels of GPUs as XProf counts them (``convert/xplane_to_kernel_stats_db.cc``).

It differs from `peakline.timing.kernels` in that every run of an XSpace's kernel is cut to whole
ns, in the order of the file; in that it knows no words of AMD for launch parameters, no newer
names of kernels and no ops of PyTorch; and in that a kernel without an op has none.
"""

from __future__ import annotations

import numpy as np

from peakline.formats.common.annotations import WORDS, parse_details
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.kernels import KernelReport, kernel_reports, reports_of
from peakline.timing.launches.kernels import (
    OF_VENDOR,
    Launch,
    Launches,
    collect,
    has_devices,
    is_product,
    launches_of,
)
from peakline.timing.ops.names import parse_op_name
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.timing.programs.chips import vendors_of
from peakline.trace.distribution import distinct
from peakline.trace.events import trace_of
from peakline.xprof.rules.device_ops import device_prefix
from peakline.xprof.rules.programs import XprofPrograms

MOST_KERNELS = 1000
"""So many kernels XProf shows."""
WORDS_OF_NVIDIA = {word: parameter for word, parameter in WORDS.items() if word != "group_mem"}


@once
def xprof_kernel_reports(profile: Profile) -> list[KernelReport]:
    """The kernels with XProf's numbers, those that took longest first; ours where the planes are
    not upstream's. Held with the profile. Raises InputError when it cannot be read.
    """
    if profile.event_rules.planes is None:
        return kernel_reports(profile)
    return reports_of(_launches(profile))


def longest(reports: list[KernelReport]) -> list[KernelReport]:
    """The kernels that XProf shows of several hosts, side by side."""
    return sorted(reports, key=KernelReport.order)[:MOST_KERNELS]


def known_to_use(kernel: str, vendor: str) -> bool:
    """Whether XProf knows that a kernel uses tensor cores: none of an unknown vendor does."""
    return vendor in OF_VENDOR and OF_VENDOR[vendor](kernel)


def einsum_could_use(equation: str) -> bool:
    """Whether an einsum is a product of two."""
    sides = equation.split("->")
    return len(sides) == 2 and sides[0].count(",") == 1


def _launches(profile: Profile) -> Launches:
    if not has_devices(profile):
        return launches_of(profile)
    trace = trace_of(profile)
    events = profile.columns("events", frozenset(("line_id", "name", "duration_ps")))
    stats, programs = op_stats_of(profile), XprofPrograms(profile)
    prefix, line_id = device_prefix(trace), events.array("line_id")
    lines = {
        line.line_id: trace.planes[line.plane]
        for line in trace.lines
        if trace.planes[line.plane].name.startswith(prefix) and line.derived is None
    }
    kernel = stats["kernel_details"]
    rows = kernel.row[kernel.texts_at(kernel.row) >= 0]
    rows = rows[np.isin(line_id[rows], list(lines))]
    duration = events.array("duration_ps")[rows]
    rows, duration = rows[duration != 0], duration[duration != 0]
    columns = [
        stats[name].texts_at(rows) for name in ("kernel_details", "tf_op", "equation", "hlo_op")
    ]
    program, line = stats["program_id"].integers_at(rows), line_id[rows]
    names = events.names("name").take(rows)
    planes = np.array([lines[number].plane_id for number in line.tolist()], np.int64)
    first, which = distinct(names.codes, *columns, program, planes)
    vendors, texts = vendors_of(profile), kernel.texts
    said = {
        code: parse_details(texts[code] if code >= 0 else "", WORDS_OF_NVIDIA)
        for code in np.unique(columns[0]).tolist()
    }
    made = []
    for row in first.tolist():
        framework, equation, hlo = (
            texts[int(column[row])] if column[row] >= 0 else "" for column in columns[1:]
        )
        name = names[row] or ""
        used = known_to_use(name, vendors.get(int(planes[row]), ""))
        op, could = "", False
        if framework:
            op = parse_op_name(framework).name
            could = used or is_product(op) or einsum_could_use(equation)
        if hlo:
            instruction = programs.find(int(program[row]) % 2**64, hlo.rsplit("::", 1)[-1])
            if instruction is not None:
                op = instruction.op_name
                could = could or is_product(op)
        one = said[int(columns[0][row])]
        made.append((Launch(name, *one[:5], used, could, op), one.occupancy_percent))
    with np.errstate(over="ignore"):
        # Cut towards zero, as C does.
        whole = np.sign(duration) * (np.abs(duration) // 1000) * 1000
    return collect(made, which, whole)
