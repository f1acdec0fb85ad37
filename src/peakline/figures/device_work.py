"""How long every device was busy, and with what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.figures.look import COLOURS, QUIET, axis, figure, level_bars, row_axis
from peakline.figures.text import fit, plain, share_text, time_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from peakline.tables import Profile

_DEVICES = 64
_ROW, _AROUND = 26, 220
_PARTS = (
    ("compute_ps", "compute", COLOURS[2]),
    ("communication_ps", "communication that computation does not hide", COLOURS[3]),
    ("copy_ps", "copies that neither hides", COLOURS[1]),
    ("idle_ps", "idle", QUIET),
)


def device_time(profile: Profile) -> Figure | None:
    """A bar per device, from its first work to its last: computing, communicating, copying, idle.

    At most 64 devices are drawn, those that were idle longest.

    None where no device is told of. Raises InputError when the profile cannot be read.
    """
    from peakline.timing.device_time import device_times

    found = device_times(profile)
    if not found:
        return None
    idlest = sorted(range(len(found)), key=lambda k: (-found[k].idle_ps, k))[:_DEVICES]
    drawn = [found[k] for k in sorted(idlest)]
    labels = [plain(fit(one.device, 32)) for one in drawn]
    spans = [one.compute_ps + one.communication_ps + one.copy_ps + one.idle_ps for one in drawn]
    size, unit = time_unit(max(spans))
    traces = [
        level_bars(
            name,
            colour,
            [getattr(one, part) / size for one in drawn],
            # Two devices may be called the same.
            list(range(len(drawn))),
            text=labels,
            textposition="none",
            hovertemplate=f"%{{x:,.4~r}} {unit}, %{{text}}<extra>{name}</extra>",
        )
        for part, name, colour in _PARTS
    ]
    idle = share_text(sum(one.idle_ps for one in drawn), sum(spans) or 1)
    which = f"the {len(drawn)} idlest of {len(found)}" if len(drawn) < len(found) else "all"
    count = f"{len(found)} device{'s' if len(found) > 1 else ''}"
    return figure(
        traces,
        title="How busy the devices were",
        subtitle=plain(f"{count}, idle for {idle} between their first and last work", 400),
        description=(
            f"Bars of the time of {count} ({which} drawn) with computation, communication, copies "
            f"and nothing to do: idle for {idle}."
        ),
        height=_AROUND + _ROW * len(drawn),
        barmode="stack",
        bargap=0.25,
        xaxis=axis(f"Time ({unit})", rangemode="tozero"),
        yaxis=row_axis("Device", labels),
        showlegend=True,
    )
