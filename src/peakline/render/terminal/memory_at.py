"""``peakline memory --at TIME``: what was live at a time that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.memory.allocator_names import shown_names
from peakline.render.terminal.memory import heading, labels_of, live_part
from peakline.render.terminal.memory_parts import counted, step_words
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.text import one_line, size_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.memory.peak import AllocatorPeak
    from peakline.tables.columns import Columns

__all__ = ["print_memory_at"]


def print_memory_at(
    profile: Profile, time_ps: int, memory: tuple[AllocatorPeak, ...], steps: Columns
) -> None:
    """Print what every allocator held at ``time_ps``, and what it was made of."""
    labels, names = labels_of(steps), shown_names(profile)
    parts: list[RenderableType] = [heading(profile)]
    if not memory:
        parts += ["", Text(f"no memory is known of at {time_text(time_ps)}: records begin later")]
    for one in memory:
        count = sum(buffer.count for buffer in one.peak_buffers)
        size = f"{size_text(one.peak_bytes)} ({one.peak_bytes:,} bytes)"
        record = f"at {time_text(one.peak_time_ps)}"
        if one.peak_step is not None:
            record += f" in {step_words(one.peak_step, labels)}"
        facts = plain_table(
            ("", ""),
            [
                (f"in use at {time_text(time_ps)}", f"{size} in {counted(count, 'buffer')}"),
                ("record before it", record),
            ],
        )
        facts.show_header = False
        name = one_line(names.get(one.allocator, one.allocator) or "(unnamed allocator)")
        parts += ["", Text(name, style="bold"), indented(facts)]
        parts += live_part(one, labels, "live then")
    show(parts)
