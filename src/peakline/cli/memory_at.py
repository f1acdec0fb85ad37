"""``peakline memory --at TIME``: what was live at a time that the user names."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.cli.memory_parts import counted, step_text
from peakline.cli.memory_screen import heading, labels_of, live_part
from peakline.cli.screen import indented, plain_table, show
from peakline.errors import UsageError
from peakline.text import one_line, size_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.analysis.peak import AllocatorPeak
    from peakline.api import Profile
    from peakline.profile.columns import Columns

__all__ = ["parse_time", "print_memory_at"]

_TIME = re.compile(r"(\d{1,15}(?:\.\d{1,12})?)\s*(ps|ns|us|ms|s)", re.ASCII | re.IGNORECASE)
_UNIT_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_LONGEST_PS = 2**63 - 1


def parse_time(text: str) -> int:
    """A time such as 12.5ms, 1.2s or 827750630000ps in picoseconds; UsageError for anything else.

    It counts from the start of the profile, as all times that Peakline shows.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r:.80} is no time; write 12.5ms, 1.2s or 827750630000ps")
    return min(int(Decimal(match[1]) * _UNIT_PS[match[2].lower()]), _LONGEST_PS)


def print_memory_at(
    profile: Profile, time_ps: int, memory: tuple[AllocatorPeak, ...], steps: Columns
) -> None:
    """Print what every allocator held at ``time_ps``, and what it was made of."""
    labels = labels_of(steps)
    parts: list[RenderableType] = [heading(profile)]
    if not memory:
        parts += ["", Text(f"no memory is known of at {time_text(time_ps)}: records begin later")]
    for one in memory:
        count = sum(buffer.count for buffer in one.peak_buffers)
        size = f"{size_text(one.peak_bytes)} ({one.peak_bytes:,} bytes)"
        record = f"at {time_text(one.peak_time_ps)}"
        if one.peak_step is not None:
            record += f" in step {step_text(one.peak_step, labels)}"
        facts = plain_table(
            ("", ""),
            [
                (f"in use at {time_text(time_ps)}", f"{size} in {counted(count, 'buffer')}"),
                ("record before it", record),
            ],
        )
        facts.show_header = False
        name = one_line(one.allocator or "(unnamed allocator)")
        parts += ["", Text(name, style="bold"), indented(facts)]
        parts += live_part(one, labels, "live then")
    show(parts)
