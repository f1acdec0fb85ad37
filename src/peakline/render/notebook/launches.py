"""What a notebook shows of launches, device by device."""

from __future__ import annotations

from peakline.document import limits
from peakline.document.model import Table, columns_of
from peakline.render.notebook.pieces import drawn, headed, line
from peakline.shown import headline_of
from peakline.timing.launches.summary import LaunchSummary, Spread

_COLUMNS = columns_of(
    device="name", launches="count", delay="run_ps", between="run_ps", idle="ps",
    not_launched="ps", being_launched="ps", waiting="ps",
)  # fmt: skip


def parts(summary: LaunchSummary) -> list[str]:
    """The answer of `Profile.launches`."""
    if not summary.devices:
        return [headed("Launches"), line("nothing in this profile launches work of a device")]
    rows = [
        (
            one.device, one.launches, _median(one.delay), _median(one.gap), one.idle_ps,
            one.starved_ps, one.latency_ps, one.blocked_ps,
        )
        for one in summary.devices
    ]  # fmt: skip
    title = "delay and time between launches are medians; then the device's idle time, and of it"
    return [
        headed("Launches", headline_of(summary)),
        drawn(Table(title, _COLUMNS, rows), limits.DEVICES.notebook),
    ]


def _median(spread: Spread | None) -> int | str:
    return "" if spread is None else spread.median
